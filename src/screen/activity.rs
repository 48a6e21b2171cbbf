//! The current work of a run: the request that is waited for and the running calls. It is redrawn while it changes.

use std::collections::VecDeque;
use std::time::Instant;

use super::views::{self, CurrentWork, RunningCall, estimate_tokens};
use crate::screen::ink::Line;

/// The answer streams for this long, in milliseconds, before a rate of tokens is shown.
const ENOUGH_MS: u64 = 1000;
/// The number of lines kept of a call's output.
const LINES: usize = 5;
/// The longest unfinished line of it that is kept, in bytes.
const LONGEST_LINE: usize = 4096;

/// The work of a turn.
#[derive(Debug, Default)]
pub(super) struct Activity {
    doing: Option<(CurrentWork, Instant)>,
    calls: Vec<ActiveCall>,
    /// The time of the first piece of the reply, and the bytes since.
    streamed: Option<(Instant, usize)>,
}

/// A running call.
#[derive(Debug)]
pub(super) struct ActiveCall {
    call_id: String,
    name: String,
    pub subject: String,
    /// The helper that made it; empty for the run itself.
    whose: String,
    since: Instant,
    /// The last lines of its output, and the unfinished one.
    lines: VecDeque<String>,
    pub partial: String,
}

impl Activity {
    /// Replaces the current work.
    pub fn set(&mut self, doing: CurrentWork) {
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
        if let Some((doing @ CurrentWork::Reasoning(_), _)) = &mut self.doing {
            *doing = CurrentWork::Thinking;
        }
    }

    /// Counts a piece of reasoning.
    pub fn hear_reasoning(&mut self, bytes: usize) {
        match &mut self.doing {
            Some((CurrentWork::Reasoning(heard), _)) => *heard += bytes,
            _ => self.set(CurrentWork::Reasoning(bytes)),
        }
    }

    /// Begins a call.
    pub fn begin(&mut self, whose: &str, call_id: &str, name: &str, subject: &str) {
        let [whose, call_id, name, subject] = [whose, call_id, name, subject].map(str::to_owned);
        let (since, lines, partial) = (Instant::now(), VecDeque::new(), String::new());
        self.calls.push(ActiveCall { call_id, name, subject, whose, since, lines, partial });
    }

    /// Takes a piece of a call's output. Returns the lines that it completed.
    pub fn hear(&mut self, whose: &str, call_id: &str, chunk: &str) -> Option<String> {
        let call = self.calls.iter_mut().find(|call| call.is(whose, call_id))?;
        let mut lines = std::mem::take(&mut call.partial) + chunk;
        let is_long = lines.len() > LONGEST_LINE;
        let end = if is_long { lines.len() } else { lines.rfind('\n').map_or(0, |at| at + 1) };
        call.partial = lines.split_off(end);
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

    /// True if there is something to show.
    pub fn is_busy(&self) -> bool {
        self.doing.is_some() || !self.calls.is_empty()
    }

    /// Draws the current work in at most `rows` lines.
    pub fn lines(&self, tick: usize, room: usize, rows: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some((doing, since)) = &self.doing
            && (self.calls.is_empty() || *doing != CurrentWork::Thinking)
        {
            let rate = self.streamed.and_then(measure_rate);
            lines.push(views::draw_work(doing, rate, tick, count_millis(*since), room));
        }
        let outputs: Vec<Vec<String>> = self.calls.iter().map(ActiveCall::output).collect();
        let calls = self.calls.iter().zip(&outputs).map(|(call, output)| RunningCall {
            whose: &call.whose,
            name: &call.name,
            subject: &call.subject,
            elapsed_ms: count_millis(call.since),
            output,
        });
        let calls: Vec<RunningCall<'_>> = calls.collect();
        lines.extend(views::draw_running(&calls, room, rows.saturating_sub(lines.len())));
        lines
    }
}

impl ActiveCall {
    fn is(&self, whose: &str, call_id: &str) -> bool {
        self.call_id == call_id && self.whose == whose
    }

    /// The last lines of the output, including an unfinished one.
    fn output(&self) -> Vec<String> {
        let open = Some(self.partial.clone()).filter(|open| !open.trim().is_empty());
        let lines: Vec<String> = self.lines.iter().cloned().chain(open).collect();
        lines[lines.len().saturating_sub(LINES)..].to_vec()
    }
}

/// Estimated tokens per second.
fn measure_rate(streamed: (Instant, usize)) -> Option<u64> {
    let elapsed_ms = count_millis(streamed.0);
    (elapsed_ms >= ENOUGH_MS).then(|| estimate_tokens(streamed.1) * 1000 / elapsed_ms)
}

fn count_millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
