//! Orchestrated turns: a router, a planner, executors and a reflector around the same conversation, tools and policy.
//! Data and pure functions come first: how replies are read, plans checked, results referred to, scores decided.

pub mod scratchpad;
pub mod reply;
pub mod reference;
pub mod command;
pub mod graph;
pub mod progress;
pub mod verdict;
pub mod route;
