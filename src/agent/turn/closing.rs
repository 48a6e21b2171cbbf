//! The closing answer: when a limit ends a turn, the model is asked once more, with the same tools but none
//! callable, for an honest summary. If the answer is empty, or time is out, code writes the summary.

use std::fmt::Write;
use std::time::Duration;

use crate::agent::limits::ReachedLimit;
use crate::agent::request::purpose::Purpose;
use crate::agent::window;
use crate::conversation::message::{Call, CallStatus, FinishReason, Item, Step, UserText};

use super::{Turn, TurnEnd, TurnStop};

impl Turn<'_> {
    /// Ends the turn with a summary. After `max_time` no request is made.
    pub(in crate::agent) async fn close(
        &mut self,
        limit: ReachedLimit,
        max_time: Option<Duration>,
    ) -> Result<TurnEnd, TurnStop> {
        self.settle(&TurnStop::Limit(limit))?;
        let prompt = self.agent.briefing.termination(self, &limit)?;
        self.say(UserText::by_program(prompt))?;
        let clock = self.clock.clone();
        let asked = tokio::select! {
            biased;
            () = clock.reach(max_time) => None,
            reply = self.step(Purpose::Closing) => Some(reply),
        };
        let (stop, text) = match asked {
            Some(Ok((_, step))) if !step.has_calls() => (TurnStop::Limit(limit), step.text()),
            // What is left does not pay for it, or it called again.
            Some(Ok(_) | Err(TurnStop::Limit(_))) | None => (TurnStop::Limit(limit), String::new()),
            // Running out of time outranks a provider that fails; the other limits do not.
            Some(Err(TurnStop::Model(_) | TurnStop::ContextFull(_))) if matches!(limit, ReachedLimit::Time(_)) => {
                (TurnStop::Limit(limit), String::new())
            }
            Some(Err(stop @ (TurnStop::Model(_) | TurnStop::ContextFull(_)))) => (stop, String::new()),
            Some(Err(stop)) => return Err(stop),
        };
        self.settle(&TurnStop::Limit(limit))?;
        let answer = if text.trim().is_empty() { self.summary_in_code(limit)? } else { text };
        Ok(TurnEnd { stop, answer })
    }

    /// Writes a summary without the model, and records it like any answer.
    fn summary_in_code(&mut self, limit: ReachedLimit) -> Result<String, TurnStop> {
        let summary = summarise_turn(limit.after(&self.run.ledger), self.this_turn());
        self.keep_reply(Step::of_text(summary.clone(), FinishReason::Interrupted))?;
        Ok(summary)
    }

    /// The items since the person's last input.
    fn this_turn(&self) -> &[Item] {
        let items = self.conversation.session.items();
        let start = items.iter().rposition(|item| item.said_by_person().is_some()).unwrap_or(0);
        &items[start..]
    }
}

fn summarise_turn(limit: ReachedLimit, items: &[Item]) -> String {
    const MOST: usize = 10;
    let ended = |call: &Call| {
        let status = call.answer.as_ref().map_or(CallStatus::Cancelled, |answer| answer.status);
        let word = if status == CallStatus::Ok { "done" } else { window::name_status(status) };
        format!("- {}: {word}", call.request.name)
    };
    let calls: Vec<String> = items.iter().filter_map(Item::as_step).flat_map(Step::calls).map(ended).collect();
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
