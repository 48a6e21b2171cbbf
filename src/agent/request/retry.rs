//! Decides when to retry a request or a call: exponential backoff with full jitter above half of the delay. For
//! requests, the wait that the server asks for is the minimum, up to the longest delay.

use std::time::Duration;

use jiff::Zoned;

use crate::base::output::ToolErrorKind;
use crate::config::{RetryConfig, format_duration};
use crate::model::{ModelError, ModelErrorKind};

/// The reaction to a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryReaction {
    /// Another attempt after this delay.
    Again(Duration),
    /// No attempt: the server asks to wait longer than the run may.
    Later(Duration),
    /// No attempt: it would not help, or there were enough.
    Never,
}

/// Decides what follows an error; `next` is the number of the next attempt (2 is the first retry).
///
/// `jitter` is uniform in 0..1; it is a parameter to keep the decision a pure function.
pub fn decide_retry(config: &RetryConfig, error: &ModelError, next: u32, jitter: f64) -> RetryReaction {
    let is_quota = error.kind == ModelErrorKind::Quota;
    let asked = error.retry_after.filter(|_| is_quota || error.is_transient());
    if let Some(wait) = asked.filter(|wait| is_quota || *wait > *config.max_delay) {
        return RetryReaction::Later(wait);
    }
    if !error.is_transient() || next > config.attempts {
        return RetryReaction::Never;
    }
    let doublings = next.saturating_sub(2).min(16);
    let backoff = config.base_delay.saturating_mul(1 << doublings).min(*config.max_delay);
    let jittered = backoff.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
    RetryReaction::Again(jittered.max(asked.unwrap_or_default()))
}

/// The delay before the `next` attempt; `None` if there is none, and the error says when to come back. `left` is the rest
/// of the run's time.
pub fn find_delay(
    config: &RetryConfig,
    error: &mut ModelError,
    next: u32,
    left: Option<Duration>,
) -> Option<Duration> {
    let delay = match decide_retry(config, error, next, fastrand::f64()) {
        RetryReaction::Again(delay) => delay,
        RetryReaction::Never => return None,
        RetryReaction::Later(wait) => {
            let when = format_return_time(&Zoned::now(), wait);
            let most = format_duration(*config.max_delay);
            error.message = match error.kind {
                ModelErrorKind::Quota => format!("{} (come back {when})", error.message),
                _ => format!("{} (come back {when}: retry.max_delay waits up to {most})", error.message),
            };
            return None;
        }
    };
    if left.is_some_and(|left| delay >= left) {
        // Waiting could only end in a time limit that hides the provider's words.
        let delay = format_duration(Duration::from_secs(delay.as_secs()));
        error.message = format!("{} (a retry would wait {delay}, longer than max_time allows)", error.message);
        return None;
    }
    Some(delay)
}

/// Formats the time to come back: `in 2h, at 16:41`, with the date if it is on another day.
pub fn format_return_time(now: &Zoned, wait: Duration) -> String {
    // Rounded up to minutes: a little late is better than early.
    let wait = if wait < Duration::from_mins(2) {
        wait
    } else {
        Duration::from_secs(wait.as_secs().div_ceil(60).saturating_mul(60))
    };
    let within = format_duration(Duration::from_secs(wait.as_secs().max(1)));
    let Ok(then) = now.checked_add(wait) else { return format!("in {within}") };
    let form = if then.date() == now.date() { "%H:%M" } else { "%H:%M on %Y-%m-%d" };
    format!("in {within}, at {}", then.strftime(form))
}

/// The delay before a call is retried, or `None` when a retry cannot help, could repeat an effect, or has no time:
/// `left` is the rest of the call's timeout.
pub fn of_call(
    failure: ToolErrorKind,
    idempotent: bool,
    retries: u32,
    left: Duration,
    jitter: f64,
) -> Option<Duration> {
    const MOST: u32 = 2;
    const FIRST: Duration = Duration::from_millis(200);
    if failure != ToolErrorKind::Transient || !idempotent || retries >= MOST {
        return None;
    }
    let backoff = FIRST.saturating_mul(4_u32.pow(retries));
    Some(backoff.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)).filter(|delay| *delay < left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_made_twice_and_may_succeed_is_made_again() {
        use ToolErrorKind::{Parameter, Permanent, Timeout, Transient};
        let table = [
            (Transient, true, 0, 1000, Some(200)),
            (Transient, true, 1, 1000, Some(800)),
            (Transient, true, 2, 1000, None),
            (Transient, true, 1, 500, None),
            (Transient, false, 0, 1000, None),
            (Permanent, true, 0, 1000, None),
            (Parameter, true, 0, 1000, None),
            (Timeout, true, 0, 1000, None),
        ];
        for (failure, idempotent, retries, left, expected) in table {
            let got = of_call(failure, idempotent, retries, Duration::from_millis(left), 1.0);
            assert_eq!(got, expected.map(Duration::from_millis), "{failure:?} {idempotent} {retries} {left}");
        }
    }

    fn error(kind: ModelErrorKind, retry_after: Option<u64>) -> ModelError {
        let retry_after = retry_after.map(Duration::from_secs);
        ModelError {
            kind,
            status: None,
            message: String::new(),
            model: String::new(),
            retry_after,
            is_lesson: false,
        }
    }

    #[test]
    fn delays_double_up_to_the_limit_and_what_the_server_asks_is_a_floor() {
        use ModelErrorKind::{BadRequest, Quota, RateLimit, Transient};
        let again = |milliseconds| RetryReaction::Again(Duration::from_millis(milliseconds));
        let later = |seconds| RetryReaction::Later(Duration::from_secs(seconds));
        let config = RetryConfig::default();
        let table = [
            (Transient, None, 2, 1.0, again(1000)),
            (Transient, None, 2, 0.0, again(500)),
            (Transient, None, 4, 1.0, again(4000)),
            (Transient, None, 5, 1.0, again(8000)),
            (Transient, None, 6, 1.0, RetryReaction::Never),
            (RateLimit, Some(20), 2, 1.0, again(20_000)),
            (RateLimit, Some(60), 3, 0.3, again(60_000)),
            (RateLimit, Some(61), 2, 0.3, later(61)),
            (RateLimit, Some(20), 6, 1.0, RetryReaction::Never),
            (Transient, Some(200), 2, 0.3, later(200)),
            (Quota, Some(20), 2, 1.0, later(20)),
            (Quota, None, 2, 1.0, RetryReaction::Never),
            (BadRequest, None, 2, 1.0, RetryReaction::Never),
            (BadRequest, Some(200), 2, 1.0, RetryReaction::Never),
        ];
        for (kind, wait, next, jitter, expected) in table {
            assert_eq!(
                decide_retry(&config, &error(kind, wait), next, jitter),
                expected,
                "{kind:?} {wait:?} {next} {jitter}"
            );
        }
    }

    #[test]
    fn when_to_come_back_is_a_span_and_a_time_of_the_clock() {
        let now: Zoned = "2026-11-22T22:10:30+01:00[+01:00]".parse().expect("a time");
        for (seconds, expected) in [
            (0, "in 1s, at 22:10"),
            (90, "in 1m 30s, at 22:12"),
            (3590, "in 1h, at 23:10"),
            (7200, "in 2h, at 00:10 on 2026-11-23"),
            (41_230, "in 11h 28m, at 09:38 on 2026-11-23"),
            (u64::MAX, "in "),
        ] {
            let text = format_return_time(&now, Duration::from_secs(seconds));
            assert!(text == expected || seconds == u64::MAX && text.starts_with(expected), "{seconds}: {text}");
        }
    }
}
