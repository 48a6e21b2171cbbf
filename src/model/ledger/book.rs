//! The accounts of a run and the arithmetic over them. Pure.

use std::iter;

use crate::conversation::message::Usage;

use super::amount::{Amount, SpendingBounds, SpendingLimit, SpendingRefusal, Spent};
use super::claim::{Claim, ClosingNeed};

/// All accounts of a run: its own, and below it those of its helpers.
#[derive(Debug)]
pub(super) struct Book {
    accounts: Vec<Account>,
}

/// The account of one conversation. Its sums include all accounts below it.
#[derive(Debug, Default)]
struct Account {
    above: Option<usize>,
    bounds: SpendingBounds,
    spent: Spent,
    /// Reserved for requests in flight.
    in_flight: Amount,
    /// Kept for closing answers.
    kept: Amount,
    /// The part of `kept` for the closing answer of this conversation.
    own_closing: Amount,
    own_steps: u64,
    /// The requests of this conversation alone, those in flight included.
    own_requests: u64,
    /// The limit that left no room for a request, once there was one.
    refused_by: Option<SpendingLimit>,
    is_open: bool,
}

/// What is reserved for one request.
#[derive(Debug)]
#[must_use = "a reservation that is not settled is held for ever"]
pub struct Reservation {
    account: usize,
    amount: Amount,
    output: u64,
    output_cap: Option<u64>,
    /// What the closing answer needs after the shortest and after the longest reply, if that depends on it.
    closing: Option<[Amount; 2]>,
}

impl Reservation {
    /// The most tokens that the reply may have, if that is less than the model could write.
    pub fn output_cap(&self) -> Option<u64> {
        self.output_cap
    }
}

impl Book {
    /// The account of the run itself.
    pub const ROOT: usize = 0;

    pub fn new() -> Self {
        Self { accounts: vec![Account { is_open: true, ..Account::default() }] }
    }

    /// Opens an account below another.
    pub fn open(&mut self, above: usize) -> usize {
        self.accounts.push(Account { above: Some(above), is_open: true, ..Account::default() });
        self.accounts.len() - 1
    }

    /// Closes an account: what is kept for its closing answer is free again.
    pub fn close(&mut self, account: usize) {
        self.accounts[account].is_open = false;
        self.keep(account, Amount::default());
    }

    pub fn bind(&mut self, account: usize, bounds: SpendingBounds) {
        self.accounts[account].bounds = bounds;
    }

    pub fn spent(&self, account: usize) -> Spent {
        self.accounts[account].spent
    }

    pub fn own_steps(&self, account: usize) -> u64 {
        self.accounts[account].own_steps
    }

    /// Counts steps and turns of a conversation.
    pub fn count(&mut self, account: usize, steps: u64, turns: u64) {
        self.accounts[account].own_steps += steps;
        self.change(account, |level| {
            level.spent.steps += steps;
            level.spent.turns += turns;
        });
    }

    /// The limit that is used up, the account's own first.
    pub fn find_exhausted(&self, account: usize) -> Option<SpendingRefusal> {
        self.upwards(account).find_map(|level| {
            let Account { bounds, spent, .. } = &self.accounts[level];
            let limit = bounds.reached_by(spent.amount())?;
            Some(SpendingRefusal { limit, spent: *spent, may_fit_later: false })
        })
    }

    /// The limit that left no room for an earlier request, the account's own first.
    pub fn find_refused(&self, account: usize) -> Option<SpendingRefusal> {
        let limit = self.upwards(account).find_map(|level| self.accounts[level].refused_by)?;
        Some(SpendingRefusal { limit, spent: self.spent_under(account, limit), may_fit_later: false })
    }

    /// What was spent under a limit of the account or of the highest one above it that has it.
    pub fn spent_under(&self, account: usize, limit: SpendingLimit) -> Spent {
        let has_it = |level: &usize| self.accounts[*level].bounds.has(limit);
        self.spent(self.upwards(account).filter(has_it).last().unwrap_or(account))
    }

    /// The bounds of the account and of all above it.
    pub fn bounds_above(&self, account: usize) -> impl Iterator<Item = SpendingBounds> {
        self.upwards(account).map(|level| self.accounts[level].bounds)
    }

    /// Reserves what a request can take: its reply may be as long as what is left allows.
    pub fn reserve(&mut self, account: usize, claim: &Claim<'_>) -> Result<Reservation, SpendingRefusal> {
        let least = claim.least_output.min(claim.largest_output);
        // The first request of a conversation may be its last: before it there is nothing to sum up.
        let is_first = self.accounts[account].own_requests == 0;
        let counts_closing = match self.refusal(account, claim, least, true) {
            None => true,
            Some((_, refusal)) if is_first && self.refusal(account, claim, least, false).is_none() => {
                // Only the count of requests gives way.
                debug_assert!(matches!(refusal.limit, SpendingLimit::Requests(_)));
                false
            }
            Some((level, refusal)) => {
                if !refusal.may_fit_later {
                    self.accounts[level].refused_by = Some(refusal.limit);
                }
                return Err(refusal);
            }
        };
        let output = self.largest_fitting(account, claim, least);
        let amount = claim.request(output);
        self.accounts[account].own_requests += 1;
        self.change(account, |level| level.in_flight += amount);
        if let Some(closing) = claim.closing(output) {
            let requests = if counts_closing { closing.requests } else { 0 };
            self.keep(account, Amount { requests, ..closing });
        }
        let output_cap = (output < claim.largest_output).then_some(output);
        let closing = (claim.closing == ClosingNeed::AfterReply)
            .then(|| [0, output].map(|output| claim.closing(output).unwrap_or_default()));
        Ok(Reservation { account, amount, output, output_cap, closing })
    }

    /// Enters what a request took.
    pub fn settle(&mut self, reservation: Reservation, usage: Usage, usd: Option<f64>) {
        let Reservation { account, amount, output, closing, .. } = reservation;
        self.change(account, |level| {
            level.in_flight -= amount;
            level.spent.requests += 1;
            level.spent.usage += usage;
            level.spent.cost.add(&usage, usd);
        });
        if let (Some([shortest, longest]), true) = (closing, self.accounts[account].is_open) {
            let requests = self.accounts[account].own_closing.requests;
            let closing = interpolate_need(shortest, longest, usage.output_tokens.min(output), output);
            self.keep(account, Amount { requests, ..closing });
        }
    }

    /// Gives back what was reserved for a request that was not sent.
    pub fn withdraw(&mut self, reservation: Reservation) {
        let Reservation { account, amount, .. } = reservation;
        self.accounts[account].own_requests -= 1;
        self.change(account, |level| level.in_flight -= amount);
    }

    /// The account in which a request with this much output does not fit, if there is one, and the reason.
    fn refusal(
        &self,
        account: usize,
        claim: &Claim<'_>,
        output: u64,
        counts_closing: bool,
    ) -> Option<(usize, SpendingRefusal)> {
        self.upwards(account).find_map(|level| {
            let mut most = self.held_without(level, account, claim);
            add(&mut most, claim, output, 1, counts_closing);
            let Account { bounds, spent, in_flight, .. } = &self.accounts[level];
            let limit = bounds.exceeded_by(most)?;
            let mut later = most;
            later -= *in_flight;
            let may_fit_later = in_flight.requests > 0 && bounds.exceeded_by(later).is_none();
            Some((level, SpendingRefusal { limit, spent: *spent, may_fit_later }))
        })
    }

    /// The largest reply that fits everywhere. Helpers that may ask too get equal shares of what is left.
    fn largest_fitting(&self, account: usize, claim: &Claim<'_>, least: u64) -> u64 {
        let fits = |output: u64| {
            let mut below = account;
            self.upwards(account).all(|level| {
                let sharers = if level == account { 1 } else { self.sharers(level, below) };
                below = level;
                let mut most = self.held_without(level, account, claim);
                add(&mut most, claim, output, sharers, false);
                let bounds = SpendingBounds { requests: None, ..self.accounts[level].bounds };
                bounds.exceeded_by(most).is_none()
            })
        };
        if fits(claim.largest_output) {
            return claim.largest_output;
        }
        let (mut fitting, mut beyond) = (least, claim.largest_output);
        while beyond - fitting > 1 {
            let middle = fitting + (beyond - fitting) / 2;
            if fits(middle) { fitting = middle } else { beyond = middle }
        }
        fitting
    }

    /// What a level has spent and holds, without what the claim replaces. Above the account the next request is held as
    /// well, which reads what the helper reports; it is about as large as a closing answer.
    fn held_without(&self, level: usize, account: usize, claim: &Claim<'_>) -> Amount {
        let Account { spent, in_flight, kept, own_closing, .. } = &self.accounts[level];
        let mut held = spent.amount();
        held += *in_flight;
        held += *kept;
        if level != account {
            held += *own_closing;
        }
        if claim.closing != ClosingNeed::Unchanged {
            let own = self.accounts[account].own_closing;
            held.requests -= own.requests.min(held.requests);
            held.tokens = held.tokens.saturating_sub(own.tokens);
            held.usd -= own.usd;
        }
        held
    }

    /// The open accounts directly below `level` that have nothing in flight, and the asking one.
    fn sharers(&self, level: usize, asking: usize) -> u64 {
        let waits = |(at, below): &(usize, &Account)| {
            below.above == Some(level) && (*at == asking || below.is_open && below.in_flight.requests == 0)
        };
        self.accounts.iter().enumerate().filter(waits).count() as u64
    }

    /// Replaces what is kept for the closing answer of a conversation.
    fn keep(&mut self, account: usize, closing: Amount) {
        let before = std::mem::replace(&mut self.accounts[account].own_closing, closing);
        self.change(account, |level| {
            level.kept -= before;
            level.kept += closing;
        });
    }

    fn change(&mut self, account: usize, change: impl Fn(&mut Account)) {
        let mut next = Some(account);
        while let Some(level) = next {
            change(&mut self.accounts[level]);
            next = self.accounts[level].above;
        }
    }

    /// The account and all above it.
    fn upwards(&self, account: usize) -> impl Iterator<Item = usize> {
        iter::successors(Some(account), |level| self.accounts[*level].above)
    }
}

/// What the closing answer needs after a reply of `reply` tokens; the longest has `most`.
fn interpolate_need(shortest: Amount, longest: Amount, reply: u64, most: u64) -> Amount {
    let share = reply as f64 / most.max(1) as f64;
    let usd = shortest.usd + (longest.usd - shortest.usd) * share;
    Amount { tokens: shortest.tokens.saturating_add(reply), usd, ..shortest }
}

/// Adds what `times` such requests, and the closing answers after them, can take.
fn add(held: &mut Amount, claim: &Claim<'_>, output: u64, times: u64, counts_closing: bool) {
    let request = claim.request(output);
    let mut closing = claim.closing(output).unwrap_or_default();
    if !counts_closing {
        closing.requests = 0;
    }
    for _ in 0..times {
        *held += request;
        *held += closing;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::{PriceTier, Prices};

    fn claim(input_tokens: u64) -> Claim<'static> {
        let closing = ClosingNeed::AfterReply;
        Claim { input_tokens, largest_output: 4000, least_output: 1024, closing, ..Claim::default() }
    }

    fn tokens(most: u64) -> SpendingBounds {
        SpendingBounds { tokens: Some(most), ..SpendingBounds::default() }
    }

    fn used(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    #[test]
    fn a_reply_is_shortened_only_where_less_is_left_and_never_below_the_least() {
        for (most, cap) in [
            // The request, and a closing answer with the request's input and its reply in it.
            (1000 + 4000 + 1000 + 4000 + 512 + 1024, Some(None)),
            (1000 + 3000 + 1000 + 3000 + 512 + 1024, Some(Some(3000))),
            (1000 + 1024 + 1000 + 1024 + 512 + 1024, Some(Some(1024))),
            (1000 + 1024 + 1000 + 1024 + 512 + 1023, None),
            (10, None),
        ] {
            let mut book = Book::new();
            book.bind(Book::ROOT, tokens(most));
            let reserved = book.reserve(Book::ROOT, &claim(1000)).ok().map(|reserved| reserved.output_cap);
            assert_eq!(reserved, cap, "{most}");
        }
    }

    #[test]
    fn a_model_that_writes_little_is_asked_for_no_more() {
        let mut book = Book::new();
        book.bind(Book::ROOT, tokens(2000));
        let small = Claim { largest_output: 100, closing: ClosingNeed::Nothing, ..claim(1900) };
        assert_eq!(book.reserve(Book::ROOT, &small).expect("it fits").output_cap, None);
    }

    #[test]
    fn the_closing_answer_may_use_what_was_kept_for_it() {
        let mut book = Book::new();
        book.bind(Book::ROOT, tokens(1000 + 1024 + 1000 + 1024 + 512 + 1024));
        let first = book.reserve(Book::ROOT, &claim(1000)).expect("it fits");
        book.settle(first, used(1000, 1024), None);
        let again = book.reserve(Book::ROOT, &claim(2024)).expect_err("nothing is left for another step");
        assert_eq!((again.limit, again.may_fit_later), (SpendingLimit::Tokens(5584), false));
        let closing = Claim { closing: ClosingNeed::Nothing, ..claim(2024 + 512) };
        assert_eq!(book.reserve(Book::ROOT, &closing).expect("it was kept").output_cap, Some(1024));
    }

    #[test]
    fn after_a_short_reply_the_closing_answer_needs_less() {
        let mut book = Book::new();
        book.bind(Book::ROOT, tokens(20_000));
        let first = book.reserve(Book::ROOT, &claim(1000)).expect("it fits");
        assert_eq!(book.accounts[Book::ROOT].kept.tokens, 1000 + 4000 + 512 + 1024);
        book.settle(first, used(1000, 20), None);
        assert_eq!(book.accounts[Book::ROOT].kept.tokens, 1000 + 20 + 512 + 1024);
    }

    #[test]
    fn requests_are_never_more_than_the_limit_and_the_last_is_kept_for_the_closing_answer() {
        for most in 1..6 {
            let mut book = Book::new();
            book.bind(Book::ROOT, SpendingBounds { requests: Some(most), ..SpendingBounds::default() });
            let mut steps = 0;
            while let Ok(reserved) = book.reserve(Book::ROOT, &claim(10)) {
                book.settle(reserved, used(10, 10), None);
                steps += 1;
            }
            assert_eq!(steps, (most - 1).max(1));
            let closing = Claim { closing: ClosingNeed::Nothing, ..claim(10) };
            assert_eq!(book.reserve(Book::ROOT, &closing).is_ok(), most > 1, "{most}");
        }
    }

    #[test]
    fn helpers_get_equal_shares_of_what_their_caller_has_left() {
        let mut book = Book::new();
        book.bind(Book::ROOT, tokens(40_000));
        let helpers: Vec<usize> = (0..4).map(|_| book.open(Book::ROOT)).collect();
        let alone = Claim { closing: ClosingNeed::Nothing, largest_output: 100_000, ..claim(1000) };
        let caps: Vec<_> =
            helpers.iter().map(|helper| book.reserve(*helper, &alone).expect("it fits").output_cap).collect();
        assert_eq!(caps, [Some(9000); 4]);
        let late = book.open(Book::ROOT);
        let refusal = book.reserve(late, &alone).expect_err("all is reserved");
        assert!(refusal.may_fit_later, "the others may take less");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Whatever is reserved and settled by whom, in any order: if no request takes more than was reserved, no limit
        /// is passed on any level.
        #[test]
        fn no_limit_is_passed(
            (most_requests, most_tokens, most_cents) in (1_u64..40, 500_u64..80_000, 1_u32..80),
            acts in prop::collection::vec((0_usize..9, 0_u64..4000, 0_u64..=100, any::<bool>()), 1..120),
        ) {
            let price = PriceTier { above: 0, input: 3.0, cached_input: Some(0.3), cache_write: Some(3.75), output: 15.0 };
            let prices = Prices::new(price, vec![], false);
            let mut book = Book::new();
            let bounds = SpendingBounds {
                requests: Some(most_requests),
                tokens: Some(most_tokens),
                usd: Some(f64::from(most_cents) / 100.0),
            };
            book.bind(Book::ROOT, bounds);
            let helpers: Vec<usize> = (0..8).map(|_| book.open(Book::ROOT)).collect();
            book.bind(helpers[0], tokens(most_tokens / 2));
            let inner = book.open(helpers[0]);
            let mut flying: Vec<(Reservation, u64)> = Vec::new();
            for (who, input, share, settles) in acts {
                if settles && !flying.is_empty() {
                    let at = usize::try_from(input).unwrap_or(0) % flying.len();
                    let (reserved, input) = flying.swap_remove(at);
                    let most = reserved.amount.tokens - input;
                    let usage = used(input, most * share / 100);
                    book.settle(reserved, usage, Some(super::super::cost_usd(&usage, &prices)));
                    continue;
                }
                let account = if who == 8 { inner } else { helpers[who] };
                let closing = if share % 2 == 0 { ClosingNeed::AfterReply } else { ClosingNeed::Nothing };
                let claim = Claim { prices: Some(&prices), closing, ..claim(input) };
                if let Ok(reserved) = book.reserve(account, &claim) {
                    flying.push((reserved, input));
                }
                for (at, account) in book.accounts.iter().enumerate() {
                    let mut held = account.spent.amount();
                    held += account.in_flight;
                    prop_assert_eq!(account.bounds.exceeded_by(held), None, "account {}", at);
                }
            }
        }
    }
}
