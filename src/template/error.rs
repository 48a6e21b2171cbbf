//! Errors of templates: the message, the place and the line itself, but never a rendered value.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A template error with its place. Never contains a rendered value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    pub message: String,
    /// 1-based line in the template, where known.
    pub line: Option<usize>,
    /// 1-based column of that line, in characters, where known.
    pub column: Option<usize>,
    /// The byte range of the template that it concerns, where known.
    pub range: Option<Range<usize>>,
    /// The line as the template has it, if known; a long one is cut to the text around the column.
    pub excerpt: Option<Box<str>>,
    /// All undefined names that the template needs, if that is the error.
    pub missing: Vec<String>,
}

impl TemplateError {
    /// An error without a place.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// An error about these bytes of `source`.
    pub fn place_at(source: &str, range: Range<usize>, message: impl Into<String>) -> Self {
        let start = source.floor_char_boundary(range.start);
        let end = source.floor_char_boundary(range.end).max(start);
        let before = &source[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Self {
            line: Some(line),
            column: Some(column),
            range: Some(start..end),
            excerpt: cut_excerpt(source, line, column),
            ..Self::new(message)
        }
    }

    /// Converts it to an error of a template that includes `file`, in which the place is.
    pub(super) fn in_included(self, file: &str) -> Self {
        let place: Vec<String> =
            [self.line, self.column].iter().flatten().map(|number| format!(":{number}")).collect();
        let excerpt = self.excerpt.map(|line| format!(": `{}`", line.trim())).unwrap_or_default();
        Self {
            missing: self.missing,
            ..Self::new(format!("{} (in {file}{}{excerpt})", self.message, place.concat()))
        }
    }

    /// Adds the names that nothing defines.
    pub(super) fn add_missing(mut self, missing: Vec<String>) -> Self {
        self.message = format!("nothing defines {}", missing.join(", "));
        self.missing = missing;
        self
    }
}

/// A line of `source`, both numbers 1-based; a long line is cut to the text around the column.
pub(super) fn cut_excerpt(source: &str, line: usize, column: usize) -> Option<Box<str>> {
    const BEFORE: usize = 60;
    const LONGEST: usize = 120;
    let text = source.lines().nth(line.checked_sub(1)?)?;
    if text.chars().nth(LONGEST).is_none() {
        return Some(text.into());
    }
    let first = column.saturating_sub(BEFORE + 1);
    let mut rest = text.chars().skip(first);
    let shown: String = rest.by_ref().take(LONGEST).collect();
    let (left, right) = (if first > 0 { "…" } else { "" }, if rest.next().is_some() { "…" } else { "" });
    Some(format!("{left}{shown}{right}").into())
}

#[cfg(test)]
mod tests {
    use super::{TemplateError, cut_excerpt};

    #[test]
    fn an_error_has_its_place_and_its_line() {
        let error = TemplateError::place_at("one\ntwo ä x\nthree", 11..12, "no x");
        assert_eq!((error.line, error.column, error.excerpt.as_deref()), (Some(2), Some(7), Some("two ä x")));
        let error = TemplateError::place_at("one", 90..95, "beyond the end");
        assert_eq!((error.line, error.column, error.range), (Some(1), Some(4), Some(3..3)));
    }

    #[test]
    fn a_long_line_is_cut_around_the_column() {
        let line = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let cut = cut_excerpt(&line, 1, 501).expect("a line");
        assert_eq!(*cut, format!("…{}X{}…", "a".repeat(60), "b".repeat(59)));
        assert_eq!(cut_excerpt("one", 2, 1), None);
        assert_eq!(cut_excerpt("one", 0, 1), None);
    }
}
