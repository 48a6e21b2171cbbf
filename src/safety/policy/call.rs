//! The facts of a call that the policy judges. They are looked up here, once; the judgement itself is pure.

use std::path::{Path, PathBuf};

use crate::base::text;
use crate::config::{Permission, ToolEffect};
use crate::files::workspace::Workspace;
use crate::safety::{Hold, WallOpening};

use super::expansion::{LONGEST_PATH, WordExpander};
use super::habits::{Habit, find_habit, is_of_system, uses_network};
use super::operands::{list_changed, list_possible_words};
use super::shell::{self, Arg, ShellScript, Simple};
use super::target::{PathPlace, PathTarget, Presence};

/// One call, before it runs.
#[derive(Debug, Clone)]
pub struct ProposedCall<'a> {
    pub tool: &'a str,
    pub permission: Permission,
    /// The reason that every call of the tool asks, if there is one.
    pub always_asked: Option<&'static str>,
    pub effects: &'a [ToolEffect],
    /// True if its result may come from the network.
    pub has_network: bool,
    pub reads: Vec<PathTarget>,
    pub writes: Vec<PathTarget>,
    /// The line that it passes to the shell.
    pub line: Option<ParsedLine>,
    /// The walls that there are for its command.
    pub hold: Hold,
    /// The host that it sends a request to.
    pub host: Option<String>,
}

/// A command line, and the directory in which it would run.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    pub command: &'a str,
    /// Absolute, links followed.
    pub dir: &'a Path,
}

/// A command line, parsed, with its paths looked up.
#[derive(Debug, Clone)]
pub struct ParsedLine {
    pub(super) script: ShellScript,
    /// The facts about each of its commands.
    parts: Vec<LineCommand>,
    /// True if it runs in the workspace.
    pub(super) is_inside: bool,
    /// The files that redirections read and write; `None` for one that is only known when it runs.
    pub(super) files: Vec<(Option<PathTarget>, Opens)>,
    /// The paths that its words name in the home directory.
    pub(super) in_home: Vec<PathTarget>,
    /// True if it runs neither in the workspace nor in a directory that the user installed.
    starts_outside: bool,
    /// The configured tool whose command this is: the model wrote only the arguments.
    pub(super) configured: Option<Configured>,
    /// The directory in which its commands run, relative to the workspace; `None` if it is only known when they run.
    pub(super) dir: Option<String>,
}

/// One command of a line.
#[derive(Debug, Clone)]
pub(super) struct LineCommand {
    pub habit: Habit,
    /// The paths that its words could name.
    pub named: Vec<PathTarget>,
    /// The protected files that it changes, as far as its words show.
    changed: Vec<PathTarget>,
    /// The first path outside the workspace, as it is written.
    pub leaves: Option<String>,
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

impl ProposedCall<'_> {
    /// The line of a command inside whole walls, which let it write only in the workspace and reach no network.
    pub(super) fn walled_line(&self) -> Option<&ParsedLine> {
        let is_walled = self.hold == Hold::Whole && !self.has_network && self.permission < Permission::Admin;
        self.line.as_ref().filter(|line| is_walled && line.is_inside)
    }

    /// What its command needs beyond the walls, as far as its words show: the network, and the directories outside the
    /// workspace in which it writes.
    pub fn find_opening(&self, workspace: &Workspace) -> WallOpening {
        let Some(line) = self.line.as_ref().filter(|line| line.is_inside) else { return WallOpening::default() };
        let writing = line.list_possible_paths().filter(|(_, habit)| *habit == Habit::Unknown);
        let written = line.list_opened(|opens| opens == Opens::ToWrite).chain(writing.map(|(target, _)| target));
        let is_beyond = |target: &&PathTarget| {
            target.place == PathPlace::Outside && target.presence != Presence::No && !is_device(target)
        };
        let find_dir = |target: &PathTarget| {
            let dir = if target.is_dir { Some(&*target.real) } else { target.real.parent() };
            dir.map(Path::to_path_buf)
        };
        let dirs = written.filter(is_beyond).filter_map(find_dir);
        let mut dirs: Vec<PathBuf> = dirs.filter(|dir| !workspace.is_in(dir)).collect();
        dirs.sort();
        dirs.dedup();
        let protected = line.list_changed_protected().map(|target| target.real.clone()).collect();
        WallOpening { network: line.uses_network() && !self.has_network, dirs, protected }
    }

    /// True if its command is one of the system and names something that the sandbox keeps from it: a place outside
    /// the workspace, or the network.
    pub fn leaves(&self) -> bool {
        let line = self.line.as_ref().filter(|line| line.script.commands.iter().all(is_of_system));
        line.is_some_and(|line| {
            let opens_outside = line.list_opened(|_| true).any(|file| !file.is_of_work());
            line.leaves().is_some() || opens_outside || line.uses_network()
        })
    }
}

impl ParsedLine {
    /// Parses a line and looks up the paths that it names. `readable` are the directories outside the workspace whose
    /// content the user installed.
    pub fn new(
        invocation: Invocation<'_>,
        workspace: &Workspace,
        readable: &[PathBuf],
        configured: Option<Configured>,
    ) -> Self {
        let script = shell::parse_line(invocation.command);
        let entered = find_entered(&script, invocation.dir, workspace);
        let dir = entered.as_deref().unwrap_or(invocation.dir);
        // After a `cd` that was not followed, a relative path could lead anywhere.
        let moves = |command: &&Simple| matches!(command.program(), Some("cd" | "pushd" | "popd" | "chdir"));
        let moving = script.all().iter().filter(|command| moves(command)).count();
        let is_lost = moving > usize::from(entered.is_some());
        let find = |given: &str| PathTarget::find(workspace, dir, Path::new(given), readable);
        let home = workspace.home().map(|home| home.to_string_lossy());
        let find_in_home = |path: &str| {
            home.as_ref().map(|home| PathTarget { given: format!("~{path}"), ..find(&format!("{home}{path}")) })
        };
        let in_home = script.list_in_home().into_iter().filter_map(find_in_home);
        // A `cd` that was not followed may have led there.
        let words = script.commands.iter().filter(|_| is_lost).flat_map(list_possible_words);
        let in_home = in_home.chain(words.filter_map(|word| find_in_home(&format!("/{word}")))).collect();
        let files = script.all_files().into_iter().map(|file| {
            let target = match &file.target {
                Arg::InHome(path) => find_in_home(path),
                target => target.text().filter(|path| !is_lost || path.starts_with('/')).map(find),
            };
            (target, if file.writes { Opens::ToWrite } else { Opens::ToRead })
        });
        let files = files.collect();
        let expander = WordExpander::new(dir);
        let parts = script.commands.iter().map(|command| LineCommand::new(command, is_lost, &expander, &find));
        let mut parts: Vec<LineCommand> = parts.collect();
        for moved in script.all().into_iter().filter_map(find_moved).map(|moved| dir.join(moved)) {
            let find = |given: &str| PathTarget::find(workspace, &moved, Path::new(given), readable);
            for (part, command) in parts.iter_mut().zip(&script.commands) {
                part.changed.extend(list_changed(command, &WordExpander::new(&moved), &find));
            }
        }
        // If the directory was entered from elsewhere, the words of the first are only the directory.
        if let (Some(first), Some(_)) = (parts.first_mut(), &entered) {
            first.leaves = None;
        }
        let is_inside = invocation.dir.starts_with(workspace.root());
        let runs_in = (!is_lost).then(|| workspace.relative(dir).to_string_lossy().into_owned());
        let starts_outside =
            !PathTarget::find(workspace, invocation.dir, Path::new("."), readable).is_free_to_read();
        Self { script, parts, is_inside, files, in_home, starts_outside, configured, dir: runs_in }
    }

    /// True if it consists of programs that usually only read, and names nothing outside the workspace.
    pub(super) fn only_reads(&self) -> bool {
        let opens_freely = |(target, opens): &(Option<PathTarget>, Opens)| {
            *opens == Opens::ToRead && target.as_ref().is_none_or(PathTarget::is_free_to_read)
        };
        self.is_inside
            && self.script.doubt().is_none()
            && self.files.iter().all(opens_freely)
            && self.parts.iter().all(|part| part.habit >= Habit::Reads)
            && self.leaves().is_none()
    }

    /// True if one of its programs is known to use the network.
    pub(super) fn uses_network(&self) -> bool {
        self.script.all().iter().any(|command| uses_network(command))
    }

    /// The first place outside the workspace that it names, as it is written.
    pub(super) fn leaves(&self) -> Option<&str> {
        let named = self.parts.iter().find_map(|part| part.leaves.as_deref());
        named.or(self.script.names_home().then_some("~"))
    }

    /// The known files that its redirections open in such a way.
    pub(super) fn list_opened(&self, is_so: impl Fn(Opens) -> bool) -> impl Iterator<Item = &PathTarget> {
        self.files.iter().filter(move |(_, opens)| is_so(*opens)).filter_map(|(target, _)| target.as_ref())
    }

    /// The protected files that its commands change, as far as their words show.
    pub(super) fn list_changed_protected(&self) -> impl Iterator<Item = &PathTarget> {
        let opened = self.list_opened(|opens| opens == Opens::ToWrite).filter(|target| target.is_protected);
        opened.chain(self.parts.iter().flat_map(|part| &part.changed))
    }

    /// True if it names something outside the workspace that it could read. Devices contain nobody's text.
    pub(super) fn reaches_outside(&self) -> bool {
        let opened = self.list_opened(|opens| opens == Opens::ToRead);
        let mut reached = opened.chain(self.list_possible_paths().map(|(target, _)| target));
        self.script.names_home()
            || self.starts_outside
            || reached
                .any(|target| !target.is_free_to_read() && target.presence != Presence::No && !is_device(target))
    }

    /// Each simple command, with its facts.
    pub(super) fn commands(&self) -> impl Iterator<Item = (&Simple, &LineCommand)> {
        self.script.commands.iter().zip(&self.parts)
    }

    /// The paths that words could name, and the habit of their command.
    pub(super) fn list_possible_paths(&self) -> impl Iterator<Item = (&PathTarget, Habit)> {
        self.parts.iter().flat_map(|part| part.named.iter().map(|target| (target, part.habit)))
    }
}

impl LineCommand {
    fn new(
        command: &Simple,
        is_lost: bool,
        expander: &WordExpander<'_>,
        find: &dyn Fn(&str) -> PathTarget,
    ) -> Self {
        let mut words: Vec<&str> = list_possible_words(command);
        words.sort_unstable();
        words.dedup();
        let climbs = |word: &&&str| is_lost && word.split('/').any(|part| part == "..");
        let leads_home = matches!(command.program(), Some("cd" | "pushd")) && command.argv.len() == 1;
        let lost = words.iter().find(climbs).copied().or(leads_home.then_some("~")).map(str::to_owned);
        let named: Vec<PathTarget> = words.into_iter().map(find).collect();
        let begun = command.names.iter().filter_map(|text| find_directory(text)).map(find);
        let begun: Vec<PathTarget> = begun.collect();
        // Devices that contain nobody's text.
        let devices = ["/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd"];
        let holds = |target: &&PathTarget| target.presence != Presence::No && !devices.contains(&&*target.given);
        let is_left = |target: &&PathTarget| !target.is_free_to_read() && holds(target);
        let left = || named.iter().chain(&begun).find(is_left).map(|target| target.given.clone());
        let leaves = lost.or_else(left);
        Self { habit: find_habit(command), named, changed: list_changed(command, expander, find), leaves }
    }

    /// True if it has no way to write, and reads only in the workspace.
    pub(super) fn is_harmless(&self) -> bool {
        self.habit == Habit::OnlyReads && self.leaves.is_none()
    }
}

/// A line with the values of its variables in their places, each a quoted word: so it is judged as if it had been written
/// with them. What could name no path stays a variable.
pub fn fill_variables(line: &str, variables: &[(String, String)]) -> String {
    let (mut filled, mut rest) = (String::new(), line);
    let escape = |text: String, sign: char| text.replace(sign, &format!("\\{sign}"));
    while let Some((before, after)) = rest.split_once("${") {
        let fits = |value: &str| value.len() <= LONGEST_PATH && !value.contains(char::is_control);
        let known = after.split_once('}').and_then(|(name, after)| {
            let (_, value) = variables.iter().find(|(known, value)| known == name && fits(value))?;
            Some((value, after))
        });
        let (before, value, after) = match known {
            None => (before, "${".to_owned(), after),
            Some((value, after)) => match (before.strip_suffix('"'), after.strip_prefix('"')) {
                (Some(before), Some(after)) => (before, text::shell_quoted(value), after),
                _ => (before, ['\\', '$', '"', '`'].into_iter().fold(value.clone(), escape), after),
            },
        };
        filled.extend([before, &value]);
        rest = after;
    }
    filled + rest
}
/// The directory that a `cd` at the beginning of the line leads to, if that is certain and part of the work.
fn find_entered(script: &ShellScript, dir: &Path, workspace: &Workspace) -> Option<PathBuf> {
    let first = script.commands.first().filter(|_| script.enters_first && script.unresolved.is_none())?;
    let [program, target] = first.argv.as_slice() else { return None };
    let target = target.text().filter(|target| !target.is_empty() && !target.starts_with('-'))?;
    let target = workspace.resolve_path(&dir.join(target));
    let is_followed = program.text() == Some("cd") && first.assigned.is_empty();
    (is_followed && (target.inside || workspace.is_beside(&target.path)) && target.path.is_dir())
        .then_some(target.path)
}

/// The directory that a command enters, or has another one enter.
fn find_moved(command: &Simple) -> Option<&str> {
    let mut words = command.argv.iter().skip(1).filter_map(Arg::text);
    match command.program_name() {
        "cd" | "pushd" | "chdir" => words.find(|word| !word.starts_with('-')),
        "env" => {
            let flag = words.find(|word| word.starts_with("-C") || word.starts_with("--chdir"))?;
            let joined = flag.trim_start_matches("--chdir").trim_start_matches("-C").trim_start_matches('=');
            if joined.is_empty() { words.next() } else { Some(joined) }
        }
        _ => None,
    }
}

/// The directory at the beginning of a text that continues with something unknown.
fn find_directory(text: &str) -> Option<&str> {
    let path = text.split_once('=').map_or(text, |(_, value)| value);
    path.rfind('/').map(|at| &path[..=at]).filter(|dir| dir.len() <= LONGEST_PATH)
}

fn is_device(target: &PathTarget) -> bool {
    target.path.starts_with("/dev/")
}

/// The paths of a call, looked up from the workspace.
pub fn look_up_targets(workspace: &Workspace, given: &[&str], readable: &[PathBuf]) -> Vec<PathTarget> {
    given.iter().map(|given| PathTarget::look_up(workspace, given, readable)).collect()
}

#[cfg(test)]
mod tests {
    use super::fill_variables;

    #[test]
    fn a_line_is_judged_with_the_values_of_its_variables() {
        let variables = [("a", ".git"), ("b", "it's ${a}\""), ("c", "x\ny")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (line, expected) in [
            ("rm -rf \"${a}\"", "rm -rf '.git'"),
            ("rm \"x/${a}\" \"${b}\"", "rm \"x/.git\" 'it'\\''s ${a}\"'"),
            ("rm \"${a}${b}\"", "rm \".gitit's \\${a}\\\"\""),
            ("rm \"${c}\" ${d} ${a", "rm \"${c}\" ${d} ${a"),
        ] {
            assert_eq!(fill_variables(line, &variables), expected);
        }
    }
}
