//! A person reviews a plan before it runs: runs it, refuses it, edits it; and asks for it in a chat.

use serde_json::json;

use crate::plans::{Role, accepted, plan, roles, step, told};
use crate::pty::Terminal;
use crate::run::Run;
use crate::server::Server;

/// A server whose plan writes `path`.
fn planning(path: &str) -> Server {
    let input = json!({"path": path, "content": "planned\n"});
    let plan = plan(&[step(1, "write_file", &input, &[]), step(2, "list_dir", &json!({"path": "."}), &[1])]);
    roles(vec![(Role::Planner, vec![plan]), (Role::Reflector, vec![accepted()])])
}

fn run(server: &Server) -> Run {
    Run::task(server, "the request").args(["--mode", "plan", "--approve", "edits"])
}

#[test]
fn a_plan_runs_once_it_is_approved() {
    let server = planning("a.txt");
    let mut terminal = Terminal::start(&run(&server));
    terminal.wait_for("Run it? (y or n");
    let screen = terminal.screen();
    for part in
        ["Plan of 2 steps: as asked", "1. step 1 · write_file", "+planned", "2. step 2 · list_dir, after 1"]
    {
        assert!(screen.contains(part), "{part} is missing in\n{screen}");
    }
    assert!(!terminal.place.exists("a.txt"));
    terminal.line("y");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(terminal.place.read("a.txt"), "planned\n");
    terminal.raw_to_the_end();
    assert!(terminal.screen().contains("☑ 2/2 step 2"), "{}", terminal.screen());
}

#[test]
fn a_reason_goes_to_the_planner() {
    let server = planning("a.txt");
    let mut terminal = Terminal::start(&run(&server));
    terminal.wait_for("Run it?");
    terminal.tell("use another file");
    terminal.wait_until("a second plan", |screen| {
        screen.contains("change? use another file") && screen.contains("Run it? (y or n")
    });
    assert!(told(&server, Role::Planner, 1).contains("use another file"));
    assert!(!terminal.place.exists("a.txt"));
    terminal.keys("\u{3}");
    assert_ne!(terminal.exit_code(), 0);
}

#[test]
fn an_edited_plan_is_checked_and_shown_again() {
    let server = planning("a.txt");
    // The first edit names a tool that does not exist, the second another file.
    let edit = "if [ -e edited ]; then sed -i 's/no_tool/write_file/; s/a.txt/b.txt/' \"$1\"; \
                else touch edited; sed -i s/write_file/no_tool/ \"$1\"; fi\n";
    let run = run(&server).file("edit.sh", edit).env("EDITOR", "sh edit.sh");
    let mut terminal = Terminal::start(&run);
    terminal.wait_for("Run it?");
    terminal.pick("Edit");
    terminal.wait_until("the mistake, and the question again", |screen| {
        screen.contains("no_tool") && screen.contains("Run it? (y or n")
    });
    terminal.pick("Edit");
    terminal
        .wait_until("the mended plan", |screen| screen.contains("b.txt") && screen.contains("Run it? (y or n"));
    terminal.line("y");
    assert_eq!(terminal.exit_code(), 0);
    assert!(terminal.place.exists("b.txt") && !terminal.place.exists("a.txt"));
}

#[test]
fn without_a_person_or_with_the_setting_off_nobody_is_asked() {
    let server = planning("a.txt");
    let output = run(&server).run().success().stderr_lacks("Run it?");
    assert!(output.place.exists("a.txt"));
    let server = planning("a.txt");
    let mut terminal = Terminal::start(&run(&server).args(["--set", "agents.default.plan_approval=false"]));
    assert_eq!(terminal.exit_code(), 0);
    assert!(!terminal.raw_to_the_end().contains("Run it?"), "{}", terminal.raw());
}

#[test]
fn quiet_says_nothing_of_the_plan_and_a_narrow_screen_holds_every_line() {
    let output = run(&planning("a.txt")).arg("-q").run().success();
    assert_eq!(output.stderr, "");
    let server = planning("a.txt");
    let mut terminal =
        Terminal::sized(&run(&server).args(["--set", "agents.default.plan_approval=false"]), 40, 30);
    assert_eq!(terminal.exit_code(), 0);
    terminal.raw_to_the_end();
    let screen = terminal.screen();
    assert!(screen.contains("☑ 1/2 step 1") && screen.contains("judged: complete"), "{screen}");
}

#[test]
fn a_chat_shows_the_plan_and_drops_one() {
    let server = planning("a.txt");
    let run = Run::new().arg("chat").args(["--approve", "edits"]).server(&server);
    let mut terminal = Terminal::start(&run);
    terminal.wait_for("> ");
    terminal.line("/plan");
    terminal.wait_for("error: there is no plan yet");
    terminal.line("/mode plan");
    terminal.wait_for("The mode is now plan");
    terminal.line("do it");
    terminal.wait_for("Run it?");
    terminal.line("y");
    terminal.wait_for("cost unknown");
    terminal.line("/plan");
    terminal.wait_for("plan (answered): as asked");
    terminal.wait_for("☑ 1. step 1 · write_file");
    terminal.line("/plan drop");
    terminal.wait_for("the plan is already over");
    terminal.keys("\u{4}");
    assert_eq!(terminal.exit_code(), 0);
    let shown = Run::at(&terminal.place).args(["session", "list"]).run().success().stdout;
    let id = shown.split_whitespace().next().expect("a session").to_owned();
    Run::at(&terminal.place)
        .args(["session", "show", &id])
        .run()
        .success()
        .stdout_has("## Plan\n\nplan (answered)");
}

#[test]
fn a_plan_that_a_person_approved_replaces_the_file_that_it_names() {
    let input = json!({ "path": "a.txt", "content": "planned\n" });
    let mut replacing = step(1, "write_file", &input, &[]);
    replacing["replaces"] = json!("a.txt");
    let server =
        || roles(vec![(Role::Planner, vec![plan(&[replacing.clone()])]), (Role::Reflector, vec![accepted()])]);
    let (approved, unread) = (server(), server());
    let mut terminal = Terminal::start(&run(&approved).file("a.txt", "old\n"));
    terminal.wait_for("Run it?");
    assert!(terminal.screen().contains("-old"), "the change is shown: {}", terminal.screen());
    terminal.line("y");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(terminal.place.read("a.txt"), "planned\n");
    let output = run(&unread).file("a.txt", "old\n").run();
    assert_eq!(output.place.read("a.txt"), "old\n", "nobody approved it: {}", output.shown());
}

#[test]
fn a_person_stops_a_plan_by_words_and_lets_it_go_on() {
    let hang = json!({ "command": "echo mail >> log.txt; while [ ! -e go ]; do sleep 0.05; done" });
    let steps = [step(1, "run_command", &hang, &[]), step(2, "list_dir", &json!({"path": "."}), &[1])];
    let server = roles(vec![(Role::Planner, vec![plan(&steps)]), (Role::Reflector, vec![accepted()])]);
    let run = Run::new().arg("chat").args(["--approve", "all", "--mode", "plan"]).server(&server);
    let mut terminal = Terminal::start(&run.args(["--set", "agents.default.plan_approval=false"]));
    terminal.wait_for("> ");
    terminal.line("the request");
    let place = std::sync::Arc::clone(&terminal.place);
    terminal.wait_until("the step runs", |_| place.exists("log.txt"));
    terminal.keys("\u{3}");
    terminal.wait_for("interrupted");
    terminal.line("No! Stop.");
    terminal.wait_for("a plan waits, 0 of 2 steps done");
    std::fs::write(terminal.place.workspace().join("go"), "").expect("written");
    terminal.line("/plan go");
    terminal.wait_for("Step 1 may have run in part");
    terminal.line("yes");
    terminal.wait_for("judged: complete");
    assert_eq!(terminal.place.read("log.txt"), "mail\nmail\n");
    terminal.keys("\u{4}");
    assert_eq!(terminal.exit_code(), 0);
}
