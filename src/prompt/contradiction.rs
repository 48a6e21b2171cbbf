//! Finds contradictions between a prompt and its agent's tools: the model would be told to use and not to use them.
//!
//! Two lists are compared with the tools: `forbidden` in the prompt's head (names of tools, or words such as `delete`
//! that may be in a tool's description), and the tools that the rendered text forbids outright (`ban`).

use crate::base::text::GlobPattern;

use super::ban::{Ban, find_bans};
use super::file::Prompt;

impl Prompt {
    /// One sentence for each tool (name and description) that the list `forbidden` of the head, or of a module's,
    /// forbids although the tool is on.
    pub fn forbidden(&self, tools: &[(&str, &str)]) -> Vec<String> {
        let own = self.head.forbidden.iter().flat_map(|word| {
            let word = word.trim();
            let place = self.place(Some(self.line_of("forbidden", word)));
            tools.iter().filter_map(move |(name, description)| {
                let sentence = find_offence(&word.to_lowercase(), name, description)?;
                Some(word_contradiction(&place, &format!("forbids `{word}`"), name, sentence))
            })
        });
        own.chain(self.modules().flat_map(|(_, module)| module.forbidden(tools))).collect()
    }

    /// One sentence for each tool that the prompt, as it was rendered, forbids in words although the tool is on. Lines
    /// of `instructions`, which the workspace brings along, are not the prompt's own.
    pub fn list_banned(&self, rendered: &str, instructions: &str, tools: &[(&str, &str)]) -> Vec<String> {
        let names: Vec<&str> = tools.iter().map(|(name, _)| *name).collect();
        let described = |name: &str| {
            let description =
                tools.iter().find(|(tool, _)| *tool == name).map_or("", |(_, description)| *description);
            split_sentences(description).next().unwrap_or_default()
        };
        let of_text = find_bans(rendered, &names).into_iter().filter_map(|Ban { tool, line }| {
            let at = self.body().lines().position(|own| own.trim() == line);
            if at.is_none() && instructions.lines().any(|other| other.trim() == line) {
                return None;
            }
            let place = self.place(at.map(|at| self.line_of_body(at)));
            Some(word_contradiction(&place, &format!("says \"{line}\""), tool, described(tool)))
        });
        of_text.collect()
    }

    fn place(&self, line: Option<usize>) -> String {
        match line {
            Some(line) if self.version.is_some() => format!("{}:{line}", self.origin),
            Some(line) => format!("{}, line {line}", self.origin),
            None => self.origin.clone(),
        }
    }
}

fn word_contradiction(place: &str, says: &str, tool: &str, sentence: &str) -> String {
    format!(
        "{place} {says}, but the tool `{tool}` is on (\"{sentence}\"): take one of them out, for the model is told both"
    )
}

/// The sentence of a tool's description that the word forbids.
fn find_offence<'a>(word: &str, name: &str, description: &'a str) -> Option<&'a str> {
    let is_named = GlobPattern::word(word).is_ok_and(|glob| glob.matches(name));
    let mut sentences = split_sentences(description);
    if is_named {
        return Some(sentences.next().unwrap_or_default());
    }
    sentences.find(|sentence| does_action(&sentence.to_lowercase(), word))
}

/// True if a sentence says that the tool does this: `delete` in `Deletes records`, not in `Does not delete`.
fn does_action(sentence: &str, word: &str) -> bool {
    let denies = ["not ", "never ", "n't ", "without ", "不", "无"].iter().any(|denial| sentence.contains(denial));
    let mut at_word = sentence.match_indices(word).filter(|(at, _)| {
        let before = sentence[..*at].chars().next_back();
        !word.is_ascii() || before.is_none_or(|before| !before.is_ascii_alphanumeric() && before != '_')
    });
    !denies && at_word.next().is_some()
}

fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(". ").flat_map(str::lines).map(str::trim).filter(|sentence| !sentence.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_head_are_held_against_names_and_descriptions() {
        let tools = [
            ("purge", "Deletes the records that match. Returns how many."),
            ("find_records", "Finds records; does not delete any."),
            ("undelete", "Brings records back."),
            ("清理", "删除记录。"),
        ];
        for (words, expected) in [
            ("delete", "purge"),
            ("find_*", "find_records"),
            ("records that", "purge"),
            ("删除", "清理"),
            ("elete", ""),
        ] {
            let text = format!("---\ndescription: d\nforbidden:\n  - {words}\n---\nYou help.\n");
            let prompt = Prompt::parse("p", "v1.0".parse().expect("a version"), "p/v1.0.md", text).expect("sound");
            let told = prompt.forbidden(&tools);
            assert_eq!(told.len(), usize::from(!expected.is_empty()), "{words}: {told:?}");
            if let Some(told) = told.first() {
                assert!(
                    told.starts_with("p/v1.0.md:4 forbids") && told.contains(&format!("`{expected}` is on")),
                    "{told}"
                );
            }
        }
    }
}
