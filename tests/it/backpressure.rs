//! A reader that does not read, reads slowly, or leaves: signals and limits still work, and nothing is lost.

use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::lifeline::Lifeline;
use crate::output::Output;
use crate::reply::{Act, Gate, Reply, chunk};
use crate::run::{Place, Run};
use crate::server::Server;

/// More than a pipe holds, less than may wait for it.
fn more_than_a_pipe() -> String {
    "0123456789abcde\n".repeat(6_000)
}

/// Two ways of having more on stdout than a pipe holds before a call runs.
const OUTPUTS: [&[&str]; 2] = [&["-o", "jsonl"], &["--stream"]];

/// Words that fill the pipe, with a command that runs until it is killed.
fn fills_the_pipe_and_runs(command: &str) -> Reply {
    let call = json!({"command": command}).to_string();
    Reply::text_and_calls(&more_than_a_pipe(), &[("run_command", call)])
}

/// Asserts that the log records the end of the turn, with this reason.
#[track_caller]
fn the_log_is_closed(output: &Output, reason: &str) {
    let log = output.place.session_logs().pop().expect("a session was kept");
    let log = std::fs::read_to_string(log).expect("a log can be read");
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains("turn.completed") && last.contains(reason), "the last line of the log: {last}");
}

#[test]
fn a_signal_ends_a_run_whose_stdout_nobody_reads() {
    for output in OUTPUTS {
        for (signal, code, name) in [(Signal::SIGTERM, 143, "SIGTERM"), (Signal::SIGINT, 130, "SIGINT")] {
            let server = Server::start([fills_the_pipe_and_runs(Lifeline::COMMAND)]);
            let run = Run::task(&server, "task").args(["--approve", "all"]).args(output.to_vec()).unread_stdout();
            let lifeline = Lifeline::new(&run.place().workspace());
            let running = run.spawn();
            lifeline.wait_started();
            running.signal(signal);
            let output = running.wait().exits(code).reason_has(name);
            lifeline.wait_dead();
            the_log_is_closed(&output, name);
        }
    }
}

#[test]
fn the_time_limit_ends_a_run_whose_stdout_nobody_reads() {
    for output in OUTPUTS {
        let server = Server::start([fills_the_pipe_and_runs(Lifeline::COMMAND), Reply::text("So far.")]);
        let run = Run::task(&server, "task")
            .args(["--approve", "all", "--max-time", "3s"])
            .args(output.to_vec())
            .unread_stdout();
        let lifeline = Lifeline::new(&run.place().workspace());
        let output = run.run().exits(124).reason_has("3s");
        lifeline.wait_dead();
        the_log_is_closed(&output, "3s");
    }
}

#[test]
fn a_signal_ends_a_chat_whose_stdout_nobody_reads() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let command = json!({"command": Lifeline::COMMAND});
        let server = Server::start([Reply::text(&more_than_a_pipe()), Reply::call("run_command", &command)]);
        let run = Run::new().args(["chat", "--approve", "all"]).server(&server);
        let lifeline = Lifeline::new(&run.place().workspace());
        let running = run.stdin("talk\nrun\n").unread_stdout().spawn();
        lifeline.wait_started();
        running.signal(signal);
        running.wait().exits(code);
        lifeline.wait_dead();
    }
}

#[test]
fn a_command_that_floods_a_full_stdout_waits_and_can_be_killed() {
    let flood = "exec 3>alive; echo started >&3; yes | head -c 5000000; sleep 600";
    let server = Server::start([fills_the_pipe_and_runs(flood)]);
    let run = Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]).unread_stdout();
    let lifeline = Lifeline::new(&run.place().workspace());
    let running = run.spawn();
    lifeline.wait_started();
    running.signal(Signal::SIGTERM);
    let output = running.wait().exits(143);
    lifeline.wait_dead();
    the_log_is_closed(&output, "SIGTERM");
}

#[test]
fn a_final_answer_that_nobody_reads_holds_neither_a_signal_nor_the_time_limit() {
    let gate = Gate::new();
    let answer = more_than_a_pipe().repeat(10);
    let whole = Reply::text_in_pieces(&answer, 4096);
    let sent = whole.acts.len();
    let server = Server::start([whole.gate(&gate, sent)]);
    let running = Run::task(&server, "task").unread_stdout().spawn();
    gate.reached();
    gate.open();
    running.signal(Signal::SIGTERM);
    running.wait().exits(143).reason_has("stopped by SIGTERM");
    let server = Server::start([Reply::text_in_pieces(&answer, 4096)]);
    let output = Run::task(&server, "task").args(["--max-time", "3s"]).unread_stdout().run();
    output.exits(124).reason_has("stopped: max_time ran out before the output was read");
}

#[test]
fn a_second_interrupt_exits_at_once_though_nobody_reads() {
    let server = Server::start([fills_the_pipe_and_runs(Lifeline::STUBBORN)]);
    let run = Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]).unread_stdout();
    let lifeline = Lifeline::new(&run.place().workspace());
    let running = run.spawn();
    lifeline.wait_started();
    running.signal(Signal::SIGINT);
    running.signal_if_alive(Signal::SIGINT);
    running.wait().exits(130);
    lifeline.wait_dead();
}

#[test]
fn a_slow_reader_sees_every_event_in_order() {
    let words: Vec<_> = (0..4_000).map(|number| chunk(&json!({"content": format!("{number} ")}))).collect();
    let server = Server::start([Reply::events(&words)]);
    let output = Run::task(&server, "task").args(["-o", "jsonl"]).slow_stdout().run().success();
    let said: Vec<String> = (0..4_000).map(|number| number.to_string()).collect();
    let events = output.events();
    assert_eq!(events.text("text.delta").split_whitespace().collect::<Vec<_>>(), said);
    let server = Server::start([Reply::text(&more_than_a_pipe().repeat(4))]);
    Run::task(&server, "task").slow_stdout().run().success().stdout_is(&more_than_a_pipe().repeat(4));
}

#[test]
fn a_reader_that_reads_again_after_a_signal_gets_the_last_event() {
    let server = Server::start([Reply::text("First half, second half.").then(2, Act::Hang)]);
    let running = Run::task(&server, "task").args(["-o", "jsonl"]).slow_stdout().spawn();
    running.wait_stdout("First half");
    running.signal(Signal::SIGTERM);
    running.wait().exits(143).events();
}

#[test]
fn a_reader_that_wants_one_line_ends_the_run_quietly() {
    let gate = Gate::new();
    let words: Vec<_> = (0..400).map(|number| chunk(&json!({"content": format!("{number} ")}))).collect();
    let reply = Reply::events(&words).split(4096).gate(&gate, 1);
    let server = Server::start([reply]);
    let running = Run::task(&server, "task").args(["-o", "jsonl"]).spawn();
    running.wait_stdout("run.started");
    running.close_stdout();
    gate.open();
    running.wait().success().stderr_lacks("panic").stderr_lacks("roken pipe");
}

#[test]
fn streams_that_are_closed_from_the_start_are_no_reason_to_fail() {
    for closed in ["2>&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-"] {
        for output in ["text", "jsonl"] {
            let server = Server::start([Reply::call("list_dir", &json!({"path": "."})), Reply::text("done")]);
            let run = Run::task(&server, "task").args(["-o", output]);
            assert_eq!(redirected(&run, closed).code(), Some(0), "{closed} {output}");
            assert_eq!(server.requests().len(), 2, "{closed} {output}");
        }
    }
}

#[test]
fn a_stderr_whose_reader_left_is_no_reason_to_fail() {
    for output in ["text", "jsonl"] {
        let server = Server::start([Reply::call("list_dir", &json!({"path": "."})), Reply::text("done")]);
        let run = Run::task(&server, "task").args(["-o", output, "-v"]);
        let mut child = run.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stderr.take());
        let done = child.wait_with_output().expect("it ends");
        assert!(done.status.success(), "{output}");
    }
}

#[test]
fn a_disk_that_is_full_is_said() {
    let server = Server::always(Reply::text("done"));
    for output in ["text", "jsonl"] {
        let run = Run::at(&Place::new()).args(["run", "task", "-o", output]).server(&server);
        assert_eq!(redirected(&run, ">/dev/full").code(), Some(1), "{output}");
    }
}

#[test]
fn an_answer_that_cannot_be_kept_is_still_printed() {
    let answer = "word ".repeat(40_000);
    let server = Server::always(Reply::text(&answer));
    let copy = Run::new().args(["run", "--ephemeral", "--output-file", "/dev/full", "task"]).server(&server).run();
    copy.exits(1).stdout_has(answer.trim()).reason_has("cannot write the answer to /dev/full");
    // The shell counts in blocks of 512 or 1,024 bytes.
    let limited = Run::script("sh", "ulimit -f 32; exec agent run task").server(&server).run();
    limited.exits(1).stdout_has(answer.trim()).stderr_has("cannot be written: File too large");
}

/// The run with its streams redirected by a shell.
fn redirected(run: &Run, how: &str) -> std::process::ExitStatus {
    let command = run.command();
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(format!("\"$0\" \"$@\" {how}")).arg(command.get_program()).args(command.get_args());
    shell.env_clear().current_dir(run.place().workspace());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().expect("a shell can be run")
}
