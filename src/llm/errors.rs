//! What a server says when it does not answer: its own words found in whatever shape they come, and the kind of
//! failure decided by status, by code and, where servers share neither, by wording.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::contract::ModelErrorKind;
use crate::text;

/// The most characters of a provider's words that are kept.
const LONGEST: usize = 600;

/// What a server said of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Its own words, on one line; empty when it said nothing.
    pub message: String,
    /// `code`, `type` and `status` in one, as far as they are words.
    pub code: String,
    /// A `code` that is an HTTP status.
    pub status: Option<u16>,
}

impl Said {
    /// Finds the words in the body of an error, whatever its shape.
    pub fn read(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => Self::from_value(&value).unwrap_or_else(|| Self::plain(body)),
            Err(_) if looks_like_html(body) => Self::plain(&page_title(body)),
            Err(_) => Self::plain(body),
        }
    }

    /// The error in a body or event that could as well be a reply; `None` when it is none.
    pub fn in_reply(body: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(body).ok()?;
        let object = value.as_array().and_then(|list| list.first()).unwrap_or(&value);
        let is_error = object.get("error").is_some_and(|error| !error.is_null())
            || object.get("object").and_then(Value::as_str) == Some("error")
            || object.get("type").and_then(Value::as_str) == Some("error")
            || ["detail", "message", "errors", "error_msg"].iter().any(|key| object.get(key).is_some());
        is_error.then(|| Self::from_value(&value)).flatten()
    }

    fn from_value(value: &Value) -> Option<Self> {
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        // The error itself, and what stands around it (vLLM and others put the code beside the message).
        let inner =
            ["error", "errors", "detail"].iter().find_map(|key| value.get(key)).filter(|inner| !inner.is_null());
        let inner = inner.map(|inner| inner.as_array().and_then(|list| list.first()).unwrap_or(inner));
        let levels: Vec<&Value> = inner.into_iter().chain([value]).collect();
        let mut said = Self { message: levels.iter().find_map(|level| words(level))?, ..Self::default() };
        for (level, key) in levels.iter().flat_map(|level| ["code", "type", "status"].map(|key| (level, key))) {
            match level.get(key) {
                Some(Value::Number(number)) => said.status = said.status.or_else(|| http_status(number.as_u64()?)),
                Some(Value::String(word)) => {
                    if let Ok(number) = word.parse() {
                        said.status = said.status.or_else(|| http_status(number));
                    } else {
                        said.code.push_str(word);
                        said.code.push(' ');
                    }
                }
                _ => {}
            }
        }
        // A router's own words say nothing; what it was told stands deeper.
        if let Some(raw) = levels.iter().find_map(|level| level.get("metadata")?.get("raw")?.as_str()) {
            let upstream = Self::read(raw).message;
            said.message = format!("{}: {upstream}", said.message);
        }
        said.message = text::one_line(&said.message, LONGEST);
        said.code.truncate(said.code.trim_end().len());
        Some(said)
    }

    fn plain(body: &str) -> Self {
        Self { message: text::one_line(body, LONGEST), ..Self::default() }
    }
}

/// Words without anything secret that a server repeated.
pub(super) fn redact(mut words: String, secrets: &[String]) -> String {
    for secret in secrets {
        if words.contains(secret.as_str()) {
            words = words.replace(secret.as_str(), "***");
        }
    }
    words
}

/// The kind of a failure. `status` is that of the HTTP response, or `None` where it was good and the error came later.
pub(super) fn classify(status: Option<u16>, said: &Said) -> ModelErrorKind {
    let status = status.filter(|status| !(200..300).contains(status)).or(said.status);
    let words = format!("{} {}", said.code, said.message).to_ascii_lowercase();
    let says = |marks: &[&str]| marks.iter().any(|mark| words.contains(mark));
    match status {
        Some(401 | 403) => return ModelErrorKind::Authentication,
        Some(402) => return ModelErrorKind::Quota,
        _ => {}
    }
    let by_words = [
        (QUOTA, ModelErrorKind::Quota),
        (CONTEXT, ModelErrorKind::ContextTooLong),
        (AUTHENTICATION, ModelErrorKind::Authentication),
    ];
    if let Some((_, kind)) = by_words.into_iter().find(|(marks, _)| says(marks)) {
        return kind;
    }
    match status {
        Some(429) => ModelErrorKind::RateLimit,
        Some(408 | 409 | 425 | 500..) => ModelErrorKind::Transient,
        Some(_) => ModelErrorKind::BadRequest,
        None if says(RATE) => ModelErrorKind::RateLimit,
        None if says(REQUEST) => ModelErrorKind::BadRequest,
        None => ModelErrorKind::Transient,
    }
}

const QUOTA: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit",
    "billing_not_active",
    "insufficient balance",
    "insufficient credits",
    "credit balance is too low",
    "arrearage",
];

/// How servers say that a request holds more than the model can: codes first, then words.
const CONTEXT: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "contextwindowexceeded",
    "context_window_exceeded",
    "model_context_window_exceeded",
    // OpenAI, DeepSeek, vLLM, OpenRouter, Mistral
    "maximum context length",
    "exceeds the context window",
    // vLLM
    "maximum model length",
    "longer than the model's context",
    // llama.cpp
    "exceeds the available context size",
    "context size has been exceeded",
    // LiteLLM
    "context window exceeded",
    "context window exceeds",
    "exceeds context window",
    // Ollama
    "exceeds the context length",
    "exceeded max context length",
    "exceeds maximum context",
    // LM Studio
    "context the overflows",
    "greater than the context length",
    "context overflow",
    // Qwen
    "range of input length should be",
    "range of prompt length should be",
    "input length should be",
    // Gemini
    "exceeds the maximum number of tokens allowed",
    "input context is too long",
    // Anthropic and what speaks like it
    "prompt is too long",
    "prompt too long",
    "exceed context limit",
    "input is too long",
    // xAI, GLM, Kimi, Groq
    "maximum prompt length",
    "prompt exceeds max length",
    "exceeded model token limit",
    "reduce the length of the messages",
    "request too large for",
    "too many tokens in the prompt",
];

const AUTHENTICATION: &[&str] = &[
    "invalid_api_key",
    "incorrect api key",
    "invalid api key",
    "api key not valid",
    "api key not found",
    "authentication_error",
    "authenticationerror",
    "permission_error",
    "unauthenticated",
];

const RATE: &[&str] = &["rate_limit", "rate limit", "ratelimit", "too many requests", "resource_exhausted"];

const REQUEST: &[&str] = &["invalid_request", "bad_request", "badrequest", "invalid_argument", "not_found_error"];

/// How long a server asks to wait: `Retry-After` in seconds or as a date, or the finer `retry-after-ms`.
pub(super) fn retry_after(header: &dyn Fn(&str) -> Option<String>, now: Timestamp) -> Option<Duration> {
    if let Some(milliseconds) = header("retry-after-ms").and_then(|value| value.trim().parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let value = header("retry-after")?;
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_zoned(value).ok()?;
    // A date that is past asks for no wait.
    Some(Duration::try_from(date.timestamp().duration_since(now)).unwrap_or(Duration::ZERO))
}

pub(super) fn looks_like_html(body: &str) -> bool {
    let start = text::head(body.trim_start(), 64).to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html") || start.starts_with("<head")
}

/// What a web page says of itself.
pub(super) fn page_title(page: &str) -> String {
    const LONGEST_EXTRACT: usize = 120;
    let lower = page.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|tag| {
        let start = tag + lower[tag..].find('>')? + 1;
        Some(&page[start..start + lower[start..].find('<')?])
    });
    match title.map(str::trim).filter(|title| !title.is_empty()) {
        Some(title) => format!("a web page titled \"{title}\""),
        None => match text::one_line(&without_tags(page), LONGEST_EXTRACT) {
            words if words.is_empty() => "a web page".to_owned(),
            words => format!("a web page that says \"{words}\""),
        },
    }
}

fn without_tags(page: &str) -> String {
    page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect::<Vec<_>>().join(" ")
}

fn words(level: &Value) -> Option<String> {
    let found = match level {
        Value::String(words) => Some(words.as_str()),
        Value::Object(_) => {
            ["message", "msg", "detail", "error_msg", "error_message", "error_description", "error"]
                .iter()
                .find_map(|key| level.get(key)?.as_str())
        }
        _ => None,
    };
    found.map(str::trim).filter(|words| !words.is_empty()).map(str::to_owned)
}

fn http_status(number: u64) -> Option<u16> {
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

#[cfg(test)]
mod tests {
    use ModelErrorKind::{Authentication, BadRequest, ContextTooLong, Quota, RateLimit, Transient};

    use super::*;

    #[test]
    fn words_in_every_shape() {
        for (body, message, code, status) in [
            (r#"{"error":{"message":"no","type":"t","code":"c"}}"#, "no", "c t", None),
            (r#"{"error":{"message":"no","code":429}}"#, "no", "", Some(429)),
            (r#"{"error":{"message":"no","code":"503"}}"#, "no", "", Some(503)),
            (r#"{"error":"no"}"#, "no", "", None),
            (r#"{"error":"no","type":"t"}"#, "no", "t", None),
            (r#"{"message":"no","code":400,"object":"error"}"#, "no", "", Some(400)),
            (r#"{"detail":"no"}"#, "no", "", None),
            (
                r#"{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}"#,
                "field required",
                "missing",
                None,
            ),
            (
                r#"[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]"#,
                "no",
                "INVALID_ARGUMENT",
                Some(400),
            ),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
                "busy",
                "overloaded_error error",
                None,
            ),
            (
                r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"bad tool\"}}"}}}"#,
                "Provider returned error: bad tool",
                "",
                Some(400),
            ),
            ("upstream\n timed out", "upstream timed out", "", None),
            (
                "<html><head><title>502 Bad Gateway</title></head></html>",
                "a web page titled \"502 Bad Gateway\"",
                "",
                None,
            ),
            ("<!DOCTYPE html><p>hi", "a web page that says \"hi\"", "", None),
            ("", "", "", None),
        ] {
            let said = Said { message: message.to_owned(), code: code.to_owned(), status };
            assert_eq!(Said::read(body), said, "{body}");
        }
    }

    #[test]
    fn kinds_by_status_and_code() {
        for (status, body, kind) in [
            (Some(401), r#"{"error":{"message":"no key"}}"#, Authentication),
            (Some(403), "forbidden", Authentication),
            (
                Some(400),
                r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}]"#,
                Authentication,
            ),
            (Some(402), "pay", Quota),
            (
                Some(429),
                r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#,
                Quota,
            ),
            (
                Some(429),
                r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota"}}"#,
                RateLimit,
            ),
            (Some(429), "slow down", RateLimit),
            (Some(408), "", Transient),
            (Some(409), "", Transient),
            (Some(500), "", Transient),
            (Some(529), r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, Transient),
            (Some(400), r#"{"error":{"message":"max_tokens is too large: 99999"}}"#, BadRequest),
            (Some(404), "no such model", BadRequest),
            (Some(307), "", BadRequest),
            // After HTTP 200.
            (Some(200), r#"{"error":{"code":502,"message":"Upstream failed"}}"#, Transient),
            (Some(200), r#"{"error":{"code":"429","message":"busy"}}"#, RateLimit),
            (None, r#"{"error":{"type":"rate_limit_error","message":"busy"}}"#, RateLimit),
            (None, r#"{"error":{"type":"invalid_request_error","message":"no"}}"#, BadRequest),
            (None, r#"{"error":{"type":"server_error","message":"oops"}}"#, Transient),
        ] {
            assert_eq!(classify(status, &Said::read(body)), kind, "{status:?} {body}");
        }
    }

    #[test]
    fn too_long_by_every_wording() {
        for message in [
            // OpenAI
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            // DeepSeek
            "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens.",
            // llama.cpp
            "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            "Context size has been exceeded.",
            // vLLM
            "The decoder prompt (length 40960) is longer than the maximum model length of 32768.",
            // LiteLLM
            "litellm.ContextWindowExceededError: litellm.BadRequestError: too big",
            // Ollama
            "the input length exceeds the context length",
            "prompt too long; exceeded max context length by 12 tokens",
            // LM Studio
            "Trying to keep the first 5000 tokens when context the overflows. The model is loaded with 4096 tokens.",
            // Qwen
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
            // Gemini
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            // Anthropic
            "prompt is too long: 210000 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            // Mistral, xAI, GLM, Kimi, Groq
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "Prompt exceeds max length",
            "Your request exceeded model token limit: 262144",
            "Please reduce the length of the messages or completion.",
        ] {
            for status in [Some(400), Some(413), Some(500), None] {
                let said = Said { message: message.to_owned(), ..Said::default() };
                assert_eq!(classify(status, &said), ContextTooLong, "{status:?} {message}");
            }
        }
        for code in ["context_length_exceeded", "exceed_context_size_error"] {
            let said = Said { code: code.to_owned(), ..Said::default() };
            assert_eq!(classify(Some(400), &said), ContextTooLong, "{code}");
        }
    }

    #[test]
    fn how_long_to_wait() {
        let now: Timestamp = "2015-10-21T07:28:00Z".parse().expect("a time");
        for (name, value, wait) in [
            ("retry-after", "3", Some(3000)),
            ("retry-after", " 0.5 ", Some(500)),
            ("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT", Some(30_000)),
            ("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT", Some(0)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after-ms", "250", Some(250)),
        ] {
            let header = |asked: &str| (asked == name).then(|| value.to_owned());
            assert_eq!(retry_after(&header, now), wait.map(Duration::from_millis), "{value}");
        }
    }

    #[test]
    fn a_key_that_the_server_repeats_is_not_shown() {
        let words = "Incorrect API key provided: sk-abc123.".to_owned();
        assert_eq!(redact(words, &["sk-abc123".to_owned()]), "Incorrect API key provided: ***.");
    }
}
