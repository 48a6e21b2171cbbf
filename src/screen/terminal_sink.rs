//! Shows a run to a person: the answer on stdout, everything else on stderr.
//!
//! [`Look`] decides what goes where. Text is written as it arrives. A line begun on one stream ends before the other
//! stream writes to the same screen. Errors on stderr are ignored: only a closed stdout means that nobody sees the
//! answer.

use std::collections::HashSet;
use std::io;

use super::footer::{Footer, Manner};
use super::look::{AnswerTo, Look, Verbosity};
use super::medium::{Live, Medium, PlainMedium, SharedWork};
use super::outlets::Outlets;
use super::views::{self, CurrentWork, Ended};
use crate::base::{json_text, text};
use crate::conversation::EventSink;
use crate::conversation::event::{
    DecidedBy, Event, EventKind, EventMessage, PermissionVerdict, Reply, RunCompleted, RunResult, RunStarted,
    RunStatus,
};
use crate::screen::ink::{Ink, Inks, Line};

/// The most rows of a diff that are shown.
const DIFF: usize = 40;

/// Shows events to a person.
pub struct Screen {
    medium: Box<dyn Medium>,
    look: Look,
    now: SharedWork,
    shows_reasoning: bool,
    footer: Footer,
    /// The step that was requested and has no reply yet.
    asking: Option<u64>,
    /// The text of the current step that is shown.
    shown: String,
    /// The lines shown last below the line of a call.
    below: String,
    /// The calls that the person allowed, and has therefore seen.
    seen: HashSet<String>,
    /// The todo list changed in this turn.
    has_todo: bool,
}

impl Screen {
    /// Shows events on the streams of this process.
    pub fn new(outlets: &Outlets, look: Look, manner: Manner) -> Self {
        let now = SharedWork::default();
        let medium: Box<dyn Medium> = if outlets.display.is_live() {
            Box::new(Live::new(outlets, look, manner.rendering.clone(), manner.ui.notify, now.clone()))
        } else {
            Box::new(PlainMedium::new(outlets.answer.clone(), outlets.progress.clone(), look))
        };
        Self::from_medium(medium, look, manner, now)
    }

    fn from_medium(medium: Box<dyn Medium>, look: Look, manner: Manner, now: SharedWork) -> Self {
        Self {
            medium,
            look,
            now,
            shows_reasoning: manner.ui.reasoning || look.verbosity == Verbosity::Verbose,
            footer: Footer::new(manner.ui.status, manner.compress_at),
            asking: None,
            shown: String::new(),
            below: String::new(),
            seen: HashSet::new(),
            has_todo: false,
        }
    }

    /// Shows `doing` as the current work, unless the run is quiet.
    fn work(&mut self, doing: CurrentWork) {
        if self.look.verbosity > Verbosity::Quiet {
            self.now.lock().activity.set(doing);
            self.medium.redraw_work();
        }
    }

    /// Ends the current work; running calls stay.
    fn rest(&mut self) {
        self.now.lock().activity.rest();
        self.medium.redraw_work();
    }

    fn say(&mut self, line: &Line) -> io::Result<()> {
        self.medium.line(line)
    }

    fn on_run_started(&mut self, run: &RunStarted) -> io::Result<()> {
        if self.footer.begin(run) {
            let model = text::one_line(&run.model, 60);
            self.say(&Line::from((Ink::Dim, format!("replies are scripted (model {model})"))))?;
        }
        Ok(())
    }

    /// Begins a request. A second request of the same step voids the text that is shown.
    fn on_request(&mut self, step: u64) -> io::Result<()> {
        let again = self.asking.replace(step) == Some(step);
        self.medium.end_answer()?;
        self.void(again)?;
        self.work(CurrentWork::Thinking);
        Ok(())
    }

    /// Forgets the text of this step, and says so if it will be written again.
    fn void(&mut self, again: bool) -> io::Result<()> {
        if std::mem::take(&mut self.shown).is_empty() || !again {
            return Ok(());
        }
        self.say(&Line::from((Ink::Yellow, "the answer above was cut off and starts again")))
    }

    fn on_text(&mut self, delta: &str) -> io::Result<()> {
        // Some models begin with empty lines.
        let delta = if self.shown.is_empty() { delta.trim_start_matches(['\n', '\r']) } else { delta };
        if self.look.answer != AnswerTo::Live || delta.is_empty() {
            return Ok(());
        }
        self.now.lock().activity.hear_reply(delta.len());
        self.shown.push_str(delta);
        self.medium.answer(delta)
    }

    fn on_reasoning(&mut self, delta: &str) -> io::Result<()> {
        if self.shows_reasoning && self.look.progress_on_terminal {
            return self.medium.reasoning(delta);
        }
        if self.look.verbosity > Verbosity::Quiet {
            self.now.lock().activity.hear_reasoning(delta.len());
        }
        Ok(())
    }

    fn on_reply(&mut self, reply: &Reply) -> io::Result<()> {
        self.asking = None;
        self.footer.hear(reply);
        self.rest();
        match self.look.answer {
            AnswerTo::Live => {
                if self.shown.is_empty() {
                    self.on_text(&reply.content)?;
                }
                self.medium.end_answer()
            }
            // Words beside calls are not the answer.
            AnswerTo::AtEnd | AnswerTo::Nowhere if reply.tool_calls.is_empty() => Ok(()),
            AnswerTo::AtEnd | AnswerTo::Nowhere => self.words(&reply.content),
        }
    }

    /// Shows a helper: one line for each of its calls, and its warnings. Its answer goes only to the agent that called
    /// it.
    fn on_helper(&mut self, event: &Event) -> io::Result<()> {
        let whose = event.path.join(" › ");
        match &event.kind {
            EventKind::ToolStarted { call_id, name, subject, .. } => {
                self.now.lock().activity.begin(&whose, call_id, name, subject);
            }
            EventKind::ToolOutput { call_id, chunk } => {
                self.now.lock().activity.hear(&whose, call_id, chunk);
            }
            EventKind::ToolFinished { call_id, name, status, summary, telemetry, .. } => {
                let call = self.now.lock().activity.finish(&whose, call_id);
                if self.look.verbosity > Verbosity::Quiet {
                    let subject = call.as_ref().map_or("", |call| &call.subject);
                    let call = Ended { name, subject, status: *status, summary, telemetry };
                    return self.say(&views::draw_errand(&whose, &call, self.room()));
                }
            }
            EventKind::Warning { message } => return self.say(&views::draw_warning(&whose, message)),
            _ => {}
        }
        Ok(())
    }

    fn on_call_started(&mut self, call_id: &str, name: &str, subject: &str) -> io::Result<()> {
        if self.look.one_screen {
            self.medium.end_answer()?;
        }
        self.now.lock().activity.begin("", call_id, name, subject);
        if self.look.verbosity > Verbosity::Quiet {
            self.medium.redraw_work();
        }
        if self.look.verbosity == Verbosity::Verbose {
            self.say(&views::draw_label(name, subject, self.room()))?;
        }
        Ok(())
    }

    fn on_call_output(&mut self, call_id: &str, chunk: &str) -> io::Result<()> {
        let is_verbose = self.look.verbosity == Verbosity::Verbose;
        if !is_verbose && !self.medium.is_live() {
            return Ok(());
        }
        let whole = self.now.lock().activity.hear("", call_id, chunk).filter(|_| is_verbose);
        let whole = whole.unwrap_or_default();
        whole.lines().try_for_each(|line| self.say(&views::draw_output(line, self.room())))
    }

    fn on_call_finished(&mut self, event: &EventKind) -> io::Result<()> {
        let EventKind::ToolFinished { call_id, name, status, summary, telemetry, .. } = event else {
            return Ok(());
        };
        let call = self.now.lock().activity.finish("", call_id);
        self.medium.redraw_work();
        if let Some(call) = call.as_ref().filter(|call| !call.partial.is_empty())
            && self.look.verbosity == Verbosity::Verbose
        {
            self.say(&views::draw_output(&call.partial, self.room()))?;
        }
        if self.look.verbosity == Verbosity::Quiet {
            return Ok(());
        }
        let subject = call.as_ref().map_or("", |call| &call.subject);
        // The live screen draws the list itself.
        let is_drawn = self.medium.is_live() && name == views::CHECKLIST_TOOL;
        let below = summary.split_once('\n').filter(|_| !is_drawn).map_or("", |(_, below)| below);
        let call = Ended { name, subject, status: *status, summary, telemetry };
        self.say(&views::draw_finished(&call, self.room()))?;
        let was_seen = self.seen.remove(call_id);
        self.show_below(below, was_seen)
    }

    /// Shows the lines below a call, unless they equal the ones shown last. Diffs are left out of a log, and for a
    /// person who has just allowed the change.
    fn show_below(&mut self, lines: &str, was_seen: bool) -> io::Result<()> {
        let is_diff = views::is_diff(lines);
        let is_wanted = self.medium.is_live() || self.look.verbosity == Verbosity::Verbose;
        if lines.is_empty() || lines == self.below || (is_diff && (was_seen || !is_wanted)) {
            return Ok(());
        }
        lines.clone_into(&mut self.below);
        let lines = if is_diff {
            views::draw_change(lines, self.room(), Some(DIFF))
        } else {
            views::draw_lines(lines, self.room())
        };
        lines.iter().try_for_each(|line| self.say(line))
    }

    fn on_retry(&mut self, attempt: u32, attempts: u32, delay_ms: u64, cause: &str) -> io::Result<()> {
        self.medium.end_answer()?;
        if self.look.verbosity > Verbosity::Quiet {
            self.say(&views::draw_retry(attempt, attempts, delay_ms, cause, self.room()))?;
            self.work(CurrentWork::Retry { attempt, attempts, delay_ms, cause: cause.to_owned() });
        }
        self.void(true)
    }

    fn on_completed(&mut self, run: &RunCompleted) -> io::Result<()> {
        self.now.lock().activity.end();
        self.medium.redraw_work();
        self.medium.end_answer()?;
        self.show_result(run)?;
        self.shown.clear();
        self.asking = None;
        self.end_todo()?;
        self.medium.end_turn(run.duration_ms);
        if self.look.footer && run.steps > 0 {
            let line = self.footer.line(run, self.room());
            line.map_or(Ok(()), |line| self.say(&line))?;
        }
        if run.exit_code != 0 {
            let room = (self.look.width)().map(|_| self.room());
            views::draw_failure(run, room).iter().try_for_each(|line| self.say(line))?;
        }
        // An empty line separates turns.
        if self.look.footer && self.medium.is_live() {
            self.say(&Line::new())?;
        }
        Ok(())
    }

    /// Writes the todo list once more to stay above, if it changed in this turn.
    fn end_todo(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.has_todo) || !self.medium.is_live() {
            return Ok(());
        }
        let lines = self.now.lock().todo.lines(self.room(), usize::MAX);
        lines.iter().try_for_each(|line| self.say(line))
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
            RunResult::Missing => return Ok(()),
            RunResult::Text(text) => text.clone(),
            RunResult::Data(data) if self.look.answer_on_terminal => json_text::indent(data.get()),
            RunResult::Data(data) => data.get().to_owned(),
        };
        if !answered {
            return if run.status == RunStatus::Limit { self.words(&result) } else { Ok(()) };
        }
        let shown = self.look.answer == AnswerTo::Live && self.shown.trim() == result.trim();
        if shown || result.is_empty() || self.look.answer == AnswerTo::Nowhere {
            return Ok(());
        }
        self.medium.answer(&result)?;
        self.medium.end_answer()
    }

    /// Shows the progress of the plan: as a list that is redrawn, or line by line.
    fn on_plan(&mut self, kind: &EventKind) -> io::Result<()> {
        let room = self.room();
        let lines = self.now.lock().plan.follow(kind, room);
        if lines.is_empty() {
            return Ok(());
        }
        self.medium.redraw_lists();
        // A live list already shows the started step.
        if self.medium.is_live() && matches!(kind, EventKind::StepStarted(_)) {
            return Ok(());
        }
        lines.iter().try_for_each(|line| self.say(line))
    }

    /// Shows words of the model that are not the answer.
    fn words(&mut self, words: &str) -> io::Result<()> {
        let words = text::make_visible(words.trim());
        if words.is_empty() || self.look.verbosity == Verbosity::Quiet {
            return Ok(());
        }
        words.lines().try_for_each(|line| self.say(&Line::from((Inks::PLAIN, line))))
    }

    fn room(&self) -> usize {
        views::count_columns((self.look.width)())
    }
}

impl EventSink for Screen {
    fn emit(&mut self, event: &Event) -> io::Result<()> {
        if !event.path.is_empty() {
            return self.on_helper(event);
        }
        if self.now.lock().todo.follow(&event.kind) && self.look.verbosity > Verbosity::Quiet {
            self.has_todo = true;
            self.medium.redraw_lists();
        }
        match &event.kind {
            EventKind::RunStarted(run) => self.on_run_started(run),
            EventKind::RequestStarted { step, .. } => self.on_request(*step),
            EventKind::TextDelta { text } => self.on_text(text),
            EventKind::ReasoningDelta { text } => self.on_reasoning(text),
            EventKind::Message(EventMessage::Assistant(reply)) if !reply.given => self.on_reply(reply),
            EventKind::ToolStarted { call_id, name, subject, .. } => self.on_call_started(call_id, name, subject),
            EventKind::ToolOutput { call_id, chunk } => self.on_call_output(call_id, chunk),
            kind @ EventKind::ToolFinished { .. } => self.on_call_finished(kind),
            EventKind::Retry { attempt, attempts, delay_ms, cause } => {
                self.on_retry(*attempt, *attempts, *delay_ms, cause)
            }
            EventKind::PermissionResolved { call_id, name, verdict, by } => {
                if self.look.verbosity == Verbosity::Verbose {
                    return self.say(&views::draw_permission(name, *verdict, *by, self.room()));
                }
                if (*verdict, *by) == (PermissionVerdict::Allowed, DecidedBy::Person) {
                    self.seen.insert(call_id.clone());
                }
                Ok(())
            }
            EventKind::Warning { message } => self.say(&views::draw_warning("", message)),
            EventKind::RunCompleted(run) => self.on_completed(run),
            _ if self.look.verbosity == Verbosity::Quiet => Ok(()),
            EventKind::SkillLoaded { name, tokens, .. } => {
                self.say(&views::draw_skill(name, "loaded", *tokens, self.room()))
            }
            EventKind::SkillUnloaded { name, tokens, .. } => {
                self.say(&views::draw_skill(name, "unloaded", *tokens, self.room()))
            }
            EventKind::ContextCompressing { .. } => {
                self.work(CurrentWork::Compressing);
                Ok(())
            }
            EventKind::ContextCompressed(done) if done.is_refusal() => Ok(()),
            EventKind::ContextCompressed(done) => {
                self.rest();
                self.say(&views::draw_compression(done, self.room()))
            }
            EventKind::RoleStarted { role, .. } => {
                self.work(CurrentWork::Role(text::one_line(role, 40)));
                Ok(())
            }
            EventKind::RoleReplied { .. } => {
                self.rest();
                Ok(())
            }
            kind => self.on_plan(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::config::{StatusPart, UiSettings};
    use crate::conversation::event::{CallTelemetry, ContextSize};
    use crate::conversation::message::{CallStatus, FinishReason, ToolCall, Usage};
    use crate::screen::ink::{Colour, ColourWishes};
    use crate::screen::{LookFacts, Rendering, choose_look};

    const TERMINAL: LookFacts<'_> = LookFacts {
        stdout_terminal: true,
        stderr_terminal: true,
        json: false,
        stream: false,
        schema: false,
        quiet: false,
        verbose: false,
        chat: false,
        colour: Colour::Auto,
        wishes: ColourWishes { no_color: Some("1"), term: Some("dumb"), clicolor: None, clicolor_force: None },
        abilities: crate::screen::terminal::Abilities::NONE,
        screen_reader: false,
        theme: crate::config::ThemeChoice::Auto,
    };
    const PIPE: LookFacts<'_> = LookFacts { stdout_terminal: false, stderr_terminal: false, ..TERMINAL };

    /// Returns stdout and stderr after these events.
    fn shown(facts: &LookFacts<'_>, kinds: impl IntoIterator<Item = EventKind>) -> (String, String) {
        let (answer, progress) = (Kept::default(), Kept::default());
        let look = choose_look(facts, || Some(40));
        let medium = PlainMedium::new(answer.clone(), progress.clone(), look);
        let manner = Manner {
            ui: UiSettings {
                status: vec![StatusPart::Tokens, StatusPart::Cost, StatusPart::Time],
                ..UiSettings::default()
            },
            rendering: Rendering::new(false),
            compress_at: 0.8,
        };
        let mut screen = Screen::from_medium(Box::new(medium), look, manner, SharedWork::default());
        for (seq, kind) in (0..).zip(kinds) {
            let (time, session_id, run_id) = Default::default();
            let event = Event { v: 1, kind, seq, time, session_id, run_id, path: Vec::new() };
            screen.emit(&event).expect("a Vec takes everything");
        }
        (answer.text(), progress.text())
    }

    /// Keeps everything that is written, where the test can read it.
    #[derive(Clone, Default)]
    struct Kept(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl Kept {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("one thread").clone()).expect("only text is written")
        }
    }

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("one thread").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn request() -> EventKind {
        EventKind::RequestStarted { step: 1, messages: 2, input_tokens: 3, prefix_tokens: 0 }
    }

    fn text(text: &str) -> EventKind {
        EventKind::TextDelta { text: text.to_owned() }
    }

    fn reply(content: &str, calls: usize) -> EventKind {
        let call = ToolCall { id: "1".to_owned(), name: "read_file".to_owned(), arguments: "{}".to_owned() };
        EventKind::Message(EventMessage::Assistant(Reply {
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
            result: match result.into() {
                Value::Null => RunResult::Missing,
                Value::String(text) => RunResult::Text(text),
                data => RunResult::Data(serde_json::value::to_raw_value(&data).expect("JSON")),
            },
            outputs: None,
            usage: Usage::default(),
            cost_usd: None,
            turns: 1,
            steps: 1,
            requests: 1,
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
        assert_eq!(progress, "✓ read_file a.rs · 42 lines\n");
    }

    #[test]
    fn a_pipe_gets_exactly_the_final_answer_and_stderr_the_rest() {
        let (answer, progress) = shown(&PIPE, a_run());
        assert_eq!(answer, "\nIt is 日本語\u{1b}[31m.\n");
        assert_eq!(progress, "Let me look.\n✓ read_file a.rs · 42 lines\n");
    }

    #[test]
    fn stream_sends_every_text_into_the_pipe() {
        let (answer, progress) = shown(&LookFacts { stream: true, ..PIPE }, a_run());
        assert_eq!(answer, "Let me look.\nIt is 日本語\u{1b}[31m.\n");
        assert_eq!(progress, "✓ read_file a.rs · 42 lines\n");
    }

    #[test]
    fn json_leaves_stdout_alone() {
        let (answer, progress) = shown(&LookFacts { json: true, ..PIPE }, a_run());
        assert_eq!(answer, "");
        assert_eq!(progress, "Let me look.\n✓ read_file a.rs · 42 lines\n");
    }

    #[test]
    fn quiet_leaves_warnings_and_the_reason() {
        let mut kinds = a_run();
        kinds.pop();
        kinds.push(EventKind::Warning { message: "odd".to_owned() });
        kinds.push(end(RunStatus::Error, 5, Value::Null));
        let (answer, progress) = shown(&LookFacts { quiet: true, ..PIPE }, kinds);
        assert_eq!((answer.as_str(), progress.as_str()), ("", "warning: odd\nerror: because\n"));
    }

    #[test]
    fn verbose_shows_the_live_output_of_a_command() {
        let (_, progress) = shown(&LookFacts { verbose: true, ..PIPE }, call());
        assert_eq!(progress, "▸ read_file a.rs\n  │ one\n  │ two\n  │ thr\n✓ read_file a.rs · 42 lines\n");
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
        assert_eq!(progress, "retry 2/5 in 1.2 s: HTTP 429\nthe answer above was cut off and starts again\n");
        let (answer, progress) = shown(&PIPE, kinds());
        assert_eq!((answer.as_str(), progress.as_str()), ("Hello\n", "retry 2/5 in 1.2 s: HTTP 429\n"));
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
            (true, Completed, 0, Value::from(7), "7\n", ""),
            (true, Completed, 10, Value::from("x"), "", "error: because\n"),
            (true, Limit, 8, Value::from("x"), "", "x\nstopped: because\n"),
        ] {
            let (answer, progress) = shown(&LookFacts { schema, ..PIPE }, [end(status, code, result)]);
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
            provider: String::new(),
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
