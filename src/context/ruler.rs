//! How large the requests of one conversation are. What was measured is kept for as long as its bytes stand, so that
//! each request costs only what is new.
//!
//! Three measures, the best of which counts. The provider's own count of an earlier request holds for the messages
//! that were in it. What came since is counted with the model's encoding, but only once it could matter: no token is
//! shorter than a byte, so nothing is counted while the bytes stay under the threshold, and a short run never loads a
//! tokenizer. Until then an estimate will do.

use std::collections::HashMap;

use crate::contract::ToolDefinition;
use crate::image;
use crate::message::{AssistantMessage, Message};
use crate::session::MessageId;
use crate::tokens::{self, Encoding};

/// What is measured: a request as it would be sent. `ids` name `messages`, one for each.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The provider's name of the model.
    pub model: &'a str,
    pub tools: &'a [ToolDefinition],
    pub messages: &'a [Message],
    pub ids: &'a [MessageId],
}

/// The size of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    pub tokens: u64,
    /// How many of them extend the previous request unchanged.
    pub prefix_tokens: u64,
    pub basis: Basis,
    /// Where it does not extend the previous request.
    pub broken: Option<Break>,
}

/// What a size rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    Estimate,
    /// The model's own encoding.
    Counted,
    /// A public encoding, as the model's own is not; a tenth is added.
    Nearest,
    /// The provider's count of what it has seen, and one of the above for the rest.
    Reported,
}

/// The first part of a request that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Break {
    Tools,
    SystemPrompt,
    /// The number of the message.
    Message(u64),
}

#[derive(Debug, Default)]
pub struct Ruler {
    model: String,
    tools: Option<Entry>,
    entries: Vec<Entry>,
    reported: Option<Reported>,
    /// How many tokens the provider counts for each of ours.
    scale: Option<f64>,
}

/// One part of a request.
#[derive(Debug, Clone, Copy)]
struct Entry {
    id: MessageId,
    bytes: u64,
    estimate: u64,
    counted: Option<u64>,
}

/// The provider's count of a request that ended with the entry before `entries`.
#[derive(Debug, Clone, Copy)]
struct Reported {
    entries: usize,
    tokens: u64,
}

impl Entry {
    fn best(&self) -> u64 {
        self.counted.unwrap_or(self.estimate)
    }
}

impl Ruler {
    /// Measures the next request, exactly where its size may pass `threshold`.
    pub fn measure(&mut self, request: Request<'_>, threshold: u64) -> Size {
        if self.model != request.model {
            *self = Self { model: request.model.to_owned(), ..Self::default() };
        }
        let first = self.tools.is_none();
        let same_tools = self.take_in_tools(request.tools);
        let same = self.entries.iter().zip(request.ids).take_while(|(entry, id)| entry.id == **id).count();
        let broken = if same_tools {
            self.entries.get(same).map(|entry| match entry.id.number {
                0 => Break::SystemPrompt,
                number => Break::Message(number),
            })
        } else {
            Some(Break::Tools)
        };
        self.take_in_messages(request, same);
        let prefix_tokens = if first || !same_tools { 0 } else { self.sum(same) };
        let basis = self.count_if_needed(request, threshold);
        Size { tokens: self.sum(self.entries.len()), prefix_tokens, basis, broken }
    }

    /// The provider's count of the request that was measured last. One that is far too small counts only a part (what
    /// was not cached, say) and is passed over.
    pub fn report(&mut self, input_tokens: u64) {
        let ours = self.unscaled();
        if input_tokens == 0 || input_tokens * 2 < ours {
            return;
        }
        self.reported = Some(Reported { entries: self.entries.len(), tokens: input_tokens });
        #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
        let scale = input_tokens as f64 / ours.max(1) as f64;
        self.scale = Some(scale);
    }

    /// The tokens of each message that was measured last, in order, scaled to what the provider counts.
    #[must_use]
    pub fn weights(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| self.scaled(entry.best())).collect()
    }

    /// The tokens of the definitions of the tools.
    #[must_use]
    pub fn tools(&self) -> u64 {
        self.scaled(self.tools.map_or(0, |tools| tools.best()))
    }

    /// The tokens of a text that is not measured yet.
    #[must_use]
    pub fn weigh(&self, text: &str) -> u64 {
        self.scaled(tokens::estimate(text))
    }

    /// Whether the definitions are those of the request before, or this is the first one.
    fn take_in_tools(&mut self, definitions: &[ToolDefinition]) -> bool {
        let tools = tools_entry(definitions);
        let same = self.tools.is_none_or(|known| (known.bytes, known.estimate) == (tools.bytes, tools.estimate));
        if self.tools.is_none() || !same {
            self.tools = Some(tools);
            self.reported = None;
        }
        same
    }

    /// Takes in the messages behind the first `same`, which stand as they were. What was counted of the others holds
    /// wherever their bytes come again.
    fn take_in_messages(&mut self, request: Request<'_>, same: usize) {
        let old = self.entries.split_off(same);
        if self.reported.is_some_and(|reported| reported.entries > same) {
            self.reported = None;
        }
        let known: HashMap<MessageId, Entry> = old.iter().map(|entry| (entry.id, *entry)).collect();
        let new = request.ids[same..].iter().zip(&request.messages[same..]);
        self.entries
            .extend(new.map(|(id, message)| known.get(id).copied().unwrap_or_else(|| entry(*id, message))));
    }

    fn count_if_needed(&mut self, request: Request<'_>, threshold: u64) -> Basis {
        let from = self.reported.map_or(0, |reported| reported.entries);
        let basis = if self.reported.is_some() { Basis::Reported } else { Basis::Estimate };
        let at_most = self.reported.map_or_else(|| self.tools.map_or(0, |tools| tools.bytes), |seen| seen.tokens)
            + self.entries[from..].iter().map(|entry| entry.bytes).sum::<u64>();
        // Once the provider has counted, its scale tells enough: a conversation that was just compressed is not counted
        // from its beginning.
        let likely = self.scale.map_or(u64::MAX, |_| self.sum(self.entries.len()) * 3 / 2);
        if at_most.min(likely) <= threshold {
            return basis;
        }
        let own = Encoding::of_model(request.model);
        let encoding = own.unwrap_or(Encoding::O200k);
        for (entry, message) in self.entries[from..].iter_mut().zip(&request.messages[from..]) {
            if entry.counted.is_none() {
                entry.counted = Some(FRAME + count(message, encoding));
            }
        }
        if self.reported.is_some() {
            return basis;
        }
        if let Some(tools) = &mut self.tools
            && tools.counted.is_none()
        {
            tools.counted = Some(tool_texts(request.tools).map(|text| tokens::count(&text, encoding)).sum());
        }
        if own.is_some() { Basis::Counted } else { Basis::Nearest }
    }

    /// The tokens of the definitions and of the first `entries` messages.
    fn sum(&self, entries: usize) -> u64 {
        match self.reported {
            Some(seen) if seen.entries <= entries => {
                let since: u64 = self.entries[seen.entries..entries].iter().map(Entry::best).sum();
                seen.tokens + self.scaled(since)
            }
            _ => {
                let ours: u64 = self.entries[..entries].iter().map(Entry::best).sum();
                self.scaled(self.tools.map_or(0, |tools| tools.best()) + ours)
            }
        }
    }

    fn unscaled(&self) -> u64 {
        self.tools.map_or(0, |tools| tools.best()) + self.entries.iter().map(Entry::best).sum::<u64>()
    }

    /// Our count as the provider would have it. Before it has said anything, an encoding that is not the model's own
    /// gets a tenth more.
    fn scaled(&self, tokens: u64) -> u64 {
        const NEAREST: f64 = 1.1;
        let counted = self.tools.is_some_and(|tools| tools.counted.is_some());
        let unsure = counted && Encoding::of_model(&self.model).is_none();
        let scale = self.scale.unwrap_or(if unsure { NEAREST } else { 1.0 });
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts of tokens are far below 2^52, and the scale is positive"
        )]
        let tokens = (tokens as f64 * scale).ceil() as u64;
        tokens
    }
}

/// What the role and the ids of a message cost.
const FRAME: u64 = 4;

fn entry(id: MessageId, message: &Message) -> Entry {
    let bytes = FRAME + texts(message).map(|text| text.len() as u64).sum::<u64>() + images(message);
    let estimate = FRAME + texts(message).map(tokens::estimate).sum::<u64>() + images(message);
    Entry { id, bytes, estimate, counted: None }
}

fn tools_entry(tools: &[ToolDefinition]) -> Entry {
    let (mut bytes, mut estimate) = (0, 0);
    for text in tool_texts(tools) {
        bytes += text.len() as u64;
        estimate += tokens::estimate(&text);
    }
    Entry { id: MessageId { number: 0, pass: 0 }, bytes, estimate, counted: None }
}

fn tool_texts(tools: &[ToolDefinition]) -> impl Iterator<Item = String> {
    tools.iter().flat_map(|tool| [tool.name.clone() + " " + &tool.description, tool.parameters.to_string()])
}

fn count(message: &Message, encoding: Encoding) -> u64 {
    texts(message).map(|text| tokens::count(text, encoding)).sum::<u64>() + images(message)
}

/// The tokens of its pictures: no provider tells them before it is asked.
fn images(message: &Message) -> u64 {
    message.images().len() as u64 * image::TOKENS
}

/// What of a message is sent.
fn texts(message: &Message) -> impl Iterator<Item = &str> {
    let calls = match message {
        Message::Assistant(AssistantMessage { tool_calls, .. }) => tool_calls.as_slice(),
        _ => &[],
    };
    let calls = calls.iter().flat_map(|call| [call.name.as_str(), call.arguments.as_str()]);
    std::iter::once(message.content()).chain(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that the estimate takes for four times what it is.
    fn flat(tokens: usize) -> String {
        "=".repeat(tokens * 4)
    }

    fn ids(passes: &[u32]) -> Vec<MessageId> {
        (1..).zip(passes).map(|(number, pass)| MessageId { number, pass: *pass }).collect()
    }

    fn tool(description: &str) -> ToolDefinition {
        ToolDefinition {
            name: "grep".to_owned(),
            description: description.to_owned(),
            parameters: serde_json::json!({}),
            permission: crate::contract::Permission::Read,
            effects: Vec::new(),
            default: true,
        }
    }

    fn measure(ruler: &mut Ruler, messages: &[Message], passes: &[u32], threshold: u64) -> Size {
        of(ruler, "gpt-5-mini", &[], messages, passes, threshold)
    }

    fn of(
        ruler: &mut Ruler,
        model: &str,
        tools: &[ToolDefinition],
        messages: &[Message],
        passes: &[u32],
        threshold: u64,
    ) -> Size {
        ruler.measure(Request { model, tools, messages, ids: &ids(passes) }, threshold)
    }

    #[test]
    fn what_extends_the_request_before_is_its_prefix() {
        let mut ruler = Ruler::default();
        let talk = [Message::user(flat(100)), Message::user(flat(50)), Message::user(flat(30))];
        let first = measure(&mut ruler, &talk[..2], &[0, 0], u64::MAX);
        assert_eq!((first.tokens, first.prefix_tokens, first.broken), (158, 0, None));
        let second = measure(&mut ruler, &talk, &[0, 0, 0], u64::MAX);
        assert_eq!((second.tokens, second.prefix_tokens, second.broken), (192, 158, None));
        let edited = measure(&mut ruler, &talk, &[0, 1, 0], u64::MAX);
        assert_eq!((edited.prefix_tokens, edited.broken), (104, Some(Break::Message(2))));
        let shorter = measure(&mut ruler, &talk[..1], &[0], u64::MAX);
        assert_eq!((shorter.tokens, shorter.broken), (104, Some(Break::Message(2))));
    }

    #[test]
    fn other_tools_leave_nothing_of_the_prefix() {
        let mut ruler = Ruler::default();
        let talk = [Message::user(flat(100))];
        of(&mut ruler, "m", &[tool("finds")], &talk, &[0], u64::MAX);
        ruler.report(1000);
        let size = of(&mut ruler, "m", &[tool("finds more")], &talk, &[0], u64::MAX);
        assert_eq!((size.prefix_tokens, size.broken, size.basis), (0, Some(Break::Tools), Basis::Estimate));
    }

    #[test]
    fn another_model_is_measured_anew() {
        let mut ruler = Ruler::default();
        let talk = [Message::user(flat(100))];
        of(&mut ruler, "one", &[], &talk, &[0], u64::MAX);
        ruler.report(500);
        let size = of(&mut ruler, "two", &[], &talk, &[0], u64::MAX);
        assert_eq!((size.tokens, size.prefix_tokens, size.broken), (104, 0, None));
    }

    #[test]
    fn the_provider_s_count_is_an_anchor_for_what_it_has_seen_and_a_scale_for_the_rest() {
        let mut ruler = Ruler::default();
        let talk = [Message::user(flat(96)), Message::user(flat(46))];
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
    fn a_count_that_is_far_too_small_is_passed_over() {
        let mut ruler = Ruler::default();
        let talk = [Message::user(flat(96))];
        measure(&mut ruler, &talk, &[0], u64::MAX);
        for nonsense in [0, 7, 49] {
            ruler.report(nonsense);
            let size = measure(&mut ruler, &talk, &[0], u64::MAX);
            assert_eq!((size.tokens, size.basis), (100, Basis::Estimate), "{nonsense}");
        }
    }

    #[test]
    fn nothing_is_counted_before_it_could_matter_and_then_only_once() {
        let mut ruler = Ruler::default();
        let talk = [Message::user(flat(100)), Message::user(flat(100))];
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
    fn after_an_edit_the_provider_s_scale_is_enough_unless_it_gets_tight() {
        let mut ruler = Ruler::default();
        let talk = [Message::user(flat(96)), Message::user(flat(96))];
        measure(&mut ruler, &talk, &[0, 0], u64::MAX);
        ruler.report(200);
        let edited = measure(&mut ruler, &talk, &[1, 0], 300);
        assert_eq!((edited.tokens, edited.basis), (200, Basis::Estimate));
        assert_eq!(measure(&mut ruler, &talk, &[1, 0], 299).basis, Basis::Counted);
    }

    #[test]
    fn a_vocabulary_that_is_not_public_gets_a_tenth_more() {
        let talk = [Message::user("one word and another ".repeat(50))];
        let own = measure(&mut Ruler::default(), &talk, &[0], 0);
        let nearest = of(&mut Ruler::default(), "qwen3", &[], &talk, &[0], 0);
        assert_eq!(nearest.basis, Basis::Nearest);
        assert!(nearest.tokens > own.tokens && nearest.tokens <= own.tokens * 11 / 10 + 1, "{nearest:?} {own:?}");
    }
}
