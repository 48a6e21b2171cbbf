//! What a request holds and what it may hold: the budget, and how much of a request extends the one before.
//!
//! No token is shorter than a byte, so nothing is counted while the bytes are below the budget.

use crate::config::ContextSettings;
use crate::contract::{ModelInfo, ToolDefinition};
use crate::image;
use crate::message::{AssistantMessage, Message};
use crate::tokens::{self, Encoding};

/// The tokens that a request may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// What the model can hold in all.
    pub window: u64,
    /// What a request may hold: the window less the reserve for the reply and a margin for what cannot be counted
    /// exactly.
    pub tokens: u64,
}

impl Budget {
    /// # Errors
    /// A sentence, when the reserve leaves nothing.
    pub fn new(model: &ModelInfo, settings: &ContextSettings) -> Result<Self, String> {
        /// Two per cent for the provider's own framing of messages and tools.
        const MARGIN_SHARE: u64 = 50;
        /// The reserve where neither the model nor the settings declare one.
        const RESERVE: u64 = 8192;
        let window = model.context_window;
        let reserve =
            settings.reserve_output.or(model.max_output_tokens).unwrap_or(RESERVE.min(window / 4)).min(window);
        let room = (window - reserve).saturating_sub(window / MARGIN_SHARE);
        let tokens = settings.budget.unwrap_or(room).min(window);
        if tokens == 0 {
            return Err(format!(
                "the context window of {window} tokens leaves no room beside a reserve of {reserve} for the reply: \
                 lower context.reserve_output or the model's max_output_tokens"
            ));
        }
        Ok(Self { window, tokens })
    }
}

/// The size of the requests of one conversation: what was counted is kept, so each request costs only what is new.
#[derive(Debug, Default)]
pub struct Ruler {
    /// The system prompt that was measured, to notice when it was rendered anew.
    system: String,
    messages: usize,
    tokens: u64,
    bytes: u64,
}

/// The size of one request, estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub tokens: u64,
    /// How many of them extend the previous request unchanged.
    pub prefix_tokens: u64,
    /// At least as many as the request has tokens.
    pub bytes: u64,
}

impl Ruler {
    /// Measures the next request.
    pub fn measure(&mut self, messages: &[Message], tools: &[ToolDefinition]) -> Size {
        let system = messages.first().map_or("", Message::content);
        if self.messages == 0 || self.system != system || self.messages > messages.len() {
            *self = Self { system: system.to_owned(), ..Self::default() };
            for tool in tools {
                let parameters = tool.parameters.to_string();
                self.tokens += tokens::estimate(&tool.description) + tokens::estimate(&parameters);
                self.bytes += (tool.name.len() + tool.description.len() + parameters.len()) as u64;
            }
        }
        let prefix_tokens = if self.messages == 0 { 0 } else { self.tokens };
        for message in &messages[self.messages..] {
            self.tokens += estimate(message);
            self.bytes += bytes(message);
        }
        self.messages = messages.len();
        Size { tokens: self.tokens, prefix_tokens, bytes: self.bytes }
    }
}

/// The tokens of a message, estimated, with what its role and ids cost.
#[must_use]
pub fn estimate(message: &Message) -> u64 {
    const FRAME: u64 = 4;
    FRAME + texts(message).map(tokens::estimate).sum::<u64>() + images(message)
}

fn bytes(message: &Message) -> u64 {
    texts(message).map(|text| text.len() as u64).sum::<u64>() + images(message)
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

/// The tokens of a whole request, counted with the encoding nearest to the model's. Loads the tokenizer: only asked
/// once the bytes pass the budget.
#[must_use]
pub fn count(model: &str, messages: &[Message], tools: &[ToolDefinition]) -> u64 {
    let encoding = encoding(model);
    count_tools(encoding, tools) + messages.iter().map(|message| count_message(encoding, message)).sum::<u64>()
}

/// The model's own encoding, else the nearest one.
#[must_use]
pub fn encoding(model: &str) -> Encoding {
    Encoding::of_model(model).unwrap_or(Encoding::O200k)
}

/// The tokens of a message, counted.
#[must_use]
pub fn count_message(encoding: Encoding, message: &Message) -> u64 {
    texts(message).map(|text| tokens::count(text, encoding)).sum::<u64>() + images(message)
}

/// The tokens of all definitions, counted.
#[must_use]
pub fn count_tools(encoding: Encoding, tools: &[ToolDefinition]) -> u64 {
    let count = |text: &str| tokens::count(text, encoding);
    tools.iter().map(|tool| count(&tool.description) + count(&tool.parameters.to_string())).sum()
}
