//! The lines of a chat over a pipe: messages, commands and mentions, the exit code that is left of them, and what
//! belongs to the conversation and what to the agent.

use std::sync::Arc;

use serde_json::json;

use crate::output::Output;
use crate::repl::said;
use crate::reply::{Act, Gate, Reply};
use crate::run::{Place, Run};
use crate::server::Server;

/// A chat that allows everything and reads these lines.
fn lines(run: Run, lines: &[&str]) -> Run {
    run.args(["chat", "--approve", "all"]).stdin(lines.join("\n") + "\n")
}

#[test]
fn messages_become_turns_and_commands_do_not() {
    let server = Server::always(Reply::text("Noted."));
    let typed = [
        "hello", " ", "/model", "/model another", "/model", "/clear", "//x", "\"\"\"", "/help", "\"\"\"",
        "/tools x", "/hlep", "/help exit", "/quit", "not read",
    ];
    let output = lines(Run::new().server(&server), &typed).run().success();
    assert_eq!(said(&server), ["hello", "/x", "/help"]);
    output
        .stderr_has("*  default  scripted-model")
        .stderr_has("The model is now another.")
        .stderr_has("*  default  another")
        .stderr_has("A new conversation. The one before is kept: agent chat --session ")
        .stderr_has("/tools takes no argument")
        .stderr_has("/hlep: did you mean /help?")
        .stderr_has("/exit  leave (Ctrl-D does too); also /quit");
}

#[test]
fn nothing_is_kept_of_a_conversation_that_has_not_begun() {
    let server = Server::always(Reply::text("Noted."));
    let output = lines(Run::new().server(&server), &["/clear"]).run().success();
    output.stderr_has("A new conversation.").stderr_lacks("is kept");
}

#[test]
fn a_pin_means_one_thing_and_is_taken_back() {
    let server = Server::always(Reply::text("The tide answers."));
    let typed = ["first tide", "second", "/pin tide", "/pin first", "/pin m3", "/unpin", "/unpin m1", "/unpin"];
    let output = lines(Run::new().server(&server), &typed).run().success();
    for said in [
        "error: 3 messages contain `tide`; name one by its id:\nm4  the model: The tide answers.\nm2  ",
        "Pinned:\nm1  you: first tide\n",
        "Pinned:\nm3  you: second\n",
        "No longer pinned:\nm3  you: second\n",
        "No longer pinned:\nm1  you: first tide\n",
        "error: nothing is pinned there",
    ] {
        assert!(output.stderr.contains(said), "{said}\n{}", output.shown());
    }
}

#[test]
fn a_command_that_fails_says_why_and_the_chat_goes_on() {
    let server = Server::always(Reply::text("Noted."));
    let typed = [
        "/model x", "/pin", "/unload", "/unload brew", "/pin nowhere", "/compact", "/uncompact", "/stats", "hello",
    ];
    let run = Run::new()
        .server(&server)
        .config("models/default.yaml", "provider: scripted\nscript: [{ text: Noted. }]\n");
    lines(run, &typed)
        .run()
        .success()
        .stderr_has("error: there is no configured model `x`")
        .stderr_has("error: there is nothing to pin yet")
        .stderr_has("error: name a skill. /skills shows which are loaded.")
        .stderr_has("error: brew is not loaded")
        .stderr_has("error: no message contains `nowhere`")
        .stderr_has("Nothing to compact: recent steps and pinned messages stay whole.")
        .stderr_has("Everything is already sent as it was said. Compressions stay off until /compact")
        .stdout_has("Noted.");
}

#[test]
fn an_ephemeral_conversation_is_replaced_by_another_one() {
    let server = Server::always(Reply::text("Noted."));
    let run =
        lines(Run::new().server(&server), &["remember the heron", "/clear", "what was it?"]).arg("--ephemeral");
    let output = run.run().success().stderr_has("A new conversation.").stderr_lacks("is kept");
    assert!(output.place.session_logs().is_empty());
    assert!(!server.requests()[1].raw.contains("heron"), "{}", server.requests()[1].raw);
}

#[test]
fn a_skill_goes_along_with_its_task_or_with_the_next_message() {
    let server = Server::always(Reply::text("Noted."));
    let skill = |name: &str| format!("---\nname: {name}\ndescription: About {name}.\n---\nBody of {name}.\n");
    let run = Run::new()
        .server(&server)
        .config("skills/brew/SKILL.md", &skill("brew"))
        .config("skills/bake/SKILL.md", &skill("bake"));
    let typed =
        ["/skill", "/skill brew", "/skill bru x", "/skill bake make  bread", "/skill bake", "/skill bake go on"];
    lines(run, &typed)
        .run()
        .success()
        .stderr_has("error: name a skill. /skills lists them.")
        .stderr_has("brew goes with your next message.")
        .stderr_has("error: there is no skill `bru`")
        .stderr_has("bake is already loaded.");
    let said = said(&server);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("make  bread") && said[0].contains("Body of brew") && said[0].contains("Body of bake")
    );
    assert_eq!(said[1], "go on");
}

#[test]
fn a_mentioned_file_goes_along_or_the_person_is_told_why_not() {
    let server = Server::always(Reply::text("Noted."));
    let run = Run::new().server(&server).file("a.txt", "the text of a").file("b.bin", [0]);
    lines(run, &["see @a.txt and @b.bin", "and @nobody"])
        .run()
        .success()
        .stderr_has("warning: @b.bin is not attached: it is binary")
        .stderr_lacks("nobody is not");
    assert!(said(&server)[0].contains("the text of a"), "{:?}", said(&server));
    assert_eq!(said(&server)[1], "and @nobody");
}

#[test]
fn a_pipe_ends_with_the_code_of_the_last_failure() {
    let server = Server::start([Reply::error(400, "no such thing"), Reply::text("Fine.")]);
    lines(Run::new().server(&server), &["fail", "fine"]).run().exits(5).stdout_has("Fine.");
}

#[test]
fn a_line_that_cannot_be_read_ends_a_chat() {
    let server = Server::always(Reply::text("Noted."));
    let long = "x".repeat((16 << 20) + 1);
    let output = lines(Run::new().server(&server), &["hello", &long, "more"]).run().exits(1);
    output.reason_has("error: no more input: a line of stdin is longer than 16 MiB");
    assert_eq!(said(&server), ["hello"]);
}

#[test]
fn nothing_is_read_once_nobody_sees_the_answers() {
    let gate = Gate::new();
    let hanging = Reply::text("Never ended.").then(2, Act::Hang);
    let replies = [Reply::text("One."), Reply::text("Two.").gate(&gate, 0), Reply::text("Three."), hanging];
    let server = Server::start(replies);
    let running = lines(Run::new().server(&server), &["one", "two", "three", "four", "five"]).spawn();
    running.wait_stdout("One.");
    gate.reached();
    // The second answer is the last that is read. Writing the third one fails.
    running.close_stdout();
    gate.open();
    running.wait().success();
    assert!(!said(&server).contains(&"five".to_owned()), "{:?}", said(&server));
}

#[test]
fn an_interrupt_ends_a_chat_over_a_pipe() {
    let gate = Gate::new();
    let server = Server::start([Reply::text("First half, second half.").gate(&gate, 2)]);
    let running = lines(Run::new().server(&server), &["one", "two"]).spawn();
    gate.reached();
    running.signal(nix::sys::signal::Signal::SIGINT);
    running.wait().exits(130);
    assert_eq!(said(&server), ["one"]);
}

const OLD: &str = "the old text\n";

/// Reads `a.txt` and answers.
fn read() -> [Reply; 2] {
    [Reply::call("read_file", &json!({"path": "a.txt"})), Reply::text("Read.")]
}

/// Writes `a.txt` and answers.
fn write() -> [Reply; 2] {
    [Reply::call("write_file", &json!({"path": "a.txt", "content": "new\n"})), Reply::text("Tried.")]
}

/// One process for each list of lines; all but the first continue. The model reads where a line is `read`, and writes
/// where it is `write`.
fn chats(processes: &[&[&str]]) -> (Arc<Place>, Vec<Output>) {
    let place = Run::new().file("a.txt", OLD).place();
    let outputs = processes.iter().enumerate().map(|(index, typed)| {
        let replies = typed.iter().flat_map(|line| match *line {
            "read" => read().to_vec(),
            "write" => write().to_vec(),
            "hello" => vec![Reply::text("Noted.")],
            _ => Vec::new(),
        });
        let server = Server::start(replies.collect::<Vec<_>>());
        let run = lines(Run::at(&place).server(&server), typed);
        let run = if index == 0 { run } else { run.arg("--continue") };
        run.run().success()
    });
    let outputs = outputs.collect();
    (place, outputs)
}

#[test]
fn a_file_that_another_conversation_read_is_not_overwritten() {
    let cases: [&[&[&str]]; 3] = [
        &[&["read", "/clear", "write"]],
        &[&["read", "/clear", "hello"], &["write"]],
        &[&["read"], &["/clear", "write"]],
    ];
    for case in cases {
        let (place, outputs) = chats(case);
        outputs.into_iter().next_back().expect("a process").stderr_has("was not read in this session");
        assert_eq!(place.read("a.txt"), OLD, "{case:?}");
    }
}

#[test]
fn a_file_that_this_conversation_read_is_overwritten_whichever_model_does_it() {
    let cases: [&[&[&str]]; 4] = [
        &[&["read", "/model another", "write"]],
        &[&["read"], &["write"]],
        &[&["read", "/model another"], &["write"]],
        &[&["read"], &["/model another", "write"]],
    ];
    for case in cases {
        let (place, _) = chats(case);
        assert_eq!(place.read("a.txt"), "new\n", "{case:?}");
    }
}
