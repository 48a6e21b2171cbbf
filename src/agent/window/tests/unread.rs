//! What the model has not read stays readable, whatever the window, the kind of text, and the order of sizes.

use proptest::prelude::*;

use super::desk::{Desk, budget, step};
use crate::agent::window::budget::LEAST_RESULT;
use crate::agent::window::{most_calls, result_cap};
use crate::base::text;
use crate::config::Strategy as Way;
use crate::conversation::message::{CallAnswer, CallStatus, Item, Step, UserText};

/// The tokens of a result that stay readable where there is room for them.
const ENOUGH: u64 = 300;

/// The kinds of text.
#[derive(Debug, Clone, Copy)]
enum TextKind {
    Prose,
    Base64,
    /// Base64 in one line.
    Blob,
    Hex,
    Floats,
    Chinese,
    Symbols,
}

const KINDS: [TextKind; 7] = [
    TextKind::Prose,
    TextKind::Base64,
    TextKind::Blob,
    TextKind::Hex,
    TextKind::Floats,
    TextKind::Chinese,
    TextKind::Symbols,
];

const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// At least this many bytes of a kind of text.
fn write_text(kind: TextKind, bytes: usize, seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut letters = |from: &str, count: usize| -> String {
        let from: Vec<char> = from.chars().collect();
        (0..count).map(|_| from[random.usize(..from.len())]).collect()
    };
    let mut out = String::new();
    while out.len() < bytes {
        let more = match kind {
            TextKind::Prose => "the second of the two was left where it had been found\n".to_owned(),
            TextKind::Base64 => letters(BASE64, 76) + "\n",
            TextKind::Blob => letters(BASE64, 76),
            TextKind::Hex => letters("0123456789abcdef", 64) + "  file\n",
            TextKind::Floats => {
                format!("{}.{},-0.{}\n", letters("123", 2), letters("0123456789", 9), letters("0123456789", 12))
            }
            TextKind::Chinese => letters("我们的数据在这里没有找到请再试一次关于系统设置", 30) + "\n",
            TextKind::Symbols => letters("{}()[]<>;:,.=+-*/&|!?", 50) + "\n",
        };
        out.push_str(&more);
    }
    out
}

/// A read: what kind of text it gives, and how many bytes of it before the cap.
type Reading = (usize, usize);

/// The tokens of the person's message.
fn asked_tokens(desk: &Desk) -> u64 {
    let items = desk.session.items();
    let last = items.iter().rposition(|item| item.said_by_person().is_some());
    last.map_or(0, |at| desk.ruler.weights()[at])
}

/// Takes a step of such reads, each result cut as the loop cuts it.
fn read(desk: &mut Desk, readings: &[Reading]) {
    desk.measure();
    let fixed = desk.ruler.measure_fixed();
    let readings = &readings[..readings.len().min(most_calls(&desk.budget, fixed))];
    let cap = result_cap(&desk.budget, fixed, 100_000, readings.len());
    let calls: Vec<(&str, String)> =
        (0..readings.len()).map(|at| ("read_file", format!(r#"{{"path":"{at}"}}"#))).collect();
    let rates = desk.ruler.rates();
    let answers = readings.iter().enumerate().map(|(at, (kind, bytes))| {
        let whole = write_text(KINDS[*kind], *bytes, at as u64);
        let shown = rates.take_tokens(&whole, cap, text::take_head);
        CallAnswer::of_text(format!("<result tool=\"read_file\" untrusted>\n{shown}\n</result>"), CallStatus::Ok)
    });
    let answers = answers.collect();
    desk.step(step("I look at them.", &calls), answers);
}

fn unread(desk: &Desk) -> Vec<(u64, String)> {
    let last = desk.session.items().iter().rev().find_map(Item::as_step);
    let answers = last.into_iter().flat_map(Step::calls).filter_map(|call| call.answer.as_ref());
    answers.map(|answer| (desk.ruler.weigh(&answer.content), answer.content.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_was_not_read_stays_readable(
        steps in proptest::collection::vec(proptest::collection::vec((0..KINDS.len(), 20..90_000_usize), 1..17), 1..5),
        way in prop_oneof![Just(Way::Staged), Just(Way::Summary), Just(Way::Window), Just(Way::Selective)],
        size in prop_oneof![Just(4096_u64), Just(8192), Just(16_384), Just(32_768), Just(65_536), Just(200_000)],
        full in 10..85_u64,
        said in 5..400_usize,
    ) {
        let budget = budget(size);
        // The prompt and the tools leave at least the room that a conversation needs.
        let fixed = (budget.tokens * full / 100).min(budget.tokens - 560);
        let mut desk = Desk::new(way, budget, fixed);
        desk.say(UserText::by_person(write_text(TextKind::Prose, said, 1)));
        for readings in &steps {
            read(&mut desk, readings);
            let tokens = desk.measure().tokens;
            let before = unread(&desk);
            let goal = desk.goal();
            if let Some(plan) = desk.plan(goal) {
                prop_assert!(plan.tokens <= goal.most, "{} of {}", plan.tokens, goal.most);
                desk.carry_out(&plan, None);
                let after = desk.measure().tokens;
                prop_assert!(after <= goal.most, "{tokens} became {after} of {}", goal.most);
            }
            // Beside the request's fixed part stand the person's message, a summary, and the calls.
            let beside = desk.ruler.measure_fixed() + asked_tokens(&desk) + 260 + 25 * before.len() as u64;
            let share = goal.most.saturating_sub(beside) / (before.len() as u64 + 1);
            for ((was, _), (is, content)) in before.iter().zip(unread(&desk)) {
                // A smaller share has room for the handle alone.
                let least = if share < LEAST_RESULT as u64 { 0 } else { ENOUGH.min(*was).min(share) };
                prop_assert!(is * 10 >= least * 9, "{is} of {was} tokens are left, the least is {least}: {content}");
                prop_assert!(is == *was || content.contains("recall id="), "no handle: {content}");
            }
        }
    }
}
