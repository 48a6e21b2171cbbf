//! Reads when a server wants to be asked again: from its headers, from fields of its error, and from its words.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde_json::Value;

use super::super::allowance::{LONGEST_WAIT, parse_span, read_seconds};

/// The advice in the headers of a response about another attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::model) struct Hints {
    /// The time to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date.
    pub wait: Option<Duration>,
    /// True if the server says that another attempt is useless: `x-should-retry: false`.
    pub is_final: bool,
}

impl Hints {
    /// Reads the headers.
    pub fn read(header: &dyn Fn(&str) -> Option<String>, now: Timestamp) -> Self {
        let milliseconds = header("retry-after-ms").and_then(|value| value.trim().parse::<f64>().ok());
        let fine = milliseconds.and_then(|value| read_seconds(value / 1000.0));
        let wait = fine.or_else(|| retry_after(header("retry-after")?.trim(), now));
        let is_final = header("x-should-retry").is_some_and(|value| value.trim().eq_ignore_ascii_case("false"));
        Self { wait, is_final }
    }
}

/// Seconds, or a date in one of the three forms of HTTP (RFC 9110, 5.6.7). A date in the past asks for no wait.
fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = value.parse::<f64>() {
        return read_seconds(seconds);
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_zoned(value).map(|date| date.timestamp());
    let date = date.ok().or_else(|| {
        let forms = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S GMT"];
        let date = forms.iter().find_map(|form| DateTime::strptime(form, value).ok())?;
        // The last hours of the calendar, which some write for never, are beyond those of the clock.
        Some(date.to_zoned(jiff::tz::TimeZone::UTC).map_or(Timestamp::MAX, |date| date.timestamp()))
    })?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO).min(LONGEST_WAIT))
}

/// The time to wait that an error states in a field: OpenRouter in seconds, Google as `34.5s`.
pub(super) fn find_stated(error: &Value) -> Option<Duration> {
    let seconds = |value: &Value| read_seconds(value.as_f64()?);
    let by_field = || seconds(error.get("metadata")?.get("retry_after_seconds")?);
    let by_detail = || {
        let details = error.get("details")?.as_array()?;
        details.iter().find_map(|detail| parse_span(detail.get("retryDelay")?.as_str()?))
    };
    by_field().or_else(by_detail)
}

/// The time to wait that a sentence states: `try again in 6m0s`, `wait 41230 seconds`.
pub(super) fn in_words(message: &str) -> Option<Duration> {
    const BEFORE: [&str; 6] =
        ["try again in ", "retry in ", "retry after ", "try again after ", "please wait ", "reset in "];
    let text = message.to_ascii_lowercase();
    BEFORE.iter().find_map(|words| parse_span(&text[text.find(words)? + words.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds.
    const CENTURY: u64 = 36_525 * 86_400_000;

    #[test]
    fn headers() {
        let now: Timestamp = "2015-10-21T07:28:00Z".parse().expect("a time");
        for (name, value, wait) in [
            ("retry-after", "3", Some(3000)),
            ("retry-after", " 0.5 ", Some(500)),
            ("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT", Some(30_000)),
            ("retry-after", "Wednesday, 21-Oct-15 07:28:30 GMT", Some(30_000)),
            ("retry-after", "Wed Oct 21 07:28:30 2015", Some(30_000)),
            ("retry-after", "Sun Nov  1 07:28:00 2015", Some(11 * 86_400_000)),
            ("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT", Some(0)),
            ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT", Some(CENTURY)),
            ("retry-after", "Thu, 30 Dec 9999 12:00:00 GMT", Some(CENTURY)),
            ("retry-after", "99999999999999999999", Some(CENTURY)),
            ("retry-after", "18446744073709551615", Some(CENTURY)),
            ("retry-after", "inf", Some(CENTURY)),
            ("retry-after", "nan", None),
            ("retry-after", "-inf", None),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after-ms", "250", Some(250)),
        ] {
            let header = |asked: &str| (asked == name).then(|| value.to_owned());
            let expected = Hints { wait: wait.map(Duration::from_millis), is_final: false };
            assert_eq!(Hints::read(&header, now), expected, "{value}");
        }
        for (value, is_final) in [("false", true), ("False ", true), ("true", false)] {
            let header = |asked: &str| (asked == "x-should-retry").then(|| value.to_owned());
            assert_eq!(Hints::read(&header, now), Hints { wait: None, is_final }, "{value}");
        }
    }

    #[test]
    fn words() {
        for (message, wait) in [
            ("Rate limit reached. Please try again in 1.2s. Visit", Some(1200)),
            ("Please try again in 20ms.", Some(20)),
            ("try again in 6m0s", Some(360_000)),
            ("Try again in 1h2m3.5s", Some(3_723_500)),
            ("Please retry in 34.5s.", Some(34_500)),
            ("exceeded for UserByModelByDay. Please wait 41230 seconds before retrying.", Some(41_230_000)),
            ("retry after 2 minutes", Some(120_000)),
            ("retry after 99999999999999999999 seconds", Some(CENTURY)),
            ("please try again in a moment", None),
            ("try again in 5 parsecs", None),
            ("slow down", None),
        ] {
            assert_eq!(in_words(message), wait.map(Duration::from_millis), "{message}");
        }
    }
}
