//! `agent key set / list / remove`: keys of providers that a person pastes.

use std::io::{self, BufRead, Read, Write};

use crate::base::text;
use crate::config::{StoredKeys, suggest};
use crate::model::catalogue::providers::{PROVIDERS, Provider};
use crate::model::is_key_refused;
use crate::safety::net::Net;
use crate::screen::terminal::{self, HiddenTyping};

use super::args::KeyAction;
use super::setup::{CliSetup, build_runtime};
use super::signals::Signals;
use super::{CommandFailure, CommandOutcome, exit, note_progress, print_table, print_text, warn_person};

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
            let asked = format!("Paste the key of {}, then Enter (it is not shown): ", provider.name);
            let key = read_key(&asked)?;
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

/// Asks for the key of a provider at its address until the provider takes it; `None` leaves it to the variable.
pub(super) fn ask_for_key(
    setup: &CliSetup,
    provider: &Provider,
    variable: &str,
    base_url: &str,
) -> Result<Option<String>, CommandFailure> {
    let net = Net::new(|name| setup.env.get(name));
    let asked = format!("Paste the key of {} (not shown; Enter alone leaves it to {variable}): ", provider.name);
    // Also between two answers: whoever pastes at once is not to see it.
    let _hidden = HiddenTyping::begin();
    loop {
        let line = ask_line(&asked)?;
        match check_key(&line) {
            Ok(key) if build_runtime()?.block_on(is_key_refused(&net, provider, base_url, key)) => {
                warn_person(&format!("{} refuses this key", provider.name));
            }
            Ok(key) => return Ok(Some(key.to_owned())),
            Err(_) if line.trim().is_empty() => return Ok(None),
            Err(why) => warn_person(why),
        }
    }
}

/// Keeps a key that was asked for.
pub(super) fn keep_key(setup: &CliSetup, variable: &str, key: &str) -> Result<(), CommandFailure> {
    let keys = StoredKeys::open(&setup.env.dirs().data);
    keys.put(variable, Some(key))
        .map_err(|error| CommandFailure::word(exit::FAILED, format!("{}: {error}", keys.path().display())))?;
    note_progress(&format!("The key is kept in {}, which only you can read.", keys.path().display()));
    Ok(())
}

fn unreadable(error: io::Error) -> CommandFailure {
    CommandFailure::usage(format!("stdin cannot be read: {error}"))
}

/// Asks at the terminal for a line, while typing is hidden.
fn ask_line(asked: &str) -> Result<String, CommandFailure> {
    let mut line = String::new();
    let _ends_at_signals = Signals::listen().map_err(unreadable)?;
    let mut stderr = io::stderr();
    let _ = stderr.write_all(asked.as_bytes()).and_then(|()| stderr.flush());
    let read = io::stdin().lock().take(LONGEST).read_line(&mut line);
    // The line break was not shown either.
    let _ = stderr.write_all(b"\n");
    read.map_err(unreadable)?;
    Ok(line)
}

/// Reads the key from stdin: a line that is not shown on a terminal, else all of it.
fn read_key(asked: &str) -> Result<String, CommandFailure> {
    let mut key = String::new();
    if terminal::stdin_is_terminal() {
        let _hidden = HiddenTyping::begin();
        key = ask_line(asked)?;
    } else {
        io::stdin().lock().take(LONGEST).read_to_string(&mut key).map_err(unreadable)?;
    }
    check_key(&key).map(str::to_owned).map_err(CommandFailure::usage)
}

/// What was given, if it can be a key.
fn check_key(given: &str) -> Result<&str, &'static str> {
    match given.trim() {
        "" => Err("no key was given: paste it, or pipe it in"),
        key if key.chars().any(|c| c.is_control() || c.is_whitespace()) => {
            Err("a key is one word: it has no blanks and no line breaks")
        }
        key => Ok(key),
    }
}
