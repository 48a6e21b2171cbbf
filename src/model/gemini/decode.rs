//! Reads the chunks of Google's own interface into a reply. The stream ends with the connection: the reason that the
//! model stopped completes the reply.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::assembly::{Assembly, Broken, PartKey};
use super::super::decode::{Decode, Misread};
use super::super::errors::StatedError;
use super::super::lenient::{LenientCount, LenientText, read_json};
use super::stop::read_stop;
use crate::conversation::message::{FinishReason, Usage};

/// The decoder of one reply.
#[derive(Default)]
pub struct GeminiDecoder {
    /// The last part, to which more of its kind is added unless it has its signature.
    last: Option<LastPart>,
    /// The pages that searches found, as far as they were told.
    pages: BTreeSet<String>,
}

struct LastPart {
    key: PartKey,
    kind: LastPartKind,
    is_signed: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum LastPartKind {
    Text,
    Thought,
    Other,
}

/// One chunk of a stream, or a whole reply.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct GeminiChunk<'a> {
    candidates: Option<Vec<Candidate<'a>>>,
    prompt_feedback: Option<Feedback<'a>>,
    usage_metadata: Option<GeminiUsage>,
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Candidate<'a> {
    index: LenientCount,
    content: Option<ReceivedParts<'a>>,
    finish_reason: LenientText<'a>,
    finish_message: LenientText<'a>,
    /// What a search found.
    grounding_metadata: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ReceivedParts<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct ReceivedPart<'a> {
    text: Option<LenientText<'a>>,
    thought: Option<bool>,
    thought_signature: LenientText<'a>,
    function_call: Option<ReceivedCall<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ReceivedCall<'a> {
    id: LenientText<'a>,
    name: LenientText<'a>,
    args: LenientText<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Feedback<'a> {
    block_reason: LenientText<'a>,
    block_reason_message: LenientText<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "so the server names them")]
struct GeminiUsage {
    prompt_token_count: LenientCount,
    tool_use_prompt_token_count: LenientCount,
    cached_content_token_count: LenientCount,
    candidates_token_count: LenientCount,
    thoughts_token_count: LenientCount,
}

impl GeminiDecoder {
    fn take(&mut self, chunk: GeminiChunk<'_>, data: &[u8], reply: &mut Assembly) -> Result<(), Misread> {
        if let Some(counts) = &chunk.usage_metadata {
            counts.enter(reply);
        }
        if chunk.error.is_some() {
            return Err(Broken::Error(StatedError::read(&String::from_utf8_lossy(data))).into());
        }
        let blocked = chunk.prompt_feedback.filter(|feedback| !feedback.block_reason.as_str().is_empty());
        for candidate in chunk.candidates.into_iter().flatten().filter(|one| one.index.0.unwrap_or(0) == 0) {
            for raw in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
                self.add(raw, reply)?;
            }
            if let Some(found) = &candidate.grounding_metadata {
                self.report_pages(found, reply);
            }
            let reason = candidate.finish_reason.as_str();
            if !reason.is_empty() {
                let (reason, message) = (reply.redact(reason), reply.redact(candidate.finish_message.as_str()));
                let (finish, notice) = read_stop(&reason, &message)?;
                if let Some(notice) = notice {
                    reply.notice(notice);
                }
                reply.finish(finish);
            }
        }
        if let Some(feedback) = blocked {
            let words = [feedback.block_reason.as_str(), feedback.block_reason_message.as_str()];
            let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
            reply.notice(format!("Google's filter refused the request: {}", words.join(": ")));
            reply.finish(FinishReason::ContentFilter);
        }
        Ok(())
    }

    fn add(&mut self, raw: &RawValue, reply: &mut Assembly) -> Result<(), Misread> {
        let part: ReceivedPart<'_> = serde_json::from_str(raw.get())?;
        let signature = part.thought_signature.as_str();
        if let Some(call) = &part.function_call {
            let key = reply.open_call(call.id.as_str(), call.name.as_str());
            reply.push(key, &call.args.write_arguments());
            let own = [("thoughtSignature", signature), ("id", reply.id_of(key))];
            let own: Map<String, Value> = own
                .into_iter()
                .filter(|(_, text)| !text.is_empty())
                .map(|(name, text)| (name.to_owned(), text.into()))
                .collect();
            if !own.is_empty() {
                reply.keep(key, own.into(), false);
            }
            self.last = Some(LastPart { key, kind: LastPartKind::Other, is_signed: true });
            return Ok(());
        }
        let Some(text) = &part.text else {
            // A part that only the server knows, such as code that it ran: not shown, only sent back.
            let key = reply.open_reasoning();
            let part: Value = serde_json::from_str(raw.get())?;
            for query in part["toolCall"]["args"]["queries"].as_array().into_iter().flatten() {
                reply.searched(query.as_str().unwrap_or("something"), &[]);
            }
            reply.keep(key, json!({ "part": part }), false);
            self.last = Some(LastPart { key, kind: LastPartKind::Other, is_signed: true });
            return Ok(());
        };
        self.add_text(text.as_str(), part.thought == Some(true), signature, reply);
        Ok(())
    }

    /// Tells of the pages that a search found. Later chunks repeat those of earlier ones.
    fn report_pages(&mut self, found: &Value, reply: &mut Assembly) {
        let pages = found["groundingChunks"].as_array().into_iter().flatten();
        let mut pages: Vec<String> =
            pages.filter_map(|page| Some(page["web"]["uri"].as_str()?.to_owned())).collect();
        pages.retain(|page| self.pages.insert(page.clone()));
        if !pages.is_empty() {
            reply.searched("", &pages);
        }
    }

    fn add_text(&mut self, text: &str, is_thought: bool, signature: &str, reply: &mut Assembly) {
        if text.is_empty() {
            if let Some(last) = self.last.as_mut().filter(|last| !last.is_signed && !signature.is_empty()) {
                reply.keep(last.key, json!({"signatureBehind": signature}), false);
                last.is_signed = true;
            }
            return;
        }
        let kind = if is_thought { LastPartKind::Thought } else { LastPartKind::Text };
        // ReceivedParts with a signature are not merged with others.
        let open = self.last.as_ref().filter(|last| last.kind == kind && !last.is_signed && signature.is_empty());
        let key = match open {
            Some(last) => last.key,
            None if is_thought => reply.open_reasoning(),
            None => reply.open_text(),
        };
        reply.push(key, text);
        if !signature.is_empty() {
            reply.keep(key, json!({"thoughtSignature": signature}), false);
        }
        self.last = Some(LastPart { key, kind, is_signed: !signature.is_empty() });
    }
}

impl GeminiUsage {
    fn enter(&self, reply: &mut Assembly) {
        let count = |count: LenientCount| count.0.unwrap_or(0);
        let input_tokens = count(self.prompt_token_count) + count(self.tool_use_prompt_token_count);
        let reasoning_tokens = count(self.thoughts_token_count);
        if input_tokens > 0 {
            reply.report(Usage {
                input_tokens,
                cached_input_tokens: count(self.cached_content_token_count).min(input_tokens),
                output_tokens: count(self.candidates_token_count) + reasoning_tokens,
                reasoning_tokens,
                ..Usage::default()
            });
        }
    }
}

impl Decode for GeminiDecoder {
    fn event(&mut self, _name: &[u8], data: &[u8], reply: &mut Assembly) -> Result<(), Misread> {
        let chunk = read_json(data)?;
        self.take(chunk, data, reply)
    }

    fn whole(&mut self, body: &[u8], reply: &mut Assembly) -> Result<bool, Misread> {
        // Without `alt=sse` a stream is a list of its chunks.
        if body.starts_with(b"[") {
            let chunks: Vec<&RawValue> = read_json(body)?;
            for raw in chunks {
                self.event(b"", raw.get().as_bytes(), reply)?;
            }
        } else {
            self.event(b"", body, reply)?;
        }
        if !reply.is_finished() {
            Broken::check_error(body)?;
            return Ok(false);
        }
        reply.mark_complete();
        Ok(true)
    }

    fn ends_with_done(&self) -> bool {
        false
    }
}
