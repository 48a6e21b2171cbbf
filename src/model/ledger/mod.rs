//! The ledger of a run: what it and all its helpers may spend, have reserved and have spent.
//!
//! Before a request is sent, the most that it can take is reserved; when it ends, what it took is entered. Whoever
//! reserves, reserves at every caller above as well, so helpers together never get more than their caller has left.
//! The arithmetic is pure (`book`, `claim`); this handle adds the lock, and the wait for requests in flight.

mod amount;
mod book;
mod claim;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::conversation::message::Usage;

pub use amount::{SpendingBounds, SpendingLimit, SpendingRefusal, Spent};
use book::Book;
pub use book::Reservation;
pub use claim::{Claim, ClosingNeed, LEAST_OUTPUT, cost_usd};

/// The account of one conversation in the ledger of its run. Clones share it; it closes with the last of them.
#[derive(Debug, Clone)]
pub struct RunLedger(Arc<AccountHandle>);

#[derive(Debug)]
struct AccountHandle {
    shared: Arc<SharedBook>,
    account: usize,
    opened: Instant,
}

#[derive(Debug)]
struct SharedBook {
    book: Mutex<Book>,
    /// Tells those who wait for requests in flight that one has ended.
    settled: Notify,
}

impl Default for RunLedger {
    fn default() -> Self {
        let shared = SharedBook { book: Mutex::new(Book::new()), settled: Notify::new() };
        Self::with_account(Arc::new(shared), Book::ROOT)
    }
}

impl RunLedger {
    fn with_account(shared: Arc<SharedBook>, account: usize) -> Self {
        Self(Arc::new(AccountHandle { shared, account, opened: Instant::now() }))
    }

    /// Opens an account for a helper, or for a call that asks models itself. It spends from this one.
    pub fn open_below(&self) -> Self {
        let account = self.0.book().open(self.0.account);
        Self::with_account(Arc::clone(&self.0.shared), account)
    }

    /// Sets what this account, with all below it, may spend.
    pub fn bind(&self, bounds: SpendingBounds) {
        self.0.book().bind(self.0.account, bounds);
    }

    /// Reserves the most that a request can take. Waits while only requests in flight stand in its way.
    ///
    /// # Errors
    /// It does not fit, and would not if every request in flight took nothing.
    pub async fn reserve(&self, claim: &Claim<'_>) -> Result<Reservation, SpendingRefusal> {
        loop {
            let settled = self.0.shared.settled.notified();
            tokio::pin!(settled);
            // From here on no ending is missed.
            settled.as_mut().enable();
            let refusal = match self.0.book().reserve(self.0.account, claim) {
                Ok(reservation) => return Ok(reservation),
                Err(refusal) => refusal,
            };
            if !refusal.may_fit_later {
                return Err(refusal);
            }
            settled.await;
        }
    }

    /// Enters what a request took, in place of what was reserved for it. `usd` is `None` if the cost is unknown.
    pub fn settle(&self, reservation: Reservation, usage: Usage, usd: Option<f64>) {
        self.0.book().settle(reservation, usage, usd);
        self.0.shared.settled.notify_waiters();
    }

    /// Gives back what was reserved for a request that was not sent.
    pub fn withdraw(&self, reservation: Reservation) {
        self.0.book().withdraw(reservation);
        self.0.shared.settled.notify_waiters();
    }

    /// Counts a step of this conversation.
    pub fn count_step(&self) {
        self.0.book().count(self.0.account, 1, 0);
    }

    /// Counts a turn of this conversation.
    pub fn count_turn(&self) {
        self.0.book().count(self.0.account, 0, 1);
    }

    /// What this account and all below it have spent.
    pub fn spent(&self) -> Spent {
        self.0.book().spent(self.0.account)
    }

    /// The steps of this conversation alone.
    pub fn own_steps(&self) -> u64 {
        self.0.book().own_steps(self.0.account)
    }

    /// The limit of this account or of a caller that is used up, if any.
    pub fn find_exhausted(&self) -> Option<SpendingRefusal> {
        self.0.book().find_exhausted(self.0.account)
    }

    /// The limit of this account or of a caller that left no room for an earlier request, if any.
    pub fn find_refused(&self) -> Option<SpendingRefusal> {
        self.0.book().find_refused(self.0.account)
    }

    /// What was spent under a limit of this account or of a caller.
    pub fn spent_under(&self, limit: SpendingLimit) -> Spent {
        self.0.book().spent_under(self.0.account, limit)
    }

    /// True if tokens or cost are limited here or above, so that sizes matter.
    pub fn limits_sizes(&self) -> bool {
        self.0.book().bounds_above(self.0.account).any(|bounds| bounds.tokens.is_some() || bounds.usd.is_some())
    }

    /// True if the cost is limited here or above.
    pub fn limits_cost(&self) -> bool {
        self.0.book().bounds_above(self.0.account).any(|bounds| bounds.usd.is_some())
    }

    /// The time since the account was opened.
    pub fn elapsed(&self) -> Duration {
        self.0.opened.elapsed()
    }
}

impl AccountHandle {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.shared.book.lock().expect("arithmetic never panics")
    }
}

impl Drop for AccountHandle {
    fn drop(&mut self) {
        self.book().close(self.account);
        self.shared.settled.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_only_lacks_what_is_in_flight_waits_for_it() {
        let run = RunLedger::default();
        run.bind(SpendingBounds { tokens: Some(10_000), ..SpendingBounds::default() });
        let claim = Claim { input_tokens: 3000, largest_output: 5000, least_output: 1024, ..Claim::default() };
        let (first, second) = (run.open_below(), run.open_below());
        let held =
            first.reserve(&Claim { input_tokens: 9000, least_output: 1000, ..claim }).await.expect("it fits");
        let waiting = second.reserve(&claim);
        tokio::pin!(waiting);
        let pending = futures_util::poll!(waiting.as_mut());
        assert!(pending.is_pending(), "{pending:?}");
        first.settle(held, Usage { input_tokens: 2000, ..Usage::default() }, None);
        // It would have a right to half of the rest.
        drop(first);
        let reserved = waiting.await.expect("it fits now");
        assert_eq!(reserved.output_cap(), None, "5,000 of 8,000 tokens are left for the reply");
    }
}
