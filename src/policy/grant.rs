//! Grants: the calls that a person allows for the rest of a session, as narrow as possible and never more than was
//! shown.
//!
//! A grant is derived from a call. A later call is covered if everything derived from it was granted.

use std::collections::HashSet;
use std::fmt;

use crate::text;

use super::call::{Call, Configured, Line};
use super::shell::Simple;
use super::target::Target;

/// The calls that a person allows from here on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant(Vec<Item>);

/// All that was granted in a session.
#[derive(Debug, Clone, Default)]
pub struct Grants(HashSet<Item>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Item {
    /// These words; where it is open, any after them.
    Command { tool: String, words: Vec<String>, is_open: bool },
    /// This path, and no other.
    Path { tool: String, path: String },
    /// A tool with these arguments, and no others; shown as the command that they make.
    Call { tool: String, arguments: String, shown: String },
}

/// Programs whose first word names the action: the words after it may vary.
const WITH_SUBCOMMANDS: [&str; 11] =
    ["cargo", "go", "npm", "pnpm", "yarn", "bun", "uv", "pip", "dotnet", "git", "rustup"];

/// The subcommand whose operand names the script to run.
const RUN: &str = "run";

/// A longer line cannot be read at a glance.
const LONGEST: usize = 200;

impl Grants {
    /// Whether all of it was granted.
    #[must_use]
    pub fn cover(&self, grant: &Grant) -> bool {
        grant.0.iter().all(|item| self.0.contains(item))
    }

    pub fn add(&mut self, grant: &Grant) {
        self.0.extend(grant.0.iter().cloned());
    }
}

/// The grant that "always" would give for this call; `None` if there is no narrow one.
pub(super) fn offer(call: &Call<'_>) -> Option<Grant> {
    let items = match &call.line {
        Some(line) => of_line(call.tool, line)?,
        None => of_paths(call)?,
    };
    let grant = Grant(items);
    let shown = grant.to_string();
    let is_readable = shown.chars().count() <= LONGEST && !shown.chars().any(char::is_control);
    (is_readable && !grant.0.is_empty()).then_some(grant)
}

fn of_paths(call: &Call<'_>) -> Option<Vec<Item>> {
    let only_files = call.effects.iter().all(|effect| *effect == crate::contract::Effect::Files);
    if !only_files || call.writes.iter().any(|target| target.is_protected) {
        return None;
    }
    let touched = if call.writes.is_empty() { &call.reads } else { &call.writes };
    let path = |path: &String| Item::Path { tool: call.tool.to_owned(), path: path.clone() };
    Some(touched.iter().map(|target| path(&target.path)).collect())
}

fn of_line(tool: &str, line: &Line) -> Option<Vec<Item>> {
    if let Some(Configured { arguments, shown }) = &line.configured {
        let writes_protected =
            |(target, _): &(Option<Target>, _)| target.as_ref().is_none_or(|file| file.is_protected);
        let (tool, arguments, shown) = (tool.to_owned(), arguments.clone(), shown.clone());
        let granted = !line.files.iter().any(writes_protected);
        return granted.then(|| vec![Item::Call { tool, arguments, shown }]);
    }
    if !line.is_inside || line.script.doubt().is_some() {
        return None;
    }
    let all_proven = line.commands().all(|(_, is_proven)| is_proven);
    let commands = line.commands().filter(|(_, is_proven)| all_proven || !is_proven);
    let mut items: Vec<Item> = commands.map(|(command, _)| of_command(tool, command)).collect::<Option<_>>()?;
    for (target, opens) in &line.files {
        let target = target.as_ref().filter(|target| !target.is_protected)?;
        items.push(Item::Path { tool: opens.tool().to_owned(), path: target.path.clone() });
    }
    let mut seen = HashSet::new();
    items.retain(|item| seen.insert(item.clone()));
    Some(items)
}

fn of_command(tool: &str, command: &Simple) -> Option<Item> {
    if command.assigns {
        return None;
    }
    let is_name =
        |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'));
    let names: Vec<&str> = command
        .argv
        .iter()
        .map_while(|arg| arg.text())
        .take_while(|word| is_name(word) && !word.starts_with('-'))
        .collect();
    let fixed = match names.as_slice() {
        [program, RUN, _, ..] if WITH_SUBCOMMANDS.contains(program) && *program != "cargo" => Some(3),
        [program, RUN] if WITH_SUBCOMMANDS.contains(program) && *program != "cargo" => None,
        [program, _, ..] if WITH_SUBCOMMANDS.contains(program) => Some(2),
        _ => None,
    };
    let (words, is_open) = match fixed {
        Some(fixed) => (names[..fixed].iter().map(|word| (*word).to_owned()).collect(), true),
        None => (command.argv.iter().map(|arg| arg.text().map(str::to_owned)).collect::<Option<Vec<_>>>()?, false),
    };
    Some(Item::Command { tool: tool.to_owned(), words, is_open })
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            match item {
                Item::Command { tool, words, is_open } => {
                    write!(f, "{tool} `")?;
                    let words: Vec<String> = words.iter().map(|word| text::shell_word(word)).collect();
                    write!(f, "{}{}`", words.join(" "), if *is_open { " *" } else { "" })?;
                }
                Item::Path { tool, path } => write!(f, "{tool} `{path}`")?,
                Item::Call { tool, shown, .. } => write!(f, "{tool} `{shown}`, with these arguments alone")?,
            }
        }
        Ok(())
    }
}
