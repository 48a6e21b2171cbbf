//! XML: one element with a child for each field; characters that XML cannot express are replaced.

use std::fmt::Write;

use super::ResultView;

pub(super) fn encode_view(view: &ResultView<'_>) -> String {
    let mut out = format!("<result tool=\"{}\"", escape_text(view.source.tool));
    if !view.source.trusted {
        out += " untrusted=\"true\"";
    }
    out.push('>');
    for (name, field) in &view.fields {
        let _ = write!(out, "<{name}>{}</{name}>", escape_text(&field.as_text()));
    }
    out + "</result>"
}

fn escape_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            // A reader would turn a bare carriage return into a line feed.
            '\r' => out += "&#13;",
            '\n' | '\t' => out.push(c),
            // XML 1.0 (section 2.2) has no way to write other control characters.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
