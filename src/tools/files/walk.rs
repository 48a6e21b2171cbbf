//! The files that a search sees: those that `.gitignore` and `.ignore` files do not exclude, including hidden
//! ones, but nothing inside `.git` or behind symbolic links. The user's own git settings are ignored, so that
//! every user's search finds the same files.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::WalkBuilder;

use crate::ignored::Ignored;
use crate::output::ToolError;

/// A walk over everything below `dir`. Ignore files are read by [`Ignored`], as the walker's own reading of them waits
/// for pipes and never ends a device.
pub fn walk(dir: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(dir);
    let ignored = Ignored::anywhere();
    builder.standard_filters(false).follow_links(false).filter_entry(move |entry| {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() == 0 || (entry.file_name() != ".git" && !ignored.has(entry.path(), is_dir))
    });
    builder
}

/// A pattern for paths relative to the search directory. Without a slash it matches names at any depth.
pub struct Pattern {
    /// A set with one pattern: unlike a single matcher it compares names and endings without a regular expression.
    matcher: GlobSet,
    names_only: bool,
}

impl Pattern {
    /// # Errors
    /// When it is not a valid pattern, or one that no file below the directory can match.
    pub fn new(pattern: &str) -> Result<Self, ToolError> {
        let relative = pattern.trim_start_matches("./");
        if relative.starts_with('/') || relative.split('/').any(|part| part == "..") {
            return Err(ToolError::parameter(format!(
                "the pattern {pattern} leads out of the directory that is searched: give that directory as path, and \
                 a pattern relative to it"
            )));
        }
        let glob = GlobBuilder::new(relative).literal_separator(true).empty_alternates(true).build();
        let matcher = glob.and_then(|glob| GlobSetBuilder::new().add(glob).build()).map_err(|error| {
            ToolError::parameter(format!("{pattern} is not a valid pattern: {}", error.kind()))
        })?;
        Ok(Self { matcher, names_only: !relative.contains('/') })
    }

    /// Whether `path`, which lies below `root`, matches.
    pub fn matches(&self, root: &Path, path: &Path) -> bool {
        let subject = if self.names_only { path.file_name().map(Path::new) } else { path.strip_prefix(root).ok() };
        subject.is_some_and(|subject| self.matcher.is_match(subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_patterns_match() {
        let cases = [
            ("*.rs", "main.rs", true),
            ("*.rs", "src/deep/main.rs", true),
            ("src/*.rs", "src/main.rs", true),
            ("src/*.rs", "src/deep/main.rs", false),
            ("src/**/*.rs", "src/deep/main.rs", true),
            ("src/**/*.rs", "src/main.rs", true),
            ("./src/*.rs", "src/main.rs", true),
            ("*.{ts,tsx}", "a/b.tsx", true),
            ("中*", "文/中文.txt", true),
            ("**", "a/b", true),
        ];
        for (pattern, path, expected) in cases {
            let pattern_of = Pattern::new(pattern).expect("it is a pattern");
            assert_eq!(
                pattern_of.matches(Path::new("/w"), &Path::new("/w").join(path)),
                expected,
                "{pattern} on {path}"
            );
        }
    }

    #[test]
    fn what_is_no_pattern_says_so() {
        let message = |pattern| Pattern::new(pattern).err().map(|error| error.message).unwrap_or_default();
        assert!(message("a[").contains("a[ is not a valid pattern"), "{}", message("a["));
        assert!(message("../*.rs").contains("give that directory as path"));
        assert!(message("/etc/*").contains("give that directory as path"));
    }
}
