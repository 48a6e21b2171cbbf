//! Sessions as lists show them: which were written last, and what the beginning and the end of a log say of it.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::Duration;
use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::base::age;
use crate::conversation::attachment::strip_attachments;
use crate::files::regular::{Links, open_file};

use super::entry::{LogHeader, LogLine, OLDEST_VERSION};
use super::error::SessionError;
use super::header::{no_log, read_header};
use super::id::format_stamp;
use super::lines::LinesBack;
use super::transcript::make_title;
use crate::base::seal::SealCheck;

/// A session as lists show it, read from the beginning and the end of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionSummary {
    pub id: String,
    /// What the person called it, else their first words, on one line; empty if there are none yet.
    pub title: String,
    /// True if the person gave it its title.
    pub named: bool,
    pub workspace: String,
    pub agent: String,
    pub model: String,
    /// For a helper's session: the session of the agent that called it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The copy of the workspace in which it works, if it does not work there itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<PathBuf>,
    /// True if that holds only what changed, as a layer over the workspace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_layer: bool,
    /// Both times are in RFC 3339.
    pub created_at: String,
    pub updated_at: String,
    /// The size of the log.
    pub bytes: u64,
    pub path: PathBuf,
}

impl SessionSummary {
    /// How long ago it was written last, in words.
    pub fn describe_age(&self, now: Timestamp) -> String {
        let written = self.updated_at.parse::<Timestamp>().unwrap_or(now);
        age::describe_age(now.duration_since(written).as_secs())
    }
}

/// Sessions, and the logs that cannot be read.
#[derive(Debug, Default)]
pub struct ListedSessions {
    pub sessions: Vec<SessionSummary>,
    pub left_out: Vec<SessionError>,
}

/// The logs with the times when they were written, the newest first. A file can bear a time that has not come yet,
/// which its system did not give it.
pub(super) fn sort_newest(logs: Vec<PathBuf>, now: Timestamp) -> Vec<(SystemTime, PathBuf)> {
    let now = SystemTime::from(now);
    let written = |path: &Path| match fs::metadata(path).and_then(|data| Ok((data.modified()?, changed(&data)))) {
        Ok((written, changed)) => {
            if written <= now {
                written
            } else {
                changed.min(now)
            }
        }
        Err(_) => SystemTime::UNIX_EPOCH,
    };
    let mut logs: Vec<_> = logs.into_iter().map(|path| (written(&path), path)).collect();
    logs.sort_by(|(a_written, a), (b_written, b)| b_written.cmp(a_written).then_with(|| id_of(b).cmp(&id_of(a))));
    logs
}

/// When the system last changed the file or what it knows of it.
#[cfg(unix)]
fn changed(data: &fs::Metadata) -> SystemTime {
    use std::os::unix::fs::MetadataExt;
    let seconds = u64::try_from(data.ctime()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(seconds, u32::try_from(data.ctime_nsec()).unwrap_or_default())
}

#[cfg(not(unix))]
fn changed(_: &fs::Metadata) -> SystemTime {
    SystemTime::UNIX_EPOCH
}

/// Reads the header and the end; where no turn has ended yet, up to the user's first message.
pub(super) fn read_summary(path: &Path, written: SystemTime) -> Result<SessionSummary, SessionError> {
    let (file, bytes) = open_log(path)?;
    let header = read_first_line(path, &file)?;
    let is_sealed = header.v > OLDEST_VERSION;
    let titled = find_title(&file, is_sealed).ok().flatten();
    let (title, named) = match titled {
        Some(Titled { name: Some(name), .. }) => (Some(name), true),
        Some(titled) => (titled.title, false),
        None => (find_first_message(&file, is_sealed), false),
    };
    let updated_at = Timestamp::try_from(written).map(format_stamp).unwrap_or_default();
    Ok(SessionSummary {
        id: header.id,
        title: title.unwrap_or_default(),
        named,
        workspace: header.workspace,
        agent: header.agent,
        model: header.model,
        parent: header.parent,
        copy: header.copy.map(PathBuf::from),
        is_layer: header.is_layer,
        created_at: header.created_at,
        updated_at,
        bytes,
        path: path.to_path_buf(),
    })
}

/// The session that this one is a helper's of, by its first line alone.
pub(super) fn read_parent(path: &Path) -> Option<String> {
    read_first_line(path, &open_log(path).ok()?.0).ok()?.parent
}

fn read_first_line(path: &Path, file: &File) -> Result<LogHeader, SessionError> {
    /// A header is short.
    const HEADER: usize = 1024;
    let mut lines = BufReader::with_capacity(HEADER, file).split(b'\n');
    let first = lines.next().and_then(Result::ok).ok_or_else(|| no_log(path, "it is empty"))?;
    Ok(read_header(path, &first)?.header)
}

/// The title that the first message gives.
fn find_first_message(mut file: &File, is_sealed: bool) -> Option<String> {
    /// A system prompt comes before it; a session with a longer one has no title.
    const MOST_BYTES: u64 = 512 * 1024;
    file.rewind().ok()?;
    let mut check = SealCheck::of_sealed(is_sealed);
    let mut lines = BufReader::new(file.take(MOST_BYTES)).split(b'\n').map_while(Result::ok);
    lines.find_map(|line| Some(line).filter(|line| check.is_sound(line)).and_then(|line| read_message(&line)))
}

/// What a line at the end of a log says that the session is called.
#[derive(Debug, Default, Deserialize)]
struct Titled {
    title: Option<String>,
    name: Option<String>,
}

/// The title that a line gives to the session, if it is a message of the person.
fn read_message(line: &[u8]) -> Option<String> {
    match LogLine::parse(line).ok()? {
        LogLine::Said { said, .. } if said.author.is_person() => Some(make_title(strip_attachments(&said.text))),
        _ => None,
    }
}

/// What the end of a log says that the session is called; `None` if it does not say.
fn find_title(file: &File, is_sealed: bool) -> io::Result<Option<Titled>> {
    /// The end of the last turn, or an undo, is seldom further from the end.
    const MOST_BYTES: usize = 4 << 20;
    const STARTS: [&[u8]; 4] =
        [br#"{"type":"turn.completed""#, br#"{"type":"titled""#, br#"{"type":"undone""#, br#"{"type":"redone""#];
    let mut renamed = None;
    let (mut lines, mut bytes, mut first_after) = (LinesBack::new(file)?, 0, None);
    while bytes < MOST_BYTES
        && let Some(line) = lines.read()?
    {
        bytes += line.len();
        let is_sound = || SealCheck::of_sealed(is_sealed).is_sound(&line);
        if STARTS.iter().any(|start| line.starts_with(start)) {
            if is_sound() {
                let mut titled: Titled = serde_json::from_slice(&line)?;
                titled.name = renamed.unwrap_or(titled.name);
                titled.title = titled.title.filter(|title| !title.is_empty()).or(first_after);
                return Ok(Some(titled));
            }
        } else if line.starts_with(br#"{"type":"renamed""#) && is_sound() {
            let Titled { name, .. } = serde_json::from_slice(&line)?;
            renamed.get_or_insert(name.filter(|name| !name.is_empty()));
        } else if line.starts_with(br#"{"type":"said""#) && is_sound() {
            first_after = read_message(&line).or(first_after);
        }
    }
    Ok(renamed.map(|name| Titled { name, title: first_after }))
}

/// Opens a log for reading. What is no regular file is refused: a FIFO would never end.
pub(super) fn open_log(path: &Path) -> Result<(File, u64), SessionError> {
    let opened = open_file(path, Links::Follow).map_err(|why| no_log(path, format!("it {why}")))?;
    opened.ok_or_else(|| SessionError::io(path, "read", io::ErrorKind::NotFound.into()))
}

/// The id of a session, by its log.
pub(super) fn id_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
