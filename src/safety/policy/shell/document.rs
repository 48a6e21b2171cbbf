//! Here-documents: finds their ends, and the commands in them.

use super::reader::{GiveUp, HereDocument, ShellReader, ShellReading};
use super::words::is_plain;

const NOT_UNDERSTOOD: GiveUp = GiveUp("a here-document in it is not understood");

impl HereDocument {
    /// Reads the delimiter after `<<`.
    pub fn begin(reader: &mut ShellReader<'_>, strips_tabs: bool) -> ShellReading<Self> {
        reader.blanks();
        let mut document = Self { delimiter: String::new(), strips_tabs, is_expanded: true };
        let mut quote = None;
        for (at, c) in reader.rest().char_indices() {
            match c {
                '\'' | '"' if quote == Some(c) => quote = None,
                '\'' | '"' if quote.is_none() => {
                    quote = Some(c);
                    document.is_expanded = false;
                }
                '\\' if quote.is_none() => document.is_expanded = false,
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' if quote.is_none() => {
                    reader.at += at;
                    return if document.delimiter.is_empty() { Err(NOT_UNDERSTOOD) } else { Ok(document) };
                }
                c if is_plain(c) || (c == ' ' && quote.is_some()) => document.delimiter.push(c),
                _ => break,
            }
        }
        Err(NOT_UNDERSTOOD)
    }

    /// Reads the body, which begins here.
    pub fn read(self, reader: &mut ShellReader<'_>) -> ShellReading<()> {
        let from = reader.at;
        loop {
            let rest = reader.rest();
            if rest.is_empty() {
                return Err(GiveUp("a here-document in it has no end"));
            }
            let line = rest.split('\n').next().unwrap_or(rest);
            let to = reader.at;
            reader.at = (to + line.len() + 1).min(reader.text.len());
            if line.trim_start_matches(|c| self.strips_tabs && c == '\t') == self.delimiter {
                let text = &reader.text[from..to];
                return if self.is_expanded { reader.read_part(text, ShellReader::body) } else { Ok(()) };
            }
            if self.is_expanded && line.ends_with('\\') {
                return Err(GiveUp("a here-document in it joins lines"));
            }
        }
    }
}
