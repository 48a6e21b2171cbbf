//! Decides which calls may run without asking: pure judgements over a call, the declarations of its tool, and the
//! rules of the configuration.
//!
//! Calls that read inside the workspace run. Calls that write or execute ask, unless the mode or a rule says
//! otherwise. Rules beat modes: deny wins, then ask, then allow. A call outside of the permitted scope asks and is
//! never silently allowed; a call whose effects are unknown before it runs is never considered harmless. Once
//! outside content has entered the conversation, calls that write or use the network ask, even if something else
//! would permit them.

mod call;
mod command;
mod grant;
mod pattern;
mod programs;
mod rules;
mod shell;
mod taint;
mod target;

#[cfg(test)]
mod cases;

use crate::config::ApprovalMode;
use crate::contract::{Effect, Permission};

use rules::Objection;

pub use call::{Call, Configured, Line, targets};
pub use command::{Invocation, only_reads};
pub use grant::{Grant, Grants};
pub use rules::Rules;
pub use taint::brings_in;
pub use target::{Place, Target};

/// The decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow(Grounds),
    /// A person decides.
    Ask {
        why: String,
        /// The grant they may give for the rest of the session, if there is a narrow one.
        always: Option<Grant>,
    },
    /// It does not run; the text says why, for the model.
    Deny { why: String, grounds: Grounds },
}

/// The ground of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grounds {
    /// The mode, together with the properties of the call.
    Mode,
    /// A rule of the configuration.
    Rule,
}

/// Judges one call. `taint` is the outside source in the conversation, as returned by [`brings_in`].
#[must_use]
pub fn judge(mode: ApprovalMode, rules: &Rules, call: &Call<'_>, taint: Option<&str>) -> Verdict {
    let could_do_harm = call.permission > Permission::Read || call.effects.contains(&Effect::Network);
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
        Some(Objection::Asked(why)) => return ask(why, grant::offer(call)),
        None => {}
    }
    if call.requires_confirmation && mode != ApprovalMode::All {
        return ask("it is set to be asked about every time".to_owned(), None);
    }
    match (reason_to_ask(mode, call), &tainted) {
        _ if mode == ApprovalMode::All => Verdict::Allow(Grounds::Mode),
        (None, None) => Verdict::Allow(Grounds::Mode),
        (Some(_), None) if rules.allow(call, mode) => Verdict::Allow(Grounds::Rule),
        (Some(why), _) => ask(why, grant::offer(call)),
        (None, Some(tainted)) => ask(tainted.clone(), grant::offer(call)),
    }
}

fn reason_to_ask(mode: ApprovalMode, call: &Call<'_>) -> Option<String> {
    if let Some(target) = call.writes.iter().find(|target| !target.is_inside()) {
        return Some(format!("it writes `{}`, {}", target.given, target.place.described()));
    }
    if let Some(target) = call.reads.iter().find(|target| !target.is_free_to_read()) {
        return Some(format!("it reads `{}`, {}", target.given, target.place.described()));
    }
    if call.permission == Permission::Read {
        return None;
    }
    if let Some(target) = call.writes.iter().find(|target| target.is_protected) {
        return Some(format!("it writes `{}`, {}", target.given, target.protection));
    }
    if mode == ApprovalMode::Edits && call.effects == [Effect::Files] {
        return None;
    }
    Some(match call.effects {
        effects if effects.contains(&Effect::Process) => "it runs a command".to_owned(),
        effects if effects.contains(&Effect::Network) => "it uses the network".to_owned(),
        _ => "it changes files".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_frees_what_it_says_and_nothing_else() {
        use ApprovalMode::{All, Ask, Edits, Never};
        let inside =
            || Target { given: "x".to_owned(), path: "x".to_owned(), place: Place::Inside, ..Target::default() };
        let outside = || Target { place: Place::Outside, ..inside() };
        let protected = || Target { is_protected: true, ..inside() };
        let secret = || Target { place: Place::Secret, ..inside() };
        let read = |reads: Vec<Target>| Call {
            tool: "t",
            permission: Permission::Read,
            requires_confirmation: false,
            effects: &[],
            has_network: false,
            reads,
            writes: Vec::new(),
            line: None,
        };
        let write = |effects: &'static [Effect], writes: Vec<Target>| Call {
            permission: Permission::Write,
            effects,
            writes,
            ..read(Vec::new())
        };
        let table = [
            ("reading", read(vec![inside()]), "run run run run"),
            ("an edit", write(&[Effect::Files], vec![inside()]), "ask run run deny"),
            ("a command", write(&[Effect::Process], Vec::new()), "ask ask run deny"),
            ("reading outside", read(vec![outside()]), "ask ask run deny"),
            ("reading credentials", read(vec![secret()]), "ask ask run deny"),
            ("reading a skill", read(vec![Target { place: Place::Readable, ..inside() }]), "run run run run"),
            (
                "reading that is to be confirmed",
                Call { requires_confirmation: true, ..read(vec![inside()]) },
                "ask ask run deny",
            ),
            ("an edit outside", write(&[Effect::Files], vec![outside()]), "ask ask run deny"),
            ("an edit of what git runs", write(&[Effect::Files], vec![protected()]), "ask ask run deny"),
        ];
        for (what, call, expected) in table {
            let verdicts =
                [Ask, Edits, All, Never].map(|mode| match judge(mode, &Rules::default(), &call, None) {
                    Verdict::Allow(_) => "run",
                    Verdict::Ask { .. } => "ask",
                    Verdict::Deny { .. } => "deny",
                });
            assert_eq!(verdicts.join(" "), expected, "{what}");
        }
    }
}
