//! The paths that rules deny and that exist when a command starts: the sandbox hides them from it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::base::{output::ToolError, text::GlobPattern};

/// The most entries that are examined.
const MOST: usize = 200_000;

/// Every path that one of the patterns matches; a directory stands for everything in it. One that cannot be listed may hold
/// such a path.
///
/// # Errors
/// There are too many entries to examine: the rules could not be enforced.
pub fn find_matches(root: &Path, patterns: &[GlobPattern]) -> Result<Vec<PathBuf>, ToolError> {
    let mut found = Vec::new();
    let mut left = MOST;
    for pattern in patterns {
        // `secrets/**` applies to the directory as well as to its contents.
        let whole = pattern.as_str().strip_suffix("/**").and_then(|dir| GlobPattern::path(dir).ok());
        let matches = |path: &Path| {
            let relative = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
            pattern.matches(&relative) || whole.as_ref().is_some_and(|whole| whole.matches(&relative))
        };
        let mut waiting = vec![root.join(take_fixed(pattern.as_str()))];
        while let Some(path) = waiting.pop() {
            left = left.checked_sub(1).ok_or_else(|| {
                ToolError::permanent(format!(
                    "the command was not run: the rule about `{}` cannot be kept, because there are more than {MOST} \
                     entries to look at",
                    pattern.as_str()
                ))
            })?;
            if path != root && matches(&path) {
                found.push(path);
            } else if fs::symlink_metadata(&path).is_ok_and(|entry| entry.is_dir()) {
                match fs::read_dir(&path) {
                    Ok(entries) => waiting.extend(entries.flatten().map(|entry| entry.path())),
                    // A command could open it, and then find there what is denied.
                    Err(_) => found.push(path),
                }
            }
        }
    }
    Ok(found)
}
/// The directories that a pattern names before its first wildcard.
fn take_fixed(pattern: &str) -> PathBuf {
    let is_plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{', '\\']);
    Path::new(pattern).components().take_while(is_plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_paths() {
        let dir = tempfile::tempdir().expect("a directory");
        for path in ["secrets/a/k", "src/.env", "src/deep/.env", "src/x"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("one")).expect("made");
            fs::write(path, "").expect("written");
        }
        for (pattern, expected) in [
            ("secrets/**", vec!["secrets"]),
            ("secrets/*/k", vec!["secrets/a/k"]),
            ("**/.env", vec!["src/.env", "src/deep/.env"]),
            ("nothing/**", vec![]),
            ("src/x", vec!["src/x"]),
        ] {
            let mut found =
                find_matches(dir.path(), &[GlobPattern::path(pattern).expect("a pattern")]).expect("few");
            found.sort();
            let expected: Vec<PathBuf> = expected.iter().map(|path| dir.path().join(path)).collect();
            // A pattern without wildcards is found whether or not it is there.
            found.retain(|path| path.exists());
            assert_eq!(found, expected, "{pattern}");
        }
    }
}
