//! How long a chat takes to its prompt, in a terminal.

use std::io::{Read, Write};
use std::process::Command;
use std::time::Instant;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

/// What programs ask a terminal before they show a prompt (its colours, what it is, where the cursor is), and an answer.
const QUESTIONS: [(&[u8], &[u8]); 4] = [
    (b"\x1b]10;?\x07", b"\x1b]10;rgb:dddd/dddd/dddd\x07"),
    (b"\x1b]11;?\x07", b"\x1b]11;rgb:0000/0000/0000\x07"),
    (b"\x1b[c", b"\x1b[?62;22c"),
    (b"\x1b[6n", b"\x1b[1;1R"),
];

/// Milliseconds from the start of `command` until a line that ends with `> ` waits for input. The chat is killed then.
pub fn milliseconds(command: &Command) -> f64 {
    let pair = native_pty_system().openpty(PtySize::default()).expect("the system has a free terminal");
    let mut builder = CommandBuilder::new(command.get_program());
    builder.args(command.get_args());
    builder.env_clear();
    for (name, value) in command.get_envs() {
        builder.env(name, value.unwrap_or_default());
    }
    builder.cwd(command.get_current_dir().expect("each program has its place"));
    let mut reading = pair.master.try_clone_reader().expect("the terminal can be read");
    let mut keys = pair.master.take_writer().expect("the terminal can be written");
    let started = Instant::now();
    let mut child = pair.slave.spawn_command(builder).expect("the program starts");
    drop(pair.slave);
    let (mut shown, mut piece, mut answered) = (Vec::new(), [0; 4096], [0; QUESTIONS.len()]);
    let elapsed = loop {
        let read = reading.read(&mut piece).unwrap_or_default();
        assert!(read > 0, "a chat ended before its prompt: {}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&piece[..read]);
        let text = without_escapes(&shown);
        if text.trim_end_matches('\r').ends_with("> ") {
            break started.elapsed();
        }
        for ((question, answer), answered) in QUESTIONS.iter().zip(&mut answered) {
            let asked = shown.windows(question.len()).filter(|bytes| bytes == question).count();
            for _ in std::mem::replace(answered, asked)..asked {
                keys.write_all(answer).expect("the terminal takes keys");
            }
        }
    };
    child.kill().expect("the program is ours");
    let _ = child.wait();
    elapsed.as_secs_f64() * 1e3
}

/// `bytes` without the sequences that colour text and move the cursor (ECMA-48: CSI and OSC).
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
            Some(']') => drop(chars.find(|char| *char == '\x07')),
            _ => {}
        }
    }
    plain
}
