//! Finds the words of an error, whatever the shape of its body, relying on no particular field.

use std::time::Duration;

use serde_json::Value;

use super::hints;
use crate::base::text;

/// An error in the server's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatedError {
    /// The words, whole and on one line; empty if there were none.
    pub message: String,
    /// The words among `code`, `type` and `status`, and the codes that are not HTTP statuses, joined.
    pub code: String,
    /// A `code` that is an HTTP status.
    pub status: Option<u16>,
    /// The time to wait before another attempt, if the error states one.
    pub wait: Option<Duration>,
}

impl StatedError {
    /// Reads the body of an error, whatever its shape.
    pub fn read(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => Self::from_value(&value).unwrap_or_else(|| Self::plain(body)),
            Err(_) if looks_like_html(body) => Self::plain(&page_title(body)),
            Err(_) => Self::plain(body),
        }
    }

    /// Reads a body or an event that may be an error or a reply; `None` for a reply.
    pub fn in_reply(body: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(body).ok()?;
        let object = value.as_array().and_then(|list| list.first()).unwrap_or(&value);
        let is_error = object.get("error").is_some_and(|error| !error.is_null())
            || object.get("object").and_then(Value::as_str) == Some("error")
            || object.get("type").and_then(Value::as_str) == Some("error")
            || ["detail", "message", "errors", "error_msg"].iter().any(|key| object.get(key).is_some())
            || object
                .get("base_resp")
                .is_some_and(|base| base["status_code"].as_i64().is_some_and(|code| code != 0));
        is_error.then(|| Self::from_value(&value)).flatten()
    }

    fn from_value(value: &Value) -> Option<Self> {
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        // The error itself, and what surrounds it (vLLM and others put the code beside the message).
        let inner = ["error", "errors", "detail", "base_resp"]
            .iter()
            .find_map(|key| value.get(key))
            .filter(|inner| !inner.is_null())
            // Mistral puts the list of FastAPI there.
            .or_else(|| value.pointer("/message/detail"));
        let inner = inner.map(|inner| inner.as_array().and_then(|list| list.first()).unwrap_or(inner));
        let levels: Vec<&Value> = inner.into_iter().chain([value]).collect();
        let mut said = Self { message: levels.iter().find_map(|level| find_words(level))?, ..Self::default() };
        for level in &levels {
            for key in ["code", "type", "status", "status_code"] {
                said.take_code(level.get(key));
            }
            // Anthropic's own code, which outlives its words.
            said.take_code(level.get("details").and_then(|details| details.get("error_code")));
            // llama.cpp, whatever its words.
            if level.get("n_prompt_tokens").is_some() && level.get("n_ctx").is_some() {
                said.take_code(Some(&Value::from("exceed_context_size")));
            }
        }
        said.wait = levels.iter().find_map(|level| hints::find_stated(level));
        // A router's own message says nothing; the message of the server behind it is nested deeper.
        if let Some(raw) = levels.iter().find_map(|level| level.get("metadata")?.get("raw")?.as_str()) {
            let upstream = Self::read(raw).message;
            said.message = format!("{}: {upstream}", said.message);
        }
        said.wait = said.wait.or_else(|| hints::in_words(&said.message));
        if let Some(name) =
            levels.iter().find_map(|level| find_parameter(level)).filter(|name| !said.message.contains(name))
        {
            said.message = format!("{}: {name}", said.message);
        }
        said.message = text::one_line(&said.message, usize::MAX);
        said.code.truncate(said.code.trim_end().len());
        Some(said)
    }

    /// Takes a code: an HTTP status, another number, or a word, which may be a number too.
    fn take_code(&mut self, code: Option<&Value>) {
        let word = match code {
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::String(word)) => word.clone(),
            _ => return,
        };
        let find_status = |number: u64| u16::try_from(number).ok().filter(|status| (400..600).contains(status));
        match word.parse().map(find_status) {
            Ok(Some(status)) => self.status = self.status.or(Some(status)),
            // Neither a success nor "none".
            Ok(None) if word.len() < 4 => {}
            _ if self.code.split(' ').any(|known| known == word) => {}
            _ => {
                self.code.push_str(&word);
                self.code.push(' ');
            }
        }
    }

    fn plain(body: &str) -> Self {
        Self { message: text::one_line(body, usize::MAX), wait: hints::in_words(body), ..Self::default() }
    }
}

/// The parameter that an error is about: `param`, or the path to it (`loc`), or the place of a message.
fn find_parameter(level: &Value) -> Option<String> {
    let loc = || {
        let path = level.get("loc")?.as_array()?;
        match path.iter().position(|part| matches!(part.as_str(), Some("messages" | "input"))) {
            Some(list) if path.get(list + 1).is_some_and(Value::is_number) => {
                let parts = path[list..].iter().map(|part| part.as_str().map_or(part.to_string(), str::to_owned));
                Some(parts.collect::<Vec<_>>().join("."))
            }
            _ => {
                let names = path.iter().filter_map(Value::as_str).filter(|name| *name != "body");
                Some(names.collect::<Vec<_>>().join("."))
            }
        }
    };
    let name = level.get("param").and_then(Value::as_str).map(str::to_owned).or_else(loc)?;
    Some(name).filter(|name| !matches!(name.as_str(), "" | "body"))
}

pub(in crate::model) fn looks_like_html(body: &str) -> bool {
    let start = text::take_head(body.trim_start(), 64).to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html") || start.starts_with("<head")
}

/// The title of a web page, or the beginning of its text.
fn page_title(page: &str) -> String {
    const LONGEST_EXTRACT: usize = 120;
    let lower = page.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|tag| {
        let start = tag + lower[tag..].find('>')? + 1;
        Some(&page[start..start + lower[start..].find('<')?])
    });
    let words = page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    match title.map(str::trim).filter(|title| !title.is_empty()) {
        Some(title) => format!("a web page titled \"{title}\""),
        None => match text::one_line(&words.collect::<Vec<_>>().join(" "), LONGEST_EXTRACT) {
            words if words.is_empty() => "a web page".to_owned(),
            words => format!("a web page that says \"{words}\""),
        },
    }
}

/// The first words under the keys that servers use, at any depth.
fn find_words(level: &Value) -> Option<String> {
    const KEYS: [&str; 8] =
        ["message", "msg", "detail", "error_msg", "error_message", "error_description", "status_msg", "error"];
    match level {
        Value::String(words) => Some(words.trim()).filter(|words| !words.is_empty()).map(str::to_owned),
        Value::Array(levels) => find_words(levels.first()?),
        Value::Object(level) => KEYS.iter().find_map(|key| find_words(level.get(*key)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
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
                r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","top_k"],"msg":"no"}]}}"#,
                "no: top_k",
                "extra_forbidden",
                None,
            ),
            (
                r#"{"detail":[{"loc":["body","messages",3,"content"],"msg":"no","type":"string_type"}]}"#,
                "no: messages.3.content",
                "string_type",
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
            (
                r#"{"object":"error","message":{"detail":[{"msg":"extra field","type":"extra_forbidden"}]},"type":"invalid_request_error"}"#,
                "extra field",
                "extra_forbidden invalid_request_error",
                None,
            ),
            (r#"{"errors":[{"message":"no","code":7003}],"success":false}"#, "no", "7003", None),
            (r#"{"base_resp":{"status_code":1004,"status_msg":"no"}}"#, "no", "1004", None),
            (r#"{"error":{"code":"1261","message":"no"}}"#, "no", "1261", None),
            (
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"no","details":{"error_code":"c"}}}"#,
                "no",
                "rate_limit_error c error",
                None,
            ),
            (r#"{"error":{"message":"no","n_prompt_tokens":9,"n_ctx":8}}"#, "no", "exceed_context_size", None),
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
            let said = StatedError { message: message.to_owned(), code: code.to_owned(), status, wait: None };
            assert_eq!(StatedError::read(body), said, "{body}");
        }
    }

    #[test]
    fn the_time_to_wait_in_every_shape() {
        for (body, seconds) in [
            (r#"{"error":{"message":"no","code":429,"metadata":{"retry_after_seconds":12.5}}}"#, Some(12.5)),
            (
                r#"[{"error":{"code":429,"message":"no","details":[{"@type":"x"},{"retryDelay":"34s"}]}}]"#,
                Some(34.0),
            ),
            (r#"{"error":{"message":"Rate limit reached. Please try again in 1.5s."}}"#, Some(1.5)),
            ("busy, retry after 7 seconds", Some(7.0)),
            (r#"{"error":{"message":"no","details":[]}}"#, None),
        ] {
            assert_eq!(StatedError::read(body).wait, seconds.map(Duration::from_secs_f64), "{body}");
        }
    }

    #[test]
    fn a_reply_is_no_error() {
        for (body, is_error) in [
            (r#"{"choices":[],"base_resp":{"status_code":0,"status_msg":""}}"#, false),
            (r#"{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#, true),
            (r#"{"choices":[{}],"error":null}"#, false),
            (r#"{"error":{"message":"no"}}"#, true),
        ] {
            assert_eq!(StatedError::in_reply(body).is_some(), is_error, "{body}");
        }
    }
}
