//! A conversation as Markdown.

use std::fmt::Write;

use super::{Exported, name_author};
use crate::conversation::message::{Item, ReplyPart};

/// Writes a heading for each message, and each call with its result in a fence that its text cannot close.
pub(super) fn write_markdown(exported: &Exported) -> String {
    let Exported { id, title, model, agent, created_at, .. } = exported;
    let mut out = format!("# {title}\n\nSession {id}, {created_at}, agent {agent}, model {model}\n");
    for item in &exported.items {
        match item {
            Item::Said(said) => {
                let _ = write!(out, "\n## {}\n\n{}\n", name_author(said.author), join(said.texts()));
            }
            Item::Summary(summary) => drop(write!(out, "\n## Summary\n\n{}\n", summary.text.trim())),
            Item::Step(step) => {
                out.push_str("\n## Agent\n");
                for part in &step.parts {
                    match part {
                        ReplyPart::Text { text, .. } if !text.trim().is_empty() => {
                            let _ = write!(out, "\n{}\n", text.trim());
                        }
                        ReplyPart::Call(call) => {
                            let request = &call.request;
                            let _ = write!(out, "\n**{}**\n\n{}", request.name, fence(&request.arguments, "json"));
                            if let Some(answer) = &call.answer {
                                out.push_str(&fence(&answer.content, ""));
                            }
                        }
                        ReplyPart::Text { .. } | ReplyPart::Reasoning { .. } => {}
                    }
                }
            }
        }
    }
    for helper in &exported.helpers {
        let _ = write!(out, "\n---\n\n{}", write_markdown(helper));
    }
    out
}

fn join<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.map(str::trim).collect::<Vec<_>>().join("\n\n")
}

/// A block of code whose fence is longer than any run of its own backticks.
fn fence(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest.max(2) + 1);
    format!("{ticks}{language}\n{}\n{ticks}\n", text.trim_end())
}
