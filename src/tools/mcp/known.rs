//! What a server said the last time that it was up: how to begin with it, its tools and skills. It is kept by the hash of all
//! that decides which server it is, so that another command or address begins anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::digest::hash_sha256;
use crate::config::McpServerConfig;
use crate::files::private::make_private_dir;
use crate::files::regular::{Links, read_bytes, replace_file};
use crate::skills::ServedSkill;

use super::McpEra;

/// The longest such file.
const LONGEST: u64 = 32 * 1024 * 1024;

/// What is remembered of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KnownServer {
    pub era: McpEra,
    /// Its tools as the protocol writes them, in the form in which their calls were last allowed.
    pub tools: Vec<Arc<Value>>,
    pub skills: Vec<ServedSkill>,
}

impl KnownServer {
    /// The file of a server.
    pub fn path(dir: &Path, config: &McpServerConfig) -> PathBuf {
        let mut parts: Vec<&[u8]> =
            vec![config.name.as_bytes(), config.url.as_deref().unwrap_or_default().as_bytes()];
        parts.extend(config.command.iter().map(String::as_bytes));
        let values = config.env.iter().chain(&config.headers);
        parts.extend(values.flat_map(|(name, value)| [name.as_bytes(), value.reveal().as_bytes()]));
        let lengths: Vec<[u8; 8]> = parts.iter().map(|part| (part.len() as u64).to_le_bytes()).collect();
        let framed = lengths.iter().zip(&parts).flat_map(|(length, part)| [&length[..], part]);
        dir.join(format!("{}.json", hash_sha256(framed)))
    }

    /// What is remembered, if anything usable is.
    pub fn read(path: &Path) -> Option<Self> {
        let bytes = read_bytes(path, Links::Refuse, LONGEST).ok().flatten()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Remembers it. Where that fails, the next run asks the server again.
    pub fn write(&self, path: &Path) {
        let written = serde_json::to_vec(self).map_err(std::io::Error::other);
        let dir = path.parent().map_or(Ok(()), make_private_dir);
        let _ = dir.and(written).and_then(|bytes| replace_file(path, &bytes));
    }
}
