//! Searches the logs of sessions for words. There is no index: a log is scanned, and only lines that contain the words
//! are parsed.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::entry::LogLine;
use super::error::SessionError;
use super::lines::{LogLines, contains_ignoring_case};
use super::listing::{SessionSummary, open_log};
use super::store::Store;
use crate::base::spelling::spell;
use crate::base::text;
use crate::conversation::message::Author;

/// The most lines of one session that are shown.
const SHOWN: usize = 3;
/// The columns of a line that are shown, and those of them before the words.
const WIDTH: usize = 120;
const BEFORE: usize = 40;

/// A session that contains the words.
#[derive(Debug, Serialize)]
pub struct FoundSession {
    #[serde(flatten)]
    pub summary: SessionSummary,
    /// The number of texts that contain them.
    pub hits: usize,
    /// The first of them.
    pub lines: Vec<FoundWords>,
}

/// A line with the words.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct FoundWords {
    pub by: WordsBy,
    pub line: String,
}

/// Whose words they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WordsBy {
    User,
    Assistant,
    Tool,
}

impl WordsBy {
    /// `user`, `assistant`, `tool`.
    pub fn word(self) -> &'static str {
        spell(&self)
    }
}

impl Store {
    /// The sessions of a workspace, or of all, that contain `words`, ignoring the case of ASCII letters; those written
    /// last first. `by` asks for the words of one side alone.
    ///
    /// # Errors
    /// The store cannot be read. Logs that cannot be read are left out.
    pub fn search(
        &self,
        words: &str,
        by: Option<WordsBy>,
        workspace: Option<&Path>,
        now: Timestamp,
    ) -> Result<Vec<FoundSession>, SessionError> {
        // As the words stand in the JSON of a line.
        let json = serde_json::to_string(words).unwrap_or_default();
        let needle = json.trim_matches('"').as_bytes();
        let mut found = Vec::new();
        for summary in self.list(workspace, now)?.sessions {
            let (mut hits, mut lines) = (0, Vec::new());
            let Ok((file, _)) = open_log(&summary.path) else { continue };
            let mut log = LogLines::new(file);
            while let Ok(Some(line)) = log.read() {
                if !contains_ignoring_case(line, needle) {
                    continue;
                }
                let Ok(parsed) = LogLine::parse(line) else { continue };
                for (of, text) in list_texts(&parsed) {
                    let line = text.lines().find(|line| contains_ignoring_case(line.as_bytes(), words.as_bytes()));
                    if by.is_some_and(|by| by != of) {
                        continue;
                    }
                    if let Some(line) = line {
                        hits += 1;
                        if lines.len() < SHOWN {
                            lines.push(FoundWords { by: of, line: cut_around(line, words) });
                        }
                    }
                }
            }
            if hits > 0 {
                found.push(FoundSession { summary, hits, lines });
            }
        }
        Ok(found)
    }
}

/// The texts of a line of a log, and whose they are.
fn list_texts(line: &LogLine) -> Vec<(WordsBy, String)> {
    match line {
        LogLine::Said { said, .. } if said.author == Author::Person => {
            said.texts().map(|text| (WordsBy::User, text.to_owned())).collect()
        }
        LogLine::Reply { step, .. } => {
            let calls = step.calls().map(|call| (WordsBy::Assistant, call.request.arguments.clone()));
            std::iter::once((WordsBy::Assistant, step.text())).chain(calls).collect()
        }
        LogLine::Answer { answer, .. } => vec![(WordsBy::Tool, answer.content.clone())],
        _ => Vec::new(),
    }
}

/// The part of a line around the words.
fn cut_around(line: &str, words: &str) -> String {
    let at = line.to_ascii_lowercase().find(&words.to_ascii_lowercase()).unwrap_or(0);
    let from = line[..at].char_indices().rev().nth(BEFORE).map_or(0, |(from, _)| from);
    let cut = text::one_line(&line[from..], WIDTH);
    if from > 0 { format!("…{cut}") } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_around_the_words() {
        assert_eq!(cut_around("short words", "WORDS"), "short words");
        let long = format!("{} 重试 {}", "a ".repeat(100), "b ".repeat(100));
        let cut = cut_around(&long, "重试");
        assert!(cut.starts_with('…') && cut.contains("重试") && text::count_columns(&cut) <= WIDTH + 1, "{cut}");
    }
}
