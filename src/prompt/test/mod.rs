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
pub use case::{Case, Speaker, Suite, parse_suite};
pub use check::{JudgeAnswer, JudgeQuestion};
pub use outcome::{CaseOutcome, CaseRun, Tested, run_all_rendered, run_rendered};
pub use promptfoo::{Foreign, ImportedPrompt, is_promptfoo, parse_promptfoo};
pub use recording::{Recorded, Recordings, fingerprint_request, question_key, replay_run};
pub use rendering::{render_case, with_vars};
pub use reply::{RunCall, RunReply};
pub use report::{Comparison, TestReport};
pub use standing::{TESTS, VersionStanding, judge_standing, load_recordings, recordings_of, replay_case};
