//! Plans, tested on a folder of conversations: each file of `tests/plan_cases/` gives the goal, the conversation,
//! and the fate of each item. If a file lacks its last part, the test writes it, for review.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use super::desk::{result, step, text};
use crate::agent::window::{CompressionPlan, Goal, Material, MeasuredRequest, Ruler, plan_compression};
use crate::config::Strategy as Way;
use crate::conversation::message::{CallAnswer, CallStatus, Item, SkillText, Summary, UserText};
use crate::conversation::session::{ItemChange, ItemId};

/// A conversation.
#[derive(Debug, Clone, Default)]
struct Talk {
    items: Vec<Item>,
    pinned: BTreeSet<u64>,
}

impl Talk {
    /// A line of a case: `said 20 words`, `reply 10 read_file a.rs; grep x`, `ok 300`, `pin said 30`. An answer fills
    /// the next open call of the last reply.
    fn read(&mut self, line: &str) {
        let (pinned, line) = line.strip_prefix("pin ").map_or((false, line), |rest| (true, rest));
        let mut words = line.splitn(3, ' ');
        let kind = words.next().unwrap_or_default();
        let tokens: u64 = words.next().and_then(|word| word.parse().ok()).expect("the second word is a number");
        let rest = words.next().unwrap_or_default();
        let long = || format!("{rest} {}", text(tokens));
        match kind {
            "said" => self.items.push(Item::Said(UserText::by_person(long()))),
            "note" => self.items.push(Item::Said(UserText::by_program(long()))),
            "summary" => self.items.push(Item::Summary(Summary { text: long(), covers: 9, ..Summary::default() })),
            "reply" => self.reply(rest, tokens),
            "ok" => self.answer(CallStatus::Ok, tokens),
            "error" => self.answer(CallStatus::Error, tokens),
            "with" => self.load(rest, tokens),
            _ => panic!("no kind of item: {line}"),
        }
        if pinned {
            self.pinned.insert(self.items.len() as u64);
        }
    }

    fn reply(&mut self, calls: &str, tokens: u64) {
        let calls = calls.split(';').map(str::trim).filter(|call| !call.is_empty());
        let mut long = tokens;
        let calls: Vec<(&str, String)> = calls
            .map(|call| {
                let (name, subject) = call.split_once(' ').unwrap_or((call, ""));
                let key = match name {
                    "run_command" => "command",
                    "load_skill" => "name",
                    _ => "path",
                };
                let mut arguments = serde_json::json!({ key: subject });
                if name == "write_file" {
                    arguments["content"] = text(tokens).into();
                    long = 0;
                }
                (name, arguments.to_string())
            })
            .collect();
        self.items.push(Item::Step(step(&text(long), &calls)));
    }

    fn answer(&mut self, status: CallStatus, tokens: u64) {
        let Some(Item::Step(step)) = self.items.last_mut() else { panic!("an answer without a reply") };
        let open = step.calls().position(|call| call.answer.is_none()).expect("an open call");
        let call = step.calls().nth(open).expect("it is there").request.clone();
        let answer = result(&call.name, tokens, status);
        let skill = (call.name == "load_skill").then(|| crate::agent::window::calls::name_subject(&call));
        step.fill(open, CallAnswer { skill, ..answer });
    }

    /// Loads a skill with the last message.
    fn load(&mut self, name: &str, tokens: u64) {
        let Some(Item::Said(said)) = self.items.last_mut() else { panic!("nobody said something") };
        said.skills.push(SkillText { name: name.to_owned(), text: text(tokens) });
    }

    fn plan(&self, way: Way, goal: Goal) -> (u64, Option<CompressionPlan>) {
        let ids: Vec<ItemId> = (1..=self.items.len() as u64).map(|number| ItemId { number, pass: 0 }).collect();
        let (items, ids, mut ruler) = (self.items.as_slice(), ids.as_slice(), Ruler::default());
        ruler.measure(MeasuredRequest { model: "gpt-5-mini", tools: &[], system: "", items, ids }, u64::MAX);
        let weights = &ruler.weights();
        let material = Material { items, ids, weights, fixed: 0, pinned: &self.pinned, ruler: &ruler };
        (material.tokens(), plan_compression(way, material, goal))
    }

    fn described(&self, before: u64, plan: Option<&CompressionPlan>) -> String {
        let Some(plan) = plan else { return format!("{before} tokens stay\n") };
        let mut out = String::new();
        for (number, item) in (1..).zip(&self.items) {
            let changes = plan.edits.iter().filter(|edit| edit.number == number);
            let told: Vec<String> = changes.map(|edit| told(&edit.change)).collect();
            let fate = if told.is_empty() { "keep".to_owned() } else { told.join(", ") };
            let _ = writeln!(out, "{fate:<12} {}", crate::agent::window::in_short(item));
        }
        for (name, tokens) in &plan.unloaded {
            let _ = writeln!(out, "{name} made room, {tokens} tokens");
        }
        let _ = writeln!(out, "{before} tokens become about {}", plan.tokens);
        out
    }
}

fn told(change: &ItemChange) -> String {
    match change {
        ItemChange::Remove => "remove".to_owned(),
        ItemChange::Text { .. } => "shorten".to_owned(),
        ItemChange::Arguments { call, .. } => format!("arguments {}", call + 1),
        ItemChange::Answer { call, .. } => format!("answer {}", call + 1),
        ItemChange::Unload { skill } => format!("unload {skill}"),
        ItemChange::Picture { .. } => "picture".to_owned(),
    }
}

fn number(line: &str, key: &str) -> u64 {
    let mut words = line.split(' ').skip_while(|word| *word != key);
    words.nth(1).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("`{key} NUMBER` is missing: {line}"))
}

#[test]
fn every_case_is_planned_as_it_says() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan_cases");
    let mut cases = 0;
    for entry in std::fs::read_dir(dir).expect("the folder of cases") {
        let path = entry.expect("an entry").path();
        let case = std::fs::read_to_string(&path).expect("text");
        let mut parts = case.splitn(3, "---\n");
        let head = parts.next().expect("a head").lines().find(|line| !line.starts_with('#')).expect("a goal");
        let body = parts.next().expect("a conversation");
        let way = match head.split(' ').next() {
            Some("staged") => Way::Staged,
            Some("summary") => Way::Summary,
            Some("window") => Way::Window,
            Some("selective") => Way::Selective,
            other => panic!("no strategy: {other:?}"),
        };
        let [to, at, most, recent] = ["to", "at", "most", "recent"].map(|key| number(head, key));
        let goal = Goal { at, to, most, recent, asked: head.ends_with("asked") };
        let mut talk = Talk::default();
        body.lines().filter(|line| !line.is_empty()).for_each(|line| talk.read(line));
        let (before, plan) = talk.plan(way, goal);
        let described = talk.described(before, plan.as_ref());
        match parts.next() {
            Some(expected) => assert_eq!(described, expected, "{}", path.display()),
            None => std::fs::write(&path, format!("{case}---\n{described}")).expect("written"),
        }
        cases += 1;
    }
    assert!(cases >= 15, "{cases}");
}
