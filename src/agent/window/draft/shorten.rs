//! Shortens parts of the items that stay: results, arguments and texts.

use crate::base::image;
use crate::conversation::message::{CallAnswer, Handle, Item};
use crate::conversation::session::ItemChange;

use super::super::digest;
use super::super::room::Room;
use super::{Fate, PlanDraft};

impl PlanDraft<'_> {
    /// Replaces the answers of a step by digests if that gains enough. Unresolved errors stay unless `all` is set;
    /// texts of skills always stay.
    pub fn digest_answers(&mut self, index: usize, all: bool) {
        let Some(step) = self.material.items[index].as_step() else { return };
        for (at, call) in step.calls().enumerate() {
            let Some(answer) = &call.answer else { continue };
            if (all || !self.is_telling((index, at))) && answer.skill.is_none() {
                self.digest_answer(index, at, &call.request.name, answer);
            }
        }
    }

    fn digest_answer(&mut self, index: usize, call: usize, tool: &str, answer: &CallAnswer) {
        /// Tokens; a smaller gain does not justify changing a text.
        const LEAST_GAIN: u64 = 16;
        let before = self.weight_of_answer(answer);
        let most = digest::choose_room(before);
        if answer.digested || self.is_fixed(index) || self.answer_of(index, call).is_some() || before <= most {
            return;
        }
        let handle = Handle::answer(self.material.ids[index].number, call);
        let (content, after) = self.fit_text(most, |most| digest::of_answer(tool, answer, handle, most));
        if after + LEAST_GAIN <= before && after * 3 <= before * 2 {
            self.change(index, ItemChange::Answer { call, content }, before, after);
        }
    }

    /// Cuts the answers of a step to this many tokens of the request each: head, tail and handle stay, as far as there is
    /// room for them. With none, only as many answers as are needed become handles. Answers that were shortened before are
    /// cut again; texts of skills stay.
    pub fn cut_answers(&mut self, index: usize, most: u64) {
        let Some(step) = self.material.items[index].as_step() else { return };
        let most = self.unscaled(index, most);
        for (at, call) in step.calls().enumerate() {
            let Some(answer) = call.answer.as_ref().filter(|answer| answer.skill.is_none()) else { continue };
            let before = self.present_answer(index, at, answer);
            if (most == 0 && self.fits()) || self.is_fixed(index) || before <= most {
                continue;
            }
            let handle = Handle::answer(self.material.ids[index].number, at);
            let content = digest::of_unread(&call.request.name, answer, handle, most, self.material.ruler);
            let after = self.material.ruler.weigh(&content);
            if after < before {
                self.change(index, ItemChange::Answer { call: at, content }, before, after);
            }
        }
    }

    /// Removes the long texts from the arguments of a step.
    pub fn shorten_arguments(&mut self, index: usize) {
        self.rewrite_arguments(index, digest::of_arguments);
    }

    /// Replaces the arguments of a step by what is `rewritten`, where that is something else.
    pub fn rewrite_arguments(&mut self, index: usize, rewritten: fn(&str, Handle) -> Option<String>) {
        let Some(step) = self.material.items[index].as_step() else { return };
        if self.is_fixed(index) {
            return;
        }
        let handle = Handle::item(self.material.ids[index].number);
        for (call, asked) in step.calls().enumerate() {
            let changed = self.changes(index).iter().find_map(|change| match change {
                ItemChange::Arguments { call: of, arguments } if *of == call => Some(arguments.clone()),
                _ => None,
            });
            let present = changed.as_deref().unwrap_or(&asked.request.arguments);
            if let Some(arguments) = rewritten(&asked.request.arguments, handle)
                && arguments.len() < present.len()
            {
                let (before, after) = (self.material.ruler.weigh(present), self.material.ruler.weigh(&arguments));
                self.change(index, ItemChange::Arguments { call, arguments }, before, after);
            }
        }
    }

    /// Shortens a message, or the text of a reply, to this many tokens of the request.
    pub fn shorten_text(&mut self, index: usize, most: u64) {
        let text = match &self.material.items[index] {
            Item::Said(said) => said.text.clone(),
            Item::Step(step) => step.text(),
            Item::Summary(_) => return,
        };
        let (before, most) = (self.present_text(index), self.unscaled(index, most));
        if self.is_fixed(index) || before <= most {
            return;
        }
        let handle = Handle::item(self.material.ids[index].number).to_string();
        let (text, after) = self.fit_text(most, |most| digest::of_text(&text, Room::bytes(most), &handle));
        if after < before {
            self.change(index, ItemChange::Text { text }, before, after);
        }
    }

    /// The tokens of each answer of a step that can be cut, and those of its text, under this draft.
    pub fn weigh_parts(&self, index: usize) -> Vec<u64> {
        let Some(step) = self.material.items[index].as_step() else { return Vec::new() };
        let calls = step.calls().enumerate();
        let answers = calls.filter_map(|(at, call)| Some((at, call.answer.as_ref()?)));
        let answers = answers.filter(|(_, answer)| answer.skill.is_none());
        let sizes = answers.map(|(at, answer)| self.present_answer(index, at, answer));
        sizes.chain([self.present_text(index)]).map(|size| self.scaled(index, size)).collect()
    }

    /// The tokens of a message, or of the text of a reply, under this draft.
    pub fn weigh_text(&self, index: usize) -> u64 {
        self.scaled(index, self.present_text(index))
    }

    /// The expected tokens of a message, or of the text of a reply, under this draft.
    fn present_text(&self, index: usize) -> u64 {
        let weigh = |text: &str| self.material.ruler.weigh(text);
        let changed = self.changes(index).iter().find_map(|change| match change {
            ItemChange::Text { text } => Some(weigh(text)),
            _ => None,
        });
        changed.unwrap_or_else(|| match &self.material.items[index] {
            Item::Said(said) => weigh(&said.text),
            Item::Step(step) => step.texts().map(weigh).sum(),
            Item::Summary(_) => 0,
        })
    }

    /// The expected tokens of an answer under this draft.
    fn present_answer(&self, index: usize, call: usize, answer: &CallAnswer) -> u64 {
        self.answer_of(index, call).unwrap_or_else(|| self.weight_of_answer(answer))
    }

    /// The expected tokens of what this draft puts in place of an answer.
    fn answer_of(&self, index: usize, call: usize) -> Option<u64> {
        self.changes(index).iter().find_map(|change| match change {
            ItemChange::Answer { call: of, content } if *of == call => Some(self.material.ruler.weigh(content)),
            _ => None,
        })
    }

    fn weight_of_answer(&self, answer: &CallAnswer) -> u64 {
        self.material.ruler.weigh(&answer.content) + image::estimate_tokens(&answer.images)
    }

    fn changes(&self, index: usize) -> &[ItemChange] {
        match &self.fates[index] {
            Fate::Stay(changes) => changes,
            Fate::Remove => &[],
        }
    }

    /// True if nothing in this item can be shortened.
    fn is_fixed(&self, index: usize) -> bool {
        self.is_pinned(index) || self.fates[index] == Fate::Remove
    }

    /// Writes a text of at most this many tokens and returns it with its weight. It is written for fewer tokens if its
    /// bytes weigh more than usual: the provider counts more tokens, or a script has longer letters.
    fn fit_text(&self, most: u64, write: impl Fn(u64) -> String) -> (String, u64) {
        const ATTEMPTS: usize = 4;
        let mut room = most;
        let mut text = write(room);
        let mut weight = self.material.ruler.weigh(&text);
        for _ in 1..ATTEMPTS {
            if weight <= most || room == 0 {
                break;
            }
            room = room * most / weight;
            text = write(room);
            weight = self.material.ruler.weigh(&text);
        }
        (text, weight)
    }
}
