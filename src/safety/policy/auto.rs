//! What the approval mode `auto` stands for.

use crate::config::ApprovalMode;

/// The facts that `auto` depends on, besides the walls. Content from outside needs no place here: where it has entered a
/// conversation, writing asks in every mode but `all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoFacts {
    /// True if a person chats; false for one task.
    pub is_chat: bool,
    /// True if the conversation is kept, and with it what it changes in files, so that it can be undone.
    pub is_undoable: bool,
    /// True if something that the workspace brings along waits for trust.
    pub waits_for_trust: bool,
}

/// The mode that a setting stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChosenApproval {
    pub mode: ApprovalMode,
    /// True if the mode holds only as long as changes can be undone; else it is `ask`.
    pub needs_undo: bool,
    /// For a person: what keeps a chat under `auto` from being `edits`.
    pub why_asked: Option<&'static str>,
}

/// The mode that a setting means. `is_walled` tells whether commands run in the whole form of the boundary: it sets the
/// boundary up, so it is asked last.
pub fn choose_approval(
    setting: ApprovalMode,
    facts: AutoFacts,
    is_walled: impl FnOnce() -> bool,
) -> ChosenApproval {
    let chosen = |mode, why_asked| ChosenApproval { mode, needs_undo: false, why_asked };
    let AutoFacts { is_chat, is_undoable, waits_for_trust } = facts;
    match setting {
        ApprovalMode::Auto if !is_chat => chosen(ApprovalMode::Ask, None),
        ApprovalMode::Auto if !is_undoable => {
            chosen(ApprovalMode::Ask, Some("changes are not recorded, so they could not be undone"))
        }
        ApprovalMode::Auto if waits_for_trust => {
            chosen(ApprovalMode::Ask, Some("what this workspace brings along waits for your trust"))
        }
        ApprovalMode::Auto if !is_walled() => {
            chosen(ApprovalMode::Ask, Some("commands are not fully confined here: agent doctor says why"))
        }
        ApprovalMode::Auto => ChosenApproval { mode: ApprovalMode::Edits, needs_undo: true, why_asked: None },
        mode => chosen(mode, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_edits_only_where_nothing_speaks_against_it() {
        let best = AutoFacts { is_chat: true, is_undoable: true, waits_for_trust: false };
        let table = [
            (best, true, ApprovalMode::Edits),
            (best, false, ApprovalMode::Ask),
            (AutoFacts { is_chat: false, ..best }, true, ApprovalMode::Ask),
            (AutoFacts { is_undoable: false, ..best }, true, ApprovalMode::Ask),
            (AutoFacts { waits_for_trust: true, ..best }, true, ApprovalMode::Ask),
        ];
        for (facts, is_walled, expected) in table {
            let ChosenApproval { mode, needs_undo, why_asked } =
                choose_approval(ApprovalMode::Auto, facts, || is_walled);
            assert_eq!(mode, expected, "{facts:?}, {is_walled}");
            assert_eq!(needs_undo, expected == ApprovalMode::Edits);
            assert_eq!(why_asked.is_some(), facts.is_chat && expected == ApprovalMode::Ask);
            for chosen in ApprovalMode::ALL.into_iter().filter(|mode| *mode != ApprovalMode::Auto) {
                let expected = ChosenApproval { mode: chosen, needs_undo: false, why_asked: None };
                assert_eq!(choose_approval(chosen, facts, || is_walled), expected);
            }
        }
    }
}
