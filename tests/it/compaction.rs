//! The context in a person's hands: looked at, compressed, pinned and restored.

use crate::context::{TASK, only_log, read, run, summary, wants_summary, with_files};
use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

#[test]
fn a_person_looks_compresses_pins_and_restores() {
    let server = Server::answering(|request, index| match index {
        _ if wants_summary(request) => Reply::text(&summary("short")),
        0..=3 => read(index),
        _ => Reply::text(&format!("Answer to {}.", request.user())),
    });
    let mut terminal = Terminal::start(&with_files(Run::new().server(&server)).args(["chat"]));
    terminal.wait_for("> ");
    terminal.line("read");
    terminal.wait_for("Answer to read.");
    terminal.line("/context");
    terminal.wait_for("files read");
    terminal.wait_for("compressed in");
    terminal.line("/pin");
    terminal.wait_for("Pinned:");
    terminal.line("/compact --dry-run");
    terminal.wait_for("tokens would become about");
    terminal.line("/compact");
    terminal.wait_for("→");
    terminal.line("next");
    terminal.wait_for("Answer to next.");
    terminal.line("/uncompact");
    terminal.wait_for("again as they were said");
    terminal.line("last");
    terminal.wait_for("Answer to last.");
    terminal.line("/exit");
    let requests = server.requests();
    let said = |text: &str| requests.iter().rfind(|request| request.user() == text).expect("it was said");
    assert!(said("next").raw.contains("short goal") && !said("next").raw.contains("marker-0"));
    assert!(
        said("last").raw.contains("marker-0") && !said("last").raw.contains("short goal"),
        "everything is back"
    );
    for text in ["read", "Answer to read."] {
        assert!(said("next").messages().iter().any(|message| message["content"] == text), "{text} was pinned");
    }
}

#[test]
fn a_kept_session_is_looked_at_and_compressed_from_outside() {
    let server = Server::answering(|request, index| match index {
        _ if wants_summary(request) => Reply::text(&summary("short")),
        0..=4 => read(index),
        _ => Reply::text("Fini."),
    });
    let first = run(&server, TASK).run().success();
    let id = first.place.session_logs()[0].file_stem().expect("a name").to_string_lossy().into_owned();
    let at = |args: &[&str]| Run::at(&first.place).args(args.iter().copied()).server(&server).run().success();
    at(&["session", "show", &id, "--context"]).stdout_has("files read").stdout_has("tool definitions");
    at(&["session", "compact", &id, "--dry-run"]).stdout_has("summarise").stdout_has("would become about");
    let before = only_log(&first);
    at(&["session", "compact", &id]).stderr_has("summarised");
    assert!(only_log(&first).starts_with(&before), "a log is only ever added to");
    at(&["session", "compact", &id]);
    at(&["run", "--continue", "Again."]);
    assert!(server.requests().pop().expect("requests").raw.contains("short goal"));
}

#[test]
fn the_window_of_a_kept_session_is_that_of_its_model() {
    let demo = Run::new().args(["run", "-m", "demo", "hi"]).run().success();
    let log = demo.place.session_logs().pop().expect("a log");
    let id = log.file_stem().expect("a name").to_string_lossy().into_owned();
    let shown = Run::at(&demo.place).args(["session", "show", &id, "--context"]).run().success();
    shown.stdout_has("the window 128000 (declared)");
}
