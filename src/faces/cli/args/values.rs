//! Parsers of option values that are more than a word or a number: each returns the value, or says what is wrong with
//! the text.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;

use crate::base::output::{Encoding, ResponseFormat};
use crate::config::{ApprovalMode, ForeignAgent, Mode, Permission};

/// Checks only the form `KEY=VALUE`: loading the configuration checks the key.
pub(super) fn check_assignment(text: &str) -> Result<String, String> {
    let (key, _) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    if key.is_empty() { Err("the name before = is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Splits `NAME=VALUE`.
pub(super) fn parse_variable(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Splits `NAME: VALUE`.
pub(super) fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once(':').filter(|(name, _)| !name.is_empty()).ok_or("write it as NAME: VALUE")?;
    Ok((name.to_owned(), value.trim().to_owned()))
}

pub(super) fn parse_approval(text: &str) -> Result<ApprovalMode, String> {
    ApprovalMode::find(text)
        .ok_or_else(|| format!("one of {}", ApprovalMode::ALL.map(ApprovalMode::name).join(", ")))
}

/// A mode by its name; completion offers the names.
pub(super) fn parse_mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.map(Mode::name))
        .try_map(|name| Mode::find(&name).ok_or("there is no such mode"))
}

/// Another agent by its word.
pub(super) fn parse_agent() -> impl TypedValueParser<Value = ForeignAgent> {
    PossibleValuesParser::new(ForeignAgent::ALL.map(ForeignAgent::word)).try_map(|word| {
        ForeignAgent::ALL.into_iter().find(|agent| agent.word() == word).ok_or("there is no such agent")
    })
}

/// A value that is one of these words.
pub(super) fn parse_one_of<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    words: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words).try_map(|word| serde_json::from_value(word.into()))
}

pub(super) fn parse_dollars(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|cost: &f64| cost.is_finite() && *cost > 0.0).ok_or("an amount like 0.50".to_owned())
}

pub(super) fn parse_permission(text: &str) -> Result<Permission, String> {
    parse_word(text, "read, write, admin")
}

pub(super) fn parse_format(text: &str) -> Result<ResponseFormat, String> {
    parse_word(text, "concise, standard, detailed, raw")
}

pub(super) fn parse_encoding(text: &str) -> Result<Encoding, String> {
    parse_word(text, "text, json, yaml, xml, compact")
}

/// Parses a word as the configuration files spell it.
fn parse_word<T: DeserializeOwned>(text: &str, words: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|_| format!("one of {words}"))
}
