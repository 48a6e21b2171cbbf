//! `agent init`: asks on a terminal for the model and writes the one file that makes it the default; elsewhere it
//! copies the built-in one. With flags it copies built-in files instead.

mod choices;

use std::fmt::Write;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::path::{Path, PathBuf};

use crate::base::text;
use crate::config::{self, InitCopies};
use crate::model::catalogue::providers;
use crate::model::probe_local;
use crate::safety::net::Net;

use super::setup::{CliSetup, build_runtime};
use super::{CommandFailure, CommandOutcome, print_text};
use choices::{
    ModelFile, ServerChoice, format_model_file, list_choices, parse_address, parse_model, parse_number,
    parse_variable,
};

/// The file that the answers fill.
const MODEL: &str = "models/default.yaml";

pub(super) fn run_init(setup: &CliSetup, dir: Option<PathBuf>, copies: &InitCopies) -> CommandOutcome {
    let dir = dir.unwrap_or_else(|| setup.env.dirs().config);
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
        let unset = key.as_ref().filter(|key| setup.env.get(key).is_none());
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
    let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_asked || dir.join(MODEL).symlink_metadata().is_ok() {
        return Ok(None);
    }
    let net = Net::new(|name| setup.env.get(name));
    let local = build_runtime()?.block_on(probe_local(&net));
    let keys_set: Vec<&str> = providers::list_keys().filter(|key| setup.env.get(key).is_some()).collect();
    let choices = list_choices(&local, &keys_set);
    print_line("Which server should answer?\n")?;
    for (number, choice) in (1..).zip(&choices) {
        print_line(&format!("{number:>4}. {}\n", text::make_visible(&choice.label)))?;
    }
    let ServerChoice { base_url, key, model: usual, .. } =
        &choices[ask_until_valid("Number [1]: ", |line| parse_number(line, choices.len()))?];
    let base_url = match base_url {
        Some(base_url) => base_url.clone(),
        None => ask_until_valid("Its address, with the version path: ", parse_address)?,
    };
    let is_own = base_url.contains("://127.0.0.1");
    let key = match key {
        Some(key) => ask_until_valid(&format!("The variable that holds the key [{key}]: "), |line| {
            parse_variable(line, Some(key))
        })?,
        None if is_own => None,
        None => ask_until_valid("The variable that holds the key [none]: ", |line| parse_variable(line, None))?,
    };
    let proposed = usual.as_ref().map_or(String::new(), |id| format!(" [{}]", text::make_visible(id)));
    let model = ask_until_valid(&format!("Model{proposed}: "), |line| parse_model(line, usual.as_deref()))?;
    Ok(Some(ModelFile { base_url, key, model }))
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
