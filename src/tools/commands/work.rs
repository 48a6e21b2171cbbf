//! One command in the background: runs it to its end, and keeps its output for readers.

use std::io::PipeReader;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::base::output::ToolError;
use crate::base::secrets::{Redacting, Redactor};
use crate::conversation::spill::SpillWriter;
use crate::safety::Enclosure;
use crate::safety::process::{ChildEnd, ChildPatience, Cut, Exit, Leash, choose_shell};
use crate::safety::sandbox::{Denied, Walls};

use super::bounded::{BoundedInput, ShownText};
use super::confined::{Confined, ProgramOrder, find_denial};
use super::plain::PlainState;

/// The share of the room of a reading for its head.
const HEAD_PERCENT: usize = 30;

/// A command and the destinations of its output.
pub(super) struct CommandWork {
    pub confined: Arc<Confined>,
    pub redactor: Arc<Redactor>,
    pub command: String,
    pub dir: PathBuf,
    pub variables: Vec<(String, String)>,
    pub lifetime: Option<Duration>,
    pub walls: Option<Walls>,
    pub enclosure: Enclosure,
    pub leash: Arc<Leash>,
    pub input: PipeReader,
    pub output: Arc<Mutex<Unread>>,
}

/// The end of a command.
#[derive(Debug, Clone)]
pub struct WorkEnd {
    pub outcome: Result<ChildEnd, ToolError>,
    /// The time that it ran.
    pub after: Duration,
    /// The reason that the sandbox may have caused it.
    pub denied: Option<Denied>,
}

/// Output that was not read yet.
pub(super) struct Unread {
    keep: usize,
    text: BoundedInput<'static>,
    writer: SpillWriter,
}

impl CommandWork {
    /// Runs the command to its end.
    pub async fn run(self) -> WorkEnd {
        let started = Instant::now();
        let (mut plain, mut redacting) = (PlainState::default(), Redacting::new(&self.redactor));
        let mut piece = String::new();
        let mut take = |piece: &mut String| {
            if !piece.is_empty() {
                lock_unread(&self.output).push(&redacting.push(piece));
                piece.clear();
            }
        };
        let [program, flag] = choose_shell();
        let arguments = [flag, &self.command];
        let patience = ChildPatience { call: self.lifetime, leash: Some(&self.leash), ..ChildPatience::default() };
        let order = ProgramOrder {
            program,
            arguments: &arguments,
            dir: &self.dir,
            variables: &self.variables,
            patience,
            input: Some(&self.input),
        };
        let heard = |bytes: &[u8]| {
            plain.push(bytes, &mut piece);
            take(&mut piece);
        };
        let outcome = self.confined.run_within(self.walls.as_ref(), order, heard).await;
        plain.finish(&mut piece);
        take(&mut piece);
        let denied = match (&outcome, &self.walls) {
            (Ok(ended), Some(walls)) => {
                find_denial(ended, lock_unread(&self.output).text.tail(), self.enclosure, walls.plan())
            }
            _ => None,
        };
        WorkEnd { outcome, after: started.elapsed(), denied }
    }
}

/// The output, for one look or one piece.
pub(super) fn lock_unread(output: &Mutex<Unread>) -> MutexGuard<'_, Unread> {
    output.lock().expect("no holder of the output panics")
}

impl Unread {
    /// Nothing so far; at most `keep` bytes of what comes are shown, and all of it goes to `writer`.
    pub fn new(keep: usize, writer: SpillWriter) -> Self {
        Self { keep, text: BoundedInput::new(keep, None), writer }
    }

    fn push(&mut self, text: &str) {
        self.text.push(text);
        self.writer.write(text);
    }

    /// The output since the last reading.
    pub fn read(&mut self) -> ShownText {
        let kept = Some(self.writer.describe_kept());
        std::mem::replace(&mut self.text, BoundedInput::new(self.keep, None)).show_kept(HEAD_PERCENT, kept)
    }
}

impl WorkEnd {
    /// `exit 1 after 3 s`
    pub fn describe(&self) -> String {
        let after = self.after.as_secs();
        match &self.outcome {
            Ok(ChildEnd { cut: Some(Cut::Asked), .. }) => format!("stopped after {after} s"),
            Ok(ChildEnd { cut: Some(_), .. }) => format!("timed out after {after} s"),
            Ok(ChildEnd { exit: Exit::Code(code), .. }) => format!("exit {code} after {after} s"),
            Ok(ChildEnd { exit: Exit::Signal(name), .. }) => format!("killed by {name} after {after} s"),
            Err(error) => format!("failed: {error}"),
        }
    }
}
