//! The screen of a capable terminal, as its writing thread sees it: lines that stay above, and a small live area below
//! that is redrawn.
//!
//! Changes are combined into frames: at most one write every 16 ms, unless a key must be echoed. The scrollback belongs
//! to the person: lines above are written once and never touched again.

mod answer;
mod frame;
mod state;
mod typed;

pub use frame::{DrawMoment, FramePart, Picture, Sketch};
pub(super) use state::{Surface, SurfaceSetup};
pub use typed::{PROMPT, TypedLine, draw_sent};
