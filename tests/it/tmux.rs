//! A chat in a real tmux: a terminal that rewraps lines, below a shell that stops and continues its jobs.

use crate::pty::Terminal;
use crate::repl::said;
use crate::reply::{Gate, Reply};
use crate::run::Run;
use crate::server::Server;

/// A shell in tmux, which says `ready:`, with `agent` on its path; nothing where there is no tmux.
pub fn run() -> Option<Run> {
    let installed =
        std::env::split_paths("/usr/local/bin:/usr/bin:/bin").any(|folder| folder.join("tmux").exists());
    if !installed {
        return None;
    }
    // The server of tmux goes with its only client.
    let script = "exec tmux -S \"$HOME/tmux\" -f /dev/null new-session 'PS1=ready: bash --norc' \\; \
                  set -g destroy-unattached on \\; set -g status off";
    Some(Run::script("bash", script))
}

/// A chat in it.
fn shell(server: &Server) -> Option<Terminal> {
    let mut terminal = Terminal::start(&run()?.server(server));
    terminal.wait_for("ready:");
    terminal.line("agent chat");
    terminal.wait_for("> ");
    Some(terminal)
}

#[test]
fn another_size_while_the_answer_streams_and_one_types_leaves_no_garbage() {
    let gate = Gate::new();
    let server = Server::start([Reply::text("The answer.").gate(&gate, 2), Reply::text("Second.")]);
    let Some(mut terminal) = shell(&server) else { return };
    terminal.line("one");
    gate.reached();
    terminal.keys("typed ahead");
    terminal.wait_for("typed ahead");
    for (columns, rows) in [(60, 20), (100, 30)] {
        terminal.resize(columns, rows);
    }
    terminal.keys("!");
    terminal.wait_until("what is typed, once", |screen| {
        screen.contains("typed ahead!") && screen.matches("typed ahead").count() == 1
    });
    gate.open();
    terminal.wait_for("The answer.");
    terminal.keys("\r");
    terminal.wait_for("Second.");
    assert_eq!(said(&server), ["one", "typed ahead!"]);
    let screen = terminal.screen();
    assert_eq!(screen.matches("The answer.").count(), 1, "{screen}");
}

#[test]
fn control_z_stops_the_chat_and_fg_brings_it_back() {
    let server = Server::start([Reply::text("The answer.")]);
    let Some(mut terminal) = shell(&server) else { return };
    terminal.keys("\x1a");
    terminal.wait_for("Stopped");
    terminal.line("echo $((40 + 2)) at the shell");
    terminal.wait_for("42 at the shell");
    terminal.line("fg");
    terminal.wait_until("the prompt", |screen| screen.trim_end().ends_with('>'));
    terminal.line("one");
    terminal.wait_for("The answer.");
    assert_eq!(said(&server), ["one"]);
}
