//! The table of protected files: those that decide what runs later, or what is allowed.
//!
//! The agent's own tools ask before they write one of them, at any depth. The sandbox, which takes its places from
//! here, keeps commands from changing them: at the root of the workspace, and in every repository. Git still works:
//! commands may write refs, the index and objects.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

/// One protected file, or a directory with everything in it.
#[derive(Debug, Clone, Copy)]
pub struct ProtectedEntry {
    /// Its names, from the root of the workspace or below any directory.
    pub path: &'static str,
    pub kind: ProtectedKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtectedKind {
    File,
    Dir,
}

/// Where a row of `protected.txt` holds, from whom it protects, and what.
type ProtectedRow = (&'static str, &'static str, ProtectedEntry);

static ROWS: LazyLock<Vec<ProtectedRow>> = LazyLock::new(|| {
    let mut rows = Vec::new();
    for line in include_str!("protected.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let (Some(place), Some(kind), Some(guard)) = (words.next(), words.next(), words.next()) else { continue };
        let kind = if kind == "dir" { ProtectedKind::Dir } else { ProtectedKind::File };
        rows.extend(words.map(|path| (place, guard, ProtectedEntry { path, kind })));
    }
    rows
});

/// True if a tool's write to `path`, relative to the workspace, decides what runs later. Names are compared as the most
/// lenient file system would.
pub fn is_protected(path: &Path) -> bool {
    let names = fold_names(path);
    let mut rows = list_rows("any", "commands");
    rows.any(|row| (0..names.len()).any(|at| begins_with_row(&names[at..], row)))
}

/// True if a path in a git directory, relative to it, is one that decides what git runs.
pub fn is_protected_in_git(path: &Path) -> bool {
    let names = fold_names(path);
    list_rows("git", "commands").any(|row| begins_with_row(&names, row))
}

/// The rows that commands must not change, from the root of the workspace.
pub fn from_commands() -> impl Iterator<Item = ProtectedEntry> {
    list_rows("any", "tools")
}

/// The row by which commands must not change `path` itself, below another directory: a nested `AGENTS.md`.
pub fn nested_row(path: &Path) -> Option<ProtectedEntry> {
    let names = fold_names(path);
    from_commands().find(|row| {
        let length = row.path.split('/').count();
        (names.len() > length || row.path.starts_with('*'))
            && begins_with_row(&names[names.len() - length..], *row)
    })
}

/// False if no row of [`nested_row`] ends with this name: a quick answer for the many names of a workspace.
pub fn may_end_row(name: &OsStr) -> bool {
    static ENDS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let ends = from_commands().filter_map(|row| row.path.rsplit('/').next());
        ends.map(|end| end.trim_start_matches('*').to_lowercase()).collect()
    });
    let Some(name) = name.to_str().filter(|name| name.is_ascii() && !name.contains(['~', ':'])) else {
        return true;
    };
    let name = name.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    let ending = name.rfind('.').map(|at| &name[at..]);
    ENDS.contains(&name) || ending.is_some_and(|ending| ENDS.contains(ending))
}

/// The rows that commands must not change in a git directory.
pub fn of_git() -> impl Iterator<Item = ProtectedEntry> {
    list_rows("git", "tools")
}

/// The rows of a place, without those that protect from the `unmeant` one alone.
fn list_rows(place: &'static str, unmeant: &'static str) -> impl Iterator<Item = ProtectedEntry> {
    ROWS.iter().filter(move |row| row.0 == place && row.1 != unmeant).map(|row| row.2)
}

/// True if these names begin with those of the row. A file has nothing below it, unless a directory replaced it, which
/// is protected too.
fn begins_with_row(names: &[String], row: ProtectedEntry) -> bool {
    let mut rest = names.iter();
    row.path.split('/').all(|part| rest.next().is_some_and(|name| is_same(name, part)))
}

/// True if a folded name is that of a row, in full or in its short form of eight letters (`git~1`).
fn is_same(name: &str, part: &str) -> bool {
    if name.eq_ignore_ascii_case(part) || part.strip_prefix('*').is_some_and(|ending| name.ends_with(ending)) {
        return true;
    }
    let (Some(long), Some((short, number))) = (part.strip_prefix('.'), name.split_once('~')) else { return false };
    let letters: String = long.chars().filter(|c| *c != '.').take(6).collect();
    !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()) && short.eq_ignore_ascii_case(&letters)
}

fn fold_names(path: &Path) -> Vec<String> {
    path.iter().map(|name| fold_name(&name.to_string_lossy())).collect()
}

/// A name as the most lenient file systems see it: ignoring case and invisible characters, without a stream and without
/// dots and spaces at its end. git guards its directory against the same.
fn fold_name(name: &str) -> String {
    let is_seen = |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let name: String = name.chars().filter(is_seen).flat_map(char::to_lowercase).collect();
    name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_later_is_protected_however_it_is_spelled() {
        for path in [
            ".git/config",
            "sub/.git",
            ".GIT/hooks/pre-commit",
            ".gi\u{200d}t/config",
            ".git. /x",
            ".git::$INDEX_ALLOCATION/config",
            "GIT~1/config",
            "agent~1/agent.yaml",
            "agents.md",
            "docs/CLAUDE.md",
            ".github/workflows/ci.yml",
            ".github/copilot-instructions.md",
            ".cargo/config.toml",
            "crates/x/.cargo/config.toml",
            ".npmrc",
            ".pnp.cjs",
            ".vscode/tasks.json",
            ".envrc",
            "bare/HEAD",
            ".hg/hgrc",
            ".jj/repo/config.toml",
            "opencode.jsonc",
            ".pi/extensions/x.ts",
            ".crush.json",
            ".cline/rules",
            "a/My.Code-Workspace",
            "lefthook.yaml",
            ".run/All.run.xml",
            ".gdbinit",
            "sub/.git",
            ".git/modules/sub/config",
            ".git/rebase-merge/git-rebase-todo",
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in [
            "src/main.rs", ".gitignore", ".github/CODEOWNERS", ".cargo/registry", "git", "README.md", "a~1",
            "x.code-workspaces",
        ] {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
        assert!(is_protected_in_git(Path::new("hooks/post-commit")) && is_protected_in_git(Path::new("CONFIG")));
        assert!(is_protected_in_git(Path::new("worktrees/main/commondir")), "of a bare repository");
        assert!(!is_protected_in_git(Path::new("refs/heads/main")));
    }

    #[test]
    fn the_quick_answer_rules_out_nothing_that_is_protected() {
        let rows: Vec<&str> = from_commands().map(|row| row.path).collect();
        for row in rows {
            let row = row.replace('*', "Job");
            for written in [row.clone(), row.to_uppercase(), format!("{row}. "), format!("{row}::$DATA")] {
                let path = Path::new("below").join(written);
                assert_eq!(
                    nested_row(&path).is_some(),
                    may_end_row(path.file_name().expect("a name")),
                    "{path:?}"
                );
            }
        }
        for name in ["main.rs", "README.md", "target", "x.json", ".gitignore", "a.vscode2"] {
            assert!(!may_end_row(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn commands_of_git_go_on() {
        let places: Vec<&str> = from_commands().chain(of_git()).map(|row| row.path).collect();
        for free in ["HEAD", "index", "refs", "objects", "rebase-merge", "worktrees", "modules", ".pnp.cjs"] {
            assert!(!places.contains(&free), "{free}");
        }
        assert!(
            from_commands().any(|row| row.path == ".git" && row.kind == ProtectedKind::File),
            "a pointer elsewhere"
        );
        assert!(places.contains(&"AGENTS.md") && places.contains(&"hooks"));
    }
}
