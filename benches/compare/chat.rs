//! A chat in a terminal: measures the time to its prompt, and of a key to the screen while an answer streams.

use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, PtySize, native_pty_system};

/// The queries that programs send to a terminal before they show a prompt (its colours, its kind, the cursor position),
/// and an answer to each.
const QUESTIONS: [(&[u8], &[u8]); 4] = [
    (b"\x1b]10;?", b"\x1b]10;rgb:dddd/dddd/dddd\x07"),
    (b"\x1b]11;?", b"\x1b]11;rgb:0000/0000/0000\x07"),
    (b"\x1b[c", b"\x1b[?62;22c"),
    (b"\x1b[6n", b"\x1b[1;1R"),
];
const LETTERS: &[u8] = b"QWERTZUIOPASDFGHJKLYXCVBNM";
/// The letters at the end of the typed line by which a new one is known on the screen.
const KNOWN_BY: usize = 6;
/// The time from one key to the next.
const PAUSE: Duration = Duration::from_millis(50);

/// A running chat, killed with this value.
struct Chat {
    child: Box<dyn Child + Send + Sync>,
    screen: Box<dyn Read + Send>,
    keys: Box<dyn Write + Send>,
    /// The output since the last key.
    shown: Vec<u8>,
    answered: [usize; QUESTIONS.len()],
    started: Instant,
}

impl Drop for Chat {
    fn drop(&mut self) {
        self.child.kill().expect("the program is ours");
        let _ = self.child.wait();
    }
}

impl Chat {
    fn open(command: &Command) -> Self {
        let pair = native_pty_system().openpty(PtySize::default()).expect("the system has a free terminal");
        let mut builder = CommandBuilder::new(command.get_program());
        builder.args(command.get_args());
        builder.env_clear();
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap_or_default());
        }
        builder.cwd(command.get_current_dir().expect("each program has its place"));
        let screen = pair.master.try_clone_reader().expect("the terminal can be read");
        let keys = pair.master.take_writer().expect("the terminal can be written");
        let started = Instant::now();
        let child = pair.slave.spawn_command(builder).expect("the program starts");
        Self { child, screen, keys, shown: Vec::new(), answered: [0; QUESTIONS.len()], started }
    }

    /// Reads and answers the program's questions until what was drawn since the last key, without escapes, `holds`.
    fn until(&mut self, holds: impl Fn(&str) -> bool) {
        let mut piece = [0; 8192];
        while !holds(&without_escapes(&self.shown)) {
            let read = self.screen.read(&mut piece).unwrap_or_default();
            assert!(read > 0, "a chat ended early: {}", String::from_utf8_lossy(&self.shown));
            self.shown.extend_from_slice(&piece[..read]);
            for ((question, answer), answered) in QUESTIONS.iter().zip(&mut self.answered) {
                let asked = self.shown.windows(question.len()).filter(|bytes| bytes == question).count();
                for _ in std::mem::replace(answered, asked)..asked {
                    self.keys.write_all(answer).expect("the terminal takes keys");
                }
            }
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.shown.clear();
        self.answered = [0; QUESTIONS.len()];
        self.keys.write_all(keys).expect("the terminal takes keys");
    }
}

/// Milliseconds from the start of `command` until a line that ends with `> ` waits for input.
pub fn to_prompt(command: &Command) -> f64 {
    let mut chat = Chat::open(command);
    chat.until(is_prompt);
    milliseconds(chat.started)
}

/// Milliseconds from each of `count` keys until it is on the screen, while an answer streams. The answer must not
/// contain letters.
pub fn echoes(command: &Command, count: usize) -> Vec<f64> {
    let mut chat = Chat::open(command);
    chat.until(is_prompt);
    chat.press(b"go\r");
    chat.until(|text| text.contains("100 101 "));
    let typed: Vec<u8> = LETTERS.iter().copied().cycle().take(count).collect();
    let echo = |last: usize| {
        chat.press(&typed[last..=last]);
        let pressed = Instant::now();
        let known_by = String::from_utf8_lossy(&typed[(last + 1).saturating_sub(KNOWN_BY)..=last]);
        chat.until(|text| text.contains(&*known_by));
        let took = milliseconds(pressed);
        chat.until(|_| pressed.elapsed() > PAUSE);
        took
    };
    (0..count).map(echo).collect()
}

fn is_prompt(text: &str) -> bool {
    text.trim_end_matches('\r').ends_with("> ")
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// `bytes` without the sequences that colour text and move the cursor (ECMA-48: CSI and OSC). BEL ends an OSC, or ESC and a
/// backslash, which is left: no text that is looked for holds one.
fn without_escapes(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut chars = text.chars();
    let mut plain = String::new();
    while let Some(char) = chars.next() {
        if char != '\x1b' {
            plain.push(char);
            continue;
        }
        match chars.next() {
            Some('[') => drop(chars.find(|char| ('@'..='~').contains(char))),
            Some(']') => drop(chars.find(|char| matches!(char, '\x07' | '\x1b'))),
            _ => {}
        }
    }
    plain
}
