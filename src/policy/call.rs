//! The facts of a call that the policy judges. They are looked up here, once; judging is pure.

use std::path::{Path, PathBuf};

use crate::contract::{Effect, Permission};
use crate::workspace::Workspace;

use super::command::{Invocation, prove};
use super::shell::{self, Script, Simple};
use super::target::Target;

/// One call, before it runs.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    pub tool: &'a str,
    pub permission: Permission,
    /// The tool is configured to ask every time.
    pub requires_confirmation: bool,
    pub effects: &'a [Effect],
    /// Whether its result may come from the network.
    pub has_network: bool,
    pub reads: Vec<Target>,
    pub writes: Vec<Target>,
    /// The line that it hands to the shell.
    pub line: Option<Line>,
}

/// A command line, read and looked up.
#[derive(Debug, Clone)]
pub struct Line {
    pub(super) script: Script,
    /// For each simple command, whether it is proven to only read inside the workspace.
    pub(super) proven: Vec<bool>,
    /// It runs in the workspace.
    pub(super) is_inside: bool,
    /// The files that redirections read, and write; `None` where one is only known when it runs.
    pub(super) files: Vec<(Option<Target>, Opens)>,
    /// Words that may name paths, and whether their command is proven to only read.
    pub(super) named: Vec<(Target, bool)>,
    /// It runs neither in the workspace nor in a directory that the person installed.
    starts_outside: bool,
    /// It mentions the home directory, which is only known when it runs.
    names_home: bool,
    /// The command is not the model's own: the model wrote only the arguments.
    pub(super) configured: Option<Configured>,
}

/// The call of a tool whose command the configuration defines.
#[derive(Debug, Clone)]
pub struct Configured {
    /// The arguments as the model wrote them: the same arguments make the same command.
    pub arguments: String,
    /// The command that they make, for a person.
    pub shown: String,
}

/// The use that a redirection makes of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opens {
    ToRead,
    ToWrite,
}

impl Line {
    /// Parses a line and looks up the paths it names. `readable` are the directories outside the workspace whose
    /// content the person installed.
    #[must_use]
    pub fn new(
        invocation: Invocation<'_>,
        workspace: &Workspace,
        readable: &[PathBuf],
        configured: Option<Configured>,
    ) -> Self {
        let script = shell::read(invocation.command);
        let proof = prove(&script, invocation, workspace);
        // After a `cd` that was not followed, a relative path could lead anywhere.
        let moves = |command: &&Simple| matches!(command.program(), Some("cd" | "pushd" | "popd" | "chdir"));
        let moving = script.all().iter().filter(|command| moves(command)).count();
        let is_lost = moving > usize::from(proof.enters);
        let find = |given: &str| Target::find(workspace, &proof.dir, Path::new(given), readable);
        let files = script.all_files().into_iter().map(|file| {
            let target = file.target.text().filter(|path| !is_lost || path.starts_with('/')).map(find);
            (target, if file.writes { Opens::ToWrite } else { Opens::ToRead })
        });
        let files = files.collect();
        let named = named(&script, &proof.reads, &find);
        let is_inside = invocation.dir.starts_with(workspace.root());
        let starts_outside = !Target::find(workspace, invocation.dir, Path::new("."), readable).is_free_to_read();
        let names_home = ["~", "$HOME", "${HOME"].iter().any(|name| invocation.command.contains(name));
        Self { files, named, is_inside, starts_outside, names_home, configured, proven: proof.reads, script }
    }

    /// Whether it names something outside the workspace that it could read. Devices hold nobody's text.
    pub(super) fn reaches_outside(&self) -> bool {
        let opened = self.files.iter().filter(|(_, opens)| *opens == Opens::ToRead);
        let opened = opened.filter_map(|(target, _)| target.as_ref());
        let mut reached = opened.chain(self.named.iter().map(|(target, _)| target));
        let in_doubt = self.script.doubt().is_some();
        (self.names_home && in_doubt)
            || self.starts_outside
            || reached.any(|target| !target.is_free_to_read() && !target.path.starts_with("/dev/"))
    }

    /// Each simple command, and whether it is proven to only read.
    pub(super) fn commands(&self) -> impl Iterator<Item = (&Simple, bool)> {
        self.script.commands.iter().zip(self.proven.iter().copied().chain(std::iter::repeat(false)))
    }
}

/// The paths that the words of commands could name: a word itself, or its part after a `=`.
fn named(script: &Script, proven: &[bool], find: &dyn Fn(&str) -> Target) -> Vec<(Target, bool)> {
    let mut named = Vec::new();
    for (at, command) in script.commands.iter().enumerate() {
        let is_proven = proven.get(at).copied().unwrap_or(false);
        let inner = command.inside.iter().flat_map(|inside| inside.script.all());
        let mut words: Vec<&str> = std::iter::once(command)
            .chain(inner)
            .flat_map(|command| command.argv.iter().skip(1).filter_map(|arg| arg.text()))
            .map(|word| word.split_once('=').filter(|_| word.starts_with('-')).map_or(word, |(_, value)| value))
            .filter(|word| !word.is_empty() && !word.starts_with('-'))
            .collect();
        words.sort_unstable();
        words.dedup();
        let targets: Vec<Target> = words.into_iter().map(find).collect();
        // A search without a path reads the current directory.
        if matches!(command.program(), Some("grep" | "rg")) && !targets.iter().any(|target| target.is_dir) {
            named.push((find("."), is_proven));
        }
        named.extend(targets.into_iter().map(|target| (target, is_proven)));
    }
    named
}

/// The paths of a call, looked up from the workspace.
#[must_use]
pub fn targets(workspace: &Workspace, given: &[&str], readable: &[PathBuf]) -> Vec<Target> {
    given.iter().map(|given| Target::named(workspace, given, readable)).collect()
}
