//! Changes of what is sent: compressions, pins, undos. The log keeps everything.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;

use crate::conversation::Archive;
use crate::conversation::event::Compressed;
use crate::conversation::message::{Handle, Summary};

use super::Session;
use super::entry::LogEntry;
use super::error::SessionError;
use super::id::format_stamp;
use super::transcript::make_title;
use super::view::ViewEdit;

impl Session {
    /// Applies one compression to the items that are sent; the log keeps the originals.
    ///
    /// # Errors
    /// The disk fails. In memory the edits apply all the same.
    pub fn compress(
        &mut self,
        done: &Compressed,
        edits: &[ViewEdit],
        summary: Option<Summary>,
        now: Timestamp,
    ) -> Result<(), SessionError> {
        self.push(&LogEntry::Compressed { time: &format_stamp(now), done, edits, summary: summary.as_ref() });
        let originals = &self.originals;
        self.transcript.compress(done, edits, summary, |number, item| originals.hide(number, item));
        self.sync()
    }

    /// Removes the instructions of skills from the items that are sent.
    ///
    /// # Errors
    /// The disk fails. In memory the edits apply all the same.
    pub fn unload(&mut self, skills: &[String], edits: &[ViewEdit], now: Timestamp) -> Result<(), SessionError> {
        self.push(&LogEntry::Unloaded { time: &format_stamp(now), skills, edits });
        let originals = &self.originals;
        self.transcript.edit(edits, None, |number, item| originals.hide(number, item));
        self.sync()
    }

    /// Sends all original items again, and keeps it that way: see [`Session::is_held`]. Returns the number of items
    /// that come back.
    ///
    /// # Errors
    /// The log cannot be read or written; nothing has changed then.
    pub fn restore(&mut self, now: Timestamp) -> Result<usize, SessionError> {
        self.sync()?;
        let restored = self.originals.len();
        let view = self.original_view()?;
        self.push(&LogEntry::Restored { time: &format_stamp(now) });
        self.sync()?;
        self.originals.clear();
        self.transcript.restore(view);
        Ok(restored)
    }

    /// The number of the first item that an undo of the last `messages` messages of the person takes out; `None` if there
    /// are fewer.
    pub fn find_undo(&self, messages: usize) -> Option<u64> {
        let places = &self.transcript.messages;
        places.len().checked_sub(messages.max(1)).map(|at| places[at].from)
    }

    /// How many messages of the person an undo back to a place takes out: to before one of them (`m12`), or to a
    /// checkpoint.
    ///
    /// # Errors
    /// A sentence: there is no such place.
    pub fn count_since(&self, message: &str) -> Result<usize, String> {
        let places = &self.transcript.messages;
        if let Some(last) = self.transcript.checkpoints.get(message) {
            return Ok(places.iter().filter(|place| place.number > *last).count());
        }
        let handle = Handle::parse(message).filter(|handle| handle.call.is_none());
        let at = handle.and_then(|handle| places.iter().position(|place| place.number == handle.number));
        at.map(|at| places.len() - at).ok_or_else(|| {
            format!("{message} is no message of yours in this session, and no checkpoint: `agent session show ID` names them")
        })
    }

    /// Takes the last `messages` messages of the person and everything after the first of them out of the conversation.
    /// The log keeps them, and whoever opens it next has the conversation as it was before. Returns the first of them;
    /// `None` if there are not so many.
    ///
    /// # Errors
    /// The log cannot be read or written.
    pub fn undo(mut self, messages: usize, now: Timestamp) -> Result<Option<String>, SessionError> {
        let Some(from) = self.find_undo(messages) else { return Ok(None) };
        let place = self.transcript.messages.iter().find(|place| place.from == from).copied();
        let said = place.map_or(Ok(None), |place| self.originals.read(Handle::item(place.number)));
        let said =
            said.map_err(|error| SessionError::io(self.originals.log().unwrap_or(Path::new("")), "read", error))?;
        self.transcript.undo(from);
        let titled = self.transcript.titled();
        self.push(&LogEntry::Undone { n: from, titled, time: &format_stamp(now) });
        self.sync()?;
        Ok(Some(said.unwrap_or_default()))
    }

    /// Takes the last undo back, if nothing was said since: whoever opens the log next has the conversation as it was.
    /// Returns false if there is none.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn redo(mut self, now: Timestamp) -> Result<bool, SessionError> {
        let Some(title) = self.transcript.undos.pop() else { return Ok(false) };
        self.transcript.title = title;
        let titled = self.transcript.titled();
        self.push(&LogEntry::Redone { titled, time: &format_stamp(now) });
        self.sync()?;
        Ok(true)
    }

    /// Requires that a name can be that of a checkpoint.
    ///
    /// # Errors
    /// A sentence that says what it may consist of.
    pub fn check_checkpoint(name: &str) -> Result<(), &'static str> {
        const LONGEST: usize = 60;
        let is_good = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_named = (1..=LONGEST).contains(&name.len()) && name.chars().all(is_good) && !name.starts_with('-');
        if is_named && Handle::parse(name).is_none() && name.parse::<u64>().is_err() {
            return Ok(());
        }
        Err(
            "a checkpoint is named by letters, digits, `-`, `_` and `.`, begins with no `-`, and is not like a number or an id",
        )
    }

    /// Names this place of the conversation, for undos and forks.
    ///
    /// # Errors
    /// The disk fails. In memory it is named all the same.
    pub fn mark(&mut self, name: &str, now: Timestamp) -> Result<(), SessionError> {
        let n = self.transcript.last;
        self.push(&LogEntry::Checkpoint { name, n, time: &format_stamp(now) });
        self.transcript.mark(name.to_owned(), n);
        self.sync()
    }

    /// The named places, by name.
    pub fn list_checkpoints(&self) -> impl Iterator<Item = &str> {
        self.transcript.checkpoints.keys().map(String::as_str)
    }

    /// Gives the session a title of the person's; an empty one takes it back.
    ///
    /// # Errors
    /// The disk fails. In memory it has the title all the same.
    pub fn rename(&mut self, name: &str, now: Timestamp) -> Result<(), SessionError> {
        let name = make_title(name);
        self.push(&LogEntry::Renamed { name: &name, time: &format_stamp(now) });
        self.transcript.rename(name);
        self.sync()
    }

    /// True after the first turn, unless a person has given a title.
    pub fn awaits_title(&self) -> bool {
        self.turns() == 1 && self.transcript.name.is_none()
    }

    /// Sets the title in place of the first message. That of a person outranks it; an empty one changes nothing.
    ///
    /// # Errors
    /// The disk fails. In memory it has the title all the same.
    pub fn set_title(&mut self, title: &str, now: Timestamp) -> Result<(), SessionError> {
        let title = make_title(title);
        if title.is_empty() {
            return Ok(());
        }
        self.transcript.title = title;
        let titled = self.transcript.titled();
        self.push(&LogEntry::Titled { titled, time: &format_stamp(now) });
        self.sync()
    }

    /// True if an undo can be taken back.
    pub fn can_redo(&self) -> bool {
        !self.transcript.undos.is_empty()
    }

    /// True if a person undid the compressions and wants none until they ask for one.
    pub fn is_held(&self) -> bool {
        self.transcript.held
    }

    /// The numbers of the items that no compression touches.
    pub fn list_pinned(&self) -> &BTreeSet<u64> {
        &self.transcript.pinned
    }

    /// Keeps items out of every compression.
    ///
    /// # Errors
    /// The disk fails. In memory the items are pinned all the same.
    pub fn pin(&mut self, numbers: &[u64], now: Timestamp) -> Result<(), SessionError> {
        self.push(&LogEntry::Pinned { numbers, time: &format_stamp(now) });
        self.transcript.pin(numbers);
        self.sync()
    }

    /// Takes pins back: those of `numbers`, or without numbers those that were set last. Returns their numbers.
    ///
    /// # Errors
    /// The disk fails. In memory they are taken back all the same.
    pub fn unpin(&mut self, numbers: Option<&[u64]>, now: Timestamp) -> Result<Vec<u64>, SessionError> {
        let pinned =
            |numbers: &[u64]| numbers.iter().copied().filter(|it| self.transcript.pinned.contains(it)).collect();
        let numbers: Vec<u64> =
            numbers.map_or_else(|| self.transcript.pins.last().cloned().unwrap_or_default(), pinned);
        if !numbers.is_empty() {
            self.push(&LogEntry::Unpinned { numbers: &numbers, time: &format_stamp(now) });
            self.transcript.unpin(&numbers);
            self.sync()?;
        }
        Ok(numbers)
    }
}
