//! When to retry a request or a call, and after what delay: exponential backoff with full jitter above half of the
//! delay; for requests, `Retry-After` is the minimum.

use std::time::Duration;

use crate::config::RetryConfig;
use crate::contract::ModelError;
use crate::output::ToolErrorKind;

/// The delay before attempt `next` (2 is the first retry), or `None` when the error is final.
///
/// `jitter` is uniform in 0..1; it is a parameter so that the decision stays a function.
#[must_use]
pub fn delay(config: &RetryConfig, error: &ModelError, next: u32, jitter: f64) -> Option<Duration> {
    if !error.is_transient() || next > config.attempts {
        return None;
    }
    let doublings = next.saturating_sub(2).min(16);
    let backoff = config.base_delay.saturating_mul(1 << doublings).min(config.max_delay);
    let jittered = backoff.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
    Some(jittered.max(error.retry_after.unwrap_or_default()))
}

/// The delay before a call is retried, or `None` when a retry cannot help, could repeat an effect, or has no time:
/// `left` is the rest of the call's timeout.
#[must_use]
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
    use crate::contract::ModelErrorKind;

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
        ModelError { kind, status: None, message: String::new(), model: String::new(), retry_after }
    }

    #[test]
    fn delays_double_up_to_the_limit_and_retry_after_is_a_floor() {
        use ModelErrorKind::{BadRequest, RateLimit, Transient};
        let config = RetryConfig::default();
        let table = [
            (Transient, None, 2, 1.0, Some(1000)),
            (Transient, None, 2, 0.0, Some(500)),
            (Transient, None, 4, 1.0, Some(4000)),
            (Transient, None, 5, 1.0, Some(8000)),
            (Transient, None, 6, 1.0, None),
            (RateLimit, Some(20), 2, 1.0, Some(20_000)),
            (RateLimit, Some(200), 3, 0.3, Some(200_000)),
            (BadRequest, None, 2, 1.0, None),
        ];
        for (kind, after, next, jitter, expected) in table {
            let got = delay(&config, &error(kind, after), next, jitter);
            assert_eq!(got, expected.map(Duration::from_millis), "{kind:?} {after:?} {next} {jitter}");
        }
    }
}
