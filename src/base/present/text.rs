//! The plain text between two tags. Tables are CSV.

use std::fmt::Write;

use super::{ResultView, ViewField, csv};

/// Writes fields after their names; the content is written without a name, and last, so that no line of it can be
/// mistaken for one of the fields.
pub(super) fn encode_view(view: &ResultView<'_>) -> String {
    let mark = if view.source.trusted { "" } else { " untrusted" };
    let mut out = format!("<result tool=\"{}\"{mark}>\n", view.source.tool);
    let is_content = |(name, _): &&(&str, ViewField)| *name == "content";
    let (content, fields): (Vec<_>, Vec<_>) = view.fields.iter().partition(is_content);
    for (name, field) in fields.into_iter().chain(content) {
        match (*name, field) {
            ("content", ViewField::Text(text)) => out += text,
            (_, ViewField::Text(text)) if !text.contains('\n') => {
                let _ = write!(out, "{name}: {text}");
            }
            (_, ViewField::Text(text)) => {
                let _ = write!(out, "{name}:\n{text}");
            }
            (_, ViewField::Data(data)) => {
                // A table of uniform records is smallest as CSV.
                let table = csv::write_table(data).map(|table| format!("(CSV)\n{table}"));
                let _ = write!(out, "{name}: {}", table.unwrap_or_else(|| data.to_string()));
            }
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out + "</result>"
}
