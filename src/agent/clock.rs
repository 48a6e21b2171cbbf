//! The clock of a turn: wall time minus the time spent waiting for a person, and the deadlines derived from it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

/// A clock that can be paused. Clones are the same clock.
#[derive(Debug, Clone)]
pub struct PausableClock {
    started: Instant,
    waiting: Arc<Mutex<ClockPause>>,
}

#[derive(Debug, Default)]
struct ClockPause {
    total: Duration,
    since: Option<Instant>,
    /// The number of calls that wait for a person.
    waiters: usize,
}

/// Pauses the clock while it lives.
pub struct Pause(PausableClock);

impl PausableClock {
    pub fn start() -> Self {
        Self { started: Instant::now(), waiting: Arc::default() }
    }

    /// The time counted so far.
    pub fn elapsed(&self) -> Duration {
        let waiting = self.lock_state();
        let now = waiting.since.unwrap_or_else(Instant::now);
        now.duration_since(self.started).saturating_sub(waiting.total)
    }

    /// Stops counting until the pause is dropped.
    pub fn pause(&self) -> Pause {
        self.stop();
        Pause(self.clone())
    }

    /// Stops counting until [`PausableClock::go_on`].
    pub fn stop(&self) {
        let mut waiting = self.lock_state();
        waiting.waiters += 1;
        waiting.since.get_or_insert_with(Instant::now);
    }

    /// Resumes counting once no call waits any more.
    pub fn go_on(&self) {
        let mut waiting = self.lock_state();
        waiting.waiters = waiting.waiters.saturating_sub(1);
        if waiting.waiters == 0
            && let Some(since) = waiting.since.take()
        {
            waiting.total += since.elapsed();
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, ClockPause> {
        self.waiting.lock().expect("no holder of the clock panics")
    }

    /// Waits until `limit` has passed on this clock; forever without a limit.
    pub async fn reach(&self, limit: Option<Duration>) {
        let Some(limit) = limit else { return std::future::pending().await };
        loop {
            let left = limit.saturating_sub(self.elapsed());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.go_on();
    }
}

/// The time after which work stops to leave room for the closing answer: the last tenth of `max_time`, at most 30 s,
/// is reserved for it.
pub fn working_time(max_time: Duration) -> Duration {
    const MOST_FOR_CLOSING: Duration = Duration::from_secs(30);
    max_time.saturating_sub((max_time / 10).min(MOST_FOR_CLOSING))
}

/// The time after which running calls are ended: shortly before work stops, so their output can be reported.
pub fn calling_time(max_time: Duration) -> Duration {
    const MOST_FOR_ENDING: Duration = Duration::from_secs(3);
    let working = working_time(max_time);
    working.saturating_sub((working / 5).min(MOST_FOR_ENDING))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_end_before_work_does() {
        assert_eq!(calling_time(Duration::from_secs(100)), Duration::from_secs(87));
        assert_eq!(calling_time(Duration::from_secs(1)), Duration::from_millis(720));
    }

    #[test]
    fn the_closing_answer_gets_a_tenth_but_no_more_than_thirty_seconds() {
        assert_eq!(working_time(Duration::from_secs(100)), Duration::from_secs(90));
        assert_eq!(working_time(Duration::from_mins(30)), Duration::from_secs(30 * 60 - 30));
    }
}
