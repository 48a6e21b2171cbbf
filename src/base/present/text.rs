//! The plain text between two tags. Tables are CSV.

use std::borrow::Cow;
use std::fmt::Write;

use super::{ResultSource, ResultView, ViewField, break_text_marks, csv, escape_attribute};
use crate::base::output::CallStatus;
use crate::base::spelling::spell;

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

/// The status in a result that is written like this.
pub fn read_status(text: &str) -> Option<CallStatus> {
    let status = text.strip_prefix("<result tool=")?.lines().nth(1)?.strip_prefix("status: ")?;
    serde_json::from_value(status.into()).ok()
}

/// A result of `tool` in which a status other than that of success is written, for a form that has no other place for it.
pub fn show_failure<'t>(tool: &str, status: CallStatus, text: &'t str) -> Cow<'t, str> {
    if status == CallStatus::Ok || read_status(text).is_some() {
        return text.into();
    }
    let is_head = |line: &str| line.starts_with("<result tool=") && line.find('>') == Some(line.len() - 1);
    if let Some((head, rest)) = text.split_once('\n').filter(|(head, _)| is_head(head)) {
        return format!("{head}\nstatus: {}\n{rest}", spell(&status)).into();
    }
    let field = |text: &str| ViewField::Text(text.to_owned());
    let fields = vec![("status", field(spell(&status))), ("content", field(&break_text_marks(text)))];
    let source = ResultSource { tool: &escape_attribute(tool), trusted: false };
    encode_view(&ResultView { source, fields }).into()
}
