//! Tests of prompts: the content of `tests.yaml`, the check of its assertions against a run, and the statistics of many
//! runs. All of it is pure; `agent::assembly::prompt_test` runs the cases.

mod lines;
mod pattern;
mod source;
mod reply;
mod check;
mod given;
mod assertion;
mod case;
mod promptfoo;
mod rendering;
mod verdict;
mod statistics;
mod outcome;
mod recording;
mod standing;
mod report;

pub use assertion::Assertion;
pub use case::{Case, Speaker, Suite, parse};
pub use check::{Judged, Question};
pub use outcome::{Outcome, Run, Tested, run_all_rendered, run_rendered};
pub use promptfoo::{Foreign, Written, is_promptfoo, parse_promptfoo};
pub use recording::{Recorded, Recordings, asked, question_key, replay};
pub use rendering::{render, with_vars};
pub use reply::{Called, Reply};
pub use report::{Comparison, Report};
pub use standing::{Standing, TESTS, recordings, recordings_of, replayed, standing};
