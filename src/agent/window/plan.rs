//! Plans how to shrink a conversation, for every strategy: decides and writes the changes without applying them.

use std::collections::BTreeSet;

use crate::config::Strategy;
use crate::conversation::message::Item;
use crate::conversation::session::{ItemId, ViewEdit};

use super::draft::PlanDraft;
use super::goal::Goal;
use super::room::Room;
use super::ruler::Ruler;
use super::{importance, staged};

/// A conversation as a strategy sees it. The lists are aligned.
#[derive(Clone, Copy)]
pub struct Material<'a> {
    pub items: &'a [Item],
    pub ids: &'a [ItemId],
    /// The tokens of each item.
    pub weights: &'a [u64],
    /// The tokens of the tool definitions and the system prompt.
    pub fixed: u64,
    /// The numbers of items that must not change.
    pub pinned: &'a BTreeSet<u64>,
    /// Measures texts that are not part of the conversation yet.
    pub ruler: &'a Ruler,
}

impl Material<'_> {
    /// The tokens of the request.
    pub fn tokens(&self) -> u64 {
        self.fixed + self.weights.iter().sum::<u64>()
    }

    /// The person's last message.
    pub fn find_asked(&self) -> Option<usize> {
        self.items.iter().rposition(|item| item.said_by_person().is_some())
    }

    /// The tokens of what no compression removes: prompt and tools, pinned items and the person's last message.
    pub fn measure_kept(&self) -> u64 {
        let asked = self.find_asked();
        let stays = |at: &usize| Some(*at) == asked || self.pinned.contains(&self.ids[*at].number);
        self.fixed + (0..self.items.len()).filter(stays).map(|at| self.weights[at]).sum::<u64>()
    }
}

/// The changes, and the resulting size of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressionPlan {
    /// Estimated, with the summary at its full size. Over [`Goal::most`] only if nothing is left to remove.
    pub tokens: u64,
    /// The changes of items, in order, including those of `removed`.
    pub edits: Vec<ViewEdit>,
    /// The indices of the removed items, which a summary replaces.
    pub removed: Vec<usize>,
    /// The number of items that stay but are shortened.
    pub masked: usize,
    /// The skills that have no text left, and the tokens that this frees.
    pub unloaded: Vec<(String, u64)>,
    /// The room for the summary.
    pub room: Room,
}

/// Plans by a strategy. `None` if no plan is worth losing the cache. A request over [`Goal::most`] always gets a
/// plan.
pub fn plan_compression(strategy: Strategy, material: Material<'_>, goal: Goal) -> Option<CompressionPlan> {
    let before = material.tokens();
    let is_due = before > goal.at || before > goal.most || goal.asked;
    if !is_due {
        return None;
    }
    let goal = if goal.asked { goal.for_a_person(before, material.measure_kept()) } else { goal };
    let draft = PlanDraft::new(material, goal);
    let draft = match strategy {
        Strategy::Staged => staged::plan_stages(draft),
        Strategy::Summary => staged::plan_summary(draft),
        Strategy::Window => importance::plan_removal(0..draft.recent, draft),
        Strategy::Selective => importance::remove_least_important(draft),
    };
    let gain = before.saturating_sub(draft.tokens());
    // A smaller gain is not worth the provider's cache, unless it reaches the goal and buys some steps.
    let least = if goal.asked { 1 } else { goal.most * 15 / 100 };
    let is_worth_it = gain >= least || (gain >= draft.many_steps().min(least) && draft.tokens() <= goal.to);
    (before > goal.most || is_worth_it).then(|| draft.finish())
}
