//! Shows a run to a person: the answer on stdout, everything else on stderr.
//!
//! [`Look`] decides what goes where. Text is written as it arrives, never held back for a better layout. A line begun
//! on one stream ends before the other writes to the same screen. Errors on stderr are ignored: only a closed stdout
//! means that nobody sees the answer.

use std::io::{self, Write};

use serde_json::Value;

use super::display::{Display, Part, Picture, Sketch};
use super::errands::Errands;
use super::line;
use super::look::{AnswerTo, Look, Verbosity};
use super::outlet::{Outlet, Outlets};
use super::plan::Checklist;
use super::running::Running;
use crate::contract::EventSink;
use crate::event::{Event, EventKind, Message, Reply, RunCompleted, RunStarted, RunStatus};
use crate::ink::Ink;
use crate::text;

/// Shows events on `A` (stdout) and `P` (stderr).
pub struct Screen<A, P> {
    answer: A,
    progress: P,
    look: Look,
    display: Display,
    running: Vec<Running>,
    /// The step that was requested and has no reply.
    asking: Option<u64>,
    /// The text of the current step that was shown.
    shown: String,
    /// The last byte written to this stream was not a line feed.
    answer_open: bool,
    progress_open: bool,
    /// A script writes the replies, which cost nothing.
    is_scripted: bool,
    /// The lines shown last below the line of a call.
    below: String,
    checklist: Checklist,
    errands: Errands,
}

impl Screen<Outlet, Outlet> {
    /// Shows events on the streams of this process.
    #[must_use]
    pub fn on(outlets: &Outlets, look: Look) -> Self {
        Self::new(outlets.answer.clone(), outlets.progress.clone(), look, outlets.display.clone())
    }
}

impl<A: Write + Send, P: Write + Send> Screen<A, P> {
    /// `display` is shared with the sink that asks questions.
    pub fn new(answer: A, progress: P, look: Look, display: Display) -> Self {
        Self {
            answer,
            progress,
            look,
            display,
            running: Vec::new(),
            asking: None,
            shown: String::new(),
            answer_open: false,
            progress_open: false,
            is_scripted: false,
            below: String::new(),
            errands: Errands::default(),
            checklist: Checklist::default(),
        }
    }

    fn on_run_started(&mut self, run: &RunStarted) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_scripted, run.scripted) && run.scripted {
            let model = text::one_line(&run.model, 60);
            self.say(Ink::Dim, &format!("replies are scripted (model {model})"))?;
        }
        Ok(())
    }

    /// A second request of a step voids the text that was shown.
    fn on_request(&mut self, step: u64) -> io::Result<()> {
        let again = self.asking.replace(step) == Some(step);
        self.end_answer_line()?;
        self.void(again)?;
        self.work("thinking");
        Ok(())
    }

    /// Forgets the text of this step, and says so if it will be written again.
    fn void(&mut self, again: bool) -> io::Result<()> {
        if std::mem::take(&mut self.shown).is_empty() || !again {
            return Ok(());
        }
        self.say(Ink::Yellow, "the answer above was cut off and starts again")
    }

    fn on_text(&mut self, delta: &str) -> io::Result<()> {
        if self.look.answer != AnswerTo::Live {
            return Ok(());
        }
        // Some models begin with empty lines.
        let delta = if self.shown.is_empty() { delta.trim_start_matches(['\n', '\r']) } else { delta };
        if delta.is_empty() {
            return Ok(());
        }
        self.idle();
        self.end_progress_line();
        self.shown.push_str(delta);
        self.write_answer(delta)
    }

    fn on_reasoning(&mut self, delta: &str) -> io::Result<()> {
        if self.look.verbosity < Verbosity::Verbose || !self.look.progress_on_terminal {
            return Ok(());
        }
        self.idle();
        if self.look.one_screen {
            self.end_answer_line()?;
        }
        let delta = text::visible(delta);
        let painted = self.look.style.paint(Ink::Dim, &delta);
        let _ = self.progress.write_all(painted.as_bytes()).and_then(|()| self.progress.flush());
        self.progress_open = !delta.ends_with('\n');
        Ok(())
    }

    fn on_reply(&mut self, reply: &Reply) -> io::Result<()> {
        self.asking = None;
        self.idle();
        match self.look.answer {
            AnswerTo::Live => {
                if self.shown.is_empty() {
                    self.on_text(&reply.content)?;
                }
                self.end_answer_line()
            }
            // Words beside calls are not the answer.
            AnswerTo::AtEnd | AnswerTo::Nowhere if reply.tool_calls.is_empty() => Ok(()),
            AnswerTo::AtEnd | AnswerTo::Nowhere => self.words(&reply.content),
        }
    }

    fn on_call_started(&mut self, call_id: &str, name: &str, subject: &str) -> io::Result<()> {
        self.running.push(Running::new(call_id, name, subject));
        if self.look.one_screen {
            self.end_answer_line()?;
        }
        self.end_progress_line();
        self.show_running("");
        if self.look.verbosity == Verbosity::Verbose {
            let label = line::label(name, subject, self.room().saturating_sub(2));
            self.say(Ink::Dim, &format!("○ {label}"))?;
        }
        Ok(())
    }

    fn on_call_output(&mut self, call_id: &str, chunk: &str) -> io::Result<()> {
        let verbose = self.look.verbosity == Verbosity::Verbose;
        if !verbose && !self.look.live {
            return Ok(());
        }
        let Some(call) = self.running.iter_mut().find(|call| call.call_id == call_id) else {
            return Ok(());
        };
        let (lines, last) = call.hear(chunk);
        self.show_running(&last);
        if verbose {
            for line in lines.lines() {
                self.say_output(line)?;
            }
        }
        Ok(())
    }

    fn on_call_finished(&mut self, event: &EventKind) -> io::Result<()> {
        let EventKind::ToolFinished { call_id, name, status, summary, telemetry, .. } = event else {
            return Ok(());
        };
        let at = self.running.iter().position(|call| call.call_id == *call_id);
        let call = at.map(|at| self.running.remove(at));
        if self.running.is_empty() {
            self.idle();
        } else {
            self.show_running("");
        }
        if let Some(call) = call.as_ref().filter(|call| !call.partial.is_empty())
            && self.look.verbosity == Verbosity::Verbose
        {
            self.say_output(&call.partial)?;
        }
        if self.look.verbosity == Verbosity::Quiet {
            return Ok(());
        }
        let subject = call.as_ref().map_or("", |call| &call.subject);
        let (outcome, below) = summary.split_once('\n').unwrap_or((summary, ""));
        let line = line::finished(name, subject, *status, outcome, telemetry, self.room(), self.look.style);
        self.put_line(&line)?;
        self.show_below(below)
    }

    /// Shows the lines below a call, unless they equal the ones shown last.
    fn show_below(&mut self, lines: &str) -> io::Result<()> {
        if lines.is_empty() || lines == self.below {
            return Ok(());
        }
        lines.clone_into(&mut self.below);
        for line in lines.lines() {
            let line = format!("  {}", text::one_line(line, self.room().saturating_sub(2)));
            self.say(Ink::Dim, &line)?;
        }
        Ok(())
    }

    fn on_retry(&mut self, attempt: u32, attempts: u32, delay_ms: u64, cause: &str) -> io::Result<()> {
        self.idle();
        self.end_answer_line()?;
        if self.look.verbosity > Verbosity::Quiet {
            self.say(Ink::Yellow, &line::retry(attempt, attempts, delay_ms, cause, self.room()))?;
            self.work("waiting to try again");
        }
        self.void(true)
    }

    fn on_completed(&mut self, run: &RunCompleted) -> io::Result<()> {
        self.idle();
        self.running.clear();
        self.end_answer_line()?;
        self.show_result(run)?;
        self.shown.clear();
        self.asking = None;
        if self.look.footer && run.steps > 0 {
            let footer = line::footer(run, self.is_scripted, self.room());
            self.say(Ink::Dim, &footer)?;
        }
        if run.exit_code != 0 {
            let failure = line::failure(run);
            let failure =
                (self.look.width)().map_or(failure.as_str().into(), |_| text::fold(&failure, self.room()));
            self.say(Ink::Red, &failure)?;
        }
        Ok(())
    }

    /// Writes the final answer, unless it has been shown already.
    fn show_result(&mut self, run: &RunCompleted) -> io::Result<()> {
        const SCHEMA_NOT_MATCHED: u8 = 10;
        let answered = match run.status {
            RunStatus::Completed => !self.look.schema || run.exit_code != SCHEMA_NOT_MATCHED,
            // The summary after a limit is an answer, but never the requested data.
            RunStatus::Limit => !self.look.schema,
            RunStatus::Error | RunStatus::Interrupted => false,
        };
        let result = match &run.result {
            Value::Null => return Ok(()),
            Value::String(text) if !self.look.schema || !answered => text.clone(),
            data if self.look.answer_on_terminal => format!("{data:#}"),
            data => data.to_string(),
        };
        if !answered {
            return if run.status == RunStatus::Limit { self.words(&result) } else { Ok(()) };
        }
        let shown = self.look.answer == AnswerTo::Live && self.shown.trim() == result.trim();
        if shown || result.is_empty() || self.look.answer == AnswerTo::Nowhere {
            return Ok(());
        }
        self.write_answer(&result)?;
        self.end_answer_line()
    }

    /// Shows words of the model that are not the answer.
    fn words(&mut self, words: &str) -> io::Result<()> {
        let words = text::visible(words.trim());
        if words.is_empty() || self.look.verbosity == Verbosity::Quiet {
            return Ok(());
        }
        self.put_line(&words)
    }

    /// Shows one line of a running command.
    fn say_output(&mut self, output: &str) -> io::Result<()> {
        let output = text::visible(output.trim_end_matches('\r')).replace('\t', "    ");
        let line = format!("  │ {}", text::cut(&output, self.room().saturating_sub(4)));
        self.say(Ink::Dim, &line)
    }

    /// Writes a line of our own to stderr.
    fn say(&mut self, ink: Ink, line: &str) -> io::Result<()> {
        self.put_line(&self.look.style.paint(ink, line))
    }

    /// Writes a line to stderr, after the end of the open line on stdout.
    fn put_line(&mut self, line: &str) -> io::Result<()> {
        if self.look.one_screen {
            self.end_answer_line()?;
        }
        self.end_progress_line();
        // One write per line, so that lines of two processes in one log do not mix.
        let line = format!("{line}\n");
        let _ = self.progress.write_all(line.as_bytes()).and_then(|()| self.progress.flush());
        Ok(())
    }

    fn write_answer(&mut self, text: &str) -> io::Result<()> {
        let text = if self.look.answer_on_terminal { text::visible(text) } else { text.into() };
        self.answer_open = !text.ends_with('\n');
        self.answer.write_all(text.as_bytes())?;
        self.answer.flush()
    }

    fn end_answer_line(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.answer_open) {
            return Ok(());
        }
        self.answer.write_all(b"\n")?;
        self.answer.flush()
    }

    fn end_progress_line(&mut self) {
        if std::mem::take(&mut self.progress_open) {
            let _ = self.progress.write_all(b"\n").and_then(|()| self.progress.flush());
        }
    }

    fn show_running(&mut self, last_output: &str) {
        let Some(call) = self.running.last().filter(|_| self.look.live) else {
            return;
        };
        // The spinner and a space precede it.
        let room = self.room().saturating_sub(2);
        self.work(&line::running(&call.name, &call.subject, self.running.len() - 1, last_output, room));
    }

    fn work(&self, label: &str) {
        let line = crate::ink::Line::from((Ink::Dim, label));
        let picture: Picture = Box::new(move |_| Sketch::from(vec![line.clone()]));
        self.display.set(Part::Work, Some(picture));
    }

    fn idle(&self) {
        self.display.set(Part::Work, None);
    }

    fn room(&self) -> usize {
        line::room((self.look.width)())
    }
}

impl<A: Write + Send, P: Write + Send> EventSink for Screen<A, P> {
    fn emit(&mut self, event: &Event) -> io::Result<()> {
        if !event.path.is_empty() {
            let line = self.errands.line(event, self.look.verbosity, self.room());
            return line.map_or(Ok(()), |(ink, line)| self.say(ink, &line));
        }
        match &event.kind {
            EventKind::RunStarted(run) => self.on_run_started(run),
            EventKind::RequestStarted { step, .. } => self.on_request(*step),
            EventKind::TextDelta { text } => self.on_text(text),
            EventKind::ReasoningDelta { text } => self.on_reasoning(text),
            EventKind::Message(Message::Assistant(reply)) if !reply.given => self.on_reply(reply),
            EventKind::ToolStarted { call_id, name, subject, .. } => self.on_call_started(call_id, name, subject),
            EventKind::ToolOutput { call_id, chunk } => self.on_call_output(call_id, chunk),
            kind @ EventKind::ToolFinished { .. } => self.on_call_finished(kind),
            EventKind::Retry { attempt, attempts, delay_ms, cause } => {
                self.on_retry(*attempt, *attempts, *delay_ms, cause)
            }
            EventKind::Warning { message } => {
                let message = text::one_line(message, usize::MAX / 8);
                self.say(Ink::Yellow, &format!("warning: {message}"))
            }
            EventKind::RunCompleted(run) => self.on_completed(run),
            _ if self.look.verbosity == Verbosity::Quiet => Ok(()),
            EventKind::SkillLoaded { name, tokens, .. } => {
                self.say(Ink::Dim, &line::skill(name, "loaded", *tokens, self.room()))
            }
            EventKind::SkillUnloaded { name, tokens, .. } => {
                self.say(Ink::Dim, &line::skill(name, "unloaded", *tokens, self.room()))
            }
            EventKind::ContextCompressing { .. } => {
                self.work("making room in the context");
                Ok(())
            }
            EventKind::ContextCompressed(done) => {
                self.idle();
                self.say(Ink::Dim, &line::compressed(done, self.room()))
            }
            EventKind::PermissionResolved { name, verdict, by, .. }
                if self.look.verbosity == Verbosity::Verbose =>
            {
                let resolved = format!("{verdict:?} by {by:?}").to_lowercase();
                self.say(Ink::Dim, &text::one_line(&format!("  {name} {resolved}"), self.room()))
            }
            EventKind::RoleStarted { role, .. } => {
                self.work(&text::one_line(&format!("{role} thinking"), self.room().saturating_sub(2)));
                Ok(())
            }
            EventKind::RoleReplied { .. } => {
                self.idle();
                Ok(())
            }
            kind => {
                let lines = self.checklist.lines(kind, self.room());
                lines.into_iter().try_for_each(|(ink, line)| self.say(ink, &line))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CallTelemetry, ContextSize};
    use crate::message::{CallStatus, FinishReason, ToolCall, Usage};
    use crate::sink::{Facts, look};

    const TERMINAL: Facts<'_> = Facts {
        stdout_terminal: true,
        stderr_terminal: true,
        json: false,
        stream: false,
        schema: false,
        quiet: false,
        verbose: false,
        chat: false,
        colour: crate::ink::Colour::Auto,
        no_color: Some("1"),
        // No spinner: what is drawn over is not in the text.
        term: Some("dumb"),
        abilities: crate::terminal::Abilities::NONE,
        theme: crate::config::ThemeChoice::Auto,
    };
    const PIPE: Facts<'_> = Facts { stdout_terminal: false, stderr_terminal: false, ..TERMINAL };

    /// Returns stdout and stderr after these events.
    fn shown(facts: &Facts<'_>, kinds: impl IntoIterator<Item = EventKind>) -> (String, String) {
        let (mut answer, mut progress) = (Vec::new(), Vec::new());
        let mut screen = Screen::new(&mut answer, &mut progress, look(facts, || Some(40)), Display::default());
        for (seq, kind) in (0..).zip(kinds) {
            let (time, session_id, run_id) = Default::default();
            let event = Event { v: 1, kind, seq, time, session_id, run_id, path: Vec::new() };
            screen.emit(&event).expect("a Vec takes everything");
        }
        let text = |bytes| String::from_utf8(bytes).expect("only text is written");
        (text(answer), text(progress))
    }

    fn request() -> EventKind {
        EventKind::RequestStarted { step: 1, messages: 2, input_tokens: 3, prefix_tokens: 0 }
    }

    fn text(text: &str) -> EventKind {
        EventKind::TextDelta { text: text.to_owned() }
    }

    fn reply(content: &str, calls: usize) -> EventKind {
        let call = ToolCall { id: "1".to_owned(), name: "read_file".to_owned(), arguments: "{}".to_owned() };
        EventKind::Message(Message::Assistant(Reply {
            content: content.to_owned(),
            tool_calls: vec![call; calls],
            finish_reason: FinishReason::Stop,
            ..Reply::default()
        }))
    }

    fn call() -> [EventKind; 3] {
        let (call_id, name) = ("1".to_owned(), "read_file".to_owned());
        [
            EventKind::ToolStarted {
                call_id: call_id.clone(),
                name: name.clone(),
                arguments: Value::Null,
                subject: "a.rs".to_owned(),
            },
            EventKind::ToolOutput { call_id: call_id.clone(), chunk: "one\ntwo\nthr".to_owned() },
            EventKind::ToolFinished {
                spill_id: None,
                call_id,
                name,
                status: CallStatus::Ok,
                summary: "42 lines".to_owned(),
                telemetry: CallTelemetry::default(),
                truncated: false,
            },
        ]
    }

    fn end(status: RunStatus, exit_code: u8, result: impl Into<Value>) -> EventKind {
        EventKind::RunCompleted(RunCompleted {
            status,
            exit_code,
            reason: "because".to_owned(),
            result: result.into(),
            outputs: None,
            usage: Usage::default(),
            cost_usd: None,
            turns: 1,
            steps: 1,
            tool_calls: 0,
            denied: 0,
            duration_ms: 10,
        })
    }

    /// A step with words and a call, then the answer in pieces.
    fn a_run() -> Vec<EventKind> {
        let mut kinds = vec![request(), text("Let me "), text("look."), reply("Let me look.", 1)];
        kinds.extend(call());
        kinds.extend([request(), text("\nIt is "), text("日本語\u{1b}[31m.")]);
        kinds.extend([
            reply("\nIt is 日本語\u{1b}[31m.", 0),
            end(RunStatus::Completed, 0, "\nIt is 日本語\u{1b}[31m."),
        ]);
        kinds
    }

    #[test]
    fn a_terminal_sees_every_text_as_it_comes_and_no_escape() {
        let (answer, progress) = shown(&TERMINAL, a_run());
        assert_eq!(answer, "Let me look.\nIt is 日本語␛[31m.\n");
        assert_eq!(progress, "● read_file a.rs · 42 lines\n");
    }

    #[test]
    fn a_pipe_gets_exactly_the_final_answer_and_stderr_the_rest() {
        let (answer, progress) = shown(&PIPE, a_run());
        assert_eq!(answer, "\nIt is 日本語\u{1b}[31m.\n");
        assert_eq!(progress, "Let me look.\n● read_file a.rs · 42 lines\n");
    }

    #[test]
    fn stream_sends_every_text_into_the_pipe() {
        let (answer, progress) = shown(&Facts { stream: true, ..PIPE }, a_run());
        assert_eq!(answer, "Let me look.\nIt is 日本語\u{1b}[31m.\n");
        assert_eq!(progress, "● read_file a.rs · 42 lines\n");
    }

    #[test]
    fn json_leaves_stdout_alone() {
        let (answer, progress) = shown(&Facts { json: true, ..PIPE }, a_run());
        assert_eq!(answer, "");
        assert_eq!(progress, "Let me look.\n● read_file a.rs · 42 lines\n");
    }

    #[test]
    fn quiet_leaves_warnings_and_the_reason() {
        let mut kinds = a_run();
        kinds.pop();
        kinds.push(EventKind::Warning { message: "odd".to_owned() });
        kinds.push(end(RunStatus::Error, 5, Value::Null));
        let (answer, progress) = shown(&Facts { quiet: true, ..PIPE }, kinds);
        assert_eq!((answer.as_str(), progress.as_str()), ("", "warning: odd\nerror: because\n"));
    }

    #[test]
    fn verbose_shows_the_live_output_of_a_command() {
        let (_, progress) = shown(&Facts { verbose: true, ..PIPE }, call());
        assert_eq!(progress, "○ read_file a.rs\n  │ one\n  │ two\n  │ thr\n● read_file a.rs · 42 lines\n");
    }

    #[test]
    fn a_retry_voids_what_was_shown_and_a_pipe_never_sees_it() {
        let retry = EventKind::Retry { attempt: 2, attempts: 5, delay_ms: 1200, cause: "HTTP 429".to_owned() };
        let kinds = || {
            [request(), text("Hal"), retry.clone(), text("Hello"), reply("Hello", 0)].into_iter().chain([end(
                RunStatus::Completed,
                0,
                "Hello",
            )])
        };
        let (answer, progress) = shown(&TERMINAL, kinds());
        assert_eq!(answer, "Hal\nHello\n");
        assert_eq!(progress, "retry 2/5 in 1.2s: HTTP 429\nthe answer above was cut off and starts again\n");
        let (answer, progress) = shown(&PIPE, kinds());
        assert_eq!((answer.as_str(), progress.as_str()), ("Hello\n", "retry 2/5 in 1.2s: HTTP 429\n"));
    }

    #[test]
    fn how_it_ends_decides_what_stdout_gets() {
        use RunStatus::{Completed, Error, Interrupted, Limit};
        let data = serde_json::json!({"b": 1, "a": [true]});
        for (schema, status, code, result, expected, last) in [
            (false, Completed, 0, Value::from("x\n"), "x\n", ""),
            (false, Completed, 7, Value::from("x"), "x\n", "error: because\n"),
            (false, Completed, 0, Value::from(""), "", ""),
            (false, Limit, 8, Value::from("x"), "x\n", "stopped: because\n"),
            (false, Error, 5, Value::from("x"), "", "error: because\n"),
            (false, Interrupted, 130, Value::Null, "", "stopped: because\n"),
            (true, Completed, 0, data.clone(), "{\"b\":1,\"a\":[true]}\n", ""),
            (true, Completed, 0, Value::from("x"), "\"x\"\n", ""),
            (true, Completed, 10, Value::from("x"), "", "error: because\n"),
            (true, Limit, 8, Value::from("x"), "", "x\nstopped: because\n"),
        ] {
            let (answer, progress) = shown(&Facts { schema, ..PIPE }, [end(status, code, result)]);
            assert_eq!((answer.as_str(), progress.as_str()), (expected, last), "{status:?} {code}");
        }
    }

    #[test]
    fn a_whole_reply_without_deltas_and_a_summary_made_in_code_are_shown_too() {
        let (answer, _) = shown(&TERMINAL, [request(), reply("Hello", 0), end(RunStatus::Limit, 124, "Summary.")]);
        assert_eq!(answer, "Hello\nSummary.\n");
    }

    #[test]
    fn scripted_replies_say_so_once() {
        let started = EventKind::RunStarted(RunStarted {
            cwd: String::new(),
            agent: String::new(),
            model: "demo".to_owned(),
            scripted: true,
            prompts: Vec::new(),
            tools: Vec::new(),
            limits: Value::Null,
            context: ContextSize { budget: 1, window: 1 },
        });
        let (_, progress) = shown(&TERMINAL, [started.clone(), started]);
        assert_eq!(progress, "replies are scripted (model demo)\n");
    }
}
