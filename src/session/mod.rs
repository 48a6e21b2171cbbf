//! A session: one conversation, in memory and as an append-only log on disk.
//!
//! [`Session::record`] is the only way a message enters a conversation: on disk first, then in memory. A reply with
//! calls is on disk for good before it returns, so that no call runs that a crash could forget; everything else is
//! made durable with the next request, and before anything of its reply is taken in ([`Session::begin_sync`]). Text that is still streaming is
//! logged in pieces, without waiting for the disk.
//!
//! Time comes from the caller.

mod conversation;
mod entry;
mod error;
mod id;
mod log;
mod partial;
mod replay;
mod store;
mod view;

use std::collections::BTreeSet;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use crate::event::CallTelemetry;
use crate::message::{AssistantMessage, FinishReason, Message, Usage};

use conversation::{Conversation, cancelled};
use entry::{Entry, Header};
use id::stamp;
use log::Log;
use partial::Partial;

pub use error::SessionError;
pub use log::Syncing;
pub use store::{Store, Summary};
pub use view::{Edit, EditReason, MessageId};

/// What a session is about. The model is the provider's name for it.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    pub workspace: &'a Path,
    pub agent: &'a str,
    pub model: &'a str,
}

/// A conversation.
#[derive(Debug)]
pub struct Session {
    header: Header,
    started_at: Timestamp,
    conversation: Conversation,
    partial: Partial,
    /// `None`: nothing is kept.
    log: Option<Log>,
}

impl Session {
    /// A session that leaves nothing on disk.
    #[must_use]
    pub fn ephemeral(about: About<'_>, now: Timestamp) -> Self {
        Self::new(about, now, None)
    }

    /// The name by which `--session` finds it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.header.id
    }

    /// When it was begun: the clock of its prompts.
    #[must_use]
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// The directory, and the agent and the model that its system prompt was rendered for last.
    #[must_use]
    pub fn about(&self) -> About<'_> {
        About {
            workspace: Path::new(&self.header.workspace),
            agent: &self.conversation.agent,
            model: &self.conversation.model,
        }
    }

    /// From here on another agent or model answers. It reaches the disk with the next message.
    pub fn switch(&mut self, agent: &str, model: &str, now: Timestamp) {
        self.push(&Entry::Switched { agent, model, time: &stamp(now) });
        self.conversation.switch(agent, model);
    }

    /// The log; `None` for an ephemeral session. The file is made with the first message.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.log.as_ref().map(Log::path)
    }

    /// What is sent of the conversation, the system prompt first once there is one.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.conversation.view.messages
    }

    /// The ids of [`Session::messages`], one for each.
    #[must_use]
    pub fn ids(&self) -> &[MessageId] {
        &self.conversation.view.ids
    }

    /// Everything that was said, whether it is still sent or not, the system prompt left out.
    pub fn said(&self) -> impl Iterator<Item = &Message> {
        self.conversation.view.said()
    }

    /// What was said and is not sent any more, or not in these words, by number.
    pub fn hidden(&self) -> impl Iterator<Item = (u64, &Message)> {
        self.conversation.view.hidden.iter().map(|(number, message)| (*number, message))
    }

    /// Changes what is sent; what was said stays in the log.
    ///
    /// # Errors
    /// When the disk is in the way. In memory the edits hold all the same.
    pub fn edit(&mut self, reason: &EditReason, edits: Vec<Edit>, now: Timestamp) -> Result<(), SessionError> {
        self.push(&Entry::Edited { time: &stamp(now), reason, edits: &edits });
        self.conversation.edit(reason, edits);
        self.sync()
    }

    /// Sends everything again as it was said. Returns how many messages come back.
    ///
    /// # Errors
    /// When the disk is in the way. In memory everything is back all the same.
    pub fn restore(&mut self, now: Timestamp) -> Result<usize, SessionError> {
        self.push(&Entry::Restored { time: &stamp(now) });
        let restored = self.conversation.view.restore();
        self.conversation.repair(replay::INTERRUPTED);
        self.sync()?;
        Ok(restored)
    }

    /// The numbers of the messages that no compression touches.
    #[must_use]
    pub fn pinned(&self) -> &BTreeSet<u64> {
        &self.conversation.pinned
    }

    /// Keeps messages out of every compression. It reaches the disk with the next message.
    pub fn pin(&mut self, numbers: &[u64], now: Timestamp) {
        self.push(&Entry::Pinned { numbers, time: &stamp(now) });
        self.conversation.pinned.extend(numbers);
    }

    /// What a request may hold at most, in tokens, since a server refused a longer one.
    #[must_use]
    pub fn learned_budget(&self) -> Option<u64> {
        self.conversation.learned_budget
    }

    /// Remembers what a request may hold at most, for as long as this model answers. It reaches the disk with the
    /// next message.
    pub fn learn_budget(&mut self, tokens: u64, now: Timestamp) {
        self.push(&Entry::Budget { tokens, time: &stamp(now) });
        self.conversation.learned_budget = Some(tokens);
    }

    /// The sum over all replies.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.conversation.usage
    }

    /// The sum of what is known; `None` when no price is.
    #[must_use]
    pub fn cost_usd(&self) -> Option<f64> {
        self.conversation.cost_usd
    }

    /// How many turns were begun.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.conversation.turns
    }

    /// Replies of the model.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.conversation.steps
    }

    /// Calls that were answered, however they ended.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.conversation.calls
    }

    /// What each of them cost, in the order of their answers.
    #[must_use]
    pub fn costs(&self) -> &[CallTelemetry] {
        &self.conversation.costs
    }

    /// Notes what a call cost. It belongs right before the call's answer, and reaches the disk with it.
    pub fn note_call(&mut self, call_id: &str, cost: CallTelemetry) {
        self.push(&Entry::Telemetry { call_id, telemetry: &cost });
        self.conversation.note(call_id, cost);
    }

    /// What tools keep beside the messages, by key: prompts read it as `state`.
    #[must_use]
    pub fn state(&self) -> &Map<String, Value> {
        &self.conversation.state
    }

    /// Changes keys of the state; `null` removes one. Secrets must be out of it. It reaches the disk with the next
    /// message.
    pub fn update_state(&mut self, changes: Map<String, Value>, now: Timestamp) {
        self.push(&Entry::State { changes: &changes, time: &stamp(now) });
        self.conversation.update(changes);
    }

    /// What of the outside has entered the conversation (`content from https://…`). It stays, whatever becomes of the
    /// messages.
    #[must_use]
    pub fn taint(&self) -> Option<&str> {
        self.conversation.taint.as_deref()
    }

    /// Notes that something of the outside enters the conversation; false where something did before. Secrets must be
    /// out of the source. It belongs before the message that holds it, and reaches the disk with that.
    pub fn mark_tainted(&mut self, source: &str, now: Timestamp) -> bool {
        if self.conversation.taint.is_some() {
            return false;
        }
        self.push(&Entry::Taint { source, time: &stamp(now) });
        self.conversation.taint = Some(source.to_owned());
        true
    }

    /// The text and the reasoning of the reply that is streaming.
    #[must_use]
    pub fn partial(&self) -> (&str, &str) {
        (&self.partial.text, &self.partial.reasoning)
    }

    /// Adds a message: on disk, then in memory. Secrets must be out of it. A system prompt takes the place of the
    /// one before; it reaches the disk with the message after it.
    ///
    /// # Errors
    /// When the disk is in the way. The message is in memory all the same, and is written with the next one.
    pub fn record(&mut self, message: Message, now: Timestamp) -> Result<(), SessionError> {
        self.partial = Partial::default();
        let logged = match &mut self.log {
            None => Ok(()),
            Some(log) => {
                let n = (!matches!(message, Message::System { .. })).then_some(self.conversation.last + 1);
                log.push(&Entry::Message { n, time: &stamp(now), message: &message });
                match &message {
                    Message::System { .. } => Ok(()),
                    Message::Assistant(reply) if !reply.tool_calls.is_empty() => log.sync(),
                    _ => log.write(),
                }
            }
        };
        self.conversation.push(message, None);
        logged
    }

    /// Waits until everything that was recorded is on disk for good.
    ///
    /// # Errors
    /// When the disk is in the way.
    pub fn sync(&mut self) -> Result<(), SessionError> {
        self.log.as_mut().map_or(Ok(()), Log::sync)
    }

    /// Begins to make everything that was recorded durable; what is returned waits for it. `None` when it is already.
    ///
    /// # Errors
    /// When the disk is in the way.
    pub fn begin_sync(&mut self) -> Result<Option<Syncing>, SessionError> {
        self.log.as_mut().map_or(Ok(None), Log::begin_sync)
    }

    /// A turn begins. It reaches the disk with the user's message.
    pub fn start_turn(&mut self, run_id: &str, now: Timestamp) {
        self.conversation.turns += 1;
        self.push(&Entry::TurnStarted { run_id, time: &stamp(now) });
    }

    /// A turn is over; `stop` says why (`completed`, `limit`, …). Everything is then on disk for good.
    ///
    /// # Errors
    /// When the disk is in the way.
    pub fn end_turn(&mut self, stop: &str, now: Timestamp) -> Result<(), SessionError> {
        self.push(&Entry::TurnCompleted { stop, time: &stamp(now) });
        self.sync()
    }

    /// More of the visible text of the reply that is streaming. A disk that fails is reported by the message that
    /// follows.
    pub fn stream_text(&mut self, text: &str, now: Timestamp) {
        self.partial.text.push_str(text);
        self.log_partial(now);
    }

    /// More of its reasoning.
    pub fn stream_reasoning(&mut self, reasoning: &str, now: Timestamp) {
        self.partial.reasoning.push_str(reasoning);
        self.log_partial(now);
    }

    /// What has streamed is void: the request is made again.
    pub fn clear_partial(&mut self) {
        let partial = std::mem::take(&mut self.partial);
        if partial.logged_text + partial.logged_reasoning > 0 {
            self.push(&Entry::PartialVoid);
        }
    }

    /// Makes the conversation whole after a turn was cut short: open calls are answered with `why` (each exactly
    /// once), and text that has streamed becomes an interrupted reply. Does nothing where nothing is open.
    ///
    /// # Errors
    /// When the disk is in the way; in memory the conversation is whole.
    pub fn settle(&mut self, why: &str, now: Timestamp) -> Result<(), SessionError> {
        let partial = std::mem::take(&mut self.partial);
        let mut settled: Vec<Message> =
            self.conversation.open_calls().into_iter().map(|call| cancelled(call, why)).collect();
        if partial.text.trim().is_empty() {
            self.partial = partial;
            self.clear_partial();
        } else {
            settled.push(Message::Assistant(AssistantMessage {
                content: partial.text,
                reasoning: partial.reasoning,
                finish_reason: FinishReason::Interrupted,
                ..AssistantMessage::default()
            }));
        }
        // Every message goes in, whatever the disk says of the first.
        let recorded: Vec<_> = settled.into_iter().map(|message| self.record(message, now)).collect();
        recorded.into_iter().collect::<Result<(), _>>()?;
        self.sync()
    }

    fn new(about: About<'_>, now: Timestamp, store: Option<&Store>) -> Self {
        let header = Header::new(
            id::session_id(now, fastrand::u32(..)),
            about.workspace.to_string_lossy().into_owned(),
            about.agent,
            about.model,
            stamp(now),
        );
        let log = store.map(|store| {
            let mut log = Log::new(store.path(about.workspace, &header.id));
            log.push(&header);
            log
        });
        let conversation = Conversation::new(about.agent, about.model);
        Self { header, started_at: now, conversation, partial: Partial::default(), log }
    }

    /// Queues an entry for the next write.
    fn push(&mut self, entry: &Entry<'_>) {
        if let Some(log) = &mut self.log {
            log.push(entry);
        }
    }

    /// Logs what has streamed since the last time, if that is much or was long ago.
    fn log_partial(&mut self, now: Timestamp) {
        const MUCH: usize = 2048;
        const LONG: SignedDuration = SignedDuration::from_millis(500);
        let partial = &mut self.partial;
        let since = *partial.since.get_or_insert(now);
        let text = &partial.text[partial.logged_text..];
        let reasoning = &partial.reasoning[partial.logged_reasoning..];
        if text.len() + reasoning.len() < MUCH && now.duration_since(since).abs() < LONG {
            return;
        }
        if let Some(log) = &mut self.log {
            log.push(&Entry::Partial { text, reasoning });
            // What fails here stays queued, and fails again where it is reported.
            let _ = log.write();
        }
        partial.logged_text = partial.text.len();
        partial.logged_reasoning = partial.reasoning.len();
        partial.since = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use jiff::{SignedDuration, Timestamp};
    use serde_json::json;

    use super::{About, Edit, EditReason, Session, SessionError, Store};
    use crate::event::{Compressed, CompressionReason};
    use crate::message::{AssistantMessage, CallStatus, FinishReason, Message, ToolCall, ToolMessage, Usage};

    const NOON: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn about(workspace: &Path) -> About<'_> {
        About { workspace, agent: "default", model: "scripted" }
    }

    fn user(content: &str) -> Message {
        Message::user(content)
    }

    fn reply(content: &str, calls: &[&str]) -> Message {
        let call =
            |id: &&str| ToolCall { id: (*id).to_owned(), name: "grep".to_owned(), arguments: "{}".to_owned() };
        Message::Assistant(AssistantMessage {
            content: content.to_owned(),
            tool_calls: calls.iter().map(call).collect(),
            usage: Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() },
            cost_usd: Some(0.5),
            ..AssistantMessage::default()
        })
    }

    fn answer(id: &str) -> Message {
        Message::Tool(ToolMessage {
            call_id: id.to_owned(),
            name: "grep".to_owned(),
            content: "found".to_owned(),
            status: CallStatus::Ok,
            images: Vec::new(),
        })
    }

    /// A store, and in it a session with one user message.
    fn begun() -> (tempfile::TempDir, Store, Session) {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::new(dir.path().join("sessions"));
        let mut session = store.create(about(Path::new("/w/project")), NOON);
        session.start_turn("run", NOON);
        session.record(user("hello"), NOON).expect("written");
        (dir, store, session)
    }

    fn path(session: &Session) -> PathBuf {
        session.path().expect("kept").to_path_buf()
    }

    fn append(path: &Path, text: &str) {
        let log = fs::read_to_string(path).expect("a log");
        fs::write(path, log + text).expect("written");
    }

    #[test]
    fn what_was_recorded_is_read_again() {
        let (_dir, store, mut session) = begun();
        session.record(Message::System { content: "old".to_owned() }, NOON).expect("written");
        session.record(Message::System { content: "new".to_owned() }, NOON).expect("written");
        session.record(reply("", &["c1"]), NOON).expect("written");
        session.record(answer("c1"), NOON).expect("written");
        session.record(reply("done", &[]), NOON).expect("written");
        session.end_turn("completed", NOON).expect("written");
        let (id, messages) = (session.id().to_owned(), session.messages().to_vec());
        assert_eq!(messages[0].content(), "new", "the system prompt is first, and the last one counts");
        drop(session);
        let (session, warnings) = store.open(&id, NOON).expect("a sound log");
        assert_eq!((session.messages(), warnings), (&messages[..], vec![]));
        assert_eq!((session.turns(), session.steps(), session.calls()), (1, 2, 1));
        assert_eq!((session.usage().total(), session.cost_usd()), (22, Some(1.0)));
        assert_eq!(session.started_at(), NOON);
        assert_eq!(session.about().model, "scripted");
    }

    fn compression() -> EditReason {
        EditReason::Compressed(Compressed {
            reason: CompressionReason::Threshold,
            strategy: "staged".to_owned(),
            tokens_before: 9,
            tokens_after: 4,
            budget: 10,
            masked: 1,
            summarized: 0,
            unloaded: 0,
            usage: Usage { input_tokens: 8, output_tokens: 2, ..Usage::default() },
            cost_usd: Some(0.25),
        })
    }

    fn shown(session: &Session) -> Vec<(u64, u32, &str)> {
        session.ids().iter().zip(session.messages()).map(|(id, m)| (id.number, id.pass, m.content())).collect()
    }

    #[test]
    fn an_edit_changes_what_is_sent_and_never_what_was_said() {
        let (_dir, store, mut session) = begun();
        session.record(Message::System { content: "rules".to_owned() }, NOON).expect("written");
        for message in [reply("a", &["c1"]), answer("c1"), reply("b", &[])] {
            session.record(message, NOON).expect("written");
        }
        let said: Vec<Message> = session.said().cloned().collect();
        assert_eq!(shown(&session), [(0, 0, "rules"), (1, 0, "hello"), (2, 0, "a"), (3, 0, "found"), (4, 0, "b")]);
        let edits = vec![
            Edit { number: 1, message: None },
            Edit { number: 2, message: None },
            Edit { number: 3, message: Some(Message::user("in short")) },
        ];
        session.edit(&compression(), edits, NOON).expect("written");
        session.record(user("go on"), NOON).expect("written");
        // What stands for others may be replaced in its turn.
        let shorter = vec![Edit { number: 3, message: Some(Message::user("shorter")) }];
        session.edit(&EditReason::Unloaded(vec!["x".to_owned()]), shorter, NOON).expect("written");
        session.pin(&[4], NOON);
        session.learn_budget(10, NOON);
        session.record(reply("c", &[]), NOON).expect("written");
        let after = [(0, 0, "rules"), (3, 2, "shorter"), (4, 0, "b"), (5, 0, "go on"), (6, 0, "c")];
        assert_eq!(shown(&session), after);
        assert_eq!(session.said().cloned().collect::<Vec<_>>()[..said.len()], said);
        assert_eq!((session.usage().total(), session.cost_usd()), (43, Some(1.75)), "the summary is paid for");

        let id = session.id().to_owned();
        drop(session);
        let (mut session, warnings) = store.open(&id, NOON).expect("a sound log");
        assert_eq!((shown(&session), warnings), (after.to_vec(), vec![]), "read again, the view is the same");
        assert!(session.pinned().contains(&4) && session.learned_budget() == Some(10));
        assert_eq!((session.usage().total(), session.cost_usd()), (43, Some(1.75)));

        assert_eq!(session.restore(NOON).expect("written"), 3);
        let contents: Vec<&str> = session.messages().iter().map(Message::content).collect();
        assert_eq!(contents, ["rules", "hello", "a", "found", "b", "go on", "c"]);
        drop(session);
        assert_eq!(store.read(&id).expect("sound").0.messages().len(), 7, "and it stays restored");
    }

    #[test]
    fn what_came_in_from_outside_stays_known_when_its_message_is_compressed() {
        let (_dir, store, mut session) = begun();
        assert!(session.mark_tainted("content of `/x`", NOON) && !session.mark_tainted("content of `/y`", NOON));
        session.record(user("go on"), NOON).expect("written");
        session.edit(&compression(), vec![Edit { number: 1, message: None }], NOON).expect("written");
        let id = session.id().to_owned();
        drop(session);
        let (session, _) = store.open(&id, NOON).expect("a sound log");
        assert_eq!(session.taint(), Some("content of `/x`"));
    }

    #[test]
    fn a_switch_of_agent_or_model_is_remembered() {
        let (_dir, store, mut session) = begun();
        session.switch("default", "another", NOON);
        session.record(user("go on"), NOON).expect("written");
        let id = session.id().to_owned();
        drop(session);
        let (session, _) = store.open(&id, NOON).expect("a sound log");
        assert_eq!((session.about().agent, session.about().model), ("default", "another"));
    }

    #[test]
    fn the_format_is_versioned_from_the_first_line() {
        let (_dir, store, session) = begun();
        let log = fs::read_to_string(path(&session)).expect("a log");
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(
            lines[0],
            format!(
                "{{\"v\":1,\"type\":\"session\",\"id\":\"{}\",\"workspace\":\"/w/project\",\"agent\":\"default\",\
                 \"model\":\"scripted\",\"created_at\":\"2027-01-15T08:00:00.000Z\"}}",
                session.id()
            )
        );
        assert_eq!(lines[1], r#"{"type":"turn.started","run_id":"run","time":"2027-01-15T08:00:00.000Z"}"#);
        let message =
            r#"{"type":"message","n":1,"time":"2027-01-15T08:00:00.000Z","role":"user","content":"hello"}"#;
        assert_eq!(lines[2], message);

        let (id, path) = (session.id().to_owned(), path(&session));
        drop(session);
        append(&path, "{\"type\":\"from.the.future\",\"x\":[1]}\n");
        assert!(store.open(&id, NOON).expect("unknown types are passed over").1.is_empty());
        fs::write(&path, log.replacen("\"v\":1", "\"v\":2", 1)).expect("written");
        let error = store.open(&id, NOON).expect_err("a later format").to_string();
        assert!(error.contains("written by a newer version of agent (format 2; this one reads 1)"), "{error}");
        fs::write(&path, "hello\n").expect("written");
        assert!(matches!(store.open(&id, NOON), Err(SessionError::NotALog { .. })));
    }

    #[test]
    fn a_torn_last_line_is_cut_off() {
        let (_dir, store, session) = begun();
        let (id, path) = (session.id().to_owned(), path(&session));
        drop(session);
        let sound = fs::read_to_string(&path).expect("a log");
        append(&path, "{\"type\":\"message\",\"role\":\"user\",\"content\":\"lo");
        let (read, warnings) = store.read(&id).expect("reading leaves it alone");
        assert_eq!((read.messages().len(), warnings.len()), (1, 1));
        assert_ne!(fs::read_to_string(&path).expect("a log"), sound);

        let (mut session, warnings) = store.open(&id, NOON).expect("repaired");
        assert!(warnings[0].contains("was not written to its end; 45 bytes are dropped"), "{warnings:?}");
        assert_eq!(fs::read_to_string(&path).expect("a log"), sound);
        session.record(user("again"), NOON).expect("written");
        drop(session);
        assert_eq!(store.open(&id, NOON).expect("sound").1, Vec::<String>::new());
    }

    #[test]
    fn a_last_line_that_lacks_only_its_end_counts() {
        let (_dir, store, session) = begun();
        let (id, path) = (session.id().to_owned(), path(&session));
        drop(session);
        let log = fs::read_to_string(&path).expect("a log");
        fs::write(&path, log.trim_end()).expect("written");
        let (mut session, warnings) = store.open(&id, NOON).expect("sound");
        assert_eq!((session.messages().len(), warnings.len()), (1, 0));
        session.record(user("again"), NOON).expect("written");
        drop(session);
        assert_eq!(store.open(&id, NOON).expect("sound").0.messages().len(), 2);
    }

    #[test]
    fn damage_in_the_middle_leaves_a_valid_conversation() {
        let (_dir, store, mut session) = begun();
        for message in
            [reply("", &["a", "b"]), answer("a"), answer("b"), reply("", &["c"]), answer("c"), user("x")]
        {
            session.record(message, NOON).expect("written");
        }
        let (id, path) = (session.id().to_owned(), path(&session));
        drop(session);
        let log = fs::read_to_string(&path).expect("a log");
        let mut lines: Vec<&str> = log.lines().collect();
        // The answer to `b`, and the reply that called `c`.
        lines[5] = "\0\0\0";
        lines[6] = "{}";
        fs::write(&path, lines.join("\n") + "\n").expect("written");
        let (session, warnings) = store.open(&id, NOON).expect("readable");
        let Message::Tool(b) = &session.messages()[3] else { panic!("{:?}", session.messages()) };
        assert_eq!((b.call_id.as_str(), b.status), ("b", CallStatus::Cancelled));
        assert_eq!(session.messages().len(), 5, "and the answer to `c` is gone");
        assert_eq!(warnings.len(), 3, "{warnings:?}");
    }

    #[test]
    fn settling_answers_each_open_call_once() {
        let (_dir, store, mut session) = begun();
        session.record(reply("", &["a", "b", "c"]), NOON).expect("written");
        session.record(answer("b"), NOON).expect("written");
        session.settle("interrupted by the person", NOON).expect("written");
        session.settle("twice", NOON).expect("nothing is open");
        let answers: Vec<(&str, CallStatus)> = session.messages()[2..]
            .iter()
            .map(|message| match message {
                Message::Tool(answer) => (answer.call_id.as_str(), answer.status),
                other => panic!("{other:?}"),
            })
            .collect();
        let cancelled = CallStatus::Cancelled;
        assert_eq!(answers, [("b", CallStatus::Ok), ("a", cancelled), ("c", cancelled)]);

        session.record(reply("", &["d"]), NOON).expect("written");
        let id = session.id().to_owned();
        drop(session);
        let (session, _) = store.open(&id, NOON).expect("sound");
        assert!(session.messages().last().expect("some").content().starts_with("interrupted"));
        let length = session.messages().len();
        drop(session);
        assert_eq!(store.open(&id, NOON).expect("sound").0.messages().len(), length, "settled for good");
    }

    #[test]
    fn text_that_streamed_survives() {
        let (_dir, store, mut session) = begun();
        session.stream_text("void", NOON + SignedDuration::from_secs(1));
        session.stream_text(" and void", NOON + SignedDuration::from_secs(2));
        session.clear_partial();
        session.stream_reasoning("hm", NOON);
        session.stream_text("kept ", NOON);
        session.stream_text(&"x".repeat(3000), NOON);
        session.stream_text("lost with the machine", NOON);
        let id = session.id().to_owned();
        drop(session);
        let (mut session, _) = store.open(&id, NOON).expect("sound");
        let Some(Message::Assistant(last)) = session.messages().last() else { panic!("no reply") };
        assert_eq!(last.content, format!("kept {}", "x".repeat(3000)));
        assert_eq!((last.reasoning.as_str(), last.finish_reason), ("hm", FinishReason::Interrupted));

        session.stream_text("and on", NOON);
        assert_eq!(session.partial().0, "and on");
        session.settle("interrupted", NOON).expect("written");
        assert_eq!(session.messages().last().expect("some").content(), "and on");
        session.stream_text("replaced", NOON);
        session.record(reply("whole", &[]), NOON).expect("written");
        session.settle("interrupted", NOON).expect("nothing is open");
        assert_eq!(session.messages().last().expect("some").content(), "whole");
    }

    #[test]
    fn one_process_at_a_time() {
        let (_dir, store, session) = begun();
        let id = session.id().to_owned();
        let error = store.open(&id, NOON).expect_err("in use").to_string();
        assert!(error.contains("is in use by another process"), "{error}");
        assert!(store.read(&id).is_ok(), "looking is allowed");
        drop(session);
        assert!(store.open(&id, NOON).is_ok());
    }

    #[test]
    fn a_failing_disk_loses_nothing_in_memory() {
        let dir = tempfile::tempdir().expect("a directory");
        let blocked = dir.path().join("sessions");
        fs::write(&blocked, "in the way").expect("written");
        let store = Store::new(&blocked);
        let mut session = store.create(about(dir.path()), NOON);
        let error = session.record(user("one"), NOON).expect_err("no directory").to_string();
        assert!(error.contains("sessions") && error.contains("cannot be created"), "{error}");
        assert_eq!(session.messages().len(), 1);
        fs::remove_file(&blocked).expect("out of the way");
        session.record(user("two"), NOON).expect("written, with what came before");
        assert_eq!(store.read(session.id()).expect("sound").0.messages(), session.messages());
    }

    #[test]
    fn an_ephemeral_session_and_one_without_words_leave_no_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut session = Session::ephemeral(about(dir.path()), NOON);
        session.record(user("secret"), NOON).expect("nothing to write");
        session.end_turn("completed", NOON).expect("nothing to write");
        assert_eq!((session.path(), session.messages().len()), (None, 1));
        let store = Store::new(dir.path().join("sessions"));
        let mut silent = store.create(about(dir.path()), NOON);
        silent.record(Message::System { content: "You are …".to_owned() }, NOON).expect("queued");
        drop(silent);
        assert_eq!(store.list(None).expect("nothing there"), []);
    }

    #[test]
    fn the_state_is_restored_and_null_removes_a_key() {
        let (_dir, store, mut session) = begun();
        let changes = |value: serde_json::Value| value.as_object().cloned().expect("an object");
        session.update_state(changes(json!({"todo": ["a"], "gone": 1})), NOON);
        session.update_state(changes(json!({"todo": ["a", "b"], "gone": null})), NOON);
        session.record(answer("none"), NOON).expect("written");
        let id = session.id().to_owned();
        drop(session);
        let (session, _) = store.open(&id, NOON).expect("it opens");
        assert_eq!(serde_json::Value::from(session.state().clone()), json!({"todo": ["a", "b"]}));
    }

    #[cfg(unix)]
    #[test]
    fn logs_are_for_this_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, _store, session) = begun();
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let path = path(&session);
        let workspace = path.parent().expect("a directory");
        assert_eq!(mode(&path), 0o600);
        assert_eq!((mode(workspace), mode(workspace.parent().expect("the store"))), (0o700, 0o700));
    }

    #[test]
    fn sessions_are_found_by_the_beginning_of_their_id() {
        let (_dir, store, first) = begun();
        let mut later = store.create(about(Path::new("/w/other")), NOON + SignedDuration::from_secs(1));
        later.record(user("  what is\nthis "), NOON).expect("written");
        let id = first.id();
        assert_eq!(store.find(id).expect("exact"), path(&first));
        assert_eq!(store.find(&id[..17]).expect("unique"), path(&first));
        let error = store.find("2027").expect_err("both").to_string();
        assert!(error.contains(id) && error.contains(later.id()), "{error}");
        let error = store.find("20270115-080000-").err();
        assert!(error.is_none(), "{error:?}");
        let mistyped = format!("{}_", &id[..20]);
        assert!(store.find(&mistyped).expect_err("none").to_string().contains(&format!("did you mean {id}")));
        assert!(matches!(store.find(""), Err(SessionError::Unknown { .. })));

        let all = store.list(None).expect("readable");
        assert_eq!(
            all.iter().map(|summary| summary.title.as_str()).collect::<Vec<_>>(),
            ["what is this", "hello"]
        );
        assert_eq!(store.latest(Path::new("/w/project")).expect("readable").expect("one").id, id);
        assert_eq!(store.latest(Path::new("/w/none")).expect("readable"), None);
    }
}
