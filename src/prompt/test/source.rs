//! The text of a test file, and all its mistakes, each with its place and its line.

use crate::base::text;
use crate::base::yaml::{self, Node, NodeError, YamlError, YamlPlace};
use crate::config::{Mistake, suggest};

/// A file that is being read, and the mistakes found so far.
#[derive(Debug)]
pub(super) struct CaseSource<'t> {
    /// Its name in messages.
    pub file: &'t str,
    text: &'t str,
    pub mistakes: Vec<Mistake>,
}

/// Reads a whole file with `read`; `file` is its name in mistakes.
///
/// # Errors
/// The file is wrong; the error has all mistakes, in the order of the file.
pub(super) fn read_file<'t, T>(
    file: &'t str,
    text: &'t str,
    read: impl FnOnce(&mut CaseSource<'t>, &Node) -> T,
) -> Result<T, Vec<Mistake>> {
    let mut source = CaseSource { file, text, mistakes: Vec::new() };
    match yaml::tree_of_firsts(text, 0) {
        Ok((node, duplicates)) => {
            for error in duplicates {
                source.yaml(error);
            }
            let found = read(&mut source, &node);
            if source.mistakes.is_empty() {
                return Ok(found);
            }
        }
        Err(error) => source.yaml(error),
    }
    source.mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
    source.mistakes.dedup();
    Err(source.mistakes)
}

impl CaseSource<'_> {
    pub fn wrong(&mut self, place: YamlPlace, message: impl Into<String>) {
        let mistake = self.mistake(Some(place.line), Some(place.column), message.into());
        self.mistakes.push(mistake);
    }

    /// Records a mistake with a hint.
    pub fn wrong_with(&mut self, place: YamlPlace, message: impl Into<String>, hint: impl Into<String>) {
        let mistake = self.mistake(Some(place.line), Some(place.column), message.into());
        self.mistakes.push(mistake.hint(hint));
    }

    /// Records an unknown name, with the known ones.
    pub fn report_unknown<'k>(
        &mut self,
        place: YamlPlace,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        let known: Vec<&str> = known.into_iter().collect();
        let hint = suggest(name, &known, "known");
        self.wrong_with(place, format!("there is no {what} `{}`", text::one_line(name, 80)), hint);
    }

    fn yaml(&mut self, error: YamlError) {
        let mistake = self.mistake(error.line, error.column, error.message);
        self.mistakes.push(mistake);
    }

    /// Reads a node as a type; records a mistake if it is not one.
    pub fn read<T: serde::de::DeserializeOwned>(&mut self, node: &Node) -> Option<T> {
        let mut wrong = |NodeError { message, place }| self.wrong(place.unwrap_or(node.place), message);
        node.read().map_err(&mut wrong).ok()
    }

    fn mistake(&self, line: Option<usize>, column: Option<usize>, message: String) -> Mistake {
        Mistake::in_text(self.file, self.text, line, column, message)
    }
}
