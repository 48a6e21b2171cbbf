//! The user's slash commands: Markdown files in `commands/` of a config directory, each a message for the model with
//! placeholders for arguments. The text is data: nothing in it is rendered as a template, and nothing runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::loaded::Config;
use super::manifest::show_path;
use super::mistake::Mistake;
use super::through::CommandDir;
use crate::base::{frontmatter, text};

/// The keys of a head.
const KEYS: [&str; 3] = ["description", "argument-hint", "model"];

/// A command that a person or a project wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnCommand {
    /// The stem of its file, which is typed after the slash.
    pub name: String,
    /// One line for `/help`.
    pub about: String,
    /// The arguments as `/help` shows them; empty if it takes none.
    pub hint: String,
    /// The model of its turn; `None` uses the model of the chat.
    pub model: Option<String>,
    /// The message, before arguments are inserted.
    pub text: String,
    /// The file, for people.
    pub origin: String,
}

/// The commands that were found, by name, and the mistakes in their files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnCommands {
    pub found: Vec<OwnCommand>,
    /// Mistakes in the user's files.
    pub mistakes: Vec<Mistake>,
    /// Files that are left out without being mistakes of the user.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads the commands. A command of the user hides one of the project, and a nearer directory of the project hides
    /// a farther one. `is_taken` is true for the names of built-in commands, which hide all others.
    pub fn own_commands(&self, is_taken: impl Fn(&str) -> bool) -> OwnCommands {
        let mut all = OwnCommands::default();
        let mut by_name: BTreeMap<String, OwnCommand> = BTreeMap::new();
        let of_project = |wanted: bool| self.command_dirs.iter().filter(move |dir| dir.is_of_project == wanted);
        for dir in of_project(false).rev().chain(of_project(true).rev()) {
            let mut told = Vec::new();
            for path in list_files(dir, &mut told) {
                let origin = show_path(&path);
                let Some(command) = read_command(dir, &path, &origin, &mut told) else { continue };
                if is_taken(&command.name) {
                    all.warnings.push(format!("{origin} is not used: /{} is built in", command.name));
                } else if let Some(other) = by_name.get(&command.name) {
                    let other = &other.origin;
                    all.warnings.push(format!("{origin} is not used: {other} has the same name and wins"));
                } else {
                    by_name.insert(command.name.clone(), command);
                }
            }
            if dir.is_of_project {
                all.warnings.extend(told.iter().map(ToString::to_string));
            } else {
                all.mistakes.extend(told);
            }
        }
        all.found = by_name.into_values().collect();
        all
    }
}

/// The Markdown files of a directory, sorted.
fn list_files(dir: &CommandDir, told: &mut Vec<Mistake>) -> Vec<PathBuf> {
    let mut paths = match dir.through.list_files(&dir.dir) {
        Some(listed) => listed,
        None => match fs::read_dir(&dir.dir) {
            Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.path()).collect(),
            Err(error) => {
                told.push(Mistake::in_file(show_path(&dir.dir), format!("cannot be read: {error}")));
                return Vec::new();
            }
        },
    };
    paths.sort();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(['.', '_']) || name.ends_with('~') || name == "README.md" {
            return false;
        }
        let is_here = path.parent() == Some(&dir.dir) && !path.is_dir();
        let is_command = is_here && name.strip_suffix(".md").is_some_and(is_name);
        if !is_command {
            let hint = "a command is NAME.md, directly in commands/; a name has letters, digits, `-` and `_` only";
            told.push(Mistake::in_file(show_path(path), "is no command").hint(hint));
        }
        is_command
    });
    paths
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}

/// Reads one file. Mistakes in its head are reported, and the rest of it is used.
fn read_command(dir: &CommandDir, path: &Path, origin: &str, told: &mut Vec<Mistake>) -> Option<OwnCommand> {
    let text = match dir.through.read_text(path) {
        Ok(text) => text?,
        Err(why) => {
            told.push(Mistake::in_file(origin, why));
            return None;
        }
    };
    let document = match frontmatter::parse_frontmatter::<Map<String, Value>>(&text) {
        Ok(document) => document,
        Err(error) => {
            let mistake = Mistake::in_file(origin, error.message);
            told.push(Mistake { line: error.line, column: error.column, ..mistake });
            return None;
        }
    };
    let body = document.body.trim();
    if body.is_empty() {
        told.push(Mistake::in_file(origin, "has no text: the message for the model comes after the head"));
        return None;
    }
    for key in document.head.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        told.push(Mistake::in_file(origin, format!("`{key}` is not read")).did_you_mean(key, KEYS));
    }
    let mut value = |key: &str| match document.head.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text::one_line(text, 200),
        // `argument-hint: [PATH]` is a list to YAML.
        Some(Value::Array(items)) if key == "argument-hint" => {
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            format!("[{}]", text::one_line(&words.join(" "), 80))
        }
        Some(_) => {
            told.push(Mistake::in_file(origin, format!("`{key}` is not a text")));
            String::new()
        }
    };
    let [about, hint, model] = KEYS.map(&mut value);
    if dir.is_of_project && !model.is_empty() {
        told.push(Mistake::in_file(origin, "`model` is left out: a project cannot choose models"));
    }
    Some(OwnCommand {
        name: path.file_stem()?.to_str()?.to_owned(),
        about: if about.is_empty() { text::one_line(body.lines().next().unwrap_or_default(), 80) } else { about },
        hint,
        model: Some(model).filter(|model| !model.is_empty() && !dir.is_of_project),
        text: body.to_owned(),
        origin: origin.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::{Config, Env, LoadOptions, find_brought, load_config};
    use crate::files::workspace::Workspace;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    fn loaded(files: &[(&str, &str)], trust: bool) -> (tempfile::TempDir, Config) {
        let dir = tempfile::tempdir().expect("a directory");
        let root = crate::files::canonicalize(dir.path()).expect("it exists");
        for (path, text) in files {
            write(&root, path, text);
        }
        write(&root, "w/.git/HEAD", "x");
        let env = Env::from_pairs([("HOME", root.join("home").display().to_string())]);
        let workspace = Workspace::open(&root.join("w")).expect("a workspace");
        let brought = find_brought(&env, &workspace, None);
        let options = LoadOptions { brought, trust, ..LoadOptions::new(&env, &workspace) };
        let config = load_config(&options).expect("nothing is wrong with it");
        (dir, config)
    }

    const USER: &str = "home/.config/agent/commands";
    const PROJECT: &str = "w/.agent/commands";

    #[test]
    fn the_persons_own_commands_hide_those_of_a_trusted_project() {
        let files = [
            (
                format!("{USER}/review.md"),
                "---\ndescription: Mine.\nmodel: fast\nargument-hint: [PATH]\n---\nMine $1\n",
            ),
            (format!("{PROJECT}/review.md"), "Theirs\n"),
            (format!("{PROJECT}/ship.md"), "---\nmodel: dear\n---\nShip {{ it }}\n"),
            (format!("{PROJECT}/help.md"), "Not shown\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let (_dir, config) = loaded(&files, true);
        let all = config.own_commands(|name| name == "help");
        let rows: Vec<[&str; 4]> = all
            .found
            .iter()
            .map(|own| [own.name.as_str(), &own.about, &own.hint, own.model.as_deref().unwrap_or("-")])
            .collect();
        assert_eq!(rows, [["review", "Mine.", "[PATH]", "fast"], ["ship", "Ship {{ it }}", "", "-"]]);
        assert_eq!(all.found[0].text, "Mine $1");
        assert_eq!(all.mistakes, []);
        let told = all.warnings.join("\n");
        for part in [
            "help.md is not used: /help is built in",
            "has the same name and wins",
            "a project cannot choose models",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let (_dir, config) = loaded(&files, false);
        let names: Vec<String> = config.own_commands(|_| false).found.into_iter().map(|own| own.name).collect();
        assert_eq!(names, ["review"], "an untrusted project has none");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_place() {
        let files = [
            ("a.md", "---\ndescription: [x\n---\nA\n"),
            ("b.md", "---\ndescripton: x\n---\nB\n"),
            ("c.md", "---\ndescription: x\n---\n \n"),
            ("d.txt", "D"),
            ("e/f.md", "F"),
            ("g h.md", "G"),
            ("i.md", "---\ndescription: { a: 1 }\n---\nI\n"),
            ("README.md", "About these"),
            ("_draft.md", "Not yet"),
        ];
        let files: Vec<(String, &str)> =
            files.iter().map(|(name, text)| (format!("{USER}/{name}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let (_dir, config) = loaded(&files, false);
        let all = config.own_commands(|_| false);
        let names: Vec<&str> = all.found.iter().map(|own| own.name.as_str()).collect();
        assert_eq!(names, ["b", "i"]);
        let told: Vec<String> = all.mistakes.iter().map(ToString::to_string).collect();
        let expected = [
            ("d.txt", "is no command"),
            ("commands/e", "is no command"),
            ("g h.md", "is no command"),
            ("a.md:", ""),
            ("b.md", "did you mean `description`?"),
            ("c.md", "has no text"),
            ("i.md", "`description` is not a text"),
        ];
        assert_eq!(told.len(), expected.len(), "{told:#?}");
        for ((file, part), told) in expected.iter().zip(&told) {
            assert!(told.contains(file) && told.contains(part), "{file}: {told}");
        }
    }
}
