//! What was seen last of a workspace, for later processes: without it they read every file again.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::base::seal::{has_seal, seal_line};
use crate::files::file_name;
use crate::files::regular::replace_file;

use super::scan::{SeenPath, SeenPaths};

/// The file of it, one sealed line.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct LastLook {
    /// The log of the session that looked.
    pub log: String,
    /// The number of the last change that its journal had.
    pub change: u64,
    /// With their paths, quoted where these are no plain text.
    paths: Vec<(String, SeenPath)>,
}

impl LastLook {
    pub fn new(log: &Path, change: u64, seen: &SeenPaths) -> Self {
        let paths = seen.iter().map(|(path, seen)| (file_name::quote(path).into_owned(), seen.clone()));
        Self { log: log.to_string_lossy().into_owned(), change, paths: paths.collect() }
    }

    /// Nothing if there is none in this directory, or it is damaged.
    pub fn load(dir: &Path) -> Self {
        let text = fs::read(dir.join("seen")).unwrap_or_default();
        serde_json::from_slice(&text).ok().filter(|_| has_seal(&text) == Some(true)).unwrap_or_default()
    }

    /// Writes it down. That it fails costs nothing but time.
    pub fn save(&self, dir: &Path) {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        seal_line(&mut text, 0);
        let _ = replace_file(&dir.join("seen"), &text);
    }

    pub fn into_seen(self) -> SeenPaths {
        self.paths.into_iter().map(|(path, seen)| (file_name::unquote(&path).into_owned(), seen)).collect()
    }
}
