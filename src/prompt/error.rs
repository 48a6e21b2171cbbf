//! Errors of prompts and their places: the file, the line and the column as far as they are known.

use std::fmt;

use crate::base::secrets::looks_secret;
use crate::base::text::make_visible;
use crate::base::yaml::YamlError;
use crate::template::{Syntax, TemplateError};

/// The reason that a prompt cannot be found, read or rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PromptError {
    /// The file; `None` if no file is to blame (an unknown name).
    pub file: Option<String>,
    /// 1-based.
    pub line: Option<usize>,
    /// 1-based.
    pub column: Option<usize>,
    /// The line itself, if a template is to blame.
    pub excerpt: Option<Box<str>>,
    /// The message without the place.
    pub message: String,
    /// The way to fix it.
    pub hint: Option<String>,
}

impl fmt::Display for PromptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            f.write_str(file)?;
            for place in [self.line, self.column].into_iter().map_while(|place| place) {
                write!(f, ":{place}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, ". {hint}")?;
        }
        match (self.line, &self.excerpt) {
            (Some(line), Some(excerpt)) => write!(f, "\n  {line:>4} | {}", make_visible(excerpt)),
            _ => Ok(()),
        }
    }
}

impl PromptError {
    /// An error without a file: the requested prompt does not exist.
    pub(super) fn report_unknown(message: String) -> Self {
        Self { file: None, line: None, column: None, excerpt: None, message, hint: None }
    }

    /// An error about `file` as a whole.
    pub(super) fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self { file: Some(file.to_owned()), ..Self::report_unknown(message.into()) }
    }

    /// The error about names that a prompt reads and nothing defines.
    pub(super) fn of_missing(file: &str, names: &[String], syntax: Syntax) -> Self {
        let secret = names.iter().find(|name| name.strip_prefix("env.").is_some_and(looks_secret));
        if let Some(name) = secret {
            let told = format!("`{name}` looks like a secret, and prompts see none");
            return Self::of_file(file, told)
                .hint("List it under `prompts.allow_env` in your agent.yaml, or leave it out.");
        }
        let is_nested = names.iter().any(|name| name.strip_prefix("vars.").unwrap_or(name).contains('.'));
        let absent = match syntax {
            Syntax::FString => "and a prompt of the format `fstring` needs each of them",
            Syntax::GoTemplate => "or write `{{if index . \"NAME\"}}` where one may be absent",
            Syntax::Jinja if is_nested => {
                "or write `(NAME | default({})).PART | default('…')` where one may be absent"
            }
            Syntax::Jinja => "or write `| default('…')` where one may be absent",
        };
        let names = names.join("`, `");
        Self::of_file(file, format!("nothing defines `{names}`, which this prompt reads")).hint(format!(
            "Pass variables with --var NAME=VALUE (read as vars.NAME, and as NAME where the head declares it), {absent}."
        ))
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn of_yaml(file: &str, error: YamlError) -> Self {
        Self { line: error.line, column: error.column, ..Self::of_file(file, error.message) }
    }

    pub(super) fn of_template(file: &str, error: &TemplateError) -> Self {
        let (line, column, excerpt) = (error.line, error.column, error.excerpt.clone());
        Self { line, column, excerpt, ..Self::of_file(file, error.message.clone()) }
    }
}
