//! Coloured text: lines of spans, each with its inks, and the escape codes that show them.
//!
//! Only sixteen colours are used, and the terminal's palette decides how they look. Colour alone never carries meaning.
//! The text of a span must be made visible (`text::make_visible`) before it gets here.

mod line;
mod style;

pub use line::{Line, Span, is_link};
pub use style::{Colour, ColourWishes, Ink, Inks, Style, Theme};
