//! The mistakes of a configuration: all at once, each with its place and the line itself, without the secrets that may
//! be in it.

use std::fmt;

use super::source::Sources;
use crate::base::secrets::mask_line;
use crate::base::text::{find_nearest, make_visible, take_head};
use crate::base::yaml::{Node, Scalar, ScalarForm, YamlError, YamlPlace, YamlTree};
use crate::template::TemplateError;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file, the variable or the flag.
    pub file: String,
    /// 1-based, if known.
    pub line: Option<usize>,
    /// 1-based, in characters.
    pub column: Option<usize>,
    /// The line itself, secrets masked.
    pub source_line: Option<String>,
    pub message: String,
    /// The way to fix it.
    pub hint: Option<String>,
}

/// The reason that there is no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The mistakes in the order of their places; never empty.
    pub mistakes: Vec<Mistake>,
}

impl Mistake {
    /// A mistake of a file as a whole.
    pub fn in_file(file: impl Into<String>, message: impl Into<String>) -> Self {
        let (file, message) = (file.into(), message.into());
        Self { file, line: None, column: None, source_line: None, message, hint: None }
    }

    pub(super) fn place_at(sources: &Sources, place: YamlPlace, message: impl Into<String>) -> Self {
        let source = sources.get(place);
        let mut mistake = Self::in_file(source.name.clone(), message);
        if place.line > 0 {
            mistake.line = Some(place.line);
            mistake.column = Some(place.column);
            mistake.source_line = source_line(&source.text, place.line);
            if source.rendered {
                mistake.message.push_str(" (line and column refer to the rendered template)");
            }
        }
        mistake
    }

    pub(super) fn yaml(sources: &Sources, source: u16, error: YamlError) -> Self {
        let (line, column) = (error.line.unwrap_or(0), error.column.unwrap_or(1));
        Self::place_at(sources, YamlPlace { source, line, column }, error.message)
    }

    /// A mistake in a template in a YAML string.
    pub(super) fn template(sources: &Sources, node: &Node, error: &TemplateError) -> Self {
        let place = template_place(sources, node, error);
        Self::place_at(sources, place, format!("template: {}", error.message))
    }

    /// A mistake in a file that is a template as a whole.
    pub(super) fn whole_template(file: &str, text: &str, error: &TemplateError) -> Self {
        Self::in_text(file, text, error.line, error.column, format!("template: {}", error.message))
    }

    /// A mistake at a place of a text, with the line itself.
    pub fn in_text(
        file: &str,
        text: &str,
        line: Option<usize>,
        column: Option<usize>,
        message: impl Into<String>,
    ) -> Self {
        let source_line = line.and_then(|line| source_line(text, line));
        Self { line, column, source_line, ..Self::in_file(file, message) }
    }

    /// Adds a hint for fixing it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn did_you_mean<'a>(self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { hint: did_you_mean(name, known), ..self }
    }
}

/// Sorts mistakes by their places, and removes duplicates.
pub(super) fn in_order(sources: &Sources, mistakes: &mut Vec<Mistake>) {
    mistakes.sort_by_cached_key(|mistake| {
        (sources.position(&mistake.file), mistake.line.unwrap_or(0), mistake.column.unwrap_or(0))
    });
    mistakes.dedup();
}

pub(super) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near: Vec<String> = find_nearest(name, known).into_iter().map(|name| format!("`{name}`")).collect();
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

/// The known name that may be meant, or else all of them after `lead`.
pub fn suggest(name: &str, known: &[&str], lead: &str) -> String {
    if known.is_empty() {
        return format!("none is {lead}");
    }
    did_you_mean(name, known.iter().copied()).unwrap_or_else(|| format!("{lead}: {}", known.join(", ")))
}

/// The place in the file of an error in the template in a scalar.
pub(super) fn template_place(sources: &Sources, node: &Node, error: &TemplateError) -> YamlPlace {
    let place = node.place;
    let YamlTree::Scalar(Scalar { text, form }) = &node.tree else { return place };
    if place.line == 0 {
        return place;
    }
    // "Unexpected end" may be reported for the line after the last.
    let last = text.lines().count().saturating_sub(1);
    let below = error.line.map_or(0, |line| line.saturating_sub(1)).min(last);
    // The place of a block is that of its first non-empty line.
    let blank = text.bytes().take_while(|b| *b == b'\n' && *form == ScalarForm::Block).count();
    let line = (place.line + below).saturating_sub(blank);
    // Escapes and folding move columns, so a column is given only if the text is in the line as it is.
    let here = sources.get(place).text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let inner = text.lines().nth(below).unwrap_or_default();
    let offset = error.range.as_ref().and_then(|range| text.trim_end().get(..range.start));
    let offset = offset.map_or(0, |before| before.chars().rev().take_while(|c| *c != '\n').count());
    let column = here.find(inner).filter(|_| !inner.is_empty()).map(|at| here[..at].chars().count() + offset + 1);
    YamlPlace { line, column: column.unwrap_or(if below == 0 { place.column } else { 1 }), ..place }
}

fn source_line(text: &str, line: usize) -> Option<String> {
    const LONGEST: usize = 240;
    Some(make_visible(take_head(&mask_line(text, line)?, LONGEST)).into_owned())
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        write!(f, ": {}", self.message)?;
        if let (Some(line), Some(text)) = (self.line, &self.source_line) {
            write!(f, "\n  {line:>4} | {text}")?;
            if let Some(column) = self.column {
                // Tabs stay tabs, so that the caret is below its character.
                let before = text.chars().take(column.saturating_sub(1));
                let before: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
                write!(f, "\n       | {before}^")?;
            }
        }
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n       = {hint}"))
    }
}

impl fmt::Display for ConfigError {
    /// The first line is the reason: the only mistake, or their number and the first of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, _, ..] = self.mistakes.as_slice() else {
            return self.mistakes.iter().try_for_each(|mistake| write!(f, "{mistake}"));
        };
        let first = first.to_string();
        let first = first.lines().next().unwrap_or_default();
        write!(f, "the configuration has {} mistakes, the first at {first}", self.mistakes.len())?;
        self.mistakes.iter().try_for_each(|mistake| write!(f, "\n\n{mistake}"))
    }
}
