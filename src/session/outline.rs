//! Lines of items whose texts do not count: the numbers, the calls and the costs in them. Texts are passed over and
//! not copied; that they are there and well formed is looked at all the same.

use serde::Deserialize;
use serde::de::{Error, IgnoredAny};

use crate::event::CallTelemetry;
use crate::message::{Answer, Call, CallStatus, FinishReason, Part, Said, Step, ToolCall, Usage};

use super::entry::Line;

/// The fields of all kinds of items; each kind has some of them.
#[derive(Deserialize)]
struct Outline {
    #[serde(rename = "type")]
    kind: Kind,
    n: u64,
    /// Of what a person said.
    text: Option<IgnoredAny>,
    /// These are of a reply.
    parts: Option<Vec<PartOutline>>,
    finish_reason: Option<FinishReason>,
    #[serde(default)]
    usage: Usage,
    cost_usd: Option<f64>,
    #[serde(default)]
    given: bool,
    /// These are of an answer.
    call: Option<usize>,
    content: Option<IgnoredAny>,
    status: Option<CallStatus>,
    #[serde(default)]
    telemetry: Box<CallTelemetry>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
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

/// The line of an item, with empty texts. Of the parts of a reply, its calls alone remain.
///
/// # Errors
/// When the line is not an entry of an item.
pub(super) fn of(line: &[u8]) -> serde_json::Result<Line> {
    // What is passed over is text all the same.
    let line = std::str::from_utf8(line).map_err(Error::custom)?;
    let outline: Outline = serde_json::from_str(line)?;
    let n = outline.n;
    let missing = Error::missing_field;
    Ok(match outline.kind {
        Kind::Said => {
            outline.text.ok_or_else(|| missing("text"))?;
            Line::Said { n, said: Said::by_person("") }
        }
        Kind::Reply => {
            let parts = outline.parts.ok_or_else(|| missing("parts"))?;
            let calls = parts.iter().filter(|part| part.part == PartKind::Call);
            let step = Step {
                parts: calls.map(|_| Part::Call(unknown_call())).collect(),
                finish_reason: outline.finish_reason.ok_or_else(|| missing("finish_reason"))?,
                usage: outline.usage,
                cost_usd: outline.cost_usd,
                given: outline.given,
            };
            Line::Reply { n, step }
        }
        Kind::Answer => {
            outline.content.ok_or_else(|| missing("content"))?;
            let answer = Answer::of_text("", outline.status.ok_or_else(|| missing("status"))?);
            let call = outline.call.ok_or_else(|| missing("call"))?;
            Line::Answer { n, call, answer, telemetry: outline.telemetry }
        }
    })
}

fn unknown_call() -> Call {
    let request = ToolCall { id: String::new(), name: String::new(), arguments: String::new() };
    Call { request, opaque: None, answer: None }
}
