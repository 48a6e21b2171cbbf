//! What a server still takes within its limits, as the headers of an answer say: those of OpenAI, which most servers write,
//! and those of Anthropic.

use std::time::Duration;

use jiff::Timestamp;

/// What is left of the limits of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    pub requests: Option<AllowanceLeft>,
    /// Of input, where the server tells input and output apart.
    pub tokens: Option<AllowanceLeft>,
}

/// What is left of one limit, and when all of it is there again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowanceLeft {
    pub left: u64,
    pub renewed_in: Duration,
}

/// The header of what is left, and that of the time of renewal.
type HeaderPair = [&'static str; 2];

const REQUESTS: &[HeaderPair] = &[
    ["x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
    ["anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"],
];
const TOKENS: &[HeaderPair] = &[
    ["x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
    ["anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"],
    ["anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"],
];

impl Allowance {
    /// Reads the headers of an answer; `None` if they say nothing.
    pub(super) fn read<'h>(header: impl Fn(&str) -> Option<&'h str>, now: Timestamp) -> Option<Self> {
        let find = |pairs: &[HeaderPair]| {
            pairs.iter().find_map(|[left, renewed]| {
                let left = header(left)?.trim().parse().ok()?;
                Some(AllowanceLeft { left, renewed_in: read_renewal(header(renewed)?.trim(), now)? })
            })
        };
        let found = Self { requests: find(REQUESTS), tokens: find(TOKENS) };
        (found != Self::default()).then_some(found)
    }
}

/// A span of time (`6m0s`, `20ms`), seconds, or a date.
fn read_renewal(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = value.parse::<f64>() {
        return read_seconds(seconds);
    }
    let date = || value.parse::<Timestamp>().ok();
    date()
        .map(|date| Duration::try_from(date.duration_since(now)).unwrap_or_default())
        .or_else(|| parse_span(value))
}

/// A span of time at the beginning of a text: `1.2s`, `20ms`, `6m0s`, `1h 2m`, `12 seconds`, `2 days`.
pub(super) fn parse_span(text: &str) -> Option<Duration> {
    /// The names of units, and their seconds.
    const UNITS: [(&str, f64); 5] = [
        ("ms milliseconds", 0.001),
        ("s sec second seconds", 1.0),
        ("m min minute minutes", 60.0),
        ("h hour hours", 3600.0),
        ("day days", 86_400.0),
    ];
    let (mut rest, mut seconds, mut found) = (text.trim_start(), 0.0, false);
    loop {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(amount) = rest[..number].trim_end_matches('.').parse::<f64>() else { break };
        let after = rest[number..].trim_start();
        let unit = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let is_named = |names: &str| names.split(' ').any(|name| name == &after[..unit]);
        let Some((_, scale)) = UNITS.iter().find(|(names, _)| is_named(names)) else { break };
        seconds += amount * scale;
        found = true;
        rest = after[unit..].trim_start();
    }
    read_seconds(seconds).filter(|_| found)
}

/// The longest wait, a hundred years: a number or a date beyond every range means as much.
pub(super) const LONGEST_WAIT: Duration = Duration::from_hours(24 * 36_525);

/// A number of seconds as a wait; `None` if it is negative or no number.
pub(super) fn read_seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds.min(LONGEST_WAIT.as_secs_f64())).ok().filter(|_| !seconds.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_of_each_family_are_read() {
        let now: Timestamp = "2026-11-28T00:00:00Z".parse().expect("a time");
        let left = |left, millis| Some(AllowanceLeft { left, renewed_in: Duration::from_millis(millis) });
        let openai = [
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "1m0.5s"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6ms"),
        ];
        let anthropic = [
            ("anthropic-ratelimit-requests-remaining", "0"),
            ("anthropic-ratelimit-requests-reset", "2026-11-28T00:00:30Z"),
            ("anthropic-ratelimit-tokens-remaining", "17"),
            ("anthropic-ratelimit-tokens-reset", "2026-11-27T23:59:00Z"),
        ];
        let seconds = [("x-ratelimit-remaining-requests", "3"), ("x-ratelimit-reset-requests", "12.5")];
        let broken = [("x-ratelimit-remaining-requests", "many"), ("x-ratelimit-reset-requests", "soon")];
        for (headers, expected) in [
            (&openai[..], Some(Allowance { requests: left(59, 60_500), tokens: left(149_984, 6) })),
            (&anthropic, Some(Allowance { requests: left(0, 30_000), tokens: left(17, 0) })),
            (&seconds, Some(Allowance { requests: left(3, 12_500), tokens: None })),
            (&broken, None),
            (&[], None),
        ] {
            let header = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            assert_eq!(Allowance::read(header, now), expected, "{headers:?}");
        }
    }
}
