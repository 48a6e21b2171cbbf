//! A session: one conversation, in memory and as an append-only log on disk.
//!
//! Everything that enters a conversation is written to disk first, then to memory. A reply with calls is durable
//! before [`Session::reply`] returns, so a crash cannot forget a call that ran; everything else becomes durable
//! with the next request ([`Session::begin_sync`]). Streaming text is logged in pieces, without waiting for the
//! disk.
//!
//! The caller supplies the time.

mod additions;
mod archive;
mod editing;
mod entry;
mod error;
mod fork;
mod header;
mod id;
mod lines;
mod listing;
mod log;
mod outline;
mod partial;
mod removal;
mod replay;
mod search;
mod state;
mod store;
mod transcript;
mod unseen;
mod view;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use crate::conversation::Archive;
use crate::conversation::message::{Item, ToolCall, Usage};
use crate::conversation::telemetry::Tally;

use archive::Originals;
use entry::{FORMAT_VERSION, HeaderKind, LogEntry, LogHeader};
use id::format_stamp;
use log::Log;
use partial::Partial;
use transcript::Transcript;

pub use entry::SystemPrompt;
pub use error::SessionError;
pub use lines::Far;
pub use listing::SessionSummary;
pub use log::Syncing;
pub use search::WordsBy;
pub use state::{SessionState, StateChange};
pub use store::Store;
pub use view::{ItemChange, ItemId, SessionView, ViewEdit};

/// The workspace, agent and model of a session. The model is the provider's name for it.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    pub workspace: &'a Path,
    /// The copy of the workspace in which it works, if it does not work there itself.
    pub copy: Option<&'a Path>,
    /// True if that holds only what changed, as a layer over the workspace.
    pub is_layer: bool,
    pub agent: &'a str,
    pub model: &'a str,
}

/// A call that has no answer yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// The number of its step.
    pub number: u64,
    /// Its position among the calls of the step.
    pub call: usize,
    pub request: ToolCall,
}

/// A conversation.
#[derive(Debug)]
pub struct Session {
    header: LogHeader,
    started_at: Timestamp,
    transcript: Transcript,
    partial: Partial,
    /// `None` if nothing is written.
    log: Option<Log>,
    originals: Arc<Originals>,
}

impl Session {
    /// A session that leaves nothing on disk.
    pub fn ephemeral(about: About<'_>, now: Timestamp) -> Self {
        Self::new(about, None, now, None)
    }

    /// The id that `--session` takes.
    pub fn id(&self) -> &str {
        &self.header.id
    }

    /// The session that called the helper, if this one is a helper's.
    pub fn parent(&self) -> Option<&str> {
        self.header.parent.as_deref()
    }

    /// The time when the session began, which is the clock of its prompts.
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// The workspace, and the current agent and model.
    pub fn describe(&self) -> About<'_> {
        About {
            workspace: Path::new(&self.header.workspace),
            copy: self.header.copy.as_deref().map(Path::new),
            is_layer: self.header.is_layer,
            agent: &self.transcript.agent,
            model: &self.transcript.model,
        }
    }

    /// The copy of the workspace in which it works, as long as that is there.
    pub fn find_copy(&self) -> Option<&Path> {
        self.describe().copy.filter(|copy| copy.is_dir())
    }

    /// The directory with the files that it changes. One with a layer has to be entered first.
    pub fn find_root(&self) -> &Path {
        let copy = self.find_copy().filter(|_| !self.header.is_layer);
        copy.unwrap_or(self.describe().workspace)
    }

    /// Switches to another agent or model. Written to disk with the next item.
    pub fn switch(&mut self, agent: &str, model: &str, now: Timestamp) {
        self.push(&LogEntry::Switched { agent, model, time: &format_stamp(now) });
        self.transcript.switch(agent, model);
    }

    /// The log; `None` for an ephemeral session. The file is created with the first item.
    pub fn path(&self) -> Option<&Path> {
        self.log.as_ref().map(Log::path)
    }

    /// The log that it was read from or is written to; `None` for an ephemeral session.
    pub fn find_log(&self) -> Option<&Path> {
        self.originals.log()
    }

    /// The system prompt, once there is one.
    pub fn system(&self) -> Option<&SystemPrompt> {
        self.transcript.system.as_ref()
    }

    /// Sets or replaces the system prompt. Written to disk with the next item.
    pub fn set_system(&mut self, prompt: SystemPrompt, now: Timestamp) {
        self.push(&LogEntry::System { time: &format_stamp(now), text: &prompt.text, basis: &prompt.basis });
        self.transcript.brief(prompt);
    }

    /// The items that are sent.
    pub fn items(&self) -> &[Item] {
        &self.transcript.view.items
    }

    /// The ids of [`Session::items`], one for each.
    pub fn ids(&self) -> &[ItemId] {
        &self.transcript.view.ids
    }

    /// The number of [`Session::items`] in the last request that the server counted, and that count, if the next
    /// request extends it.
    pub fn find_counted(&self) -> Option<(usize, u64)> {
        let (number, tokens) = self.transcript.counted?;
        Some((self.ids().iter().position(|id| id.number == number)?, tokens))
    }

    /// All original items, whether they are still sent or not.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn originals(&self) -> Result<Vec<Item>, SessionError> {
        Ok(self.originals_with_numbers()?.1)
    }

    /// The same, with the numbers of the items.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn originals_with_numbers(&self) -> Result<(Vec<u64>, Vec<Item>), SessionError> {
        let view = self.original_view()?;
        Ok((view.ids.iter().map(|id| id.number).collect(), view.items))
    }

    /// What a person called it, else their first words; empty if there are none yet.
    pub fn title(&self) -> &str {
        self.transcript.name.as_deref().unwrap_or(&self.transcript.title)
    }

    /// The archive of items that are no longer sent, for `recall`.
    pub fn archive(&self) -> Arc<dyn Archive> {
        Arc::clone(&self.originals) as Arc<dyn Archive>
    }

    /// What would be sent after these edits.
    pub fn preview_edits(&self, edits: &[ViewEdit]) -> SessionView {
        let mut view = self.transcript.view.clone();
        view.edit(edits, None, |_, _| {});
        view
    }

    /// The sum over all requests.
    pub fn usage(&self) -> Usage {
        self.transcript.usage
    }

    /// The cost of all requests in USD; `None` if that of a part is unknown.
    pub fn cost_usd(&self) -> Option<f64> {
        self.transcript.cost.usd()
    }

    /// Counts a request that left no reply. Written to disk with the next item.
    pub fn spend(&mut self, usage: Usage, cost_usd: Option<f64>, now: Timestamp) {
        self.push(&LogEntry::Spent { time: &format_stamp(now), usage, cost_usd });
        self.transcript.spend(usage, cost_usd);
    }

    /// The number of turns that ended with each exit code.
    pub fn codes(&self) -> &BTreeMap<u8, u64> {
        &self.transcript.codes
    }

    /// The number of turns that were begun.
    pub fn turns(&self) -> u64 {
        self.transcript.turns
    }

    /// The number of the model's replies.
    pub fn steps(&self) -> u64 {
        self.transcript.steps
    }

    /// The number of answered calls, however they ended.
    pub fn calls(&self) -> u64 {
        self.transcript.calls
    }

    /// The costs of the answered calls, by tool.
    pub fn costs(&self) -> &Tally {
        &self.transcript.costs
    }

    /// The state that the conversation keeps beside its items.
    pub fn state(&self) -> &SessionState {
        &self.transcript.state
    }

    /// Changes the state. The caller removes secrets first. Written to disk with the next item.
    pub fn update_state(&mut self, change: StateChange, now: Timestamp) {
        if change.is_empty() {
            return;
        }
        self.push(&LogEntry::State { time: &format_stamp(now), change: &change });
        self.transcript.state.apply(change);
    }

    /// The source of the first outside content in the conversation (`content from https://…`). It stays even when
    /// the items are removed.
    pub fn taint(&self) -> Option<&str> {
        self.transcript.taint.as_deref()
    }

    /// Records that outside content enters the conversation; returns false if some did before. The caller removes
    /// secrets from the source first. Call it before the answer with the content; it reaches the disk with that
    /// answer.
    pub fn mark_tainted(&mut self, source: &str, now: Timestamp) -> bool {
        if self.transcript.taint.is_some() {
            return false;
        }
        self.push(&LogEntry::Taint { source, time: &format_stamp(now) });
        self.transcript.taint = Some(source.to_owned());
        true
    }

    /// The text and the reasoning of the reply that is streaming.
    pub fn partial(&self) -> (&str, &str) {
        (&self.partial.text, &self.partial.reasoning)
    }

    /// A new session, of a helper if there is a `parent`.
    fn new(about: About<'_>, parent: Option<&str>, now: Timestamp, store: Option<&Store>) -> Self {
        let header = LogHeader {
            v: FORMAT_VERSION,
            kind: HeaderKind::Session,
            id: id::session_id(now, fastrand::u32(..)),
            workspace: about.workspace.to_string_lossy().into_owned(),
            agent: about.agent.to_owned(),
            model: about.model.to_owned(),
            created_at: format_stamp(now),
            parent: parent.map(str::to_owned),
            forked_from: None,
            copy: about.copy.map(|copy| copy.to_string_lossy().into_owned()),
            is_layer: about.is_layer,
        };
        let log = store.map(|store| {
            let mut log = Log::new(store.path(about.workspace, &header.id));
            log.push(&header);
            log
        });
        let originals = Arc::new(Originals::new(log.as_ref().map(|log| log.path().to_path_buf())));
        let transcript = Transcript::new(about.agent, about.model);
        Self { header, started_at: now, transcript, partial: Partial::default(), log, originals }
    }

    /// The view without any edit.
    fn original_view(&self) -> Result<SessionView, SessionError> {
        if let Some(path) = self.originals.log().filter(|path| path.exists()) {
            return replay::restore_view(path, |number| self.originals.is_out(number))
                .map_err(|error| SessionError::io(path, "read", error));
        }
        let mut all = self.originals.in_memory();
        let shown = self.ids().iter().zip(self.items()).filter(|(_, item)| !matches!(item, Item::Summary(_)));
        for (id, item) in shown {
            all.entry(id.number).or_insert_with(|| item.clone());
        }
        let mut view = SessionView::default();
        for (number, item) in all {
            view.push(number, item);
        }
        Ok(view)
    }

    /// Queues an entry for the next write.
    fn push(&mut self, entry: &LogEntry<'_>) {
        if let Some(log) = &mut self.log {
            log.push(entry);
        }
    }

    fn write(&mut self) -> Result<(), SessionError> {
        self.log.as_mut().map_or(Ok(()), Log::write)
    }
}
