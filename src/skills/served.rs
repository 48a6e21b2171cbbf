//! Skills of a server of tools. Only names and descriptions are known until one is loaded; then each wanted file is fetched,
//! held against the digest and size that the server states, and kept for the run.
//!
//! Invariants:
//! - No body of a server is ever rendered, and nothing that is fetched reaches the disk.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::digest::hash_sha256;
use crate::base::{frontmatter, text, yaml};

use super::error::{SkillError, SkillErrorKind};
use super::header::{self, SkillHeader};
use super::inside::{FILE, LARGEST, resolve_inside, write_slashes};

/// The most bytes that are kept of one skill.
const MOST_KEPT: usize = 64 * 1024 * 1024;

/// An answer of a server, or the end of a sentence about it.
pub type ServedFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// The way to a server that has skills.
pub trait SkillServer: Send + Sync + fmt::Debug {
    /// For people.
    fn name(&self) -> &str;

    /// The skill whose `SKILL.md` has this address, as the server lists it now that it is up.
    fn describe_skill<'a>(&'a self, uri: &'a str) -> ServedFuture<'a, ServedSkill>;

    /// The bytes of a file.
    fn fetch_file<'a>(&'a self, uri: &'a str) -> ServedFuture<'a, Vec<u8>>;
}

/// A skill as a server lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedSkill {
    /// The address of its `SKILL.md`.
    pub uri: String,
    /// The fields of its head, as JSON.
    pub head: String,
    pub files: Vec<ServedFile>,
}

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedFile {
    /// Relative to the skill, with `/`.
    pub path: String,
    pub uri: String,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub digest: String,
    pub size: u64,
}

/// The folder of a skill at its server, with what was fetched of it.
#[derive(Debug)]
pub(super) struct ServedFolder {
    server: Arc<dyn SkillServer>,
    uri: String,
    /// As it was listed.
    name: String,
    kept: Mutex<KeptFiles>,
}

#[derive(Debug, Default)]
struct KeptFiles {
    /// Set once the server was asked.
    stated: Option<Arc<ServedSkill>>,
    contents: BTreeMap<String, Arc<Vec<u8>>>,
}

/// The header of a head in JSON, which is YAML as well. Its body is no template, whatever it says.
pub(super) fn read_served_head(head: &str) -> Option<SkillHeader> {
    let mut header = header::read_header(head).ok()?;
    header.is_template = false;
    header.remarks.clear();
    Some(header)
}

impl ServedFolder {
    pub fn new(server: Arc<dyn SkillServer>, uri: String, name: String) -> Self {
        Self { server, uri, name, kept: Mutex::default() }
    }

    /// Its `SKILL.md`, for people.
    pub fn path(&self) -> String {
        format!("{} of the server `{}`", text::one_line(&self.uri, 200), self.server.name())
    }

    /// Fetches the file at `path`, unless that was done. A file that there is none of, or that is too large, is not fetched.
    ///
    /// # Errors
    /// The server does not give it, or not as it said.
    pub async fn fetch(&self, path: &str) -> Result<(), SkillError> {
        let Ok(relative) = resolve_inside(Path::new(""), path) else { return Ok(()) };
        let path = write_slashes(&relative);
        if self.kept().contents.contains_key(&path) {
            return Ok(());
        }
        let refuse = |why: String| {
            SkillError::new(SkillErrorKind::Unreadable, format!("the server `{}`: {why}", self.server.name()))
        };
        let stated = self.ask_skill().await.map_err(refuse)?;
        let Some(file) = stated.files.iter().find(|file| file.path == path).filter(|file| file.size <= LARGEST)
        else {
            return Ok(());
        };
        let kept: usize = self.kept().contents.values().map(|bytes| bytes.len()).sum();
        if kept + usize::try_from(file.size).unwrap_or(usize::MAX) > MOST_KEPT {
            return Err(refuse(format!("more than {} MiB of one skill are not kept", MOST_KEPT >> 20)));
        }
        let bytes = self.server.fetch_file(&file.uri).await.map_err(refuse)?;
        check_file(file, &bytes).map_err(refuse)?;
        if path == FILE && !has_head(&bytes, &stated.head) {
            return Err(refuse(format!("the head of {path} differs from the one that was stated")));
        }
        self.kept().contents.insert(path, Arc::new(bytes));
        Ok(())
    }

    /// What the server stated, the first time that it was asked.
    async fn ask_skill(&self) -> Result<Arc<ServedSkill>, String> {
        if let Some(stated) = self.kept().stated.clone() {
            return Ok(stated);
        }
        let stated = Arc::new(self.server.describe_skill(&self.uri).await?);
        let name = read_served_head(&stated.head).and_then(|header| header.name);
        if name.as_ref() != Some(&self.name) {
            return Err(format!("the skill is no longer `{}`", self.name));
        }
        self.kept().stated = Some(Arc::clone(&stated));
        Ok(stated)
    }

    /// The paths of its files, as far as they are known.
    pub fn paths(&self) -> Vec<String> {
        let kept = self.kept();
        kept.stated.iter().flat_map(|stated| &stated.files).map(|file| file.path.clone()).collect()
    }

    /// The size of a file, and its bytes if they were fetched.
    pub fn content(&self, path: &str) -> Option<(u64, Option<Arc<Vec<u8>>>)> {
        let kept = self.kept();
        let file = kept.stated.as_ref()?.files.iter().find(|file| file.path == path)?;
        Some((file.size, kept.contents.get(path).cloned()))
    }

    fn kept(&self) -> MutexGuard<'_, KeptFiles> {
        self.kept.lock().expect("no holder of the files panics")
    }
}

/// # Errors
/// How the bytes differ from what the server stated.
fn check_file(file: &ServedFile, bytes: &[u8]) -> Result<(), String> {
    let path = text::one_line(&file.path, 200);
    if bytes.len() as u64 != file.size {
        return Err(format!("{path} has {} bytes, but was stated to have {}", bytes.len(), file.size));
    }
    if hash_sha256([bytes]) != file.digest {
        return Err(format!("{path} does not have the digest that was stated"));
    }
    Ok(())
}

/// True if a `SKILL.md` begins with this head, field by field.
fn has_head(bytes: &[u8], head: &str) -> bool {
    let fields = |head: &str| yaml::parse_document::<Value>(head).ok();
    let parts = frontmatter::split_head(std::str::from_utf8(bytes).unwrap_or_default()).ok();
    let own = parts.and_then(|parts| fields(parts.head?));
    own.is_some() && own == fields(head)
}
