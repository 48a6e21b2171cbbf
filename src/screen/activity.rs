//! The current work of a run: the request that is waited for and the running calls. It is redrawn while it changes.

use std::collections::VecDeque;
use std::time::Instant;

use super::running::CallInProgress;
use super::views::{self, CurrentWork, RunningCall};
use crate::conversation::event::{Event, EventKind};
use crate::screen::ink::Line;

/// The answer streams for this long, in milliseconds, before a rate of tokens is shown.
const ENOUGH_MS: u64 = 1000;
/// The number of lines kept of a call's output.
const LINES: usize = 5;

/// The work of a turn.
#[derive(Debug, Default)]
pub(super) struct Activity {
    doing: Option<(Doing, Instant)>,
    calls: Vec<ActiveCall>,
    /// The time of the first piece of the reply, and the bytes since.
    streamed: Option<(Instant, usize)>,
}

/// Work other than calls.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Doing {
    Thinking,
    /// The model reasons; the bytes of reasoning so far.
    Reasoning(usize),
    Retry {
        attempt: u32,
        attempts: u32,
        delay_ms: u64,
        cause: String,
    },
    Compressing,
    Role(String),
}

/// A running call.
#[derive(Debug)]
pub(super) struct ActiveCall {
    pub running: CallInProgress,
    /// The helper that made it; empty for the run itself.
    whose: String,
    since: Instant,
    lines: VecDeque<String>,
}

impl Activity {
    /// Replaces the current work.
    pub fn set(&mut self, doing: Doing) {
        self.doing = Some((doing, Instant::now()));
        self.streamed = None;
    }

    /// Ends the current work; running calls stay.
    pub fn rest(&mut self) {
        self.doing = None;
        self.streamed = None;
    }

    /// Ends all work and all calls.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// Counts a piece of the reply.
    pub fn hear_reply(&mut self, bytes: usize) {
        let streamed = self.streamed.get_or_insert_with(|| (Instant::now(), 0));
        streamed.1 += bytes;
        if let Some((doing @ Doing::Reasoning(_), _)) = &mut self.doing {
            *doing = Doing::Thinking;
        }
    }

    /// Counts a piece of reasoning.
    pub fn hear_reasoning(&mut self, bytes: usize) {
        match &mut self.doing {
            Some((Doing::Reasoning(heard), _)) => *heard += bytes,
            _ => self.set(Doing::Reasoning(bytes)),
        }
    }

    /// Begins a call.
    pub fn begin(&mut self, whose: &str, call_id: &str, name: &str, subject: &str) {
        let running = CallInProgress::new(call_id, name, subject);
        let call = ActiveCall { running, whose: whose.to_owned(), since: Instant::now(), lines: VecDeque::new() };
        self.calls.push(call);
    }

    /// Takes a piece of a call's output. Returns the lines that it completed.
    pub fn hear(&mut self, whose: &str, call_id: &str, chunk: &str) -> Option<String> {
        let call = self.calls.iter_mut().find(|call| call.is(whose, call_id))?;
        let lines = call.running.hear(chunk);
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            if call.lines.len() == LINES {
                call.lines.pop_front();
            }
            call.lines.push_back(line.to_owned());
        }
        Some(lines)
    }

    /// Ends a call.
    pub fn finish(&mut self, whose: &str, call_id: &str) -> Option<ActiveCall> {
        let at = self.calls.iter().position(|call| call.is(whose, call_id))?;
        Some(self.calls.remove(at))
    }

    /// Follows the calls of a helper.
    pub fn follow_helper(&mut self, event: &Event) {
        let whose = event.path.join(" › ");
        match &event.kind {
            EventKind::ToolStarted { call_id, name, subject, .. } => self.begin(&whose, call_id, name, subject),
            EventKind::ToolOutput { call_id, chunk } => {
                self.hear(&whose, call_id, chunk);
            }
            EventKind::ToolFinished { call_id, .. } => {
                self.finish(&whose, call_id);
            }
            _ => {}
        }
    }

    /// True if there is something to show.
    pub fn is_busy(&self) -> bool {
        self.doing.is_some() || !self.calls.is_empty()
    }

    /// Draws the current work in at most `rows` lines.
    pub fn lines(&self, tick: usize, room: usize, rows: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some((doing, since)) = &self.doing
            && (self.calls.is_empty() || !matches!(doing, Doing::Thinking))
        {
            let elapsed_ms = count_millis(*since);
            lines.push(views::draw_work(self.work(doing, elapsed_ms), tick, elapsed_ms, room));
        }
        let outputs: Vec<Vec<String>> = self.calls.iter().map(ActiveCall::output).collect();
        let calls = self.calls.iter().zip(&outputs).map(|(call, output)| RunningCall {
            whose: &call.whose,
            name: &call.running.name,
            subject: &call.running.subject,
            elapsed_ms: count_millis(call.since),
            output,
        });
        let calls: Vec<RunningCall<'_>> = calls.collect();
        lines.extend(views::draw_running(&calls, room, rows.saturating_sub(lines.len())));
        lines
    }

    fn work<'d>(&self, doing: &'d Doing, elapsed_ms: u64) -> CurrentWork<'d> {
        match doing {
            Doing::Thinking => CurrentWork::Thinking { rate: self.streamed.and_then(measure_rate) },
            Doing::Reasoning(bytes) => CurrentWork::Reasoning { tokens: estimate_tokens(*bytes) },
            Doing::Retry { attempt, attempts, delay_ms, cause } => CurrentWork::Retry {
                attempt: *attempt,
                attempts: *attempts,
                left_ms: delay_ms.saturating_sub(elapsed_ms),
                cause,
            },
            Doing::Compressing => CurrentWork::Compressing,
            Doing::Role(role) => CurrentWork::Role { role },
        }
    }
}

impl ActiveCall {
    fn is(&self, whose: &str, call_id: &str) -> bool {
        self.running.call_id == call_id && self.whose == whose
    }

    /// The last lines of the output, including an unfinished one.
    fn output(&self) -> Vec<String> {
        let open = Some(self.running.partial.clone()).filter(|open| !open.trim().is_empty());
        let lines: Vec<String> = self.lines.iter().cloned().chain(open).collect();
        lines[lines.len().saturating_sub(LINES)..].to_vec()
    }
}

/// Tokens per second, estimated at four bytes per token.
fn measure_rate((since, bytes): (Instant, usize)) -> Option<u64> {
    let elapsed_ms = count_millis(since);
    (elapsed_ms >= ENOUGH_MS).then(|| estimate_tokens(bytes) * 1000 / elapsed_ms)
}

fn estimate_tokens(bytes: usize) -> u64 {
    bytes as u64 / 4
}

fn count_millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
