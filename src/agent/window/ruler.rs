//! The size of a conversation's requests. Measurements are kept as long as the bytes are unchanged, so each
//! request costs only its new part.
//!
//! Each part of a request has one size, and the size has an origin: the server counted it, it was counted here, or it is
//! expected from its content. The size of the request is the sum. A report divides what the server counted among the
//! parts that it had not counted before, and teaches the [`Rates`] by which the rest is expected. A tokenizer is used
//! only if what is merely expected could pass the threshold. A short run never loads one.

use std::collections::HashMap;

use crate::base::image;
use crate::base::tokens;
use crate::conversation::message::Item;
use crate::conversation::session::ItemId;
use crate::model::ToolDefinition;

use super::entry::{MeasuredEntry, SizeOrigin, count_answers, list_tool_texts};
use super::rates::{Rates, SizeParts, round_tokens, to_float};
use super::report::{self, Earlier, SentSize, SizeReport};

/// A request as it would be sent. `ids` identify `items`, one each.
#[derive(Clone, Copy)]
pub struct MeasuredRequest<'a> {
    /// The provider's name of the model.
    pub model: &'a str,
    pub tools: &'a [ToolDefinition],
    pub system: &'a str,
    pub items: &'a [Item],
    pub ids: &'a [ItemId],
}

/// The size of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSize {
    pub tokens: u64,
    /// The number of leading tokens that are the same as in the previous request.
    pub prefix_tokens: u64,
    pub basis: Basis,
    /// The first difference from the previous request.
    pub broken: Option<Break>,
}

/// The basis of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    Estimate,
    /// The model's own encoding.
    Counted,
    /// A public encoding, if the model's own is unavailable, corrected for the kinds of content.
    Nearest,
    /// The provider's count of the part it has seen, and one of the above for the rest.
    Reported,
}

/// The first part of a request that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Break {
    Tools,
    SystemPrompt,
    /// The number of the item.
    Item(u64),
}

#[derive(Debug, Clone, Default)]
pub struct Ruler {
    model: String,
    has_measured: bool,
    /// True if texts are counted here with the model's own vocabulary.
    counts_exactly: bool,
    tools: Option<MeasuredEntry>,
    /// The definitions that `tools` measures.
    definitions: Vec<ToolDefinition>,
    system: Option<(String, MeasuredEntry)>,
    entries: Vec<MeasuredEntry>,
    reported: Option<ReportedSize>,
    /// The server's tokens for one that is expected.
    rates: Rates,
    /// The server's tokens for one that was counted here with another encoding. What is learned of one kind of size says
    /// nothing about the other.
    count_rates: Rates,
}

/// The provider's count of a request that ended with the entry before `entries`.
#[derive(Debug, Clone, Copy)]
struct ReportedSize {
    entries: usize,
    tokens: u64,
}

impl Ruler {
    /// Measures the next request, exactly if its size may pass `threshold`.
    pub fn measure(&mut self, request: MeasuredRequest<'_>, threshold: u64) -> RequestSize {
        if self.model != request.model {
            let counts_exactly = tokens::counts_exactly(request.model);
            let rates = Rates::untaught(counts_exactly);
            *self = Self { model: request.model.to_owned(), counts_exactly, rates, ..Self::default() };
        }
        let first = !std::mem::replace(&mut self.has_measured, true);
        let same_tools = self.take_in_tools(request.tools) || first;
        let same_system = self.take_in_system(request.system) || first;
        let stands = |(entry, (id, item)): &(&MeasuredEntry, (&ItemId, &Item))| {
            entry.id == **id && entry.answers == count_answers(item)
        };
        let same = self.entries.iter().zip(request.ids.iter().zip(request.items)).take_while(stands).count();
        let broken = match (same_tools, same_system) {
            (false, _) => Some(Break::Tools),
            (_, false) => Some(Break::SystemPrompt),
            _ => self.entries.get(same).map(|entry| Break::Item(entry.id.number)),
        };
        self.take_in_items(request, same);
        let prefix_tokens = match (first || !same_tools, same_system) {
            (true, _) => 0,
            (_, false) => self.tools(),
            _ => self.sum(same),
        };
        let basis = self.count_if_needed(request, threshold);
        RequestSize { tokens: self.sum(self.entries.len()), prefix_tokens, basis, broken }
    }

    /// A ruler for another conversation, which has the sizes of the tools and of the system prompt from this one.
    pub fn begin_alike(&self) -> Self {
        let mut alike = Self { has_measured: false, entries: Vec::new(), ..self.clone() };
        alike.forget_reports();
        alike
    }

    /// Applies the provider's count of the last measured request, if it is plausible.
    pub fn report(&mut self, input_tokens: u64) -> SizeReport {
        self.anchor(self.entries.len(), input_tokens)
    }

    /// Applies the provider's count of a request that ended with the first `entries` items of the last measured
    /// one, if it is plausible: for example that of the last reply in a resumed session.
    pub fn anchor(&mut self, entries: usize, tokens: u64) -> SizeReport {
        let entries = entries.min(self.entries.len());
        let seen = &self.entries[..entries];
        let texts = |entries: &[MeasuredEntry]| entries.iter().map(|entry| entry.texts).sum::<u64>();
        let system = self.system.as_ref().map_or(0, |(text, _)| text.len() as u64);
        let heads: u64 = self.heads().map(|head| head.bytes()).sum();
        let sent = SentSize {
            texts: texts(seen) + system,
            frames: heads - system
                + seen.iter().map(|entry| entry.around - entry.images * image::TOKENS).sum::<u64>(),
            images: seen.iter().map(|entry| entry.images).sum(),
        };
        let earlier = self.reported.filter(|reported| reported.entries <= entries);
        let earlier =
            earlier.map(|reported| Earlier { tokens: reported.tokens, added: texts(&seen[reported.entries..]) });
        let report = report::judge_size(tokens, sent, earlier);
        if report == SizeReport::Plausible {
            self.take_in_report(entries, to_float(tokens));
            self.reported = Some(ReportedSize { entries, tokens });
        }
        report
    }

    /// Divides what the server counted among the parts that it had not counted before, and learns from it. If it cannot
    /// be true of these, an earlier report was wrong, and all is divided anew.
    fn take_in_report(&mut self, entries: usize, tokens: f64) {
        let seen = || self.heads().chain(self.entries[..entries].iter().copied());
        let news = || seen().filter(|entry| !entry.is_reported());
        let known: f64 = seen().filter(MeasuredEntry::is_reported).map(|entry| self.size(&entry)).sum();
        let expected: f64 = news().map(|entry| self.size(&entry)).sum();
        let most = to_float(news().map(|entry| entry.bytes()).sum());
        if known > 0.0 && !(expected * 0.3..=most).contains(&(tokens - known)) {
            self.entries.iter_mut().for_each(|entry| entry.origin = SizeOrigin::Expected);
            self.heads_mut().for_each(|entry| entry.origin = SizeOrigin::Expected);
            return self.take_in_report(entries, tokens);
        }
        let is_exact = |entry: &MeasuredEntry| entry.origin == SizeOrigin::Counted && self.counts_exactly;
        let exact: f64 = news().filter(is_exact).map(|entry| entry.parts.tokens()).sum();
        let (mut expected_parts, mut counted_parts) = (SizeParts::default(), SizeParts::default());
        for entry in news().filter(|entry| !is_exact(entry)) {
            let parts = if entry.origin == SizeOrigin::Counted { &mut counted_parts } else { &mut expected_parts };
            parts.add(&entry.parts);
        }
        let (mut rates, mut count_rates) = (self.rates, self.count_rates);
        Rates::learn([(&mut rates, &expected_parts), (&mut count_rates, &counted_parts)], tokens - known - exact);
        // What was counted here with the model's own encoding stays as it is, unless nothing else could be wrong.
        let rest = rates.weigh(&expected_parts) + count_rates.weigh(&counted_parts);
        let of_rest = (tokens - known - exact) / rest;
        let (of_rest, of_exact) = match of_rest {
            0.5..2.0 => (of_rest, 1.0),
            _ => [(tokens - known) / (rest + exact).max(1.0); 2].into(),
        };
        let is_reference = self.counts_exactly;
        let divide = |entry: &mut MeasuredEntry| {
            entry.origin = SizeOrigin::Reported(match entry.origin {
                SizeOrigin::Reported(tokens) => tokens,
                SizeOrigin::Counted if is_reference => entry.parts.tokens() * of_exact,
                SizeOrigin::Counted => count_rates.weigh(&entry.parts) * of_rest,
                SizeOrigin::Expected => rates.weigh(&entry.parts) * of_rest,
            });
        };
        (self.rates, self.count_rates) = (rates, count_rates);
        self.entries[..entries].iter_mut().for_each(divide);
        self.heads_mut().for_each(divide);
    }

    /// Forgets the provider's counts: sizes are our own until the next report. False if there was none.
    pub fn forget_reports(&mut self) -> bool {
        let untaught = Rates::untaught(self.counts_exactly);
        self.entries.iter_mut().for_each(|entry| entry.origin = SizeOrigin::Expected);
        self.heads_mut().for_each(|entry| entry.origin = SizeOrigin::Expected);
        self.reported = None;
        self.count_rates = Rates::default();
        std::mem::replace(&mut self.rates, untaught) != untaught
    }

    /// The tokens of each item measured last, in order. With [`Ruler::measure_fixed`] they add up to the request.
    pub fn weights(&self) -> Vec<u64> {
        let mut sum: f64 = self.heads().map(|head| self.size(&head)).sum();
        let weight = |entry: &MeasuredEntry| {
            let before = sum;
            sum += self.size(entry);
            round_tokens(sum) - round_tokens(before)
        };
        self.entries.iter().map(weight).collect()
    }

    /// The tokens of the tool definitions.
    pub fn tools(&self) -> u64 {
        round_tokens(self.tools.map_or(0.0, |tools| self.size(&tools)))
    }

    /// The tokens of the tool definitions and the system prompt: everything beside the items.
    pub fn measure_fixed(&self) -> u64 {
        self.sum(0)
    }

    /// The tokens of a text that was not measured yet.
    pub fn weigh(&self, text: &str) -> u64 {
        self.rates.count(text)
    }

    /// The tokens of a text that was not measured yet, counted with the model's encoding or a public one.
    pub fn count(&self, text: &str) -> u64 {
        let mut entry = MeasuredEntry::of_system(text);
        entry.count(|| tokens::count_tokens(text));
        round_tokens(self.size(&entry).ceil())
    }

    /// The server's tokens by kind of content, as known now.
    pub fn rates(&self) -> Rates {
        self.rates
    }

    /// Takes in the tool definitions. Returns true if they are unchanged.
    fn take_in_tools(&mut self, definitions: &[ToolDefinition]) -> bool {
        if self.tools.is_some() && self.definitions == definitions {
            return true;
        }
        self.definitions = definitions.to_vec();
        let tools = MeasuredEntry::of_tools(definitions);
        let same = self.tools.is_some_and(|known| (known.texts, known.parts) == (tools.texts, tools.parts));
        if !same {
            (self.tools, self.reported) = (Some(tools), None);
        }
        same
    }

    /// Takes in the system prompt. Returns true if it is byte for byte unchanged.
    fn take_in_system(&mut self, text: &str) -> bool {
        let same = self.system.as_ref().is_some_and(|(known, _)| known == text);
        if !same {
            let entry = if text.is_empty() { MeasuredEntry::default() } else { MeasuredEntry::of_system(text) };
            self.system = Some((text.to_owned(), entry));
            self.reported = None;
        }
        same
    }

    /// Takes in the items after the first `same`, which are unchanged. Sizes of the other items stay valid where
    /// their bytes appear again.
    fn take_in_items(&mut self, request: MeasuredRequest<'_>, same: usize) {
        let old = self.entries.split_off(same);
        if self.reported.is_some_and(|reported| reported.entries > same) {
            self.reported = None;
        }
        let known: HashMap<(ItemId, usize), MeasuredEntry> =
            old.iter().map(|entry| ((entry.id, entry.answers), *entry)).collect();
        let new = request.ids[same..].iter().zip(&request.items[same..]);
        let entry = |(id, item): (&ItemId, &Item)| {
            known.get(&(*id, count_answers(item))).copied().unwrap_or_else(|| MeasuredEntry::of_item(*id, item))
        };
        self.entries.extend(new.map(entry));
    }

    fn count_if_needed(&mut self, request: MeasuredRequest<'_>, threshold: u64) -> Basis {
        if self.at_most() > to_float(threshold) {
            for (entry, item) in self.entries.iter_mut().zip(request.items) {
                entry.count(|| item.texts().map(tokens::count_tokens).sum());
            }
            if let Some(tools) = &mut self.tools {
                tools.count(|| list_tool_texts(request.tools).map(|text| tokens::count_tokens(&text)).sum());
            }
            if let Some((text, system)) = &mut self.system {
                system.count(|| tokens::count_tokens(text));
            }
        }
        match self.tools.map(|tools| tools.origin) {
            Some(SizeOrigin::Reported(_)) => Basis::Reported,
            Some(SizeOrigin::Counted) if self.counts_exactly => Basis::Counted,
            Some(SizeOrigin::Counted) => Basis::Nearest,
            _ => Basis::Estimate,
        }
    }

    /// An upper bound of the tokens, as long as the provider's tokens are like those that it reported.
    fn at_most(&self) -> f64 {
        let most = |entry: MeasuredEntry| match entry.origin {
            SizeOrigin::Expected => self.rates.weigh_most(&entry.parts).min(to_float(entry.bytes())),
            SizeOrigin::Counted | SizeOrigin::Reported(_) => self.size(&entry),
        };
        self.heads().chain(self.entries.iter().copied()).map(most).sum()
    }

    /// The tokens of everything beside the items, and of the first `entries` items.
    fn sum(&self, entries: usize) -> u64 {
        let parts = self.heads().chain(self.entries[..entries].iter().copied());
        round_tokens(parts.map(|entry| self.size(&entry)).sum())
    }

    fn size(&self, entry: &MeasuredEntry) -> f64 {
        match entry.origin {
            SizeOrigin::Reported(tokens) => tokens,
            SizeOrigin::Counted if self.counts_exactly => entry.parts.tokens(),
            SizeOrigin::Counted => self.count_rates.weigh(&entry.parts),
            SizeOrigin::Expected => self.rates.weigh(&entry.parts),
        }
    }

    fn heads(&self) -> impl Iterator<Item = MeasuredEntry> {
        self.tools.into_iter().chain(self.system.as_ref().map(|(_, entry)| *entry))
    }

    fn heads_mut(&mut self) -> impl Iterator<Item = &mut MeasuredEntry> {
        self.tools.iter_mut().chain(self.system.as_mut().map(|(_, entry)| entry))
    }

    /// Converts a number of our tokens in plain text to the provider's.
    pub fn scaled(&self, tokens: u64) -> u64 {
        round_tokens((to_float(tokens) * self.rates.of_prose()).ceil())
    }

    /// Converts the provider's tokens to ours in plain text.
    pub fn remove_scale(&self, tokens: u64) -> u64 {
        round_tokens((to_float(tokens) / self.rates.of_prose()).floor())
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::FRAME;
    use super::*;
    use crate::conversation::message::{Call, CallAnswer, CallStatus, ReplyPart, Step, ToolCall, UserText};

    fn said(text: impl Into<String>) -> Item {
        Item::Said(UserText::by_person(text))
    }

    /// Prose of about so many tokens.
    fn prose(tokens: usize) -> String {
        "one word and another ".repeat(tokens / 4)
    }

    /// Noise of about so many tokens: every server counts its own.
    fn noise(tokens: usize) -> String {
        let mut random = fastrand::Rng::with_seed(7);
        (0..tokens * 2).map(|_| random.digit(16)).collect()
    }

    fn ids(passes: &[u32]) -> Vec<ItemId> {
        (1..).zip(passes).map(|(number, pass)| ItemId { number, pass: *pass }).collect()
    }

    fn tool(description: &str) -> ToolDefinition {
        ToolDefinition {
            name: "grep".to_owned(),
            description: description.to_owned(),
            parameters: serde_json::json!({}).into(),
            permission: crate::config::Permission::Read,
            default: true,
            ..ToolDefinition::default()
        }
    }

    fn measure(ruler: &mut Ruler, items: &[Item], passes: &[u32], threshold: u64) -> RequestSize {
        of(ruler, "gpt-5-mini", &[], items, passes, threshold)
    }

    fn of(
        ruler: &mut Ruler,
        model: &str,
        tools: &[ToolDefinition],
        items: &[Item],
        passes: &[u32],
        threshold: u64,
    ) -> RequestSize {
        ruler.measure(MeasuredRequest { model, tools, system: "", items, ids: &ids(passes) }, threshold)
    }

    #[track_caller]
    fn assert_near(found: u64, expected: u64, percent: u64) {
        assert!(found.abs_diff(expected) * 100 <= expected * percent, "{found}, not about {expected}");
    }

    #[test]
    fn what_extends_the_request_before_is_its_prefix() {
        let mut ruler = Ruler::default();
        let talk = [said(prose(100)), said(prose(52)), said(prose(32))];
        let first = measure(&mut ruler, &talk[..2], &[0, 0], u64::MAX);
        assert_eq!((first.prefix_tokens, first.broken), (0, None));
        let one = ruler.weights()[0];
        let second = measure(&mut ruler, &talk, &[0, 0, 0], u64::MAX);
        assert_eq!((second.prefix_tokens, second.broken), (first.tokens, None));
        assert_eq!(ruler.weights().iter().sum::<u64>(), second.tokens);
        let edited = measure(&mut ruler, &talk, &[0, 1, 0], u64::MAX);
        assert_eq!((edited.prefix_tokens, edited.broken), (one, Some(Break::Item(2))));
        let shorter = measure(&mut ruler, &talk[..1], &[0], u64::MAX);
        assert_eq!((shorter.tokens, shorter.broken), (one, Some(Break::Item(2))));
    }

    #[test]
    fn what_was_learned_of_estimates_changes_no_count() {
        let mut ruler = Ruler::default();
        let talk = [said(prose(1000)), said("a word of four and so on ".repeat(400))];
        let size_of = |items: &[Item], ruler: &mut Ruler, threshold| {
            of(ruler, "m", &[], items, &[0, 0][..items.len()], threshold)
        };
        let counted = size_of(&talk[1..], &mut Ruler::default(), 0).tokens;
        let estimate = size_of(&talk[..1], &mut ruler, u64::MAX).tokens;
        ruler.report(estimate * 3 / 4);
        let both = size_of(&talk, &mut ruler, 0).tokens;
        assert_near(both - estimate * 3 / 4, counted, 1);
    }

    #[test]
    fn other_tools_leave_nothing_of_the_prefix() {
        let mut ruler = Ruler::default();
        let talk = [said(prose(100))];
        of(&mut ruler, "m", &[tool("finds")], &talk, &[0], u64::MAX);
        ruler.report(200);
        let size = of(&mut ruler, "m", &[tool("finds more")], &talk, &[0], u64::MAX);
        assert_eq!((size.prefix_tokens, size.broken, size.basis), (0, Some(Break::Tools), Basis::Estimate));
    }

    #[test]
    fn another_system_prompt_is_told_by_its_bytes_and_leaves_the_tools() {
        let mut ruler = Ruler::default();
        let (items, ids, tools) = ([said(prose(100))], ids(&[0]), [tool("finds")]);
        let mut size = |system: &str| {
            let request = MeasuredRequest { model: "m", tools: &tools, system, items: &items, ids: &ids };
            let size = ruler.measure(request, u64::MAX);
            (size.tokens, size.prefix_tokens, size.broken, ruler.tools(), ruler.measure_fixed())
        };
        let (tokens, _, broken, tools, fixed) = size(&prose(20));
        assert!(broken.is_none() && fixed > tools + 20, "{fixed} {tools}");
        assert_eq!(size(&prose(20)), (tokens, tokens, None, tools, fixed), "the same bytes");
        let (more, prefix, broken, ..) = size(&prose(40));
        assert!(more > tokens && prefix == tools && broken == Some(Break::SystemPrompt), "{more} {prefix}");
    }

    #[test]
    fn a_ruler_for_another_conversation_measures_as_a_new_one() {
        let mut ruler = Ruler::default();
        let talk = [said(prose(100)), said(prose(52))];
        let tools = [[tool("finds")], [tool("searches")]];
        let size_of =
            |ruler: &mut Ruler, tools: &[ToolDefinition]| of(ruler, "m", tools, &talk, &[0, 0], u64::MAX);
        let tokens = size_of(&mut ruler, &tools[0]).tokens;
        assert_eq!(ruler.report(tokens * 3 / 2), SizeReport::Plausible);
        assert_ne!(size_of(&mut ruler, &tools[0]).tokens, tokens);
        for tools in tools {
            assert_eq!(size_of(&mut ruler.begin_alike(), &tools), size_of(&mut Ruler::default(), &tools));
        }
    }

    #[test]
    fn an_answer_that_came_since_is_measured() {
        let mut ruler = Ruler::default();
        let request = ToolCall { id: String::new(), name: "grep".to_owned(), arguments: "{}".to_owned() };
        let call = ReplyPart::Call(Call { request, opaque: None, answer: None });
        let mut step = Step { parts: vec![call], ..Step::default() };
        let open = measure(&mut ruler, &[Item::Step(step.clone())], &[0], u64::MAX);
        step.fill(0, CallAnswer::of_text(prose(60), CallStatus::Ok));
        let filled = measure(&mut ruler, &[Item::Step(step)], &[0], u64::MAX);
        assert_near(filled.tokens - open.tokens, 64, 15);
        assert_eq!(filled.prefix_tokens, 0);
    }

    #[test]
    fn another_model_is_measured_anew() {
        let mut ruler = Ruler::default();
        let talk = [said(prose(100))];
        let size = of(&mut ruler, "one", &[], &talk, &[0], u64::MAX);
        ruler.report(300);
        assert_eq!(of(&mut ruler, "two", &[], &talk, &[0], u64::MAX), size);
    }

    #[test]
    fn what_the_provider_counted_stands_and_teaches_the_rest() {
        let mut ruler = Ruler::default();
        let talk = [said(prose(400)), said(prose(200))];
        of(&mut ruler, "m", &[], &talk[..1], &[0], u64::MAX);
        ruler.report(600);
        let size = of(&mut ruler, "m", &[], &talk, &[0, 0], u64::MAX);
        assert_eq!((ruler.weights()[0], size.basis), (600, Basis::Reported));
        assert_near(ruler.weights()[1], 300, 10);
        // An edit costs the count of what was edited, and no other.
        let edited = of(&mut ruler, "m", &[], &talk, &[0, 1], u64::MAX);
        assert_eq!((edited.tokens, edited.basis), (size.tokens, Basis::Reported));
        let edited = of(&mut ruler, "m", &[], &talk, &[1, 0], u64::MAX);
        assert_near(edited.tokens, size.tokens, 10);
    }

    #[test]
    fn a_count_that_cannot_be_true_is_passed_over() {
        let mut ruler = Ruler::default();
        let talk = [said(prose(100))];
        let size = measure(&mut ruler, &talk, &[0], u64::MAX);
        for (nonsense, judgement) in [
            (0, SizeReport::Absent),
            (7, SizeReport::TooSmall { tokens: 7, bytes: 525 }),
            (530, SizeReport::TooLarge { tokens: 530, bytes: 529 }),
        ] {
            assert_eq!(ruler.report(nonsense), judgement);
            assert_eq!(measure(&mut ruler, &talk, &[0], u64::MAX).tokens, size.tokens, "{nonsense}");
        }
    }

    #[test]
    fn a_server_that_cuts_the_conversation_is_not_followed() {
        let mut ruler = Ruler::default();
        let talk = [said(prose(1000)), said(prose(3000)), said(prose(3000))];
        measure(&mut ruler, &talk[..1], &[0], u64::MAX);
        assert_eq!(ruler.report(1000), SizeReport::Plausible);
        for messages in 2..=3 {
            let size = measure(&mut ruler, &talk[..messages], &[0, 0, 0][..messages], u64::MAX);
            assert_near(size.tokens, 1000 + (messages as u64 - 1) * 3000, 10);
            let judgement = ruler.report(1024);
            assert!(matches!(judgement, SizeReport::Stuck { .. } | SizeReport::TooSmall { .. }), "{judgement:?}");
        }
    }

    #[test]
    fn a_session_that_is_resumed_is_anchored_to_the_count_of_its_last_reply() {
        let mut ruler = Ruler::default();
        let tools = [tool("finds")];
        let talk = [said(prose(400)), said(prose(200)), said(prose(200))];
        of(&mut ruler, "m", &tools, &talk, &[0, 0, 0], u64::MAX);
        // The last reply's request held the first two items.
        assert_eq!(ruler.anchor(2, 1200), SizeReport::Plausible);
        let size = of(&mut ruler, "m", &tools, &talk, &[0, 0, 0], u64::MAX);
        assert_eq!((size.basis, size.broken), (Basis::Reported, None));
        assert_near(size.tokens, 1600, 5);
        let judgement = ruler.anchor(2, 100_000);
        assert!(matches!(judgement, SizeReport::TooLarge { tokens: 100_000, .. }), "{judgement:?}");
        assert_eq!(of(&mut ruler, "m", &tools, &talk, &[0, 0, 0], u64::MAX).tokens, size.tokens);
    }

    #[test]
    fn noise_teaches_neither_the_tools_nor_prose() {
        let tools: Vec<ToolDefinition> = (0..20).map(|at| tool(&format!("finds {at} {}", prose(200)))).collect();
        let talk = [said(prose(400)), said(noise(4000)), said(noise(4000)), said(prose(400))];
        let mut ruler = Ruler::default();
        let first = of(&mut ruler, "m", &tools, &talk[..1], &[0], u64::MAX).tokens;
        assert_eq!(ruler.report(first), SizeReport::Plausible);
        let (fixed, words) = (ruler.measure_fixed(), ruler.weigh(&prose(400)));
        // The server counts nearly each byte of it.
        let two = of(&mut ruler, "m", &tools, &talk[..2], &[0, 0], u64::MAX).tokens;
        let noisy = ruler.weights()[1];
        assert_eq!(ruler.report(two + noisy / 4), SizeReport::Plausible);
        assert_eq!((ruler.measure_fixed(), ruler.weights()[1]), (fixed, noisy + noisy / 4));
        of(&mut ruler, "m", &tools, &talk, &[0; 4], u64::MAX);
        assert_near(ruler.weights()[2], noisy + noisy / 4, 10);
        let said = ruler.weights()[3];
        assert!(said < words * 3 / 2, "{said} {words}");
        // Prose that is counted brings its own kind back.
        assert_eq!(ruler.report(two + noisy / 2 + noisy + words), SizeReport::Plausible);
        assert_near(ruler.weigh(&prose(400)), words, 12);
    }

    #[test]
    fn what_was_counted_exactly_is_not_corrected() {
        let mut ruler = Ruler::default();
        let talk = [said(prose(4000)), said(noise(4000))];
        measure(&mut ruler, &talk[..1], &[0], 0);
        let exact = ruler.weights()[0];
        let size = measure(&mut ruler, &talk, &[0, 0], u64::MAX).tokens;
        assert_eq!(ruler.report(size + 1000), SizeReport::Plausible);
        assert_eq!(ruler.weights(), [exact, size - exact + 1000]);
    }

    #[test]
    fn one_report_that_was_too_high_is_made_up_for_by_the_next() {
        let mut ruler = Ruler::default();
        let talk = [said(prose(400)), said(prose(400)), said(prose(400))];
        measure(&mut ruler, &talk[..1], &[0], u64::MAX);
        assert_eq!(ruler.report(1040), SizeReport::Plausible);
        measure(&mut ruler, &talk[..2], &[0, 0], u64::MAX);
        assert_eq!(ruler.report(808), SizeReport::Plausible);
        assert_near(measure(&mut ruler, &talk, &[0; 3], u64::MAX).tokens, 1212, 10);
    }

    #[test]
    fn nothing_is_counted_before_it_could_matter_and_then_only_once() {
        let mut ruler = Ruler::default();
        let talk = [said(prose(100)), said(prose(100))];
        let size = measure(&mut ruler, &talk, &[0, 0], 400);
        assert_eq!(size.basis, Basis::Estimate);
        let counted = measure(&mut ruler, &talk, &[0, 0], 200);
        assert_eq!((counted.basis, counted.tokens), (Basis::Counted, 2 * (101 + FRAME)));
        let edited = measure(&mut ruler, &talk, &[1, 0], u64::MAX);
        assert_eq!(ruler.weights()[1], 101 + FRAME, "what stands keeps its count");
        assert_near(edited.tokens, counted.tokens, 10);
    }

    #[test]
    fn a_session_that_the_provider_counts_is_counted_here_only_near_the_threshold() {
        const THRESHOLD: u64 = 100_000;
        let (mut ruler, mut talk) = (Ruler::default(), Vec::new());
        let mut tokens = 0;
        let is_counted = |ruler: &Ruler| ruler.entries.iter().any(|entry| entry.origin == SizeOrigin::Counted);
        while !is_counted(&ruler) {
            // A step brings in 1,500 tokens, of which the provider makes a tenth more.
            talk.push(said(prose(1500)));
            tokens = measure(&mut ruler, &talk, &vec![0; talk.len()], THRESHOLD).tokens;
            assert!(tokens < THRESHOLD, "it is counted before it passes the threshold");
            assert_eq!(ruler.report(talk.len() as u64 * 1650), SizeReport::Plausible);
            if tokens > THRESHOLD * 98 / 100 {
                break;
            }
        }
        assert!(tokens > THRESHOLD * 9 / 10, "{tokens}");
    }

    #[test]
    fn a_vocabulary_that_is_not_public_is_counted_from_above() {
        let talk = [said(prose(200)), said(noise(200))];
        let own = measure(&mut Ruler::default(), &talk, &[0, 0], 0);
        let nearest = of(&mut Ruler::default(), "qwen3", &[], &talk, &[0, 0], 0);
        assert_eq!(nearest.basis, Basis::Nearest);
        assert!(nearest.tokens > own.tokens && nearest.tokens < own.tokens * 3 / 2, "{nearest:?} {own:?}");
    }
}
