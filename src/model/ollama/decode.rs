//! Reads the lines of Ollama's own interface into a reply: each is a whole JSON object with a piece of the message, and
//! `done` in the last one ends the reply.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::assembly::{Assembly, Broken, PartKey};
use super::super::decode::{Decode, Misread};
use super::super::errors::StatedError;
use super::super::event_stream::Framing;
use super::super::lenient::{LenientCount, LenientText, read_json};
use crate::conversation::message::{FinishReason, Usage};

/// The decoder of one reply.
#[derive(Default)]
pub struct OllamaDecoder {
    /// The part that the next piece of its kind belongs to.
    open: Option<(OpenPartKind, PartKey)>,
}

#[derive(Clone, Copy, PartialEq)]
enum OpenPartKind {
    Text,
    Thought,
}

/// One line.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct OllamaLine<'a> {
    message: Option<LinePiece<'a>>,
    done: bool,
    done_reason: LenientText<'a>,
    prompt_eval_count: LenientCount,
    eval_count: LenientCount,
    error: Option<Value>,
}

/// A piece of the message.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct LinePiece<'a> {
    content: LenientText<'a>,
    thinking: LenientText<'a>,
    tool_calls: Option<Vec<LineCall<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct LineCall<'a> {
    id: LenientText<'a>,
    function: LineFunction<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct LineFunction<'a> {
    name: LenientText<'a>,
    arguments: LenientText<'a>,
}

impl OllamaDecoder {
    /// The open part of this kind, opened now if another one is.
    fn open_part(&mut self, kind: OpenPartKind, reply: &mut Assembly) -> PartKey {
        match self.open {
            Some((open, key)) if open == kind => key,
            _ => {
                let key = match kind {
                    OpenPartKind::Text => reply.open_text(),
                    OpenPartKind::Thought => reply.open_reasoning(),
                };
                self.open = Some((kind, key));
                key
            }
        }
    }

    fn add(&mut self, piece: &LinePiece<'_>, reply: &mut Assembly) {
        if !piece.thinking.as_str().is_empty() {
            let key = self.open_part(OpenPartKind::Thought, reply);
            reply.push(key, piece.thinking.as_str());
            // The model that thought so gets its thoughts back with the results of its calls.
            reply.keep(key, json!({"field": "thinking"}), false);
        }
        if !piece.content.as_str().is_empty() {
            let key = self.open_part(OpenPartKind::Text, reply);
            reply.push(key, piece.content.as_str());
        }
        for LineCall { id, function } in piece.tool_calls.iter().flatten() {
            let key = reply.open_call(id.as_str(), function.name.as_str());
            reply.push(key, &function.arguments.write_arguments());
            self.open = None;
        }
    }

    fn end(line: &OllamaLine<'_>, reply: &mut Assembly) {
        let reason = line.done_reason.as_str();
        if let (Some(input_tokens), Some(output_tokens)) = (line.prompt_eval_count.0, line.eval_count.0) {
            reply.report(Usage { input_tokens, output_tokens, ..Usage::default() });
        }
        reply.finish(if reason == "length" { FinishReason::Length } else { FinishReason::Stop });
        if !matches!(reason, "" | "stop" | "length" | "tool_calls") {
            reply.notice(format!(
                "Ollama ended the reply without one: {}",
                crate::base::text::one_line(&reply.redact(reason), 80)
            ));
        }
        reply.mark_complete();
    }
}

impl Decode for OllamaDecoder {
    fn event(&mut self, _name: &[u8], data: &[u8], reply: &mut Assembly) -> Result<(), Misread> {
        let line: OllamaLine<'_> = read_json(data)?;
        if line.error.is_some() {
            return Err(Broken::Error(StatedError::read(&String::from_utf8_lossy(data))).into());
        }
        if let Some(piece) = line.message.as_ref() {
            self.add(piece, reply);
        }
        if line.done {
            Self::end(&line, reply);
        }
        Ok(())
    }

    fn whole(&mut self, body: &[u8], reply: &mut Assembly) -> Result<bool, Misread> {
        let line: OllamaLine<'_> = read_json(body)?;
        if line.message.is_none() && line.error.is_none() {
            Broken::check_error(body)?;
            return Ok(false);
        }
        self.event(b"", body, reply).map(|()| reply.is_finished())
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }
}
