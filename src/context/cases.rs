//! Plans, tested on a folder of conversations: each file of `tests/plan_cases/` says where to land, what there is, and
//! what becomes of each message. A file without its last part gets it written, to be read and kept. Beside them, what
//! holds of any conversation.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use proptest::prelude::*;

use super::notes::Room;
use super::plan::{Fate, Goal, Material, Plan, plan};
use super::ruler::Ruler;
use crate::config::Strategy as Way;
use crate::message::{AssistantMessage, CallStatus, FinishReason, Message, Origin, ToolCall, ToolMessage};
use crate::session::{Edit, MessageId};

/// A conversation with its weights.
#[derive(Debug, Clone, Default)]
pub struct Talk {
    pub messages: Vec<Message>,
    weights: Vec<u64>,
    pub pinned: BTreeSet<u64>,
}

impl Talk {
    fn push(&mut self, message: Message, weight: u64) {
        self.messages.push(message);
        self.weights.push(weight);
    }

    fn ids(&self) -> Vec<MessageId> {
        (0..self.messages.len() as u64).map(|number| MessageId { number, pass: 0 }).collect()
    }

    fn plan(&self, way: Way, goal: Goal) -> Plan {
        plan(way, self.material(&self.ids(), &Ruler::default()), goal)
    }

    fn edits(&self, plan: &Plan) -> Vec<Edit> {
        let standing = Message::User { content: "in short".to_owned(), origin: Origin::Summary };
        plan.edits(self.material(&self.ids(), &Ruler::default()), &|_| Some("r1".to_owned()), Some(standing))
    }

    fn material<'a>(&'a self, ids: &'a [MessageId], ruler: &'a Ruler) -> Material<'a> {
        Material {
            messages: &self.messages,
            ids,
            weights: &self.weights,
            fixed: 0,
            pinned: &self.pinned,
            quoted: 0,
            ruler,
        }
    }

    /// The conversation after the plan.
    fn after(&self, plan: &Plan) -> Vec<Message> {
        let edits = self.edits(plan);
        let shown = self.messages.iter().enumerate().filter_map(|(number, message)| {
            match edits.iter().find(|edit| edit.number == number as u64) {
                None => Some(message.clone()),
                Some(edit) => edit.message.clone(),
            }
        });
        shown.collect()
    }

    /// A line of a case: `said 20 words`, `reply 10 read_file a.rs; grep x`, `ok 300`, `pin ok 30`.
    fn read(&mut self, line: &str) {
        let (pinned, line) = line.strip_prefix("pin ").map_or((false, line), |rest| (true, rest));
        if pinned {
            self.pinned.insert(self.messages.len() as u64);
        }
        let mut words = line.splitn(3, ' ');
        let kind = words.next().unwrap_or_default();
        let weight: u64 = words.next().and_then(|word| word.parse().ok()).expect("the second word is a number");
        let rest = words.next().unwrap_or_default();
        let message = match kind {
            "system" => Message::System { content: rest.to_owned() },
            "said" => Message::user(text(rest, weight)),
            "note" => Message::reminder(rest),
            "summary" => Message::User { content: rest.to_owned(), origin: Origin::Summary },
            "reply" => self.reply(rest, weight),
            "ok" => self.answer(CallStatus::Ok, weight),
            "error" => self.answer(CallStatus::Error, weight),
            _ => panic!("no kind of message: {line}"),
        };
        self.push(message, weight);
    }

    fn reply(&self, calls: &str, weight: u64) -> Message {
        let calls = calls.split(';').map(str::trim).filter(|call| !call.is_empty()).enumerate();
        let calls = calls.map(|(at, call)| {
            let (name, subject) = call.split_once(' ').unwrap_or((call, ""));
            let key = match name {
                "run_command" => "command",
                "load_skill" => "name",
                _ => "path",
            };
            let mut arguments = serde_json::json!({ key: subject });
            if name == "write_file" {
                arguments["content"] = text("", weight).into();
            }
            let id = format!("{}.{at}", self.messages.len());
            ToolCall { id, name: name.to_owned(), arguments: arguments.to_string() }
        });
        Message::Assistant(AssistantMessage { tool_calls: calls.collect(), ..AssistantMessage::default() })
    }

    /// Answers the next open call.
    fn answer(&self, status: CallStatus, weight: u64) -> Message {
        let answers = self.messages.iter().rev().take_while(|message| matches!(message, Message::Tool(_))).count();
        let reply = &self.messages[self.messages.len() - answers - 1];
        let Message::Assistant(reply) = reply else { panic!("an answer without a reply") };
        let call = &reply.tool_calls[answers];
        let content = format!("<result tool=\"{}\">\n{}\n</result>", call.name, text("", weight));
        let (call_id, name) = (call.id.clone(), call.name.clone());
        Message::Tool(ToolMessage { call_id, name, content, status, images: Vec::new() })
    }
}

/// About so many tokens of text.
fn text(words: &str, tokens: u64) -> String {
    let line = "one line of a text\n";
    let bytes = usize::try_from(tokens * 4).expect("small").saturating_sub(words.len());
    format!("{words} {}", line.repeat(bytes / line.len()))
}

fn described(talk: &Talk, plan: &Plan) -> String {
    let mut out = String::new();
    for (fate, message) in plan.fates.iter().zip(&talk.messages) {
        let fate = match fate {
            Fate::Keep => "keep".to_owned(),
            Fate::Shorten => "shorten".to_owned(),
            Fate::Unload(name) => format!("unload {name}"),
            Fate::Remove => "remove".to_owned(),
        };
        let _ = writeln!(out, "{fate:<12} {}", super::in_short(message));
    }
    let _ = writeln!(out, "{} tokens become about {}", talk.weights.iter().sum::<u64>(), plan.tokens);
    out
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
        let keep_recent_steps = usize::try_from(number(head, "keep")).expect("small");
        let goal = Goal { to: number(head, "to"), at_most: number(head, "at_most"), keep_recent_steps };
        let mut talk = Talk::default();
        body.lines().filter(|line| !line.is_empty()).for_each(|line| talk.read(line));
        let described = described(&talk, &talk.plan(way, goal));
        match parts.next() {
            Some(expected) => assert_eq!(described, expected, "{}", path.display()),
            None => std::fs::write(&path, format!("{case}---\n{described}")).expect("written"),
        }
        cases += 1;
    }
    assert!(cases >= 10, "{cases}");
}

/// Any conversation that can come about: turns of steps, each with calls that are all answered.
pub fn talks() -> impl Strategy<Value = Talk> {
    let call = (0..6_u8, 0..4_u8, 20..900_u64, any::<bool>());
    let step = (proptest::collection::vec(call, 0..4), 5..80_u64);
    let turn = (10..300_u64, proptest::collection::vec(step, 1..8));
    let talk = (proptest::collection::vec(turn, 1..6), proptest::collection::btree_set(0..60_u64, 0..3));
    talk.prop_map(|(turns, pinned)| {
        let mut talk = Talk { pinned, ..Talk::default() };
        talk.read("system 40 rules");
        for (said, steps) in turns {
            talk.read(&format!("said {said} please"));
            for (calls, weight) in steps {
                let names = ["read_file", "run_command", "grep", "write_file", "load_skill", "todo"];
                let written: Vec<String> = calls
                    .iter()
                    .map(|(name, about, ..)| format!("{} x{about}", names[usize::from(*name)]))
                    .collect();
                talk.read(&format!("reply {weight} {}", written.join("; ")));
                for (_, _, weight, ok) in calls {
                    talk.read(&format!("{} {weight}", if ok { "ok" } else { "error" }));
                }
            }
        }
        talk
    })
}

pub fn ways() -> impl Strategy<Value = Way> {
    prop_oneof![Just(Way::Staged), Just(Way::Summary), Just(Way::Window), Just(Way::Selective)]
}

pub fn goal(to: u64) -> Goal {
    Goal { to, at_most: to * 8 / 5, keep_recent_steps: 2 }
}

/// What is wrong with the calls of a conversation and their answers, if anything is.
pub fn parted(messages: &[Message]) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if let Message::Tool(answer) = message {
            let Some(at) = open.iter().position(|id| *id == answer.call_id) else {
                return Some(format!("an answer to nothing: {answer:?}"));
            };
            open.remove(at);
            continue;
        }
        if !open.is_empty() {
            return Some(format!("unanswered: {open:?}"));
        }
        if let Message::Assistant(reply) = message {
            open = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
            if reply.finish_reason == FinishReason::ToolCalls && open.is_empty() {
                return Some(format!("a reply that says it calls and does not: {reply:?}"));
            }
        }
    }
    (!open.is_empty()).then(|| format!("unanswered: {open:?}"))
}

proptest! {
    /// Every call has its one answer, right behind its reply, and every answer its call.
    #[test]
    fn a_call_and_its_answer_are_never_parted(talk in talks(), way in ways(), to in 50..4000_u64) {
        let after = talk.after(&talk.plan(way, goal(to)));
        prop_assert_eq!(parted(&after), None);
    }

    /// What was pinned, the rules and the person's last words stand as they were; nothing grows.
    #[test]
    fn what_must_stay_stays(talk in talks(), way in ways(), to in 50..4000_u64) {
        let plan = talk.plan(way, goal(to));
        let last = talk.messages.iter().rposition(Message::is_from_person).expect("somebody spoke");
        let pinned = talk.pinned.iter().map(|number| usize::try_from(*number).expect("small"));
        for index in pinned.filter(|index| *index < talk.messages.len()).chain([0, last]) {
            prop_assert_eq!(&plan.fates[index], &Fate::Keep);
        }
        let before: u64 = talk.weights.iter().sum();
        // What stands for removed messages is allowed for in full, however short it then is.
        let room = Room::of(to);
        let most = before + room.summary + room.quoted;
        prop_assert!(plan.tokens <= most, "{} from {before}", plan.tokens);
    }

    /// What fits is left alone, and asking for less never gives more.
    #[test]
    fn plans_go_no_further_than_they_must(talk in talks(), way in ways(), to in 400..4000_u64) {
        let before: u64 = talk.weights.iter().sum();
        let plan = talk.plan(way, goal(to));
        if before <= to {
            prop_assert!(plan.fates.iter().all(|fate| *fate == Fate::Keep));
        }
        let less = talk.plan(way, goal(to / 2));
        prop_assert!(less.count(|fate| *fate == Fate::Keep) <= plan.count(|fate| *fate == Fate::Keep));
        prop_assert_eq!(talk.plan(way, goal(to)), plan, "the same again");
    }
}
