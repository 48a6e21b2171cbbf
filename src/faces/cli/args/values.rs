//! Values of options: the names that completion offers, and parsers of what is more than a word or a number. Each returns
//! the value, or says what is wrong with the text.

use clap::builder::{ArgExt, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;

use crate::config::{ApprovalMode, ForeignAgent, Mode};

/// The names that an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentValues {
    Agents,
    FileKinds,
    Flows,
    LoginProviders,
    Models,
    Plugins,
    Prompts,
    Providers,
    Servers,
    Sessions,
    SettingKeys,
    Skills,
    Tools,
}

impl ArgExt for ArgumentValues {}

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

/// An approval mode by its name.
pub(super) fn parse_approval() -> impl TypedValueParser<Value = ApprovalMode> {
    PossibleValuesParser::new(ApprovalMode::ALL.map(ApprovalMode::name))
        .try_map(|name| ApprovalMode::find(&name).ok_or("there is no such mode"))
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
