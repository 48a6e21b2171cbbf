//! The commands of a chat: the output, the changes and the refusals of each, over a pipe and at a terminal.

use serde_json::json;

use crate::output::Output;
use crate::pty::Terminal;
use crate::repl::said;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// A chat over a pipe that allows everything and reads these lines.
pub fn chat(run: Run, lines: &[&str]) -> Output {
    run.args(["chat", "--approve", "all"]).stdin(lines.join("\n") + "\n").run().success()
}

/// A chat whose model says the same to everything.
fn noted(lines: &[&str]) -> (Server, Output) {
    let server = Server::always(Reply::text("Noted."));
    let output = chat(Run::new().server(&server), lines);
    (server, output)
}

/// A program of the person's that the terminal of a test can run.
pub fn program(run: &Run, name: &str, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;

    let path = run.place().home().join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("made executable");
    path.display().to_string()
}

const REVIEWER: &str = "description: Looks at changes.\nmodel: other\ntools: [read_file]\n";

/// With another agent and another model.
pub fn two(run: Run) -> Run {
    let other = "provider: openai\nbase_url: \"{{ env.OPENAI_BASE_URL }}\"\napi_key: k\nmodel: other-model\n\
                 context_window: 32000\nprices: { input: 0.5, output: 2.0 }\n";
    run.config("agents/reviewer.yaml", REVIEWER).config("models/other.yaml", other)
}

#[test]
fn the_models_are_listed_with_window_and_price_where_nobody_can_pick() {
    let server = Server::always(Reply::text("Noted."));
    chat(two(Run::new().server(&server)), &["/model"])
        .stderr_has("*  default  scripted-model")
        .stderr_has("other    other-model     32k")
        .stderr_has("$0.5/$2");
}

#[test]
fn tab_completes_what_the_agent_has_that_is_used_now() {
    let server = Server::always(Reply::text("Noted."));
    let skill = "---\nname: sort-letters\ndescription: Use for letters.\n---\nSort them.\n";
    let run = Run::new().server(&server).arg("chat").config("skills/sort-letters/SKILL.md", skill);
    let mut terminal = crate::repl::start(&run.config("agents/bare.yaml", "skills: []\n"));
    let tried = "\x15/skill sort\t";
    terminal.press_until(tried, "the skill", |screen| screen.contains("/skill sort-letters"));
    terminal.keys("\x15");
    terminal.line("/agent bare");
    terminal.wait_for("The agent is now bare");
    terminal.keys("\x15/skill sort\tx");
    terminal.wait_for("/skill sortx");
}

#[test]
fn a_model_that_nobody_lists_is_told_and_one_without_a_server_is_refused() {
    let server = Server::always(Reply::text("Noted."));
    let output = chat(Run::new().server(&server), &["/model tset-model", "/model scripted-model"]);
    output
        .stderr_has("The model is now tset-model. No list has it")
        .stderr_has("The model is now scripted-model.\n");
    let refused = Run::new().args(["chat", "-m", "demo"]).stdin("/model tset-model\nhello\n").run().success();
    refused.stderr_has("no server is known that could have the model `tset-model`").stdout_has("scripted demo");
}

#[test]
fn a_person_picks_the_model_by_number() {
    let server = Server::always(Reply::text("Noted."));
    let mut terminal = crate::repl::start(&two(Run::new().server(&server)));
    terminal.line("/model");
    terminal.wait_for("Which model?");
    terminal.wait_for("other-model");
    let screen = terminal.screen();
    let row = screen.lines().find(|line| line.contains("other-model")).expect("it is offered");
    assert!(row.contains("32k") && row.contains("$0.5/$2"), "{row}");
    let number =
        row.trim_start_matches(|c: char| !c.is_ascii_digit()).split('.').next().expect("a number").to_owned();
    terminal.line(&number);
    terminal.wait_for("The model is now other-model.");
    terminal.line("hello");
    terminal.wait_for("Noted.");
    assert_eq!(server.requests()[0].body["model"], "other-model");
}

#[test]
fn another_agent_goes_on_with_the_conversation() {
    let server = Server::always(Reply::text("Noted."));
    let typed = ["one", "/agent", "/agent reviewer", "two", "/agent nobody", "/agent"];
    let output = chat(two(Run::new().server(&server)), &typed);
    output
        .stderr_has("*  default")
        .stderr_has("Looks at changes.")
        .stderr_has("The agent is now reviewer, with the model other-model.")
        .stderr_has("error: there is no agent `nobody`")
        .stderr_has("*  reviewer");
    let requests = server.requests();
    assert_eq!(
        (requests[0].body["model"].as_str(), requests[1].body["model"].as_str()),
        (Some("scripted-model"), Some("other-model"))
    );
    assert_eq!(requests[1].tool_names(), ["read_file"]);
    assert!(requests[1].raw.contains("one"), "the conversation goes on");
}

#[test]
fn set_shows_what_it_changed_and_what_it_did_not() {
    let server = Server::start([
        Reply::call("list_dir", &json!({"path": "."})),
        Reply::text("Stopped early."),
        Reply::text("Noted."),
    ]);
    let typed = [
        "/set",
        "/set limits.max_turns = 1",
        "list it",
        "/set limits.max_turns=1",
        "/set limits.max_turn=2",
        "/set limits.max_turns=many",
        "/set limits.max_turns",
        "/set ui.theme=dark",
        "/set agents.default.approval=ask",
        "/set",
    ];
    let output =
        Run::new().server(&server).args(["chat", "--approve", "all"]).stdin(typed.join("\n") + "\n").run();
    let output = output
        .stderr_has("Nothing was set in this chat.")
        .stderr_has("limits.max_turns: 50 → 1 (--set limits.max_turns)")
        .stderr_has("Nothing that can be shown changes: 1.")
        .stderr_has("did you mean `max_turns` or `max_tokens`")
        .stderr_has("write it as KEY=VALUE")
        .stderr_has("ui.theme is read when the program starts")
        .stderr_has("limits.max_turns         1     --set limits.max_turns");
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "the limit holds from then on: {}", output.shown());
    assert!(!output.shown().contains("agents.default.limits.max_turns"), "inherited values are told once");
}

#[test]
fn what_set_refuses_leaves_the_chat_as_it_was() {
    let server = Server::always(Reply::text("Noted."));
    let typed = [
        "/set default_agent=nobody",
        "/set models.default.model=",
        "/set agents.default.tools=[nothing]",
        "hello",
    ];
    let output = chat(Run::new().server(&server), &typed);
    output
        .stderr_has("there is no agent `nobody`")
        .stderr_has("`nothing` names nothing that exists")
        .stdout_has("Noted.");
    let request = server.only_request();
    assert_eq!(request.body["model"], "scripted-model");
    assert!(request.tool_names().contains(&"read_file"));
}

#[test]
fn a_projects_narrowing_holds_for_set_as_for_flags() {
    let call = || Reply::call("list_dir", &json!({"path": "."}));
    let turns = |typed: &[&str], flags: &[&str]| {
        let server = Server::answering(move |_, index| if index == 9 { Reply::text("Done.") } else { call() });
        let run = Run::new().server(&server).file(".agent/agents/default.yaml", "limits: { max_turns: 2 }\n");
        let run = run.args(["chat", "--approve", "all", "--trust"]).args(flags.iter().copied());
        run.stdin(typed.join("\n") + "\n").run();
        server.requests().len()
    };
    let by_flag = turns(&["go"], &["--set", "limits.max_turns=4"]);
    assert_eq!(turns(&["/set limits.max_turns=4", "go"], &[]), by_flag);
}

#[test]
fn approve_shows_and_changes_what_runs_without_a_question() {
    let write = || Reply::call("write_file", &json!({"path": "a.txt", "content": "x\n"}));
    let server = Server::start([write(), Reply::text("Not written."), write(), Reply::text("Written.")]);
    let typed = ["/approve", "write it", "/approve edits", "again", "/approve yes", "/approve"];
    let run = Run::new().server(&server).arg("chat").stdin(typed.join("\n") + "\n");
    let output = run.run();
    let output = output
        .stderr_has("*  ask    reading runs; writing and executing ask")
        .stderr_has("approval: ask (reading runs; writing and executing ask) → edits")
        .stderr_has("error: there is no approval mode `yes`; there are auto, ask, edits, all, never")
        .stderr_has("*  edits");
    assert_eq!(output.place.read("a.txt"), "x\n");
}

#[test]
fn cost_is_one_line_and_stats_a_table() {
    let server = Server::start([Reply::call("list_dir", &json!({"path": "."})), Reply::text("Noted.")]);
    chat(Run::new().server(&server), &["list", "/cost", "/stats"])
        .stderr_has("· 2 steps · 1 call")
        .stderr_has("list_dir");
}

#[test]
fn last_shows_the_whole_output_of_any_call() {
    let long = "numbered\n".repeat(5000) + "the end";
    let read = |path: &str| Reply::call("run_command", &json!({"command": format!("cat {path}")}));
    let server = Server::start([read("a.txt"), read("b.txt"), Reply::text("Read. ```\ncode\n```")]);
    let run = Run::new().server(&server).file("a.txt", &long).file("b.txt", "short");
    let typed = [
        "/last", "read", "/last", "/last 2", "/last #1", "/last 3", "/last x", "/last calls", "/last answer",
        "/last reasoning",
    ];
    let output = chat(run, &typed);
    let output = output
        .stderr_has("error: no tool was called yet")
        .stderr_has("#2 ✓ run_command {\"command\":\"cat b.txt\"}")
        .stderr_has("#1 ✓ run_command {\"command\":\"cat a.txt\"}")
        .stderr_has("error: there were 2 calls so far; /last calls lists them")
        .stderr_has("error: write /last, /last N (the Nth last call)")
        .stderr_has("/last #N shows the whole output of one of them.")
        .stderr_has("Read. ```")
        .stderr_has("error: the last turn has no reasoning");
    assert_eq!(
        output.stderr.matches("numbered").count(),
        2 * 5000,
        "what was cut for the model is whole for the person, twice"
    );
}

#[test]
fn long_output_opens_in_the_pager_and_short_output_does_not() {
    let server = Server::start([
        Reply::call("run_command", &json!({"command": "seq 200"})),
        Reply::text("Counted."),
        Reply::call("run_command", &json!({"command": "echo short one"})),
        Reply::text("Said."),
    ]);
    let run = Run::new().args(["chat", "--approve", "all"]).server(&server);
    let pager =
        program(&run, "pager", "cat > \"$HOME/paged\"; echo paged; read -r key < /dev/tty; echo \"got $key\"");
    let mut terminal = crate::repl::start(&run.env("PAGER", format!("{pager} # by a shell")));
    terminal.line("count");
    terminal.wait_for("Counted.");
    terminal.line("/last");
    terminal.wait_for("paged");
    // The pager has the keys, and the chat has them again afterwards.
    terminal.line("q");
    terminal.wait_for("got q");
    let seen = terminal.place.home().join("paged");
    let text = std::fs::read_to_string(seen).expect("it was paged");
    assert!(text.contains("#1 ✓ run_command") && text.contains("\n200\n"), "{text}");
    terminal.line("say");
    terminal.wait_for("Said.");
    terminal.line("/last");
    terminal.wait_for("#2 ✓ run_command");
    assert!(!terminal.screen().ends_with("paged"), "{}", terminal.screen());
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn recall_finds_for_the_person_what_it_finds_for_the_model() {
    let long = format!("{}the heron stood there\n{}", "a line\n".repeat(6000), "a line\n".repeat(6000));
    let server =
        Server::start([Reply::call("run_command", &json!({"command": "cat a.txt"})), Reply::text("Read.")]);
    let run = Run::new().server(&server).file("a.txt", &long);
    chat(run, &["read", "/recall heron", "/recall r1", "/recall r7", "/recall", "/recall no such words"])
        .stderr_has("r1:6001: the heron stood there")
        .stderr_has("a line\na line\na line\nthe heron stood there")
        .stderr_has("error: There is no `r7`: the ids are r1.")
        .stderr_has("error: name an id, such as r1 or m12")
        .stderr_has("Nothing that was left out contains `no such words`.");
}

#[test]
fn copy_takes_the_answer_or_one_of_its_code_blocks() {
    let server = Server::always(Reply::text("Look:\n```sh\nls -l\n```\nand\n```\nhéron\n```\nDone."));
    let run = Run::new().server(&server);
    let xclip = program(&run, "xclip", "cat > \"$HOME/clipboard\"");
    let path = format!("{}:/usr/bin:/bin", std::path::Path::new(&xclip).parent().expect("home").display());
    let run = run.env("PATH", path).env("DISPLAY", ":0");
    let copied = |place: &crate::run::Place| std::fs::read_to_string(place.home().join("clipboard"));
    let output = chat(run, &["/copy", "show", "/copy 3", "/copy x", "/copy 2"]);
    let output = output
        .stderr_has("error: there is no answer yet")
        .stderr_has("error: the last answer has 2 code blocks")
        .stderr_has("error: write /copy, or /copy N")
        .stderr_has("Copied 6 characters: xclip.");
    assert_eq!(copied(&output.place).expect("copied"), "héron\n");
    assert!(!output.shown().contains("]52;"), "a pipe gets no sequence");
}

#[test]
fn a_terminal_is_given_what_was_copied() {
    let server = Server::always(Reply::text("Plain answer."));
    let mut terminal = crate::repl::start(&Run::new().server(&server).env("PATH", "/nonexistent"));
    terminal.line("say");
    terminal.wait_for("Plain answer.");
    terminal.line("/copy");
    terminal.wait_for("Copied 13 characters: the terminal (OSC 52).");
    assert!(terminal.raw().contains("\x1b]52;c;UGxhaW4gYW5zd2VyLg==\x07"));
}

#[test]
fn without_any_clipboard_nothing_is_claimed() {
    let server = Server::always(Reply::text("Plain answer."));
    let run = Run::new().server(&server).env("PATH", "/nonexistent");
    chat(run, &["say", "/copy"]).stderr_has("error: there is no clipboard");
}

#[test]
fn raw_turns_the_layout_of_answers_over() {
    let (_server, output) = noted(&["/raw", "/raw"]);
    output.stderr_has("Answers are shown as the model writes them.").stderr_has("Answers are laid out again.");
}

#[test]
fn the_editor_writes_the_message() {
    let server = Server::always(Reply::text("Noted."));
    let run = Run::new().server(&server);
    let editor = program(&run, "editor", "printf 'from the\\n/editor\\n' > \"$1\"");
    let mut terminal = crate::repl::start(&run.env("EDITOR", editor));
    terminal.line("/editor");
    terminal.wait_for("Noted.");
    assert_eq!(said(&server), ["from the\n/editor"]);

    let run = Run::new().server(&server).env("EDITOR", "true");
    let mut terminal = crate::repl::start(&run);
    terminal.line("/editor");
    terminal.wait_for("Nothing was written.");
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    noted(&["/editor"]).1.stderr_has("error: there is no terminal for an editor");
}

#[test]
fn a_picture_goes_along_with_the_next_message() {
    let server = Server::always(Reply::text("Noted."));
    let sees = "capabilities: { vision: true }\n";
    let run = Run::new()
        .server(&server)
        .config("models/default.yaml", sees)
        .file("a b.gif", "GIF89a")
        .file("a.txt", "x");
    let output = chat(run, &["/image", "/image a.txt", "/image no.png", "/image \"a b.gif\"", "look", "and now?"]);
    output
        .stderr_has("error: name a picture")
        .stderr_has("error: a.txt is not a PNG, JPEG, WebP or GIF picture")
        .stderr_has("error: no.png does not exist")
        .stderr_has("Attached a b.gif (1 KiB). It goes with your next message.");
    let requests = server.requests();
    assert!(requests[0].raw.contains("data:image/gif;base64,R0lGODlh"), "{}", requests[0].raw);
    assert_eq!(requests[1].raw.matches("R0lGODlh").count(), 1, "it is sent as part of its own message");
    let (_server, output) = noted(&["/image x.png"]);
    output.stderr_has("error: scripted-model sees no pictures; /model uses another model");
}

#[test]
fn init_asks_the_model_for_the_notes_and_overwrites_nothing_unasked() {
    let server = Server::always(Reply::text("Done."));
    let notes = |run: Run, lines: &[&str]| chat(run.server(&server), lines);
    notes(Run::new(), &["/init", "/init anew"]).stderr_has("error: write /init, or /init update");
    notes(Run::new().file("AGENTS.md", "# Notes\n"), &["/init", "/init update"])
        .stderr_has("error: AGENTS.md exists; /init update lets the model improve it");
    let said = said(&server);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("Write `AGENTS.md`") && said[1].starts_with("Improve `AGENTS.md`"), "{said:?}");
}

#[test]
fn help_is_readable_on_a_narrow_and_on_a_wide_screen() {
    for columns in [40, 80] {
        let server = Server::always(Reply::text("Noted."));
        let mut terminal = Terminal::sized(&Run::new().server(&server), columns, 120);
        terminal.wait_for("> ");
        terminal.line("/help");
        terminal
            .wait_until("all of it", |screen| screen.contains("Esc Esc") && screen.trim_end().ends_with("\n>"));
        insta::assert_snapshot!(
            format!("help_{columns}"),
            terminal
                .screen()
                .lines()
                .skip_while(|line| *line != "> /help")
                .map(|line| line.to_owned() + "\n")
                .collect::<String>()
        );
    }
}
