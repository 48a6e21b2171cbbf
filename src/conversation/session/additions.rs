//! What is added to a session: texts, replies, answers, and a reply while it streams. It goes to disk first, then to memory.

use std::fs::File;

use jiff::Timestamp;

use crate::conversation::event::CallTelemetry;
use crate::conversation::event::plan::PlanEvent;
use crate::conversation::message::{CallAnswer, CallStatus, FinishReason, ReplyPart, Step, Usage, UserText};

use super::entry::{LogEntry, LogHeader};
use super::error::SessionError;
use super::id::format_stamp;
use super::log::{Log, Syncing};
use super::partial::Partial;
use super::transcript::Transcript;
use super::{OpenCall, Session};

/// The most streamed bytes that may stay unlogged.
const MUCH: usize = 2048;

impl Session {
    /// Adds text in the person's place. The caller removes secrets first.
    ///
    /// # Errors
    /// The disk fails. The text is in memory all the same, and is written with the next entry.
    pub fn say(&mut self, said: UserText, now: Timestamp) -> Result<(), SessionError> {
        self.push(&LogEntry::Said { n: self.transcript.last + 1, time: &format_stamp(now), said: &said });
        self.transcript.say(said);
        self.write()
    }

    /// Adds a reply; its calls are open. A reply with calls is durable when this returns. Returns its number.
    ///
    /// # Errors
    /// The disk fails. The reply is in memory all the same, and is written with the next entry.
    pub fn reply(&mut self, step: Step, now: Timestamp) -> Result<u64, SessionError> {
        self.partial = Partial::default();
        let (n, has_calls) = (self.transcript.last + 1, step.has_calls());
        self.push(&LogEntry::Reply { n, time: &format_stamp(now), step: &step });
        self.transcript.reply(step);
        if has_calls {
            self.sync()?;
        } else {
            self.write()?;
        }
        Ok(n)
    }

    /// Answers an open call, given by the number of its step and its position in it; a filled slot stays as it is.
    ///
    /// # Errors
    /// The disk fails. The answer is in memory all the same, and is written with the next entry.
    pub fn answer(
        &mut self,
        slot: (u64, usize),
        answer: CallAnswer,
        telemetry: CallTelemetry,
        now: Timestamp,
    ) -> Result<(), SessionError> {
        let ((n, call), time) = (slot, format_stamp(now));
        self.push(&LogEntry::Answer { n, call, time: &time, answer: &answer, telemetry: &telemetry });
        self.transcript.answer(n, call, answer, &telemetry);
        self.write()
    }

    /// The calls that have no answer.
    pub fn open_calls(&self) -> Vec<OpenCall> {
        let open = |(at, call): (usize, usize)| {
            let asked = self.items()[at].as_step()?.calls().nth(call)?;
            Some(OpenCall { number: self.ids()[at].number, call, request: asked.request.clone() })
        };
        self.transcript.open_calls().filter_map(open).collect()
    }

    /// Counts and keeps a reply beside the conversation: the role and its text, the tokens and their cost. The caller
    /// removes secrets first. Written to disk with the next item.
    pub fn note_role(&mut self, reply: (&str, &str), spent: (Usage, Option<f64>), now: Timestamp) {
        let ((role, text), (usage, cost_usd)) = (reply, spent);
        self.push(&LogEntry::Role { time: &format_stamp(now), role, text, usage, cost_usd });
        self.transcript.role(usage, cost_usd);
    }

    /// Adds an event of a plan or a flow. The caller removes secrets first.
    ///
    /// # Errors
    /// The disk fails. In memory it is known all the same.
    pub fn note_progress(&mut self, progress: PlanEvent, now: Timestamp) -> Result<(), SessionError> {
        self.push(&LogEntry::Progress { time: &format_stamp(now), progress: &progress });
        self.transcript.progress(progress);
        self.write()
    }

    /// The events of the last plan or flow, oldest first.
    pub fn progress(&self) -> &[PlanEvent] {
        &self.transcript.progress
    }

    /// Waits until everything that was recorded is durable.
    ///
    /// # Errors
    /// The disk fails, now or at an earlier sync.
    pub fn sync(&mut self) -> Result<(), SessionError> {
        self.log.as_mut().map_or(Ok(()), Log::sync)
    }

    /// Takes files that the next answer names: they are on disk for good before it is.
    pub fn sync_before(&mut self, files: Vec<File>) {
        if let Some(log) = &mut self.log {
            log.sync_before(files);
        }
    }

    /// Begins to make everything durable that was recorded; the result waits for it. `None` if it already is.
    ///
    /// # Errors
    /// The disk is in the way.
    pub fn begin_sync(&mut self) -> Result<Option<Syncing>, SessionError> {
        self.log.as_mut().map_or(Ok(None), Log::begin_sync)
    }

    /// Records the start of a turn. Written to disk with the user's message.
    pub fn start_turn(&mut self, run_id: &str, now: Timestamp) {
        self.transcript.start_turn();
        let (LogHeader { workspace, parent, .. }, Transcript { agent, model, .. }) =
            (&self.header, &self.transcript);
        let (parent, time) = (parent.as_deref(), &*format_stamp(now));
        if let Some(log) = &mut self.log {
            log.push(&LogEntry::TurnStarted { run_id, workspace, agent, model, parent, time });
        }
    }

    /// Records the end of a turn with its reason `stop` (`completed`, `limit`, …) and its exit code. Everything is then
    /// durable.
    ///
    /// # Errors
    /// The disk fails.
    pub fn end_turn(&mut self, stop: &str, code: u8, now: Timestamp) -> Result<(), SessionError> {
        *self.transcript.codes.entry(code).or_default() += 1;
        let titled = self.transcript.titled();
        self.push(&LogEntry::TurnCompleted { stop, code, titled, time: &format_stamp(now) });
        self.sync()
    }

    /// Adds visible text to the streaming reply. Returns true if so much is unlogged that [`Session::log_partial`]
    /// should be called now.
    pub fn stream_text(&mut self, text: &str) -> bool {
        self.partial.text.push_str(text);
        self.partial.count_unlogged() >= MUCH
    }

    /// Adds reasoning to the streaming reply; returns the same.
    pub fn stream_reasoning(&mut self, reasoning: &str) -> bool {
        self.partial.reasoning.push_str(reasoning);
        self.partial.count_unlogged() >= MUCH
    }

    /// Logs the text streamed since the last call. The next entry reports a failed disk.
    pub fn log_partial(&mut self) {
        if self.partial.count_unlogged() == 0 {
            return;
        }
        let partial = &mut self.partial;
        if let Some(log) = &mut self.log {
            let text = &partial.text[partial.logged_text..];
            let reasoning = &partial.reasoning[partial.logged_reasoning..];
            log.push(&LogEntry::Partial { text, reasoning });
            // An entry that cannot be written stays queued; the next write reports the error.
            let _ = log.write();
        }
        partial.logged_text = partial.text.len();
        partial.logged_reasoning = partial.reasoning.len();
    }

    /// Voids the streamed text: the request is sent again.
    pub fn clear_partial(&mut self) {
        let partial = std::mem::take(&mut self.partial);
        if partial.logged_text + partial.logged_reasoning > 0 {
            self.push(&LogEntry::PartialVoid);
        }
    }

    /// Completes the conversation after an interruption: open calls are answered with `why`, and streamed text
    /// becomes an interrupted reply. Does nothing if nothing is open.
    ///
    /// # Errors
    /// The disk fails; in memory the conversation is complete.
    pub fn settle(&mut self, why: &str, now: Timestamp) -> Result<(), SessionError> {
        let mut recorded = Ok(());
        for open in self.open_calls() {
            let cancelled = CallStatus::Cancelled;
            let telemetry = CallTelemetry::unmeasured(&open.request.name, cancelled);
            let answer = CallAnswer::of_text(why, cancelled);
            // Every answer is recorded, even if the disk refused the first.
            recorded = recorded.and(self.answer((open.number, open.call), answer, telemetry, now));
        }
        recorded.and(self.keep_partial(Usage::default(), now).map(drop))?;
        self.sync()
    }

    /// Turns the streamed text into an interrupted reply. `None` if there is no visible text.
    ///
    /// # Errors
    /// The disk fails; in memory the reply is kept.
    pub fn keep_partial(&mut self, usage: Usage, now: Timestamp) -> Result<Option<u64>, SessionError> {
        if self.partial.text.trim().is_empty() {
            self.clear_partial();
            return Ok(None);
        }
        let Partial { text, reasoning, .. } = std::mem::take(&mut self.partial);
        let mut step = Step { usage, ..Step::of_text(text, FinishReason::Interrupted) };
        if !reasoning.is_empty() {
            step.parts.insert(0, ReplyPart::Reasoning { text: reasoning, opaque: None });
        }
        self.reply(step, now).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NOON, begun, compression, found, last, reply, step};
    use super::super::{ItemChange, StateChange, ViewEdit};
    use super::*;
    use crate::conversation::message::Summary;

    #[test]
    fn settling_answers_each_open_call_once() {
        let (_dir, store, mut session) = begun();
        let number = session.reply(reply("", &["a", "b", "c"]), NOON).expect("written");
        let (found, telemetry) = (CallAnswer::of_text("found", CallStatus::Ok), CallTelemetry::default());
        session.answer((number, 1), found, telemetry, NOON).expect("written");
        session.settle("interrupted by the person", NOON).expect("written");
        session.settle("twice", NOON).expect("nothing is open");
        let answers: Vec<&str> =
            last(&session).calls().map(|call| call.answer.as_ref().expect("answered").content.as_str()).collect();
        assert_eq!(answers, ["interrupted by the person", "found", "interrupted by the person"]);

        session.reply(reply("", &["d"]), NOON).expect("written");
        let id = session.id().to_owned();
        drop(session);
        let (session, _) = store.open(&id, NOON).expect("sound");
        assert!(last(&session).calls().all(|call| call.answer.is_some()));
        let items = session.items().to_vec();
        drop(session);
        assert_eq!(store.open(&id, NOON).expect("sound").0.items(), items, "settled for good");
    }

    #[test]
    fn text_that_streamed_survives() {
        let (_dir, store, mut session) = begun();
        session.stream_text("void");
        session.log_partial();
        session.stream_text(" and void");
        session.clear_partial();
        session.stream_reasoning("hm");
        session.stream_text("kept ");
        assert!(session.stream_text(&"x".repeat(3000)), "so much is not left unlogged");
        session.log_partial();
        session.stream_text("lost with the machine");
        let id = session.id().to_owned();
        drop(session);
        let (mut session, _) = store.open(&id, NOON).expect("sound");
        assert_eq!(last(&session).text(), format!("kept {}", "x".repeat(3000)));
        assert_eq!(
            (last(&session).reasoning(), last(&session).finish_reason),
            ("hm".to_owned(), FinishReason::Interrupted)
        );

        session.stream_text("and on");
        assert_eq!(session.partial().0, "and on");
        session.settle("interrupted", NOON).expect("written");
        assert_eq!(last(&session).text(), "and on");
        session.stream_text("replaced");
        session.reply(reply("whole", &[]), NOON).expect("written");
        session.settle("interrupted", NOON).expect("nothing is open");
        assert_eq!(last(&session).text(), "whole");
    }

    #[test]
    fn an_undo_takes_back_what_came_with_the_message_and_keeps_what_it_cost() {
        let (_dir, store, mut session) = begun();
        step(&mut session, "", &["c1"]);
        let todo = |text: &str| StateChange {
            changes: [("todo".to_owned(), serde_json::json!(text))].into_iter().collect(),
            ..StateChange::default()
        };
        session.update_state(todo("first"), NOON);
        session.start_turn("run", NOON);
        session.say(UserText::by_program("a note before it"), NOON).expect("written");
        session.say(UserText::by_person("second"), NOON).expect("written");
        session.update_state(todo("second"), NOON);
        step(&mut session, "", &["c2"]);
        session
            .compress(
                &compression(),
                &[ViewEdit { number: 2, change: ItemChange::Remove }],
                Some(Summary::default()),
                NOON,
            )
            .expect("written");
        session.stream_text("half");
        session.log_partial();
        let (id, usage) = (session.id().to_owned(), session.usage());
        assert_eq!(session.undo(1, NOON).expect("written").as_deref(), Some("second"));
        let (mut session, warnings) = store.open(&id, NOON).expect("sound");
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(session.ids().iter().map(|id| id.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(session.originals().expect("readable").len(), 2);
        assert_eq!((session.state().keys["todo"].as_str(), session.partial().0), (Some("first"), ""));
        assert_eq!((session.usage(), session.steps(), session.calls()), (usage, 2, 2));
        assert_eq!(found(&session, "second"), Vec::<String>::new());
        session.say(UserText::by_person("third"), NOON).expect("written");
        assert_eq!(session.ids().last().expect("an item").number, 7, "numbers are never used twice");
        assert_eq!(session.undo(1, NOON).expect("written").as_deref(), Some("third"));
        let (session, _) = store.open(&id, NOON).expect("sound");
        assert_eq!(session.undo(1, NOON).expect("written").as_deref(), Some("hello"));
        let (session, _) = store.open(&id, NOON).expect("sound");
        assert!(session.items().is_empty() && session.undo(1, NOON).expect("read").is_none());
    }
}
