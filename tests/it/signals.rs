//! Signals in the middle of a stream and of a command: what was streamed is kept, children die, the log stays valid. An
//! ignore of SIGHUP or SIGINT that a run was started with holds in each of its phases.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::lifeline::Lifeline;
use crate::repl::start;
use crate::reply::{Act, Gate, Reply};
use crate::run::Run;
use crate::server::{Server, assert_answered_once};

const SIGNALS: [(Signal, i32); 3] = [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 143)];

#[test]
fn a_signal_in_the_middle_of_a_stream_ends_the_run_in_order() {
    for (signal, code) in SIGNALS {
        let server =
            Server::start([Reply::text("First half, second half.").then(2, Act::Hang), Reply::text("fine")]);
        let running = Run::task(&server, "task").args(["-o", "jsonl"]).spawn();
        running.wait_stdout("First half");
        running.signal(signal);
        let output = running.wait().exits(code);
        let events = output.events();
        let completed = events.one("run.completed");
        assert_eq!(completed["status"], "interrupted", "{signal}");
        let next = Run::at(&output.place).args(["run", "--continue", "go on"]).server(&server).run();
        next.success().stdout_is("fine\n");
        let last = &server.requests()[1];
        assert_answered_once(last);
        assert!(last.raw.contains("First half"), "{signal}: what was streamed is kept: {}", last.raw);
    }
}

#[test]
fn a_signal_before_the_first_byte_ends_the_run() {
    for (signal, code) in SIGNALS {
        let gate = Gate::new();
        let server = Server::start([Reply::text("late").gate(&gate, 0)]);
        let running = Run::task(&server, "task").spawn();
        gate.reached();
        running.signal(signal);
        running.wait().exits(code).stdout_is("");
        gate.open();
    }
}

#[test]
fn a_signal_in_the_middle_of_a_command_kills_it_with_its_children() {
    for (signal, code) in SIGNALS {
        for command in [Lifeline::COMMAND, Lifeline::STUBBORN] {
            let server =
                Server::start([Reply::call("run_command", &json!({"command": command})), Reply::text("fine")]);
            let run = Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]);
            let lifeline = Lifeline::new(&run.place().workspace());
            let running = run.spawn();
            lifeline.wait_started();
            running.signal(signal);
            let output = running.wait().exits(code);
            lifeline.wait_dead();
            output.events();
            Run::at(&output.place).args(["run", "--continue", "go on"]).server(&server).run().success();
            assert_answered_once(&server.requests()[1]);
        }
    }
}

#[test]
fn a_signal_while_a_skill_is_rendered_ends_the_run_before_it_begins() {
    let body = "{% set b = 'x' * 3000000 %}{% for i in range(99999) %}{% if b[i] %}{% endif %}{% endfor %}";
    let skill = format!("---\nname: slow\ndescription: d\nmetadata:\n  template: jinja\n---\n{body}\n");
    for (signal, code) in SIGNALS {
        let server = Server::start([Reply::text("never asked")]);
        let run = Run::new()
            .args(["run", "task", "--skill", "slow", "--set", "templates.timeout=60s", "-o", "jsonl"])
            .server(&server)
            .file(".agents/skills/slow/SKILL.md", &skill);
        let running = run.arg("--trust").spawn();
        running.wait_child("renderer");
        running.signal(signal);
        let output = running.wait().exits(code).stdout_is("");
        assert!(output.stderr.contains(&format!("stopped by {signal}")), "{}", output.shown());
        assert!(server.requests().is_empty());
    }
}

#[test]
fn a_second_interrupt_exits_at_once() {
    let server = Server::start([Reply::call("run_command", &json!({"command": Lifeline::STUBBORN}))]);
    let run = Run::task(&server, "task").args(["--approve", "all"]);
    let lifeline = Lifeline::new(&run.place().workspace());
    let running = run.spawn();
    lifeline.wait_started();
    running.signal(Signal::SIGINT);
    running.signal_if_alive(Signal::SIGINT);
    running.wait().exits(130);
    lifeline.wait_dead();
}

#[test]
fn an_interrupt_during_the_wait_for_a_retry_ends_the_run() {
    let server = Server::always(Reply::error(429, "slow down").header("retry-after", "3600"));
    let running = Run::task(&server, "task")
        .config("models/default.yaml", "retry: { attempts: 5, base_delay: 1h, max_delay: 2h }\n")
        .args(["-o", "jsonl", "--max-time", "9h"])
        .spawn();
    running.wait_stdout("\"retry\"");
    running.signal(Signal::SIGINT);
    running.wait().exits(130);
}

#[test]
fn an_interrupt_beats_every_other_code() {
    let server = Server::start([
        Reply::call("write_file", &json!({"path": "new.txt", "content": "x"})),
        Reply::text("First half, second half.").then(2, Act::Hang),
    ]);
    let running = Run::task(&server, "task").args(["-o", "jsonl"]).spawn();
    running.wait_stdout("First half");
    running.signal(Signal::SIGINT);
    running.wait().exits(130);
}

#[test]
fn a_signal_while_stdin_is_read_ends_the_run() {
    for (signal, code) in SIGNALS {
        let server = Server::start([]);
        let running = Run::task(&server, "task").args(["--stdin", "require"]).silent_stdin().spawn();
        running.wait_stderr("stdin");
        running.signal(signal);
        running.wait().exits(code);
    }
}

/// `agent ARGS`, started by a shell that ignores these signals.
fn ignoring(signals: &str, args: &str) -> Run {
    Run::script("sh", &format!("trap '' {signals}; exec agent {args}"))
}

#[test]
fn a_run_in_the_background_outlives_its_terminal() {
    let gate = Gate::new();
    let server = Server::start([Reply::text("First half, second half.").gate(&gate, 2)]);
    // What `nohup agent run … &` in a script makes of it.
    let script = "trap '' INT; exec nohup agent run task -o jsonl";
    let running = Run::script("sh", script).server(&server).spawn();
    running.wait_stdout("First half");
    running.signal(Signal::SIGHUP);
    running.signal(Signal::SIGINT);
    gate.open();
    let output = running.wait().success();
    assert_eq!(output.events().one("run.completed")["status"], "completed");
}

#[test]
fn an_ignored_interrupt_or_hangup_ends_neither_the_wait_for_stdin_nor_a_turn_but_sigterm_does() {
    let server = Server::start([Reply::text("First half, second half.").then(2, Act::Hang)]);
    let wait = ignoring("HUP INT TERM", "run task --stdin require").server(&server).silent_stdin().spawn();
    wait.wait_stderr("waiting for stdin");
    let turn = ignoring("HUP INT TERM", "run task -o jsonl").server(&server).spawn();
    turn.wait_stdout("First half");
    for running in [wait, turn] {
        for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM] {
            running.signal(signal);
        }
        running.wait().exits(143);
    }
}

#[test]
fn a_chat_honours_an_ignored_interrupt_and_hangup_and_ends_by_sigterm() {
    let gate = Gate::new();
    let server = Server::start([Reply::text("First half, second half.").gate(&gate, 2)]);
    let mut terminal = start(&ignoring("HUP INT TERM", "").server(&server));
    terminal.signal(Signal::SIGHUP);
    terminal.line("one");
    terminal.wait_for("First half");
    terminal.signal(Signal::SIGHUP);
    terminal.signal(Signal::SIGINT);
    gate.open();
    terminal.wait_for("second half.");
    terminal.signal(Signal::SIGTERM);
    assert_eq!(terminal.exit_code(), 143);
}
