//! Completion: slash commands and their arguments at the start of a line, files of the workspace after `@`.

use super::commands::{COMMANDS, Completes, find};
use super::find::Finder;
use super::offered::Offer;
use crate::config::Mode;

/// Names that complete as arguments.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    pub models: Vec<String>,
    pub skills: Vec<String>,
    pub files: Finder,
}

/// The most files that complete a word.
const MOST_FILES: usize = 16;

/// Completes the word under the cursor. Returns where it begins (a byte of `line`), and what may replace it.
#[must_use]
pub fn offers(line: &str, cursor: usize, vocabulary: &Vocabulary) -> (usize, Vec<Offer>) {
    let typed = &line[..cursor];
    if let Some(at) = mention(typed) {
        return (at, vocabulary.files.offers(&typed[at..], MOST_FILES));
    }
    let Some(command) = typed.strip_prefix('/') else {
        return (cursor, Vec::new());
    };
    match command.split_once(' ') {
        None => {
            let names = COMMANDS.iter().flat_map(|command| command.names.iter().map(move |name| (command, name)));
            let offers = names.filter(|(_, name)| name.starts_with(command)).map(|(command, name)| Offer {
                shown: format!("/{name}"),
                inserted: format!("/{name}{}", if command.argument.is_empty() { "" } else { " " }),
            });
            (0, offers.collect())
        }
        Some((name, argument)) => {
            let words: Vec<&str> = match find(name).map(|command| command.completes) {
                Some(Completes::Commands) => COMMANDS.iter().map(|command| command.names[0]).collect(),
                Some(Completes::Models) => vocabulary.models.iter().map(String::as_str).collect(),
                Some(Completes::Modes) => Mode::ALL.map(Mode::name).to_vec(),
                Some(Completes::Skills) => vocabulary.skills.iter().map(String::as_str).collect(),
                Some(Completes::Nothing) | None => Vec::new(),
            };
            let offers = words.into_iter().filter(|word| word.starts_with(argument));
            let offers = offers.map(|word| Offer { shown: word.to_owned(), inserted: word.to_owned() });
            (cursor - argument.len(), offers.collect())
        }
    }
}

/// Returns where the `@` word at the end of `typed` begins, if there is one.
#[must_use]
pub fn mention(typed: &str) -> Option<usize> {
    let quoted = typed.rfind("@\"").filter(|at| !typed[at + 2..].contains('"'));
    let start =
        quoted.unwrap_or_else(|| typed.rfind(char::is_whitespace).map_or(0, |at| at + width_at(typed, at)));
    typed[start..].starts_with('@').then_some(start)
}

fn width_at(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inserted(line: &str, vocabulary: &Vocabulary) -> (usize, Vec<String>) {
        let (at, offers) = offers(line, line.len(), vocabulary);
        (at, offers.into_iter().map(|offer| offer.inserted).collect())
    }

    #[test]
    fn commands_and_their_arguments_complete_at_the_start_of_a_line() {
        let models = vec!["default".to_owned(), "demo".to_owned(), "fast".to_owned()];
        let skills = vec!["brew".to_owned(), "bake".to_owned()];
        let vocabulary = Vocabulary { models, skills, ..Vocabulary::default() };
        for (line, at, expected) in [
            ("/m", 0, vec!["/model ", "/mode "]),
            ("/mode e", 6, vec!["explore"]),
            ("/c", 0, vec!["/context", "/compact ", "/clear"]),
            ("/model de", 7, vec!["default", "demo"]),
            ("/help sk", 6, vec!["skill", "skills"]),
            ("/skill b", 7, vec!["brew", "bake"]),
            ("/skill brew x", 7, vec![]),
            ("/tools x", 7, vec![]),
            ("say /m", 6, vec![]),
        ] {
            let expected = (at, expected.into_iter().map(str::to_owned).collect());
            assert_eq!(inserted(line, &vocabulary), expected, "{line:?}");
        }
    }

    #[test]
    fn a_mention_begins_with_an_at_at_the_start_of_a_word() {
        for (typed, at) in [
            ("@", Some(0)),
            ("see @src/", Some(4)),
            ("見て @src/日", Some(7)),
            ("@\"my docs/a", Some(0)),
            ("@\"my docs/a b.md\" x", None),
            ("me@s", None),
        ] {
            assert_eq!(mention(typed), at, "{typed:?}");
        }
    }
}
