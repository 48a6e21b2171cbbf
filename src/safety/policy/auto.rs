//! What the approval mode `auto` stands for.

use crate::config::ApprovalMode;

/// The facts that `auto` depends on, besides the walls. Content from outside needs no place here: where it has entered a
/// conversation, writing asks in every mode but `all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoFacts {
    /// True if a person chats; false for one task.
    pub is_chat: bool,
    /// True if every change can be taken back exactly.
    pub is_undone_exactly: bool,
    /// True if something that the workspace brings along waits for trust.
    pub waits_for_trust: bool,
}

/// The mode that a setting means. `is_walled` tells whether commands run in the whole form of the boundary: it sets the
/// boundary up, so it is asked last.
pub fn choose_approval(setting: ApprovalMode, facts: AutoFacts, is_walled: impl FnOnce() -> bool) -> ApprovalMode {
    let AutoFacts { is_chat, is_undone_exactly, waits_for_trust } = facts;
    match setting {
        ApprovalMode::Auto if is_chat && is_undone_exactly && !waits_for_trust && is_walled() => {
            ApprovalMode::Edits
        }
        ApprovalMode::Auto => ApprovalMode::Ask,
        chosen => chosen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_edits_only_where_nothing_speaks_against_it() {
        let best = AutoFacts { is_chat: true, is_undone_exactly: true, waits_for_trust: false };
        let table = [
            (best, true, ApprovalMode::Edits),
            (best, false, ApprovalMode::Ask),
            (AutoFacts { is_chat: false, ..best }, true, ApprovalMode::Ask),
            (AutoFacts { is_undone_exactly: false, ..best }, true, ApprovalMode::Ask),
            (AutoFacts { waits_for_trust: true, ..best }, true, ApprovalMode::Ask),
        ];
        for (facts, is_walled, expected) in table {
            assert_eq!(
                choose_approval(ApprovalMode::Auto, facts, || is_walled),
                expected,
                "{facts:?}, {is_walled}"
            );
            for chosen in ApprovalMode::ALL.into_iter().filter(|mode| *mode != ApprovalMode::Auto) {
                assert_eq!(choose_approval(chosen, facts, || is_walled), chosen);
            }
        }
    }
}
