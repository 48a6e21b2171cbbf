//! Which skills a conversation has loaded and does not use any more, and the line that stands for their instructions.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::json;
use crate::message::{CallStatus, Message, ToolCall, ToolMessage};

use super::draft::Draft;
use super::units::Kind;

/// The tools whose results are a skill's text.
pub const SKILL_TOOLS: [&str; 2] = ["load_skill", "load_skill_reference"];

/// In how many of the last turns a use counts as recent.
const RECENT_TURNS: usize = 2;

/// The texts of skills that nothing in the recent turns used: the index of the result, and the skill.
pub fn idle(draft: &Draft<'_>) -> Vec<(usize, String)> {
    let said = draft.units.iter().rev().filter(|unit| unit.kind == Kind::Said);
    let turn = said.take(RECENT_TURNS).last().map_or(0, |unit| unit.range.start);
    let recent = turn.min(draft.old().end);
    let messages = &draft.material.messages[recent..];
    let names: HashSet<&String> = draft.skill_texts.values().collect();
    let loaded_lately =
        |name: &&String| draft.skill_texts.iter().any(|(index, of)| *index >= recent && of == *name);
    let used: HashSet<&String> =
        names.into_iter().filter(|name| loaded_lately(name) || is_mentioned(messages, name)).collect();
    let mut idle: Vec<(usize, String)> = draft
        .skill_texts
        .iter()
        .filter(|(_, name)| !used.contains(name))
        .map(|(index, name)| (*index, name.clone()))
        .collect();
    idle.sort();
    idle
}

/// All texts of skills in a conversation: the index of the result, and the skill.
pub fn texts(messages: &[Message], answered: &HashMap<usize, &ToolCall>) -> HashMap<usize, String> {
    let text = |(index, call): (&usize, &&ToolCall)| match &messages[*index] {
        Message::Tool(answer) if answer.status == CallStatus::Ok => Some((*index, skill(call)?)),
        _ => None,
    };
    answered.iter().filter_map(text).collect()
}

/// The skill that a call loads from.
fn skill(call: &ToolCall) -> Option<String> {
    let named = |call: &ToolCall| Some(json::object(&call.arguments).ok()?.get("name")?.as_str()?.to_owned());
    SKILL_TOOLS.contains(&call.name.as_str()).then(|| named(call)).flatten()
}

/// Whether a reply speaks of the skill, or calls something in its directory.
fn is_mentioned(messages: &[Message], name: &str) -> bool {
    messages.iter().any(|message| match message {
        Message::Assistant(reply) => {
            reply.content.contains(name) || reply.tool_calls.iter().any(|call| call.arguments.contains(name))
        }
        Message::User { content, .. } => content.contains(name),
        Message::Tool(_) | Message::System { .. } => false,
    })
}

/// What stands for a skill's text.
#[must_use]
pub fn stub(answer: &ToolMessage, name: &str) -> Message {
    let what = if answer.name == SKILL_TOOLS[0] { "The instructions" } else { "A file" };
    let name = Value::from(name);
    let content = format!(
        "<result tool=\"{}\">\n[{what} of the skill {name} made room, as nothing used them lately. If they are needed \
         again: load_skill name={name}.]\n</result>",
        answer.name
    );
    Message::Tool(ToolMessage { content, ..answer.clone() })
}
