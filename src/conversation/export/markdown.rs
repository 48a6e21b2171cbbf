//! A conversation as Markdown.

use std::fmt::Write;

use super::{Exported, ExportedPiece};
use crate::base::text;

/// Writes a heading for each message, and each call with its result in a fence that its text cannot close.
pub(super) fn write_markdown(exported: &Exported) -> String {
    let mut out = format!("# {}\n\n{}\n", exported.title, exported.describe());
    for passage in exported.list_passages() {
        let _ = match passage {
            ExportedPiece::Heading(who) => write!(out, "\n## {who}\n"),
            ExportedPiece::Text(text) => write!(out, "\n{text}\n"),
            ExportedPiece::Call(call) => {
                let request = &call.request;
                let result =
                    call.answer.as_ref().map(|answer| text::fence_code(&answer.content, "")).unwrap_or_default();
                write!(out, "\n**{}**\n\n{}{result}", request.name, text::fence_code(&request.arguments, "json"))
            }
        };
    }
    for helper in &exported.helpers {
        let _ = write!(out, "\n---\n\n{}", write_markdown(helper));
    }
    out
}
