//! A draft of a plan: the decisions so far, and the resulting size of the request.

mod shorten;

use std::cell::OnceCell;
use std::collections::HashSet;

use crate::base::image;
use crate::conversation::message::Item;
use crate::conversation::session::{ItemChange, ViewEdit};

use super::calls;
use super::digest;
use super::entry;
use super::goal::Goal;
use super::plan::{CompressionPlan, Material};
use super::room::Room;
use super::skills::{self, SkillUse};
use super::summary::{SummaryFacts, compose_summary};

/// The fate of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    /// It stays, with these changes.
    Stay(Vec<ItemChange>),
    Remove,
}

/// A draft of a plan.
#[derive(Clone)]
pub struct PlanDraft<'a> {
    pub material: Material<'a>,
    pub goal: Goal,
    pub room: Room,
    /// The first of the recent items, which include the last step.
    pub recent: usize,
    /// The last step.
    pub last_step: Option<usize>,
    /// The person's last message.
    pub asked: Option<usize>,
    /// The failed answers, by item and call, that were not overcome, and the newest plan.
    telling: OnceCell<HashSet<(usize, usize)>>,
    skills: Vec<SkillUse>,
    fates: Vec<Fate>,
    weights: Vec<u64>,
    tokens: u64,
    /// The tokens of the summary that replaces removed items.
    standing: u64,
}

impl<'a> PlanDraft<'a> {
    pub fn new(material: Material<'a>, goal: Goal) -> Self {
        let items = material.items;
        let last_step = items.iter().rposition(|item| item.as_step().is_some());
        let asked = material.find_asked();
        let mut draft = Self {
            room: Room::measure(&goal, material.measure_kept(), material.ruler),
            recent: items.len(),
            last_step,
            asked,
            telling: OnceCell::new(),
            skills: Vec::new(),
            fates: vec![Fate::Stay(Vec::new()); items.len()],
            weights: material.weights.to_vec(),
            tokens: material.tokens(),
            standing: 0,
            material,
            goal,
        };
        draft.recent = draft.first_recent();
        draft.skills = skills::find_skill_uses(items, draft.recent);
        draft
    }

    /// Items that always stay do not count: they would leave no room for new ones.
    fn first_recent(&self) -> usize {
        let mut room = self.goal.recent;
        let mut first = self.material.items.len();
        while let Some(at) = first.checked_sub(1) {
            let weight = if self.stays(at) { 0 } else { self.weights[at] };
            if weight > room {
                break;
            }
            room -= weight;
            first = at;
        }
        first.min(self.last_step.unwrap_or(first))
    }

    /// The tokens of the request under this draft.
    pub fn tokens(&self) -> u64 {
        self.tokens + self.standing
    }

    /// The tokens that a run of steps like the recent ones would add, within bounds.
    pub fn many_steps(&self) -> u64 {
        /// The number of steps for which a late pass must make room.
        const MANY: u64 = 10;
        let recent = self.recent..self.material.items.len();
        let steps: Vec<u64> = recent
            .filter(|index| self.material.items[*index].as_step().is_some())
            .map(|index| self.material.weights[index])
            .collect();
        let all: u64 = steps.iter().sum();
        let (least, most) = (self.goal.most / 10, self.goal.most / 4);
        (all * MANY / (steps.len() as u64).max(1)).clamp(least, most)
    }

    /// True if the request is within the limit for every request.
    pub fn fits(&self) -> bool {
        self.tokens() <= self.goal.most
    }

    pub fn is_pinned(&self, index: usize) -> bool {
        self.material.pinned.contains(&self.material.ids[index].number)
    }

    /// True if the item is never removed.
    fn stays(&self, index: usize) -> bool {
        self.is_pinned(index) || self.asked == Some(index)
    }

    /// True if the item may be removed while there are alternatives: reminders of this turn and skills in use
    /// stay.
    pub fn may_go(&self, index: usize) -> bool {
        let is_of_this_turn = self.asked.is_some_and(|asked| asked < index);
        let is_reminder = matches!(self.material.items[index], Item::Said(_));
        let is_in_use = self.skills.iter().any(|skill| skill.item == index && skill.in_use && !skill.gone);
        !(is_reminder && is_of_this_turn || is_in_use)
    }

    fn is_telling(&self, answer: (usize, usize)) -> bool {
        self.telling.get_or_init(|| calls::find_telling(self.material.items)).contains(&answer)
    }

    /// An estimate of the most that shortening old items can gain. Uses only lengths, as it is computed before
    /// each request.
    pub fn potential(&self) -> u64 {
        (0..self.recent).map(|index| self.potential_of(index)).sum()
    }

    fn potential_of(&self, index: usize) -> u64 {
        let item = &self.material.items[index];
        let Some(step) = item.as_step() else {
            let skills = self.skills.iter().filter(|skill| skill.item == index && !skill.gone);
            return skills.map(|skill| self.material.ruler.weigh(&skill.text)).sum();
        };
        let texts: usize = item.texts().map(str::len).sum();
        let shortable = step.calls().map(|call| {
            let answer = call.answer.as_ref().filter(|answer| !answer.digested);
            let answer = answer.map_or(0, |answer| digest::limit_savings(answer.content.len()));
            answer + digest::shortable_arguments(call.request.arguments.len())
        });
        let pictures = image::estimate_tokens(item.images());
        let texts_weigh = self.weights[index].saturating_sub(pictures);
        pictures + texts_weigh * shortable.sum::<usize>() as u64 / (texts as u64).max(1)
    }

    /// Removes the texts of these skills.
    pub fn unload(&mut self, which: impl Fn(&SkillUse) -> bool) {
        for at in 0..self.skills.len() {
            let skill = &self.skills[at];
            let (index, before) = (skill.item, self.material.ruler.weigh(&skill.text));
            let (change, stub) = skill.stub();
            let after = self.material.ruler.weigh(&stub);
            if skill.gone || !which(skill) || self.is_pinned(index) || after >= before {
                continue;
            }
            self.skills[at].gone = true;
            self.change(index, change, before, after);
        }
    }

    /// Removes an item, unless it is pinned or the person's last message. Call [`PlanDraft::stand`] afterwards to
    /// allow for the summary.
    pub fn remove(&mut self, index: usize) {
        if self.stays(index) || self.fates[index] == Fate::Remove {
            return;
        }
        self.skills.iter_mut().filter(|skill| skill.item == index).for_each(|skill| skill.gone = true);
        self.tokens -= self.weights[index];
        self.weights[index] = 0;
        self.fates[index] = Fate::Remove;
        self.standing = self.standing.max(self.material.ruler.scaled(self.room.summary));
    }

    /// Reserves room for the summary of the removed items: its parts in full, and the facts that code adds.
    pub fn stand(&mut self) {
        let removed = self.list_removed();
        if removed.is_empty() {
            return;
        }
        let facts = SummaryFacts::new(self.material, &removed, &self.unloaded(), None, self.room);
        let ruler = self.material.ruler;
        let parts = ruler.scaled(entry::FRAME + self.room.most_of_parts());
        self.standing = parts + ruler.weigh(&compose_summary(&facts, "").text);
    }

    /// Halves the room of the summary, twice at most, as long as the request does not fit.
    pub fn shrink_summary(&mut self) {
        /// Headings with a few words each.
        const LEAST: u64 = 130;
        for _ in 0..2 {
            if self.fits() || self.room.summary <= LEAST {
                break;
            }
            self.room.summary = (self.room.summary / 2).max(LEAST);
            self.room.quoted /= 2;
            self.stand();
        }
    }

    /// Removes items and allows for their summary, unless nothing would be gained.
    pub fn summarise(&mut self, removing: impl FnOnce(&mut Self)) {
        let mut shorter = self.clone();
        removing(&mut shorter);
        shorter.stand();
        if shorter.tokens() < self.tokens() {
            *self = shorter;
        }
    }

    /// Records a change of a text from `before` to `after` tokens, in place of an earlier one of the same text.
    fn change(&mut self, index: usize, change: ItemChange, before: u64, after: u64) {
        let Fate::Stay(changes) = &mut self.fates[index] else { return };
        changes.retain(|earlier| match (earlier, &change) {
            (ItemChange::Answer { call, .. }, ItemChange::Answer { call: now, .. })
            | (ItemChange::Arguments { call, .. }, ItemChange::Arguments { call: now, .. }) => call != now,
            (ItemChange::Text { .. }, ItemChange::Text { .. }) => false,
            _ => true,
        });
        changes.push(change);
        let gain = self.scaled(index, before.saturating_sub(after)).min(self.weights[index]);
        self.weights[index] -= gain;
        self.tokens -= gain;
    }

    /// Scales a part of an item to the item's measured size.
    fn scaled(&self, index: usize, part: u64) -> u64 {
        part * self.material.weights[index] / estimate_item(self.material, &self.material.items[index]).max(1)
    }

    /// The tokens that a part of an item is expected to have if the request counts so many for it.
    fn unscaled(&self, index: usize, part: u64) -> u64 {
        let estimate = estimate_item(self.material, &self.material.items[index]);
        part.min(self.goal.most) * estimate / self.material.weights[index].max(1)
    }

    fn list_removed(&self) -> Vec<usize> {
        (0..self.fates.len()).filter(|index| self.fates[*index] == Fate::Remove).collect()
    }

    /// The skills that have no text left.
    fn unloaded(&self) -> Vec<(String, u64)> {
        let mut unloaded: Vec<(String, u64)> = Vec::new();
        for skill in self.skills.iter().filter(|skill| skill.gone) {
            let tokens = self.material.ruler.weigh(&skill.text);
            let is_left = self.skills.iter().any(|other| other.name == skill.name && !other.gone);
            match unloaded.iter_mut().find(|(name, _)| *name == skill.name) {
                Some((_, sum)) => *sum += tokens,
                None if !is_left => unloaded.push((skill.name.clone(), tokens)),
                None => {}
            }
        }
        unloaded
    }

    pub fn finish(mut self) -> CompressionPlan {
        self.stand();
        let mut edits = Vec::new();
        let mut masked = 0;
        for (fate, id) in self.fates.iter().zip(self.material.ids) {
            let changes = match fate {
                Fate::Remove => vec![ItemChange::Remove],
                Fate::Stay(changes) => {
                    let is_shortened = changes.iter().any(|change| !matches!(change, ItemChange::Unload { .. }));
                    masked += usize::from(is_shortened);
                    changes.clone()
                }
            };
            edits.extend(changes.into_iter().map(|change| ViewEdit { number: id.number, change }));
        }
        let (removed, unloaded) = (self.list_removed(), self.unloaded());
        CompressionPlan { tokens: self.tokens(), edits, removed, masked, unloaded, room: self.room }
    }
}

/// The estimated tokens of an item's texts.
fn estimate_item(material: Material<'_>, item: &Item) -> u64 {
    let texts: u64 = item.texts().map(|text| material.ruler.weigh(text)).sum();
    entry::measure_frame(item) + texts + image::estimate_tokens(item.images())
}
