//! What may run without asking: pure judgements over a call and its definition.

mod command;

pub use command::{Invocation, only_reads};
