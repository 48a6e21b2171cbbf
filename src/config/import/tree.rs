//! The files of a directory from elsewhere by their contents: of regular size, and without links.

use std::fs;
use std::io;
use std::path::Path;

use crate::base::digest::hash_sha256;
use crate::files::regular::{Links, read_bytes};

/// Every file of a directory with the digest of its content, by path.
///
/// # Errors
/// A sentence: a link leads out, it is too large, or it cannot be read.
pub fn digest_tree(dir: &Path) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let mut bytes = 0;
    digest_into(dir, dir, &mut bytes, &mut found)?;
    found.sort();
    Ok(found)
}

/// What a plugin may have, in bytes, and in files.
const MOST_BYTES: u64 = 64 << 20;
const MOST_FILES: usize = 10_000;

fn digest_into(top: &Path, dir: &Path, bytes: &mut u64, found: &mut Vec<(String, String)>) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", dir.display());
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        let name = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
        if name == ".git" {
            continue;
        }
        if kind.is_symlink() {
            let target = fs::read_link(&path).map_err(failed)?;
            return Err(format!("{name} is a link (to {}), and a plugin may have none", target.display()));
        }
        if kind.is_dir() {
            digest_into(top, &path, bytes, found)?;
            continue;
        }
        let length = entry.metadata().map_err(failed)?.len();
        *bytes += length;
        if *bytes > MOST_BYTES || found.len() >= MOST_FILES {
            return Err(format!("it has more than {} MiB or {MOST_FILES} files", MOST_BYTES >> 20));
        }
        let content = read_bytes(&path, Links::Refuse, MOST_BYTES);
        let content = content.map_err(|why| format!("{name} {why}"))?.unwrap_or_default();
        found.push((name, hash_sha256([content.as_slice()])));
    }
    Ok(())
}
