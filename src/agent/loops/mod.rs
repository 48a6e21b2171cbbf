//! Finds loops: turns whose calls bring nothing new.

mod normal_form;
mod detector;
mod watched_files;
mod watch;

pub use detector::{LoopDetector, LoopVerdict, ObservedCall, ObservedEnd, Standstill};
pub(super) use watch::LoopWatch;
