//! `agent init`: writes the built-in configuration, prompts and skills as files to edit. On a terminal it first asks
//! for the model, and writes the model file that makes it the default.

mod choices;

use std::fmt::Write;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::path::{Path, PathBuf};

use crate::base::text;
use crate::config;
use crate::model::catalogue::providers;
use crate::model::probe_local;
use crate::safety::net::Net;

use super::setup::Setup;
use super::{Failure, Outcome, print};
use choices::{Choice, Chosen, address, choices, file, model, number, variable};

/// The file that the answers fill.
const MODEL: &str = "models/default.yaml";

pub(super) fn run(setup: &Setup, dir: Option<PathBuf>, examples: bool) -> Outcome {
    let dir = dir.unwrap_or_else(|| setup.env.dirs().config);
    let chosen = chosen(setup, &dir)?;
    let own = chosen.as_ref().map(|chosen| (MODEL, file(chosen)));
    let files = config::init(&dir, examples, own.as_ref().map(|(path, text)| (*path, text.as_str())))?;
    let mut out = String::new();
    for file in &files {
        let what = if file.written { "wrote" } else { "kept" };
        let _ = writeln!(out, "{what}  {}", file.path.display());
    }
    let written = files.iter().filter(|file| file.written).count();
    let _ = writeln!(out, "{written} files written, {} kept as they were.", files.len() - written);
    if let Some(Chosen { key, .. }) = &chosen {
        let unset = key.as_ref().filter(|key| setup.env.get(key).is_none());
        if let Some(key) = unset {
            let _ =
                writeln!(out, "Set {key} to your key before you start: the file holds only the variable's name.");
        }
        out += "`agent doctor` asks the model for one short answer; `agent` starts a chat.\n";
    }
    print(out)
}

/// Asks the person at the terminal for a model; `None` if nobody is there, or the file exists already.
fn chosen(setup: &Setup, dir: &Path) -> Result<Option<Chosen>, Failure> {
    let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_asked || dir.join(MODEL).symlink_metadata().is_ok() {
        return Ok(None);
    }
    let net = Net::new(|name| setup.env.get(name));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = runtime.block_on(probe_local(&net));
    let keys_set: Vec<&str> = providers::keys().filter(|key| setup.env.get(key).is_some()).collect();
    let choices = choices(&local, &keys_set);
    say("Which server should answer?\n")?;
    for (number, choice) in (1..).zip(&choices) {
        say(&format!("{number:>4}. {}\n", text::visible(&choice.label)))?;
    }
    let Choice { base_url, key, model: usual, .. } =
        &choices[ask("Number [1]: ", |line| number(line, choices.len()))?];
    let base_url = match base_url {
        Some(base_url) => base_url.clone(),
        None => ask("Its address, with the version path: ", address)?,
    };
    let is_own = base_url.contains("://127.0.0.1");
    let key = match key {
        Some(key) => ask(&format!("The variable that holds the key [{key}]: "), |line| variable(line, Some(key)))?,
        None if is_own => None,
        None => ask("The variable that holds the key [none]: ", |line| variable(line, None))?,
    };
    let proposed = usual.as_ref().map_or(String::new(), |id| format!(" [{}]", text::visible(id)));
    let model = ask(&format!("Model{proposed}: "), |line| model(line, usual.as_deref()))?;
    Ok(Some(Chosen { base_url, key, model }))
}

/// Asks until the answer is valid.
fn ask<T>(prompt: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Failure> {
    loop {
        say(prompt)?;
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            say("\n")?;
            return Err(Failure::from(anyhow::anyhow!("no answer: no file was written")));
        }
        match read(&line) {
            Ok(answer) => return Ok(answer),
            Err(why) => say(&format!("{why}\n"))?,
        }
    }
}

fn say(words: &str) -> io::Result<()> {
    let mut err = io::stderr().lock();
    err.write_all(words.as_bytes())?;
    err.flush()
}
