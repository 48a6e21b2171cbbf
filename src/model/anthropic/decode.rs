//! Reads the events of the Messages API into a reply. Only `message_stop` ends a reply: a stream that breaks off
//! earlier is not a reply, even if the model has said why it stopped.
//!
//! Thoughts go back to the server as they came, signature included, and so does every unknown block.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::assembly::{Assembly, Broken, PartKey};
use super::super::decode::{Decode, Misread};
use super::super::errors::StatedError;
use super::super::event_stream::Framing;
use super::super::lenient::read_json;
use super::cloud::ClaudeCloud;
use super::event::{Event, Message, Piece};
use super::flags::AnthropicFlags;
use super::stop::AnthropicStop;
use super::usage::Counts;
use crate::conversation::message::FinishReason;

/// The decoder of one reply.
pub struct AnthropicDecoder {
    framing: Framing,
    keeps_unsigned: bool,
    /// The server's id of the reply.
    id: Option<String>,
    blocks: Vec<OpenBlock>,
    counts: Counts,
    stop: Option<AnthropicStop>,
}

/// A block of the reply. The server's index refers to the latest block with that index.
struct OpenBlock {
    index: Option<u64>,
    key: PartKey,
    kind: OpenBlockKind,
}

enum OpenBlockKind {
    Text,
    Thought {
        signature: String,
    },
    /// A call. Its first event may already have arguments; later ones replace them.
    Call {
        has_first: bool,
        /// True if its first event had an empty object, which stands for the arguments unless others come.
        is_bare: bool,
    },
    /// A block that only the server knows.
    Foreign {
        block: Value,
        input: String,
    },
    /// Nothing more is added to it.
    Closed,
}

impl AnthropicDecoder {
    pub fn new(flags: &AnthropicFlags) -> Self {
        let keeps_unsigned = flags.empty_signature_ok;
        let is_binary = flags.cloud == Some(ClaudeCloud::Bedrock);
        let framing = if is_binary { Framing::Binary } else { Framing::ServerSent };
        Self { framing, keeps_unsigned, id: None, blocks: Vec::new(), counts: Counts::default(), stop: None }
    }

    /// Begins the reply. Proxies repeat the beginning, and start over if the server behind them failed.
    fn start(&mut self, message: &Message<'_>, reply: &mut Assembly) -> Result<(), Broken> {
        if self.id.as_deref() == Some(message.id.as_str()) {
            return Ok(());
        }
        if self.id.replace(message.id.as_str().to_owned()).is_some() {
            self.blocks.clear();
            self.counts = Counts::default();
            self.stop = None;
            if !reply.restart() {
                let words = "the stream broke: the server began its reply anew after a part of it had been shown";
                return Err(Broken::Unreadable(words.to_owned()));
            }
        }
        if let Some(usage) = message.usage {
            self.counts.take(usage, reply);
        }
        Ok(())
    }

    fn open(&mut self, index: Option<u64>, raw: &RawValue, reply: &mut Assembly) -> Result<(), Misread> {
        let block: Value = serde_json::from_str(raw.get())?;
        let field = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        let (key, kind) = match field("type") {
            "text" => {
                let key = reply.open_text();
                reply.push(key, field("text"));
                (key, OpenBlockKind::Text)
            }
            "thinking" => {
                let key = reply.open_reasoning();
                reply.push(key, field("thinking"));
                (key, OpenBlockKind::Thought { signature: field("signature").to_owned() })
            }
            "redacted_thinking" => {
                let key = reply.open_reasoning();
                reply.keep(key, block, true);
                (key, OpenBlockKind::Closed)
            }
            "tool_use" => {
                let key = reply.open_call(field("id"), field("name"));
                let first = block
                    .get("input")
                    .filter(|input| is_something(input))
                    .map(|input| input.as_str().map_or_else(|| input.to_string(), str::to_owned));
                reply.push(key, first.as_deref().unwrap_or_default());
                let is_bare = first.is_none() && block.get("input").is_some_and(Value::is_object);
                (key, OpenBlockKind::Call { has_first: first.is_some(), is_bare })
            }
            kind => {
                if kind == "fallback" {
                    reply.notice(describe_fallback(&block));
                }
                // It is not shown, only sent back.
                (reply.open_reasoning(), OpenBlockKind::Foreign { block, input: String::new() })
            }
        };
        self.blocks.push(OpenBlock { index, key, kind });
        Ok(())
    }

    fn add(
        &mut self,
        index: Option<u64>,
        piece: &Piece<'_>,
        data: &[u8],
        reply: &mut Assembly,
    ) -> Result<(), Misread> {
        let found = self.find(index);
        if let Some(OpenBlock { kind: OpenBlockKind::Foreign { block, input }, .. }) = found {
            extend_block(block, input, &read_json(data)?);
            return Ok(());
        }
        match (piece.kind.as_str(), found) {
            ("text_delta", Some(OpenBlock { key, kind: OpenBlockKind::Text, .. })) => {
                reply.push(*key, piece.text.as_str());
            }
            ("text_delta", _) => {
                let key = reply.open_text();
                reply.push(key, piece.text.as_str());
                self.blocks.push(OpenBlock { index, key, kind: OpenBlockKind::Text });
            }
            (
                "thinking_delta" | "signature_delta",
                Some(OpenBlock { key, kind: OpenBlockKind::Thought { signature }, .. }),
            ) => {
                reply.push(*key, piece.thinking.as_str());
                signature.push_str(piece.signature.as_str());
            }
            ("thinking_delta" | "signature_delta", _) => {
                let key = reply.open_reasoning();
                reply.push(key, piece.thinking.as_str());
                self.blocks.push(OpenBlock {
                    index,
                    key,
                    kind: OpenBlockKind::Thought { signature: piece.signature.as_str().to_owned() },
                });
            }
            ("input_json_delta", Some(OpenBlock { key, kind: OpenBlockKind::Call { has_first, .. }, .. })) => {
                let more = piece.partial_json.write_data();
                if !more.is_empty() && std::mem::take(has_first) {
                    reply.set_arguments(*key, "");
                }
                reply.push(*key, &more);
            }
            ("input_json_delta", _) if !piece.partial_json.write_data().is_empty() => {
                let words = "the stream broke: arguments came for a call that never began";
                return Err(Broken::Unreadable(words.to_owned()).into());
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, index: Option<u64>, reply: &mut Assembly) {
        let keeps_unsigned = self.keeps_unsigned;
        let Some(block) = self.find(index) else { return };
        // Of a call that nobody closed the arguments may be missing.
        if let OpenBlockKind::Call { has_first, is_bare: true } = &mut block.kind
            && reply.text_of(block.key).is_empty()
        {
            reply.push(block.key, "{}");
            *has_first = true;
        }
        block.close(keeps_unsigned, reply);
    }

    fn find(&mut self, index: Option<u64>) -> Option<&mut OpenBlock> {
        match index {
            Some(_) => self.blocks.iter_mut().rfind(|block| block.index == index),
            None => self.blocks.last_mut(),
        }
    }

    /// Takes the facts known at the end of a message.
    fn end(&mut self, reason: &str, details: Option<&RawValue>, usage: Option<&RawValue>, reply: &mut Assembly) {
        if !reason.is_empty() {
            let details = details.map(|raw| reply.redact(raw.get()));
            self.stop = Some(AnthropicStop::read(&reply.redact(reason), details.as_deref()));
        }
        if let Some(usage) = usage {
            self.counts.take(usage, reply);
        }
    }

    fn finish(&mut self, reply: &mut Assembly) {
        self.blocks.iter_mut().for_each(|block| block.close(self.keeps_unsigned, reply));
        if let Some(stop) = self.stop.take() {
            if stop.finish == FinishReason::ContentFilter {
                self.blocks.iter().for_each(|block| reply.leave_out(block.key));
            }
            if let Some(notice) = stop.notice {
                reply.notice(notice);
            }
            reply.finish(stop.finish);
        }
        reply.mark_complete();
    }
}

impl Decode for AnthropicDecoder {
    fn framing(&self) -> Framing {
        self.framing
    }

    fn event(&mut self, name: &[u8], data: &[u8], reply: &mut Assembly) -> Result<(), Misread> {
        // A second reply behind the first one is none of ours.
        if reply.is_done() {
            return Ok(());
        }
        let event: Event<'_> = match read_json(data) {
            Ok(event) => event,
            // An event of another kind may have other fields under these names.
            Err(_) if is_of_unknown_kind(data) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let Event { kind, index, delta, content_block, message, usage } = event;
        match if kind.as_str().is_empty() { name } else { kind.as_str().as_bytes() } {
            b"message_start" => self.start(&message.unwrap_or_default(), reply)?,
            b"content_block_start" => {
                if let Some(block) = content_block {
                    self.open(index, block, reply)?;
                }
            }
            b"content_block_delta" => self.add(index, &delta.unwrap_or_default(), data, reply)?,
            b"content_block_stop" => self.close(index, reply),
            b"message_delta" => {
                let last = delta.unwrap_or_default();
                self.end(last.stop_reason.as_str(), last.stop_details, usage, reply);
            }
            b"message_stop" => self.finish(reply),
            b"error" => return Err(Broken::Error(StatedError::read(&String::from_utf8_lossy(data))).into()),
            b"" => Broken::check_error(data)?,
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &[u8], reply: &mut Assembly) -> Result<bool, Misread> {
        let message: Message<'_> = read_json(body)?;
        let Some(content) = message.content.as_ref().filter(|_| message.kind.as_str() == "message") else {
            Broken::check_error(body)?;
            return Ok(false);
        };
        for (index, block) in (0..).zip(content) {
            self.open(Some(index), block, reply)?;
            self.close(Some(index), reply);
        }
        self.end(message.stop_reason.as_str(), message.stop_details, message.usage, reply);
        self.finish(reply);
        Ok(true)
    }

    fn ends_with_done(&self) -> bool {
        false
    }
}

impl OpenBlock {
    /// Keeps the data that the server needs back with the block.
    fn close(&mut self, keeps_unsigned: bool, reply: &mut Assembly) {
        match std::mem::replace(&mut self.kind, OpenBlockKind::Closed) {
            OpenBlockKind::Thought { signature } => {
                let thinking = reply.text_of(self.key);
                if !signature.is_empty() || keeps_unsigned && !thinking.is_empty() {
                    let block = json!({"type": "thinking", "thinking": thinking, "signature": signature});
                    reply.keep(self.key, block, true);
                }
            }
            OpenBlockKind::Foreign { mut block, input } => {
                if let Ok(input) = serde_json::from_str::<Value>(&input) {
                    block["input"] = input;
                }
                report_search(&block, reply);
                reply.keep(self.key, block, false);
            }
            // Pieces that come late are still taken.
            open @ (OpenBlockKind::Text | OpenBlockKind::Call { .. }) => self.kind = open,
            OpenBlockKind::Closed => {}
        }
    }
}

/// Tells of a search on the server: its query, or the pages that it found.
fn report_search(block: &Value, reply: &mut Assembly) {
    match block["type"].as_str() {
        Some("server_tool_use") if block["name"] == "web_search" => {
            reply.searched(block["input"]["query"].as_str().unwrap_or("something"), &[]);
        }
        Some("web_search_tool_result") => {
            let pages = block["content"].as_array().into_iter().flatten();
            let pages: Vec<String> = pages.filter_map(|page| Some(page["url"].as_str()?.to_owned())).collect();
            if !pages.is_empty() {
                reply.searched("", &pages);
            }
        }
        _ => {}
    }
}

/// Adds a piece to a block that only the server knows: texts grow, the rest is replaced.
fn extend_block(block: &mut Value, input: &mut String, event: &Value) {
    let (Some(block), Some(piece)) = (block.as_object_mut(), event.get("delta").and_then(Value::as_object)) else {
        return;
    };
    for (key, value) in piece.iter().filter(|(key, _)| *key != "type") {
        match (key.as_str(), block.get_mut(key), value) {
            ("partial_json", _, Value::String(more)) => input.push_str(more),
            (_, Some(Value::String(text)), Value::String(more)) => text.push_str(more),
            _ => {
                block.insert(key.clone(), value.clone());
            }
        }
    }
}

fn is_something(input: &Value) -> bool {
    match input {
        Value::Null => false,
        Value::Object(input) => !input.is_empty(),
        Value::String(input) => !input.is_empty(),
        _ => true,
    }
}

fn describe_fallback(block: &Value) -> String {
    let model = |side: &str| block[side]["model"].as_str().unwrap_or("another model").to_owned();
    format!("{} refused: {} answers", model("from"), model("to"))
}

fn is_of_unknown_kind(data: &[u8]) -> bool {
    const KNOWN: [&str; 6] = [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop",
    ];
    let event: Value = read_json(data).unwrap_or_default();
    event.get("type").and_then(Value::as_str).is_some_and(|kind| !KNOWN.contains(&kind))
}
