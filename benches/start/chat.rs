//! A chat under callgrind: which functions of the program it executes.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{callgrind, observer};

const MESSAGE: &str = "say hello";

/// The functions of a chat with one message, in a terminal; `None` if valgrind is not installed, or no `script`
/// (util-linux), which makes the terminal.
pub fn functions(command: &Command, dir: &Path) -> Option<Vec<String>> {
    let out = dir.join("callgrind");
    let program = command.get_program().to_string_lossy();
    let line = format!(
        "exec valgrind {} --callgrind-out-file={} --log-file={} {program}",
        callgrind::TOOL.join(" "),
        out.display(),
        dir.join("valgrind").display()
    );
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]);
    observer::surround(&mut terminal, command);
    talk(terminal)?;
    let text = fs::read_to_string(out).ok()?;
    Some(callgrind::read(&text, &program).functions)
}

/// Runs the chat that `terminal` shows: sends a message at the first prompt, and Ctrl-D at the next one. `None` if it
/// does not start, or ends early.
fn talk(mut terminal: Command) -> Option<()> {
    let mut child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let (mut keys, mut screen) = (child.stdin.take()?, child.stdout.take()?);
    let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
    for typed in [format!("{MESSAGE}\r"), "\x04".to_owned()] {
        while !ends_with_prompt(&shown) {
            let read = screen.read(&mut piece).ok().filter(|read| *read > 0)?;
            shown.extend_from_slice(&piece[..read]);
        }
        shown.clear();
        keys.write_all(typed.as_bytes()).ok()?;
    }
    let _ = screen.read_to_end(&mut shown);
    child.wait().ok()?.success().then_some(())
}

/// True once a prompt is the last line that was drawn.
fn ends_with_prompt(shown: &[u8]) -> bool {
    let text = String::from_utf8_lossy(shown);
    text.rfind("> \x1b[0m").is_some_and(|at| !text[at..].contains('\n'))
}
