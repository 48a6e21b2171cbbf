//! Grants: the calls that a person allows for the rest of a session, as narrow as possible and never more than what
//! was shown.
//!
//! A grant is derived from a call. A later call is covered if everything derived from it was granted.

use std::collections::HashSet;
use std::fmt;

use crate::base::text;

use super::call::{Configured, LineCommand, ParsedLine, ProposedCall};
use super::habits::changes_files;
use super::shell::Simple;
use super::target::{PathTarget, Presence};

/// The calls that a person allows from here on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant(Vec<GrantItem>);

/// Everything that was granted in a session.
#[derive(Debug, Clone, Default)]
pub struct SessionGrants(HashSet<GrantItem>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum GrantItem {
    /// These words, in this directory of the workspace; `None` is any path inside the workspace.
    Command { tool: String, dir: String, words: Vec<Option<String>> },
    /// This path, and no other.
    Path { tool: String, path: String },
    /// This host, with any address on it.
    Host { tool: String, host: String },
    /// A tool with these arguments, and no others; shown as the command that they make.
    Call { tool: String, arguments: String, shown: String },
}

/// The placeholder for a path in the shown text.
const ANY_PATH: &str = "PATH";

/// A longer line cannot be read at a glance.
const LONGEST: usize = 200;

impl SessionGrants {
    /// True if all of it was granted.
    pub fn cover(&self, grant: &Grant) -> bool {
        grant.0.iter().all(|item| self.0.contains(item))
    }

    pub fn add(&mut self, grant: &Grant) {
        self.0.extend(grant.0.iter().cloned());
    }
}

/// The grant that "always" would give for this call; `None` if there is no narrow one.
pub(super) fn offer_grant(call: &ProposedCall<'_>) -> Option<Grant> {
    let items = match &call.line {
        Some(line) => of_line(call.tool, line)?,
        None => match &call.host {
            Some(host) => vec![GrantItem::Host { tool: call.tool.to_owned(), host: host.clone() }],
            None => of_paths(call)?,
        },
    };
    let grant = Grant(items);
    let shown = grant.to_string();
    let is_readable = shown.chars().count() <= LONGEST && !shown.chars().any(char::is_control);
    (is_readable && !grant.0.is_empty()).then_some(grant)
}

fn of_paths(call: &ProposedCall<'_>) -> Option<Vec<GrantItem>> {
    let only_files = call.effects.iter().all(|effect| *effect == crate::config::ToolEffect::Files);
    if !only_files || call.writes.iter().any(|target| target.is_protected) {
        return None;
    }
    let touched = if call.writes.is_empty() { &call.reads } else { &call.writes };
    let path = |path: &String| GrantItem::Path { tool: call.tool.to_owned(), path: path.clone() };
    Some(touched.iter().map(|target| path(&target.path)).collect())
}

fn of_line(tool: &str, line: &ParsedLine) -> Option<Vec<GrantItem>> {
    if let Some(Configured { arguments, shown }) = &line.configured {
        let writes_protected =
            |(target, _): &(Option<PathTarget>, _)| target.as_ref().is_none_or(|file| file.is_protected);
        let (tool, arguments, shown) = (tool.to_owned(), arguments.clone(), shown.clone());
        let granted = !line.files.iter().any(writes_protected);
        return granted.then(|| vec![GrantItem::Call { tool, arguments, shown }]);
    }
    if !line.is_inside || line.script.doubt().is_some() {
        return None;
    }
    let dir = line.dir.as_ref()?;
    let is_harmless = |part: &LineCommand| part.is_harmless();
    let all_harmless = line.commands().all(|(_, part)| is_harmless(part));
    // What a command is fed with decides what it does, and is not among its words, unless they name the files it changes.
    let decides = |command: &Simple| command.inside.is_some() || !changes_files(command);
    let is_fed =
        |(command, part): (&Simple, &LineCommand)| command.is_fed && decides(command) && !is_harmless(part);
    if line.commands().any(is_fed) || line.script.has_document && !all_harmless {
        return None;
    }
    let commands = line.commands().filter(|(_, part)| all_harmless || !is_harmless(part));
    let items = commands.map(|(command, part)| of_command(tool, dir, command, part));
    let mut items: Vec<GrantItem> = items.collect::<Option<_>>()?;
    for (target, opens) in &line.files {
        let target = target.as_ref().filter(|target| !target.is_protected)?;
        items.push(GrantItem::Path { tool: opens.tool().to_owned(), path: target.path.clone() });
    }
    let mut seen = HashSet::new();
    items.retain(|item| seen.insert(item.clone()));
    Some(items)
}

/// The exact words, except for paths inside the workspace.
fn of_command(tool: &str, dir: &str, command: &Simple, part: &LineCommand) -> Option<GrantItem> {
    if !command.assigned.is_empty() || command.argv.is_empty() {
        return None;
    }
    // A word without a slash could name an action.
    let is_path = |word: &str| {
        let is_inside = |target: &PathTarget| {
            target.given == word && target.is_inside() && !target.is_protected && target.presence == Presence::Yes
        };
        word.contains('/') && !word.starts_with('-') && part.named.iter().any(is_inside)
    };
    let words = command.argv.iter().enumerate().map(|(at, arg)| {
        let word = arg.text()?;
        Some((at == 0 || command.inside.is_some() || !is_path(word)).then(|| word.to_owned()))
    });
    Some(GrantItem::Command { tool: tool.to_owned(), dir: dir.to_owned(), words: words.collect::<Option<_>>()? })
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            match item {
                GrantItem::Command { tool, dir, words } => {
                    let any = if words.contains(&None) { " with any PATH inside the workspace" } else { "" };
                    let word =
                        |word: &Option<String>| word.as_deref().map_or(ANY_PATH.to_owned(), text::shell_word);
                    let words: Vec<String> = words.iter().map(word).collect();
                    write!(f, "{tool} `{}`{any}", words.join(" "))?;
                    if dir != "." {
                        write!(f, " in `{dir}`")?;
                    }
                }
                GrantItem::Host { tool, host } => write!(f, "{tool} from {host}")?,
                GrantItem::Path { tool, path } => write!(f, "{tool} `{path}`")?,
                GrantItem::Call { tool, shown, .. } => write!(f, "{tool} `{shown}`, with these arguments alone")?,
            }
        }
        Ok(())
    }
}
