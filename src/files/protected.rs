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
    guarded: Guarded,
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

const fn define_row(path: &'static str, kind: ProtectedKind, guarded: Guarded) -> ProtectedEntry {
    ProtectedEntry { path, kind, guarded }
}

/// In a git directory. `config` names programs, hooks are programs, `commondir` names the directory of both, and the
/// state of a rebase names commands. A rebase that stops leaves that state behind, so commands may write it.
const OF_GIT: &[ProtectedEntry] = &[
    define_row("config", File, ByBoth),
    define_row("config.worktree", File, ByBoth),
    define_row("commondir", File, ByBoth),
    define_row("info/attributes", File, ByBoth),
    define_row("hooks", Dir, ByBoth),
    define_row("rebase-merge", Dir, FromTools),
    define_row("rebase-apply", Dir, FromTools),
    define_row("sequencer", Dir, FromTools),
];

const TABLE: &[&[ProtectedEntry]] = &[
    // git: tools must not touch it at all. For commands see `OF_GIT`; a file of this name points elsewhere.
    &[
        define_row(".git", Dir, FromTools),
        define_row(".git", File, FromCommands),
        // With it, any directory becomes a repository.
        define_row("HEAD", File, FromTools),
        define_row(".gitconfig", File, ByBoth),
        define_row(".config/git", Dir, ByBoth),
        define_row(".husky", Dir, ByBoth),
        define_row(".githooks", Dir, ByBoth),
        define_row(".pre-commit-config.yaml", File, ByBoth),
        define_row("lefthook.yml", File, ByBoth),
        define_row(".lefthook.yml", File, ByBoth),
    ],
    // this program
    &[define_row(".agent", Dir, ByBoth), define_row(".agents", Dir, ByBoth)],
    // other agents, and the instructions that all of them read
    &[
        define_row("AGENTS.md", File, ByBoth),
        define_row("AGENTS.override.md", File, ByBoth),
        define_row("AGENT.md", File, ByBoth),
        define_row("CLAUDE.md", File, ByBoth),
        define_row("CLAUDE.local.md", File, ByBoth),
        define_row("GEMINI.md", File, ByBoth),
        define_row("QWEN.md", File, ByBoth),
        define_row(".github/copilot-instructions.md", File, ByBoth),
        define_row(".github/instructions", Dir, ByBoth),
        define_row(".github/prompts", Dir, ByBoth),
        define_row(".github/chatmodes", Dir, ByBoth),
        define_row(".github/agents", Dir, ByBoth),
        define_row(".cursorrules", File, ByBoth),
        define_row(".windsurfrules", File, ByBoth),
        define_row(".clinerules", Dir, ByBoth),
        define_row(".roorules", File, ByBoth),
        define_row(".goosehints", File, ByBoth),
        define_row(".aider.conf.yml", File, ByBoth),
        define_row(".mcp.json", File, ByBoth),
        define_row("opencode.json", File, ByBoth),
        define_row(".claude", Dir, ByBoth),
        define_row(".cursor", Dir, ByBoth),
        define_row(".codex", Dir, ByBoth),
        define_row(".gemini", Dir, ByBoth),
        define_row(".qwen", Dir, ByBoth),
        define_row(".opencode", Dir, ByBoth),
        define_row(".windsurf", Dir, ByBoth),
        define_row(".roo", Dir, ByBoth),
        define_row(".kiro", Dir, ByBoth),
        define_row(".continue", Dir, ByBoth),
        define_row(".junie", Dir, ByBoth),
    ],
    // editors, which run tasks and programs that these name
    &[
        define_row(".vscode", Dir, ByBoth),
        define_row(".idea", Dir, ByBoth),
        define_row(".zed", Dir, ByBoth),
        define_row(".fleet", Dir, ByBoth),
        define_row(".devcontainer", Dir, ByBoth),
        define_row(".devcontainer.json", File, ByBoth),
        define_row(".vimrc", File, ByBoth),
        define_row(".nvimrc", File, ByBoth),
        define_row(".nvim.lua", File, ByBoth),
        define_row(".exrc", File, ByBoth),
        define_row(".dir-locals.el", File, ByBoth),
    ],
    // shells, and files that run on entering a directory
    &[
        define_row(".bashrc", File, ByBoth),
        define_row(".bash_profile", File, ByBoth),
        define_row(".bash_login", File, ByBoth),
        define_row(".bash_logout", File, ByBoth),
        define_row(".bash_aliases", File, ByBoth),
        define_row(".profile", File, ByBoth),
        define_row(".zshrc", File, ByBoth),
        define_row(".zshenv", File, ByBoth),
        define_row(".zprofile", File, ByBoth),
        define_row(".zlogin", File, ByBoth),
        define_row(".zlogout", File, ByBoth),
        define_row(".kshrc", File, ByBoth),
        define_row(".cshrc", File, ByBoth),
        define_row(".tcshrc", File, ByBoth),
        define_row(".login", File, ByBoth),
        define_row(".xonshrc", File, ByBoth),
        define_row(".config/fish", Dir, ByBoth),
        define_row(".config/nushell", Dir, ByBoth),
        define_row(".envrc", File, ByBoth),
        define_row(".mise.toml", File, ByBoth),
        define_row(".mise.local.toml", File, ByBoth),
        define_row("mise.toml", File, ByBoth),
        define_row("mise.local.toml", File, ByBoth),
        define_row(".mise", Dir, ByBoth),
        define_row(".config/mise", Dir, ByBoth),
        define_row(".config/mise.toml", File, ByBoth),
        define_row(".rtx.toml", File, ByBoth),
        define_row(".tool-versions", File, ByBoth),
        define_row(".asdfrc", File, ByBoth),
    ],
    // package managers: where packages come from, and programs that every use of them runs
    &[
        define_row(".cargo/config.toml", File, ByBoth),
        define_row(".cargo/config", File, ByBoth),
        define_row(".npmrc", File, ByBoth),
        define_row(".yarnrc", File, ByBoth),
        define_row(".yarnrc.yml", File, ByBoth),
        define_row(".pnpmfile.cjs", File, ByBoth),
        define_row(".pnpmfile.mjs", File, ByBoth),
        // Each `yarn install` writes these.
        define_row(".yarn/releases", Dir, FromTools),
        define_row(".yarn/plugins", Dir, FromTools),
        define_row(".pnp.cjs", File, FromTools),
        define_row(".pnp.js", File, FromTools),
        define_row(".pnp.loader.mjs", File, FromTools),
        define_row(".pnp.data.json", File, FromTools),
    ],
    // services that run what a repository says
    &[
        define_row(".github/workflows", Dir, ByBoth),
        define_row(".github/actions", Dir, ByBoth),
        define_row(".gitea/workflows", Dir, ByBoth),
        define_row(".forgejo/workflows", Dir, ByBoth),
        define_row(".circleci", Dir, ByBoth),
        define_row(".buildkite", Dir, ByBoth),
        define_row(".woodpecker", Dir, ByBoth),
        define_row(".semaphore", Dir, ByBoth),
        define_row(".teamcity", Dir, ByBoth),
        define_row(".gitlab-ci.yml", File, ByBoth),
        define_row(".gitlab-ci.yaml", File, ByBoth),
        define_row(".travis.yml", File, ByBoth),
        define_row(".drone.yml", File, ByBoth),
        define_row(".cirrus.yml", File, ByBoth),
        define_row(".woodpecker.yml", File, ByBoth),
        define_row(".appveyor.yml", File, ByBoth),
        define_row("appveyor.yml", File, ByBoth),
        define_row("azure-pipelines.yml", File, ByBoth),
        define_row("bitbucket-pipelines.yml", File, ByBoth),
        define_row("buildspec.yml", File, ByBoth),
        define_row("cloudbuild.yaml", File, ByBoth),
        define_row("Jenkinsfile", File, ByBoth),
    ],
];

/// True if a tool's write to `path`, relative to the workspace, decides what runs later. Names are compared as the most
/// lenient file system would.
pub fn is_protected(path: &Path) -> bool {
    let names = fold_names(path);
    let is_meant = |row: &&ProtectedEntry| row.guarded != FromCommands;
    let mut rows = TABLE.iter().copied().flatten().filter(is_meant);
    rows.any(|row| (0..names.len()).any(|at| begins_with_row(&names[at..], row)))
}

/// True if a path in a git directory, relative to it, is one that decides what git runs.
pub fn is_protected_in_git(path: &Path) -> bool {
    let names = fold_names(path);
    OF_GIT.iter().any(|row| begins_with_row(&names, row))
}

/// The rows that commands must not change, from the root of the workspace.
pub fn from_commands() -> impl Iterator<Item = &'static ProtectedEntry> {
    TABLE.iter().copied().flatten().filter(|row| row.guarded != FromTools)
}

/// The row by which commands must not change `path` itself, below another directory: a nested `AGENTS.md`.
pub fn nested_row(path: &Path) -> Option<&'static ProtectedEntry> {
    let names = fold_names(path);
    from_commands().find(|row| {
        let length = row.path.split('/').count();
        names.len() > length && begins_with_row(&names[names.len() - length..], row)
    })
}

/// The rows that commands must not change in a git directory.
pub fn of_git() -> impl Iterator<Item = &'static ProtectedEntry> {
    OF_GIT.iter().filter(|row| row.guarded != FromTools)
}

/// True if these names begin with those of the row. A file has nothing below it, unless a directory replaced it, which
/// is protected too.
fn begins_with_row(names: &[String], row: &ProtectedEntry) -> bool {
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
