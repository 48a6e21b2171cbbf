//! The spill store: the whole text of results that were cut, on disk beside the session, under short ids that `recall`
//! reads. It duplicates nothing in the log.
//!
//! Text is kept byte for byte, and appended once. A text has at most 64 MiB, a session 1 GiB; only the beginning of a
//! text is kept if there is not enough room, and [`Kept`] says how much. Every id that the model gets can be read.
//! Directories that were unchanged for 30 days are removed when something new is kept.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::base::long_text::{self, FoundText};
use crate::base::output::{Kept, Lost};
use crate::base::text;
use crate::files::private::{make_private_dir, private_file};

/// The time for which spilled text is kept.
const KEPT_FOR: Duration = Duration::from_hours(30 * 24);
/// The ending of a session's spill directory; the log beside it is `ID.jsonl`.
const ENDING: &str = "spill";

/// The directory of the texts beside a log.
pub fn place_beside(log: &Path) -> PathBuf {
    log.with_extension(ENDING)
}

/// The most that is kept, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct SpillLimits {
    pub of_one: u64,
    pub of_all: u64,
}

impl Default for SpillLimits {
    fn default() -> Self {
        Self { of_one: 64 << 20, of_all: 1 << 30 }
    }
}

/// The spilled texts of one session. Nothing is created on disk before something is kept.
#[derive(Debug, Default)]
pub struct Spill {
    limits: SpillLimits,
    state: Mutex<SpillState>,
}

#[derive(Debug, Default)]
struct SpillState {
    place: SpillPlace,
    /// Known once the directory was read.
    next: Option<u32>,
    /// The bytes of all texts, including those still being written.
    bytes: Arc<AtomicU64>,
    unsynced: Arc<Mutex<Vec<File>>>,
}

#[derive(Debug, Default)]
enum SpillPlace {
    /// A directory of the process, removed with it.
    #[default]
    Unset,
    Temporary(tempfile::TempDir),
    Beside(PathBuf),
}

/// A text that is being written to disk.
#[derive(Debug)]
pub struct SpillWriter {
    id: String,
    path: PathBuf,
    file: File,
    written: u64,
    /// The reason that it is not kept to its end.
    lost: Option<Lost>,
    limits: SpillLimits,
    of_all: Arc<AtomicU64>,
    unsynced: Arc<Mutex<Vec<File>>>,
}

impl Spill {
    /// The spilled texts of a session: those beside its log, or temporary ones.
    pub fn open(log: Option<&Path>) -> Self {
        let place = log.map_or(SpillPlace::Unset, |log| SpillPlace::Beside(log.with_extension(ENDING)));
        Self { limits: SpillLimits::default(), state: Mutex::new(SpillState { place, ..SpillState::default() }) }
    }

    /// Sets other limits.
    pub fn set_limits(self, limits: SpillLimits) -> Self {
        Self { limits, ..self }
    }

    /// Keeps a text, as far as there is room.
    pub fn keep(&self, text: &str) -> Kept {
        match self.begin() {
            Ok(mut writer) => {
                writer.write(text);
                writer.finish()
            }
            Err(error) => Kept::Nothing(explain_loss(&error)),
        }
    }

    /// Files that were written since the last call, and may not be durable yet.
    pub fn take_unsynced(&self) -> Vec<File> {
        std::mem::take(&mut *self.lock().unsynced.lock().expect("no holder panics"))
    }

    /// Begins a text that is written piece by piece.
    ///
    /// # Errors
    /// `StorageFull` if the session's limit is reached.
    pub fn begin(&self) -> io::Result<SpillWriter> {
        let mut state = self.lock();
        let dir = state.place.dir()?;
        let number = match state.next {
            Some(number) => number,
            None => {
                forget_old(&dir);
                // The entry in the parent directory must be durable.
                let above = dir.parent().and_then(|above| File::open(above).ok());
                state.unsynced.lock().expect("no holder panics").extend(above);
                let (highest, bytes) = measure_dir(&dir)?;
                state.bytes.store(bytes, Ordering::Relaxed);
                highest + 1
            }
        };
        if state.bytes.load(Ordering::Relaxed) >= self.limits.of_all {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the store is full"));
        }
        state.next = Some(number + 1);
        let id = format!("r{number}");
        let path = dir.join(&id);
        let file = private_file().create_new(true).write(true).open(&path)?;
        let (of_all, unsynced) = (Arc::clone(&state.bytes), Arc::clone(&state.unsynced));
        Ok(SpillWriter { id, path, file, written: 0, lost: None, limits: self.limits, of_all, unsynced })
    }

    /// The file of a text.
    ///
    /// # Errors
    /// `NotFound` when there is no such text.
    pub fn path(&self, id: &str) -> io::Result<PathBuf> {
        let unknown = || io::Error::from(io::ErrorKind::NotFound);
        // An id is a number after an r: nothing else becomes part of a path.
        let number = parse_number(id).ok_or_else(unknown)?;
        let path = self.lock().place.existing_dir().ok_or_else(unknown)?.join(format!("r{number}"));
        if path.is_file() { Ok(path) } else { Err(unknown()) }
    }

    /// Removes a text. What cannot be removed stays with what else the session keeps.
    pub fn discard(&self, kept: &Kept) {
        if let Kept::Whole { id } | Kept::Beginning { id, .. } = kept {
            let _ = self.path(id).and_then(fs::remove_file);
        }
    }

    /// The whole text of an id, with invalid UTF-8 replaced; `None` if it is not kept.
    pub fn whole(&self, id: &str) -> Option<io::Result<String>> {
        let path = self.path(id).ok()?;
        Some(fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Lines that contain `query`, ignoring case, with their neighbours; the newest text first. At most `limit` hits.
    ///
    /// # Errors
    /// A text cannot be read.
    pub fn search(&self, query: &str, limit: usize) -> io::Result<Vec<FoundText>> {
        let mut found: Vec<FoundText> = Vec::new();
        let mut left = limit;
        for id in self.ids().into_iter().rev() {
            if left == 0 {
                break;
            }
            let file = match self.path(&id).and_then(File::open) {
                Ok(file) => file,
                // It was removed in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let rows = long_text::search_lines(BufReader::with_capacity(1 << 16, file), query, left)?;
            if !rows.is_empty() {
                let text = FoundText { id, rows };
                left -= text.hits();
                found.push(text);
            }
        }
        Ok(found)
    }

    /// The ids that can be read, oldest first.
    pub fn ids(&self) -> Vec<String> {
        let dir = self.lock().place.existing_dir();
        let mut numbers = dir.and_then(|dir| list_numbers(&dir).ok()).unwrap_or_default();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| format!("r{number}")).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SpillState> {
        self.state.lock().expect("no holder of the spill panics")
    }
}

impl SpillPlace {
    /// The directory, created if needed.
    fn dir(&mut self) -> io::Result<PathBuf> {
        if matches!(self, Self::Unset) {
            *self = Self::Temporary(tempfile::tempdir()?);
        }
        match self {
            Self::Temporary(dir) => Ok(dir.path().to_path_buf()),
            Self::Beside(dir) => {
                make_private_dir(dir)?;
                Ok(dir.clone())
            }
            Self::Unset => unreachable!("it was just set"),
        }
    }

    fn existing_dir(&self) -> Option<PathBuf> {
        match self {
            Self::Unset => None,
            Self::Temporary(dir) => Some(dir.path().to_path_buf()),
            Self::Beside(dir) => dir.is_dir().then(|| dir.clone()),
        }
    }
}

impl SpillWriter {
    /// The id of the text.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// True if nothing more is kept.
    pub fn is_full(&self) -> bool {
        self.lost.is_some()
    }

    /// Appends, as far as there is room. What is kept is always the beginning of the text.
    pub fn write(&mut self, text: &str) {
        if self.is_full() {
            return;
        }
        let of_all = self.limits.of_all.saturating_sub(self.of_all.load(Ordering::Relaxed));
        let room = (self.limits.of_one - self.written).min(of_all);
        let taken = text::take_head(text, usize::try_from(room).unwrap_or(usize::MAX));
        if let Err(error) = self.file.write_all(taken.as_bytes()) {
            self.lost = Some(explain_loss(&error));
            // A part of the piece may have been written. If it stays, more is kept than is reported.
            let _ = self.file.set_len(self.written);
            return;
        }
        self.written += taken.len() as u64;
        self.of_all.fetch_add(taken.len() as u64, Ordering::Relaxed);
        if taken.len() < text.len() {
            self.lost = Some(Lost::Full);
        }
    }

    /// The part that is kept so far. The file must be synced before the log names it.
    pub fn describe_kept(&self) -> Kept {
        let kept = match self.lost {
            None => Kept::Whole { id: self.id.clone() },
            Some(why) if self.written == 0 => return Kept::Nothing(why),
            Some(why) => Kept::Beginning { id: self.id.clone(), bytes: self.written, why },
        };
        // The directory entry of the file must be durable as well.
        let dir = self.path.parent().and_then(|dir| File::open(dir).ok());
        let files = self.file.try_clone().ok().into_iter().chain(dir);
        self.unsynced.lock().expect("no holder panics").extend(files);
        kept
    }

    /// Ends the text. An empty one leaves no file.
    pub fn finish(self) -> Kept {
        let kept = self.describe_kept();
        if matches!(kept, Kept::Nothing(_)) {
            // A file that cannot be removed is empty.
            let _ = fs::remove_file(&self.path);
        }
        kept
    }
}

/// The meaning of an error for the text that was to be kept.
pub fn explain_loss(error: &io::Error) -> Lost {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Lost::Full,
        _ => Lost::Failed,
    }
}

fn parse_number(id: &str) -> Option<u32> {
    id.strip_prefix('r')?.parse().ok()
}

fn list_numbers(dir: &Path) -> io::Result<Vec<u32>> {
    let names = fs::read_dir(dir)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| parse_number(&name)).collect())
}

/// The highest number in use, and the bytes of all texts.
fn measure_dir(dir: &Path) -> io::Result<(u32, u64)> {
    let highest = list_numbers(dir)?.into_iter().max().unwrap_or(0);
    let bytes = fs::read_dir(dir)?.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum();
    Ok((highest, bytes))
}

/// Removes the neighbouring spill directories that were unused for too long.
fn forget_old(dir: &Path) {
    let Some(entries) = dir.parent().and_then(|parent| fs::read_dir(parent).ok()) else { return };
    let is_old = |path: &Path| {
        let changed = fs::metadata(path).and_then(|data| data.modified());
        changed.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > KEPT_FOR))
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let is_spill = path.extension().is_some_and(|ending| ending == ENDING);
        if is_spill && path != dir && is_old(&path) {
            // A directory that cannot be removed now is retried another time.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spill(dir: &Path) -> Spill {
        Spill::open(Some(&dir.join("s.jsonl")))
    }

    fn small(dir: &Path, of_one: u64, of_all: u64) -> Spill {
        spill(dir).set_limits(SpillLimits { of_one, of_all })
    }

    fn whole(id: &str) -> Kept {
        Kept::Whole { id: id.to_owned() }
    }

    fn beginning(id: &str, bytes: u64) -> Kept {
        Kept::Beginning { id: id.to_owned(), bytes, why: Lost::Full }
    }

    fn read(texts: &Spill, id: &str) -> String {
        fs::read_to_string(texts.path(id).expect("it is kept")).expect("a text")
    }

    #[test]
    fn what_is_kept_is_there_byte_for_byte_and_nothing_else_is() {
        let dir = tempfile::tempdir().expect("a directory");
        let texts = spill(dir.path());
        let text = "one\r\n\r\n中\tthree, no end";
        assert_eq!(texts.keep(text), whole("r1"));
        assert_eq!(read(&texts, "r1"), text);
        for wrong in ["r2", "../s", "r1/../../x", "", "r", "m1", "c1.1"] {
            let error = texts.path(wrong).expect_err("unknown");
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{wrong}");
        }
    }

    #[test]
    fn a_session_that_goes_on_counts_on() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(spill(dir.path()).keep("first"), whole("r1"));
        assert_eq!(spill(dir.path()).keep("second"), whole("r2"));
        assert_eq!(spill(dir.path()).ids(), ["r1", "r2"]);
        assert_eq!(small(dir.path(), 99, 13).keep("third"), beginning("r3", 2), "what is there counts");
    }

    #[test]
    fn no_id_is_a_handle_of_the_log() {
        let dir = tempfile::tempdir().expect("a directory");
        let texts = spill(dir.path());
        for _ in 0..12 {
            let kept = texts.keep("x");
            assert_eq!(crate::conversation::message::Handle::parse(kept.id().expect("an id")), None);
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_kept_from_its_beginning() {
        let dir = tempfile::tempdir().expect("a directory");
        let texts = small(dir.path(), 8, 100);
        assert_eq!(texts.keep("12345678"), whole("r1"));
        assert_eq!(texts.keep("123456789"), beginning("r2", 8));
        let mut writer = texts.begin().expect("there is room");
        for piece in ["1234", "56", "中", "7"] {
            writer.write(piece);
        }
        assert_eq!(writer.finish(), beginning("r3", 6), "no character is cut, and nothing stands behind a gap");
        assert_eq!((read(&texts, "r2"), read(&texts, "r3")), ("12345678".to_owned(), "123456".to_owned()));
        assert_eq!(
            beginning("r3", 6).notice(),
            "recall id=r3 reads the first 6 bytes; the rest is not kept: the store is full"
        );
    }

    #[test]
    fn a_full_store_says_so_and_names_nothing_that_it_does_not_hold() {
        let dir = tempfile::tempdir().expect("a directory");
        let texts = small(dir.path(), 100, 10);
        assert_eq!(texts.keep("12345678"), whole("r1"));
        assert_eq!(texts.keep("中"), Kept::Nothing(Lost::Full), "not one character has room");
        assert_eq!(texts.ids(), ["r1"], "and no empty file stays");
        let mut early = texts.begin().expect("there is room yet");
        assert!(matches!(texts.keep("123456"), Kept::Beginning { bytes: 2, .. }));
        early.write("late");
        assert_eq!(early.finish(), Kept::Nothing(Lost::Full));
        assert_eq!(texts.keep("x"), Kept::Nothing(Lost::Full));
        for id in texts.ids() {
            assert!(!read(&texts, &id).is_empty(), "{id}");
        }
        assert_eq!(Kept::Nothing(Lost::Full).notice(), "the rest is not kept: the store is full");
    }

    #[test]
    fn search_finds_lines_in_any_case_newest_text_first() {
        let dir = tempfile::tempdir().expect("a directory");
        let texts = spill(dir.path());
        for text in ["an Error here\nfine", "fine\nERROR there\nERROR again"] {
            assert!(texts.keep(text).id().is_some());
        }
        let found = |limit| -> Vec<String> {
            let found = texts.search("error", limit).expect("searched");
            let rows = found.iter().flat_map(|text| text.rows.iter().map(move |row| (&text.id, row)));
            rows.filter(|(_, row)| row.is_hit)
                .map(|(id, row)| format!("{id}:{}: {}", row.line, row.text))
                .collect()
        };
        assert_eq!(found(9), ["r2:2: ERROR there", "r2:3: ERROR again", "r1:1: an Error here"]);
        assert_eq!(found(1), ["r2:2: ERROR there"]);
    }

    #[test]
    fn without_a_session_on_disk_it_is_temporary() {
        let texts = Spill::open(None);
        assert!(texts.ids().is_empty());
        assert_eq!(texts.keep("x"), whole("r1"));
        assert_eq!(read(&texts, "r1"), "x");
    }

    /// True if `path` is among these files.
    #[cfg(unix)]
    fn holds(files: &[File], path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let wanted = fs::metadata(path).expect("it is there").ino();
        files.iter().any(|file| file.metadata().expect("an open file").ino() == wanted)
    }

    #[test]
    #[cfg(unix)]
    fn what_is_named_is_to_be_synced_with_the_directories_that_name_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let texts = spill(dir.path());
        assert_eq!(texts.keep("x"), whole("r1"));
        let files = texts.take_unsynced();
        for path in ["s.spill/r1", "s.spill", ""] {
            assert!(holds(&files, &dir.path().join(path)), "{path}");
        }
        assert!(texts.take_unsynced().is_empty(), "once");
        let mut writer = texts.begin().expect("there is room");
        writer.write("so far");
        assert_eq!(writer.describe_kept(), whole("r2"), "a background command is read while it runs");
        assert!(holds(&texts.take_unsynced(), &dir.path().join("s.spill/r2")));
    }
}
