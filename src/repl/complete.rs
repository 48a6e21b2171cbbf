//! Completion: slash commands and their arguments at the start of a line, paths of the workspace after `@`.

use std::path::{Path, PathBuf};

use super::commands::{COMMANDS, Completes, find};
use crate::config::Mode;
use crate::text;

/// Names that complete as arguments.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
    pub models: Vec<String>,
    pub skills: Vec<String>,
    /// The directory in which `@` paths start.
    pub workspace: PathBuf,
}

/// One completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its text in the list.
    pub shown: String,
    /// Its text in the line.
    pub inserted: String,
}

/// Completes the word under the cursor. Returns where it begins (a byte of `line`), and what may replace it.
#[must_use]
pub fn offers(line: &str, cursor: usize, vocabulary: &Vocabulary) -> (usize, Vec<Offer>) {
    let typed = &line[..cursor];
    if let Some(at) = mention(typed) {
        return (at, paths(&typed[at..], &vocabulary.workspace));
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
fn mention(typed: &str) -> Option<usize> {
    let quoted = typed.rfind("@\"").filter(|at| !typed[at + 2..].contains('"'));
    let start =
        quoted.unwrap_or_else(|| typed.rfind(char::is_whitespace).map_or(0, |at| at + width_at(typed, at)));
    typed[start..].starts_with('@').then_some(start)
}

fn width_at(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

/// Lists files and directories that continue `word` (`@src/ma`). Lists hidden ones only after a dot.
fn paths(word: &str, workspace: &Path) -> Vec<Offer> {
    const MOST: usize = 500;
    let path = word.trim_start_matches('@').trim_start_matches('"');
    let (dir, prefix) = path.rsplit_once('/').map_or(("", path), |(dir, prefix)| (dir, prefix));
    let base = if path.starts_with('/') { Path::new("/").join(dir) } else { workspace.join(dir) };
    let Ok(entries) = std::fs::read_dir(base) else {
        return Vec::new();
    };
    let mut offers: Vec<Offer> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !prefix.starts_with('.');
            // A name that would garble the line cannot be typed either.
            if hidden || !name.starts_with(prefix) || text::visible(&name) != name || name.contains(['"', '\n']) {
                return None;
            }
            let is_dir = std::fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir());
            let slash = if is_dir { "/" } else { "" };
            let parent = &path[..path.len() - prefix.len()];
            let whole = format!("{parent}{name}{slash}");
            // A directory stays open, so that completion goes on inside it.
            let inserted = match (whole.contains(char::is_whitespace) || word.starts_with("@\""), is_dir) {
                (false, _) => format!("@{whole}"),
                (true, true) => format!("@\"{whole}"),
                (true, false) => format!("@\"{whole}\""),
            };
            Some(Offer { shown: format!("{name}{slash}"), inserted })
        })
        .collect();
    offers.sort_by(|a, b| a.shown.cmp(&b.shown));
    offers.truncate(MOST);
    offers
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
    fn paths_complete_after_an_at() {
        let dir = tempfile::tempdir().expect("a directory for the test");
        for name in ["src/main.rs", "src/日本語.rs", "my docs/a b.md", ".hidden"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("created");
            std::fs::write(path, "").expect("written");
        }
        let vocabulary = Vocabulary { workspace: dir.path().to_path_buf(), ..Vocabulary::default() };
        for (line, at, expected) in [
            ("@", 0, vec!["@\"my docs/", "@src/"]),
            ("see @src/", 4, vec!["@src/main.rs", "@src/日本語.rs"]),
            ("見て @src/日", 7, vec!["@src/日本語.rs"]),
            ("@\"my docs/a", 0, vec!["@\"my docs/a b.md\""]),
            ("@.h", 0, vec!["@.hidden"]),
            ("me@s", 4, vec![]),
        ] {
            let expected = (at, expected.into_iter().map(str::to_owned).collect());
            assert_eq!(inserted(line, &vocabulary), expected, "{line:?}");
        }
    }
}
