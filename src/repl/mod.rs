//! The interactive front end: a line editor, slash commands, one turn after another.
//!
//! The loop knows neither terminal nor model: lines come from a [`LineSource`], turns from a [`ChatHost`]. A turn
//! that is interrupted is dropped, then tidied up by its host, and the next line is read.

mod commands;
mod complete;
mod input;
mod lines;
mod mentions;
mod multiline;

use std::io::Write;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

pub use commands::{Action, COMMANDS, Command, Input, help, parse};
pub use complete::Vocabulary;
pub use lines::{Lines, Setup};

use crate::attachment::Attachment;
use crate::workspace::Workspace;
use crate::{terminal, text};

/// What a chat needs of whoever runs its turns. Tables end in a line feed.
pub trait ChatHost: Send {
    /// Where paths are completed and attached from.
    fn workspace(&self) -> &Workspace;

    /// Runs one turn; everything that happens in it is shown by the host's sink. Dropping the future stops it.
    fn turn(&mut self, input: TurnInput) -> impl Future<Output = TurnEnd> + Send;

    /// After a turn was dropped: leaves the conversation valid and says so to the sink.
    fn interrupted(&mut self) -> impl Future<Output = TurnEnd> + Send;

    /// The models by name, the one in use marked.
    fn models_table(&self) -> String;

    /// Goes on with another model; what to tell the person, or why not.
    fn switch_model(&mut self, name: &str) -> Result<String, String>;

    /// What `/tools` prints, with its last line feed.
    fn tools_table(&self) -> String;
    /// What `/skills` prints, with its last line feed.
    fn skills_table(&self) -> String;
    /// What `/context` prints, with its last line feed.
    fn context_table(&mut self) -> String;

    /// Makes room in the context; what to tell the person, or why not. `focus` is what to keep above all. Dropping the
    /// future changes nothing.
    fn compact(&mut self, focus: &str) -> impl Future<Output = Result<String, String>> + Send;

    /// What [`ChatHost::compact`] would do, with its last line feed.
    fn compaction_table(&mut self) -> String;

    /// Sends everything again as it was said.
    fn uncompact(&mut self) -> Result<String, String>;

    /// Keeps messages out of every compression: the last exchange, or what contains `text`.
    fn pin(&mut self, text: &str) -> Result<String, String>;
    /// What `/stats` prints, with its last line feed.
    fn stats_table(&self) -> String;

    /// Loads a skill, whose instructions go along with the next message; what to tell the person, or why not.
    fn take_skill(&mut self, name: &str) -> Result<String, String>;

    /// Takes a skill out of what is sent; what to tell the person, or why not.
    fn unload_skill(&mut self, name: &str) -> Result<String, String>;

    /// Begins a new conversation; what to tell the person, or why not.
    fn clear(&mut self) -> Result<String, String>;
}

/// What a person sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnInput {
    pub text: String,
    /// The files that were mentioned with `@`.
    pub attachments: Vec<Attachment>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// With the exit code that it would have on its own.
    Done(u8),
    /// stdout was closed: nobody sees what comes.
    Unseen,
}

/// One line, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// May hold line feeds.
    Text(String),
    /// Ctrl-C on an empty line.
    Interrupted,
    /// Ctrl-C threw away what was typed.
    Cleared,
    Eof,
    Failed(String),
}

/// Where the lines of a chat come from.
pub trait LineSource: Send + Sync {
    /// Whether a person types them.
    fn interactive(&self) -> bool;

    /// The next one. Dropping the future loses nothing: the line comes with the next call.
    fn read(&self) -> BoxFuture<'_, Line>;
}

/// Sends interrupts: Ctrl-C, wherever it was seen.
#[derive(Clone)]
pub struct Interrupter {
    sender: mpsc::UnboundedSender<()>,
}

/// Receives them.
pub struct Interrupts {
    receiver: mpsc::UnboundedReceiver<()>,
}

/// A pair of both. `Interrupts` lasts at least as long as the chat.
#[must_use]
pub fn interrupts() -> (Interrupter, Interrupts) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Interrupter { sender }, Interrupts { receiver })
}

impl Interrupter {
    /// Tells whoever waits for it that the person wants to stop.
    pub fn interrupt(&self) {
        // With nobody left to stop, there is nothing to do.
        let _ = self.sender.send(());
    }
}

impl Interrupts {
    async fn next(&mut self) {
        if self.receiver.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// What came before a turn does not stop it.
    fn forget(&mut self) {
        while self.receiver.try_recv().is_ok() {}
    }
}

/// Reads lines and runs turns until the lines end. `out` is stderr: tables and hints. The result is the exit code:
/// for a person 0, unless a second Ctrl-C left; for a pipe the code of the last turn that failed.
pub async fn chat<H: ChatHost, W: Write + Send>(
    host: &mut H,
    lines: &dyn LineSource,
    interrupts: &mut Interrupts,
    out: &mut W,
) -> u8 {
    const INTERRUPTED: u8 = 130;
    const FAILED: u8 = 1;
    let interactive = lines.interactive();
    let mut code = 0;
    loop {
        let line = tokio::select! {
            biased;
            line = lines.read() => line,
            // A signal from elsewhere: the editor takes a typed Ctrl-C as a key.
            () = interrupts.next() => {
                if interactive { continue; }
                return INTERRUPTED;
            }
        };
        let text = match line {
            Line::Text(text) => text,
            Line::Cleared => continue,
            Line::Interrupted => {
                tell(out, "Ctrl-D or /exit leaves.");
                continue;
            }
            Line::Eof => return code,
            Line::Failed(why) => {
                tell(out, &format!("error: no more input: {why}"));
                return FAILED;
            }
        };
        let input = match multiline::block(&text) {
            Some(block) if block.trim().is_empty() => Input::Empty,
            Some(block) => Input::Message(block.to_owned()),
            None => parse(&text),
        };
        let message = match input {
            Input::Empty => continue,
            Input::Mistake(what) => {
                tell(out, &what);
                continue;
            }
            Input::Command { action: Action::Exit, .. } => return code,
            Input::Command { action: Action::Skill, argument } => match take_skill(host, &argument) {
                Ok(task) => task,
                Err(told) => {
                    tell(out, &told);
                    continue;
                }
            },
            Input::Command { action, argument } => {
                interrupts.forget();
                let told = tokio::select! {
                    biased;
                    () = interrupts.next() => "Stopped.".to_owned(),
                    told = run_command(host, action, &argument) => told,
                };
                tell(out, &told);
                continue;
            }
            Input::Message(message) => message,
        };
        let (attachments, refused) = mentions::expand(&message, |name| mentions::read(host.workspace(), name));
        for why in refused {
            tell(out, &format!("warning: {why}"));
        }
        interrupts.forget();
        let end = match turn(host, TurnInput { text: message, attachments }, interrupts).await {
            Some(TurnEnd::Unseen) => return code,
            Some(TurnEnd::Done(end)) => end,
            None => return INTERRUPTED,
        };
        if !interactive && end != 0 {
            code = end;
        }
        if !interactive && end == INTERRUPTED {
            return code;
        }
    }
}

/// Puts a skill aside for the next message; the task that is one, or else what to tell the person.
fn take_skill<H: ChatHost>(host: &mut H, argument: &str) -> Result<String, String> {
    let (name, task) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    if name.is_empty() {
        return Err("which skill? /skills shows them".to_owned());
    }
    let told = host.take_skill(name).map_err(|why| format!("error: {why}"))?;
    match task.trim() {
        "" => Err(told),
        task => Ok(task.to_owned()),
    }
}

/// One turn, or what was left of it after Ctrl-C; `None` when a second Ctrl-C came before it was tidied up.
async fn turn<H: ChatHost>(host: &mut H, input: TurnInput, interrupts: &mut Interrupts) -> Option<TurnEnd> {
    tokio::select! {
        biased;
        () = interrupts.next() => {}
        end = host.turn(input) => return Some(end),
    }
    tokio::select! {
        biased;
        () = interrupts.next() => None,
        end = host.interrupted() => Some(end),
    }
}

async fn run_command<H: ChatHost>(host: &mut H, action: Action, argument: &str) -> String {
    let told = match action {
        Action::Help => Ok(help(argument)),
        Action::Model if argument.is_empty() => Ok(host.models_table()),
        Action::Model => host.switch_model(argument),
        Action::Tools => Ok(host.tools_table()),
        Action::Skills => Ok(host.skills_table()),
        Action::Unload if argument.is_empty() => Err("which skill? /skills shows what is loaded".to_owned()),
        Action::Unload => host.unload_skill(argument),
        Action::Context => Ok(host.context_table()),
        Action::Compact if argument == "--dry-run" => Ok(host.compaction_table()),
        Action::Compact => host.compact(argument).await,
        Action::Uncompact => host.uncompact(),
        Action::Pin => host.pin(argument),
        Action::Stats => Ok(host.stats_table()),
        Action::Clear => host.clear(),
        Action::Exit | Action::Skill => Ok(String::new()),
    };
    told.unwrap_or_else(|why| format!("error: {why}"))
}

/// Errors are ignored: a closed stderr is no reason to stop.
fn tell(out: &mut impl Write, text: &str) {
    let text = text.trim_end();
    if text.is_empty() {
        return;
    }
    let folded = terminal::width().map_or(text.into(), |width| text::fold(text, width.saturating_sub(1)));
    let _ = writeln!(out, "{folded}").and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt;

    use super::*;

    /// Lines one after another; then the end.
    struct Script {
        lines: Mutex<Vec<Line>>,
        interactive: bool,
    }

    impl LineSource for Script {
        fn interactive(&self) -> bool {
            self.interactive
        }

        fn read(&self) -> BoxFuture<'_, Line> {
            let mut lines = self.lines.lock().expect("one thread");
            std::future::ready(if lines.is_empty() { Line::Eof } else { lines.remove(0) }).boxed()
        }
    }

    /// Writes down what it is asked to do.
    struct Host {
        workspace: Workspace,
        interrupter: Interrupter,
        log: Vec<String>,
    }

    impl ChatHost for Host {
        fn workspace(&self) -> &Workspace {
            &self.workspace
        }

        async fn turn(&mut self, input: TurnInput) -> TurnEnd {
            let files: Vec<&str> = input.attachments.iter().map(|file| file.name.as_str()).collect();
            self.log.push(format!("turn {} {files:?}", input.text));
            match input.text.as_str() {
                "fail" => TurnEnd::Done(5),
                "unseen" => TurnEnd::Unseen,
                "interrupt" | "interrupt twice" => {
                    self.interrupter.interrupt();
                    std::future::pending().await
                }
                _ => TurnEnd::Done(0),
            }
        }

        async fn interrupted(&mut self) -> TurnEnd {
            let last = self.log.last().cloned().unwrap_or_default();
            self.log.push("interrupted".to_owned());
            if last.starts_with("turn interrupt twice") {
                self.interrupter.interrupt();
                return std::future::pending().await;
            }
            TurnEnd::Done(130)
        }

        fn models_table(&self) -> String {
            "* default\n".to_owned()
        }

        fn switch_model(&mut self, name: &str) -> Result<String, String> {
            if name == "fast" { Ok("now fast".to_owned()) } else { Err(format!("no model {name}")) }
        }

        fn tools_table(&self) -> String {
            "tools\n".to_owned()
        }

        fn skills_table(&self) -> String {
            "skills\n".to_owned()
        }

        fn context_table(&mut self) -> String {
            "context\n".to_owned()
        }

        async fn compact(&mut self, focus: &str) -> Result<String, String> {
            self.log.push(format!("compact {focus}"));
            Ok(String::new())
        }

        fn compaction_table(&mut self) -> String {
            "nothing would go\n".to_owned()
        }

        fn uncompact(&mut self) -> Result<String, String> {
            Err("nothing to restore".to_owned())
        }

        fn pin(&mut self, text: &str) -> Result<String, String> {
            Ok(format!("pinned {text}"))
        }

        fn stats_table(&self) -> String {
            "stats\n".to_owned()
        }

        fn take_skill(&mut self, name: &str) -> Result<String, String> {
            self.log.push(format!("skill {name}"));
            if name == "brew" { Ok("with brew".to_owned()) } else { Err(format!("no skill {name}")) }
        }

        fn unload_skill(&mut self, name: &str) -> Result<String, String> {
            Err(format!("{name} is not loaded"))
        }

        fn clear(&mut self) -> Result<String, String> {
            self.log.push("clear".to_owned());
            Ok("a new conversation".to_owned())
        }
    }

    fn run(lines: &[Line], interactive: bool) -> (u8, Vec<String>, String) {
        let dir = tempfile::tempdir().expect("a directory for the test");
        std::fs::write(dir.path().join("a.txt"), "a").expect("written");
        std::fs::write(dir.path().join("b.bin"), [0]).expect("written");
        let (interrupter, mut interrupts) = interrupts();
        let workspace = Workspace::open(dir.path()).expect("it exists");
        let mut host = Host { workspace, interrupter, log: Vec::new() };
        let lines = Script { lines: Mutex::new(lines.to_vec()), interactive };
        let mut out = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let code = runtime.block_on(chat(&mut host, &lines, &mut interrupts, &mut out));
        (code, host.log, String::from_utf8(out).expect("text"))
    }

    fn text(text: &str) -> Line {
        Line::Text(text.to_owned())
    }

    #[test]
    fn messages_become_turns_and_commands_do_not() {
        let lines = [
            "hello",
            " ",
            "/model",
            "/model fast",
            "/model no",
            "/clear",
            "//x",
            "\"\"\"\n/help\n\"\"\"",
            "/quit",
            "no",
        ];
        let (code, log, out) = run(&lines.map(text), true);
        assert_eq!((code, log.join("; ").as_str()), (0, "turn hello []; clear; turn /x []; turn /help []"));
        assert_eq!(out, "* default\nnow fast\nerror: no model no\na new conversation\n");
    }

    #[test]
    fn a_skill_goes_along_with_its_task_or_with_the_next_message() {
        let lines = ["/skill", "/skill brew", "/skill brew make  coffee", "/skill bru x"].map(text);
        let (_, log, out) = run(&lines, true);
        assert_eq!(log.join("; "), "skill brew; skill brew; turn make  coffee []; skill bru");
        assert_eq!(out, "which skill? /skills shows them\nwith brew\nerror: no skill bru\n");
    }

    #[test]
    fn a_mentioned_file_goes_along_or_the_person_is_told_why_not() {
        let (_, log, out) = run(&[text("see @a.txt and @b.bin")], true);
        assert_eq!(log, ["turn see @a.txt and @b.bin [\"a.txt\"]"]);
        assert_eq!(out, "warning: @b.bin is not attached: it is binary\n");
    }

    #[test]
    fn ctrl_c_stops_the_turn_and_a_second_one_the_program() {
        let (code, log, _) = run(&[text("interrupt"), text("next")], true);
        assert_eq!(
            (code, log),
            (0, vec!["turn interrupt []".into(), "interrupted".into(), "turn next []".into()])
        );
        let (code, log, _) = run(&[text("interrupt twice"), text("next")], true);
        assert_eq!((code, log.len()), (130, 2));
        let (code, log, _) = run(&[text("interrupt"), text("next")], false);
        assert_eq!((code, log.len()), (130, 2));
    }

    #[test]
    fn at_the_prompt_ctrl_c_clears_and_ctrl_d_leaves() {
        let (code, log, out) = run(&[Line::Cleared, Line::Interrupted, text("hi"), Line::Eof, text("no")], true);
        assert_eq!((code, log), (0, vec!["turn hi []".to_owned()]));
        assert_eq!(out, "Ctrl-D or /exit leaves.\n");
    }

    #[test]
    fn a_pipe_ends_with_the_code_of_the_last_failure() {
        assert_eq!(run(&[text("fail"), text("fine")], false).0, 5);
        assert_eq!(run(&[text("fail"), text("fine")], true).0, 0);
        assert_eq!(run(&[text("unseen"), text("fine")], false).1.len(), 1);
        assert_eq!(run(&[Line::Failed("broken".to_owned())], false).0, 1);
    }
}
