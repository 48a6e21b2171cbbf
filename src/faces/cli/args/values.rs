//! Parsers of option values that are more than a word or a number: each returns the value, or says what is wrong with
//! the text.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::config::{ApprovalMode, Mode};

/// Checks only the form `KEY=VALUE`: loading the configuration checks the key.
pub(super) fn check_assignment(text: &str) -> Result<String, String> {
    let (key, _) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    if key.is_empty() { Err("the name before = is empty".to_owned()) } else { Ok(text.to_owned()) }
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

pub(super) fn parse_dollars(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|cost: &f64| cost.is_finite() && *cost > 0.0).ok_or("an amount like 0.50".to_owned())
}
