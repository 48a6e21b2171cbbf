//! The user's commands for the context: it is shown, compressed, pinned and restored.

use std::sync::atomic::Ordering::SeqCst;

use serde_json::json;

use crate::context::{BUDGET, TASK, only_log, read, run, says, summary, tokens, wants_summary, with_files};
use crate::pty::Terminal;
use crate::reply::{Act, Gate, Reply};
use crate::run::Run;
use crate::server::Server;

/// Words that only a summary can shorten, and a file.
fn says_and_reads(index: usize) -> Reply {
    let words = format!("word-{index} {}", "I consider what this file may mean here. ".repeat(60));
    Reply::text_and_calls(&words, &[("read_file", json!({"path": format!("f{index}.txt")}).to_string())])
}

#[test]
fn a_person_looks_compresses_pins_and_restores() {
    let server = Server::answering(|request, index| match index {
        _ if wants_summary(request) => Reply::text(&summary("short")),
        0..=3 => says_and_reads(index),
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
    terminal.wait_for("again as they were said. Compressions stay off until /compact");
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
        assert!(says(said("next"), text), "{text} was pinned");
    }
}

#[test]
fn a_hook_hears_of_a_compression_and_says_what_it_must_keep() {
    let server = Server::answering(|request, index| match index {
        _ if wants_summary(request) => Reply::text(&summary("short")),
        0..=3 => says_and_reads(index),
        _ => Reply::text(&format!("Answer to {}.", request.user())),
    });
    let hook = "on: before_compress\ncommand: [sh, -c, \"cat > seen.json; echo '{\\\"context\\\": \\\"the ports too\\\"}'\"]\n";
    let run = with_files(Run::new().server(&server)).config("hooks/keep.yaml", hook).args(["chat"]);
    let mut terminal = Terminal::start(&run);
    terminal.wait_for("> ");
    terminal.line("read");
    terminal.wait_for("Answer to read.");
    terminal.line("/compact the colours");
    terminal.wait_for("→");
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    let asked = server.requests().into_iter().find(wants_summary).expect("a summary was asked for");
    assert!(asked.raw.contains("the colours; the ports too"), "{}", asked.raw);
}

const SPINNER: &str = "making room in the context";

/// A chat with enough to compress. Summaries are answered by `summary`.
fn full_chat(config: &str, summary: Reply) -> (Server, Terminal) {
    let server = Server::answering(move |request, index| match index {
        _ if wants_summary(request) => summary.clone(),
        0..=6 => read(index),
        _ => Reply::text("All read."),
    });
    let run = with_files(Run::new().server(&server))
        .config("agent.yaml", &format!("context: {{ budget: {BUDGET}, strategy: summary }}\n"))
        .config("agents/default.yaml", config);
    let mut terminal = Terminal::start(&run.args(["chat"]));
    terminal.wait_for("> ");
    terminal.line("read");
    terminal.wait_for("All read.");
    (server, terminal)
}

/// Everything that was written after `mark`, to the end of a program that leaves by itself.
fn written_after(mut terminal: Terminal, mark: &str) -> String {
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    let raw = terminal.raw_to_the_end();
    raw.rsplit_once(mark).expect("the mark is on the screen").1.to_owned()
}

#[test]
fn the_spinner_ends_with_a_compression() {
    let gate = Gate::new();
    let (_server, mut terminal) = full_chat("{}", Reply::text(&summary("short")).gate(&gate, 2));
    terminal.line("/compact");
    gate.reached();
    terminal.wait_for(SPINNER);
    gate.open();
    terminal.wait_for("summarised");
    assert!(!written_after(terminal, "summarised").contains(SPINNER));
}

#[test]
fn the_spinner_ends_with_a_compression_that_failed() {
    let (_server, mut terminal) =
        full_chat("compression_prompt: \"{{ 'x' | int }}\"\n", Reply::text("never asked for"));
    terminal.line("/compact");
    terminal.wait_for("error: ");
    assert!(!written_after(terminal, "error: ").contains(SPINNER));
}

#[test]
fn the_spinner_ends_with_a_compression_that_was_interrupted() {
    let (_server, mut terminal) = full_chat("{}", Reply::text(&summary("short")).then(2, Act::Hang));
    terminal.line("/compact");
    terminal.wait_for(SPINNER);
    terminal.keys("\x03");
    terminal.wait_for("Stopped.");
    assert!(!written_after(terminal, "Stopped.").contains(SPINNER));
}

#[test]
fn a_kept_session_is_looked_at_and_compressed_from_outside() {
    let server = Server::answering(|request, index| match index {
        _ if wants_summary(request) => Reply::text(&summary("short")),
        0..=4 => says_and_reads(index),
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

#[test]
fn what_a_person_took_back_stays_whole_until_it_would_not_fit_or_they_ask_again() {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::answering(move |request, _| match request.messages().last() {
        // As many files as the person asks for.
        Some(last) if last["role"] == "tool" => {
            let said = request.messages().iter().rposition(|message| message["role"] == "user").unwrap_or(0);
            let reads = request.messages().len().saturating_sub(said + 1) / 2;
            let wanted: usize = request.user().split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
            if reads < wanted {
                read(next.fetch_add(1, SeqCst))
            } else {
                Reply::text(&format!("Done: {}.", request.user()))
            }
        }
        _ if request.user().starts_with(|first: char| first.is_ascii_digit()) => read(next.fetch_add(1, SeqCst)),
        _ => Reply::text(&format!("Done: {}.", request.user())),
    });
    let mut terminal = Terminal::start(&with_files(Run::new().server(&server)).args(["chat"]));
    terminal.wait_for("> ");
    let mut say = |line: &str, answer: &str| {
        terminal.line(line);
        terminal.wait_for(answer);
    };
    say("8 files", "Done: 8 files.");
    say("/compact", "→");
    say("/uncompact", "again as they were said");
    say("5 more", "Done: 5 more.");
    say("hello", "Done: hello.");
    say("7 others", "Done: 7 others.");
    say("/exit", "");
    let requests = server.requests();
    let said = |text: &str| requests.iter().rfind(|request| request.user() == text).expect("it was said");
    let threshold = BUDGET * 8 / 10;
    assert!(tokens(said("hello")) > threshold, "{}", tokens(said("hello")));
    assert!(!said("hello").raw.contains("[shortened"), "it is held");
    assert!(said("7 others").raw.contains("[shortened"), "held as long as it fits");
    for request in &requests {
        assert!(tokens(request) <= BUDGET, "{}", tokens(request));
    }
}
