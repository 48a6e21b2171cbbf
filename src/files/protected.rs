//! The table of protected files: those that decide what runs later, or what is allowed.
//!
//! The agent's own tools ask before they write one of them, at any depth. The sandbox, which takes its places from
//! here, keeps commands from changing them: at the root of the workspace, and in every repository. Git still works:
//! commands may write refs, the index and objects.

use std::path::Path;

use Guarded::{ByBoth, FromCommands, FromTools};
use Kind::{Dir, File};

/// One protected file, or a directory with everything in it.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its names, from the root of the workspace or below any directory.
    pub path: &'static str,
    pub kind: Kind,
    guarded: Guarded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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

const fn row(path: &'static str, kind: Kind, guarded: Guarded) -> Row {
    Row { path, kind, guarded }
}

/// In a git directory. `config` names programs, hooks are programs, `commondir` names the directory of both, and the
/// state of a rebase names commands. A rebase that stops leaves that state behind, so commands may write it.
const OF_GIT: &[Row] = &[
    row("config", File, ByBoth),
    row("config.worktree", File, ByBoth),
    row("commondir", File, ByBoth),
    row("info/attributes", File, ByBoth),
    row("hooks", Dir, ByBoth),
    row("rebase-merge", Dir, FromTools),
    row("rebase-apply", Dir, FromTools),
    row("sequencer", Dir, FromTools),
];

const TABLE: &[&[Row]] = &[
    // git: tools must not touch it at all. For commands see `OF_GIT`; a file of this name points elsewhere.
    &[
        row(".git", Dir, FromTools),
        row(".git", File, FromCommands),
        // With it, any directory becomes a repository.
        row("HEAD", File, FromTools),
        row(".gitconfig", File, ByBoth),
        row(".config/git", Dir, ByBoth),
        row(".husky", Dir, ByBoth),
        row(".githooks", Dir, ByBoth),
        row(".pre-commit-config.yaml", File, ByBoth),
        row("lefthook.yml", File, ByBoth),
        row(".lefthook.yml", File, ByBoth),
    ],
    // this program
    &[row(".agent", Dir, ByBoth), row(".agents", Dir, ByBoth)],
    // other agents, and the instructions that all of them read
    &[
        row("AGENTS.md", File, ByBoth),
        row("AGENTS.override.md", File, ByBoth),
        row("AGENT.md", File, ByBoth),
        row("CLAUDE.md", File, ByBoth),
        row("CLAUDE.local.md", File, ByBoth),
        row("GEMINI.md", File, ByBoth),
        row("QWEN.md", File, ByBoth),
        row(".github/copilot-instructions.md", File, ByBoth),
        row(".github/instructions", Dir, ByBoth),
        row(".github/prompts", Dir, ByBoth),
        row(".github/chatmodes", Dir, ByBoth),
        row(".github/agents", Dir, ByBoth),
        row(".cursorrules", File, ByBoth),
        row(".windsurfrules", File, ByBoth),
        row(".clinerules", Dir, ByBoth),
        row(".roorules", File, ByBoth),
        row(".goosehints", File, ByBoth),
        row(".aider.conf.yml", File, ByBoth),
        row(".mcp.json", File, ByBoth),
        row("opencode.json", File, ByBoth),
        row(".claude", Dir, ByBoth),
        row(".cursor", Dir, ByBoth),
        row(".codex", Dir, ByBoth),
        row(".gemini", Dir, ByBoth),
        row(".qwen", Dir, ByBoth),
        row(".opencode", Dir, ByBoth),
        row(".windsurf", Dir, ByBoth),
        row(".roo", Dir, ByBoth),
        row(".kiro", Dir, ByBoth),
        row(".continue", Dir, ByBoth),
        row(".junie", Dir, ByBoth),
    ],
    // editors, which run tasks and programs that these name
    &[
        row(".vscode", Dir, ByBoth),
        row(".idea", Dir, ByBoth),
        row(".zed", Dir, ByBoth),
        row(".fleet", Dir, ByBoth),
        row(".devcontainer", Dir, ByBoth),
        row(".devcontainer.json", File, ByBoth),
        row(".vimrc", File, ByBoth),
        row(".nvimrc", File, ByBoth),
        row(".nvim.lua", File, ByBoth),
        row(".exrc", File, ByBoth),
        row(".dir-locals.el", File, ByBoth),
    ],
    // shells, and files that run on entering a directory
    &[
        row(".bashrc", File, ByBoth),
        row(".bash_profile", File, ByBoth),
        row(".bash_login", File, ByBoth),
        row(".bash_logout", File, ByBoth),
        row(".bash_aliases", File, ByBoth),
        row(".profile", File, ByBoth),
        row(".zshrc", File, ByBoth),
        row(".zshenv", File, ByBoth),
        row(".zprofile", File, ByBoth),
        row(".zlogin", File, ByBoth),
        row(".zlogout", File, ByBoth),
        row(".kshrc", File, ByBoth),
        row(".cshrc", File, ByBoth),
        row(".tcshrc", File, ByBoth),
        row(".login", File, ByBoth),
        row(".xonshrc", File, ByBoth),
        row(".config/fish", Dir, ByBoth),
        row(".config/nushell", Dir, ByBoth),
        row(".envrc", File, ByBoth),
        row(".mise.toml", File, ByBoth),
        row(".mise.local.toml", File, ByBoth),
        row("mise.toml", File, ByBoth),
        row("mise.local.toml", File, ByBoth),
        row(".mise", Dir, ByBoth),
        row(".config/mise", Dir, ByBoth),
        row(".config/mise.toml", File, ByBoth),
        row(".rtx.toml", File, ByBoth),
        row(".tool-versions", File, ByBoth),
        row(".asdfrc", File, ByBoth),
    ],
    // package managers: where packages come from, and programs that every use of them runs
    &[
        row(".cargo/config.toml", File, ByBoth),
        row(".cargo/config", File, ByBoth),
        row(".npmrc", File, ByBoth),
        row(".yarnrc", File, ByBoth),
        row(".yarnrc.yml", File, ByBoth),
        row(".pnpmfile.cjs", File, ByBoth),
        row(".pnpmfile.mjs", File, ByBoth),
        // Each `yarn install` writes these.
        row(".yarn/releases", Dir, FromTools),
        row(".yarn/plugins", Dir, FromTools),
        row(".pnp.cjs", File, FromTools),
        row(".pnp.js", File, FromTools),
        row(".pnp.loader.mjs", File, FromTools),
        row(".pnp.data.json", File, FromTools),
    ],
    // services that run what a repository says
    &[
        row(".github/workflows", Dir, ByBoth),
        row(".github/actions", Dir, ByBoth),
        row(".gitea/workflows", Dir, ByBoth),
        row(".forgejo/workflows", Dir, ByBoth),
        row(".circleci", Dir, ByBoth),
        row(".buildkite", Dir, ByBoth),
        row(".woodpecker", Dir, ByBoth),
        row(".semaphore", Dir, ByBoth),
        row(".teamcity", Dir, ByBoth),
        row(".gitlab-ci.yml", File, ByBoth),
        row(".gitlab-ci.yaml", File, ByBoth),
        row(".travis.yml", File, ByBoth),
        row(".drone.yml", File, ByBoth),
        row(".cirrus.yml", File, ByBoth),
        row(".woodpecker.yml", File, ByBoth),
        row(".appveyor.yml", File, ByBoth),
        row("appveyor.yml", File, ByBoth),
        row("azure-pipelines.yml", File, ByBoth),
        row("bitbucket-pipelines.yml", File, ByBoth),
        row("buildspec.yml", File, ByBoth),
        row("cloudbuild.yaml", File, ByBoth),
        row("Jenkinsfile", File, ByBoth),
    ],
];

/// True if a tool's write to `path`, relative to the workspace, decides what runs later. Names are compared as the most
/// lenient file system would.
#[must_use]
pub fn is_protected(path: &Path) -> bool {
    let names: Vec<String> = path.components().map(|part| folded(&part.as_os_str().to_string_lossy())).collect();
    let is_meant = |row: &&Row| row.guarded != FromCommands;
    let mut rows = TABLE.iter().copied().flatten().filter(is_meant);
    rows.any(|row| (0..names.len()).any(|at| begins(&names[at..], row)))
}

/// True if a path in a git directory, relative to it, is one that decides what git runs.
#[must_use]
pub fn is_protected_in_git(path: &Path) -> bool {
    let names: Vec<String> = path.components().map(|part| folded(&part.as_os_str().to_string_lossy())).collect();
    OF_GIT.iter().any(|row| begins(&names, row))
}

/// The rows that commands must not change, from the root of the workspace.
pub fn from_commands() -> impl Iterator<Item = &'static Row> {
    TABLE.iter().copied().flatten().filter(|row| row.guarded != FromTools)
}

/// The row by which commands must not change `path` itself, below another directory: a nested `AGENTS.md`.
#[must_use]
pub fn nested_row(path: &Path) -> Option<&'static Row> {
    let names: Vec<String> = path.components().map(|part| folded(&part.as_os_str().to_string_lossy())).collect();
    from_commands().find(|row| {
        let length = row.path.split('/').count();
        names.len() > length && begins(&names[names.len() - length..], row)
    })
}

/// The rows that commands must not change in a git directory.
pub fn of_git() -> impl Iterator<Item = &'static Row> {
    OF_GIT.iter().filter(|row| row.guarded != FromTools)
}

/// True if these names begin with those of the row. A file has nothing below it, unless a directory replaced it, which
/// is protected too.
fn begins(names: &[String], row: &Row) -> bool {
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

/// A name as the most lenient file systems see it: ignoring case and invisible characters, without a stream and without
/// dots and spaces at its end. git guards its directory against the same.
fn folded(name: &str) -> String {
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
