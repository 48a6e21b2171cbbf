//! Dialects: the differences between servers that speak the same protocol, as data in `dialects.yaml`.
//!
//! A row names hosts, or models on any host, and states what differs from the baseline, which suits an unknown server:
//! nothing optional is sent to it. Later rows win: the baseline, families of models, the host, the host's models. Rows
//! are found by the text of their first lines, and only those that apply are parsed: parsing all of them would take
//! longer than the rest of the startup.

use std::collections::BTreeMap;

use memchr::memchr_iter;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::extra::merge_extra;
use super::{anthropic, chat, gemini, responses};
use crate::base::{text, yaml};
use crate::config::Wire;

const DIALECTS: &str = include_str!("dialects.yaml");

/// The differences of one server with one model from the baseline.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// Empty for the baseline.
    pub name: String,
    hosts: Vec<String>,
    /// The protocol that works best, if the server speaks several.
    pub wire: Option<Wire>,
    pub auth: Option<Auth>,
    /// Fields of every request of chat completions; those of the model file override them.
    pub body: Map<String, Value>,
    /// The definition of the provider's own web search, on the wire that the server speaks best.
    pub web_search: Option<Value>,
    /// Headers of every request; those of the model file override them. `{session}` stands for the id of the session.
    pub headers: BTreeMap<String, String>,
    pub chat: chat::ChatFlags,
    pub responses: responses::ResponsesFlags,
    pub anthropic: anthropic::AnthropicFlags,
    pub gemini: gemini::GeminiFlags,
}

/// The header that carries the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// `Authorization: Bearer KEY`
    Bearer,
    /// `x-api-key: KEY`
    XApiKey,
    /// `api-key: KEY`
    ApiKey,
    /// `x-goog-api-key: KEY`
    XGoogApiKey,
}

/// The dialect of a server with a model. `chosen` names a row and beats the address (`host[:port]/path`).
///
/// # Errors
/// There is no row of the chosen name; the error is a sentence.
pub fn resolve_dialect(chosen: Option<&str>, address: &str, model: &str) -> Result<Dialect, String> {
    let rows: Vec<DialectRow> = list_rows().collect();
    let host = match chosen {
        Some("none") => None,
        Some(name) => Some(find_row(name)?),
        None => rows.iter().copied().find(|row| row.hosts().any(|pattern| is_at(address, pattern))),
    };
    let model = model.to_ascii_lowercase();
    let model = ModelId::new(&model);
    let mut whole = Map::new();
    for row in rows.iter().filter(|row| row.family().any(|pattern| model.is(pattern))) {
        merge_extra(&mut whole, &remove_key(row.parse(), "family"));
    }
    if let Some(row) = host {
        let mut row = row.parse();
        let models = row.shift_remove("models");
        merge_extra(&mut whole, &row);
        for model_row in models.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let Value::Object(model_row) = model_row else { continue };
            let patterns = model_row.get("match").and_then(Value::as_str).unwrap_or_default();
            if patterns.split('|').any(|pattern| model.is(pattern.trim())) {
                merge_extra(&mut whole, &remove_key(model_row.clone(), "match"));
            }
        }
    }
    Ok(serde_json::from_value(whole.into()).expect("a test reads every row"))
}

/// The names of all rows of hosts, in order.
pub fn list_names() -> impl Iterator<Item = &'static str> {
    list_rows().filter_map(DialectRow::name)
}

fn find_row(name: &str) -> Result<DialectRow, String> {
    list_rows().find(|row| row.name() == Some(name)).ok_or_else(|| {
        let near: Vec<String> =
            text::find_nearest(name, list_names()).into_iter().map(|known| format!("`{known}`")).collect();
        let advice = if near.is_empty() {
            "`auto` goes by the host, `none` sends nothing optional, docs/models.md lists the others".to_owned()
        } else {
            format!("Did you mean {}?", near.join(" or "))
        };
        format!("there is no dialect `{name}`. {advice}")
    })
}

/// The text of one row.
#[derive(Clone, Copy)]
struct DialectRow(&'static str);

/// The rows, each from its first line to that of the next.
fn list_rows() -> impl Iterator<Item = DialectRow> {
    let line_starts = std::iter::once(0).chain(memchr_iter(b'\n', DIALECTS.as_bytes()).map(|at| at + 1));
    let mut starts = line_starts.filter(|start| DIALECTS[*start..].starts_with("- ")).peekable();
    std::iter::from_fn(move || {
        let start = starts.next()?;
        Some(DialectRow(&DIALECTS[start..starts.peek().copied().unwrap_or(DIALECTS.len())]))
    })
}

impl DialectRow {
    fn name(self) -> Option<&'static str> {
        self.0.lines().next()?.strip_prefix("- name:").map(str::trim)
    }

    fn hosts(self) -> impl Iterator<Item = &'static str> {
        let line = self.0.lines().nth(1).and_then(|line| line.trim().strip_prefix("hosts: ["));
        let list = line.and_then(|line| line.split(']').next()).unwrap_or_default();
        list.split(',').map(|host| host.trim().trim_matches('"')).filter(|host| !host.is_empty())
    }

    fn family(self) -> impl Iterator<Item = &'static str> {
        let line = self.0.lines().next().and_then(|line| line.strip_prefix("- family:")).unwrap_or_default();
        line.trim().trim_matches('"').split('|').map(str::trim).filter(|pattern| !pattern.is_empty())
    }

    fn parse(self) -> Map<String, Value> {
        let mut rows: Vec<Map<String, Value>> = yaml::parse_document(self.0).expect("a test reads every row");
        rows.pop().unwrap_or_default()
    }
}

fn remove_key(mut row: Map<String, Value>, key: &str) -> Map<String, Value> {
    row.shift_remove(key);
    row
}

/// True if an address (`host[:port]/path`) matches a pattern: a host, optionally with a port and the beginning of a path.
/// A `*` in the host stands for any part of it; one before the first dot for no part as well.
fn is_at(address: &str, pattern: &str) -> bool {
    let is_whole = |rest: &str| rest.is_empty() || rest.starts_with(['/', ':']);
    let Some((before, after)) = pattern.split_once('*') else {
        return address.strip_prefix(pattern).is_some_and(is_whole);
    };
    let host = address.find(['/', ':']).unwrap_or(address.len());
    let within = address.strip_prefix(before).and_then(|rest| {
        let at = rest.find(after).filter(|at| before.len() + at <= host)?;
        Some(&rest[at + after.len()..])
    });
    let bare = after.strip_prefix('.').and_then(|bare| address.strip_prefix(bare));
    within.is_some_and(is_whole) || bare.filter(|_| before.is_empty()).is_some_and(is_whole)
}

/// The maker's name in an id, without what a router or a cloud puts before it: `anthropic/claude-opus-5`,
/// `eu.anthropic.claude-opus-5-v1:0`.
pub fn name_of_maker(id: &str) -> &str {
    let name = id.rsplit('/').next().unwrap_or_default();
    name.rsplit_once("anthropic.").map_or(name, |(_, name)| name)
}

/// The id of a model in lower case, and the maker's name in it.
#[derive(Clone, Copy)]
struct ModelId<'a> {
    whole: &'a str,
    name: &'a str,
}

impl<'a> ModelId<'a> {
    fn new(lower: &'a str) -> Self {
        Self { whole: lower, name: name_of_maker(lower) }
    }

    /// True if it matches a pattern, in which `*` stands for anything. What a router or a cloud puts before the name does
    /// not count, unless the pattern has a `/` too.
    fn is(self, pattern: &str) -> bool {
        let id = if pattern.contains('/') { self.whole } else { self.name };
        let mut parts = pattern.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = id.strip_prefix(first) else { return false };
        let mut last = None;
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
            last = Some(part);
        }
        match last {
            None => rest.is_empty(),
            Some(part) => part.is_empty() || rest.is_empty() || id.ends_with(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_needs_marks_gets_them_behind_any_host() {
        for (model, has) in [
            ("claude-sonnet-5-5", true),
            ("anthropic/claude-haiku-5-5", true),
            ("claude-9-unheard-of", true),
            ("MiniMax-M3", false),
        ] {
            let dialect = resolve_dialect(None, "gateway.example:4000/v1", model).expect("the baseline");
            assert_eq!(dialect.anthropic.cache_marks, has, "{model}");
        }
    }

    #[test]
    fn every_row_can_be_read() {
        let all: Vec<Map<String, Value>> = yaml::parse_document(DIALECTS).expect("YAML");
        assert_eq!(list_rows().count(), all.len());
        for (row, whole) in list_rows().zip(&all) {
            assert_eq!(&row.parse(), whole);
            match row.name() {
                Some(name) => {
                    assert!(whole.get("hosts").is_some(), "{name} has hosts in its second line");
                    let patterns = whole.get("models").and_then(Value::as_array).cloned().unwrap_or_default();
                    for pattern in patterns.iter().filter_map(|row| row.get("match")?.as_str()) {
                        for pattern in pattern.split('|') {
                            resolve_dialect(Some(name), "", &pattern.trim().replace('*', "x"))
                                .expect("a known row");
                        }
                    }
                    let hosts: Vec<&str> = row.hosts().collect();
                    assert_eq!(serde_json::json!(hosts), whole["hosts"], "{name}: the hosts stand on one line");
                    for host in hosts {
                        let address = host.replace('*', "x");
                        assert_eq!(resolve_dialect(None, &address, "m").expect("a row").name, name, "{host}");
                    }
                }
                None => {
                    assert!(row.family().next().is_some(), "{whole:?} has neither a name nor a family");
                    for pattern in row.family() {
                        resolve_dialect(None, "x.example", &pattern.replace('*', "x")).expect("the baseline");
                    }
                }
            }
        }
    }

    #[test]
    fn calls_are_looked_for_in_text_only_where_that_is_chosen() {
        let looks = |name: &&str| resolve_dialect(Some(*name), "", "m").expect("a row").chat.calls_in_text;
        assert_eq!(list_names().filter(looks).collect::<Vec<_>>(), ["calls-in-text"]);
    }

    #[test]
    fn the_wire_by_host_and_model() {
        for (address, model, wire) in [
            ("api.openai.com/v1", "gpt-5.4", Some(Wire::Responses)),
            ("api.x.ai/v1", "grok-4.5", Some(Wire::Responses)),
            ("me.openai.azure.com/openai/v1", "my-deployment", Some(Wire::Responses)),
            ("me.openai.azure.com/openai/deployments/mine", "gpt-4.1", None),
            ("bedrock-runtime.eu-west-1.amazonaws.com", "eu.anthropic.claude-opus-5-v1:0", Some(Wire::Anthropic)),
            ("mine.eu-west-1.elb.amazonaws.com/v1", "claude-opus-5", None),
            (
                "europe-west1-aiplatform.googleapis.com/v1/projects/p",
                "claude-opus-5@20260901",
                Some(Wire::Anthropic),
            ),
            ("aiplatform.googleapis.com/v1/projects/p/endpoints/openapi", "google/gemini-3.8-flash", None),
            ("me.services.ai.azure.com/openai/v1", "DeepSeek-V4", Some(Wire::Chat)),
            ("openrouter.ai/api/v1", "openai/gpt-5.4", None),
        ] {
            assert_eq!(resolve_dialect(None, address, model).expect("a row").wire, wire, "{address} {model}");
        }
    }

    #[test]
    fn what_responses_are_asked_of_a_model() {
        let flags = |address: &str, model: &str| resolve_dialect(None, address, model).expect("a row").responses;
        for (model, summary, encrypted, temperature, parallel) in [
            ("gpt-6-sol", true, true, false, true),
            ("o3", true, true, false, false),
            ("gpt-4.1", false, false, true, true),
            ("gpt-5-chat-latest", false, false, true, true),
        ] {
            let flags = flags("api.openai.com/v1", model);
            let asked = (flags.summary, flags.encrypted_include, flags.temperature, flags.parallel_field);
            assert_eq!(asked, (summary, encrypted, temperature, parallel), "{model}");
        }
        assert_eq!(flags("x.example/v1", "m"), responses::ResponsesFlags::default());
    }

    #[test]
    fn a_name_that_is_no_dialect_is_told_with_the_nearest() {
        for (name, advice) in [("deepsek", "`deepseek`"), ("qqq", "docs/models.md")] {
            let error = resolve_dialect(Some(name), "", "m").expect_err("no dialect");
            assert!(error.contains(&format!("`{name}`")) && error.contains(advice), "{error}");
        }
    }

    #[test]
    fn addresses() {
        for (address, pattern, at) in [
            ("api.deepseek.com/v1", "api.deepseek.com", true),
            ("api.deepseek.com.evil.example/v1", "api.deepseek.com", false),
            ("me.openai.azure.com/openai/v1", "*.openai.azure.com", true),
            ("openai.azure.com/x", "*.openai.azure.com", true),
            ("evilopenai.azure.com", "*.openai.azure.com", false),
            ("x.example/a.openai.azure.com", "*.openai.azure.com", false),
            ("api.z.ai/api/anthropic/v1", "api.z.ai/api/anthropic", true),
            ("api.z.ai/api/paas/v4", "api.z.ai/api/anthropic", false),
            ("localhost:11434/v1", "localhost:11434", true),
            ("localhost:1143/v1", "localhost:11434", false),
        ] {
            assert_eq!(is_at(address, pattern), at, "{address} at {pattern}");
        }
    }

    #[test]
    fn models() {
        for (id, pattern, is) in [
            ("gpt-5.4-mini", "gpt-5.4*", true),
            ("gpt-5", "gpt-5.4*", false),
            ("openai/gpt-5.4", "gpt-5.4*", true),
            ("o3", "o3", true),
            ("o3-mini", "o3", false),
            ("Claude-Opus-4-8", "claude-*-4-8", true),
            ("claude-opus-4-8-x", "claude-*-4-8", false),
            ("anthropic/claude-x", "anthropic/*", true),
            ("claude-x", "anthropic/*", false),
        ] {
            let lower = id.to_ascii_lowercase();
            assert_eq!(ModelId::new(&lower).is(pattern), is, "{id} {pattern}");
        }
    }

    #[test]
    fn claude_by_host() {
        use anthropic::Thinking::{Adaptive, Always, Budget, Off, Unasked};
        let own = "api.anthropic.com/v1";
        for (address, model, thinking, effort, binding) in [
            (own, "claude-sonnet-4-5-20250929", Budget, false, false),
            (own, "claude-haiku-4-5", Budget, false, false),
            (own, "claude-opus-4-6", Adaptive, true, false),
            (own, "claude-opus-4-8", Adaptive, true, false),
            (own, "claude-sonnet-5", Unasked, true, false),
            (own, "claude-haiku-5-5", Unasked, true, true),
            (own, "claude-fable-5-20260601", Always, true, false),
            (own, "claude-fable-5-2", Always, true, true),
            (own, "claude-opus-5-5-20261001", Always, true, true),
            ("openrouter.ai/api/v1", "anthropic/claude-opus-5.5", Always, true, false),
            ("openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", Budget, false, false),
            ("localhost:8080/v1", "qwen3", Off, false, false),
            ("api.minimax.io/anthropic/v1", "MiniMax-M3.1", Adaptive, true, false),
        ] {
            let flags = resolve_dialect(None, address, model).expect("rows").anthropic;
            let read = (flags.thinking, flags.effort_field, flags.binding_controls);
            assert_eq!(read, (thinking, effort, binding), "{model} at {address}");
        }
    }
}
