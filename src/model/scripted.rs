//! A model that follows a script: for demos, for tests, and for trying a configuration without a provider. It is run
//! by the same loop as a model behind a server; `ModelInfo::scripted` lets the interface mark it.
//!
//! A request that allows no calls gets the next reply without its calls, or a sentence that says so if nothing is
//! left. A reply with text and an error streams the text first, then fails.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::ConnectError;
use super::assembly::Assembly;
use super::errors::{self, StatedError};
use super::history::{self, Pictures};
use super::neutral::encode_neutral;
use super::script::{ModelScript, ScriptWords};
use crate::base::tokens;
use crate::config::{ModelConfig, ScriptError};
use crate::conversation::message::{FinishReason, Origin, Usage};
use crate::model::{
    ChatModel, Delta, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ReplyEnd, ReplyStream, ToolChoice,
};

const CALLS_LEFT_OUT: &str = "(script) The next reply only calls tools, and this request allows none.";

/// A model whose replies are written in its file.
pub(super) struct Scripted {
    info: ModelInfo,
    script: ModelScript,
    user_id: String,
    extra: Map<String, Value>,
    errors: Mutex<GivenErrors>,
}

/// The errors given since the last message of the model, which the conversation does not contain.
#[derive(Default)]
struct GivenErrors {
    session: String,
    replies_before: usize,
    given: Vec<usize>,
}

impl Scripted {
    pub fn new(config: &ModelConfig, info: ModelInfo, user_id: String) -> Result<Self, ConnectError> {
        let replies = config.script.as_deref().unwrap_or_default();
        if replies.is_empty() {
            return Err(ConnectError::wrong(&config.name, "script", "a scripted model needs at least one reply"));
        }
        let script = ModelScript::compile(&config.name, replies)?;
        let mut extra = config.extra_body.clone();
        extra.insert("scripted".to_owned(), true.into());
        Ok(Self { info, script, user_id, extra, errors: Mutex::default() })
    }

    fn reply(&self, request: &ModelRequest<'_>) -> Result<ScriptedReply, ModelError> {
        let replies_before = request.items.iter().filter(|item| item.as_step().is_some()).count();
        let mut errors = self.errors.lock().expect("no holder of the errors panics");
        if errors.replies_before != replies_before || errors.session != request.session_id {
            *errors = GivenErrors { session: request.session_id.to_owned(), replies_before, given: Vec::new() };
        }
        let (at, reply) = self
            .script
            .next(request, &errors.given)
            .ok_or_else(|| self.error(None, "the script has no further reply"))?;
        let mut words = reply.render(request, &self.user_id).map_err(|words| self.error(None, &words))?;
        let failure = reply.config.error.as_ref().map(|error| self.scripted_error(error));
        if let Some(failure) = &failure {
            errors.given.push(at);
            if words.text.is_empty() && words.reasoning.is_empty() {
                return Err(failure.clone());
            }
        }
        if request.tool_choice == ToolChoice::None && !words.calls.is_empty() {
            words.calls.clear();
            if words.text.is_empty() {
                CALLS_LEFT_OUT.clone_into(&mut words.text);
            }
        }
        let chunk_size = reply.config.chunk_size.unwrap_or(usize::MAX).max(1);
        let (deltas, end) = self.perform(request, words, chunk_size);
        Ok(ScriptedReply {
            deltas,
            end: Some(failure.map_or(Ok(end), Err)),
            delay: reply.config.delay.map(Into::into),
        })
    }

    fn perform(
        &self,
        request: &ModelRequest<'_>,
        mut words: ScriptWords,
        chunk_size: usize,
    ) -> (VecDeque<Delta>, ReplyEnd) {
        let was_cut = request.output_cap.is_some_and(|cap| words.cut_to(cap));
        let mut reply = Assembly::new(Origin::default(), history::call_ids(request.items));
        let mut deltas = VecDeque::new();
        for (key, text) in [(reply.open_reasoning(), &words.reasoning), (reply.open_text(), &words.text)] {
            for chunk in split_chunks(text, chunk_size) {
                reply.push(key, chunk);
                deltas.extend(reply.take());
            }
        }
        for (name, arguments) in &words.calls {
            let key = reply.open_call("", name);
            reply.push(key, arguments);
            deltas.extend(reply.take());
        }
        if was_cut {
            reply.finish(FinishReason::Length);
        }
        let usage = Usage {
            input_tokens: self.input_tokens(request),
            output_tokens: words.tokens(),
            reasoning_tokens: tokens::estimate_tokens(&words.reasoning),
            estimated: true,
            ..Usage::default()
        };
        (deltas, ReplyEnd { usage, streamed: true, ..reply.end(|| 0) })
    }

    fn input_tokens(&self, request: &ModelRequest<'_>) -> u64 {
        tokens::estimate_bytes(&self.body(request))
    }

    /// The request as a server of chat completions would get it.
    fn body(&self, request: &ModelRequest<'_>) -> Vec<u8> {
        let pictures = if self.info.sees { Pictures::AfterResults } else { Pictures::Notes };
        encode_neutral(&self.info.id, &self.extra, pictures, request)
    }

    /// The error of a server that answers with this status and these words.
    fn scripted_error(&self, error: &ScriptError) -> ModelError {
        let said = StatedError { message: error.message.clone(), ..StatedError::default() };
        let kind = errors::classify_failure(error.status, &said);
        ModelError { kind, ..self.error(error.status, &error.message) }
    }

    fn error(&self, status: Option<u16>, message: &str) -> ModelError {
        ModelError { status, ..ModelError::new(ModelErrorKind::BadRequest, &self.info.id, message) }
    }
}

impl ChatModel for Scripted {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn ask<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ModelError>> {
        Box::pin(async move { Ok(Box::new(self.reply(&request)?) as Box<dyn ReplyStream>) })
    }

    fn measured(&self, request: ModelRequest<'_>) -> Option<u64> {
        Some(self.input_tokens(&request))
    }

    fn preview(&self, request: ModelRequest<'_>) -> Value {
        serde_json::from_slice(&self.body(&request)).expect("what was written is JSON")
    }
}

struct ScriptedReply {
    deltas: VecDeque<Delta>,
    /// `None` once it was given.
    end: Option<Result<ReplyEnd, ModelError>>,
    delay: Option<Duration>,
}

impl ReplyStream for ScriptedReply {
    fn next(&mut self) -> BoxFuture<'_, Result<Delta, ModelError>> {
        Box::pin(async {
            if let (Some(delay), false) = (self.delay, self.deltas.is_empty()) {
                tokio::time::sleep(delay).await;
            }
            match self.deltas.pop_front() {
                Some(delta) => Ok(delta),
                None => self.end.take().unwrap_or_else(|| Ok(ReplyEnd::default())).map(Delta::Finished),
            }
        })
    }
}

/// `text` in pieces of `size` characters.
fn split_chunks(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        let (chunk, after) = rest.split_at(end);
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::yaml;
    use crate::conversation::message::{Call, Item, ReplyPart, Step, ToolCall, UserText as SaidText};
    use crate::model::{Surroundings, connect_model};

    /// The pieces of a reply, one per line.
    async fn ask(model: &dyn ChatModel, items: &[Item], tool_choice: ToolChoice) -> String {
        let request = ModelRequest { tool_choice, ..ModelRequest::from_items(items, "s") };
        let mut reply = match model.ask(request).await {
            Ok(reply) => reply,
            Err(error) => return format!("{:?} {error}", error.kind),
        };
        let mut out = String::new();
        loop {
            let piece = match reply.next().await {
                Ok(Delta::Text(text)) => text,
                Ok(Delta::Reasoning(text)) => format!("({text})"),
                Ok(Delta::CallBegun(name)) => format!("{name}…"),
                Ok(Delta::Notice(words) | Delta::Searched(words)) => format!("[{words}]"),
                Ok(Delta::Finished(end)) => {
                    let ids: Vec<_> = end.calls().map(|call| call.id.as_str()).collect();
                    return format!("{out}{:?} {ids:?}", end.finish);
                }
                Err(error) => return format!("{out}{:?} {error}", error.kind),
            };
            out += &piece;
            out.push('|');
        }
    }

    #[test]
    fn a_script_is_played() {
        let config: ModelConfig = yaml::parse_document(
            "
name: m
provider: scripted
script:
  - { error: { status: 429, message: slow down } }
  - { text: half an, error: { message: broken } }
  - { reasoning: hm, text: héllo, chunk_size: 3 }
  - { tool_calls: [ { name: f, arguments: {} }, { name: g, arguments: {} } ] }
",
        )
        .expect("a model");
        let model = connect_model(&config, &Surroundings::default()).expect("a script");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let user = || Item::Said(SaidText::by_person("x"));
        let answered = |calls: &[&str]| {
            let call = |id: &&str| {
                let request = ToolCall { id: (*id).to_owned(), name: "f".to_owned(), arguments: String::new() };
                ReplyPart::Call(Call { request, opaque: None, answer: None })
            };
            Item::Step(Step { parts: calls.iter().map(call).collect(), ..Step::default() })
        };
        let one = [user()];
        let two = [user(), answered(&["call_2"]), user()];
        let three = [user(), answered(&[]), user(), answered(&[]), user()];
        for (messages, choice, expected) in [
            (&one[..], ToolChoice::Auto, "RateLimit m: HTTP 429: slow down"),
            (&one, ToolChoice::Auto, "half an|Transient m: broken"),
            (&one, ToolChoice::Auto, "(hm)|hél|lo|Stop []"),
            // The conversation is the place in the script: the same reply comes until something is added.
            (&one, ToolChoice::Auto, "(hm)|hél|lo|Stop []"),
            (&two, ToolChoice::Auto, r#"f…|g…|ToolCalls ["call_3", "call_4"]"#),
            (
                &two,
                ToolChoice::None,
                "(script) The next reply only calls tools, and this request allows none.|Stop []",
            ),
            (&three, ToolChoice::Auto, "BadRequest m: the script has no further reply"),
        ] {
            assert_eq!(runtime.block_on(ask(model.as_ref(), messages, choice)), expected);
        }
    }
}
