//! The results of many tasks: one line each, in the order of the input, or as they come.
//!
//! A result is finished once it is on disk: in the output itself, or in the journal beside it while results before it are
//! missing. Whoever goes on with an output takes what is finished from both. A failed line stays until its task has
//! another one: then the later line counts, and the earlier one goes at the end, or at the next start. A thread writes,
//! several results at once, so that the disk is waited for once.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::event::RunStatus;
use crate::conversation::message::Usage;
use crate::files::regular::{self, Links};

use super::super::exit;

/// The version of the lines.
pub const VERSION: u32 = 1;

/// One result, as a line of the output.
#[derive(Debug, Serialize)]
pub struct ResultRow<'a> {
    pub v: u32,
    pub id: &'a str,
    pub status: RunStatus,
    pub exit_code: u8,
    /// Why it did not end well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    pub result: Value,
    pub usage: Usage,
    pub cost: Option<f64>,
    pub duration_ms: u64,
    pub session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<&'a str>,
    /// The digest of the template and what else decides the answer.
    pub task: &'a str,
}

impl ResultRow<'_> {
    /// Its line.
    pub fn write(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// What going on needs to know of a line.
#[derive(Debug, Deserialize)]
struct FinishedRow {
    v: u32,
    id: String,
    exit_code: u8,
    task: String,
}

/// Where a finished line lies in the journal, in bytes; without order, in the output.
pub type RowPlace = (u64, usize);

/// A line of an earlier run.
#[derive(Debug, Clone, Copy)]
pub struct FinishedLine {
    pub place: RowPlace,
    pub has_failed: bool,
}

/// A line for the writer, with its position among all.
pub enum WrittenRow {
    New {
        at: usize,
        line: Vec<u8>,
        /// The failed line of the same task.
        replaced: Option<RowPlace>,
    },
    /// It was finished before.
    Kept(usize, RowPlace),
}

/// What to do with an output that exists.
#[derive(Debug, Clone, Copy)]
pub struct GoingOn<'a> {
    /// The digest that its lines must have.
    pub task: &'a str,
    pub is_forced: bool,
    pub is_ordered: bool,
}

/// An output that was opened, and what is finished in it.
pub struct OpenedResults {
    pub writer: ResultWriter,
    /// By id.
    pub finished: HashMap<String, FinishedLine>,
}

/// Writes results on a thread of its own.
pub struct ResultWriter {
    sender: mpsc::Sender<WrittenRow>,
    thread: JoinHandle<io::Result<usize>>,
}

impl ResultWriter {
    /// Hands over a row. After a failure of the disk rows are dropped; [`ResultWriter::has_failed`] tells.
    pub fn add(&self, row: WrittenRow) {
        let _ = self.sender.send(row);
    }

    /// True if nothing can be written any more.
    pub fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until everything is written. Returns the number of results that wait in the journal for others, or for their
    /// items.
    ///
    /// # Errors
    /// The output or the journal cannot be written.
    pub fn finish(self) -> io::Result<usize> {
        drop(self.sender);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the writer failed")))
    }

    fn spawn(state: WriterState) -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { sender, thread: thread::spawn(move || state.write_all(&receiver)) }
    }
}

/// Opens an output for stdout.
///
/// # Errors
/// There is no room for temporary files.
pub fn open_stdout(is_ordered: bool) -> io::Result<OpenedResults> {
    let journal = if is_ordered { Some(tempfile::tempfile()?) } else { None };
    let state = WriterState {
        output: Box::new(io::stdout()),
        synced: None,
        journal,
        path: None,
        journal_len: 0,
        next: 0,
        ready: BTreeMap::new(),
        kept: 0,
        replaced: Vec::new(),
    };
    Ok(OpenedResults { writer: ResultWriter::spawn(state), finished: HashMap::new() })
}

/// Opens an output file, and goes on with what is finished in it and in its journal.
///
/// # Errors
/// A sentence: it holds something else, results of another task, or the disk fails.
pub fn open_file(path: &Path, going_on: GoingOn<'_>) -> Result<OpenedResults, String> {
    // Behind a link, its target is written.
    let path = &*crate::files::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let journal_path = name_journal(path);
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut finished = HashMap::new();
    // What both hold goes to a new file, which replaces one of them.
    let target = if going_on.is_ordered { &journal_path } else { path };
    let renewed = target.with_added_extension("new");
    let mut into = create_appended(&renewed).map_err(failed)?;
    hold(&into, path)?;
    let collected = into.set_len(0).map_err(failed).and_then(|()| {
        let held = (hold_existing(&journal_path)?, hold_existing(path)?);
        let len = collect_finished(&journal_path, going_on, &mut into, 0, &mut finished)?;
        Ok((held, collect_finished(path, going_on, &mut into, len, &mut finished)?))
    });
    let ((_held, output_held), len) = collected.inspect_err(|_| drop(fs::remove_file(&renewed)))?;
    into.sync_all().map_err(failed)?;
    fs::rename(&renewed, target).map_err(failed)?;
    let (output, journal) = if going_on.is_ordered {
        // It stays the same file.
        let output = output_held.map_or_else(|| create_appended(path), Ok).map_err(failed)?;
        output.set_len(0).map_err(failed)?;
        hold(&output, path)?;
        (output, Some(into))
    } else {
        let _ = fs::remove_file(&journal_path);
        (into, None)
    };
    let state = WriterState {
        synced: Some(output.try_clone().map_err(failed)?),
        output: Box::new(output),
        journal,
        path: Some(path.to_owned()),
        journal_len: len,
        next: 0,
        ready: BTreeMap::new(),
        kept: if going_on.is_ordered { finished.len() } else { 0 },
        replaced: Vec::new(),
    };
    Ok(OpenedResults { writer: ResultWriter::spawn(state), finished })
}

fn name_journal(output: &Path) -> PathBuf {
    output.with_added_extension("journal")
}

fn create_appended(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path)
}

/// Locks what another process would hold that writes the same output. It is held until the file that replaces it is.
fn hold_existing(path: &Path) -> Result<Option<File>, String> {
    let Ok(file) = OpenOptions::new().read(true).append(true).open(path) else { return Ok(None) };
    hold(&file, path)?;
    Ok(Some(file))
}

fn hold(file: &File, path: &Path) -> Result<(), String> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(format!("{} is being written by another agent map: wait for it, or end it", path.display()))
        }
        // Some network file systems have no locks.
        _ => Ok(()),
    }
}

/// Copies the finished lines of a file that are not known yet. Returns the length of the copy.
fn collect_finished(
    path: &Path,
    going_on: GoingOn<'_>,
    into: &mut File,
    mut len: u64,
    finished: &mut HashMap<String, FinishedLine>,
) -> Result<u64, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let opened = regular::open_file(path, Links::Follow).map_err(|why| format!("{} {why}", path.display()))?;
    let Some((file, _)) = opened else { return Ok(len) };
    let mut lines = BufReader::new(file);
    let (mut latest, mut read) = (HashMap::new(), 0);
    for number in 1.. {
        let mut line = Vec::new();
        // A line without its end was being written when the run ended.
        if lines.read_until(b'\n', &mut line).map_err(failed)? == 0 || line.last() != Some(&b'\n') {
            break;
        }
        let row = serde_json::from_slice::<FinishedRow>(&line).ok().filter(|row| row.v == VERSION);
        let Some(row) = row else {
            let place = path.display();
            return Err(format!("{place}:{number} is no result of agent map: name another --output-file"));
        };
        if row.task != going_on.task && !going_on.is_forced {
            let place = path.display();
            return Err(format!(
                "{place}:{number} is the result of another task: name another --output-file, or go on with --force"
            ));
        }
        // What is wrong with a line of the input is found again.
        if row.exit_code != exit::USAGE && !finished.contains_key(&row.id) {
            let place = (read, line.len());
            latest.insert(row.id, FinishedLine { place, has_failed: row.exit_code != exit::DONE });
        }
        read += line.len() as u64;
    }
    let mut latest: Vec<(String, FinishedLine)> = latest.into_iter().collect();
    latest.sort_unstable_by_key(|(_, line)| line.place);
    let mut file = lines.into_inner();
    for (id, mut kept) in latest {
        into.write_all(&read_line(&mut file, kept.place).map_err(failed)?).map_err(failed)?;
        kept.place.0 = len;
        len += kept.place.1 as u64;
        finished.insert(id, kept);
    }
    Ok(len)
}

fn read_line(file: &mut File, place: RowPlace) -> io::Result<Vec<u8>> {
    let mut line = vec![0; place.1];
    file.seek(SeekFrom::Start(place.0))?;
    file.read_exact(&mut line)?;
    Ok(line)
}

/// Takes lines out of a file.
fn remove_lines(path: &Path, mut places: Vec<RowPlace>) -> io::Result<()> {
    let renewed = path.with_added_extension("new");
    let (mut from, mut into) = (File::open(path)?, File::create(&renewed)?);
    places.sort_unstable();
    let mut at = 0;
    for (offset, len) in places {
        io::copy(&mut (&from).take(offset - at), &mut into)?;
        at = from.seek(SeekFrom::Start(offset + len as u64))?;
    }
    io::copy(&mut from, &mut into)?;
    into.sync_all()?;
    fs::rename(&renewed, path)
}

struct WriterState {
    output: Box<dyn Write + Send>,
    /// The file of the output.
    synced: Option<File>,
    /// Where rows wait for those before them; `None` without order.
    journal: Option<File>,
    /// The path of the output, if it is a file.
    path: Option<PathBuf>,
    journal_len: u64,
    /// The position of the next row of the output.
    next: usize,
    ready: BTreeMap<usize, RowPlace>,
    /// The number of earlier results whose items did not come so far: they are in the journal alone.
    kept: usize,
    /// The failed lines that have later ones.
    replaced: Vec<RowPlace>,
}

impl WriterState {
    fn write_all(mut self, rows: &mpsc::Receiver<WrittenRow>) -> io::Result<usize> {
        while let Ok(first) = rows.recv() {
            let batch: Vec<WrittenRow> = std::iter::once(first).chain(rows.try_iter()).collect();
            self.write_batch(batch)?;
        }
        if let Some(output) = &self.synced {
            output.sync_all()?;
        }
        let waiting = self.ready.len() + self.kept;
        match (&self.path, &self.journal) {
            (Some(path), None) if !self.replaced.is_empty() => remove_lines(path, self.replaced)?,
            (Some(path), Some(_)) if waiting == 0 => fs::remove_file(name_journal(path))?,
            _ => {}
        }
        Ok(waiting)
    }

    fn write_batch(&mut self, batch: Vec<WrittenRow>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for row in batch {
            match row {
                WrittenRow::New { at, line, replaced } => {
                    self.kept = self.kept.saturating_sub(usize::from(replaced.is_some()));
                    self.replaced.extend(replaced);
                    self.ready.insert(at, (self.journal_len + bytes.len() as u64, line.len()));
                    bytes.extend(line);
                }
                WrittenRow::Kept(at, place) => {
                    self.kept = self.kept.saturating_sub(1);
                    self.ready.insert(at, place);
                }
            }
        }
        let Some(journal) = &mut self.journal else {
            self.ready.clear();
            self.output.write_all(&bytes)?;
            self.output.flush()?;
            return self.synced.as_ref().map_or(Ok(()), File::sync_data);
        };
        if !bytes.is_empty() {
            journal.seek(SeekFrom::End(0))?;
            journal.write_all(&bytes)?;
            if self.path.is_some() {
                journal.sync_data()?;
            }
            self.journal_len += bytes.len() as u64;
        }
        while let Some(place) = self.ready.remove(&self.next) {
            self.output.write_all(&read_line(journal, place)?)?;
            self.next += 1;
        }
        self.output.flush()
    }
}
