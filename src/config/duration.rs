//! Durations as people write them: `20ms`, `1s`, `30m`, `1h 30m`; a bare number is seconds.

use std::time::Duration;

use jiff::SignedDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
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

/// The shortest text that reads back as the same duration.
pub fn format_duration(duration: Duration) -> String {
    SignedDuration::try_from(duration).map_or_else(|_| format!("{}s", duration.as_secs()), |d| format!("{d:#}"))
}

/// The schema of a duration.
pub(super) struct DurationText;

impl JsonSchema for DurationText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number"], "x-duration": true, "examples": ["20ms", "30s", "1h 30m"] })
    }
}

pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_duration(*duration))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    read_duration(Value::deserialize(deserializer)?)
}

fn read_duration<E: de::Error>(value: Value) -> Result<Duration, E> {
    match value {
        Value::String(text) => parse_duration(&text).map_err(de::Error::custom),
        Value::Number(seconds) => parse_duration(&seconds.to_string()).map_err(de::Error::custom),
        other => Err(de::Error::custom(format!("{other} is not a duration: write it like 20ms, 1s or 30m"))),
    }
}

/// Reads and writes a field that may be `null`.
pub(super) mod optional {
    use super::{
        Deserialize, Deserializer, Duration, Serialize, Serializer, Value, format_duration, read_duration,
    };

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        duration.map(format_duration).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Option::<Value>::deserialize(deserializer)?.map(read_duration).transpose()
    }
}
