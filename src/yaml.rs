//! The one door to YAML: parsing with a place for every error.

use serde::de::DeserializeOwned;

/// What is wrong with a YAML text, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// Without the place.
    pub message: String,
    /// 1-based, where known.
    pub line: Option<usize>,
    /// 1-based, where known.
    pub column: Option<usize>,
}

/// Reads one document into `T`.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_yaml::from_str(text).map_err(|error| YamlError {
        message: error.to_string(),
        line: error.location().map(|place| place.line()),
        column: error.location().map(|place| place.column()),
    })
}
