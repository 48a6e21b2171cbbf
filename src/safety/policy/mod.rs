//! Decides which calls may run without asking: pure judgements over a call, the declarations of its tool, and the
//! rules of the configuration.
//!
//! Calls that read inside the workspace run, and so do lines of programs that usually only read, in walls that hold
//! them to it. Calls that write or execute ask, unless the mode or a rule says otherwise; under `edits`, whole walls say
//! so for a command. Rules beat modes: deny wins,
//! then ask, then allow. A call outside the permitted scope asks and is never silently allowed; a call whose effects
//! are unknown before it runs is never considered harmless. Once outside content has entered the conversation, calls
//! that write or use the network ask, even if something else would permit them.

mod auto;
mod call;
mod expansion;
mod grant;
mod habits;
mod operands;
mod pattern;
pub mod programs;
mod rules;
mod shell;
mod taint;
mod target;

#[cfg(test)]
mod tests;

use crate::config::{ApprovalMode, Permission, ToolEffect};
use crate::safety::Hold;

use call::Opens;
use habits::{Habit, find_habit, prints_objects};
use rules::Objection;

pub use auto::{AutoFacts, ChosenApproval, choose_approval};
pub use call::{Configured, Invocation, ParsedLine, ProposedCall, fill_variables, look_up_targets};
pub use grant::{Grant, SessionGrants};
pub use rules::PolicyRules;
pub use shell::parse_line as read_line;
pub use taint::brings_in;
pub use target::{PathPlace, PathTarget};

/// The decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow(Grounds),
    /// The user decides.
    Ask {
        why: String,
        /// The grant they may give for the rest of the session, if there is a narrow one.
        always: Option<Grant>,
    },
    /// It does not run; the text gives the model the reason.
    Deny { why: String, grounds: Grounds },
}

/// The ground of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grounds {
    /// The mode, together with the properties of the call.
    Mode,
    /// Every program of the line usually only reads: it runs in walls that confine it to that.
    Reading,
    /// A rule of the configuration.
    Rule,
}

/// Judges one call. `taint` is the outside source in the conversation, as returned by [`brings_in`].
pub fn judge_call(
    mode: ApprovalMode,
    rules: &PolicyRules,
    call: &ProposedCall<'_>,
    taint: Option<&str>,
) -> Verdict {
    let is_enclosed = reads_in_walls(call);
    let could_do_harm = if is_enclosed {
        call.has_network
    } else {
        call.permission > Permission::Read || call.effects.contains(&ToolEffect::Network)
    };
    let tainted = taint.filter(|_| could_do_harm).map(|source| format!("{source} has entered this conversation"));
    let ask = |why: String, always| {
        let why = match &tainted {
            Some(tainted) if *tainted != why => format!("{why}, and {tainted}"),
            _ => why,
        };
        match mode {
            ApprovalMode::Never => Verdict::Deny {
                why: format!("{why}, and the approval mode `never` refuses whatever would have to ask"),
                grounds: Grounds::Mode,
            },
            _ => Verdict::Ask { why, always },
        }
    };
    match rules.objection(call) {
        Some(Objection::Denied(why)) => return Verdict::Deny { why, grounds: Grounds::Rule },
        Some(Objection::Doubtful(why)) => return ask(why, None),
        Some(Objection::Asked(why)) => return ask(why, grant::offer_grant(call)),
        None => {}
    }
    if let Some(why) = find_gap(rules, call) {
        return ask(why, None);
    }
    if mode == ApprovalMode::All {
        return match what_all_leaves_out(call) {
            Some(_) if rules.allow(call, mode) => Verdict::Allow(Grounds::Rule),
            Some(why) => ask(why, grant::offer_grant(call)),
            None => Verdict::Allow(Grounds::Mode),
        };
    }
    if let Some(why) = call.always_asked {
        return ask(why.to_owned(), None);
    }
    let by_itself = if is_enclosed { Grounds::Reading } else { Grounds::Mode };
    match (reason_to_ask(mode, call, is_enclosed), &tainted) {
        // A call that a rule allows may write, even if it would run without the rule.
        (reason, None) if (reason.is_some() || is_enclosed) && rules.allow(call, mode) => {
            Verdict::Allow(Grounds::Rule)
        }
        (None, None) => Verdict::Allow(by_itself),
        (Some(why), _) => ask(why, grant::offer_grant(call)),
        (None, Some(tainted)) => ask(tainted.clone(), grant::offer_grant(call)),
    }
}

/// Judges one call of a turn that only reads: reading is judged as usual, a command runs in walls that allow no writing
/// or not at all, and whatever would change something is denied, whatever else permits it.
pub fn judge_exploring(
    mode: ApprovalMode,
    rules: &PolicyRules,
    call: &ProposedCall<'_>,
    taint: Option<&str>,
) -> Verdict {
    let deny = |why: String| Verdict::Deny { why, grounds: Grounds::Mode };
    let verdict = judge_call(mode, rules, call, taint);
    let is_forbidden = matches!(verdict, Verdict::Deny { grounds: Grounds::Rule, .. });
    let only_reads = call.permission == Permission::Read || reads_in_walls(call);
    if is_forbidden || (only_reads && call.line.is_none()) {
        return verdict;
    }
    if !only_reads {
        return deny(EXPLORING.to_owned());
    }
    match verdict {
        Verdict::Allow(_) if call.hold >= Hold::Reading => Verdict::Allow(Grounds::Reading),
        Verdict::Allow(_) => deny(format!("no sandbox holds it to reading, and {EXPLORING}")),
        // Allowing a command would allow it to write.
        Verdict::Ask { why, .. } => deny(format!("{why}, and {EXPLORING}")),
        Verdict::Deny { .. } => verdict,
    }
}

/// The reason that a call does not run in mode `explore`, for the model.
pub const EXPLORING: &str =
    "this message is answered in mode `explore`, which changes nothing: propose it in your answer";

/// True if no call of this tool can run: a rule denies all of them, or each would have to ask, and nobody answers.
pub fn is_always_denied(
    mode: ApprovalMode,
    rules: &PolicyRules,
    tool: &str,
    effects: &[ToolEffect],
    is_answered: bool,
) -> bool {
    // A command may only read, and another tool than those for files may do anything.
    let must_ask = matches!(mode, ApprovalMode::Ask | ApprovalMode::Never) && effects == [ToolEffect::Files];
    let is_refused = !is_answered || mode == ApprovalMode::Never;
    rules.deny_all_of(tool) || must_ask && is_refused && !rules.could_allow(tool)
}

/// True if a command that was held to reading, and needs more, may write as well without a question.
pub fn frees_writing(mode: ApprovalMode, call: &ProposedCall<'_>, taint: Option<&str>) -> bool {
    let line = call.walled_line().filter(|_| mode == ApprovalMode::Edits && taint.is_none());
    line.is_some_and(|line| what_walls_leave_out(call, line).is_none())
}

/// True if a command line consists of programs that usually only read, and opens no file to write.
pub fn usually_reads(line: &str) -> bool {
    let script = shell::parse_line(line);
    let keeps = |file: &shell::Redirect| file.writes && file.target.text() != Some("/dev/null");
    let reads = |command: &shell::Simple| command.inside.is_some() || find_habit(command) >= Habit::Reads;
    let commands = script.all();
    script.doubt().is_none()
        && !commands.is_empty()
        && commands.into_iter().all(reads)
        && !script.all_files().into_iter().any(keeps)
}

/// True if it is a line of programs that usually only read, and there are walls to confine it to that.
fn reads_in_walls(call: &ProposedCall<'_>) -> bool {
    let is_own = |line: &ParsedLine| line.configured.is_none() && line.only_reads();
    call.hold >= Hold::Reading && call.line.as_ref().is_some_and(is_own)
}

/// The reason that no walls confine the command, if none do.
fn find_gap(rules: &PolicyRules, call: &ProposedCall<'_>) -> Option<String> {
    let line = call.line.as_ref()?;
    if let Some(program) = rules.find_delegate(call.tool, line) {
        return Some(format!("`{program}` has another program do its work, outside any sandbox"));
    }
    let rule = rules.hiding()?;
    let prints = |command: &&shell::Simple| prints_objects(command);
    if let Some(command) = line.script.all().into_iter().find(prints) {
        let words: Vec<&str> = command.argv.iter().filter_map(|word| word.text()).take(2).collect();
        return Some(format!(
            "`{}` could print from git's objects what the rule `{rule}` forbids",
            words.join(" ")
        ));
    }
    (call.hold < Hold::Permitted)
        .then(|| format!("nothing here hides from a command what the rule `{rule}` forbids"))
}

/// The reason that the mode that allows everything still asks, if it does.
fn what_all_leaves_out(call: &ProposedCall<'_>) -> Option<String> {
    let opened = |opens| call.line.iter().flat_map(move |line| line.list_opened(move |other| other == opens));
    let named = call.line.iter().flat_map(ParsedLine::list_possible_paths).map(|(target, _)| target);
    let in_home = call.line.iter().flat_map(|line| &line.in_home);
    let mut read = call.reads.iter().chain(opened(Opens::ToRead)).chain(named).chain(in_home);
    if let Some(target) = read.find(|target| target.place == PathPlace::Secret) {
        return Some(format!("it reads `{}`, where credentials are kept", target.given));
    }
    let changed = call.line.iter().flat_map(ParsedLine::list_changed_protected);
    if let Some(target) = call.writes.iter().filter(|target| target.is_protected).chain(changed).next() {
        return Some(writes_protected(target));
    }
    let written = || call.writes.iter().chain(opened(Opens::ToWrite));
    // Walls know better what a command may write.
    let is_bounded = call.line.is_some() && call.hold >= Hold::Reading;
    let is_left = |target: &&PathTarget| !target.is_of_work() && !target.path.starts_with("/dev/");
    written().find(is_left).filter(|_| !is_bounded).map(writes_outside)
}

fn reason_to_ask(mode: ApprovalMode, call: &ProposedCall<'_>, is_enclosed: bool) -> Option<String> {
    if let Some(target) = call.writes.iter().find(|target| !target.is_of_work()) {
        return Some(writes_outside(target));
    }
    if let Some(target) = call.reads.iter().find(|target| !target.is_free_to_read()) {
        return Some(format!("it reads `{}`, {}", target.given, target.place.describe()));
    }
    if let Some(host) = &call.host {
        return Some(format!("it sends a request to {host}"));
    }
    if call.permission == Permission::Read || is_enclosed {
        return None;
    }
    if let Some(target) = call.writes.iter().find(|target| target.is_protected) {
        return Some(writes_protected(target));
    }
    if mode == ApprovalMode::Edits {
        if call.effects == [ToolEffect::Files] {
            return None;
        }
        if let Some(line) = call.walled_line() {
            return what_walls_leave_out(call, line);
        }
    }
    Some(match call.effects {
        effects if effects.contains(&ToolEffect::Process) || call.line.is_some() => why_it_runs(call),
        effects if effects.contains(&ToolEffect::Network) => "it uses the network".to_owned(),
        _ => "it changes files".to_owned(),
    })
}

/// The reason that a command inside whole walls asks all the same: it reaches for something beyond them, or that decides
/// what runs later. Whatever its words do not show fails at the walls.
fn what_walls_leave_out(call: &ProposedCall<'_>, line: &ParsedLine) -> Option<String> {
    if let Some(target) = line.list_changed_protected().next() {
        return Some(writes_protected(target));
    }
    let is_left = |target: &&PathTarget| !target.is_free_to_read() && !target.path.starts_with("/dev/");
    if let Some(target) = line.list_opened(|_| true).find(is_left) {
        return Some(format!("it opens `{}`, {}", target.given, target.place.describe()));
    }
    (line.leaves().is_some() || line.uses_network()).then(|| why_it_runs(call))
}

/// The reason that a command is asked about.
fn why_it_runs(call: &ProposedCall<'_>) -> String {
    let further = match call.line.as_ref().filter(|line| line.configured.is_none()) {
        None if call.line.is_none() => return "a server of tools does it".to_owned(),
        Some(line) if line.only_reads() => ", and no sandbox holds it to reading".to_owned(),
        Some(line) if let Some(path) = line.leaves() => format!(" with `{path}`, outside the workspace"),
        Some(line) if line.uses_network() && !call.has_network => {
            " that uses the network, which sandbox.network opens".to_owned()
        }
        _ => String::new(),
    };
    format!("it runs a command{further}")
}

fn writes_outside(target: &PathTarget) -> String {
    format!("it writes `{}`, {}", target.given, target.place.describe())
}

fn writes_protected(target: &PathTarget) -> String {
    format!("it writes `{}`, {}", target.given, target.protection)
}
