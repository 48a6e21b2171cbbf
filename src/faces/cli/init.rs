//! `agent init`: asks on a terminal for the model and writes the one file that makes it the default; elsewhere it
//! copies the built-in one. With flags it copies built-in files instead.

mod choices;

use std::fmt::Write;
use std::io::{self, BufRead, Write as _};
use std::path::{Path, PathBuf};

use crate::base::text;
use crate::config::{self, InitCopies, StoredKeys};
use crate::model::catalogue::providers;
use crate::model::probe_local;
use crate::safety::net::Net;
use crate::screen::terminal;

use super::setup::{CliSetup, build_runtime};
use super::{CommandFailure, CommandOutcome, key, print_text};
use choices::{
    ModelFile, ServerChoice, format_model_file, list_choices, parse_address, parse_model, parse_number,
    parse_variable,
};

/// The file that the answers fill.
pub(super) const MODEL: &str = "models/default.yaml";

pub(super) fn run_init(setup: &CliSetup, dir: Option<PathBuf>, copies: &InitCopies) -> CommandOutcome {
    let dir = dir.unwrap_or_else(|| setup.own_dir());
    let (chosen, files) = if *copies == InitCopies::default() {
        let chosen = choose_model(setup, &dir)?;
        let file = match &chosen {
            Some(chosen) => config::write_own(dir.join(MODEL), &format_model_file(chosen))?,
            None => config::copy_model(&dir)?,
        };
        (chosen, vec![file])
    } else {
        (None, config::copy_built_in(&dir, copies)?)
    };
    let mut out = String::new();
    for file in &files {
        let what = if file.written { "wrote" } else { "kept" };
        let _ = writeln!(out, "{what}  {}", file.path.display());
    }
    let written = files.iter().filter(|file| file.written).count();
    let plural = if written == 1 { "file" } else { "files" };
    let _ = writeln!(out, "{written} {plural} written, {} kept as they were.", files.len() - written);
    if let Some(ModelFile { key, .. }) = &chosen {
        let stored = StoredKeys::open(&setup.env.dirs().data).read().unwrap_or_default();
        let unset = key.as_ref().filter(|key| setup.env.get(key).is_none() && !stored.contains_key(*key));
        if let Some(key) = unset {
            let _ =
                writeln!(out, "Set {key} to your key before you start: the file holds only the variable's name.");
        }
        out += "`agent doctor` asks the model for one short answer; `agent` starts a chat.\n";
    }
    print_text(out)
}

/// Asks the person at the terminal for a model; `None` if nobody is there, or the file exists already.
fn choose_model(setup: &CliSetup, dir: &Path) -> Result<Option<ModelFile>, CommandFailure> {
    let is_asked = terminal::has_person();
    if !is_asked || dir.join(MODEL).symlink_metadata().is_ok() {
        return Ok(None);
    }
    let (choices, chosen) = ask_for_server(setup, "Which server should answer?\n", None)?;
    fill_file(setup, &choices[chosen]).map(Some)
}

/// The first start of a chat: asks for a model, keeps its key and writes the file, without leaving the chat. Returns the
/// name of the demo's model if that was chosen; else the configuration knows the model afterwards.
pub(super) fn choose_first_model(setup: &CliSetup) -> Result<Option<&'static str>, CommandFailure> {
    const DEMO: &str = "the demo: a scripted model, without a key or a network";
    let question = "No model is set up yet. Which server should answer? (Ctrl-C leaves)\n";
    let (choices, chosen) = ask_for_server(setup, question, Some(DEMO))?;
    let Some(choice) = choices.get(chosen) else { return Ok(Some("demo")) };
    let file = config::write_own(setup.own_dir().join(MODEL), &format_model_file(&fill_file(setup, choice)?))?;
    if !file.written {
        let why = format!("{} exists, and names no model that can be reached: edit it", file.path.display());
        return Err(CommandFailure::usage(why));
    }
    print_line(&format!("Wrote {}.\n\n", file.path.display()))?;
    Ok(None)
}

/// Lists the servers, and `last` after them, and asks for one. Returns the servers and the number of the chosen one.
fn ask_for_server(
    setup: &CliSetup,
    question: &str,
    last: Option<&str>,
) -> Result<(Vec<ServerChoice>, usize), CommandFailure> {
    let net = Net::new(|name| setup.env.get(name));
    let local = build_runtime()?.block_on(probe_local(&net));
    let choices = list_choices(&local, &providers::list_set_keys(&setup.env));
    print_line(question)?;
    let labels = choices.iter().map(|choice| choice.label.as_str()).chain(last);
    let mut count = 0;
    for label in labels {
        count += 1;
        print_line(&format!("{count:>4}. {}\n", text::make_visible(label)))?;
    }
    let chosen = ask_until_valid("Number [1]: ", |line| parse_number(line, count))?;
    Ok((choices, chosen))
}

/// Asks for what the file of a chosen server needs. A key that is pasted is kept beside it.
fn fill_file(setup: &CliSetup, choice: &ServerChoice) -> Result<ModelFile, CommandFailure> {
    let ServerChoice { base_url, key, model: usual, provider, .. } = choice;
    let base_url = match base_url {
        Some(base_url) => base_url.clone(),
        None => ask_until_valid("Its address, with the version path: ", parse_address)?,
    };
    let is_own = base_url.contains("://127.0.0.1");
    let mut pasted = None;
    let key = match (key, provider) {
        (Some(key), Some(provider)) if setup.env.get(key).is_none() => {
            pasted = key::ask_for_key(setup, provider, key, &base_url)?;
            Some((*key).to_owned())
        }
        (Some(key), _) => Some((*key).to_owned()),
        (None, _) if is_own => None,
        (None, _) => {
            ask_until_valid("The variable that holds the key [none]: ", |line| parse_variable(line, None))?
        }
    };
    let proposed = usual.as_ref().map_or(String::new(), |id| format!(" [{}]", text::make_visible(id)));
    let model = ask_until_valid(&format!("Model{proposed}: "), |line| parse_model(line, usual.as_deref()))?;
    if let (Some(variable), Some(pasted)) = (&key, pasted) {
        key::keep_key(setup, variable, &pasted)?;
    }
    Ok(ModelFile { base_url, key, model })
}

/// Asks until the answer is valid.
fn ask_until_valid<T>(prompt: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, CommandFailure> {
    loop {
        print_line(prompt)?;
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            print_line("\n")?;
            return Err(anyhow::anyhow!("no answer: no file was written").into());
        }
        match read(&line) {
            Ok(answer) => return Ok(answer),
            Err(why) => print_line(&format!("{why}\n"))?,
        }
    }
}

fn print_line(words: &str) -> io::Result<()> {
    let mut err = io::stderr().lock();
    err.write_all(words.as_bytes())?;
    err.flush()
}
