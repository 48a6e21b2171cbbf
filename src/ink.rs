//! Coloured text: lines of spans, each with its inks, and the escape codes that show them.
//!
//! Sixteen colours suffice, and the terminal's own palette decides how they look. Nothing is said by colour alone. The
//! text of a span has been made visible (`text::visible`) before it comes here: whatever it holds is shown.

mod line;
mod style;

pub use line::{Line, Span, is_link};
pub use style::{Colour, Ink, Inks, Style, Theme, Wishes};
