//! Text: as it is, between two tags. Tables are CSV.

use std::fmt::Write;

use serde_json::Value;

use super::{Field, View, csv};

/// A single content is written bare; several fields are preceded by their names.
pub(super) fn encode(view: &View<'_>) -> String {
    let mark = if view.source.trusted { "" } else { " untrusted" };
    let mut out = format!("<result tool=\"{}\"{mark}>\n", view.source.tool);
    for (name, field) in &view.fields {
        match (*name, field) {
            ("content", Field::Text(text)) => out += text,
            (_, Field::Text(text)) if !text.contains('\n') => {
                let _ = write!(out, "{name}: {text}");
            }
            (_, Field::Text(text)) => {
                let _ = write!(out, "{name}:\n{text}");
            }
            (_, Field::Data(data)) => {
                let _ = write!(out, "{name}: {}", super::neutralise(&tabular(data)));
            }
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out + "</result>"
}

/// A table of uniform records as CSV, the smallest form; anything else as compact JSON.
fn tabular(data: &Value) -> String {
    csv::table(data).map_or_else(|| data.to_string(), |table| format!("(CSV)\n{table}"))
}
