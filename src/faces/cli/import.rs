//! `agent import`: takes over what a person set up for another agent. A table first, then what is new is written.

use std::ffi::OsStr;
use std::io::{self, BufRead, Write as _};
use std::iter;
use std::path::Path;

use crate::base::text::count_noun;
use crate::config::{
    EntryPlan, EntryState, ForeignAgent, ImportEntry, PROJECT_FOLDER, read_setups, settle_entries, write_entry,
};
use crate::faces::chat;
use crate::files;
use crate::screen::terminal;

use super::setup::CliSetup;
use super::{CommandFailure, CommandOutcome, exit, note_progress, print_table, print_visible};

pub(super) fn import_setup(
    setup: &CliSetup,
    source: Option<ForeignAgent>,
    is_project: bool,
    dry_run: bool,
) -> CommandOutcome {
    let workspace = setup.workspace()?;
    let dirs = setup.env.dirs();
    // What the workspace brings along is taken only when a person names it.
    let own = ForeignAgent::ALL.into_iter().filter(|agent| *agent != ForeignAgent::McpJson);
    let agents = source.map_or_else(|| own.collect(), |agent| vec![agent]);
    let mut found = read_setups(&agents, &dirs.home, workspace.root(), is_project);
    found.iter_mut().for_each(leave_hidden);
    let (from, to) = if is_project {
        (workspace.root(), workspace.root().join(PROJECT_FOLDER))
    } else {
        (&*dirs.home, dirs.config)
    };
    if found.is_empty() {
        let of = source.map_or("another agent", ForeignAgent::word);
        note_progress(&format!("Nothing of {of} was found in {}.", from.display()));
        return Ok(exit::DONE);
    }
    // Others made the workspace: nothing is written through their links.
    let folders = ["agents", "commands", "hooks", "mcp", "models", "skills"].map(|folder| to.join(folder));
    let leads_out = |dir: &Path| {
        dir.is_symlink() || files::canonicalize(dir).is_ok_and(|whole| !whole.starts_with(workspace.root()))
    };
    if let Some(link) = iter::once(&to).chain(&folders).find(|dir| is_project && leads_out(dir)) {
        let why = format!("{} is a link, and nothing is written through it", link.display());
        return Err(CommandFailure::word(exit::CONFIGURATION, why));
    }
    let states = settle_entries(&found, &to);
    let rows: Vec<_> = found.iter().zip(&states).map(|(entry, state)| write_row(entry, *state)).collect();
    print_entries(&rows)?;
    let new: Vec<&ImportEntry> = found
        .iter()
        .zip(&states)
        .filter(|(_, state)| **state == EntryState::New)
        .map(|(entry, _)| entry)
        .collect();
    let count = count_noun(new.len() as u64, "entry is", "entries are");
    if dry_run {
        for entry in new {
            if let EntryPlan::Write(to, text) = &entry.plan {
                print_visible(&format!("\n# {}\n{}\n", to.display(), text.trim_end()))?;
            }
        }
        note_progress(&format!("{count} new. Nothing was written."));
        return Ok(exit::DONE);
    }
    if new.is_empty() {
        note_progress("Nothing is new.");
        return Ok(exit::DONE);
    }
    if !is_wanted(&format!("{count} new. Write them to {}?", to.display()))? {
        note_progress("Nothing was written.");
        return Ok(exit::DONE);
    }
    let failed = |why| CommandFailure::word(exit::FAILED, why);
    for entry in &new {
        write_entry(entry, &new, &to).map_err(failed)?;
    }
    let next = if is_project { "a chat asks whether they are trusted" } else { "`agent config check` reads them" };
    note_progress(&format!("{count} in {} now; {next}.", to.display()));
    Ok(exit::DONE)
}

/// A command of the name of a built-in one would never be used.
fn leave_hidden(entry: &mut ImportEntry) {
    let EntryPlan::Write(to, _) = &entry.plan else { return };
    let name = to.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    if entry.kind == "command" && chat::is_built_in(name) {
        entry.note = format!("/{name} is built in");
        entry.plan = EntryPlan::Left;
    }
}

pub(super) fn write_row(entry: &ImportEntry, state: EntryState) -> [String; 5] {
    let fate = match (&entry.plan, state) {
        (EntryPlan::Left, _) => "not possible",
        (EntryPlan::Used, _) => "used",
        (_, EntryState::Same) => "there already",
        (_, EntryState::Differs) => "yours stays",
        (EntryPlan::Copy(..), _) => "taken",
        _ if entry.note.is_empty() => "taken",
        _ => "rewritten",
    };
    let note = match (&entry.plan, state) {
        (EntryPlan::List(list, lines), EntryState::Differs) => {
            format!("add to `{}` in agent.yaml: {}", list.keys().join("."), lines.join(", "))
        }
        (EntryPlan::Write(to, _), EntryState::Differs) => format!("{} is another one", to.display()),
        _ => entry.note.clone(),
    };
    [entry.agent.word().to_owned(), entry.kind.to_owned(), entry.name.clone(), fate.to_owned(), note]
}

/// Prints a table whose last column is a note. On a terminal, whose edge would cut notes, they stand below it.
pub(super) fn print_entries<const N: usize>(rows: &[[String; N]]) -> CommandOutcome {
    if !terminal::stdout_is_terminal() {
        return print_table(rows);
    }
    let noted: Vec<&[String; N]> =
        rows.iter().filter(|row| row.last().is_some_and(|note| !note.is_empty())).collect();
    let mark = |row: &[String; N]| {
        let mut row = row.clone();
        if let Some(last) = row.last_mut() {
            *last = if last.is_empty() { String::new() } else { "*".to_owned() };
        }
        row
    };
    print_table(&rows.iter().map(mark).collect::<Vec<_>>())?;
    for row in noted {
        let [.., name, _, note] = row.as_slice() else { continue };
        print_visible(&format!("* {name}: {note}\n"))?;
    }
    Ok(exit::DONE)
}

/// Asks on a terminal; elsewhere the command is the answer.
pub(super) fn is_wanted(question: &str) -> io::Result<bool> {
    if !terminal::has_person() {
        return Ok(true);
    }
    write!(io::stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
