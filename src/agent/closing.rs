//! The closing answer: when a limit ends a turn, the model is asked once more, with the same tools and none to be
//! called, for an honest summary. Where that comes back empty, or time is out, a summary made in code stands in.

use std::fmt::Write;
use std::time::Duration;

use crate::contract::ToolChoice;
use crate::message::{AssistantMessage, CallStatus, FinishReason, Message};

use super::limits::Limit;
use super::turn::{Stop, Turn, TurnEnd};

impl Turn<'_> {
    /// Ends the turn with a summary. `max_time` is the run's own clock: past it nothing more is asked.
    pub(super) async fn close(&mut self, limit: Limit, max_time: Option<Duration>) -> Result<TurnEnd, Stop> {
        self.settle(&Stop::Limit(limit))?;
        let prompt = self.agent.briefing.termination(self, &limit)?;
        self.record(Message::reminder(prompt))?;
        let clock = self.clock;
        let asked = tokio::select! {
            biased;
            () = clock.reach(max_time) => None,
            reply = self.step(ToolChoice::None) => Some(reply),
        };
        let (stop, text) = match asked {
            Some(Ok(reply)) if reply.tool_calls.is_empty() => (Stop::Limit(limit), reply.content),
            Some(Ok(_)) | None => (Stop::Limit(limit), String::new()),
            // Running out of time outranks a provider that fails; the other limits do not.
            Some(Err(Stop::Model(_) | Stop::ContextFull(_))) if matches!(limit, Limit::Time(_)) => {
                (Stop::Limit(limit), String::new())
            }
            Some(Err(stop @ (Stop::Model(_) | Stop::ContextFull(_)))) => (stop, String::new()),
            Some(Err(stop)) => return Err(stop),
        };
        self.settle(&Stop::Limit(limit))?;
        let answer = if text.trim().is_empty() { self.summary_in_code(limit)? } else { text };
        Ok(TurnEnd { stop, answer })
    }

    /// A summary that needs no model, recorded like any answer.
    fn summary_in_code(&mut self, limit: Limit) -> Result<String, Stop> {
        let summary = summary(limit, self.this_turn());
        let message = AssistantMessage {
            content: summary.clone(),
            finish_reason: FinishReason::Interrupted,
            ..AssistantMessage::default()
        };
        self.record(Message::Assistant(message))?;
        Ok(summary)
    }

    /// The messages since the last input of the person.
    fn this_turn(&self) -> &[Message] {
        let messages = self.session.messages();
        let start = messages.iter().rposition(Message::is_from_person).unwrap_or(0);
        &messages[start..]
    }
}

fn summary(limit: Limit, messages: &[Message]) -> String {
    const MOST: usize = 10;
    let calls: Vec<String> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool(answer) => Some(format!("- {}: {}", answer.name, status(answer.status))),
            _ => None,
        })
        .collect();
    let mut out = format!("Stopped: {limit}. The model gave no closing answer.");
    if calls.is_empty() {
        out.push_str(" No tool was called.");
        return out;
    }
    let _ = write!(out, " {} tool calls were made", calls.len());
    let shown = &calls[calls.len().saturating_sub(MOST)..];
    out.push_str(if shown.len() < calls.len() { "; the last of them:\n" } else { ":\n" });
    out.push_str(&shown.join("\n"));
    out
}

fn status(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Ok => "done",
        CallStatus::Error => "failed",
        CallStatus::Denied => "not allowed",
        CallStatus::Timeout => "timed out",
        CallStatus::Cancelled => "cancelled",
    }
}
