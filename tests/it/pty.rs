//! A terminal with a screen: the binary runs in a PTY, a test types and reads what a person would see.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;
use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

use crate::picture::Picture;
use crate::run::{GUARD, Place, Run};

/// The variable of the approval mode: `auto` is the default of the program.
pub const APPROVAL: &str = "AGENT_SET_AGENTS__DEFAULT__APPROVAL";

/// A running program and its screen.
pub struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    child: Option<Box<dyn Child + Send + Sync>>,
    state: Arc<(Mutex<Seen>, Condvar)>,
    pub place: Arc<Place>,
}

struct Seen {
    parser: vt100::Parser,
    /// Everything that was written, escapes and all.
    raw: Vec<u8>,
    ended: bool,
}

impl Terminal {
    /// Starts `run` on a screen of 100 columns and 30 rows.
    pub fn start(run: &Run) -> Self {
        Self::sized(run, 100, 30)
    }

    pub fn sized(run: &Run, columns: u16, rows: u16) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).expect("the system has a free terminal");
        let command = run.command();
        let mut builder = CommandBuilder::new(command.get_program());
        builder.args(command.get_args());
        builder.env_clear();
        // Most tests are about questions, which a chat asks seldom by default.
        builder.env(APPROVAL, "ask");
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap_or_default());
        }
        builder.cwd(run.place().workspace());
        let child = pair.slave.spawn_command(builder).expect("the binary starts");
        // Ours would keep the terminal open after the program's end.
        drop(pair.slave);
        let parser = vt100::Parser::new(positive(rows), positive(columns), 1000);
        let state = Arc::new((Mutex::new(Seen { parser, raw: Vec::new(), ended: false }), Condvar::new()));
        let reader = pair.master.try_clone_reader().expect("the terminal can be read");
        let shared = Arc::clone(&state);
        thread::spawn(move || watch(reader, &shared));
        let keys = pair.master.take_writer().expect("the terminal can be written");
        Self { master: pair.master, keys, child: Some(child), state, place: run.place() }
    }

    /// Presses these keys; `\r` is Enter, `\x03` Ctrl-C, `\x04` Ctrl-D.
    pub fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("the terminal takes keys");
    }

    /// Answers a question in words.
    pub fn tell(&mut self, words: &str) {
        self.pick("No, because");
        self.wait_for("(Enter sends");
        self.line(words);
    }

    /// Moves to a choice in the list of a question, and takes it.
    #[track_caller]
    pub fn pick(&mut self, choice: &str) {
        const MOST: usize = 50;
        let marked = |screen: &str| screen.rsplit_once("❯ ").map(|(_, marked)| marked.to_owned());
        for _ in 0..MOST {
            let before = marked(&self.screen());
            if before.as_ref().is_some_and(|marked| marked.starts_with(choice)) {
                return self.keys("\r");
            }
            self.keys("\t");
            self.wait_until("the mark in the list to move", |screen| marked(screen) != before);
        }
        panic!("`{choice}` is not offered:\n{}", self.screen());
    }

    /// Presses a key, again and again if need be, until the screen shows what is wanted.
    #[track_caller]
    pub fn press_until(&mut self, key: &str, what: &str, wanted: impl Fn(&str) -> bool) {
        const MOST: usize = 100;
        const PAUSE: Duration = Duration::from_millis(100);
        for _ in 0..MOST {
            self.keys(key);
            let (seen, changed) = &*self.state;
            let seen = seen.lock().expect("nobody panics while holding the screen");
            let lacks = |seen: &mut Seen| !wanted(&seen.parser.screen().contents());
            let (_held, pause) = changed.wait_timeout_while(seen, PAUSE, lacks).expect("nobody panics");
            if !pause.timed_out() {
                return;
            }
        }
        panic!("the screen never showed {what}. It shows:\n{}", self.screen());
    }

    /// Types a line and presses Enter.
    pub fn line(&mut self, line: &str) {
        self.keys(&format!("{line}\r"));
    }

    /// Pastes, as terminals do that mark a paste.
    pub fn paste(&mut self, text: &str) {
        self.keys(&format!("\x1b[200~{text}\x1b[201~"));
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        // What the program draws for the new size is seen on a screen of that size.
        let mut seen = self.state.0.lock().expect("the watcher does not panic");
        seen.parser.screen_mut().set_size(positive(rows), positive(columns));
        self.master.resize(size(columns, rows)).expect("the terminal takes another size");
    }

    /// Returns once the screen shows `text`.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        self.wait_until(&format!("`{text}`"), |screen| screen.contains(text));
    }

    /// Returns once the screen shows what is wanted.
    #[track_caller]
    pub fn wait_until(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        let (seen, changed) = &*self.state;
        let seen = seen.lock().expect("the watcher does not panic");
        let waiting = |seen: &mut Seen| !wanted(&seen.parser.screen().contents()) && !seen.ended;
        let (seen, _) = changed.wait_timeout_while(seen, GUARD, waiting).expect("the watcher does not panic");
        let screen = seen.parser.screen().contents();
        assert!(wanted(&screen), "the screen never showed {what}. It shows:\n{screen}");
    }

    /// Returns once the program has written these bytes.
    #[track_caller]
    pub fn wait_for_raw(&self, bytes: &str) {
        let (seen, changed) = &*self.state;
        let seen = seen.lock().expect("the watcher does not panic");
        let has = |seen: &Seen| String::from_utf8_lossy(&seen.raw).contains(bytes);
        let (seen, _) = changed
            .wait_timeout_while(seen, GUARD, |seen| !has(seen) && !seen.ended)
            .expect("the watcher does not panic");
        assert!(has(&seen), "never written: {bytes:?}");
    }

    /// The current content of the screen.
    pub fn screen(&self) -> String {
        self.state.0.lock().expect("the watcher does not panic").parser.screen().contents()
    }

    /// The screen with its looks; what differs from run to run is made equal.
    pub fn picture(&self) -> Picture {
        let seen = self.state.0.lock().expect("the watcher does not panic");
        let home = self.place.home().to_string_lossy().into_owned();
        let workspace = self.place.workspace().to_string_lossy().into_owned();
        Picture::of(seen.parser.screen()).with(&workspace, "~/project").with(&home, "~").without_clock()
    }

    /// Every byte that was written so far.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.state.0.lock().expect("the watcher does not panic").raw).into_owned()
    }

    /// Sends the program a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().and_then(|child| child.process_id()).expect("it runs");
        kill(Pid::from_raw(i32::try_from(pid).expect("a process id")), signal).expect("the process is alive");
    }

    /// The local modes of the terminal, as the shell would find them.
    pub fn modes(&self) -> LocalFlags {
        let name = self.master.tty_name().expect("a terminal has a name");
        let tty = std::fs::OpenOptions::new().read(true).open(name).expect("the terminal is still there");
        tcgetattr(&tty).expect("it is a terminal").local_flags
    }

    /// True if the screen is as a shell expects it: the cursor is shown, and pastes are not marked.
    pub fn is_plain(&self) -> bool {
        let seen = self.state.0.lock().expect("the watcher does not panic");
        !seen.parser.screen().hide_cursor() && !seen.parser.screen().bracketed_paste()
    }

    /// Everything that was written, once the program has ended.
    pub fn raw_to_the_end(&self) -> String {
        let (seen, changed) = &*self.state;
        let seen = seen.lock().expect("the watcher does not panic");
        drop(changed.wait_timeout_while(seen, GUARD, |seen| !seen.ended).expect("the watcher does not panic"));
        self.raw()
    }

    /// Waits for the end of the program and returns its exit code.
    #[track_caller]
    pub fn exit_code(&mut self) -> u32 {
        let mut child = self.child.take().expect("its end is waited for once");
        let mut killer = child.clone_killer();
        let (done, ended) = mpsc::channel();
        thread::spawn(move || {
            let _ = done.send(child.wait());
        });
        let Ok(status) = ended.recv_timeout(GUARD) else {
            let _ = killer.kill();
            panic!("the program did not end. The screen shows:\n{}", self.screen());
        };
        self.wait_for_last_output();
        status.as_ref().map(ExitStatus::exit_code).expect("a child can be waited for")
    }

    /// Waits until the screen shows the last that the program wrote. It may have left a process that holds the terminal
    /// open: then there is no end, and what is there is shown.
    fn wait_for_last_output(&self) {
        const LONGEST: Duration = Duration::from_secs(2);
        let (seen, changed) = &*self.state;
        let seen = seen.lock().expect("the watcher does not panic");
        drop(changed.wait_timeout_while(seen, LONGEST, |seen| !seen.ended).expect("the watcher does not panic"));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn watch(mut reader: Box<dyn Read + Send>, state: &(Mutex<Seen>, Condvar)) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        // A terminal whose other side is gone answers with an error, not with an end.
        let read = reader.read(&mut buffer).unwrap_or(0);
        let mut seen = state.0.lock().expect("nobody panics while holding the screen");
        seen.parser.process(&buffer[..read]);
        seen.raw.extend_from_slice(&buffer[..read]);
        seen.ended = read == 0;
        state.1.notify_all();
        if read == 0 {
            return;
        }
    }
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn positive(size: u16) -> NonZeroU16 {
    NonZeroU16::new(size).expect("a screen has a size")
}
