//! Reads lines of items whose texts do not count: only their numbers, calls and costs. Texts are skipped without a
//! copy, but they must be present and well formed.

use serde::Deserialize;
use serde::de::{Error, IgnoredAny};

use crate::conversation::event::CallTelemetry;
use crate::conversation::message::{
    Author, Call, CallAnswer, CallStatus, FinishReason, ReplyPart, Step, Usage, UserText,
};

use super::entry::LogLine;

/// The fields of all kinds of items; each kind has some of them.
#[derive(Deserialize)]
struct Outline {
    #[serde(rename = "type")]
    kind: OutlineKind,
    n: u64,
    /// The text of a person's message.
    text: Option<IgnoredAny>,
    #[serde(default)]
    author: Author,
    /// The fields of a reply follow.
    parts: Option<Vec<PartOutline>>,
    finish_reason: Option<FinishReason>,
    #[serde(default)]
    usage: Usage,
    cost_usd: Option<f64>,
    #[serde(default)]
    given: bool,
    /// The fields of an answer follow.
    call: Option<usize>,
    content: Option<IgnoredAny>,
    status: Option<CallStatus>,
    #[serde(default)]
    telemetry: Box<CallTelemetry>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutlineKind {
    Said,
    Reply,
    Answer,
}

#[derive(Deserialize)]
struct PartOutline {
    part: PartKind,
}

#[derive(PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartKind {
    Text,
    Reasoning,
    Call,
}

/// The line of an item, with empty texts. Of the parts of a reply, only the calls remain.
///
/// # Errors
/// The line is not an entry of an item.
pub(super) fn parse_outline(line: &[u8]) -> serde_json::Result<LogLine> {
    // Skipped texts must be valid UTF-8 too.
    let line = std::str::from_utf8(line).map_err(Error::custom)?;
    let outline: Outline = serde_json::from_str(line)?;
    let n = outline.n;
    let missing = Error::missing_field;
    Ok(match outline.kind {
        OutlineKind::Said => {
            outline.text.ok_or_else(|| missing("text"))?;
            LogLine::Said { n, said: UserText { author: outline.author, ..UserText::by_person("") } }
        }
        OutlineKind::Reply => {
            let parts = outline.parts.ok_or_else(|| missing("parts"))?;
            let calls = parts.iter().filter(|part| part.part == PartKind::Call);
            let step = Step {
                parts: calls.map(|_| ReplyPart::Call(Call::default())).collect(),
                finish_reason: outline.finish_reason.ok_or_else(|| missing("finish_reason"))?,
                usage: outline.usage,
                cost_usd: outline.cost_usd,
                given: outline.given,
                ..Step::default()
            };
            LogLine::Reply { n, step }
        }
        OutlineKind::Answer => {
            outline.content.ok_or_else(|| missing("content"))?;
            let answer = CallAnswer::of_text("", outline.status.ok_or_else(|| missing("status"))?);
            let call = outline.call.ok_or_else(|| missing("call"))?;
            LogLine::Answer { n, call, answer, telemetry: outline.telemetry }
        }
    })
}
