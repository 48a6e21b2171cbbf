//! The observers of a run (terminal, JSONL, one JSON object) and the person who answers questions.
//!
//! stdout carries the answer (or JSON) and nothing else; stderr carries the rest. A closed stdout ends a turn; an
//! error on stderr never does.
//!
//! Invariants:
//! - On a terminal that can be drawn on, one thread owns the screen (`surface/`) and one the keys
//!   (`terminal/console.rs`). Everything drawn is made of `screen::ink::Line`s; the text above the live area is written
//!   once.
//! - stdout and stderr are written by separate threads (`lane.rs`), unless they are files, which no reader can block. A
//!   turn pauses while their readers are behind (`Emitter::run_paced`); signals, which have a separate thread, and clocks
//!   do not.
//! - A question shows exactly what would run, in full (`question.rs`). Only known secrets are masked in it, never text
//!   that merely looks like one, and the question says so.

pub mod ink;
pub mod highlight;
pub mod markdown;
pub mod terminal;

mod file;
mod surface;
mod lane;
mod outlet;
mod display;
mod outlets;
mod look;
mod rendering;
pub mod views;

mod activity;
mod medium;
mod footer;
mod terminal_sink;
mod bar;
mod jsonl;
mod fanout;
#[cfg(feature = "otlp")]
mod otlp;
mod notice;
mod sheet;
#[cfg_attr(not(unix), allow(dead_code, reason = "keys are read one by one on Unix alone"))]
pub mod line;
mod question;
mod review;
mod loan;
mod ask;
mod editor;
mod person;

pub use ask::{AskLine, Keyed};
pub use bar::Bar;
pub use editor::{EditorDraft, ExternalEditor};
pub use fanout::Fanout;
pub use footer::Manner;
pub use jsonl::Jsonl;
pub use loan::{Loan, is_lent};
pub use look::{Look, LookFacts, choose_look};
#[cfg(feature = "otlp")]
pub use otlp::{Collector, OtlpExport};
pub use outlets::Outlets;
pub use person::Person;
pub use rendering::Rendering;
pub use surface::PROMPT;
pub use terminal_sink::Screen;
