//! The screen of a capable terminal, as the thread that writes it sees it: lines that stay above, a small live area that
//! is drawn again and again below.
//!
//! Frames are joined: at most one write every 16 ms, unless a key is to be echoed. The scrollback belongs to the person:
//! what stands above is written once and never touched again.

mod answer;
mod frame;
mod state;
mod typed;

pub use frame::{Moment, Part, Picture, Sketch};
pub(super) use state::{Setup, Surface};
pub use typed::{PROMPT, typed};
