//! The REPL in a real terminal: no input lost, no wide character garbled, Ctrl-C and Ctrl-D as a shell user expects.

use serde_json::json;

use crate::lifeline::Lifeline;
use crate::pty::Terminal;
use crate::reply::{Act, Reply};
use crate::run::{Place, Run};
use crate::server::{Server, assert_answered_once, assert_append_only};

/// A chat that is ready for its first message.
pub fn chat(server: &Server) -> Terminal {
    start(&Run::new().server(server))
}

/// The same of any run that chats.
pub fn start(run: &Run) -> Terminal {
    let terminal = Terminal::start(run);
    terminal.wait_for("> ");
    terminal
}

/// The last thing that the user said in each request.
pub fn said(server: &Server) -> Vec<String> {
    server.requests().iter().map(|request| request.user().to_owned()).collect()
}

#[test]
fn a_conversation_of_two_turns() {
    let server = Server::start([Reply::text("First answer."), Reply::text("Second answer.")]);
    let mut terminal = chat(&server);
    terminal.line("one");
    terminal.wait_for("First answer.");
    terminal.line("two");
    terminal.wait_for("Second answer.");
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    assert_append_only(&server.requests());
    assert_eq!(said(&server), ["one", "two"]);
}

#[test]
fn a_model_gives_a_chat_its_title_after_the_first_turn() {
    let server = Server::start([
        Reply::text("It waits longer now."),
        Reply::text("**Login test: mend the timeout**\n"),
        Reply::text("Fine."),
    ]);
    let place = Place::new();
    let run = Run::at(&place).server(&server).config("agent.yaml", "ui: { title_model: default }\n");
    let mut terminal = start(&run);
    terminal.line("please could you have a look at tests/login.rs");
    terminal.wait_for("It waits longer now.");
    terminal.line("thanks");
    terminal.wait_for("Fine.");
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    let requests = server.requests();
    let asked = requests[1].user();
    assert!(asked.contains("<task>\nplease could you") && asked.contains("It waits longer now."), "{asked}");
    assert_eq!(said(&server)[2], "thanks", "only the first turn asks");
    let listed = Run::at(&place).args(["session", "list", "-o", "json"]).run().success().json();
    assert_eq!(
        (&listed[0]["title"], &listed[0]["named"]),
        (&json!("Login test: mend the timeout"), &json!(false))
    );
    let id = listed[0]["id"].as_str().expect("an id");
    Run::at(&place).args(["session", "show", id]).run().success().stdout_has("3 steps").stdout_has("Login test");
}

#[test]
fn a_title_is_awaited_by_the_next_message_and_not_by_who_leaves() {
    let place = Place::new();
    for (next, asked) in [("thanks", 3), ("/exit", 2)] {
        let gate = crate::reply::Gate::new();
        let replies = [Reply::text("Done."), Reply::text("Mended").gate(&gate, 0), Reply::text("Fine.")];
        let server = Server::start(replies);
        let run = Run::at(&place).server(&server).config("agent.yaml", "ui: { title_model: default }\n");
        let mut terminal = start(&run);
        terminal.line("mend it");
        gate.reached();
        terminal.keys(next);
        terminal.wait_for(next);
        terminal.keys("\r");
        if asked == 3 {
            gate.open();
            terminal.wait_for("Fine.");
            terminal.line("/exit");
        }
        assert_eq!(terminal.exit_code(), 0);
        assert_eq!(server.requests().len(), asked);
        assert!(!terminal.screen().contains("title"), "{}", terminal.screen());
    }
}

#[test]
fn a_chat_over_a_pipe_has_its_title_before_the_pipe_ends() {
    let server = Server::start([Reply::text("Done."), Reply::text("Mended")]);
    let run = Run::new().server(&server).config("agent.yaml", "ui: { title_model: default }\n");
    let output = run.arg("chat").stdin("mend it\n").run().success();
    Run::at(&output.place).args(["session", "list"]).run().success().stdout_has("Mended");
}

#[test]
fn without_a_title_the_first_message_stands() {
    let server = Server::start([Reply::text("Done."), Reply::error(400, "no such model")]);
    let place = Place::new();
    let run = Run::at(&place).server(&server).config("agent.yaml", "ui: { title_model: default }\n");
    let mut terminal = start(&run);
    terminal.line("mend it");
    terminal.wait_for("`ui.title_model`");
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    Run::at(&place).args(["session", "list"]).run().success().stdout_has("mend it");
}

#[test]
fn keys_typed_while_the_answer_streams_are_not_lost() {
    let gate = crate::reply::Gate::new();
    let server = Server::start([Reply::text("First answer.").gate(&gate, 2), Reply::text("Second answer.")]);
    let mut terminal = chat(&server);
    terminal.line("one");
    gate.reached();
    terminal.line("typed ahead");
    gate.open();
    terminal.wait_for("Second answer.");
    assert_eq!(said(&server), ["one", "typed ahead"]);
}

#[test]
fn control_d_on_an_empty_line_leaves() {
    let server = Server::start([Reply::text("First answer.")]);
    let mut terminal = chat(&server);
    terminal.line("one");
    terminal.wait_for("First answer.");
    terminal.keys("\x04");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn control_c_on_an_empty_line_says_how_to_leave() {
    let server = Server::start([Reply::text("Fine.")]);
    let mut terminal = chat(&server);
    terminal.keys("\x03");
    terminal.wait_for("Ctrl-D or /exit leaves.");
    terminal.line("one");
    terminal.wait_for("Fine.");
    assert_eq!(said(&server), ["one"]);
}

#[test]
fn a_person_who_leaves_after_a_failed_turn_ends_with_0() {
    let server = Server::start([Reply::error(400, "no such thing")]);
    let mut terminal = chat(&server);
    terminal.line("one");
    terminal.wait_for("no such thing");
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn control_c_clears_a_half_typed_line_and_stops_an_answer_but_never_the_program() {
    let server = Server::start([Reply::text("Half of it, and more.").then(2, Act::Hang), Reply::text("Fine.")]);
    let mut terminal = chat(&server);
    terminal.keys("not this");
    terminal.wait_for("not this");
    terminal.keys("\x03");
    terminal.line("one");
    terminal.wait_for("Half of");
    terminal.keys("\x03");
    terminal.line("two");
    terminal.wait_for("Fine.");
    assert_eq!(said(&server), ["one", "two"]);
    assert_answered_once(&server.requests()[1]);
    assert!(server.requests()[1].raw.contains("Half of"), "what was streamed is kept");
}

#[test]
fn control_c_kills_a_running_command_and_the_next_one_works() {
    let command = |line: &str| Reply::call("run_command", &json!({ "command": line }));
    let server = Server::start([command(Lifeline::COMMAND), command("echo still here"), Reply::text("Fine.")]);
    let run = Run::new().args(["chat", "--approve", "all"]).server(&server);
    let lifeline = Lifeline::new(&run.place().workspace());
    let mut terminal = start(&run);
    terminal.line("run it");
    lifeline.wait_started();
    terminal.keys("\x03");
    lifeline.wait_dead();
    terminal.line("two");
    terminal.wait_for("Fine.");
    let requests = server.requests();
    assert_answered_once(&requests[1]);
    // A terminal sends the key to every process of the group.
    assert!(requests[2].last_result().contains("still here"), "{}", requests[2].last_result());
}

#[test]
fn wide_characters_are_typed_edited_and_sent_whole() {
    let server = Server::start([Reply::text("你好，世界 👋🏽 done")]);
    let mut terminal = chat(&server);
    terminal.keys("日本語x");
    terminal.wait_for("日本語x");
    // Backspace takes the x, then one wide character.
    terminal.keys("\x7f\x7f");
    terminal.line("é🎉");
    terminal.wait_for("done");
    assert_eq!(said(&server), ["日本é🎉"]);
    assert!(terminal.screen().contains("你好，世界"), "{}", terminal.screen());
}

#[test]
fn many_lines_are_one_message_however_they_are_entered() {
    let server = Server::always(Reply::text("Noted."));
    let mut terminal = chat(&server);
    let mut turn = |keys: &mut dyn FnMut(&mut Terminal), expected: &str| {
        let before = server.requests().len();
        keys(&mut terminal);
        terminal.wait_until("the answer", |screen| {
            server.requests().len() > before && screen.matches("Noted.").count() > before
        });
        assert_eq!(said(&server).last().map(String::as_str), Some(expected));
    };
    turn(
        &mut |terminal| {
            terminal.paste("line one\nline two");
            terminal.keys("\r");
        },
        "line one\nline two",
    );
    turn(
        &mut |terminal| {
            terminal.wait_until("the prompt", |screen| screen.trim_end().ends_with('>'));
            terminal.line("begun \\");
            terminal.wait_for("> begun \n  ");
            terminal.line("ended");
        },
        "begun \nended",
    );
    turn(
        &mut |terminal| {
            terminal.line("\"\"\"");
            terminal.line("in quotes");
            terminal.line("\"\"\"");
        },
        "in quotes",
    );
}

#[test]
fn commands_come_from_one_table() {
    let server = Server::start([]);
    let mut terminal = chat(&server);
    terminal.line("/help");
    terminal.wait_for("Ctrl-R");
    // The first ones may have left the screen.
    let shown = terminal.raw();
    for command in ["/help", "/model", "/tools", "/skills", "/context", "/stats", "/clear", "/exit"] {
        assert!(shown.contains(command), "{command} is missing in\n{shown}");
    }
    terminal.line("/stats");
    terminal.wait_for("No tool was called.");
    terminal.line("/tools");
    terminal.wait_for("edit_file");
    terminal.line("/no-such-command");
    terminal.wait_until("the mistake and the prompt", |screen| {
        screen.matches("no-such-command").count() > 1 && screen.trim_end().ends_with("\n>")
    });
    terminal.keys("/cont\t");
    terminal.wait_for("> /context");
    assert!(server.requests().is_empty(), "a command is not a message");
}

#[test]
fn paths_are_completed_after_an_at_sign() {
    let server = Server::start([Reply::text("Seen.")]);
    let run = Run::new().server(&server).file("unmistakable.txt", "x");
    let mut terminal = start(&run);
    terminal.keys("look at @unmis\t");
    terminal.wait_for("@unmistakable.txt");
}

#[test]
fn clear_begins_anew() {
    let server = Server::always(Reply::text("Noted."));
    let mut terminal = chat(&server);
    terminal.line("remember the heron");
    terminal.wait_for("Noted.");
    terminal.line("/clear");
    terminal.line("what was it?");
    terminal.wait_until("a second request", |_| server.requests().len() > 1);
    assert!(!server.requests()[1].raw.contains("heron"), "{}", server.requests()[1].raw);
}

#[test]
fn a_write_is_asked_for_and_shows_what_it_would_do() {
    let write = |name: &str| Reply::call("write_file", &json!({"path": name, "content": "the new text\n"}));
    let server =
        Server::start([write("yes.txt"), Reply::text("Written."), write("no.txt"), Reply::text("Left it.")]);
    let mut terminal = chat(&server);
    terminal.line("write yes");
    terminal.wait_for("Allow?");
    assert!(terminal.screen().contains("+ the new text"), "{}{:?}", terminal.screen(), terminal.raw());
    terminal.line("y");
    terminal.wait_for("Written.");
    assert_eq!(terminal.place.read("yes.txt"), "the new text\n");
    terminal.line("write no");
    terminal.wait_until("the second question", |screen| screen.contains("│ no.txt") && screen.contains("(y or n"));
    terminal.line("n");
    terminal.wait_for("Left it.");
    assert!(!terminal.place.exists("no.txt"));
}

#[test]
fn a_resize_in_the_middle_of_a_line_loses_nothing() {
    let server = Server::start([Reply::text("Seen.")]);
    let mut terminal = chat(&server);
    terminal.keys("the first half of a line ");
    terminal.wait_for("the first half of a line");
    terminal.resize(50, 20);
    terminal.keys("and its second half, which is longer");
    terminal.resize(120, 40);
    terminal.keys("\r");
    terminal.wait_for("Seen.");
    assert_eq!(said(&server), ["the first half of a line and its second half, which is longer"]);
}

#[test]
fn what_a_model_says_cannot_move_the_cursor() {
    let server = Server::start([Reply::text("start \u{1b}[2J\u{1b}]0;title\u{7} \u{202e}end")]);
    let mut terminal = chat(&server);
    terminal.line("one");
    terminal.wait_for("end");
    assert!(!terminal.raw().contains("\u{1b}[2J\u{1b}]0;"), "{:?}", terminal.raw());
    assert!(!terminal.raw().contains('\u{202e}'));
}

#[test]
fn on_a_terminal_run_streams_every_text() {
    let gate = crate::reply::Gate::new();
    let server = Server::start([Reply::text("First half, second half.").gate(&gate, 2)]);
    let mut terminal = Terminal::start(&Run::task(&server, "task"));
    gate.reached();
    terminal.wait_for("First half");
    gate.open();
    terminal.wait_for("second half.");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_failed_turn_is_shown_and_the_next_message_works() {
    let server = Server::start([Reply::error(400, "no such thing"), Reply::text("Fine.")]);
    let mut terminal = chat(&server);
    terminal.line("one");
    terminal.wait_for("no such thing");
    terminal.line("two");
    terminal.wait_for("Fine.");
}

#[test]
fn control_c_pressed_twice_at_an_empty_prompt_leaves() {
    let server = Server::start([]);
    let mut terminal = chat(&server);
    // In one moment they are one.
    terminal.keys("\x03\x03");
    terminal.wait_for("Ctrl-C again, Ctrl-D or /exit leaves.");
    terminal.keys("here");
    terminal.wait_for("> here");
    terminal.keys("\x15\x03");
    let paused = std::process::Command::new("sleep").arg("0.1").status();
    assert!(paused.expect("the system has sleep").success());
    terminal.keys("\x03");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_line_that_control_c_cleared_comes_back_with_up() {
    let server = Server::start([Reply::text("Fine.")]);
    let mut terminal = chat(&server);
    terminal.keys("a long thought\x03");
    terminal.wait_until("an empty prompt", |screen| screen.trim_end().ends_with("\n>"));
    terminal.keys("\x1b[A");
    terminal.wait_until("the line again", |screen| screen.trim_end().ends_with("> a long thought"));
    terminal.keys("\r");
    terminal.wait_for("Fine.");
    assert_eq!(said(&server), ["a long thought"]);
}
