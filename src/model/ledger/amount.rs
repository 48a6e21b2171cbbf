//! Sums of a ledger: what may be spent, what was, and why something more may not.

use std::fmt;
use std::ops::{AddAssign, SubAssign};

use crate::conversation::message::{Cost, Usage};

/// What requests take.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Amount {
    pub requests: u64,
    /// Input and output in sum.
    pub tokens: u64,
    pub usd: f64,
}

/// The most that an account may spend; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpendingBounds {
    pub requests: Option<u64>,
    pub tokens: Option<u64>,
    pub usd: Option<f64>,
}

/// What an account and all below it have spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    pub turns: u64,
    pub steps: u64,
    /// Requests that were sent, whatever became of them.
    pub requests: u64,
    pub usage: Usage,
    pub cost: Cost,
}

/// A limit on what is spent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SpendingLimit {
    Requests(u64),
    Tokens(u64),
    /// USD.
    Cost(f64),
}

/// The reason that a request may not be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpendingRefusal {
    pub limit: SpendingLimit,
    /// What was spent under this limit so far.
    pub spent: Spent,
    /// True if only requests in flight stand in its way.
    pub may_fit_later: bool,
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.usd += other.usd;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Self) {
        self.requests = self.requests.saturating_sub(other.requests);
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.usd = (self.usd - other.usd).max(0.0);
        if self.requests == 0 && self.tokens == 0 {
            // Nothing is held; what is left is rounding.
            self.usd = 0.0;
        }
    }
}

impl SpendingBounds {
    /// The first limit that this amount exceeds.
    pub fn exceeded_by(&self, amount: Amount) -> Option<SpendingLimit> {
        let requests = self.requests.filter(|most| amount.requests > *most).map(SpendingLimit::Requests);
        let tokens = || self.tokens.filter(|most| amount.tokens > *most).map(SpendingLimit::Tokens);
        // Sums of prices are rounded.
        let cost = || self.usd.filter(|most| amount.usd > most * (1.0 + 1e-9)).map(SpendingLimit::Cost);
        requests.or_else(tokens).or_else(cost)
    }

    /// True if this is one of them.
    pub fn has(&self, limit: SpendingLimit) -> bool {
        match limit {
            SpendingLimit::Requests(most) => self.requests == Some(most),
            SpendingLimit::Tokens(most) => self.tokens == Some(most),
            SpendingLimit::Cost(most) => self.usd == Some(most),
        }
    }

    /// The first limit that this amount reaches.
    pub fn reached_by(&self, amount: Amount) -> Option<SpendingLimit> {
        let requests = self.requests.filter(|most| amount.requests >= *most).map(SpendingLimit::Requests);
        let tokens = || self.tokens.filter(|most| amount.tokens >= *most).map(SpendingLimit::Tokens);
        let cost = || self.usd.filter(|most| amount.usd >= *most).map(SpendingLimit::Cost);
        requests.or_else(tokens).or_else(cost)
    }
}

impl Spent {
    /// As far as limits know it: an unknown cost is none.
    pub fn amount(&self) -> Amount {
        Amount { requests: self.requests, tokens: self.usage.total(), usd: self.cost.known_usd() }
    }
}

impl fmt::Display for Spent {
    /// `12 requests, 45021 tokens and $0.0312`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = if self.requests == 1 { "request" } else { "requests" };
        let (count, tokens) = (self.requests, self.usage.total());
        match self.cost.usd() {
            Some(usd) => write!(f, "{count} {requests}, {tokens} tokens and ${usd:.4}"),
            None => write!(f, "{count} {requests} and {tokens} tokens"),
        }
    }
}

impl fmt::Display for SpendingRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, spent, .. } = self;
        match limit {
            SpendingLimit::Requests(most) => {
                write!(f, "the limit of {most} requests in a run (max_requests) was reached")?;
            }
            SpendingLimit::Tokens(most) => {
                write!(f, "the limit of {most} tokens (max_tokens) leaves no room for another request")?;
            }
            SpendingLimit::Cost(most) => {
                write!(f, "the limit of ${most:.4} (max_cost) leaves no room for another request")?;
            }
        }
        write!(f, "; {spent} were spent in all")
    }
}
