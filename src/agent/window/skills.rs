//! The texts of skills in a conversation: finds those no longer used, and writes the line that replaces them.

use crate::conversation::message::{CallStatus, Item, SkillText, Step};
use crate::conversation::session::ItemChange;

/// A use within this many of the last turns counts as recent.
const RECENT_TURNS: usize = 2;

/// One text of a skill: its instructions, or one of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillUse {
    pub name: String,
    pub text: String,
    /// The index of the item.
    pub item: usize,
    /// The call whose answer contains it; `None` if it came with a person's text.
    call: Option<usize>,
    /// True if the skill was used recently.
    pub in_use: bool,
    /// True if the plan removes it.
    pub gone: bool,
}

impl SkillUse {
    /// The change that replaces it by a stub, and the stub.
    pub fn stub(&self) -> (ItemChange, String) {
        let stub = SkillText::stub(&self.name);
        let change = match self.call {
            Some(call) => ItemChange::Answer { call, content: stub.clone() },
            None => ItemChange::Unload { skill: self.name.clone() },
        };
        (change, stub)
    }
}

/// All texts of skills in a conversation, in order. Items from `recent` on are recent.
pub fn find_skill_uses(items: &[Item], recent: usize) -> Vec<SkillUse> {
    // With fewer messages of a person in view, all items belong to recent turns.
    let mut said = items.iter().enumerate().rev().filter(|(_, item)| item.said_by_person().is_some());
    let turn = said.nth(RECENT_TURNS - 1).map_or(0, |(index, _)| index);
    let recent = turn.min(recent);
    let mut uses: Vec<SkillUse> =
        items.iter().enumerate().flat_map(|(index, item)| in_item(index, item)).collect();
    let in_use: Vec<bool> = uses
        .iter()
        .map(|skill| {
            let is_loaded_lately = uses.iter().any(|other| other.item >= recent && other.name == skill.name);
            is_loaded_lately || items[recent..].iter().any(|item| is_mentioned(item, &skill.name))
        })
        .collect();
    uses.iter_mut().zip(in_use).for_each(|(skill, in_use)| skill.in_use = in_use);
    uses
}

fn in_item(item: usize, of: &Item) -> Vec<SkillUse> {
    let found = |call, name: &str, text: &str| SkillUse {
        name: name.to_owned(),
        text: text.to_owned(),
        item,
        call,
        in_use: false,
        gone: false,
    };
    match of {
        Item::Said(said) => {
            let stands = |skill: &&SkillText| skill.text != SkillText::stub(&skill.name);
            said.skills.iter().filter(stands).map(|skill| found(None, &skill.name, &skill.text)).collect()
        }
        Item::Step(step) => step
            .calls()
            .enumerate()
            .filter_map(|(at, call)| {
                let answer = call.answer.as_ref().filter(|answer| answer.status == CallStatus::Ok)?;
                Some(found(Some(at), answer.skill.as_deref()?, &answer.content))
            })
            .collect(),
        Item::Summary(_) => Vec::new(),
    }
}

/// True if a text mentions the skill, or a call uses its directory.
fn is_mentioned(item: &Item, name: &str) -> bool {
    let calls = |step: &Step| step.calls().any(|call| call.request.arguments.contains(name));
    match item {
        Item::Said(said) => said.text.contains(name),
        Item::Step(step) => step.texts().any(|text| text.contains(name)) || calls(step),
        Item::Summary(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{Call, CallAnswer, ReplyPart, Summary, ToolCall, UserText};

    fn step(name: &str, arguments: &str, skill: Option<&str>, status: CallStatus) -> Item {
        let request = ToolCall { id: "c".to_owned(), name: name.to_owned(), arguments: arguments.to_owned() };
        let answer = CallAnswer { skill: skill.map(str::to_owned), ..CallAnswer::of_text("text", status) };
        let call = Call { request, opaque: None, answer: Some(answer) };
        Item::Step(Step { parts: vec![ReplyPart::Call(call)], ..Step::default() })
    }

    fn load(skill: &str) -> Item {
        step("load_skill", &format!(r#"{{"name":"{skill}"}}"#), Some(skill), CallStatus::Ok)
    }

    fn said(text: &str) -> Item {
        Item::Said(UserText::by_person(text))
    }

    fn idle_in(items: &[Item]) -> Vec<String> {
        let uses = find_skill_uses(items, items.len().saturating_sub(1));
        uses.into_iter().filter(|skill| !skill.in_use).map(|skill| skill.name).collect()
    }

    #[test]
    fn a_skill_is_idle_when_two_turns_went_by_without_it() {
        let first = vec![said("one"), load("fly")];
        let grep = || step("grep", "{}", None, CallStatus::Ok);
        let later = vec![said("two"), grep(), said("three")];
        assert!(idle_in(&first).is_empty(), "it was loaded in this turn");
        assert!(idle_in(&[first.clone(), vec![said("two")]].concat()).is_empty(), "in the turn before");
        assert_eq!(idle_in(&[first.clone(), later.clone()].concat()), ["fly"]);
        for use_of_it in [
            said("once more, by fly"),
            step("run_command", r#"{"command":"skills/fly/run.sh"}"#, None, CallStatus::Ok),
            load("fly"),
        ] {
            assert!(idle_in(&[first.clone(), later.clone(), vec![use_of_it]].concat()).is_empty());
        }
        let summarised = [Item::Summary(Summary::default()), load("fly"), said("three")];
        assert!(idle_in(&summarised).is_empty(), "nobody can tell how old it is");
    }

    #[test]
    fn the_texts_of_skills_are_told_by_type_wherever_they_stand() {
        let mut with_skill = UserText::by_person("do it");
        with_skill.skills.push(SkillText { name: "walk".to_owned(), text: "left, right".to_owned() });
        with_skill.skills.push(SkillText { name: "run".to_owned(), text: SkillText::stub("run") });
        let items = [
            Item::Said(with_skill),
            load("fly"),
            step("load_skill", r#"{"name":"no"}"#, Some("no"), CallStatus::Error),
            step("read_file", r#"{"name":"fly"}"#, None, CallStatus::Ok),
        ];
        let uses = find_skill_uses(&items, 3);
        let found: Vec<(usize, &str)> = uses.iter().map(|skill| (skill.item, skill.name.as_str())).collect();
        assert_eq!(found, [(0, "walk"), (1, "fly")]);
        assert_eq!(uses[0].stub().0, ItemChange::Unload { skill: "walk".to_owned() });
        assert!(uses[1].stub().1.contains("`fly` was unloaded"));
    }
}
