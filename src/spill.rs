//! What did not fit into the conversation: the whole text of long results, on disk beside the session, under short ids
//! that `recall` reads.
//!
//! Lines are kept as they came. A result has at most 64 MiB, a session 1 GiB; what is more is not kept, and said so.
//! What is older than 30 days goes when something new is kept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// The most that one result may keep, in bytes.
pub const MOST_OF_ONE: u64 = 64 << 20;
/// The most that one session may keep, in bytes.
const MOST_OF_ALL: u64 = 1 << 30;
/// How long spilled text is kept.
const KEPT_FOR: Duration = Duration::from_hours(30 * 24);
/// The ending of a session's spill directory; the log beside it is `ID.jsonl`.
const ENDING: &str = "spill";

/// The spilled texts of one session. Nothing is made on disk before something is kept.
#[derive(Debug, Default)]
pub struct Spill {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    place: Place,
    /// Known once the directory was looked at.
    next: Option<u32>,
    /// Of all texts, those included that are still written.
    bytes: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
enum Place {
    /// A directory of the process, gone with it.
    #[default]
    Unset,
    Temporary(tempfile::TempDir),
    Beside(PathBuf),
}

/// A text on its way to the disk.
#[derive(Debug)]
pub struct Writer {
    id: String,
    file: File,
    written: u64,
    of_all: Arc<AtomicU64>,
}

/// Lines of a spilled text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    pub text: String,
    /// 1-based number of the first line.
    pub first: usize,
    /// How many lines `text` has.
    pub count: usize,
    /// Whether there are more behind them.
    pub more: bool,
}

/// A line that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub id: String,
    /// 1-based.
    pub line: usize,
    pub text: String,
}

impl Spill {
    /// Goes on with the spilled texts of another session: those beside its log, or temporary ones.
    pub fn attach(&self, log: Option<&Path>) {
        let place = log.map_or(Place::Unset, |log| Place::Beside(log.with_extension(ENDING)));
        *self.lock() = State { place, ..State::default() };
    }

    /// Keeps a text and gives its id.
    pub fn keep(&self, text: &str) -> io::Result<String> {
        let mut writer = self.begin()?;
        writer.write(text.as_bytes())?;
        Ok(writer.finish())
    }

    /// Begins a text that is written piece by piece.
    pub fn begin(&self) -> io::Result<Writer> {
        let mut state = self.lock();
        let dir = state.place.dir()?;
        let number = match state.next {
            Some(number) => number,
            None => {
                forget_old(&dir);
                let (highest, bytes) = measure(&dir)?;
                state.bytes.store(bytes, Ordering::Relaxed);
                highest + 1
            }
        };
        state.next = Some(number + 1);
        let id = format!("r{number}");
        let mut options = OpenOptions::new();
        options.create_new(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(dir.join(&id))?;
        Ok(Writer { id, file, written: 0, of_all: Arc::clone(&state.bytes) })
    }

    /// Lines of a text, from `first` (1-based), at most `limit` of them and `bytes` bytes.
    ///
    /// # Errors
    /// `NotFound` when there is no such text.
    pub fn read(&self, id: &str, first: usize, limit: usize, bytes: usize) -> io::Result<Lines> {
        let file = File::open(self.path(id)?)?;
        let mut text = String::new();
        let mut count = 0;
        let mut more = false;
        each_line(file, |number, line| {
            if number < first {
                return true;
            }
            if count == limit || (count > 0 && text.len() + line.len() > bytes) {
                more = true;
                return false;
            }
            text.push_str(crate::text::head(line, bytes));
            text.push('\n');
            count += 1;
            true
        })?;
        Ok(Lines { text, first, count, more })
    }

    /// The first `limit` lines that contain `query`, in any case, over all texts, newest text first.
    pub fn search(&self, query: &str, limit: usize) -> io::Result<Vec<Hit>> {
        let Some(dir) = self.lock().place.existing_dir() else { return Ok(Vec::new()) };
        let needle = query.to_lowercase();
        let mut numbers = numbers(&dir)?;
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let mut hits = Vec::new();
        for number in numbers {
            let id = format!("r{number}");
            each_line(File::open(dir.join(&id))?, |line, text| {
                if hits.len() < limit && text.to_lowercase().contains(&needle) {
                    hits.push(Hit { id: id.clone(), line, text: text.to_owned() });
                }
                hits.len() < limit
            })?;
        }
        Ok(hits)
    }

    /// The ids that can be read, oldest first.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        let dir = self.lock().place.existing_dir();
        let mut numbers = dir.and_then(|dir| numbers(&dir).ok()).unwrap_or_default();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| format!("r{number}")).collect()
    }

    fn path(&self, id: &str) -> io::Result<PathBuf> {
        let unknown = || io::Error::from(io::ErrorKind::NotFound);
        // An id is a number behind an r: nothing else becomes part of a path.
        number(id).ok_or_else(unknown)?;
        Ok(self.lock().place.existing_dir().ok_or_else(unknown)?.join(id))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the spill panics")
    }
}

impl Place {
    /// The directory, made if need be.
    fn dir(&mut self) -> io::Result<PathBuf> {
        if matches!(self, Self::Unset) {
            *self = Self::Temporary(tempfile::tempdir()?);
        }
        match self {
            Self::Temporary(dir) => Ok(dir.path().to_path_buf()),
            Self::Beside(dir) => {
                let mut builder = fs::DirBuilder::new();
                builder.recursive(true);
                #[cfg(unix)]
                std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
                builder.create(&dir)?;
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

impl Writer {
    /// What `recall` reads the text by, from the first write on.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether more is kept.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Appends; what is beyond the limits is dropped.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.room()).unwrap_or(usize::MAX);
        let taken = &bytes[..bytes.len().min(room)];
        self.file.write_all(taken)?;
        self.written += taken.len() as u64;
        self.of_all.fetch_add(taken.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the text and gives its id.
    #[must_use]
    pub fn finish(self) -> String {
        self.id
    }

    fn room(&self) -> u64 {
        let of_all = MOST_OF_ALL.saturating_sub(self.of_all.load(Ordering::Relaxed));
        (MOST_OF_ONE - self.written).min(of_all)
    }
}

fn each_line(file: File, mut seen: impl FnMut(usize, &str) -> bool) -> io::Result<()> {
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if !seen(number, text.trim_end_matches(['\n', '\r'])) {
            break;
        }
    }
    Ok(())
}

fn number(id: &str) -> Option<u32> {
    id.strip_prefix('r')?.parse().ok()
}

fn numbers(dir: &Path) -> io::Result<Vec<u32>> {
    let names = fs::read_dir(dir)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| number(&name)).collect())
}

/// The highest number that is taken, and the bytes of all.
fn measure(dir: &Path) -> io::Result<(u32, u64)> {
    let highest = numbers(dir)?.into_iter().max().unwrap_or(0);
    let bytes = fs::read_dir(dir)?.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum();
    Ok((highest, bytes))
}

/// Removes the spill directories beside this one that nothing was added to for long.
fn forget_old(dir: &Path) {
    let Some(entries) = dir.parent().and_then(|parent| fs::read_dir(parent).ok()) else { return };
    let is_old = |path: &Path| {
        let changed = fs::metadata(path).and_then(|data| data.modified());
        changed.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > KEPT_FOR))
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let is_spill = path.extension().is_some_and(|ending| ending == ENDING);
        if is_spill && path != dir && is_old(&path) {
            // What cannot be removed now can be removed another day.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spill(dir: &Path) -> Spill {
        let spill = Spill::default();
        spill.attach(Some(&dir.join("s.jsonl")));
        spill
    }

    #[test]
    fn what_is_kept_is_read_by_id_page_by_page() {
        let dir = tempfile::tempdir().expect("a directory");
        let texts = spill(dir.path());
        assert_eq!(texts.keep("one\ntwo\nthree\n").expect("kept"), "r1");
        let page = texts.read("r1", 2, 1, 1000).expect("read");
        assert_eq!((page.text.as_str(), page.count, page.more), ("two\n", 1, true));
        assert!(!texts.read("r1", 3, 9, 1000).expect("read").more);
        for wrong in ["r2", "../s", "r1/../../x", ""] {
            assert_eq!(
                texts.read(wrong, 1, 1, 9).expect_err("unknown").kind(),
                io::ErrorKind::NotFound,
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_session_that_goes_on_counts_on() {
        let dir = tempfile::tempdir().expect("a directory");
        spill(dir.path()).keep("first").expect("kept");
        assert_eq!(spill(dir.path()).keep("second").expect("kept"), "r2");
        assert_eq!(spill(dir.path()).ids(), ["r1", "r2"]);
    }

    #[test]
    fn search_finds_lines_in_any_case_newest_text_first() {
        let dir = tempfile::tempdir().expect("a directory");
        let texts = spill(dir.path());
        texts.keep("an Error here\nfine").expect("kept");
        texts.keep("fine\nERROR there").expect("kept");
        let hits: Vec<String> = texts
            .search("error", 10)
            .expect("searched")
            .iter()
            .map(|hit| format!("{}:{}: {}", hit.id, hit.line, hit.text))
            .collect();
        assert_eq!(hits, ["r2:2: ERROR there", "r1:1: an Error here"]);
    }

    #[test]
    fn without_a_session_on_disk_it_is_temporary() {
        let texts = Spill::default();
        texts.attach(None);
        assert!(texts.ids().is_empty());
        let id = texts.keep("x").expect("kept");
        assert_eq!(texts.read(&id, 1, 9, 9).expect("read").text, "x\n");
    }
}
