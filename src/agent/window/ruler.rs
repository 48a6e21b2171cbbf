//! The size of a conversation's requests. Measurements are kept as long as the bytes are unchanged, so each
//! request costs only its new part.
//!
//! There are three measures; the best one counts. The provider's count of an earlier request holds for the
//! messages in it, and its ratio to our estimate bounds what came since. The model's encoding is used only if that
//! bound passes the threshold, when the error of the estimate could decide. Before any report the bound is the number
//! of bytes, since no token is shorter than a byte. A short run never loads a tokenizer.

use std::collections::HashMap;

use crate::base::image;
use crate::base::tokens::{self, Vocabulary};
use crate::conversation::message::{Item, Step};
use crate::conversation::session::ItemId;
use crate::model::ToolDefinition;

use super::report::{self, Earlier, SentSize, SizeReport};
use super::scale::{Scale, scale_tokens};

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

impl RequestSize {
    /// A lower bound of the tokens: estimates may be a fifth too high.
    pub fn at_least(&self) -> u64 {
        match self.basis {
            Basis::Estimate | Basis::Nearest => self.tokens * 4 / 5,
            Basis::Counted | Basis::Reported => self.tokens,
        }
    }
}

/// The basis of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    Estimate,
    /// The model's own encoding.
    Counted,
    /// A public encoding, if the model's own is unavailable; a tenth is added.
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

#[derive(Debug, Default)]
pub struct Ruler {
    model: String,
    tools: Option<MeasuredEntry>,
    /// The definitions that `tools` measures.
    definitions: Vec<ToolDefinition>,
    system: Option<(String, MeasuredEntry)>,
    entries: Vec<MeasuredEntry>,
    reported: Option<ReportedSize>,
    /// The provider's tokens per token of ours.
    scale: Option<Scale>,
}

/// One part of a request.
#[derive(Debug, Clone, Copy, Default)]
struct MeasuredEntry {
    id: ItemId,
    /// The number of the item's calls that have an answer.
    answers: usize,
    /// An upper bound of its tokens: its texts, its frames and its pictures.
    bytes: u64,
    /// The part of `bytes` that is frames.
    frames: u64,
    images: u64,
    estimate: u64,
    counted: Option<u64>,
}

/// The provider's count of a request that ended with the entry before `entries`.
#[derive(Debug, Clone, Copy)]
struct ReportedSize {
    entries: usize,
    tokens: u64,
}

impl MeasuredEntry {
    fn best(&self) -> u64 {
        self.counted.unwrap_or(self.estimate)
    }

    /// The bytes of its texts.
    fn texts(&self) -> u64 {
        self.bytes - self.frames - self.images * image::TOKENS
    }
}

impl Ruler {
    /// Measures the next request, exactly if its size may pass `threshold`.
    pub fn measure(&mut self, request: MeasuredRequest<'_>, threshold: u64) -> RequestSize {
        if self.model != request.model {
            *self = Self { model: request.model.to_owned(), ..Self::default() };
        }
        let first = self.tools.is_none();
        let same_tools = self.take_in_tools(request.tools);
        let same_system = self.take_in_system(request.system);
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

    /// Applies the provider's count of the last measured request, if it is plausible.
    pub fn report(&mut self, input_tokens: u64) -> SizeReport {
        self.anchor(self.entries.len(), input_tokens)
    }

    /// Applies the provider's count of a request that ended with the first `entries` items of the last measured
    /// one, if it is plausible: for example that of the last reply in a resumed session.
    pub fn anchor(&mut self, entries: usize, tokens: u64) -> SizeReport {
        let entries = entries.min(self.entries.len());
        let seen = &self.entries[..entries];
        let texts = |entries: &[MeasuredEntry]| entries.iter().map(MeasuredEntry::texts).sum::<u64>();
        let system = self.system.as_ref().map_or(0, |(text, _)| text.len() as u64);
        let heads: u64 = self.heads().map(|head| head.bytes).sum();
        let sent = SentSize {
            texts: texts(seen) + system,
            frames: heads - system + seen.iter().map(|entry| entry.frames).sum::<u64>(),
            images: seen.iter().map(|entry| entry.images).sum(),
        };
        let earlier = self.reported.filter(|reported| reported.entries <= entries);
        let earlier =
            earlier.map(|reported| Earlier { tokens: reported.tokens, added: texts(&seen[reported.entries..]) });
        let report = report::judge_size(tokens, sent, earlier);
        if report == SizeReport::Plausible {
            let ours = seen.iter().map(MeasuredEntry::best).sum::<u64>();
            self.scale = Some(Scale::learn(self.scale, tokens, self.head(), ours));
            self.reported = Some(ReportedSize { entries, tokens });
        }
        report
    }

    /// Forgets the provider's counts: sizes are our own until the next report. False if there was none.
    pub fn forget_reports(&mut self) -> bool {
        let had_count = self.reported.take().is_some();
        self.scale.take().is_some() || had_count
    }

    /// The tokens of each item measured last, in order, scaled to the provider's count.
    pub fn weights(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| self.scaled(entry.best())).collect()
    }

    /// The tokens of the tool definitions.
    pub fn tools(&self) -> u64 {
        self.scaled_head(self.tools.map_or(0, |tools| tools.best()))
    }

    /// The tokens of the tool definitions and the system prompt: everything beside the items.
    pub fn measure_fixed(&self) -> u64 {
        self.scaled_head(self.head())
    }

    /// The tokens of a text that was not measured yet.
    pub fn weigh(&self, text: &str) -> u64 {
        self.scaled(tokens::estimate_tokens(text))
    }

    /// Takes in the tool definitions. Returns true if they are unchanged, or this is the first request.
    fn take_in_tools(&mut self, definitions: &[ToolDefinition]) -> bool {
        if self.tools.is_some() && self.definitions == definitions {
            return true;
        }
        self.definitions = definitions.to_vec();
        let tools = tools_entry(definitions);
        let same = self.tools.is_none_or(|known| (known.bytes, known.estimate) == (tools.bytes, tools.estimate));
        if self.tools.is_none() || !same {
            self.tools = Some(tools);
            self.reported = None;
        }
        same
    }

    /// Takes in the system prompt. Returns true if it is byte for byte unchanged, or this is the first request.
    fn take_in_system(&mut self, text: &str) -> bool {
        let is_first = self.system.is_none();
        if self.system.as_ref().is_some_and(|(known, _)| known == text) {
            return true;
        }
        let (bytes, estimate) = (FRAME + text.len() as u64, FRAME + tokens::estimate_tokens(text));
        let id = ItemId { number: 0, pass: 0 };
        let entry = if text.is_empty() {
            MeasuredEntry::default()
        } else {
            MeasuredEntry { id, bytes, estimate, ..MeasuredEntry::default() }
        };
        self.system = Some((text.to_owned(), entry));
        self.reported = None;
        is_first
    }

    /// Takes in the items after the first `same`, which are unchanged. Counts of the other items stay valid where
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
            known.get(&(*id, count_answers(item))).copied().unwrap_or_else(|| measure_entry(*id, item))
        };
        self.entries.extend(new.map(entry));
    }

    fn count_if_needed(&mut self, request: MeasuredRequest<'_>, threshold: u64) -> Basis {
        let from = self.reported.map_or(0, |reported| reported.entries);
        let basis = if self.reported.is_some() { Basis::Reported } else { Basis::Estimate };
        if self.at_most() <= threshold {
            return basis;
        }
        let own = Vocabulary::of_model(request.model);
        let encoding = own.unwrap_or(Vocabulary::O200k);
        for (entry, item) in self.entries[from..].iter_mut().zip(&request.items[from..]) {
            if entry.counted.is_none() {
                entry.counted = Some(measure_frame(item) + count_tokens(item, encoding));
            }
        }
        if self.reported.is_some() {
            return basis;
        }
        if let Some(tools) = &mut self.tools
            && tools.counted.is_none()
        {
            tools.counted =
                Some(tool_texts(request.tools).map(|text| tokens::count_tokens(&text, encoding)).sum());
        }
        if let Some((text, system)) = &mut self.system
            && system.counted.is_none()
            && !text.is_empty()
        {
            system.counted = Some(FRAME + tokens::count_tokens(text, encoding));
        }
        if own.is_some() { Basis::Counted } else { Basis::Nearest }
    }

    /// An upper bound of the tokens, as long as the provider's tokens are like those that it reported.
    fn at_most(&self) -> u64 {
        let bytes = |entries: &[MeasuredEntry]| entries.iter().map(|entry| entry.bytes).sum::<u64>();
        match (self.reported, self.scale) {
            // What came since may be denser than the rest: code, a table of numbers, another script.
            (Some(seen), _) => {
                let since = &self.entries[seen.entries..];
                let likely = self.scaled(since.iter().map(MeasuredEntry::best).sum()) * 2;
                seen.tokens + likely.min(bytes(since))
            }
            // A conversation that was just compressed is mostly what the provider has counted before.
            (None, Some(_)) => (self.sum(self.entries.len()) * 3 / 2).min(self.bytes()),
            (None, None) => self.bytes(),
        }
    }

    /// The bytes of everything. No token is shorter than a byte.
    fn bytes(&self) -> u64 {
        self.heads().chain(self.entries.iter().copied()).map(|entry| entry.bytes).sum()
    }

    /// The tokens of everything beside the items, and of the first `entries` items.
    fn sum(&self, entries: usize) -> u64 {
        match self.reported {
            Some(seen) if seen.entries <= entries => {
                let since: u64 = self.entries[seen.entries..entries].iter().map(MeasuredEntry::best).sum();
                seen.tokens + self.scaled(since)
            }
            _ => {
                let ours: u64 = self.entries[..entries].iter().map(MeasuredEntry::best).sum();
                self.scaled_head(self.head()) + self.scaled(ours)
            }
        }
    }

    fn heads(&self) -> impl Iterator<Item = MeasuredEntry> {
        self.tools.into_iter().chain(self.system.as_ref().map(|(_, entry)| *entry))
    }

    fn head(&self) -> u64 {
        self.heads().map(|head| head.best()).sum()
    }

    /// The number of tokens that the provider counts for each of ours. Before its first report, an encoding that is not
    /// the model's own gets a tenth more.
    fn scale(&self) -> f64 {
        self.scale.map_or_else(|| self.estimate_unreported(), |scale| scale.items)
    }

    fn estimate_unreported(&self) -> f64 {
        const NEAREST: f64 = 1.1;
        let counted = self.tools.is_some_and(|tools| tools.counted.is_some());
        let unsure = counted && Vocabulary::of_model(&self.model).is_none();
        if unsure { NEAREST } else { 1.0 }
    }

    /// Does the same as [`Ruler::scaled`] for the prompt and the tools.
    fn scaled_head(&self, tokens: u64) -> u64 {
        scale_tokens(tokens, self.scale.map_or_else(|| self.estimate_unreported(), |scale| scale.head))
    }

    /// Converts our count to the provider's.
    pub fn scaled(&self, tokens: u64) -> u64 {
        scale_tokens(tokens, self.scale())
    }

    /// Converts the provider's count to ours.
    pub fn remove_scale(&self, tokens: u64) -> u64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts of tokens are far below 2^52, and the scale is positive"
        )]
        let tokens = (tokens as f64 / self.scale()) as u64;
        tokens
    }
}

/// The tokens for the role and the ids of a message. An answer is a message of its own.
pub(super) const FRAME: u64 = 4;

pub(super) fn measure_frame(item: &Item) -> u64 {
    FRAME * (1 + count_answers(item) as u64)
}

/// The number of an item's calls that have an answer.
fn count_answers(item: &Item) -> usize {
    item.as_step().into_iter().flat_map(Step::calls).filter(|call| call.answer.is_some()).count()
}

fn measure_entry(id: ItemId, item: &Item) -> MeasuredEntry {
    let (frames, images) = (measure_frame(item), item.images().count() as u64);
    let around = frames + images * image::TOKENS;
    let bytes = around + item.texts().map(|text| text.len() as u64).sum::<u64>();
    let estimate = around + item.texts().map(tokens::estimate_tokens).sum::<u64>();
    MeasuredEntry { id, answers: count_answers(item), bytes, frames, images, estimate, counted: None }
}

fn tools_entry(tools: &[ToolDefinition]) -> MeasuredEntry {
    let mut entry = MeasuredEntry::default();
    for text in tool_texts(tools) {
        entry.bytes += text.len() as u64;
        entry.estimate += tokens::estimate_tokens(&text);
    }
    entry
}

fn tool_texts(tools: &[ToolDefinition]) -> impl Iterator<Item = String> {
    tools.iter().flat_map(|tool| [tool.name.clone() + " " + &tool.description, tool.parameters.to_string()])
}

fn count_tokens(item: &Item, encoding: Vocabulary) -> u64 {
    // No provider reports the tokens of pictures before a request.
    let images = item.images().count() as u64 * image::TOKENS;
    item.texts().map(|text| tokens::count_tokens(text, encoding)).sum::<u64>() + images
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{Call, CallAnswer, CallStatus, ReplyPart, ToolCall, UserText};

    const SYSTEM: &str = "";

    fn said(text: impl Into<String>) -> Item {
        Item::Said(UserText::by_person(text))
    }

    /// A text whose estimate is four times its real count.
    fn flat(tokens: usize) -> String {
        "=".repeat(tokens * 4)
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
            effects: Vec::new(),
            default: true,
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
        ruler.measure(MeasuredRequest { model, tools, system: SYSTEM, items, ids: &ids(passes) }, threshold)
    }

    #[test]
    fn what_extends_the_request_before_is_its_prefix() {
        let mut ruler = Ruler::default();
        let talk = [said(flat(100)), said(flat(50)), said(flat(30))];
        let first = measure(&mut ruler, &talk[..2], &[0, 0], u64::MAX);
        assert_eq!((first.tokens, first.prefix_tokens, first.broken), (158, 0, None));
        let second = measure(&mut ruler, &talk, &[0, 0, 0], u64::MAX);
        assert_eq!((second.tokens, second.prefix_tokens, second.broken), (192, 158, None));
        let edited = measure(&mut ruler, &talk, &[0, 1, 0], u64::MAX);
        assert_eq!((edited.prefix_tokens, edited.broken), (104, Some(Break::Item(2))));
        let shorter = measure(&mut ruler, &talk[..1], &[0], u64::MAX);
        assert_eq!((shorter.tokens, shorter.broken), (104, Some(Break::Item(2))));
    }

    #[test]
    fn other_tools_leave_nothing_of_the_prefix() {
        let mut ruler = Ruler::default();
        let talk = [said(flat(100))];
        of(&mut ruler, "m", &[tool("finds")], &talk, &[0], u64::MAX);
        ruler.report(300);
        let size = of(&mut ruler, "m", &[tool("finds more")], &talk, &[0], u64::MAX);
        assert_eq!((size.prefix_tokens, size.broken, size.basis), (0, Some(Break::Tools), Basis::Estimate));
    }

    #[test]
    fn another_system_prompt_is_told_by_its_bytes_and_leaves_the_tools() {
        let mut ruler = Ruler::default();
        let (items, ids, tools) = ([said(flat(100))], ids(&[0]), [tool("finds")]);
        let mut size = |system: &str| {
            let request = MeasuredRequest { model: "m", tools: &tools, system, items: &items, ids: &ids };
            let size = ruler.measure(request, u64::MAX);
            (size.tokens, size.prefix_tokens, size.broken, ruler.tools(), ruler.measure_fixed())
        };
        let (tokens, _, broken, tools, fixed) = size(&flat(20));
        assert_eq!((broken, fixed), (None, tools + 24));
        assert_eq!(tokens, fixed + 104);
        assert_eq!(size(&flat(20)), (tokens, tokens, None, tools, fixed), "the same bytes");
        assert_eq!(size(&flat(30)), (tokens + 10, tools, Some(Break::SystemPrompt), tools, fixed + 10));
    }

    #[test]
    fn an_answer_that_came_since_is_measured() {
        let mut ruler = Ruler::default();
        let request = ToolCall { id: String::new(), name: "grep".to_owned(), arguments: "{}".to_owned() };
        let call = ReplyPart::Call(Call { request, opaque: None, answer: None });
        let mut step = Step { parts: vec![call], ..Step::default() };
        let open = measure(&mut ruler, &[Item::Step(step.clone())], &[0], u64::MAX);
        step.fill(0, CallAnswer::of_text(flat(50), CallStatus::Ok));
        let filled = measure(&mut ruler, &[Item::Step(step)], &[0], u64::MAX);
        assert_eq!((filled.tokens, filled.prefix_tokens), (open.tokens + 54, 0));
    }

    #[test]
    fn another_model_is_measured_anew() {
        let mut ruler = Ruler::default();
        let talk = [said(flat(100))];
        of(&mut ruler, "one", &[], &talk, &[0], u64::MAX);
        ruler.report(300);
        let size = of(&mut ruler, "two", &[], &talk, &[0], u64::MAX);
        assert_eq!((size.tokens, size.prefix_tokens, size.broken), (104, 0, None));
    }

    #[test]
    fn the_provider_s_count_is_an_anchor_for_what_it_has_seen_and_a_scale_for_the_rest() {
        let mut ruler = Ruler::default();
        let talk = [said(flat(96)), said(flat(46))];
        measure(&mut ruler, &talk[..1], &[0], u64::MAX);
        ruler.report(200);
        let size = measure(&mut ruler, &talk, &[0, 0], u64::MAX);
        assert_eq!((size.tokens, size.basis), (300, Basis::Reported), "200, and 50 that count twice");
        assert_eq!((ruler.weights(), ruler.weigh(&flat(10))), (vec![200, 100], 20));
        let edited = measure(&mut ruler, &talk, &[1, 0], u64::MAX);
        assert_eq!(
            (edited.tokens, edited.basis),
            (300, Basis::Estimate),
            "what it has seen is gone, its scale holds"
        );
    }

    #[test]
    fn a_count_that_cannot_be_true_is_passed_over() {
        let mut ruler = Ruler::default();
        let talk = [said(flat(96))];
        measure(&mut ruler, &talk, &[0], u64::MAX);
        for (nonsense, judgement) in [
            (0, SizeReport::Absent),
            (7, SizeReport::TooSmall { tokens: 7, bytes: 384 }),
            (26, SizeReport::TooSmall { tokens: 26, bytes: 384 }),
            (389, SizeReport::TooLarge { tokens: 389, bytes: 388 }),
        ] {
            assert_eq!(ruler.report(nonsense), judgement);
            let size = measure(&mut ruler, &talk, &[0], u64::MAX);
            assert_eq!((size.tokens, size.basis), (100, Basis::Estimate), "{nonsense}");
        }
    }

    #[test]
    fn a_server_that_cuts_the_conversation_is_not_followed() {
        let mut ruler = Ruler::default();
        let talk = [said(flat(996)), said(flat(2996)), said(flat(2996))];
        measure(&mut ruler, &talk[..1], &[0], u64::MAX);
        assert_eq!(ruler.report(1000), SizeReport::Plausible);
        for messages in 2..=3 {
            let size = measure(&mut ruler, &talk[..messages], &[0, 0, 0][..messages], u64::MAX);
            let added = (messages as u64 - 1) * 2996 * 4;
            assert_eq!(size.tokens, 1000 + (messages as u64 - 1) * 3000, "what it said first stands");
            let judgement = ruler.report(1024);
            assert!(
                matches!(judgement, SizeReport::Stuck { tokens: 1024, added: of } if of == added)
                    || matches!(judgement, SizeReport::TooSmall { tokens: 1024, .. }),
                "{judgement:?}"
            );
        }
    }

    #[test]
    fn a_session_that_is_resumed_is_anchored_to_the_count_of_its_last_reply() {
        let mut ruler = Ruler::default();
        let tools = [tool("finds")];
        let talk = [said(flat(96)), said(flat(46)), said(flat(46))];
        let estimated = of(&mut ruler, "m", &tools, &talk, &[0, 0, 0], u64::MAX);
        // The last reply's request held the first two items.
        let seen = estimated.tokens - 50;
        assert_eq!(ruler.anchor(2, seen * 2), SizeReport::Plausible);
        let size = of(&mut ruler, "m", &tools, &talk, &[0, 0, 0], u64::MAX);
        // What is counted twice as high is the conversation, not the tools.
        let about = |extra: u64| seen * 2 + extra..=seen * 2 + extra + extra / 20;
        assert!(about(100).contains(&size.tokens) && size.basis == Basis::Reported, "{size:?}");
        assert_eq!(size.broken, None);
        // The next message extends it.
        let longer: Vec<Item> = talk.iter().cloned().chain([said(flat(6))]).collect();
        let size = of(&mut ruler, "m", &tools, &longer, &[0, 0, 0, 0], u64::MAX);
        assert!(about(120).contains(&size.tokens) && size.basis == Basis::Reported, "{size:?}");
        let judgement = ruler.anchor(2, 100_000);
        assert!(matches!(judgement, SizeReport::TooLarge { tokens: 100_000, .. }), "{judgement:?}");
        assert_eq!(of(&mut ruler, "m", &tools, &longer, &[0, 0, 0, 0], u64::MAX).tokens, size.tokens);
    }

    #[test]
    fn a_conversation_of_noise_does_not_make_the_tools_grow() {
        let tools: Vec<ToolDefinition> = (0..20).map(|at| tool(&format!("finds {at} {}", flat(200)))).collect();
        let talk = [said(flat(40)), said(flat(4000)), said(flat(4000))];
        let mut ruler = Ruler::default();
        let first = of(&mut ruler, "m", &tools, &talk[..1], &[0], u64::MAX).tokens;
        assert_eq!(ruler.report(first), SizeReport::Plausible);
        let fixed = ruler.measure_fixed();
        // The conversation is counted twice as high as ours.
        let whole = of(&mut ruler, "m", &tools, &talk, &[0, 0, 0], u64::MAX).tokens;
        assert_eq!(ruler.report(whole + 8000), SizeReport::Plausible);
        assert_eq!(ruler.measure_fixed(), fixed);
        assert!(ruler.scaled(1000) > 1900, "{}", ruler.scaled(1000));
        // One that is resumed has seen no report without it: the tools are within what is likely.
        let mut resumed = Ruler::default();
        of(&mut resumed, "m", &tools, &talk, &[0, 0, 0], u64::MAX);
        assert_eq!(resumed.anchor(3, whole + 8000), SizeReport::Plausible);
        assert!(resumed.measure_fixed() <= fixed * 5 / 4, "{} {fixed}", resumed.measure_fixed());
        assert_eq!(of(&mut resumed, "m", &tools, &talk, &[0, 0, 0], u64::MAX).tokens, whole + 8000);
    }

    #[test]
    fn nothing_is_counted_before_it_could_matter_and_then_only_once() {
        let mut ruler = Ruler::default();
        let talk = [said(flat(100)), said(flat(100))];
        let bytes = 2 * (400 + FRAME);
        assert_eq!(measure(&mut ruler, &talk, &[0, 0], bytes).basis, Basis::Estimate);
        let counted = measure(&mut ruler, &talk, &[0, 0], bytes - 1);
        assert!(counted.basis == Basis::Counted && counted.tokens < 60, "{counted:?}");
        let weight = ruler.weights()[1];
        let edited = measure(&mut ruler, &talk, &[1, 0], u64::MAX);
        assert_eq!((ruler.weights()[0], ruler.weights()[1]), (104, weight), "what stands keeps its count");
        assert_eq!((edited.tokens, edited.basis), (104 + weight, Basis::Estimate));
    }

    #[test]
    fn a_session_that_the_provider_counts_is_counted_here_only_near_the_threshold() {
        const THRESHOLD: u64 = 100_000;
        let (mut ruler, mut talk) = (Ruler::default(), Vec::new());
        let mut tokens = 0;
        let is_counted = |ruler: &Ruler| ruler.entries.iter().any(|entry| entry.counted.is_some());
        while !is_counted(&ruler) {
            // A step brings in 2,000 tokens, of which the provider makes a tenth more.
            talk.push(said("one word and another ".repeat(380)));
            tokens = measure(&mut ruler, &talk, &vec![0; talk.len()], THRESHOLD).tokens;
            assert!(tokens < THRESHOLD, "it is counted before it passes the threshold");
            assert_eq!(ruler.report(talk.len() as u64 * 2200), SizeReport::Plausible);
        }
        assert!(tokens > THRESHOLD * 9 / 10, "{tokens}");
    }

    #[test]
    fn after_an_edit_the_provider_s_scale_is_enough_unless_it_gets_tight() {
        let mut ruler = Ruler::default();
        let talk = [said(flat(96)), said(flat(96))];
        measure(&mut ruler, &talk, &[0, 0], u64::MAX);
        ruler.report(200);
        let edited = measure(&mut ruler, &talk, &[1, 0], 300);
        assert_eq!((edited.tokens, edited.basis), (200, Basis::Estimate));
        assert_eq!(measure(&mut ruler, &talk, &[1, 0], 299).basis, Basis::Counted);
    }

    #[test]
    fn a_vocabulary_that_is_not_public_gets_a_tenth_more() {
        let talk = [said("one word and another ".repeat(50))];
        let own = measure(&mut Ruler::default(), &talk, &[0], 0);
        let nearest = of(&mut Ruler::default(), "qwen3", &[], &talk, &[0], 0);
        assert_eq!(nearest.basis, Basis::Nearest);
        assert!(nearest.tokens > own.tokens && nearest.tokens <= own.tokens * 11 / 10 + 1, "{nearest:?} {own:?}");
    }
}
