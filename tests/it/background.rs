//! Commands that continue after their call: they are read, stopped, reported when they end, and none outlives its run.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::lifeline::Lifeline;
use crate::output::Output;
use crate::pty::Terminal;
use crate::reply::{Act, Reply};
use crate::run::{KEY, Run};
use crate::server::{Server, assert_answered_once, assert_append_only};

const SIGNALS: [(Signal, i32); 3] = [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 143)];
/// Goes on until there is a file of this name.
const WAITS_FOR_GO: &str = "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo over; exit 3";

fn start(command: &str) -> Reply {
    Reply::call("run_command", &json!({"command": command, "background": true}))
}

fn background(arguments: &Value) -> Reply {
    Reply::call("background", arguments)
}

fn run(command: &str) -> Reply {
    Reply::call("run_command", &json!({"command": command}))
}

/// The results of these calls, as the model read them.
fn told(replies: impl IntoIterator<Item = Reply>, args: &[&str]) -> Vec<String> {
    let server = Server::start(replies.into_iter().chain([Reply::text("done")]));
    Run::task(&server, "task").args(["--approve", "all"]).args(args.iter().copied()).run().success();
    let requests = server.requests();
    assert_append_only(&requests);
    requests.iter().for_each(assert_answered_once);
    let results = requests.last().expect("requests").tool_results();
    results.iter().map(|(_, text)| (*text).to_owned()).collect()
}

#[test]
fn a_command_goes_on_is_read_and_ends() {
    let results = told(
        [
            start(WAITS_FOR_GO),
            background(&json!({"id": "r1", "wait": 0})),
            run("touch go"),
            background(&json!({"id": "r1", "wait": 600})),
            background(&json!({"id": "r1"})),
            Reply::call("recall", &json!({"id": "r1"})),
        ],
        &[],
    );
    assert!(results[0].contains("r1: running for 1 s\nbegun\n"), "{}", results[0]);
    assert!(results[1].contains("r1: running for ") && results[1].contains(" s, nothing new"), "{}", results[1]);
    assert!(results[3].contains("r1: exit 3 after ") && results[3].contains("s\nover\n"), "{}", results[3]);
    assert!(results[4].contains("There is no background command `r1` (there are: none)"), "{}", results[4]);
    assert!(results[5].contains("begun\nover"), "{}", results[5]);
}

#[test]
fn a_command_reads_what_it_is_given() {
    let reads = "while read -r word; do echo \"<$word>\"; done; echo over";
    let give = |input: &str| background(&json!({"id": "r1", "input": input, "wait": 1}));
    let results = told(
        [
            start(reads),
            give("one\ntwo 三\n"),
            give(""),
            background(&json!({"id": "r1", "wait": 600})),
            give("more\n"),
        ],
        &[],
    );
    assert!(results[0].contains("nothing new"), "{}", results[0]);
    assert!(results[1].contains("<one>\n<two 三>"), "{}", results[1]);
    assert!(results[2].contains("over") || results[3].contains("over"), "{results:?}");
    assert!(
        results[4].contains("There is no background command") || results[4].contains("has ended"),
        "{}",
        results[4]
    );
    let late = told([start("exec <&-; sleep 600"), give("x\n"), give(""), give("y\n")], &[]);
    assert!(late[3].contains("has ended"), "{}", late[3]);
    let long = told([start("sleep 600"), give(&"x".repeat(70_000))], &[]);
    assert!(long[1].contains("more than 65536 bytes"), "{}", long[1]);
}

#[test]
fn a_command_that_never_reads_holds_up_no_more_than_its_call() {
    let give = || background(&json!({"id": "r1", "input": "x".repeat(65_536), "wait": 0}));
    let results = told([start("sleep 600"), give(), give(), background(&json!({"id": "r1", "wait": 0}))], &[]);
    assert!(results[1].contains("running"), "{}", results[1]);
    assert!(results[2].contains("does not read its input"), "{}", results[2]);
    assert!(results[3].contains("running"), "{}", results[3]);
}

#[test]
fn what_a_command_is_given_is_judged_like_a_command() {
    let replies = || [start("cat"), background(&json!({"id": "r1", "input": "rm -rf x\n"})), Reply::text("done")];
    let outcome = |args: &[&str]| {
        let server = Server::start(replies());
        let output = Run::task(&server, "task").args(args.iter().copied()).run();
        (output.code, server.requests()[2].last_result().to_owned())
    };
    // `cat` only reads, so it runs unasked; what it is given could be for a shell.
    let (code, result) = outcome(&["--approve", "ask"]);
    assert!(code == 7 && result.contains("denied"), "{code}: {result}");
    let (code, result) = outcome(&["--approve", "never"]);
    assert!(code == 0 && result.contains("denied"), "{code}: {result}");
    let (code, result) = outcome(&["--approve", "edits"]);
    assert!(code == 0 && result.contains("rm -rf x"), "{code}: {result}");
    let forbidden = [start("cat"), background(&json!({"id": "r1", "input": "rm /etc/x\n"})), Reply::text("done")];
    let server = Server::start(forbidden);
    let rule = "permissions: { rules: [{ deny: run_command, command: [rm, \"/etc/*\"] }] }\n";
    Run::task(&server, "task").config("agent.yaml", rule).args(["--approve", "all"]).run();
    let result = server.requests()[2].last_result().to_owned();
    assert!(
        result.contains("denied") && result.contains("forbids"),
        "a rule about commands holds for it: {result}"
    );
    let (code, result) = outcome(&["--approve", "edits", "--sandbox", "off"]);
    assert!(code == 7 && result.contains("denied"), "{code}: {result}");
}

#[test]
fn a_command_that_ends_at_once_is_told_whole() {
    let results = told([start("echo no such thing >&2; exit 2")], &[]);
    assert!(results[0].contains("r1: exit 2 after 0 s\nno such thing\n"), "{}", results[0]);
}

#[test]
fn stopping_ends_everything_that_it_started() {
    let server = Server::start([
        start(Lifeline::STUBBORN),
        background(&json!({"id": "r1", "action": "stop"})),
        Reply::text("done"),
    ]);
    let run = Run::task(&server, "task").args(["--approve", "all"]);
    let lifeline = Lifeline::new(&run.place().workspace());
    run.run().success().stderr_lacks("ended the background commands");
    lifeline.wait_dead();
    let requests = server.requests();
    assert!(requests[2].last_result().contains("r1: stopped after"), "{}", requests[2].last_result());
}

#[test]
fn that_it_ended_by_itself_is_told_with_the_next_result() {
    let server = Server::answering(|request, index| match index {
        0 => start(WAITS_FOR_GO),
        1 => run("touch go"),
        _ if request.last_result().contains("[r1 in the background: exit 3 after") => Reply::text("done"),
        _ => run(&format!("echo {index}; sleep 0.1")),
    });
    Run::task(&server, "task").args(["--approve", "all"]).run().success().stdout_is("done\n");
}

#[test]
fn its_own_timeout_ends_it() {
    let call = json!({"command": "echo begun; sleep 600", "background": true, "timeout": 2});
    let results = told([Reply::call("run_command", &call), background(&json!({"id": "r1", "wait": 600}))], &[]);
    assert!(results[1].contains("r1: timed out after 2 s"), "{}", results[1]);
}

#[test]
fn none_survives_the_end_of_the_run() {
    for command in [Lifeline::COMMAND, Lifeline::STUBBORN] {
        let server = Server::start([start(command), Reply::text("done")]);
        let run = Run::task(&server, "task").args(["--approve", "all"]);
        let lifeline = Lifeline::new(&run.place().workspace());
        run.run().success().stderr_has("ended the background commands: r1 `");
        lifeline.wait_dead();
    }
}

#[test]
fn none_survives_a_signal() {
    for (signal, code) in SIGNALS {
        let server =
            Server::start([start(Lifeline::STUBBORN), Reply::text("First half, second half.").then(2, Act::Hang)]);
        let run = Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]);
        let lifeline = Lifeline::new(&run.place().workspace());
        let running = run.spawn();
        lifeline.wait_started();
        running.wait_stdout("First half");
        running.signal(signal);
        running.wait().exits(code);
        lifeline.wait_dead();
    }
}

#[test]
fn none_survives_two_signals_at_once() {
    let server =
        Server::start([start(Lifeline::STUBBORN), Reply::text("First half, second half.").then(2, Act::Hang)]);
    let run = Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]);
    let lifeline = Lifeline::new(&run.place().workspace());
    let running = run.spawn();
    running.wait_stdout("First half");
    running.signal(Signal::SIGINT);
    running.signal_if_alive(Signal::SIGINT);
    running.wait().exits(130);
    lifeline.wait_dead();
}

#[test]
fn in_a_chat_it_lives_from_turn_to_turn_until_the_conversation_ends() {
    for ending in ["/clear", "/quit", "interrupt"] {
        let server = Server::answering(|_, index| match index {
            0 => start(Lifeline::STUBBORN),
            1 => Reply::text("It is up."),
            2 => background(&json!({"id": "r1", "wait": 0})),
            3 => Reply::text("Still up."),
            _ => Reply::text("Thinking about it all").then(2, Act::Hang),
        });
        let run = Run::new().args(["chat", "--approve", "all"]).server(&server);
        let lifeline = Lifeline::new(&run.place().workspace());
        let mut terminal = Terminal::start(&run);
        terminal.wait_for("> ");
        terminal.line("start it");
        terminal.wait_for("It is up.");
        lifeline.wait_started();
        terminal.line("look");
        terminal.wait_for("Still up.");
        assert!(server.requests()[3].last_result().contains("r1: running for"), "it lives on");
        if ending == "interrupt" {
            terminal.line("think");
            terminal.wait_for("Think");
            terminal.keys("\x03");
        } else {
            terminal.line(ending);
        }
        lifeline.wait_dead();
        terminal.wait_for("ended the background commands");
    }
}

/// A chat that starts a command, goes through these lines, and looks after the command.
fn after(run: Run, lines: &[&str]) -> (Output, String) {
    let server = Server::answering(|_, index| match index {
        0 => start(WAITS_FOR_GO),
        1 => Reply::text("It is up."),
        2 => background(&json!({"id": "r1", "wait": 0})),
        _ => Reply::text("Looked."),
    });
    let typed = [&["start it"], lines, &["look"]].concat().join("\n") + "\n";
    let output = run.args(["chat", "--approve", "all"]).server(&server).stdin(typed).run().success();
    let told = server.requests()[3].last_result().to_owned();
    (output, told)
}

#[test]
fn in_a_chat_it_outlives_an_agent_that_holds_commands_as_the_one_before() {
    let lines = [
        "/model another-model", "/mode explore", "/mode direct", "/approve edits", "/approve all",
        "/set limits.max_turns=20", "/agent second",
    ];
    let (output, told) = after(Run::new().config("agents/second.yaml", "description: Another.\n"), &lines);
    let output = output.stderr_has("The agent is now second").stderr_has("limits.max_turns: 50 → 20");
    assert!(told.contains("r1: running for"), "{told}");
    // It still ends with the chat, once.
    let ended = "ended the background commands: r1";
    assert_eq!(output.stderr.matches(ended).count(), 1, "{}", output.shown());
    assert!(output.stderr.find(ended) > output.stderr.find("The agent is now second"), "{}", output.shown());
}

#[test]
fn in_a_chat_it_ends_with_the_walls_that_it_ran_in_and_with_the_tool_that_reads_it() {
    for (line, why) in [
        ("/set agents.default.sandbox.write=[~/other]", ": `sandbox` has other settings now"),
        ("/set agents.default.sandbox.env=[EDITOR]", ": `sandbox` has other settings now"),
        ("/agent reader", ": the agent has no tool `background`"),
    ] {
        let run = Run::new().config("agents/reader.yaml", "tools: ['*', '!background']\n");
        let (output, told) = after(run, &[line]);
        let output = output.stderr_has("ended the background commands: r1 `echo begun");
        assert!(output.stderr.contains(why), "{}", output.shown());
        assert!(!told.contains("running for"), "{told}");
    }
}

#[test]
fn by_hand_it_is_refused_with_the_reason() {
    let call =
        ["tool", "call", "run_command", r#"{"command": "sleep 9", "background": true}"#, "--approve", "all"];
    let server = Server::start([]);
    Run::new().args(call).server(&server).run().exits(1).stdout_has("this one ends with its call");
}

#[test]
fn secrets_are_taken_out_before_anything_is_kept() {
    let secret = format!("printf 'key %s\\n' {KEY}; sleep 600");
    let results = told([start(&secret), Reply::call("recall", &json!({"id": "r1"}))], &[]);
    for result in results {
        assert!(result.contains("key ***") && !result.contains(KEY), "{result}");
    }
}

#[test]
fn a_flood_is_cut_and_kept() {
    let results = told([start("seq 1 200000; sleep 600")], &[]);
    assert!(results[0].contains("\n1\n2\n") && results[0].contains("200000\n"), "{}", results[0]);
    assert!(
        results[0].contains("recall id=r1 reads the whole") && results[0].len() < 40_000,
        "{}",
        results[0].len()
    );
}

#[test]
fn the_tools_come_and_go_together() {
    let server = Server::always(Reply::text("done"));
    Run::task(&server, "task").config("tools/run_command.yaml", "enabled: false\n").run().success();
    assert!(!server.only_request().tool_names().contains(&"background"));
    let server = Server::start([start("touch ran"), Reply::text("done")]);
    let off =
        Run::task(&server, "task").args(["--approve", "all"]).config("tools/background.yaml", "enabled: false\n");
    let output = off.run().success();
    assert!(server.requests()[1].last_result().contains("`background` is switched off"));
    assert!(!output.place.exists("ran"));
}

#[test]
fn what_it_may_not_make_is_moved_aside_while_others_write() {
    let hook = "h=.git/hooks; mkdir -p $h; while [ ! -e go ]; do sleep 0.02; done; echo evil > $h/pre-commit; touch made; sleep 600";
    let server = Server::start([
        start(hook),
        Reply::call("write_file", &json!({"path": "notes", "content": "mine\n"})),
        run("touch go; while [ ! -e made ]; do sleep 0.02; done"),
        background(&json!({"id": "r1", "action": "stop"})),
        Reply::text("done"),
    ]);
    let output = Run::task(&server, "task").args(["--approve", "all"]).file("a", "").run().success();
    let requests = server.requests();
    assert!(
        requests[4].tool_results().iter().any(|(_, text)| text.contains("moved aside: .git/hooks ")),
        "{:?}",
        requests[4].tool_results()
    );
    assert!(!output.place.exists(".git/hooks/pre-commit"));
    assert_eq!(output.place.read("notes"), "mine\n");
}
