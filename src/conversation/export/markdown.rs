//! A conversation as Markdown.

use std::fmt::Write;

use super::{Exported, ExportedPiece};

/// Writes a heading for each message, and each call with its result in a fence that its text cannot close.
pub(super) fn write_markdown(exported: &Exported) -> String {
    let mut out = format!("# {}\n\n{}\n", exported.title, exported.describe());
    for passage in exported.list_passages() {
        let _ = match passage {
            ExportedPiece::Heading(who) => write!(out, "\n## {who}\n"),
            ExportedPiece::Text(text) => write!(out, "\n{text}\n"),
            ExportedPiece::Call(call) => {
                let request = &call.request;
                let result = call.answer.as_ref().map(|answer| fence(&answer.content, "")).unwrap_or_default();
                write!(out, "\n**{}**\n\n{}{result}", request.name, fence(&request.arguments, "json"))
            }
        };
    }
    for helper in &exported.helpers {
        let _ = write!(out, "\n---\n\n{}", write_markdown(helper));
    }
    out
}

/// A block of code whose fence is longer than any run of its own backticks.
fn fence(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest.max(2) + 1);
    format!("{ticks}{language}\n{}\n{ticks}\n", text.trim_end())
}
