//! What may run without asking: pure judgements over a call and what its tool declares.
//!
//! Reading inside the workspace runs. What writes or executes asks, unless the mode says otherwise. A call outside
//! of what the mode frees is asked about, never silently allowed.

mod command;
mod programs;
mod shell;

use crate::config::ApprovalMode;
use crate::contract::{Effect, Permission};

pub use command::{Invocation, only_reads};

/// What the policy knows of a call.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub permission: Permission,
    /// Whoever configured the tool wants to be asked every time.
    pub requires_confirmation: bool,
    pub effects: &'a [Effect],
    /// The first path read that lies outside of the workspace and of what else may be read (skills).
    pub reads_outside: Option<&'a str>,
    /// The first path written that lies outside of the workspace.
    pub writes_outside: Option<&'a str>,
    /// The first path written that decides what runs or what is allowed later (`.git/`, `.agent/`).
    pub writes_protected: Option<&'a str>,
}

/// What may happen to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// A person decides; the text says why.
    Ask(String),
    /// The mode decided; the text says why, for the model.
    Deny(String),
}

/// Judges one call.
#[must_use]
pub fn judge(mode: ApprovalMode, facts: Facts<'_>) -> Verdict {
    if mode == ApprovalMode::All {
        return Verdict::Allow;
    }
    match (reason_to_ask(mode, facts), mode) {
        (None, _) => Verdict::Allow,
        (Some(why), ApprovalMode::Never) => {
            Verdict::Deny(format!("{why}, and the approval mode `never` refuses whatever would have to ask"))
        }
        (Some(why), _) => Verdict::Ask(why),
    }
}

fn reason_to_ask(mode: ApprovalMode, facts: Facts<'_>) -> Option<String> {
    if facts.requires_confirmation {
        return Some("it is set to be asked about every time".to_owned());
    }
    if let Some(path) = facts.writes_outside {
        return Some(format!("it writes `{path}`, outside the workspace"));
    }
    if let Some(path) = facts.reads_outside {
        return Some(format!("it reads `{path}`, outside the workspace"));
    }
    if facts.permission == Permission::Read {
        return None;
    }
    if let Some(path) = facts.writes_protected {
        return Some(format!("it writes `{path}`, which decides what runs later"));
    }
    if mode == ApprovalMode::Edits && facts.effects == [Effect::Files] {
        return None;
    }
    Some(match facts.effects {
        effects if effects.contains(&Effect::Process) => "it runs a command".to_owned(),
        effects if effects.contains(&Effect::Network) => "it uses the network".to_owned(),
        _ => "it changes files".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Facts<'_> = Facts {
        permission: Permission::Read,
        requires_confirmation: false,
        effects: &[],
        reads_outside: None,
        writes_outside: None,
        writes_protected: None,
    };
    const EDIT: Facts<'_> = Facts { permission: Permission::Write, effects: &[Effect::Files], ..READ };
    const COMMAND: Facts<'_> = Facts { permission: Permission::Write, effects: &[Effect::Process], ..READ };
    const READ_OUT: Facts<'_> = Facts { reads_outside: Some("/etc/passwd"), ..READ };
    const CONFIRMED: Facts<'_> = Facts { requires_confirmation: true, ..READ };
    const EDIT_OUT: Facts<'_> = Facts { writes_outside: Some("../x"), ..EDIT };
    const EDIT_GIT: Facts<'_> = Facts { writes_protected: Some(".git/hooks/pre-commit"), ..EDIT };

    #[test]
    fn each_mode_frees_what_it_says_and_nothing_else() {
        use ApprovalMode::{All, Ask, Edits, Never};
        let table = [
            ("reading", READ, "run run run run"),
            ("an edit", EDIT, "ask run run deny"),
            ("a command", COMMAND, "ask ask run deny"),
            ("reading outside", READ_OUT, "ask ask run deny"),
            ("an edit outside", EDIT_OUT, "ask ask run deny"),
            ("reading that is to be confirmed", CONFIRMED, "ask ask run deny"),
            ("an edit of what git runs", EDIT_GIT, "ask ask run deny"),
        ];
        for (what, facts, expected) in table {
            let verdicts = [Ask, Edits, All, Never].map(|mode| match judge(mode, facts) {
                Verdict::Allow => "run",
                Verdict::Ask(_) => "ask",
                Verdict::Deny(_) => "deny",
            });
            assert_eq!(verdicts.join(" "), expected, "{what}");
        }
    }
}
