//! What is known of a running server: its tools, why it is not up, and when there may be another try.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tokio::time::Duration;

use crate::skills::ServedSkill;

use super::McpConnection;

/// The wait before one that changed is asked, or one that failed is started, again: doubled with each failure up to the longest.
pub(super) const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// What is known of the running server.
#[derive(Default)]
pub(super) struct LiveServer {
    pub begun: bool,
    /// Its tools, those of the file alone.
    pub tools: Option<Vec<Arc<Value>>>,
    pub skills: Vec<ServedSkill>,
    /// Its revision and name, once it is up.
    pub description: String,
    /// Which of its tools cannot be offered, and why, until a person is told.
    pub wrong: Option<String>,
    /// Why it is not up.
    pub failure: Option<String>,
    /// True if a person was told of that.
    is_told: bool,
}

impl LiveServer {
    /// Its state in a few words.
    pub fn describe_state(&self) -> String {
        match (&self.failure, self.tools.is_some(), self.begun) {
            (Some(why), ..) => why.clone(),
            (None, true, _) => format!("up ({})", self.description),
            (None, false, true) => "starting".to_owned(),
            (None, false, false) => "not started".to_owned(),
        }
    }

    /// Why it is not up, or which of its tools cannot be offered, once.
    pub fn take_failure(&mut self) -> Option<String> {
        let Some(why) = self.failure.clone().filter(|_| !self.is_told) else { return self.wrong.take() };
        self.is_told = true;
        Some(format!("{why}; it is tried again"))
    }

    /// Notes that it is up.
    pub fn note_success(&mut self) {
        (self.failure, self.is_told) = (None, false);
    }
}

/// The connection, or when there may be another try.
#[derive(Default)]
pub(super) struct ServerLink {
    pub open: Option<Arc<McpConnection>>,
    failures: u32,
    not_before: Option<Instant>,
}

impl ServerLink {
    /// The time until there may be another try.
    pub fn find_wait(&self) -> Duration {
        self.not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()))
    }

    /// Notes that there was no connection to be had.
    pub fn note_failure(&mut self) {
        let wait = FIRST_WAIT.saturating_mul(1 << self.failures.min(6)).min(LONGEST_WAIT);
        self.failures += 1;
        self.not_before = Some(Instant::now() + wait);
    }
}
