//! What calls may do: the rules, the person who is asked, and the walls around processes and the network.
//!
//! Invariants:
//! - Commands start inside the sandbox; a missing boundary narrows or fails, but never widens. `docs/sandbox.md` lists
//!   its limits. On Linux this program also runs as the keeper of a run's namespaces and as an init, which runs
//!   commands of one view one after another (`sandbox::serve_part`, the first thing that `faces::cli::main` does);
//!   `process/subject.rs` is where both ways of starting meet. An init whose namespace is not empty, or that a command
//!   changed, serves no other.
//! - The path that was judged is the path that a tool opens (`safety::Reach`), through `files::disk`, which follows no
//!   link.
//! - A page is fetched from addresses that were judged before the connection, hop by hop (`net/fetch.rs`).
//! - Outside content that a result introduces is noted in the log before the result (`taint`). From then on, calls that
//!   write or use the network are judged without rules, modes and earlier grants; only `--approve all` stands.
//! - A command line is parsed in one pass, bounded in depth (`policy/shell/`): the user is asked about whatever is not
//!   understood or read differently by different shells, and what was found in it can still be denied. A grant covers a
//!   later call only if that call asks for nothing more.
//! - A line of programs that usually only read (`policy/programs.txt`) runs unasked in `Enclosure::Read`, and nowhere
//!   else. Its flags are not analysed.
//!
//! To add:
//! - a case for the policy: one file in `tests/policy_cases/`.
//! - a place of credentials: one name in `sandbox/credentials.txt`.
//! - a program that usually reads, uses the network or delegates: one row in `policy/programs.txt`, a line in
//!   `tests/everyday_cases/`.
//! - an attack by path, command or content: one file in `tests/attack_cases/`.
//! - a program that runs others: one row in `policy/programs.txt`.

mod enclosure;
mod reach;
mod plan_review;
mod approver;
pub mod net;
pub mod sandbox;
pub mod process;
pub mod policy;

pub use approver::{Approval, Approver, Nobody, OpenFiles, Question};
pub use enclosure::{Enclosure, Hold, WallOpening};
pub use plan_review::{PlanReview, PlanSheet, read_form};
pub use reach::Reach;
pub use sandbox::Refused;
