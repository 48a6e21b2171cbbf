//! Runs the binary as a person or a pipe would: a fresh home and workspace, a clean environment, and what came out.
//!
//! Nothing is shared between two runs unless a test says so ([`Run::at`]), so tests run side by side. Waiting is for
//! something that happens (a line, an end), never for time; [`GUARD`] only keeps a broken build from hanging.

use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::dispositions::restore_defaults;
use crate::kernel;
use crate::output::Output;
use crate::pipe::{Pace, Stream};
use crate::server::Server;

/// The time limit after which a test fails instead of hanging. Never part of an assertion.
pub const GUARD: Duration = Duration::from_mins(3);

/// The value of `OPENAI_API_KEY` in every run: no output may ever show it.
pub const KEY: &str = "sk-test-0123456789-never-shown";

/// The user and the group of nobody.
const NOBODY: u32 = 65534;

/// The program.
const AGENT: &str = env!("CARGO_BIN_EXE_agent");

/// A home and a workspace of its own.
pub struct Place {
    root: TempDir,
}

impl Place {
    pub fn new() -> Arc<Self> {
        // Not below `/tmp`, which commands see as a directory of their own.
        let root = tempfile::Builder::new().prefix("it-").tempdir_in("/var/tmp").expect("it is writable");
        for dir in ["home", "workspace"] {
            fs::create_dir(root.path().join(dir)).expect("a fresh directory");
        }
        Arc::new(Self { root })
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// `$XDG_CONFIG_HOME/agent`
    pub fn config(&self) -> PathBuf {
        self.home().join(".config/agent")
    }

    /// `$XDG_DATA_HOME`
    pub fn data(&self) -> PathBuf {
        self.home().join(".local/share")
    }

    /// The content of a file of the workspace.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        let path = self.workspace().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.workspace().join(path).exists()
    }

    /// Every file below the home, with its content as far as it is text.
    pub fn kept(&self) -> Vec<(PathBuf, String)> {
        let mut files = Vec::new();
        let mut dirs = vec![self.home()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).expect("a directory of ours").map(|entry| entry.expect("an entry")) {
                let path = entry.path();
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    let text = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
                    files.push((path, text));
                }
            }
        }
        files
    }

    /// The logs of sessions, newest name last.
    pub fn session_logs(&self) -> Vec<PathBuf> {
        let mut logs: Vec<PathBuf> = self
            .kept()
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| path.starts_with(self.data()) && path.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        logs.sort();
        logs
    }
}

/// The content of the program's stdin.
enum Input {
    Nothing,
    Text(Vec<u8>),
    /// A pipe that nobody writes to and nobody closes.
    Silent,
}

/// One run to be made.
pub struct Run {
    place: Arc<Place>,
    program: &'static str,
    args: Vec<String>,
    env: Vec<(String, String)>,
    input: Input,
    pace: Pace,
    /// System calls that fail as if the kernel did not have them.
    missing: Vec<i64>,
    is_ordinary_user: bool,
}

impl Run {
    /// A run of `agent` without arguments, in a fresh place.
    pub fn new() -> Self {
        Self::at(&Place::new())
    }

    /// `agent run TASK …`, with the model on `server`.
    pub fn task(server: &Server, task: &str) -> Self {
        Self::new().args(["run", task]).server(server)
    }

    /// A script that `shell` runs; `agent` is on its `PATH`.
    pub fn script(shell: &'static str, text: &str) -> Self {
        let directory = Path::new(AGENT).parent().expect("the binary lies in a directory");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", directory.display());
        Self { program: shell, ..Self::new() }.args(["-c", text]).env("PATH", path)
    }

    /// A run in a place where others have been.
    pub fn at(place: &Arc<Place>) -> Self {
        let home = place.home();
        let below = |path: &str| home.join(path).to_string_lossy().into_owned();
        let env = vec![
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), below("")),
            ("XDG_CONFIG_HOME".to_owned(), below(".config")),
            ("XDG_DATA_HOME".to_owned(), below(".local/share")),
            ("XDG_STATE_HOME".to_owned(), below(".local/state")),
            ("XDG_CACHE_HOME".to_owned(), below(".cache")),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("TERM".to_owned(), "xterm-256color".to_owned()),
            ("USER".to_owned(), "tester".to_owned()),
        ];
        Self {
            place: Arc::clone(place),
            program: AGENT,
            args: Vec::new(),
            env,
            input: Input::Nothing,
            pace: Pace::Eager,
            missing: Vec::new(),
            is_ordinary_user: false,
        }
    }

    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// The three variables with which a person points the built-in model at a server.
    pub fn server(self, server: &Server) -> Self {
        self.env("OPENAI_BASE_URL", server.url()).env("OPENAI_API_KEY", KEY).env("AGENT_MODEL", "scripted-model")
    }

    /// A file of the workspace.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        write(&self.place.workspace().join(path), content.as_ref());
        self
    }

    /// A file of the user's config directory.
    pub fn config(self, path: &str, content: &str) -> Self {
        write(&self.place.config().join(path), content.as_bytes());
        self
    }

    /// Retries of the built-in model without the wait.
    pub fn quick_retries(self) -> Self {
        self.config("models/default.yaml", "retry: { attempts: 3, base_delay: 1ms, max_delay: 5ms }\n")
    }

    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Text(text.into());
        self
    }

    /// stdin stays open and says nothing.
    pub fn silent_stdin(mut self) -> Self {
        self.input = Input::Silent;
        self
    }

    /// Nobody reads stdout while the program runs: its pipe fills and stays full.
    pub fn unread_stdout(mut self) -> Self {
        self.pace = Pace::Late;
        self
    }

    /// stdout is read more slowly than it is written.
    pub fn slow_stdout(mut self) -> Self {
        self.pace = Pace::Slow;
        self
    }

    pub fn place(&self) -> Arc<Place> {
        Arc::clone(&self.place)
    }

    /// On a kernel without these system calls.
    #[cfg(target_os = "linux")]
    pub fn without(mut self, calls: &[i64]) -> Self {
        self.missing.extend(calls);
        self
    }

    /// As a user who is not the superuser, even where the superuser runs the tests. Call it last: the place becomes
    /// the user's own.
    pub fn ordinary_user(mut self) -> Self {
        self.is_ordinary_user = nix::unistd::geteuid().is_root();
        self
    }

    /// Gives everything in the place to the user who is nobody.
    fn give_away(&self) {
        let mut paths = vec![self.place.root.path().to_path_buf()];
        while let Some(path) = paths.pop() {
            std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY)).expect("the superuser may");
            if path.is_dir() && !path.is_symlink() {
                paths.extend(
                    fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path()),
                );
            }
        }
    }

    /// Program, arguments, environment and directory, for a terminal to start.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.args(&self.args).env_clear().current_dir(self.place.workspace());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts it with the default actions of signals and does not wait.
    pub fn spawn(self) -> Running {
        restore_defaults();
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if matches!(self.input, Input::Nothing) { Stdio::null() } else { Stdio::piped() });
        if self.is_ordinary_user {
            self.give_away();
            command.uid(NOBODY).gid(NOBODY);
        }
        let mut child = kernel::spawn(command, &self.missing).expect("the binary starts");
        let mut held = None;
        match (self.input, child.stdin.take()) {
            // A writer of its own: the child may answer before it has read everything.
            (Input::Text(text), Some(mut pipe)) => {
                thread::spawn(move || {
                    let _ = pipe.write_all(&text);
                });
            }
            (Input::Silent, pipe) => held = pipe,
            _ => {}
        }
        Running {
            stdout: Stream::of(child.stdout.take().expect("stdout is a pipe"), self.pace),
            stderr: Stream::of(child.stderr.take().expect("stderr is a pipe"), Pace::Eager),
            pid: Pid::from_raw(i32::try_from(child.id()).expect("a process id")),
            _stdin: held,
            child,
            place: self.place,
            line: format!("{} {}", self.program, self.args.join(" ")),
        }
    }

    /// Runs it to its end.
    pub fn run(self) -> Output {
        self.spawn().wait()
    }
}

/// A run that is going on.
pub struct Running {
    child: Child,
    pid: Pid,
    stdout: Stream,
    stderr: Stream,
    _stdin: Option<ChildStdin>,
    place: Arc<Place>,
    line: String,
}

impl Running {
    pub fn signal(&self, signal: Signal) {
        kill(self.pid, signal).expect("the process is alive");
    }

    /// Sends the signal if somebody is still there to get it.
    pub fn signal_if_alive(&self, signal: Signal) {
        let _ = kill(self.pid, signal);
    }

    /// Returns once stdout holds `text`.
    #[track_caller]
    pub fn wait_stdout(&self, text: &str) {
        self.stdout.wait_for(text, &self.stderr);
    }

    /// Returns once stderr holds `text`.
    #[track_caller]
    pub fn wait_stderr(&self, text: &str) {
        self.stderr.wait_for(text, &self.stdout);
    }

    /// Waits for a child with this word in its arguments.
    #[track_caller]
    pub fn wait_child(&self, word: &str) -> Pid {
        let parent = format!("PPid:\t{}\n", self.pid);
        let find = |process: &Path| {
            let read = |file: &str| fs::read_to_string(process.join(file)).unwrap_or_default();
            let is_child = read("cmdline").contains(word) && read("status").contains(&parent);
            process.file_name().filter(|_| is_child)?.to_str()?.parse().ok()
        };
        for mut processes in (0..20_000).map(|_| fs::read_dir("/proc").expect("processes").flatten()) {
            if let Some(child) = processes.find_map(|process| find(&process.path())) {
                return Pid::from_raw(child);
            }
        }
        panic!("no child `{word}` of {}", self.line);
    }

    /// Closes our end of its stdout, as `head -1` does when it has its line.
    pub fn close_stdout(&self) {
        self.stdout.close();
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(mut self) -> Output {
        let (done, ended) = mpsc::channel();
        thread::spawn(move || {
            let _ = done.send(self.child.wait());
        });
        let Ok(status) = ended.recv_timeout(GUARD) else {
            let _ = kill(self.pid, Signal::SIGKILL);
            let (stdout, stderr) = (self.stdout.so_far(), self.stderr.so_far());
            panic!("`{}` did not end\n--- stdout\n{stdout}\n--- stderr\n{stderr}", self.line);
        };
        let status = status.expect("a child that was started can be waited for");
        self.stdout.read();
        Output {
            line: self.line,
            stdout: self.stdout.all(),
            stderr: self.stderr.all(),
            // As a shell tells it.
            code: status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1),
            place: self.place,
        }
    }
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().expect("a file below a directory")).expect("directories can be made");
    fs::write(path, content).expect("a file can be written");
}
