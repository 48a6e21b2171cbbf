//! The table of protected files: those that decide what runs later, or what is allowed.
//!
//! The agent's own tools ask before they write one of them, at any depth. The sandbox, which takes its places from
//! here, keeps commands from changing them: at the root of the workspace, and in every repository. Git still works:
//! commands may write refs, the index and objects.

use std::path::Path;

use Guarded::{ByBoth, FromCommands, FromTools};
use ProtectedKind::{Dir, File};

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

/// The actors from which a file is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guarded {
    ByBoth,
    FromTools,
    FromCommands,
}

/// Protected files of one kind: the names of the rows are from the root of the workspace, or below any directory.
type ProtectedGroup = (ProtectedKind, Guarded, &'static [&'static str]);

/// In a git directory. `config` names programs, hooks are programs, `commondir` names the directory of both, and the
/// state of a rebase names commands. A rebase that stops leaves that state behind, so commands may write it.
#[rustfmt::skip]
const OF_GIT: &[ProtectedGroup] = &[
    (File, ByBoth, &["config", "config.worktree", "commondir", "info/attributes"]),
    (Dir, ByBoth, &["hooks"]),
    (Dir, FromTools, &["rebase-merge", "rebase-apply", "sequencer"]),
];

#[rustfmt::skip]
const TABLE: &[ProtectedGroup] = &[
    // git: tools must not touch it at all. For commands see `OF_GIT`; a file of this name points elsewhere.
    (Dir, FromTools, &[".git"]),
    (File, FromCommands, &[".git"]),
    // With it, any directory becomes a repository.
    (File, FromTools, &["HEAD"]),
    (File, ByBoth, &[".gitconfig", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml"]),
    (Dir, ByBoth, &[".config/git", ".husky", ".githooks"]),
    // this program
    (Dir, ByBoth, &[".agent", ".agents"]),
    // other agents, and the instructions that all of them read
    (File, ByBoth, &[
        "AGENTS.md", "AGENTS.override.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md",
        "QWEN.md", ".github/copilot-instructions.md", ".cursorrules", ".windsurfrules", ".roorules",
        ".goosehints", ".aider.conf.yml", ".mcp.json", "opencode.json",
    ]),
    (Dir, ByBoth, &[
        ".github/instructions", ".github/prompts", ".github/chatmodes", ".github/agents", ".clinerules",
        ".claude", ".cursor", ".codex", ".gemini", ".qwen", ".opencode", ".windsurf", ".roo", ".kiro",
        ".continue", ".junie",
    ]),
    // editors, which run tasks and programs that these name
    (Dir, ByBoth, &[".vscode", ".idea", ".zed", ".fleet", ".devcontainer"]),
    (File, ByBoth, &[".devcontainer.json", ".vimrc", ".nvimrc", ".nvim.lua", ".exrc", ".dir-locals.el"]),
    // shells, and files that run on entering a directory
    (File, ByBoth, &[
        ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
        ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc",
        ".login", ".xonshrc", ".envrc", ".mise.toml", ".mise.local.toml", "mise.toml",
        "mise.local.toml", ".config/mise.toml", ".rtx.toml", ".tool-versions", ".asdfrc",
    ]),
    (Dir, ByBoth, &[".config/fish", ".config/nushell", ".mise", ".config/mise"]),
    // package managers: where packages come from, and programs that every use of them runs
    (File, ByBoth, &[
        ".cargo/config.toml", ".cargo/config", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs",
        ".pnpmfile.mjs",
    ]),
    // Each `yarn install` writes these.
    (Dir, FromTools, &[".yarn/releases", ".yarn/plugins"]),
    (File, FromTools, &[".pnp.cjs", ".pnp.js", ".pnp.loader.mjs", ".pnp.data.json"]),
    // services that run what a repository says
    (Dir, ByBoth, &[
        ".github/workflows", ".github/actions", ".gitea/workflows", ".forgejo/workflows", ".circleci",
        ".buildkite", ".woodpecker", ".semaphore", ".teamcity",
    ]),
    (File, ByBoth, &[
        ".gitlab-ci.yml", ".gitlab-ci.yaml", ".travis.yml", ".drone.yml", ".cirrus.yml",
        ".woodpecker.yml", ".appveyor.yml", "appveyor.yml", "azure-pipelines.yml",
        "bitbucket-pipelines.yml", "buildspec.yml", "cloudbuild.yaml", "Jenkinsfile",
    ]),
];

/// True if a tool's write to `path`, relative to the workspace, decides what runs later. Names are compared as the most
/// lenient file system would.
pub fn is_protected(path: &Path) -> bool {
    let names = fold_names(path);
    let mut rows = list_rows(TABLE, FromCommands);
    rows.any(|row| (0..names.len()).any(|at| begins_with_row(&names[at..], row)))
}

/// True if a path in a git directory, relative to it, is one that decides what git runs.
pub fn is_protected_in_git(path: &Path) -> bool {
    let names = fold_names(path);
    list_rows(OF_GIT, FromCommands).any(|row| begins_with_row(&names, row))
}

/// The rows that commands must not change, from the root of the workspace.
pub fn from_commands() -> impl Iterator<Item = ProtectedEntry> {
    list_rows(TABLE, FromTools)
}

/// The row by which commands must not change `path` itself, below another directory: a nested `AGENTS.md`.
pub fn nested_row(path: &Path) -> Option<ProtectedEntry> {
    let names = fold_names(path);
    from_commands().find(|row| {
        let length = row.path.split('/').count();
        names.len() > length && begins_with_row(&names[names.len() - length..], *row)
    })
}

/// The rows that commands must not change in a git directory.
pub fn of_git() -> impl Iterator<Item = ProtectedEntry> {
    list_rows(OF_GIT, FromTools)
}

/// The rows of the groups, without those whose guard is the `unmeant` one.
fn list_rows(groups: &'static [ProtectedGroup], unmeant: Guarded) -> impl Iterator<Item = ProtectedEntry> {
    let meant = groups.iter().filter(move |(_, guarded, _)| *guarded != unmeant);
    meant.flat_map(|(kind, _, paths)| paths.iter().map(move |&path| ProtectedEntry { path, kind: *kind }))
}

/// True if these names begin with those of the row. A file has nothing below it, unless a directory replaced it, which
/// is protected too.
fn begins_with_row(names: &[String], row: ProtectedEntry) -> bool {
    let mut rest = names.iter();
    row.path.split('/').all(|part| rest.next().is_some_and(|name| is_same(name, part)))
}

/// True if a folded name is that of a row, in full or in its short form of eight letters (`git~1`).
fn is_same(name: &str, part: &str) -> bool {
    if name.eq_ignore_ascii_case(part) {
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
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in
            ["src/main.rs", ".gitignore", ".github/CODEOWNERS", ".cargo/registry", "git", "README.md", "a~1"]
        {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
        assert!(is_protected_in_git(Path::new("hooks/post-commit")) && is_protected_in_git(Path::new("CONFIG")));
        assert!(!is_protected_in_git(Path::new("refs/heads/main")));
    }

    #[test]
    fn commands_of_git_go_on() {
        let places: Vec<&str> = from_commands().chain(of_git()).map(|row| row.path).collect();
        for free in ["HEAD", "index", "refs", "objects", "rebase-merge", ".pnp.cjs"] {
            assert!(!places.contains(&free), "{free}");
        }
        assert!(from_commands().any(|row| row.path == ".git" && row.kind == File), "a pointer elsewhere");
        assert!(places.contains(&"AGENTS.md") && places.contains(&"hooks"));
    }
}
