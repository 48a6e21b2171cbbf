//! The files of another agent in the home or in a project, and the entries that were found in them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::keys::KeyVariables;
use super::{EntryPlan, ForeignAgent, ImportEntry};
use crate::base::builtin;
use crate::base::frontmatter::split_head;
use crate::base::secrets::{Redactor, user_info, without_credentials};
use crate::files::regular::{LONGEST_FILE, Links, read_bytes};

/// A text without keys and credentials in addresses, as far as their shapes tell.
fn mask_text(text: &str) -> String {
    let is_variable = |line: &&str| user_info(line).is_some_and(|info| info.contains("{{"));
    let mask = |line| if is_variable(&line) { line.to_owned() } else { without_credentials(line, "***") };
    let lines: Vec<String> = text.split('\n').map(mask).collect();
    Redactor::default().redact(&lines.join("\n")).into_owned()
}

/// Why no file of the configuration can have this name, if so.
fn refuse_file(path: &Path) -> Option<&'static str> {
    /// Less than any file system takes, with room for the name of a temporary file.
    const LONGEST: usize = 100;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match &*stem {
        stem if stem.starts_with('.') => {
            Some("its name has no ASCII letter or digit, and the name of its file needs one")
        }
        stem if stem.len() > LONGEST => Some("its name is too long"),
        stem if stem.starts_with('_') || stem.starts_with("LICENSE") || stem == "README" => {
            Some("a file of its name is not read here")
        }
        _ if builtin::CONFIGS.get_file(path).is_some() => {
            Some("its name is that of a built-in one: give it another")
        }
        _ => None,
    }
}

/// Reads a text in one of the forms of data.
type ParseData = fn(&str) -> Result<Value, String>;

/// The home, or the project, while one agent's files are read.
pub(super) struct ForeignHome<'a> {
    pub agent: ForeignAgent,
    home: &'a Path,
    pub workspace: &'a Path,
    /// True if the files are those of the workspace, which others wrote.
    pub is_project: bool,
    /// Stands before the names of files that are written.
    pub prefix: String,
    /// Where the scripts of a plugin will be.
    pub plugin_root: Option<PathBuf>,
    /// The variables that stand for keys.
    pub keys: KeyVariables,
    pub entries: Vec<ImportEntry>,
}

impl<'a> ForeignHome<'a> {
    pub fn new(agent: ForeignAgent, home: &'a Path, workspace: &'a Path) -> Self {
        let (prefix, plugin_root, keys, entries) = (String::new(), None, KeyVariables::new(), Vec::new());
        Self { agent, home, workspace, is_project: false, prefix, plugin_root, keys, entries }
    }

    /// The name of the file for a thing of theirs; empty if there is none.
    pub fn name_file(&self, name: &str) -> String {
        self.add_prefix(clean_name(name))
    }

    /// The same for a command, whose name may have letters of any script.
    pub fn name_command(&self, name: &str) -> String {
        self.add_prefix(clean_letters(name, char::is_alphanumeric))
    }

    fn add_prefix(&self, name: String) -> String {
        if name.is_empty() || name.starts_with(&self.prefix) { name } else { format!("{}{name}", self.prefix) }
    }

    /// A text in which the variables of a plugin have their values.
    pub fn fill_root(&self, text: &str) -> String {
        match &self.plugin_root {
            Some(root) => text.replace("${CLAUDE_PLUGIN_ROOT}", &root.to_string_lossy()),
            None => text.to_owned(),
        }
    }

    fn show_path(&self, below: &str) -> String {
        if self.is_project { below.to_owned() } else { format!("~/{below}") }
    }

    /// True if links lead out of the project whose files are read.
    fn leads_out(&self, path: &Path) -> bool {
        self.is_project && crate::files::canonicalize(path).is_ok_and(|whole| !whole.starts_with(self.workspace))
    }

    /// True if the home is in a directory of a person's settings, or is it.
    pub fn is_within(&self, dir: &str) -> bool {
        match dir.strip_prefix('~') {
            Some(rest) => rest.trim_matches('/').is_empty(),
            None => self.home.starts_with(dir),
        }
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.home.join(below)
    }

    /// Adds an entry. What has the shape of a key is copied nowhere.
    pub fn add(&mut self, kind: &'static str, name: impl Into<String>, plan: EntryPlan, note: impl Into<String>) {
        let (name, note) = (name.into(), note.into());
        let has_key = |text: &String| mask_text(text) != *text;
        let refused = match &plan {
            EntryPlan::Write(path, _) => refuse_file(path),
            _ => None,
        };
        let (plan, note) = match plan {
            EntryPlan::Write(..) if refused.is_some() => (EntryPlan::Left, refused.unwrap_or_default().to_owned()),
            EntryPlan::Write(path, text) if has_key(&text) => {
                let what =
                    "what looks like a key in it is not copied: write `{{ env.NAME }}` where the file has `***`";
                let note = if note.is_empty() { what.to_owned() } else { format!("{note}; {what}") };
                (EntryPlan::Write(path, mask_text(&text)), note)
            }
            EntryPlan::List(_, lines) if lines.iter().any(has_key) => {
                (EntryPlan::Left, "what looks like a key in it is not copied".to_owned())
            }
            plan => (plan, note),
        };
        let (name, note) = (mask_text(&name), mask_text(&note));
        self.entries.push(ImportEntry { agent: self.agent, kind, name, plan, note });
    }

    pub fn leave(&mut self, kind: &'static str, name: impl Into<String>, why: impl Into<String>) {
        self.add(kind, name, EntryPlan::Left, why);
    }

    /// A setting that has no counterpart here.
    pub fn leave_unknown(&mut self, key: &str) {
        self.leave("setting", key, "nothing here corresponds to it");
    }

    /// A text file; `None` if it does not exist. One that cannot be read is an entry.
    pub fn read_path(&mut self, path: &Path) -> Option<String> {
        if self.leads_out(path) {
            self.leave("file", path.display().to_string(), "a link leads out of the workspace");
            return None;
        }
        let links = if path.starts_with(self.workspace) { Links::Refuse } else { Links::Follow };
        match read_bytes(path, links, LONGEST_FILE) {
            Ok(bytes) => {
                bytes.map(|bytes| String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').to_owned())
            }
            Err(why) => {
                self.leave("file", path.display().to_string(), why);
                None
            }
        }
    }

    /// An object in a file of this form.
    pub fn read_object(&mut self, below: &str, parse: ParseData) -> Option<Map<String, Value>> {
        match parse(&self.read_path(&self.path(below))?) {
            Ok(Value::Object(object)) => Some(object),
            otherwise => {
                let why = otherwise.err().unwrap_or_else(|| "it holds no settings".to_owned());
                self.leave("file", self.show_path(below), why);
                None
            }
        }
    }

    /// The files of directories, by name: the name without the ending, and the path.
    pub fn list(&self, folders: &[String], ending: &str) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        for folder in folders.iter().map(|folder| self.path(folder)).filter(|path| !self.leads_out(path)) {
            list_into(&folder, "", ending, &mut found);
        }
        found.sort();
        found
    }

    /// The directories in directories, by name.
    pub fn list_dirs(&self, folders: &[String]) -> Vec<(String, PathBuf)> {
        let listings = folders.iter().flat_map(|folder| fs::read_dir(self.path(folder)));
        let dirs = listings
            .flatten()
            .flatten()
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
        let mut dirs: Vec<_> = dirs.filter(|(_, path)| path.is_dir() && !self.leads_out(path)).collect();
        dirs.sort();
        dirs
    }

    /// Instructions for every workspace.
    pub fn take_instructions(&mut self, below: &str) {
        let Some(text) = self.read_path(&self.path(below)).filter(|text| !text.trim().is_empty()) else { return };
        if self.is_project {
            return self.leave("instructions", below, "put what it says into AGENTS.md");
        }
        self.add("instructions", self.show_path(below), EntryPlan::Write("AGENTS.md".into(), text), "");
    }

    /// Skills in directories of their own.
    pub fn take_skills(&mut self, folders: &[String]) {
        for (name, path) in self.list_dirs(folders) {
            let Some(text) = self.read_path(&path.join("SKILL.md")) else { continue };
            let head = split_head(&text).ok().and_then(|parts| parse_yaml(parts.head?).ok()).unwrap_or_default();
            let is_ours = builtin::SKILLS.get_dir(head["name"].as_str().unwrap_or(&name)).is_some();
            let note = if is_ours { "it stands in for the built-in one of its name" } else { "" };
            let to = Path::new("skills").join(&name);
            self.add("skill", name, EntryPlan::Copy(to, path), note);
        }
    }
}

/// The name that the table shows: theirs where no file has it.
pub(super) fn choose_name(file: &str, theirs: &str) -> String {
    if file.is_empty() { theirs.to_owned() } else { file.to_owned() }
}

/// A name as files of the configuration may have it.
pub(super) fn clean_name(name: &str) -> String {
    clean_letters(name, |c| c.is_ascii_alphanumeric())
}

fn clean_letters(name: &str, is_letter: impl Fn(char) -> bool) -> String {
    let plain = |c: char| if is_letter(c) || matches!(c, '-' | '_') { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    name.trim_matches('-').to_owned()
}

/// Files below a directory, two levels deep; a directory's name stands before a dash.
fn list_into(dir: &Path, before: &str, ending: &str, found: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && before.is_empty() {
            list_into(&path, &format!("{name}-"), ending, found);
        } else if let Some(stem) = name.strip_suffix(ending).filter(|_| path.is_file()) {
            found.push((format!("{before}{stem}"), path));
        }
    }
}

/// JSON that may have comments and commas before its ends.
pub(super) fn parse_commented(text: &str) -> Result<Value, String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut in_text = false;
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('\\', _) if in_text => {
                plain.push(c);
                plain.extend(rest.next());
            }
            ('"', _) => {
                in_text = !in_text;
                plain.push(c);
            }
            ('/', Some('/')) if !in_text => while rest.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) if !in_text => {
                rest.next();
                let mut last = ' ';
                for c in rest.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            ('}' | ']', _) if !in_text => {
                let end = plain.trim_end().len();
                if plain[..end].ends_with(',') {
                    plain.truncate(end - 1);
                }
                plain.push(c);
            }
            _ => plain.push(c),
        }
    }
    serde_json::from_str(&plain).map_err(|error| error.to_string())
}

pub(super) fn parse_yaml(text: &str) -> Result<Value, String> {
    crate::base::yaml::parse_document(text).map_err(|error| error.to_string())
}

pub(super) fn parse_toml(text: &str) -> Result<Value, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_last_commas_are_no_part_of_the_data() {
        let text = "{ // one\n \"a\": \"// no /* comment\\\" */\", /* two\n, */ \"b\": [1, 2, ], }\n";
        assert_eq!(parse_commented(text), Ok(json!({"a": "// no /* comment\" */", "b": [1, 2]})));
        assert!(parse_commented("{ \"a\": }").is_err());
    }
}
