//! Writes the parts of a summary in code, as well as that is possible without understanding the text; it cannot
//! fail. Keeps the content of an earlier summary and adds what is new.

use crate::base::text;
use crate::conversation::message::CallStatus;

use super::calls;
use super::room::Room;
use super::sections::{PARTS, read_parts, write_parts};
use super::summary::SummaryFacts;

/// The most columns of a line.
const COLUMNS: usize = 240;

/// Tools whose calls change nothing.
const READING: &[&str] = &[
    "read_file", "list_dir", "glob", "grep", "recall", "todo", "find_tools", "load_skill", "load_skill_reference",
];

/// Writes the parts.
pub fn in_code(facts: &SummaryFacts) -> String {
    let known = read_parts(&facts.previous);
    let has_parts = known.iter().any(Option::is_some);
    let mut parts = known.map(|part| list_lines(&part.unwrap_or_default()));
    let [goal, constraints, decisions, done, progress, again, next, errors] = &mut parts;
    if facts.updates() && !has_parts {
        decisions.extend(facts.previous.lines().map(str::to_owned));
    }
    // Together they leave most of the room to the earlier summary.
    let most = Room::bytes(facts.room.summary) / 6;
    let words = keep_newest(facts.replies.iter().map(|reply| make_line(reply)).collect(), most);
    if let Some(last) = words.last() {
        *progress = vec![last.clone()];
    }
    decisions.extend(words);
    let calls = |ended: fn(CallStatus) -> bool| {
        let calls = facts.calls.iter().filter(move |(_, status)| ended(*status));
        calls.map(|(call, status)| (call, *status, format!("{} {}", call.name, calls::name_subject(call))))
    };
    let went_well =
        calls(|status| status == CallStatus::Ok).filter(|(call, ..)| !READING.contains(&call.name.as_str()));
    done.extend(keep_newest(went_well.map(|(.., told)| make_line(&told)).collect(), most));
    let failed = calls(|status| status != CallStatus::Ok)
        .map(|(_, status, told)| make_line(&format!("{told}: {status:?}")));
    errors.extend(keep_newest(failed.collect(), most));
    if goal.is_empty() {
        goal.extend(facts.asked.as_deref().map(make_line));
    }
    for (part, otherwise) in [
        (goal, "- nothing known"),
        (constraints, "- the person's own words stand below"),
        (again, "- what stands under Done has run"),
        (next, "- go on with what the person said last"),
    ] {
        if part.is_empty() {
            part.push(otherwise.to_owned());
        }
    }
    let mut bytes = Room::bytes(facts.room.summary);
    loop {
        let written = fit_parts(parts.clone(), bytes);
        if facts.room.has_room_for(&written, &facts.rates) || written.len() >= bytes {
            return written;
        }
        bytes = written.len() * 9 / 10;
    }
}

/// The lines of a part of an earlier summary, without empty ones.
fn list_lines(part: &str) -> Vec<String> {
    const NOTHING: &[&str] = &["", "none", "nothing known"];
    let says = |line: &&str| !NOTHING.contains(&line.trim_matches(['-', ' ', '.']).to_ascii_lowercase().as_str());
    part.lines().filter(says).map(str::to_owned).collect()
}

fn make_line(text: &str) -> String {
    format!("- {}", text::one_line(text, COLUMNS))
}

/// The newest lines that fit into the room, without duplicates.
fn keep_newest(mut lines: Vec<String>, room: usize) -> Vec<String> {
    lines.dedup();
    let mut fits = Room::fill(room, 1);
    let kept = lines.iter().rev().take_while(|line| fits(line)).count();
    lines.drain(..lines.len() - kept);
    lines
}

/// The parts as one text that fits into the room: the longest parts lose their oldest lines.
fn fit_parts(mut parts: [Vec<String>; PARTS.len()], room: usize) -> String {
    let headings: usize = PARTS.iter().map(|(part, _)| part.len() + "## \n\n- none\n".len()).sum();
    let size = |part: &Vec<String>| part.iter().map(|line| line.len() + 1).sum::<usize>();
    for part in &mut parts {
        let mut seen = std::collections::HashSet::new();
        part.retain(|line| seen.insert(line.clone()));
    }
    while headings + parts.iter().map(size).sum::<usize>() > room {
        let Some(longest) = parts.iter_mut().max_by_key(|part| size(part)) else { break };
        if longest.len() > 1 {
            longest.remove(0);
        } else if let Some(only) = longest.first_mut()
            && only.len() > 40
        {
            *only = text::take_head(only, only.len() / 2).to_owned() + "…";
        } else {
            break;
        }
    }
    write_parts(&parts.map(|part| part.join("\n")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::super::rates::Rates;
    use super::super::sections::complete_summary;
    use super::super::summary::compose_summary;
    use super::super::tests::desk::step;
    use super::super::{Material, Ruler};
    use super::*;
    use crate::conversation::message::{CallAnswer, Item, Summary, UserText};
    use crate::conversation::session::ItemId;

    const ROOM: Room = Room { summary: 500, quoted: 100, files: 20 };

    fn called(name: &str, arguments: &serde_json::Value, status: CallStatus) -> Item {
        let mut step = step(&format!("now {name}"), &[(name, arguments.to_string())]);
        step.fill(0, CallAnswer::of_text("", status));
        Item::Step(step)
    }

    fn facts(gone: &[Item], unloaded: &[(String, u64)], todo: Option<&serde_json::Value>) -> SummaryFacts {
        let items = [gone, &[Item::Said(UserText::by_person("the last question"))]].concat();
        let ids: Vec<ItemId> = (1..=items.len() as u64).map(|number| ItemId { number, pass: 0 }).collect();
        let (weights, pinned, ruler) = (vec![1; items.len()], BTreeSet::new(), Ruler::default());
        let (items, ids, weights, pinned, ruler) = (&items, &ids, &weights, &pinned, &ruler);
        let material = Material { items, ids, weights, fixed: 0, pinned, ruler };
        let removed: Vec<usize> = (0..gone.len()).collect();
        SummaryFacts::new(material, &removed, unloaded, todo, ROOM)
    }

    #[test]
    fn a_long_todo_list_takes_no_more_than_its_room() {
        let todo: serde_json::Value =
            (0..40).map(|at| json!({ "text": format!("{at} {}", "x".repeat(500)), "status": "open" })).collect();
        let gone = [Item::Said(UserText::by_person("Mend it."))];
        let [without, with] =
            [None, Some(&todo)].map(|todo| compose_summary(&facts(&gone, &[], todo), "## Goal\n- some").text);
        assert!(with.len() - without.len() < 300, "{with}");
        assert!(with.contains("- [open] 0 xxx") && with.contains(" more\n"), "{with}");
    }

    #[test]
    fn code_adds_what_it_knows_better() {
        let gone = [
            Item::Said(UserText::by_person("Mend it.\nNever touch a.rs.")),
            called("read_file", &json!({ "path": "b.rs" }), CallStatus::Ok),
            called("edit_file", &json!({ "path": "c.rs" }), CallStatus::Ok),
        ];
        let todo = json!([{ "text": "mend c.rs", "status": "done" }, { "text": "test", "status": "open" }]);
        let facts = facts(&gone, &[("fly".to_owned(), 90)], Some(&todo));
        let summary = compose_summary(&facts, "## Goal\n<result>not a tag</result>");
        assert!(
            summary
                .text
                .starts_with("[3 earlier items of this conversation made room for this summary. recall id=m3")
        );
        for part in [
            "\n## Files read\n- b.rs\n",
            "\n## Files changed\n- c.rs\n",
            "\n## Plan\n- [done] mend c.rs\n- [open] test\n",
            "\n- fly: load_skill name=\"fly\" loads it again\n",
            "\n> Mend it.\n> Never touch a.rs.\n",
        ] {
            assert!(summary.text.contains(part), "{part}: {}", summary.text);
        }
        assert!(!summary.text.contains("<result>"), "{}", summary.text);
        assert_eq!((summary.covers, summary.said.len()), (3, 1));
    }

    #[test]
    fn a_summary_hands_its_facts_on_however_often_and_however_it_is_made() {
        let body =
            PARTS.iter().fold(String::new(), |out, (part, _)| out + "## " + part + "\n- known of " + part + "\n");
        let first = Summary {
            body,
            said: vec!["Mend it.".to_owned()],
            read: BTreeSet::from(["b.rs".to_owned(), "c.rs".to_owned()]),
            changed: BTreeSet::from(["d.rs".to_owned()]),
            covers: 40,
            ..Summary::default()
        };
        let mut summary = first;
        for number in 0..30 {
            let gone = [
                Item::Summary(summary),
                Item::Said(UserText::by_person(format!("demand {number}"))),
                called("edit_file", &json!({ "path": "c.rs" }), CallStatus::Ok),
                called("run_command", &json!({ "command": format!("cargo test {number}") }), CallStatus::Error),
            ];
            let facts = facts(&gone, &[], None);
            assert!(facts.updates());
            summary = compose_summary(&facts, &in_code(&facts));
            assert_eq!(
                complete_summary(&summary.body, "", ROOM, &Rates::default()).as_deref().map(str::trim),
                Ok(summary.body.as_str())
            );
        }
        for part in ["Goal", "Constraints", "Decisions", "Done", "Do not do again", "Next"] {
            assert!(summary.body.contains(&format!("- known of {part}\n")), "{part}: {}", summary.body);
        }
        assert!(summary.body.contains("cargo test 29"), "{}", summary.body);
        assert_eq!(summary.covers, 40 + 30 * 3);
        assert_eq!(summary.said.first().map(String::as_str), Some("Mend it."));
        assert_eq!(summary.said.last().map(String::as_str), Some("demand 29"));
        assert!(summary.said.iter().map(String::len).sum::<usize>() <= Room::bytes(ROOM.quoted));
        assert_eq!(
            summary.read,
            BTreeSet::from(["b.rs".to_owned()]),
            "what was changed since is no longer only read"
        );
        assert_eq!(summary.changed.len(), 2);
    }

    #[test]
    fn without_a_model_the_parts_come_from_what_was_said_and_done() {
        let gone = [
            called("read_file", &json!({ "path": "b.rs" }), CallStatus::Ok),
            called("run_command", &json!({ "command": "cargo fmt" }), CallStatus::Ok),
            called("run_command", &json!({ "command": "cargo test" }), CallStatus::Error),
        ];
        let body = in_code(&facts(&gone, &[], None));
        let parts = PARTS.iter().map(|(heading, _)| *heading).zip(read_parts(&body));
        let parts: std::collections::HashMap<&str, String> =
            parts.map(|(heading, part)| (heading, part.expect("a part"))).collect();
        let part = |name: &str| parts[name].clone();
        assert_eq!(part("Goal"), "- the last question");
        assert_eq!(part("Decisions"), "- now read_file\n- now run_command");
        assert_eq!(part("Done"), "- run_command cargo fmt");
        assert_eq!(part("Open errors"), "- run_command cargo test: Error");
        let of_nothing = in_code(&facts(&[], &[], None));
        assert_eq!(complete_summary(&of_nothing, "", ROOM, &Rates::default()), Ok(of_nothing));
    }
}
