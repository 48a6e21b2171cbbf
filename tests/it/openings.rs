//! What a command needs beyond the walls: what the question about it names is opened, and nothing else.

use serde_json::json;

use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

#[test]
fn a_question_about_what_lies_beyond_the_walls_opens_exactly_that() {
    let run = Run::new().arg("chat");
    let place = run.place();
    let shared = place.workspace().with_file_name("shared");
    std::fs::create_dir(&shared).expect("made");
    let shared = shared.to_string_lossy().into_owned();
    let command = json!({ "command": format!("touch {shared}/new && touch {shared}/../other") });
    let server = Server::start([Reply::call("run_command", &command), Reply::text("Done.")]);
    let mut terminal = Terminal::sized(&run.server(&server), 200, 24);
    terminal.line("go");
    let parent = place.workspace().parent().expect("a parent").to_string_lossy().into_owned();
    terminal.wait_for("writes in the workspace and");
    assert!(terminal.screen().contains(&format!("and {shared}")), "{}", terminal.screen());
    assert!(
        !terminal.screen().contains(&format!("and {parent},")),
        "the workspace is in it: {}",
        terminal.screen()
    );
    terminal.wait_for("Yes, once");
    terminal.line("y");
    terminal.wait_for("run it again without any sandbox");
    terminal.line("n");
    terminal.wait_for("Done.");
    let told = server.requests()[1].last_output().to_owned();
    assert!(place.exists("../shared/new") && !place.exists("../other"), "{told}");
}

#[test]
fn what_is_opened_to_a_command_uncovers_no_credentials() {
    let run = Run::new().arg("chat");
    let place = run.place();
    let keys = place.home().join(".ssh");
    std::fs::create_dir_all(&keys).expect("made");
    std::fs::write(keys.join("id_rsa"), "PRIVATE").expect("written");
    let keys = keys.to_string_lossy().into_owned();
    let command = json!({ "command": format!("touch {keys}/new; cat {keys}/id_rsa") });
    let server = Server::start([Reply::call("run_command", &command), Reply::text("Done.")]);
    let mut terminal = Terminal::sized(&run.server(&server), 200, 24);
    terminal.line("go");
    terminal.wait_for("Yes, once");
    assert!(!terminal.screen().contains(&format!("and {keys}")), "{}", terminal.screen());
    terminal.line("y");
    terminal.wait_for("run it again without any sandbox");
    terminal.line("n");
    terminal.wait_for("Done.");
    let told = server.requests()[1].last_output().to_owned();
    assert!(!told.contains("PRIVATE") && !place.exists("../home/.ssh/new"), "{told}");
}

#[test]
fn a_command_that_found_no_network_is_offered_again_with_it() {
    let command = "echo 'Could not resolve host: x'; exit 6";
    let server = Server::start([Reply::call("run_command", &json!({ "command": command })), Reply::text("Done.")]);
    let mut terminal = Terminal::sized(&Run::new().args(["chat", "--approve", "edits"]).server(&server), 200, 24);
    terminal.line("go");
    terminal.wait_for("run it again, once, with more opened?");
    terminal.wait_for("writes in the workspace, with the network");
    terminal.line("y");
    terminal.wait_for("Done.");
    let told = server.requests()[1].last_output().to_owned();
    assert!(
        told.contains("exit 6") && !told.contains("the sandbox may be the reason"),
        "it had the network: {told}"
    );
}
