//! `agent key set / list / remove`: keys of providers that a person pastes.

use std::io::{self, BufRead, IsTerminal, Read};

use crate::base::text;
use crate::config::{StoredKeys, suggest};
use crate::model::catalogue::providers::{PROVIDERS, Provider};
use crate::screen::terminal;

use super::args::KeyAction;
use super::setup::CliSetup;
use super::signals::Signals;
use super::{CommandFailure, CommandOutcome, exit, print_table, print_text, warn_person};

/// The most bytes of a key.
const LONGEST: u64 = 64 * 1024;

pub(super) fn run_key(setup: &CliSetup, action: KeyAction) -> CommandOutcome {
    let keys = StoredKeys::open(&setup.env.dirs().data);
    let failed = |why: &dyn std::fmt::Display| {
        CommandFailure::word(exit::FAILED, format!("{}: {why}", keys.path().display()))
    };
    match action {
        KeyAction::List => {
            let stored = keys.read().map_err(|why| failed(&why))?;
            let rows = PROVIDERS.iter().filter_map(|provider| {
                let variable = provider.keys.iter().find(|name| setup.env.get(name).is_some())?;
                let place = match (stored.get(*variable), setup.env.get(variable)) {
                    (Some(kept), Some(key)) if kept.reveal() == key => "stored",
                    (Some(_), _) => "environment (the stored one is not used)",
                    (None, _) => "environment",
                };
                Some([provider.id.to_owned(), (*variable).to_owned(), place.to_owned()])
            });
            let rows: Vec<[String; 3]> = rows.collect();
            if rows.is_empty() {
                return print_text("No key is set. `agent key set PROVIDER` keeps one.\n");
            }
            print_table(&rows)
        }
        KeyAction::Set { provider } => {
            let (provider, variable) = find_provider(&provider)?;
            let stored = keys.read().map_err(|why| failed(&why))?;
            let key = read_key(provider)?;
            keys.put(variable, Some(&key)).map_err(|error| failed(&error))?;
            let is_stored = |set: &str| stored.get(variable).is_some_and(|kept| kept.reveal() == set);
            if setup.env.get(variable).is_some_and(|set| !is_stored(set)) {
                warn_person(&format!("{variable} is set in the environment and counts before the stored key"));
            }
            print_text(format!("The key of {} is kept in {}.\n", provider.name, keys.path().display()))
        }
        KeyAction::Remove { provider } => {
            let (provider, variable) = find_provider(&provider)?;
            if keys.put(variable, None).map_err(|error| failed(&error))? {
                return print_text(format!("The key of {} is removed.\n", provider.name));
            }
            Err(CommandFailure::usage(format!("no key of {} is stored", provider.name)))
        }
    }
}

/// The provider of this name, and the variable that its key stands in for.
fn find_provider(name: &str) -> Result<(&'static Provider, &'static str), CommandFailure> {
    let with_keys = || PROVIDERS.iter().filter_map(|provider| Some((provider, *provider.keys.first()?)));
    with_keys().find(|(provider, _)| provider.id == name).ok_or_else(|| {
        let known: Vec<&str> = with_keys().map(|(provider, _)| provider.id).collect();
        let shown = text::one_line(name, 60);
        CommandFailure::usage(format!("no provider `{shown}` takes a key: {}", suggest(name, &known, "known")))
    })
}

/// Reads the key from stdin: a line that is not shown on a terminal, else all of it.
fn read_key(provider: &Provider) -> Result<String, CommandFailure> {
    let unreadable = |error: io::Error| CommandFailure::usage(format!("stdin cannot be read: {error}"));
    let mut key = String::new();
    if io::stdin().is_terminal() {
        let _ends_at_signals = Signals::listen().map_err(unreadable)?;
        terminal::ask_hidden(
            &format!("Paste the key of {}, then Enter (it is not shown): ", provider.name),
            || io::stdin().lock().take(LONGEST).read_line(&mut key),
        )
        .map_err(unreadable)?;
    } else {
        io::stdin().lock().take(LONGEST).read_to_string(&mut key).map_err(unreadable)?;
    }
    match key.trim() {
        "" => Err(CommandFailure::usage("no key was given: paste it, or pipe it in")),
        key if key.chars().any(|c| c.is_control() || c.is_whitespace()) => {
            Err(CommandFailure::usage("a key is one word: it has no blanks and no line breaks"))
        }
        key => Ok(key.to_owned()),
    }
}
