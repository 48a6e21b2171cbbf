//! The budget: the part of a model's window that a request may use.

use crate::config::ContextSettings;
use crate::model::ModelInfo;

/// The tokens that a request may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The total number of tokens that the model can hold.
    pub window: u64,
    /// Kept free for the reply.
    pub reserve: u64,
    /// The tokens that a request may contain: the window minus the reserve and a margin for inexact counts.
    pub tokens: u64,
    /// The budget before a server's refusal lowered it.
    pub declared: u64,
    /// The budget without regard to prices.
    pub whole: u64,
}

/// The smallest window that is supported.
const SMALLEST_WINDOW: u64 = 4096;

/// Two per cent for the provider's own framing of messages and tools.
const MARGIN_SHARE: u64 = 50;

/// The least room for a conversation beside the prompt and the tool definitions.
const LEAST_ROOM: u64 = 512;

impl Budget {
    /// # Errors
    /// The reserve leaves nothing; the error is a sentence.
    pub fn new(model: &ModelInfo, settings: &ContextSettings) -> Result<Self, String> {
        let window = model.context_window;
        let (reserve, room) = divide_window(window, asked_reserve(model, settings));
        let most = model.max_input_tokens.map_or(window, |most| most - most / MARGIN_SHARE);
        let room = room.min(most);
        let tokens = settings.budget.unwrap_or(room).min(window);
        if tokens == 0 {
            return Err(format!(
                "the context window of {window} tokens leaves no room beside a reserve of {reserve} for the reply: \
                 lower context.reserve_output or the model's max_output_tokens"
            ));
        }
        let budget = Self { window, reserve, tokens, declared: tokens, whole: tokens };
        Ok(budget.stop_below_tier(model, settings, 0))
    }

    /// The budget of a session whose requests cost what those with more than `above` tokens cost: it stops below the next
    /// tier that costs more, unless the settings allow to cross it.
    pub fn stop_below_tier(self, model: &ModelInfo, settings: &ContextSettings, above: u64) -> Self {
        let prices = model.prices.as_ref().filter(|_| !settings.cross_price_tier);
        let next = prices.and_then(|prices| prices.find_dearer(&prices.choose_tier(above + 1)));
        let tokens = next.map_or(self.whole, |tier| self.whole.min(tier.above - tier.above / MARGIN_SHARE));
        Self { tokens, declared: tokens, ..self }
    }

    /// The tokens that layers have shares of: a price is no reason to refuse a message.
    pub fn divide_by_layers(&self) -> u64 {
        if self.tokens < self.declared { self.tokens } else { self.whole }
    }

    /// The budget with at most `tokens`, as learned from a server.
    pub fn at_most(self, tokens: Option<u64>) -> Self {
        Self { tokens: tokens.map_or(self.tokens, |tokens| tokens.min(self.tokens)), ..self }
    }

    /// The tokens of a request if the server's window is smaller than the declared one.
    pub fn tokens_in(&self, window: u64, model: &ModelInfo, settings: &ContextSettings) -> u64 {
        divide_window(window, asked_reserve(model, settings).map(|reserve| reserve.min(window / 2)))
            .1
            .min(self.tokens)
    }

    /// The error that no conversation fits beside `fixed` tokens of prompt and tools, with a window that would do;
    /// `None` if one fits.
    pub fn too_small(&self, fixed: u64, model: &ModelInfo, settings: &ContextSettings) -> Option<String> {
        let needed = fixed + LEAST_ROOM;
        if self.tokens >= needed {
            return None;
        }
        let says = format!(
            "the prompt and the tools need {fixed} tokens, which leaves too little of a budget of {} for a conversation",
            self.tokens
        );
        let (_, room) = divide_window(self.window, asked_reserve(model, settings));
        if settings.budget.is_some_and(|budget| budget == self.tokens) && room >= needed {
            return Some(format!("{says}: the smallest context.budget that works is {needed}"));
        }
        let window = smallest_window(needed, asked_reserve(model, settings));
        Some(format!(
            "{says}: the smallest context window that works is {window} tokens, this one has {}",
            self.window
        ))
    }
}

/// What gives a request at least this many tokens: a setting or a window, in words.
pub fn describe_enough(tokens: u64, model: &ModelInfo, settings: &ContextSettings) -> String {
    let (_, room) = divide_window(model.context_window, asked_reserve(model, settings));
    if settings.budget.is_some() && tokens <= room {
        return format!("a context.budget of at least {tokens}");
    }
    let window = smallest_window(tokens, asked_reserve(model, settings));
    format!("a model with a context window of at least {window} tokens")
}

fn asked_reserve(model: &ModelInfo, settings: &ContextSettings) -> Option<u64> {
    settings.reserve_output.or(model.max_output_tokens)
}

/// Divides a window into the reserve for the reply and the tokens for a request.
fn divide_window(window: u64, reserve: Option<u64>) -> (u64, u64) {
    /// The reserve if neither the model nor the settings declare one.
    const RESERVE: u64 = 8192;
    let reserve = reserve.unwrap_or(RESERVE.min(window / 4)).min(window);
    (reserve, (window - reserve).saturating_sub(window / MARGIN_SHARE))
}

/// The smallest window, in steps of 1,024, in which a request may contain this many tokens.
fn smallest_window(tokens: u64, reserve: Option<u64>) -> u64 {
    const GRAIN: u64 = 1024;
    // A request gets three quarters of a window minus the margin, or all but the reserve.
    let enough = (tokens + reserve.unwrap_or(0)) * 2;
    let mut sizes =
        (SMALLEST_WINDOW / GRAIN..=enough.max(SMALLEST_WINDOW).div_ceil(GRAIN)).map(|size| size * GRAIN);
    sizes.find(|window| divide_window(*window, reserve).1 >= tokens).unwrap_or(enough)
}

/// The fewest tokens of a result that the model has not read: its frame, the handle of the whole, and some of its text.
pub(super) const LEAST_RESULT: usize = 90;

/// The most tokens that one result may have if a step has `calls` of them: a quarter of the room beside the
/// prompt and the tools for one result, half of it for all results of a step, and never more than the settings
/// allow.
pub fn result_cap(budget: &Budget, fixed: u64, setting: usize, calls: usize) -> usize {
    let free = free_tokens(budget, fixed);
    (free / 4).min(free / 2 / calls.max(1)).max(LEAST_RESULT).min(setting)
}

/// The most calls of one reply whose results have room together.
pub fn most_calls(budget: &Budget, fixed: u64) -> usize {
    (free_tokens(budget, fixed) / 2 / LEAST_RESULT).max(1)
}

fn free_tokens(budget: &Budget, fixed: u64) -> usize {
    usize::try_from(budget.tokens.saturating_sub(fixed)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::tests::desk::{model, settings};
    use super::*;
    use crate::config::{PriceTier, Prices};

    #[test]
    fn a_step_s_results_never_take_more_than_half_of_what_is_free() {
        let budget = Budget { window: 32_000, reserve: 8000, tokens: 23_000, declared: 23_000, whole: 23_000 };
        for (calls, cap) in [(0, 5000), (1, 5000), (2, 5000), (4, 2500), (1000, 90)] {
            assert_eq!(result_cap(&budget, 3000, 8000, calls), cap, "{calls}");
        }
        assert_eq!(result_cap(&budget, 3000, 40, 1), 40, "the setting is the most");
        assert_eq!(result_cap(&budget, 30_000, 8000, 1), 90);
        assert_eq!([3000, 22_400, 30_000].map(|fixed| most_calls(&budget, fixed)), [111, 3, 1]);
    }

    #[test]
    fn a_request_holds_no_more_than_the_model_takes() {
        let model = |most| ModelInfo { max_input_tokens: most, ..model(400_000) };
        let settings = settings();
        let tokens = |most| Budget::new(&model(most), &settings).expect("a budget").tokens;
        assert_eq!(tokens(Some(272_000)), 272_000 - 5440);
        assert_eq!(tokens(Some(399_999)), tokens(None));
    }

    #[test]
    fn a_budget_stops_below_the_next_tier_that_costs_more() {
        let tier = |above, input| PriceTier { above, input, cached_input: None, cache_write: None, output: 8.0 };
        let prices =
            Prices::new(tier(0, 1.0), vec![tier(50_000, 1.0), tier(100_000, 2.0), tier(200_000, 4.0)], false);
        let model = ModelInfo { prices: Some(prices), ..model(400_000) };
        let settings = settings();
        let budget = Budget::new(&model, &settings).expect("a budget");
        assert_eq!((budget.tokens, budget.whole, budget.divide_by_layers()), (98_000, 383_808, 383_808));
        let tokens = |above| budget.stop_below_tier(&model, &settings, above).tokens;
        assert_eq!([tokens(50_000), tokens(100_000), tokens(200_000)], [98_000, 196_000, 383_808]);
        assert_eq!(
            budget.stop_below_tier(&model, &settings, 100_000).at_most(Some(150_000)).divide_by_layers(),
            150_000
        );
        let cross = ContextSettings { cross_price_tier: true, ..settings };
        assert_eq!(Budget::new(&model, &cross).expect("a budget").tokens, 383_808);
    }

    #[test]
    fn what_is_too_small_is_told_with_what_would_do() {
        let settings = settings();
        let too_small = |window, fixed, settings: &ContextSettings| {
            let budget = Budget::new(&model(window), settings).expect("a budget");
            budget.too_small(fixed, &model(window), settings)
        };
        assert_eq!(too_small(4096, 2400, &settings), None);
        let why = too_small(4096, 2600, &settings).expect("too small");
        assert!(
            why.ends_with("the smallest context window that works is 5120 tokens, this one has 4096"),
            "{why}"
        );
        assert_eq!(too_small(5120, 2600, &settings), None);
        let why = too_small(2048, 600, &ContextSettings { budget: Some(900), ..settings }).expect("too small");
        assert!(why.ends_with("the smallest context.budget that works is 1112"), "{why}");
    }

    #[test]
    fn the_smallest_window_holds_what_is_needed_and_one_grain_less_does_not() {
        for (needed, reserve) in [(1000, None), (5000, None), (40_000, None), (5000, Some(16_000)), (100, Some(0))]
        {
            let window = smallest_window(needed, reserve);
            assert!(divide_window(window, reserve).1 >= needed, "{needed} {window}");
            assert!(
                window == SMALLEST_WINDOW || divide_window(window - 1024, reserve).1 < needed,
                "{needed} {window}"
            );
        }
    }
}
