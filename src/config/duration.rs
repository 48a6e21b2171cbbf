//! Durations as people write them: `20ms`, `1s`, `30m`, `1h 30m`; a bare number is seconds.

use std::ops::Deref;
use std::time::Duration;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

/// # Errors
/// It is not a duration; the error is a sentence that says what was expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration: write it like 20ms, 1s, 30m, 1h 30m or 90d");
    // Days of the calendar differ; these have 24 hours.
    if let Some(Ok(days)) = text.trim().strip_suffix('d').map(str::parse::<u32>) {
        return Ok(Duration::from_hours(24) * days);
    }
    if let Ok(seconds) = text.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| wrong());
    }
    let signed: SignedDuration = text.trim().parse().map_err(|_| wrong())?;
    Duration::try_from(signed).map_err(|_| wrong())
}

/// An age: a duration with its unit, as a bare number could be meant as days.
///
/// # Errors
/// It is not one; the error is a sentence that says what was expected.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    if text.trim().parse::<f64>().is_ok() {
        return Err(format!("`{text}` needs a unit: {0}d is {0} days, {0}h is {0} hours", text.trim()));
    }
    parse_duration(text)
}

/// The shortest text that reads back as the same duration.
pub fn format_duration(duration: Duration) -> String {
    SignedDuration::try_from(duration).map_or_else(|_| format!("{}s", duration.as_secs()), |d| format!("{d:#}"))
}

/// A duration of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(inline)]
#[schemars(extend("type" = ["string", "number"], "x-duration" = true, "examples" = ["20ms", "30s", "1h 30m"]))]
pub struct WrittenDuration(#[schemars(with = "String")] pub Duration);

impl WrittenDuration {
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl Deref for WrittenDuration {
    type Target = Duration;

    fn deref(&self) -> &Duration {
        &self.0
    }
}

impl From<WrittenDuration> for Duration {
    fn from(written: WrittenDuration) -> Self {
        written.0
    }
}

impl Serialize for WrittenDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_duration(self.0))
    }
}

impl<'de> Deserialize<'de> for WrittenDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            Value::Number(seconds) => seconds.to_string(),
            other => return Err(de::Error::custom(format!("{other} is not a duration: write it like 20ms"))),
        };
        parse_duration(&text).map(Self).map_err(de::Error::custom)
    }
}
