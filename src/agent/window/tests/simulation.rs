//! Runs long conversations through the planner alone and measures how often they are compressed, how often a model
//! is asked for a summary, and what their requests cost.

use super::desk::{Desk, budget, step, text};
use crate::agent::window::{PARTS, SummaryFacts};
use crate::config::Strategy;
use crate::conversation::message::UserText;

const STEPS: u64 = 300;
/// The cost of a token in the provider's cache.
const CACHED: f64 = 0.1;

/// The outcome of a conversation.
#[derive(Debug, Default)]
struct SimulatedCourse {
    compressions: u64,
    summaries: u64,
    /// Input tokens at full price, including the requests for summaries.
    cost: f64,
    /// The largest request.
    largest: u64,
    /// The fewest steps between two compressions.
    closest: u64,
}

/// A conversation: the tokens of each result, and how many steps pass between a person's messages.
#[derive(Debug, Clone, Copy)]
struct SimulatedWork {
    result: u64,
    turn: u64,
}

fn run(way: Option<Strategy>, window: u64, work: SimulatedWork, steps: u64) -> SimulatedCourse {
    let budget = budget(window);
    let mut desk = Desk::new(way.unwrap_or_default(), budget, (budget.tokens / 4).min(3000));
    let mut course = SimulatedCourse { closest: steps, ..SimulatedCourse::default() };
    let (mut random, mut last) = (fastrand::Rng::with_seed(window), 0);
    for number in 0..steps {
        if number % work.turn == 0 {
            desk.say(UserText::by_person(format!("{number}: {}", text(40.min(budget.tokens / 50)))));
        }
        let size = desk.measure();
        let (mut tokens, mut cached) = (size.tokens, size.prefix_tokens);
        if way.is_some()
            && let Some(plan) = desk.plan(desk.goal())
        {
            course.compressions += 1;
            if last > 0 {
                course.closest = course.closest.min(number - last);
            }
            last = number;
            if !plan.removed.is_empty() {
                course.summaries += 1;
                course.cost += tokens as f64 * CACHED + (size.tokens - size.prefix_tokens) as f64 + 500.0;
            }
            desk.carry_out(&plan, Some(&by_a_model));
            let after = desk.measure();
            assert!(after.tokens <= plan.tokens + 8, "{} tokens, planned {}", after.tokens, plan.tokens);
            (tokens, cached) = (after.tokens, after.prefix_tokens);
        }
        if way.is_some() {
            assert!(
                tokens <= budget.tokens,
                "step {number} of {work:?} in {window}: {tokens} of {}",
                budget.tokens
            );
        }
        course.largest = course.largest.max(tokens);
        course.cost += (tokens - cached) as f64 + cached as f64 * CACHED;
        // Results of any size around the mean.
        let result = work.result * random.u64(50..=150) / 100;
        desk.read(&format!("src/module_{number}/file.rs"), result);
    }
    course
}

/// A summary that fills the room it was given.
fn by_a_model(facts: &SummaryFacts) -> String {
    let most = facts.room.allow_tokens() / PARTS.len() as u64;
    PARTS
        .iter()
        .fold(String::new(), |out, (part, _)| out + "## " + part + "\n" + &text(most.saturating_sub(6)) + "\n")
}

fn told(window: u64, work: SimulatedWork, course: &SimulatedCourse) -> String {
    format!(
        "{window:>7} window, results of {:>5}, turns of {:>3}: {:>2} compressions, {:>2} summaries, at least {:>2} steps apart",
        work.result, work.turn, course.compressions, course.summaries, course.closest
    )
}

/// Holds if the results of ten steps fit a quarter of the budget, exactly or twice over; a step counts as one call.
fn holds(window: u64) {
    let quarter = budget(window).tokens / 4;
    for (share, turn) in [(10, 15), (20, STEPS)] {
        let work = SimulatedWork { result: quarter / share, turn };
        let staged = run(Some(Strategy::Staged), window, work, STEPS);
        let relative = staged.cost / run(None, window, work, STEPS).cost;
        let told = format!("{}, {relative:.2} of the price", told(window, work, &staged));
        assert!(staged.compressions * 10 <= STEPS, "{told}");
        // In the smallest windows a step is hardly larger than its digest.
        assert!(staged.summaries * 3 <= staged.compressions || window <= 8192, "{told}");
        assert!(relative <= 0.5, "{told}");
    }
}

#[test]
fn small_windows_are_compressed_once_in_ten_steps_at_half_the_price() {
    [4096, 8192, 16_384].into_iter().for_each(holds);
}

#[test]
fn middle_windows_are_compressed_once_in_ten_steps_at_half_the_price() {
    [32_768, 65_536].into_iter().for_each(holds);
}

#[test]
fn large_windows_are_compressed_once_in_ten_steps_at_half_the_price() {
    [131_072, 200_000].into_iter().for_each(holds);
}

#[test]
fn large_results_on_a_small_window_need_no_summary_at_each_step() {
    let work = SimulatedWork { result: 7000, turn: 40 };
    let course = run(Some(Strategy::Staged), 32_000, work, 40);
    assert!(course.compressions <= 20 && course.summaries <= 2, "{course:?}");
}

#[test]
fn whatever_the_strategy_every_request_fits() {
    for way in [Strategy::Staged, Strategy::Summary, Strategy::Window, Strategy::Selective] {
        for (window, result) in [(4096, 900), (8192, 5000), (32_768, 600)] {
            let work = SimulatedWork { result, turn: 7 };
            let course = run(Some(way), window, work, 60);
            assert!(course.largest <= budget(window).tokens, "{way:?}: {}", told(window, work, &course));
        }
    }
}

/// A message that takes much of the budget and stays leaves less room for the steps, but a compression still buys many.
#[test]
fn a_large_message_beside_small_steps_does_not_mean_a_compression_at_each() {
    for (window, share, step) in [(16_384, 45, 150), (16_384, 55, 150), (32_768, 65, 200), (65_536, 70, 400)] {
        let budget = budget(window);
        let mut desk = Desk::new(Strategy::Staged, budget, (budget.tokens / 4).min(3000));
        desk.say(UserText::by_person(text(budget.tokens * share / 100)));
        let (steps, mut compressions) = (64, 0);
        for number in 0..steps {
            if desk.measure().tokens > 0
                && let Some(plan) = desk.plan(desk.goal())
            {
                compressions += 1;
                desk.carry_out(&plan, Some(&by_a_model));
                let after = desk.measure().tokens;
                assert!(after <= budget.tokens, "{window}: {after} of {}", budget.tokens);
            }
            desk.read(&format!("src/module_{number}/file.rs"), step);
        }
        assert!(compressions * 8 <= steps, "{compressions} in {steps} steps of {step} in {window}, {share} %");
    }
}

/// With the least room beside the prompt and the tools, short messages go on for as long as anyone likes.
#[test]
fn fifty_turns_of_short_messages_fit_into_the_least_room() {
    let budget = budget(4096);
    let mut desk = Desk::new(Strategy::Staged, budget, budget.tokens - 520);
    let mut random = fastrand::Rng::with_seed(4);
    for number in 0..50 {
        desk.say(UserText::by_person(format!("{number}: {}", text(random.u64(47..=103)))));
        desk.measure();
        if let Some(plan) = desk.plan(desk.goal()) {
            desk.carry_out(&plan, Some(&by_a_model));
        }
        let tokens = desk.measure().tokens;
        assert!(tokens <= budget.tokens, "turn {number}: {tokens} of {}", budget.tokens);
        desk.step(step(&text(random.u64(47..=103)), &[]), Vec::new());
    }
}
