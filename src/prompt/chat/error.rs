//! Errors of chat templates: every problem of every message at once.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use crate::template::TemplateError;

/// The reason that a chat template cannot be made or filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ChatError {
    /// At least one, in the order of the messages.
    pub problems: Vec<MessageProblem>,
}

/// A problem of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageProblem {
    /// The number of the message in the template, from 1.
    pub number: usize,
    /// The role of the message, or `placeholder`.
    pub role: String,
    /// The line of its text, from 1, where known.
    pub line: Option<usize>,
    /// The column of that line, from 1, where known.
    pub column: Option<usize>,
    /// That line, where known.
    pub excerpt: Option<Box<str>>,
    /// The problem; never contains a value of a variable.
    pub message: String,
    /// The variables that nothing defines, if that is the problem.
    pub missing: Vec<String>,
}

impl ChatError {
    /// The variables that nothing defines, of all messages, sorted.
    pub fn list_missing(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self.problems.iter().flat_map(|problem| &problem.missing).collect();
        names.into_iter().cloned().collect()
    }
}

impl MessageProblem {
    /// A problem of the message `number` as a whole.
    pub(super) fn new(number: usize, role: impl fmt::Display, message: impl Into<String>) -> Self {
        let (role, message) = (role.to_string(), message.into());
        Self { number, role, line: None, column: None, excerpt: None, message, missing: Vec::new() }
    }

    /// A problem in the text of the message `number`.
    pub(super) fn of_template(number: usize, role: impl fmt::Display, error: TemplateError) -> Self {
        Self {
            line: error.line,
            column: error.column,
            excerpt: error.excerpt,
            missing: error.missing,
            ..Self::new(number, role, error.message)
        }
    }

    /// A placeholder without its messages.
    pub(super) fn of_placeholder(number: usize, key: &str) -> Self {
        Self {
            missing: vec![key.to_owned()],
            ..Self::new(number, "placeholder", format!("nothing defines {key}"))
        }
    }

    /// `message 2 (user), line 1, column 5`
    fn place(&self) -> String {
        let mut place = format!("message {} ({})", self.number, self.role);
        for (what, number) in [("line", self.line), ("column", self.column)] {
            if let Some(number) = number {
                let _ = write!(place, ", {what} {number}");
            }
        }
        place
    }
}

impl fmt::Display for ChatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing = self.list_missing();
        let (others, lacking): (Vec<_>, Vec<_>) =
            self.problems.iter().partition(|problem| problem.missing.is_empty());
        let mut lines = Vec::new();
        if !missing.is_empty() {
            let names = missing.join("`, `");
            let places: Vec<String> = lacking.iter().map(|problem| problem.place()).collect();
            let places = places.join("; ");
            lines.push(format!("nothing defines `{names}`, which these messages read: {places}"));
        }
        lines.extend(others.iter().map(|problem| {
            let excerpt = problem.excerpt.as_ref().map(|line| format!("\n    {}", line.trim_end()));
            format!("{}: {}{}", problem.place(), problem.message, excerpt.unwrap_or_default())
        }));
        f.write_str(&lines.join("\n"))
    }
}
