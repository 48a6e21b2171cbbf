//! The format of the log: one JSON object per line. The first line is a header. Each line ends with its seal,
//! `"sum":…`.
//!
//! ```text
//! {"v":3,"type":"session","id":…,"workspace":…,"agent":…,"model":…,"created_at":…}   for a helper also "parent":…, for a trial "copy":…,"is_layer":…
//! {"type":"turn.started","run_id":…,"workspace":…,"agent":…,"model":…,"time":…}    repeats what the header says
//! {"type":"system","time":…,"text":…,"basis":{…}}       the system prompt and its ingredients
//! {"type":"said","n":1,"time":…,"text":…}
//! {"type":"partial","text":…}                           a reply so far, piece by piece
//! {"type":"partial.void"}                               the reply restarts
//! {"type":"reply","n":2,"time":…,"parts":[…],…}         a step; its calls are not answered yet
//! {"type":"state","time":…,"changes":{"todo":[…]},…}    keys of the session's state, files read, skills loaded
//! {"type":"answer","n":2,"call":0,"time":…,"content":…,"telemetry":{…}}
//! {"type":"turn.completed","stop":…,"title":…,"time":…} the title is the first message; "name":… if a person gave one
//! {"type":"taint","source":"content from …","time":…}   outside content entered; more calls ask from here on
//! {"type":"compressed","time":…,"done":{…},"edits":[…],"summary":{…}}   fewer tokens are sent
//! {"type":"unloaded","time":…,"skills":[…],"edits":[…]}                 instructions of skills are not sent
//! {"type":"restored","time":…}                          everything is sent verbatim again
//! {"type":"undone","n":7,"time":…}                      item 7 and everything after it no longer count; title and name as above
//! {"type":"redone","time":…}                            the last undo does not count; title and name as above
//! {"type":"checkpoint","name":…,"n":7,"time":…}        a name for the place after item 7
//! {"type":"titled","title":…,"time":…}              a model's title; "name":… as above
//! {"type":"renamed","name":…,"time":…}                 a person's title; an empty one takes it back
//! {"type":"pinned","numbers":[1,2],"time":…}            items that no compression touches
//! {"type":"unpinned","numbers":[1,2],"time":…}          the same, taken back
//! {"type":"spent","time":…,"usage":{…}}                 tokens of a request that left no reply
//! {"type":"role","role":"planner","text":…,"usage":{…}} a reply beside the conversation: a router, a planner, …
//! {"type":"progress","what":"planned",…}                an event of a plan or a flow: see `event::plan::PlanEvent`
//! {"type":"switched","agent":…,"model":…,"time":…}      the agent and the model from here on
//! ```
//!
//! A reply replaces the pieces before it. Readers skip types and fields that they do not know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::conversation::event::plan::PlanEvent;
use crate::conversation::event::{CallTelemetry, Compressed};
use crate::conversation::message::{CallAnswer, Step, Summary, Usage, UserText};

use super::state::StateChange;
use super::view::ViewEdit;

/// The version that is written. It is raised only if an older reader would misread a log.
pub(super) const FORMAT_VERSION: u32 = 3;
/// The oldest version that is read: that without seals.
pub(super) const OLDEST_VERSION: u32 = 2;

/// The first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LogHeader {
    pub v: u32,
    #[serde(rename = "type")]
    pub kind: HeaderKind,
    pub id: String,
    pub workspace: String,
    pub agent: String,
    pub model: String,
    pub created_at: String,
    /// The session that this one was begun for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The copy of the workspace in which it works, if it does not work there itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<String>,
    /// True if that holds only what changed, as a layer over the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_layer: bool,
    /// The session that this one is a copy of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HeaderKind {
    Session,
}

/// What a session is called.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LogTitle {
    /// The person's first words; empty if there are none.
    pub title: String,
    /// The title that a person gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Any line but the first, for writing.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum LogEntry<'a> {
    #[serde(rename = "turn.started")]
    TurnStarted {
        run_id: &'a str,
        workspace: &'a str,
        agent: &'a str,
        model: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<&'a str>,
        time: &'a str,
    },
    /// The prompt of the system and its ingredients.
    System { time: &'a str, text: &'a str, basis: &'a BTreeMap<String, String> },
    Said {
        n: u64,
        time: &'a str,
        #[serde(flatten)]
        said: &'a UserText,
    },
    Reply {
        n: u64,
        time: &'a str,
        #[serde(flatten)]
        step: &'a Step,
    },
    Answer {
        n: u64,
        call: usize,
        time: &'a str,
        #[serde(flatten)]
        answer: &'a CallAnswer,
        telemetry: &'a CallTelemetry,
    },
    Compressed {
        time: &'a str,
        done: &'a Compressed,
        edits: &'a [ViewEdit],
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<&'a Summary>,
    },
    /// Instructions of skills are not sent any more.
    Unloaded { time: &'a str, skills: &'a [String], edits: &'a [ViewEdit] },
    /// Everything is sent verbatim again.
    Restored { time: &'a str },
    Undone {
        n: u64,
        #[serde(flatten)]
        titled: LogTitle,
        time: &'a str,
    },
    Redone {
        #[serde(flatten)]
        titled: LogTitle,
        time: &'a str,
    },
    /// A name for the place after item `n`.
    Checkpoint { name: &'a str, n: u64, time: &'a str },
    Titled {
        #[serde(flatten)]
        titled: LogTitle,
        time: &'a str,
    },
    /// A person's title; an empty one takes it back.
    Renamed { name: &'a str, time: &'a str },
    /// Items that no compression touches.
    Pinned { numbers: &'a [u64], time: &'a str },
    /// Pins that were taken back.
    Unpinned { numbers: &'a [u64], time: &'a str },
    Spent {
        time: &'a str,
        usage: Usage,
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    Role {
        time: &'a str,
        role: &'a str,
        text: &'a str,
        usage: Usage,
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    Progress {
        time: &'a str,
        #[serde(flatten)]
        progress: &'a PlanEvent,
    },
    Partial {
        #[serde(skip_serializing_if = "str::is_empty")]
        text: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        reasoning: &'a str,
    },
    #[serde(rename = "partial.void")]
    PartialVoid,
    /// The agent and the model from here on.
    Switched { agent: &'a str, model: &'a str, time: &'a str },
    State {
        time: &'a str,
        #[serde(flatten)]
        change: &'a StateChange,
    },
    /// Content from outside entered.
    Taint { source: &'a str, time: &'a str },
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        stop: &'a str,
        code: u8,
        #[serde(flatten)]
        titled: LogTitle,
        time: &'a str,
    },
}

/// Any line but the first, with the fields that a reader needs.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum LogLine {
    #[serde(rename = "turn.started")]
    TurnStarted {},
    #[serde(rename = "turn.completed")]
    TurnCompleted { code: u8, title: Option<String> },
    /// The prompt of the system and its ingredients.
    System { text: String, basis: BTreeMap<String, String> },
    Said {
        n: u64,
        #[serde(flatten)]
        said: UserText,
    },
    Reply {
        n: u64,
        #[serde(flatten)]
        step: Step,
    },
    Answer {
        n: u64,
        call: usize,
        #[serde(flatten)]
        answer: CallAnswer,
        #[serde(default)]
        telemetry: Box<CallTelemetry>,
    },
    /// Fewer tokens are sent from here on.
    Compressed { done: Box<Compressed>, edits: Vec<ViewEdit>, summary: Option<Box<Summary>> },
    /// Instructions of skills are not sent any more.
    Unloaded { edits: Vec<ViewEdit> },
    /// Everything is sent verbatim again.
    Restored {},
    /// Item `n` and everything after it no longer count.
    Undone { n: u64 },
    /// The last undo does not count.
    Redone {},
    /// A name for the place after item `n`.
    Checkpoint { name: String, n: u64 },
    /// A model's title.
    Titled { title: String },
    /// A person's title; an empty one takes it back.
    Renamed { name: String },
    /// Items that no compression touches.
    Pinned { numbers: Vec<u64> },
    /// Pins that were taken back.
    Unpinned { numbers: Vec<u64> },
    /// A request that left no reply.
    Spent { usage: Usage, cost_usd: Option<f64> },
    /// A reply beside the conversation.
    Role { usage: Usage, cost_usd: Option<f64> },
    Progress {
        #[serde(flatten)]
        progress: Box<PlanEvent>,
    },
    Partial {
        #[serde(default)]
        text: String,
        #[serde(default)]
        reasoning: String,
    },
    #[serde(rename = "partial.void")]
    PartialVoid {},
    /// The agent and the model from here on.
    Switched { agent: String, model: String },
    State {
        #[serde(flatten)]
        change: StateChange,
    },
    /// Content from outside entered.
    Taint { source: String },
    /// The end of a turn, or a type of a later version: it does not change the conversation.
    #[serde(other)]
    Other,
}

/// The beginning of a line that belongs to an item: enough to know whether the rest is worth parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineHead {
    /// The number of the item.
    pub number: u64,
    /// The call of the item that the line answers; `None` if the line is the item.
    pub call: Option<usize>,
}

impl LineHead {
    /// Reads the first fields, which are written first; `None` for a line of another type.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let answer = line.strip_prefix(br#"{"type":"answer","n":"#);
        let item =
            || line.strip_prefix(br#"{"type":"said","n":"#).or(line.strip_prefix(br#"{"type":"reply","n":"#));
        let (number, rest) = parse_digits(answer.or_else(item)?)?;
        let call = match answer {
            Some(_) => Some(usize::try_from(parse_digits(rest.strip_prefix(br#","call":"#)?)?.0).ok()?),
            None => None,
        };
        Some(Self { number, call })
    }

    /// True if a line changes what is sent, judging only by its beginning.
    pub fn is_edit(line: &[u8]) -> bool {
        const EDITS: [&[u8]; 5] = [
            br#"{"type":"compressed""#, br#"{"type":"unloaded""#, br#"{"type":"restored""#,
            br#"{"type":"undone""#, br#"{"type":"redone""#,
        ];
        EDITS.iter().any(|start| line.starts_with(start))
    }
}

/// A number, and the text after it.
fn parse_digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, rest) = text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count());
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

impl LogLine {
    /// True if it changes something that an undo of a message takes back with it, beside items and compressions.
    pub fn is_of_a_message(&self) -> bool {
        matches!(
            self,
            Self::State { .. }
                | Self::Progress { .. }
                | Self::Restored {}
                | Self::Checkpoint { .. }
                | Self::Pinned { .. }
                | Self::Unpinned { .. }
        )
    }

    /// # Errors
    /// The line is not an entry.
    pub fn parse(line: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(line)
    }
}

/// The system prompt, and its ingredients: a name and a value or digest for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemPrompt {
    pub text: String,
    pub basis: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_items_are_known_by_their_beginning() {
        let said = UserText::by_person("x");
        let step = Step::default();
        let answer = CallAnswer::of_text("x", crate::conversation::message::CallStatus::Ok);
        let (time, telemetry) = ("", &CallTelemetry::default());
        for (entry, expected) in [
            (LogEntry::Said { n: 1, time, said: &said }, Some((1, None))),
            (LogEntry::Reply { n: 20, time, step: &step }, Some((20, None))),
            (LogEntry::Answer { n: 300, call: 4, time, answer: &answer, telemetry }, Some((300, Some(4)))),
            (LogEntry::Restored { time }, None),
            (LogEntry::Partial { text: r#"{"type":"said","n":1"#, reasoning: "" }, None),
        ] {
            let line = serde_json::to_vec(&entry).expect("plain data");
            let head = LineHead::parse(&line).map(|head| (head.number, head.call));
            assert_eq!(head, expected, "{}", String::from_utf8_lossy(&line));
        }
    }
}
