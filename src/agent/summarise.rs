//! Asking the model for a summary of what goes: over the same prefix, so that a provider's cache of it is used, once
//! more with less, and then no more. What the model says is not shown and not part of the conversation.

use crate::context::{self, Plan, Room};
use crate::contract::{Delta, ReplyEnd, Request, ToolChoice, ToolDefinition};
use crate::event::{Compressed, CompressionReason, EventKind};
use crate::message::{FinishReason, Message, Origin};

use super::turn::{Stop, Turn};

impl Turn<'_> {
    /// The parts of a summary; `None` when the model gave none that can be used, which a warning tells. What it cost
    /// is added to `done`.
    pub(super) async fn ask_for_summary(
        &mut self,
        plan: &Plan,
        room: Room,
        focus: &str,
        done: &mut Compressed,
    ) -> Result<Option<String>, Stop> {
        let updates = self
            .session
            .messages()
            .iter()
            .any(|message| matches!(message, Message::User { origin: Origin::Summary, .. }));
        let prompt = Message::reminder(self.agent.briefing.compression(self, focus, updates)?);
        let mut why = String::new();
        // What was refused as too long, or is more than may be sent, does not go out with even more behind it.
        let asked = done.tokens_before + self.run.ruler.weigh(prompt.content());
        let is_too_much = done.reason == CompressionReason::Overflow || asked > done.budget;
        let attempts: &[bool] = if is_too_much { &[true] } else { &[false, true] };
        for with_less in attempts {
            let (mut messages, tools) = if *with_less {
                (self.shortened(plan), [].as_slice())
            } else {
                (self.session.messages().to_vec(), self.agent.tools.definitions())
            };
            messages.push(prompt.clone());
            match self.ask_aside(&messages, tools).await {
                Ok((text, end)) => {
                    self.count(&end, done);
                    match mistake_in(&text, &end, room) {
                        None => return Ok(Some(self.agent.redactor.redact(&text).into_owned())),
                        Some(mistake) => why = mistake,
                    }
                }
                Err(Stop::Model(error)) => why = self.agent.redactor.redact(&error.to_string()).into_owned(),
                Err(stop) => return Err(stop),
            }
        }
        let message = format!("the model gave no usable summary ({why}); one made without it stands in");
        self.run.emitter.emit(EventKind::Warning { message })?;
        Ok(None)
    }

    /// The conversation with its results in short, and nothing removed.
    fn shortened(&self, plan: &Plan) -> Vec<Message> {
        context::shortened_view(plan, self.session.messages())
    }

    /// One request whose reply is nobody's but ours.
    async fn ask_aside(&self, messages: &[Message], tools: &[ToolDefinition]) -> Result<(String, ReplyEnd), Stop> {
        let request = Request {
            messages,
            tools,
            tool_choice: ToolChoice::None,
            schema: None,
            session_id: self.session.id(),
            results: &self.run.results,
        };
        let mut stream = self.agent.model.ask(request).await.map_err(Stop::Model)?;
        let mut text = String::new();
        loop {
            match stream.next().await.map_err(Stop::Model)? {
                Delta::Text(piece) => text.push_str(&piece),
                Delta::Reasoning(_) | Delta::CallBegun(_) => {}
                Delta::Finished(end) => return Ok((text, end)),
            }
        }
    }

    fn count(&mut self, end: &ReplyEnd, done: &mut Compressed) {
        done.usage += end.usage;
        if let Some(cost) = self.spend(end.usage) {
            *done.cost_usd.get_or_insert(0.0) += cost;
        }
    }
}

fn mistake_in(text: &str, end: &ReplyEnd, room: Room) -> Option<String> {
    if !end.tool_calls.is_empty() {
        return Some("it called tools".to_owned());
    }
    if end.finish == FinishReason::Length {
        return Some("the output limit cut it".to_owned());
    }
    context::mistake_in(text, room)
}
