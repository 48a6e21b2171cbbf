//! `agent init`: the built-in configuration, prompts and skills as files to edit.

use std::fmt::Write;
use std::path::PathBuf;

use crate::config;

use super::setup::Setup;
use super::{Outcome, print};

pub(super) fn run(setup: &Setup, dir: Option<PathBuf>, examples: bool) -> Outcome {
    let dir = dir.unwrap_or_else(|| setup.env.dirs().config);
    let files = config::init(&dir, examples)?;
    let mut out = String::new();
    for file in &files {
        let what = if file.written { "wrote" } else { "kept" };
        let _ = writeln!(out, "{what}  {}", file.path.display());
    }
    let written = files.iter().filter(|file| file.written).count();
    let _ = writeln!(out, "{written} files written, {} kept as they were.", files.len() - written);
    print(out)
}
