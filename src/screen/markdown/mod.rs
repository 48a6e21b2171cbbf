//! Streaming Markdown: draws a model's answer line by line while it arrives.
//!
//! `blocks` reads lines and finds the block that each one opens, continues or closes, by the rules of CommonMark 0.31.
//! Nothing is parsed twice, so the cost per byte does not grow with the answer. pulldown-cmark parses the text within a
//! paragraph, a heading or a cell (`inline`), and whole tables. `page` lays the pieces out between the marks of the
//! lists and quotes around them, and `printer` is the interface to the rest of the program.

mod indent;
mod starts;
mod blocks;
mod wrap;
mod inline;
mod unclosed;
mod table;
mod code;
mod page;
mod printer;

pub use printer::Printer;
