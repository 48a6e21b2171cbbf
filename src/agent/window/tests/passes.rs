//! Properties of any conversation, compressed repeatedly by any strategy and applied to a session as the loop does.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::desk::{Desk, budget, result, step, text};
use crate::agent::window::{Goal, complete_summary, in_code, summary_prefix, with_less};
use crate::config::Strategy as Way;
use crate::conversation::message::{CallAnswer, CallStatus, Item, SkillText, Step, UserText};

/// A call: its tool, a subject, the tokens of its answer, and whether it succeeded.
type Called = (usize, u8, u64, bool);

/// A turn: a person's message, with or without a skill, and steps of calls.
#[derive(Debug, Clone)]
struct PastTurn {
    said: u64,
    skill: Option<u64>,
    steps: Vec<(u64, Vec<Called>)>,
    pins: BTreeSet<u64>,
}

const TOOLS: [&str; 6] = ["read_file", "run_command", "grep", "write_file", "load_skill", "todo"];

fn turns() -> impl Strategy<Value = Vec<PastTurn>> {
    let call = (0..TOOLS.len(), 0..4_u8, 5..900_u64, any::<bool>());
    let steps = proptest::collection::vec((0..600_u64, proptest::collection::vec(call, 0..4)), 1..8);
    let pins = proptest::collection::btree_set(0..60_u64, 0..2);
    let turn = (10..900_u64, proptest::option::of(100..400_u64), steps, pins);
    let turn = turn.prop_map(|(said, skill, steps, pins)| PastTurn { said, skill, steps, pins });
    proptest::collection::vec(turn, 1..6)
}

fn ways() -> impl Strategy<Value = Way> {
    prop_oneof![Just(Way::Staged), Just(Way::Summary), Just(Way::Window), Just(Way::Selective)]
}

fn take(desk: &mut Desk, turn: &PastTurn) {
    let before = desk.session.ids().last().map_or(0, |id| id.number);
    let mut said = UserText::by_person(text(turn.said));
    said.skills.extend(turn.skill.map(|tokens| SkillText { name: "walk".to_owned(), text: text(tokens) }));
    desk.say(said);
    for (words, calls) in &turn.steps {
        let named: Vec<(&str, String)> = calls
            .iter()
            .map(|(tool, about, tokens, _)| {
                let mut arguments = serde_json::json!({ "path": format!("x{about}") });
                if TOOLS[*tool] == "write_file" {
                    arguments["content"] = text(*tokens).into();
                }
                (TOOLS[*tool], arguments.to_string())
            })
            .collect();
        let answer = |(tool, about, tokens, ok): &Called| {
            let status = if *ok { CallStatus::Ok } else { CallStatus::Error };
            let skill = (*ok && TOOLS[*tool] == "load_skill").then(|| format!("x{about}"));
            CallAnswer { skill, ..result(TOOLS[*tool], *tokens, status) }
        };
        desk.step(step(&text(*words), &named), calls.iter().map(answer).collect());
    }
    let last = desk.session.ids().last().map_or(0, |id| id.number);
    let pinned: Vec<u64> =
        turn.pins.iter().map(|number| before + 1 + number).filter(|number| *number <= last).collect();
    desk.session.pin(&pinned, jiff::Timestamp::UNIX_EPOCH).expect("in memory");
}

/// The current state of the items with these numbers.
fn standing(desk: &Desk, numbers: &BTreeSet<u64>) -> Vec<Item> {
    let items = desk.session.ids().iter().zip(desk.session.items());
    items.filter(|(id, _)| numbers.contains(&id.number)).map(|(_, item)| item.clone()).collect()
}

fn digests(desk: &Desk) -> Vec<String> {
    let steps = desk.session.items().iter().filter_map(Item::as_step);
    let answers = steps.flat_map(Step::calls).filter_map(|call| call.answer.as_ref());
    answers.filter(|answer| answer.digested).map(|answer| answer.content.clone()).collect()
}

/// A summary that grows when skills of the last step are unloaded is counted before the request is taken to fit.
#[test]
fn a_summary_that_grows_while_items_give_way_is_counted() {
    let steps = vec![
        (138, vec![(0, 0, 396, true), (0, 0, 168, false)]),
        (516, vec![(4, 0, 746, false), (0, 1, 228, false), (4, 0, 16, true)]),
    ];
    let turn = PastTurn { said: 696, skill: Some(230), steps, pins: BTreeSet::new() };
    let mut desk = Desk::new(Way::Staged, budget(4096), 300);
    take(&mut desk, &turn);
    desk.measure();
    let goal = desk.goal();
    let plan = desk.plan(goal).expect("it is too much");
    assert!(plan.tokens <= goal.most, "{} of {}", plan.tokens, goal.most);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn passes_hold_what_they_promise(
        turns in turns(), way in ways(), window in 4096..16_000_u64, full in 5..95_u64, asked in any::<bool>(),
    ) {
        // The prompt and the tools leave at least the room that a conversation needs.
        let budget = budget(window);
        let fixed = (budget.tokens * full / 100).min(budget.tokens - 700);
        let mut desk = Desk::new(way, budget, fixed);
        for turn in &turns {
            take(&mut desk, turn);
            let before = desk.measure().tokens;
            let goal = Goal { asked, ..desk.goal() };
            let pinned = standing(&desk, desk.session.list_pinned());
            let pinned_tokens: u64 = desk.ruler.weights().iter().zip(desk.session.ids())
                .filter(|(_, id)| desk.session.list_pinned().contains(&id.number)).map(|(weight, _)| weight).sum();
            let last = desk.session.items().iter().rfind(|item| item.said_by_person().is_some()).cloned();
            let old_digests = digests(&desk);
            let Some(plan) = desk.plan(goal) else {
                prop_assert!(before <= goal.most, "{before} tokens need a plan");
                continue;
            };
            let again = desk.plan(goal);
            prop_assert_eq!(again.as_ref(), Some(&plan), "the same again");
            prop_assert!(plan.tokens <= before, "{before} would become {}", plan.tokens);
            if pinned_tokens == 0 {
                prop_assert!(plan.tokens <= goal.most, "{} of {}: whatever fits is made to fit", plan.tokens, goal.most);
            }

            // The request for a summary fits, and after a refusal it is sent again with less.
            let removed = plan.removed.last().copied();
            desk.with_material(|material| {
                if let Some(prefix) = summary_prefix(material, &plan, goal.most, 200) {
                    let tokens: u64 = material.weights[..prefix].iter().sum();
                    assert!(tokens + material.fixed + 200 <= goal.most && removed.is_none_or(|last| last < prefix));
                }
                let less = with_less(material, &plan, before / 2);
                let tokens: u64 = less.iter().flat_map(Item::texts).map(|text| material.ruler.weigh(text)).sum();
                assert!(tokens <= before / 2 || less.len() <= 1, "{tokens} of {before}");
            });

            desk.carry_out(&plan, None);
            let after = desk.measure().tokens;
            prop_assert!(after <= plan.tokens + 12, "{after} tokens, planned {}", plan.tokens);
            prop_assert_eq!(&standing(&desk, desk.session.list_pinned()), &pinned, "pinned items are untouched");
            let told = desk.session.items().iter().rfind(|item| item.said_by_person().is_some()).cloned();
            let handle = told.as_ref().is_some_and(|item| item.texts().any(|text| text.contains("recall id=m")));
            let walk = |item: Item| match item { Item::Said(said) => said.text, _ => String::new() };
            prop_assert!(told.clone().map(walk) == last.map(walk) || handle, "the person's last words stand");
            let new_digests = digests(&desk);
            let nested = new_digests.iter().any(|digest| digest.matches("[shortened").count() > 1);
            prop_assert!(!nested, "a digest of a digest");
            if plan.removed.is_empty() {
                let stand = old_digests.iter().all(|old| new_digests.contains(old));
                prop_assert!(stand, "a digest stands byte for byte");
            }
        }
    }

    /// However much is removed, a summary written by code is well-formed and fits into its room.
    #[test]
    fn a_summary_made_in_code_is_always_sound(turns in turns(), window in 4096..16_000_u64) {
        let mut desk = Desk::new(Way::Summary, budget(window), 300);
        for turn in &turns {
            take(&mut desk, turn);
            desk.measure();
            let goal = Goal { asked: true, ..desk.goal() };
            if let Some(plan) = desk.plan(goal).filter(|plan| !plan.removed.is_empty()) {
                let facts = desk.with_material(|material| crate::agent::window::SummaryFacts::collect(material, &plan, None));
                let body = in_code(&facts);
                prop_assert_eq!(complete_summary(&body, "", plan.room, &desk.ruler.rates()), Ok(body));
                desk.carry_out(&plan, None);
            }
        }
    }
}
