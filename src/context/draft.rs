//! A plan in the making: what was decided so far, and what the request would weigh.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::message::Message;

use super::calls;
use super::notes;
use super::plan::{Fate, Goal, Material, Plan, is_summary, last_said, shortened};
use super::skills;
use super::units::{Kind, Unit, units};

/// A plan in the making.
pub struct Draft<'a> {
    pub material: Material<'a>,
    pub goal: Goal,
    pub units: Vec<Unit>,
    /// The results that failed and were not overcome.
    pub unresolved: HashSet<usize>,
    /// The texts of skills: the index of the result, and the skill.
    pub skill_texts: HashMap<usize, String>,
    /// The first of the units that are recent.
    pub recent: usize,
    /// The last thing that a person said: it always stays.
    pub last_said: Option<usize>,
    fates: Vec<Fate>,
    /// What each message weighs by its fate.
    weights: Vec<u64>,
    tokens: u64,
    /// What the texts weigh that stand for removed messages.
    standing: u64,
    /// Whether a summary will quote what the person said.
    pub quotes: bool,
}

impl<'a> Draft<'a> {
    pub fn new(material: Material<'a>, goal: Goal) -> Self {
        let units = units(material.messages);
        let answered = calls::answered(material.messages);
        let unresolved = calls::unresolved(material.messages, &answered);
        let steps = units.iter().enumerate().rev().filter(|(_, unit)| unit.kind == Kind::Step);
        let recent = match goal.keep_recent_steps {
            0 => units.len(),
            count => steps.take(count).last().map_or(0, |(at, _)| at),
        };
        Self {
            last_said: last_said(material.messages),
            skill_texts: skills::texts(material.messages, &answered),
            fates: vec![Fate::Keep; material.messages.len()],
            weights: material.weights.to_vec(),
            tokens: material.fixed + material.weights.iter().sum::<u64>(),
            standing: 0,
            quotes: false,
            units,
            unresolved,
            recent,
            material,
            goal,
        }
    }

    /// What the request would weigh.
    pub fn tokens(&self) -> u64 {
        self.tokens + self.standing
    }

    /// Whether the goal is reached.
    pub fn is_enough(&self) -> bool {
        self.tokens() <= self.goal.to
    }

    pub fn fate(&self, index: usize) -> &Fate {
        &self.fates[index]
    }

    pub fn is_pinned(&self, index: usize) -> bool {
        self.material.pinned.contains(&self.material.ids[index].number)
    }

    /// The messages of the units before the recent ones.
    pub fn old(&self) -> Range<usize> {
        0..self.units.get(self.recent).map_or(self.material.messages.len(), |unit| unit.range.start)
    }

    /// Shortens a message, if that gains enough to be worth it.
    pub fn shorten(&mut self, index: usize) {
        /// Tokens; less is not worth a text that is not what was said.
        const LEAST_GAIN: u64 = 60;
        if self.fates[index] != Fate::Keep || self.is_pinned(index) || self.weights[index] < 2 * LEAST_GAIN {
            return;
        }
        let short = shortened(self.material.messages, index, Some("r0000"));
        let weight = weigh(&self.material, &short);
        if weight + LEAST_GAIN <= self.weights[index] {
            self.set(index, Fate::Shorten, weight);
        }
    }

    /// Takes the text of a skill out.
    pub fn unload(&mut self, index: usize, name: &str) {
        if self.fates[index] == Fate::Keep && !self.is_pinned(index) {
            self.set(index, Fate::Unload(name.to_owned()), notes::STUB_TOKENS.min(self.weights[index]));
        }
    }

    /// Takes a unit out, save for answers that `stays` names. One that holds a pinned message stays whole, and so do
    /// the last thing that the person said and the reminders of this turn.
    pub fn remove(&mut self, unit: usize, stays: &dyn Fn(usize) -> bool) {
        let Unit { kind, range } = self.units[unit].clone();
        let is_last = self.last_said.is_some_and(|last| range.contains(&last));
        let is_reminder = kind == Kind::Note && !is_summary(&self.material.messages[range.start]);
        let is_of_this_turn = self.last_said.is_some_and(|last| last < range.start);
        if kind == Kind::System
            || is_last
            || (is_reminder && is_of_this_turn)
            || range.clone().any(|index| self.is_pinned(index))
        {
            return;
        }
        for index in range {
            if self.fates[index] == Fate::Remove || stays(index) {
                continue;
            }
            self.stand_for(index);
            self.set(index, Fate::Remove, 0);
        }
    }

    /// Allows for what stands in the place of removed messages.
    fn stand_for(&mut self, index: usize) {
        if self.standing == 0 {
            self.standing = if self.quotes { notes::Room::of(self.goal.to).summary } else { notes::NOTE_TOKENS };
            if self.quotes {
                self.quote(self.material.quoted);
            }
        }
        let message = &self.material.messages[index];
        if self.quotes && message.is_from_person() && !is_summary(message) {
            self.quote(self.material.weights[index]);
        }
    }

    fn quote(&mut self, tokens: u64) {
        let room = notes::Room::of(self.goal.to);
        let most = room.summary + room.quoted;
        self.standing = (self.standing + tokens).min(most);
    }

    fn set(&mut self, index: usize, fate: Fate, weight: u64) {
        self.tokens = self.tokens + weight - self.weights[index];
        self.weights[index] = weight;
        self.fates[index] = fate;
    }

    pub fn finish(self) -> Plan {
        Plan { tokens: self.tokens(), fates: self.fates }
    }
}

/// The tokens of a message that is not part of the conversation yet.
fn weigh(material: &Material<'_>, message: &Message) -> u64 {
    const FRAME: u64 = 4;
    let arguments = match message {
        Message::Assistant(reply) => {
            reply.tool_calls.iter().map(|call| material.ruler.weigh(&call.arguments)).sum()
        }
        _ => 0,
    };
    FRAME + material.ruler.weigh(message.content()) + arguments
}
