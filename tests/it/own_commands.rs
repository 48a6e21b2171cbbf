//! The user's own commands: messages from Markdown files, of the user and of a trusted project.

use crate::chat_commands::{chat, two};
use crate::repl::said;
use crate::reply::{Act, Reply};
use crate::run::Run;
use crate::server::Server;

#[test]
fn a_command_of_ones_own_is_a_message_with_its_arguments() {
    let server = Server::always(Reply::text("Noted."));
    let run = two(Run::new().server(&server))
        .config(
            "commands/ship.md",
            "---\ndescription: Ships it.\nargument-hint: [VERSION]\n---\nShip $1 of {{ it }}: $ARGUMENTS\n",
        )
        .config("commands/ask.md", "---\nmodel: other\n---\nWhat is this?\n")
        .config("commands/help.md", "Never.\n");
    let typed = ["/help", "/help ship", "/shpi", "/ship \"v 1\" $1", "/ask", "/ask x", "back"];
    let output = chat(run, &typed);
    output
        .stderr_has("help.md is not used: /help is built in")
        .stderr_has("/ship [VERSION]")
        .stderr_has("Ships it.")
        .stderr_has("/shpi: did you mean /ship?")
        .stderr_has("error: /ask takes no argument");
    assert_eq!(said(&server), ["Ship v 1 of {{ it }}: \"v 1\" $1", "What is this?", "back"]);
    let models: Vec<_> = server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["scripted-model", "other-model", "scripted-model"], "a model is for its turn alone");
}

#[test]
fn the_model_of_a_command_is_given_back_when_its_turn_is_stopped() {
    let hanging = Reply::text("Half of it, and more.").then(2, Act::Hang);
    let server = Server::start([hanging, Reply::text("Fine.")]);
    let run = two(Run::new().server(&server)).config("commands/ask.md", "---\nmodel: other\n---\nWhat is this?\n");
    let mut terminal = crate::repl::start(&run);
    terminal.line("/ask");
    terminal.wait_for("Half of");
    terminal.keys("\x03");
    terminal.line("back");
    terminal.wait_for("Fine.");
    let models: Vec<_> = server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["other-model", "scripted-model"]);
}

#[test]
fn commands_of_a_project_need_its_trust() {
    let server = Server::always(Reply::text("Noted."));
    let run = |flags: &[&str]| {
        let run =
            Run::new().server(&server).file(".agent/commands/theirs.md", "---\nmodel: demo\n---\nTheir text.\n");
        run.args(["chat"]).args(flags.iter().copied()).stdin("/theirs\n").run().success()
    };
    run(&[]).stderr_has("/theirs: there is no such command");
    assert_eq!(server.requests().len(), 0);
    run(&["--trust"]).stderr_has("`model` is left out: a project cannot choose models");
    assert_eq!(said(&server), ["Their text."]);
}

#[test]
fn config_check_names_every_mistake_in_commands() {
    let run = Run::new().config("commands/a.md", "---\ndescripton: x\n---\nA\n").config("commands/b.txt", "B");
    run.args(["config", "check"])
        .run()
        .exits(3)
        .stderr_has("did you mean `description`?")
        .stderr_has("b.txt: is no command");
    Run::new().config("commands/a.md", "A\n").args(["config", "check"]).run().success();
}
