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
    // Where fewer turns still show how they began, what stands before them belongs to a recent one.
    let mut said = draft.units.iter().rev().filter(|unit| unit.kind == Kind::Said);
    let turn = said.nth(RECENT_TURNS - 1).map_or(0, |unit| unit.range.start);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::plan::{Goal, Material};
    use super::super::ruler::Ruler;
    use super::*;
    use crate::message::AssistantMessage;
    use crate::session::MessageId;

    fn step(name: &str, arguments: &str, status: CallStatus) -> [Message; 2] {
        let call = ToolCall { id: "c".to_owned(), name: name.to_owned(), arguments: arguments.to_owned() };
        let (call_id, name, content) = ("c".to_owned(), name.to_owned(), "text".to_owned());
        [
            Message::Assistant(AssistantMessage { tool_calls: vec![call], ..AssistantMessage::default() }),
            Message::Tool(ToolMessage { call_id, name, content, status, images: Vec::new() }),
        ]
    }

    fn load(skill: &str) -> [Message; 2] {
        step("load_skill", &format!(r#"{{"name":"{skill}"}}"#), CallStatus::Ok)
    }

    fn idle_in(messages: &[Message]) -> Vec<String> {
        let ids: Vec<MessageId> =
            (1..=messages.len() as u64).map(|number| MessageId { number, pass: 0 }).collect();
        let (weights, pinned, ruler) = (vec![100; messages.len()], BTreeSet::new(), Ruler::default());
        let (ids, weights, pinned, ruler) = (&ids, &weights, &pinned, &ruler);
        let material = Material { messages, ids, weights, fixed: 0, pinned, quoted: 0, ruler };
        let draft = Draft::new(material, Goal { to: 1, at_most: 1, keep_recent_steps: 1 });
        idle(&draft).into_iter().map(|(_, name)| name).collect()
    }

    fn said(text: &str) -> [Message; 1] {
        [Message::user(text)]
    }

    #[test]
    fn a_skill_is_idle_when_two_turns_went_by_without_it() {
        let first = [said("one").as_slice(), &load("fly")].concat();
        let later = [said("two").as_slice(), &step("grep", "{}", CallStatus::Ok), &said("three")].concat();
        assert!(idle_in(&first).is_empty(), "it was loaded in this turn");
        assert!(idle_in(&[&first[..], &said("two")].concat()).is_empty(), "in the turn before");
        assert_eq!(idle_in(&[&first[..], &later].concat()), ["fly"]);
        for use_of_it in [
            said("once more, by fly").to_vec(),
            step("run_command", r#"{"command":"skills/fly/run.sh"}"#, CallStatus::Ok).to_vec(),
            load("fly").to_vec(),
        ] {
            assert!(idle_in(&[&first[..], &later, &use_of_it].concat()).is_empty(), "{use_of_it:?}");
        }
        let summary = Message::User { content: "in short".to_owned(), origin: crate::message::Origin::Summary };
        let summarised = [[summary].as_slice(), &load("fly"), &said("three")].concat();
        assert!(idle_in(&summarised).is_empty(), "nobody can tell how old it is");
    }

    #[test]
    fn only_what_was_loaded_is_the_text_of_a_skill_and_its_stub_says_how_to_load_it() {
        let talk = [
            load("fly").as_slice(),
            &step("load_skill", r#"{"name":"no"}"#, CallStatus::Error),
            &step("load_skill_reference", r#"{"name":"fly","path":"a.md"}"#, CallStatus::Ok),
            &step("read_file", r#"{"name":"fly"}"#, CallStatus::Ok),
        ]
        .concat();
        let texts = texts(&talk, &super::super::calls::answered(&talk));
        assert_eq!(texts, HashMap::from([(1, "fly".to_owned()), (5, "fly".to_owned())]));
        for (index, what) in [(1, "[The instructions of"), (5, "[A file of")] {
            let Message::Tool(answer) = &talk[index] else { panic!("a result") };
            let stub = stub(answer, "fly");
            assert!(stub.content().contains(what), "{}", stub.content());
            assert!(stub.content().contains("load_skill name=\"fly\""), "{}", stub.content());
        }
    }
}
