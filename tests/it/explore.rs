//! Mode `explore`: it reads and proposes; nothing changes until a person approves the proposal.

use serde_json::json;

use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

fn write(path: &str) -> Reply {
    Reply::call("write_file", &json!({"path": path, "content": "changed\n"}))
}

fn command(line: &str) -> Reply {
    Reply::call("run_command", &json!({"command": line}))
}

#[test]
fn nothing_is_changed_and_the_proposal_is_the_answer() {
    let changes = [
        write("a.txt"),
        command("touch a.txt"),
        command("ls > a.txt"),
        Reply::call("edit_file", &json!({"path": "b.txt", "old_text": "old", "new_text": "new"})),
    ];
    for change in changes {
        // Neither a mode nor a rule permits more.
        for args in [&[][..], &["--approve", "all"], &["--set", "permissions.rules=[{allow: run_command}]"]] {
            let server = Server::start([change.clone(), Reply::text("I would write a.txt.")]);
            let run = Run::task(&server, "task")
                .args(["--mode", "explore"])
                .file("b.txt", "old")
                .args(args.iter().copied());
            let output = run.run().success().stdout_is("I would write a.txt.\n");
            assert!(!output.place.exists("a.txt") && output.place.read("b.txt") == "old", "{args:?}");
            let result = server.requests()[1].last_result().to_owned();
            assert!(result.contains("propose it in your answer"), "{result}");
        }
    }
}

#[test]
fn what_only_reads_runs_in_walls_that_let_nothing_be_written() {
    let server = Server::start([
        command("cat notes.txt"),
        Reply::call("read_file", &json!({"path": "notes.txt"})),
        Reply::text("ok"),
    ]);
    Run::task(&server, "task").args(["--mode", "explore"]).file("notes.txt", "the notes\n").run().success();
    for request in &server.requests()[1..] {
        assert!(request.last_result().contains("the notes"), "{}", request.last_result());
    }
}

#[test]
fn without_a_sandbox_no_command_runs() {
    let server = Server::start([command("ls"), Reply::text("ok")]);
    Run::task(&server, "task").args(["--mode", "explore", "--sandbox", "off", "--approve", "all"]).run().success();
    let result = server.requests()[1].last_result().to_owned();
    assert!(result.contains("Not run") && result.contains("mode `explore`"), "{result}");
}

#[test]
fn the_prefix_is_that_of_the_other_modes_and_a_note_tells_the_model() {
    let server = Server::always(Reply::text("ok"));
    let place = Run::task(&server, "task").run().success().place;
    Run::at(&place).args(["run", "task", "--mode", "explore"]).server(&server).run().success();
    let requests = server.requests();
    assert_eq!(requests[0].body["tools"], requests[1].body["tools"]);
    assert_eq!(requests[0].system(), requests[1].system());
    let (plain, exploring) = (requests[0].body.to_string(), requests[1].body.to_string());
    assert!(exploring.contains("answered in mode `explore`") && !plain.contains("mode `explore`"), "{exploring}");
    assert!(exploring.contains("nobody is there to approve it"), "{exploring}");
}

#[test]
fn an_approved_proposal_is_carried_out_in_the_same_turn() {
    let server = Server::start([Reply::text("I would write a.txt."), write("a.txt"), Reply::text("Written.")]);
    let mut terminal = Terminal::start(&Run::task(&server, "task").args(["--mode", "explore"]));
    terminal.wait_for("Carry it out? (y or n");
    assert!(!terminal.place.exists("a.txt"));
    terminal.line("y");
    // What is approved is the proposal; each call is judged as ever.
    terminal.wait_for("Allow?");
    terminal.line("y");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(terminal.place.read("a.txt"), "changed\n");
    assert!(server.requests()[1].body.to_string().contains("The user approves the proposal. Carry it out."));
}

#[test]
fn a_refusal_ends_the_turn_and_a_reason_has_it_proposed_anew() {
    let server =
        Server::start([Reply::text("I would write a.txt."), write("b.txt"), Reply::text("I would write b.txt.")]);
    let mut terminal = Terminal::start(&Run::task(&server, "task").args(["--mode", "explore"]));
    terminal.wait_for("Carry it out?");
    terminal.tell("not that file");
    terminal.wait_until("a second question", |screen| {
        screen.contains("change? not that file") && screen.contains("Carry it out? (y or n")
    });
    terminal.line("n");
    assert_eq!(terminal.exit_code(), 0);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[1].body.to_string().contains("says: not that file"));
    assert!(requests[2].last_result().contains("propose it in your answer"), "nothing was approved");
    assert!(!terminal.place.exists("a.txt") && !terminal.place.exists("b.txt"));
}

#[test]
fn a_proposal_can_be_edited() {
    let server = Server::start([Reply::text("I would write a.txt."), Reply::text("Done.")]);
    let run = Run::task(&server, "task")
        .args(["--mode", "explore"])
        .file("edit.sh", "sed -i s/a.txt/c.txt/ \"$1\"\n")
        .env("VISUAL", "sh edit.sh");
    let mut terminal = Terminal::start(&run);
    terminal.wait_for("Carry it out?");
    terminal.pick("Edit");
    assert_eq!(terminal.exit_code(), 0);
    let request = server.requests()[1].body.to_string();
    assert!(request.contains("as they edited it") && request.contains("I would write c.txt."), "{request}");
}

#[test]
fn a_chat_switches_the_mode() {
    let server = Server::start([
        Reply::text("I would write a.txt."),
        write("a.txt"),
        Reply::text("I may not."),
        write("a.txt"),
        Reply::text("Written."),
    ]);
    let run = Run::new().arg("chat").args(["--approve", "edits"]).server(&server);
    let mut terminal = Terminal::start(&run);
    terminal.wait_for("> ");
    terminal.line("/mode explore");
    terminal.wait_for("The mode is now explore");
    terminal.line("propose");
    terminal.wait_for("Carry it out?");
    terminal.line("n");
    let turns = |count: usize| move |screen: &str| screen.matches("cost unknown").count() == count;
    terminal.wait_until("the end of the turn", turns(1));
    terminal.line("try it");
    terminal.wait_until("the second proposal", |screen| screen.contains("Carry it out? (y or n"));
    assert!(!terminal.place.exists("a.txt"));
    terminal.line("n");
    terminal.wait_until("the end of the turn", turns(2));
    terminal.line("/mode direct");
    terminal.wait_for("The mode is now direct");
    terminal.line("do it");
    terminal.wait_until("the end of the turn", turns(3));
    terminal.line("/mode");
    terminal.wait_for("*  direct");
    terminal.keys("\u{4}");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(terminal.place.read("a.txt"), "changed\n");
    assert_eq!(server.requests()[0].system(), server.requests()[4].system(), "the prefix holds");
}
