//! The text of a test file, and all its mistakes, each with its place and its line.

use crate::base::secrets::mask_line;
use crate::base::text::{self, find_nearest};
use crate::base::yaml::{Node, NodeError, YamlError, YamlPlace};
use crate::config::Mistake;

/// A file that is being read, and the mistakes found so far.
#[derive(Debug)]
pub(super) struct CaseSource<'t> {
    /// Its name in messages.
    file: &'t str,
    text: &'t str,
    pub mistakes: Vec<Mistake>,
}

impl<'t> CaseSource<'t> {
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, mistakes: Vec::new() }
    }

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
        known: impl IntoIterator<Item = &'k str> + Clone,
    ) {
        let near = find_nearest(name, known.clone());
        let hint = if near.is_empty() {
            format!("known: {}", known.into_iter().collect::<Vec<_>>().join(", "))
        } else {
            format!("did you mean `{}`?", near.join("` or `"))
        };
        self.wrong_with(place, format!("there is no {what} `{}`", text::one_line(name, 80)), hint);
    }

    pub fn yaml(&mut self, error: YamlError) {
        let mistake = self.mistake(error.line, error.column, error.message);
        self.mistakes.push(mistake);
    }

    /// Reads a node as a type; records a mistake if it is not one.
    pub fn read<T: serde::de::DeserializeOwned>(&mut self, node: &Node) -> Option<T> {
        let wrong = |NodeError { message, place }| (place.unwrap_or(node.place), message);
        node.read().map_err(wrong).map_err(|(place, message)| self.wrong(place, message)).ok()
    }

    /// The mistakes, in the order of the file.
    pub fn finish(mut self) -> Vec<Mistake> {
        self.mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        self.mistakes.dedup();
        self.mistakes
    }

    fn mistake(&self, line: Option<usize>, column: Option<usize>, message: String) -> Mistake {
        const LONGEST_LINE: usize = 240;
        let shown = line.and_then(|line| mask_line(self.text, line));
        Mistake {
            file: self.file.to_owned(),
            line,
            column,
            source_line: shown.map(|line| text::make_visible(text::take_head(&line, LONGEST_LINE)).into_owned()),
            message,
            hint: None,
        }
    }
}
