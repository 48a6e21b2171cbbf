//! Reads the chunks of chat completions into a reply. Only a `finish_reason` or `[DONE]` ends a reply. The usage that
//! is reported last counts.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::assembly::{Assembly, Broken, PartKey};
use super::super::decode::{Decode, Misread};
use super::super::errors::StatedError;
use super::super::frame::EventFrame;
use super::super::lenient::{LenientCount, LenientText, read_json};
use super::super::usage;
use super::calls::StreamedCalls;
use super::chunk::{self, CallPiece, Choice, Chunk, Piece};
use super::details::Details;
use super::flags::{ChatFlags, Echo};
use super::text_calls::{ContentPiece, TextCalls};
use super::think::{self, Think};
use crate::conversation::message::FinishReason;
use crate::model::ToolDefinition;

/// The decoder of one reply.
pub struct ChatDecoder {
    echo: Echo,
    reasoning_in_total: bool,
    calls: StreamedCalls,
    text: Option<PartKey>,
    reasoning: Option<PartKey>,
    /// The field with the reasoning.
    field: &'static str,
    think: Think,
    /// The reader of calls in the text, if the server leaves them there in the model's own notation.
    text_calls: Option<TextCalls>,
    details: Details,
    blocks: Details,
    /// The bytes around the content in most chunks of this reply.
    frame: EventFrame,
}

impl ChatDecoder {
    /// Begins a reply to a request with these tools.
    pub fn new(flags: &ChatFlags, tools: &[ToolDefinition]) -> Self {
        Self {
            echo: flags.echo,
            reasoning_in_total: flags.reasoning_in_total,
            calls: StreamedCalls::default(),
            text: None,
            reasoning: None,
            field: "",
            think: Think::new(flags.prefilled_think),
            text_calls: flags.calls_in_text.then(|| TextCalls::new(tools)),
            details: Details::default(),
            blocks: Details::default(),
            frame: EventFrame::default(),
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, data: &[u8], reply: &mut Assembly) -> Result<(), Broken> {
        let choices = chunk.choices.unwrap_or_default();
        let groq = chunk.x_groq.and_then(|groq| groq.usage);
        for report in [groq, chunk.usage].into_iter().flatten() {
            self.report(report, reply);
        }
        let has_error = chunk.error.is_some_and(|error| !is_empty(error.get()));
        if has_error || (choices.is_empty() && chunk.usage.is_none()) {
            // Errors come in more shapes than `error`, and an empty chunk is none of them.
            Broken::check_error(data)?;
        }
        for choice in choices.into_iter().filter(|choice| choice.index.0.unwrap_or(0) == 0) {
            self.choice(choice, reply)?;
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice<'_>, reply: &mut Assembly) -> Result<(), Broken> {
        if let Some(report) = choice.usage {
            self.report(report, reply);
        }
        if let Some(piece) = choice.delta.or(choice.message.map(|message| *message)) {
            self.piece(piece, reply);
            reply.check_size()?;
        }
        let reason = choice.finish_reason.as_str();
        match finish_reason(reason) {
            Ok(Some(finish)) => self.finish(finish, reply),
            Ok(None) => {}
            Err(()) => {
                return Err(Broken::Unreadable(format!("the server gave up (finish_reason `{reason}`)")));
            }
        }
        Ok(())
    }

    fn report(&self, raw: &RawValue, reply: &mut Assembly) {
        if let Ok(report) = serde_json::from_str(raw.get()) {
            usage::enter_report(&report, self.reasoning_in_total, reply);
        }
    }

    fn piece(&mut self, piece: Piece<'_>, reply: &mut Assembly) {
        let cited = piece.annotations.iter().filter_map(|cited| cited.as_array()).flatten();
        let cited = cited.filter_map(|page| page["url_citation"]["url"].as_str()).map(str::to_owned);
        let pages: Vec<String> = cited.collect();
        if !pages.is_empty() {
            reply.searched("", &pages);
        }
        // Several fields can contain the same text.
        let fields = [
            ("reasoning_content", &piece.reasoning_content),
            ("reasoning", &piece.reasoning),
            ("reasoning_text", &piece.reasoning_text),
        ];
        match fields.into_iter().find(|(_, text)| !text.as_str().is_empty()) {
            Some((field, text)) => self.reason(text.as_str(), field, reply),
            None => {
                if let Some(details) = &piece.reasoning_details {
                    self.reason(&Details::text(details), "reasoning_details", reply);
                }
            }
        }
        if piece.reasoning_details.is_some() || piece.thinking_blocks.is_some() {
            self.details.add(piece.reasoning_details.map_or(Value::Null, |parts| *parts));
            self.blocks.add(piece.thinking_blocks.map_or(Value::Null, |parts| *parts));
            if !(self.details.is_empty() && self.blocks.is_empty()) && self.reasoning.is_none() {
                self.reasoning = Some(reply.open_reasoning());
            }
        }
        match &piece.content {
            LenientText::Data(parts) => {
                let (text, reasoning) = chunk::content_parts(parts);
                self.reason(&reasoning, "content", reply);
                self.write(&text, reply);
            }
            content => self.content(content.as_str(), reply),
        }
        self.say(piece.refusal.as_str(), reply);
        for call in piece.tool_calls.into_iter().flatten() {
            self.calls.take(call, reply);
        }
        if let Some(function) = piece.function_call {
            let index = LenientCount(Some(0));
            self.calls.take(CallPiece { index, function: Some(*function), ..CallPiece::default() }, reply);
        }
    }

    /// Takes content, which may include reasoning.
    fn content(&mut self, content: &str, reply: &mut Assembly) {
        // The common case, many thousand times per reply.
        if self.think.is_past() {
            return self.write(content, reply);
        }
        for piece in self.think.feed(content) {
            self.told_apart(piece, reply);
        }
    }

    fn told_apart(&mut self, piece: think::ThoughtPiece, reply: &mut Assembly) {
        match piece {
            think::ThoughtPiece::Text(text) => self.write(&text, reply),
            think::ThoughtPiece::Reasoning(text) => self.reason(&text, "", reply),
        }
    }

    /// Takes content that is not reasoning: text, and perhaps calls.
    fn write(&mut self, content: &str, reply: &mut Assembly) {
        match &mut self.text_calls {
            None => self.say(content, reply),
            Some(text_calls) => {
                let told = text_calls.feed(content);
                self.take(told, reply);
            }
        }
    }

    fn take(&mut self, told: Vec<ContentPiece>, reply: &mut Assembly) {
        for piece in told {
            match piece {
                ContentPiece::Text(text) => self.say(&text, reply),
                ContentPiece::Call(call) => {
                    let key = reply.open_call("", &call.name);
                    reply.push(key, &call.arguments);
                }
            }
        }
    }

    fn say(&mut self, text: &str, reply: &mut Assembly) {
        if !text.is_empty() {
            let key = *self.text.get_or_insert_with(|| reply.open_text());
            reply.push(key, text);
        }
    }

    fn reason(&mut self, text: &str, field: &'static str, reply: &mut Assembly) {
        if !text.is_empty() {
            let key = *self.reasoning.get_or_insert_with(|| reply.open_reasoning());
            self.field = field;
            reply.push(key, text);
        }
    }

    /// Passes on what was held back, as no more content comes.
    fn let_go(&mut self, reply: &mut Assembly) {
        for piece in self.think.finish() {
            self.told_apart(piece, reply);
        }
        let told = self.text_calls.as_mut().map(TextCalls::finish);
        self.take(told.unwrap_or_default(), reply);
    }

    fn finish(&mut self, reason: FinishReason, reply: &mut Assembly) {
        self.let_go(reply);
        reply.finish(reason);
        self.keep_reasoning(reply);
    }

    /// Keeps the data that its server wants back with the reasoning.
    fn keep_reasoning(&mut self, reply: &mut Assembly) {
        let Some(key) = self.reasoning.take() else { return };
        let mut data = json!({});
        if !self.details.is_empty() {
            data["reasoning_details"] = self.details.take();
        }
        if !self.blocks.is_empty() {
            data["thinking_blocks"] = self.blocks.take();
        }
        let has_data = data.as_object().is_some_and(|data| !data.is_empty());
        match self.echo {
            Echo::Field if !self.field.is_empty() && !has_data => data["field"] = self.field.into(),
            Echo::Text => data["raw"] = self.think.raw().into(),
            Echo::Always | Echo::Content if !has_data => data["field"] = self.field.into(),
            Echo::Never | Echo::Field | Echo::Always | Echo::Content => {}
        }
        if data.as_object().is_some_and(|data| !data.is_empty()) {
            reply.keep(key, data, false);
        }
    }
}

impl Decode for ChatDecoder {
    fn event(&mut self, name: &[u8], data: &[u8], reply: &mut Assembly) -> Result<(), Misread> {
        if name == b"error" {
            return Err(Broken::Error(StatedError::read(&String::from_utf8_lossy(data))).into());
        }
        if let Some(content) = self.frame.text(data) {
            self.content(content, reply);
            return Ok(());
        }
        let chunk = read_json::<Chunk<'_>>(data)?;
        if let Some(content) = chunk.nothing_but_content() {
            self.frame.learn(data, content);
        }
        Ok(self.chunk(chunk, data, reply)?)
    }

    fn whole(&mut self, body: &[u8], reply: &mut Assembly) -> Result<bool, Misread> {
        let mut chunk = read_json::<Chunk<'_>>(body)?;
        let choices = chunk.choices.iter_mut().flatten().filter(|choice| choice.message.is_some());
        // Perplexity puts an empty delta beside the message.
        let is_reply = choices.map(|choice| choice.delta = None).count() > 0;
        self.chunk(chunk, body, reply)?;
        if is_reply {
            self.conclude(reply);
            reply.mark_complete();
        }
        Ok(is_reply)
    }

    fn conclude(&mut self, reply: &mut Assembly) {
        self.let_go(reply);
        self.keep_reasoning(reply);
    }
}

/// The meaning of a server's `finish_reason`: `Ok(None)` if it has none, `Err` if the server abandoned the reply.
fn finish_reason(word: &str) -> Result<Option<FinishReason>, ()> {
    Ok(Some(match word.to_ascii_lowercase().as_str() {
        "" | "null" | "none" => return Ok(None),
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" | "model_context_window_exceeded" => {
            FinishReason::Length
        }
        "content_filter" | "safety" | "sensitive" | "recitation" | "prohibited_content" | "blocklist"
        | "refusal" => FinishReason::ContentFilter,
        "error" | "network_error" | "insufficient_system_resource" | "abort" | "aborted" | "cancelled" => {
            return Err(());
        }
        // `stop`, `eos`, `end_turn`, `stop_sequence`, and whatever a server calls it.
        _ => FinishReason::Stop,
    }))
}

fn is_empty(json: &str) -> bool {
    matches!(json.trim(), "" | "null" | "{}" | "\"\"" | "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finish_reasons() {
        for (word, reason) in [
            ("stop", Ok(Some(FinishReason::Stop))),
            ("", Ok(None)),
            ("model_context_window_exceeded", Ok(Some(FinishReason::Length))),
            ("network_error", Err(())),
        ] {
            assert_eq!(finish_reason(word), reason, "{word}");
        }
    }
}
