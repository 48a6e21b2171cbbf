//! Markdown as a model writes it, drawn line by line while it comes.
//!
//! `blocks` reads lines and tells which block each one opens, continues or closes, as CommonMark 0.31 has it; nothing is
//! read twice, so that an answer of any length costs the same for each of its bytes. What stands within a paragraph, a
//! heading or a cell is read by pulldown-cmark (`inline`), which also reads whole tables. `page` lays the pieces out
//! between the marks of the lists and quotes around them, and `printer` is what the rest of the program sees.

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
