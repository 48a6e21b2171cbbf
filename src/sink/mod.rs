//! Whoever watches a run: the terminal, JSONL, one JSON object; and the person who is asked.
//!
//! stdout carries the answer (or JSON) and nothing else, stderr the rest. Only a stdout that was closed ends a turn:
//! nothing that goes wrong on stderr does.

mod look;
mod style;
mod screen;
mod line;
mod spinner;
mod jsonl;
mod fanout;
mod otlp;
mod person;

pub use fanout::Fanout;
pub use jsonl::Jsonl;
pub use look::{AnswerTo, Facts, Look, Verbosity, look};
pub use otlp::{Closing, Collector, Otlp};
pub use person::{AskLine, Nobody, Person, StdinLines};
pub use screen::Screen;
pub use spinner::Spinner;
pub use style::{Colour, Ink, Style};
