//! What calls may do: the rules, the person who is asked, and the walls around processes and the network.

mod enclosure;
mod reach;
mod plan_review;
mod approver;
pub mod net;
pub mod sandbox;
pub mod process;
pub mod policy;

pub use approver::{Approval, Approver, Nobody, Question};
pub use enclosure::{Enclosure, Hold, Refused};
pub use plan_review::{PlanReview, PlanSheet, read_form};
pub use reach::Reach;
