//! What lies beside the versions of a prompt: its test file and its recordings. The nearest directory that has a file
//! wins; a project's files are read through its manifest.

use std::path::PathBuf;

use crate::builtin;
use crate::config::PromptDir;
use crate::file_name;

/// The file of cases beside the versions of a prompt.
pub const TESTS: &str = "tests.yaml";

/// The directories of prompts, lowest first, above what is built in.
#[derive(Debug, Clone, Copy)]
pub struct Shelf<'d>(pub &'d [PromptDir]);

/// A file beside a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// What messages call it.
    pub origin: String,
    pub text: String,
    /// Where it lies; `None` for one that is built in.
    pub path: Option<PathBuf>,
}

impl Shelf<'_> {
    /// The file `NAME/inside` of the nearest directory that has it.
    ///
    /// # Errors
    /// Why a file that is there cannot be read.
    pub fn find(self, name: &str, inside: &str) -> Result<Option<Beside>, String> {
        for PromptDir { dir, through } in self.0.iter().rev() {
            let path = dir.join(name).join(inside);
            let origin = file_name::written(&path).into_owned();
            if let Some(text) = through.read_text(&path).map_err(|why| format!("{origin} {why}"))? {
                return Ok(Some(Beside { origin, text, path: Some(path) }));
            }
        }
        let file = builtin::PROMPTS.get_file(format!("{name}/{inside}"));
        Ok(file.and_then(builtin::File::contents_utf8).map(|text| Beside {
            origin: format!("built-in prompts/{name}/{inside}"),
            text: text.to_owned(),
            path: None,
        }))
    }
}

/// The file of the recordings of a version, below the folder of its prompt.
#[must_use]
pub fn recordings_of(version: &str) -> String {
    format!("recordings/{version}.jsonl")
}
