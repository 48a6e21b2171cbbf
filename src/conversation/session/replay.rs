//! Reads a log: the conversation in it, and the damage that was skipped.
//!
//! A torn last line is the trace of a crash and is dropped; a damaged line elsewhere is skipped, the first one
//! replaced. All are reported. A log of another format is refused rather than half understood.
//!
//! The log is read twice: first only for the edits, then for everything except the texts that they removed. So it needs
//! memory only for what the view still shows.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use serde::de::Error;

use crate::base::text;

use super::archive::{Originals, each_item};
use super::entry::{LogHeader, LogLine, OLDEST_VERSION, SystemPrompt};
use super::error::SessionError;
use super::header::{FoundHeader, no_log, read_header};
use super::lines::{Far, LogLines};
use super::outline;
use super::transcript::Transcript;
use super::unseen::Unseen;
use super::view::SessionView;
use crate::base::seal::SealCheck;

/// The answer, for the model, to a call without a real answer.
pub(super) const INTERRUPTED: &str =
    "interrupted: the session ended before this call did; it may have run in part";

/// The beginning of a line with a reply.
const REPLY: &[u8] = b"{\"type\":\"reply\"";

/// A log as it was read.
#[derive(Debug)]
pub(super) struct Replayed {
    pub header: LogHeader,
    pub transcript: Transcript,
    pub originals: Originals,
    /// Text and reasoning of the reply that was streaming when the log ended.
    pub partial: (String, String),
    /// Bytes up to the end of the last valid line.
    pub whole: u64,
    /// True if those bytes end with a line break.
    pub ends_with_newline: bool,
    pub warnings: Vec<String>,
    /// Answers without a call.
    strays: usize,
}

/// Where the reply of step `step` begins in a log, in bytes, and whether it is a closing answer. Steps count from 1, as
/// they were recorded; what no model wrote is none. The error is the number of steps.
///
/// # Errors
/// The log cannot be read.
pub(super) fn find_step(file: &File, step: u64) -> io::Result<Result<(u64, bool), u64>> {
    let length = file.metadata()?.len();
    let mut lines = LogLines::new(from_start(file, length)?);
    let (mut offset, mut steps) = (0, 0);
    while let Some(line) = lines.read()? {
        if line.starts_with(REPLY)
            && let Ok(LogLine::Reply { step: reply, .. }) = LogLine::parse(line)
        {
            steps += u64::from(!reply.given);
            if steps == step && !reply.given {
                return Ok(Ok((offset, reply.closing)));
            }
        }
        offset += line.len() as u64;
    }
    Ok(Err(steps))
}

/// Reads a log up to `length` bytes, or the whole. `tell` hears now and then how much of it is read.
///
/// # Errors
/// It is not a session log, or has another format.
pub(super) fn replay_log(
    path: &Path,
    file: &File,
    length: Option<u64>,
    tell: &dyn Fn(Far),
) -> Result<Replayed, SessionError> {
    /// The bytes between two tellings.
    const BLOCK: u64 = 1 << 20;
    let unreadable = |error| SessionError::io(path, "read", error);
    // Another process may append meanwhile: both readings end where the log ends now.
    let length = length.map_or_else(|| file.metadata().map(|found| found.len()), Ok).map_err(unreadable)?;
    let mut lines = LogLines::new(from_start(file, length).map_err(unreadable)?);
    let line = lines.read().map_err(unreadable)?.ok_or_else(|| no_log(path, "it is empty"))?;
    let FoundHeader { header, is_rebuilt, is_gone } = read_header(path, line)?;
    let is_sealed = header.v > OLDEST_VERSION;
    let from_file = from_start(file, length).map_err(unreadable)?;
    let unseen = Unseen::find(from_file, is_sealed).map_err(unreadable)?;
    let mut lines = LogLines::new(from_start(file, length).map_err(unreadable)?);
    let mut check = SealCheck::of_sealed(is_sealed);
    let mut log = Replayed {
        transcript: Transcript::new(&header.agent, &header.model),
        originals: Originals::new(Some(path.to_path_buf())),
        header,
        partial: (String::new(), String::new()),
        whole: 0,
        ends_with_newline: true,
        warnings: Vec::new(),
        strays: 0,
    };
    if is_rebuilt {
        log.warnings.push(format!("{}:1: this line is damaged; the rest of the log replaces it", path.display()));
    }
    for number in 1.. {
        let Some(line) = lines.read().map_err(unreadable)? else { break };
        let whole = line.ends_with(b"\n");
        let entry = match check.is_sound(line) {
            _ if number == 1 && !is_gone => Ok(LogLine::Other),
            false => Err(serde_json::Error::custom("it is not as it was written")),
            true if unseen.covers(number, line) => outline::parse_outline(line),
            true => LogLine::parse(line),
        };
        match entry {
            Ok(_) if unseen.is_void(number) => {}
            Ok(entry) if unseen.is_taken_out(number) && entry.is_of_a_message() => {}
            Ok(entry) => log.apply(entry, unseen.is_undone(number)),
            Err(_) if !whole => {
                let beginning = text::one_line(&String::from_utf8_lossy(&line[..line.len().min(256)]), 60);
                log.warnings.push(format!(
                    "{}: the last line is incomplete; {} bytes are dropped: {beginning}",
                    path.display(),
                    line.len()
                ));
                break;
            }
            Err(error) => log
                .warnings
                .push(format!("{}:{number}: this line is damaged and is skipped: {error}", path.display())),
        }
        let before = log.whole;
        log.whole += line.len() as u64;
        log.ends_with_newline = whole;
        if before / BLOCK != log.whole / BLOCK {
            tell(Far::Bytes(log.whole, length));
        }
    }
    if log.strays > 0 {
        log.warnings.push(format!("{}: {} answers without a call are left out", path.display(), log.strays));
    }
    Ok(log)
}

fn from_start(mut file: &File, length: u64) -> io::Result<io::Take<&File>> {
    file.rewind()?;
    Ok(file.take(length))
}

/// The view of a log with every item as it was recorded, but for those that `is_out` names.
pub(super) fn restore_view(path: &Path, is_out: impl Fn(u64) -> bool) -> io::Result<SessionView> {
    let mut view = SessionView::default();
    let push = |number, item| {
        view.push(number, item);
        true
    };
    each_item(path, |number| !is_out(number), push)?;
    Ok(view)
}

impl Replayed {
    /// Takes in a line. `is_undone` is true if a later line restores what this one removes.
    fn apply(&mut self, line: LogLine, is_undone: bool) {
        let transcript = &mut self.transcript;
        let originals = &mut self.originals;
        match line {
            LogLine::Said { n, said } => {
                transcript.last = transcript.last.max(n.saturating_sub(1));
                transcript.say(said);
            }
            LogLine::Reply { n, step } => {
                self.partial = (String::new(), String::new());
                transcript.last = transcript.last.max(n.saturating_sub(1));
                transcript.reply(step);
            }
            LogLine::Answer { n, call, answer, telemetry } => {
                self.strays += usize::from(!transcript.answer(n, call, answer, &telemetry));
            }
            LogLine::System { text, basis } => transcript.brief(SystemPrompt { text, basis }),
            LogLine::Compressed { done, summary, .. } if is_undone => {
                transcript.pass_over(&done, summary.is_some());
            }
            LogLine::Compressed { done, edits, summary } => {
                let summary = summary.map(|summary| *summary);
                transcript.compress(&done, &edits, summary, |number, item| originals.hide(number, item));
            }
            LogLine::Unloaded { .. } if is_undone => transcript.counted = None,
            LogLine::Unloaded { edits } => {
                transcript.edit(&edits, None, |number, item| originals.hide(number, item));
            }
            LogLine::Restored {} => transcript.hold(),
            LogLine::Undone { n } => {
                self.partial = (String::new(), String::new());
                originals.take_out(n..=transcript.last);
                transcript.undo(n);
            }
            LogLine::Checkpoint { name, n } => transcript.mark(name, n),
            LogLine::Titled { title } => transcript.title = title,
            LogLine::Renamed { name } => transcript.rename(name),
            LogLine::Pinned { numbers } => transcript.pin(&numbers),
            LogLine::Unpinned { numbers } => transcript.unpin(&numbers),
            LogLine::Spent { usage, cost_usd } => transcript.spend(usage, cost_usd),
            LogLine::Role { usage, cost_usd } => transcript.role(usage, cost_usd),
            LogLine::Progress { progress } => transcript.progress(*progress),
            LogLine::Partial { text, reasoning } => {
                self.partial.0.push_str(&text);
                self.partial.1.push_str(&reasoning);
            }
            LogLine::PartialVoid {} => self.partial = (String::new(), String::new()),
            LogLine::Switched { agent, model } => transcript.switch(&agent, &model),
            LogLine::State { change } => transcript.state.apply(change),
            LogLine::Taint { source } => {
                transcript.taint.get_or_insert(source);
            }
            LogLine::TurnStarted {} => transcript.start_turn(),
            LogLine::TurnCompleted { code, title } => {
                *transcript.codes.entry(code).or_default() += 1;
                transcript.title = title.unwrap_or_else(|| std::mem::take(&mut transcript.title));
            }
            // The undo before it was left out.
            LogLine::Redone {} | LogLine::Other => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::{Arc, Mutex};

    use super::super::tests::{NOON, append, begun, path, step, texts, user};
    use super::Far;

    #[test]
    fn a_long_log_tells_how_far_it_is_read() {
        let (_dir, store, mut session) = begun();
        for _ in 0..5 {
            session.say(user(&"word ".repeat(100_000)), NOON).expect("written");
        }
        let length = fs::metadata(path(&session)).expect("a log").len();
        let told = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&told);
        let watched = store.watch_reading(move |far| hears.lock().expect("one thread").push(far));
        watched.read(session.id()).expect("sound");
        let told = told.lock().expect("one thread");
        let [Far::Bytes(first, all), Far::Bytes(second, _)] = told[..] else { panic!("{told:?}") };
        assert!(1 << 20 <= first && first < second && second <= all && all == length, "{told:?}");
    }

    #[test]
    fn a_torn_last_line_is_cut_off() {
        let (_dir, store, session) = begun();
        let (id, path) = (session.id().to_owned(), path(&session));
        drop(session);
        let sound = fs::read_to_string(&path).expect("a log");
        append(&path, "{\"type\":\"said\",\"n\":2,\"time\":\"\",\"text\":\"lo");
        let (read, warnings) = store.read(&id).expect("reading leaves it alone");
        assert_eq!((read.items().len(), warnings.len()), (1, 1));
        assert_ne!(fs::read_to_string(&path).expect("a log"), sound);

        let (mut session, warnings) = store.open(&id, NOON).expect("repaired");
        assert!(warnings[0].contains("the last line is incomplete; 41 bytes are dropped"), "{warnings:?}");
        assert_eq!(fs::read_to_string(&path).expect("a log"), sound);
        session.say(user("again"), NOON).expect("written");
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
        assert_eq!((session.items().len(), warnings.len()), (1, 0));
        session.say(user("again"), NOON).expect("written");
        drop(session);
        assert_eq!(store.open(&id, NOON).expect("sound").0.items().len(), 2);
    }

    #[test]
    fn damage_in_the_middle_leaves_a_conversation_without_strays() {
        let (_dir, store, mut session) = begun();
        step(&mut session, "", &["a", "b"]);
        step(&mut session, "", &["c"]);
        session.say(user("x"), NOON).expect("written");
        let (id, path) = (session.id().to_owned(), path(&session));
        drop(session);
        let log = fs::read_to_string(&path).expect("a log");
        let mut lines: Vec<&str> = log.lines().collect();
        // The answer to `b`, and the reply that called `c`.
        lines[5] = "\0\0\0";
        lines[6] = "{}";
        fs::write(&path, lines.join("\n") + "\n").expect("written");
        let (session, warnings) = store.open(&id, NOON).expect("readable");
        let open = "interrupted: the session ended before this call did; it may have run in part";
        let expected = ["hello".to_owned(), format!("|grep|{{}}|found|grep|{{}}|{open}"), "x".to_owned()];
        assert_eq!(texts(session.items()), expected, "the answer to `c` is gone");
        assert_eq!(warnings.len(), 3, "{warnings:?}");
    }
}
