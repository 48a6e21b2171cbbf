//! A person at a terminal in a chat: early keys and pastes, questions, signals, narrow screens.

use nix::sys::signal::Signal;
use nix::sys::termios::LocalFlags;
use serde_json::json;

use crate::lifeline::Lifeline;
use crate::pty::Terminal;
use crate::repl::{chat, said, start};
use crate::reply::{Gate, Reply};
use crate::run::Run;
use crate::server::{Request, Server, assert_answered_once};

#[test]
fn keys_after_control_c_are_not_lost() {
    let server = Server::start([Reply::text("Fine.")]);
    let mut terminal = chat(&server);
    // All at once, as from a hand that is faster than the program.
    terminal.keys("thrown away\x03kept\r");
    terminal.wait_for("Fine.");
    assert_eq!(said(&server), ["kept"]);
}

#[test]
fn control_d_and_tab_typed_while_the_answer_streams_mean_what_they_mean_at_the_prompt() {
    let gate = Gate::new();
    let server = Server::start([Reply::text("First answer.").gate(&gate, 2)]);
    let mut terminal = chat(&server);
    terminal.line("one");
    gate.reached();
    terminal.keys("/too\t\r\x04");
    gate.open();
    assert_eq!(terminal.exit_code(), 0);
    assert!(terminal.screen().contains("> /tools"), "{}", terminal.screen());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn what_was_typed_before_a_question_never_answers_it() {
    let gate = Gate::new();
    let call = Reply::call("write_file", &json!({"path": "new.txt", "content": "x"}));
    let server = Server::start([call.gate(&gate, 0), Reply::text("Left it."), Reply::text("Next.")]);
    let mut terminal = chat(&server);
    terminal.line("write");
    gate.reached();
    terminal.line("y");
    gate.open();
    terminal.wait_for("Allow?");
    terminal.line("n");
    terminal.wait_for("Left it.");
    terminal.wait_for("Next.");
    assert_eq!(said(&server).last().map(String::as_str), Some("y"));
    assert!(!terminal.place.exists("new.txt"));
}

#[test]
fn a_paste_while_the_answer_streams_is_one_message() {
    let gate = Gate::new();
    let server = Server::start([Reply::text("First answer.").gate(&gate, 2), Reply::text("Second answer.")]);
    let mut terminal = chat(&server);
    terminal.line("one");
    gate.reached();
    terminal.paste("line one\rline two");
    terminal.keys("\r");
    gate.open();
    terminal.wait_for("Second answer.");
    assert_eq!(said(&server), ["one", "line one\nline two"]);
}

#[test]
fn control_c_at_a_question_is_no_answer_and_stops_the_turn() {
    let call = Reply::call("run_command", &json!({"command": "touch x"}));
    let server = Server::start([call, Reply::text("Fine.")]);
    let mut terminal = chat(&server);
    terminal.line("run it");
    terminal.wait_for("Allow?");
    terminal.keys("\x03");
    terminal.wait_for("interrupted");
    terminal.line("two");
    terminal.wait_for("Fine.");
    assert_answered_once(&server.requests()[1]);
    assert!(!terminal.place.exists("x"));
}

#[test]
fn a_reason_for_a_no_reaches_the_model() {
    let call = Reply::call("run_command", &json!({"command": "touch x"}));
    let server = Server::start([call, Reply::text("Understood.")]);
    let mut terminal = chat(&server);
    terminal.line("run it");
    terminal.wait_for("Allow?");
    terminal.tell("because it is friday");
    terminal.wait_for("Understood.");
    assert!(server.requests()[1].raw.contains("because it is friday"), "{}", server.requests()[1].raw);
}

#[test]
fn a_call_that_would_fail_is_not_asked_about() {
    let call = Reply::call("write_file", &json!({"path": "old.txt", "content": "x"}));
    let server = Server::start([call, Reply::text("I see.")]);
    let mut terminal = start(&Run::new().server(&server).file("old.txt", "never read"));
    terminal.line("overwrite it");
    terminal.wait_for("I see.");
    assert!(!terminal.screen().contains("Allow?"), "{}", terminal.screen());
    assert!(server.requests()[1].raw.contains("was not read"), "{}", server.requests()[1].raw);
}

#[test]
fn a_signal_ends_a_chat_in_order_and_gives_the_terminal_back() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let server = Server::start([Reply::call("run_command", &json!({"command": Lifeline::COMMAND}))]);
        let run = Run::new().args(["chat", "--approve", "all"]).server(&server);
        let lifeline = Lifeline::new(&run.place().workspace());
        let mut terminal = start(&run);
        terminal.line("run it");
        lifeline.wait_started();
        terminal.signal(signal);
        assert_eq!(terminal.exit_code(), 143, "{signal}");
        lifeline.wait_dead();
        let modes = terminal.modes();
        assert!(modes.contains(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG), "{signal}: {modes:?}");
        let server = Server::start([Reply::text("Fine.")]);
        Run::at(&terminal.place).args(["run", "--continue", "go on"]).server(&server).run().success();
        assert_answered_once(&server.requests()[0]);
    }
}

#[test]
fn a_signal_at_the_prompt_gives_the_terminal_back() {
    let server = Server::start([]);
    let mut terminal = chat(&server);
    terminal.keys("half a line");
    terminal.wait_for("half a line");
    terminal.signal(Signal::SIGTERM);
    assert_eq!(terminal.exit_code(), 143);
    let raw = terminal.raw_to_the_end();
    assert!(raw.trim_end().ends_with("\x1b[?2004l"), "pastes are marked no more: {raw:?}");
    let (_, last) = raw.rsplit_once("half a line").expect("it was typed");
    assert!(last.contains("\r\n"), "the shell begins in a row of its own: {last:?}");
    let modes = terminal.modes();
    assert!(modes.contains(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG), "{modes:?}");
}

#[test]
fn the_system_prompt_is_rendered_again_when_the_model_changes_and_only_then() {
    let server = Server::always(Reply::text("Noted."));
    let prompt = "tools: [read_file]\nsystem_prompt: \"{{ agent.model }} answers in {{ session.run_id }}\"\n";
    let mut terminal = start(&Run::new().config("agents/default.yaml", prompt).server(&server));
    for (index, line) in ["one", "/model another-model", "two", "three"].into_iter().enumerate() {
        terminal.line(line);
        if line.starts_with('/') {
            terminal.wait_for("The model is now another-model");
        } else {
            let answers = if index == 0 { 1 } else { index };
            terminal.wait_until("the answer", |screen| screen.matches("Noted.").count() == answers);
        }
    }
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    let go_on = ["run", "--continue", "-m", "another-model", "four"];
    Run::at(&terminal.place).args(go_on).server(&server).run().success();
    let requests = server.requests();
    let prompts: Vec<&str> = requests.iter().map(Request::system).collect();
    assert!(prompts[0].starts_with("scripted-model answers"), "{}", prompts[0]);
    assert!(prompts[1].starts_with("another-model answers"), "{}", prompts[1]);
    assert!(prompts[1..].iter().all(|prompt| *prompt == prompts[1]), "rendered more often than needed");
    assert!(requests[3].raw.contains("one"), "the conversation goes on");
}

#[test]
fn tables_fit_a_narrow_terminal() {
    let server = Server::start([]);
    let mut terminal = Terminal::sized(&Run::new().server(&server), 40, 60);
    terminal.wait_for("> ");
    for command in ["/help", "/tools", "/skills", "/stats", "/context"] {
        terminal.line(command);
    }
    terminal.wait_for("budget");
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    // The terminal itself wraps a line that fills the screen.
    assert!(terminal.screen().lines().all(|line| line.chars().count() < 40), "{}", terminal.screen());
}

#[test]
fn keys_are_reported_with_their_modifiers_where_the_terminal_says_that_it_can() {
    let server = Server::always(Reply::text("Fine."));
    let mut terminal = start(&Run::new().env("EDITOR", "true").server(&server));
    terminal.wait_for_raw("\x1b[?u\x1b[c");
    assert!(!terminal.raw().contains("\x1b[>5u"), "it did not answer");
    terminal.keys("\x1b[?0u");
    terminal.wait_for_raw("\x1b[>5u");
    terminal.keys("\x1b[?5u");
    terminal.keys("one\x1b[13;2utwo\x1b[127;3uthree\r");
    terminal.wait_for("Fine.");
    assert_eq!(said(&server), ["one\nthree"]);
    // Another program has the terminal as it was.
    terminal.line("/editor");
    terminal.wait_for_raw("\x1b[<u");
    terminal.line("two");
    terminal.wait_until("the next answer", |screen| screen.matches("Fine.").count() == 2);
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    let raw = terminal.raw_to_the_end();
    let order: Vec<&str> = ["\x1b[>5u", "\x1b[<u"].iter().flat_map(|what| raw.matches(what)).collect();
    assert_eq!(order, ["\x1b[>5u", "\x1b[>5u", "\x1b[<u", "\x1b[<u"], "{raw:?}");

    let mut xterm = start(&Run::new().env("XTERM_VERSION", "XTerm(390)").server(&server));
    xterm.wait_for_raw("\x1b[>4;1m");
    xterm.keys("a\x1b[27;2;13~b\r");
    xterm.wait_for("Fine.");
    assert_eq!(said(&server).last().map(String::as_str), Some("a\nb"));
    xterm.line("/exit");
    assert_eq!(xterm.exit_code(), 0);
    assert!(xterm.raw_to_the_end().contains("\x1b[>4m"));
}
