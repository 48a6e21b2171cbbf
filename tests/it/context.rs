//! A conversation that outgrows its budget: it goes on, nothing asked or demanded is lost, nothing is sent that is too
//! long, and the prefix is broken once per compression.

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::{Gate, Reply};
use crate::run::Run;
use crate::server::{Request, Server, assert_answered_once};

/// The head (system prompt and definitions) takes about 2,000 of these.
pub const BUDGET: u64 = 16_800;
pub const TASK: &str = "Read them all. Never touch `secrets.txt`, and answer in French.";

/// A run with a small budget in a workspace of files of about 900 tokens each.
pub fn run(server: &Server, task: &str) -> Run {
    with_files(Run::task(server, task))
}

pub fn with_files(run: Run) -> Run {
    let line = "    let line = reader.read_line(&mut buffer)?;\n";
    let run = run.config("agent.yaml", &format!("context: {{ budget: {BUDGET} }}\n")).quick_retries();
    (0..30)
        .fold(run, |run, index| run.file(&format!("f{index}.txt"), format!("marker-{index}\n{}", line.repeat(60))))
}

pub fn read(index: usize) -> Reply {
    Reply::call("read_file", &json!({"path": format!("f{index}.txt")}))
}

pub fn wants_summary(request: &Request) -> bool {
    request.user().contains("The conversation is about to be shortened")
}

/// The number of the model's answers in the request.
fn replies(request: &Request) -> usize {
    request.messages().iter().filter(|message| message["role"] == "assistant").count()
}

/// True if the text stands in the request as it was said. A summary before it is part of the same message.
pub fn says(request: &Request, text: &str) -> bool {
    let contents = request.messages().iter().filter_map(|message| message["content"].as_str());
    contents.flat_map(|content| content.split("\n\n")).any(|said| said.trim() == text)
}

pub fn tokens(request: &Request) -> u64 {
    request.raw.len() as u64 / 4
}

/// A summary with every part, and a word of its own in it.
pub fn summary(word: &str) -> String {
    let parts =
        ["Goal", "Constraints", "Decisions", "Done", "In progress", "Do not do again", "Next", "Open errors"];
    parts.iter().map(|part| format!("## {part}\n- {word} {}\n", part.to_lowercase())).collect()
}

/// Stretches of requests between compressions: each extends its beginning byte for byte.
fn assert_broken_only_by(requests: &[Request], compressions: usize) {
    let is_break = |pair: &[Request]| !pair[1].prefix().0.starts_with(pair[0].prefix().0);
    let breaks = requests.windows(2).filter(|pair| is_break(pair)).count();
    assert_eq!(breaks, compressions, "times that the prefix was lost");
    for pair in requests.windows(2) {
        assert_eq!(pair[0].prefix().1, pair[1].prefix().1, "the definitions never change");
        assert_eq!(pair[0].system(), pair[1].system(), "nor does the system prompt");
    }
}

/// The one session that was kept.
pub fn only_log(output: &Output) -> String {
    let logs = output.place.session_logs();
    assert_eq!(logs.len(), 1, "{logs:?}");
    std::fs::read_to_string(&logs[0]).expect("a log")
}

pub fn compressions(output: &Output) -> Vec<Value> {
    output.events().of("context.compressed").into_iter().cloned().collect()
}

#[test]
fn a_long_turn_goes_on_with_its_old_results_in_short() {
    let server = Server::answering(|request, index| match index {
        25 => Reply::text("Fini."),
        _ => {
            assert!(!wants_summary(request), "shortening is enough here");
            read(index)
        }
    });
    let output = run(&server, TASK).args(["-o", "jsonl"]).run().success();
    let requests = server.requests();
    assert_eq!(requests.len(), 26, "nothing is read twice, and no request was refused");
    for request in &requests {
        assert_answered_once(request);
        assert!(tokens(request) <= BUDGET, "{} tokens", tokens(request));
        assert_eq!(request.messages()[1]["content"], TASK, "the task stands verbatim");
    }
    let done = compressions(&output);
    assert_eq!(done.len(), 2, "{done:?}");
    assert_broken_only_by(&requests, done.len());
    for event in &done {
        assert_eq!(
            (&event["reason"], &event["strategy"], &event["budget"]),
            (&json!("threshold"), &json!("staged"), &json!(BUDGET))
        );
        assert!(event["tokens_before"].as_u64() > Some(BUDGET * 8 / 10), "{event}");
        assert!(event["tokens_after"].as_u64() <= Some(BUDGET / 2), "{event}");
        assert!(event["masked"].as_u64() > Some(0) && event["summarized"] == 0, "{event}");
    }
    let last = requests.last().expect("requests");
    let oldest = last.tool_results()[0].1;
    let digest =
        "<result tool=\"read_file\" untrusted>\n[shortened: ok, 61 lines; recall id=c2.1 reads the whole]\n";
    assert!(oldest.starts_with(digest), "{oldest}");
    assert!(last.last_result().contains("marker-24") && last.last_result().len() > 2500, "the newest is whole");
    let log = only_log(&output);
    assert!((0..25).all(|index| log.contains(&format!("marker-{index}\\n"))), "the log keeps all");
}

#[test]
fn what_was_shortened_is_recalled_by_id_and_by_search() {
    let server = Server::answering(|_, index| match index {
        0..=15 => read(index),
        16 => Reply::call("recall", &json!({"id": "c2.1", "limit": 2})),
        17 => Reply::call("recall", &json!({"query": "marker-1"})),
        _ => Reply::text("Fini."),
    });
    run(&server, TASK).run().success();
    let requests = server.requests();
    assert!(requests[17].last_output().contains("marker-0"), "{}", requests[17].last_output());
    assert!(requests[18].last_output().contains("marker-1"), "{}", requests[18].last_output());
}

/// Long words of the model, which nothing but a summary can shorten.
pub fn talks_at_length(steps: usize, of_summary: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Server {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    Server::answering(move |request, index| {
        if wants_summary(request) {
            return of_summary(asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
        }
        let said = index - asked.load(std::sync::atomic::Ordering::SeqCst);
        if said >= steps {
            return Reply::text("Fini.");
        }
        let words = format!("step-{said} {}", "I consider what this line may mean here. ".repeat(120));
        // Each question is another one, so that it is no loop.
        Reply::text_and_calls(
            &words,
            &[("glob", json!({"pattern": format!("{{f,step-{said}-}}*.txt")}).to_string())],
        )
    })
}

#[test]
fn a_request_that_the_server_finds_too_long_is_made_to_fit_and_sent_again() {
    for refusal in [
        "prompt is too long: 9000 tokens > 6000 maximum",
        "context_length_exceeded: too many tokens in the prompt",
    ] {
        let server = Server::answering(move |request, index| match index {
            0..=8 => read(index),
            9 => Reply::error(400, refusal),
            _ if wants_summary(request) => Reply::text(&summary("short")),
            _ => Reply::text("Fini."),
        });
        let output = run(&server, TASK).args(["-o", "jsonl"]).run().success();
        let requests = server.requests();
        let (refused, sent) = (&requests[9], requests.last().expect("requests"));
        assert!(sent.raw.len() < refused.raw.len() * 3 / 4, "{refusal}");
        assert!(requests[10..].iter().all(|request| request.raw.len() < refused.raw.len()), "{refusal}");
        assert_answered_once(sent);
        let done = compressions(&output);
        assert_eq!((done.len(), &done[0]["reason"]), (1, &json!("overflow")));
        let learned = done[0]["budget"].as_u64().expect("a number");
        assert!(learned < tokens(refused) * 3 / 4 + 100, "{learned}");
        // It holds for this process: the next one tries the declared budget again.
        let server = Server::always(Reply::text("Oui."));
        let again = Run::at(&output.place).args(["run", "--continue", "-o", "jsonl", "Again."]).server(&server);
        let again = again.run().success();
        assert!(server.only_request().prefix().0.starts_with(sent.prefix().0), "{refusal}");
        assert_eq!(again.events().one("run.started")["context"]["budget"], BUDGET, "{refusal}");
        assert!(compressions(&again).is_empty(), "{refusal}");
    }
}

#[test]
fn a_layer_over_its_limit_is_a_mistake_in_the_configuration() {
    let server = Server::always(Reply::text("no"));
    for (set, layer) in [
        ("context.layers.context=0.05", "the layer `context` has"),
        ("context.layers.system=0.02", "the layer `system` has"),
        ("context.layers.reminders=0.001", "the layer `reminders` has"),
        ("context.layers.input=0", "`input` must be a share of the budget"),
        ("context.compress_to=0.9", "`compress_to` must be a share of the budget, smaller than compress_at"),
    ] {
        let run = |args: &[&str]| {
            with_files(Run::new().server(&server)).args(["--set", set]).args(args.iter().copied()).run()
        };
        run(&["run", "task"]).exits(3).stderr_has(layer);
        run(&["config", "check"]).exits(3).stderr_has(layer);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn whatever_fits_goes_on() {
    // A file of 14,000 tokens beside the task, and reads of 2,000, in a window of 32,000.
    let line = "    let line = reader.read_line(&mut buffer)?;\n";
    let server = Server::answering(|_, index| if index < 20 { read(index) } else { Reply::text("Fini.") });
    let files = (0..20).fold(Run::task(&server, TASK), |run, index| {
        run.file(&format!("f{index}.txt"), format!("marker-{index}\n{}", line.repeat(150)))
    });
    files
        .file("big.txt", line.repeat(1200))
        .args(["-f", "big.txt", "--set", "agents.default.profile=concise"])
        .config("models/default.yaml", "context_window: 32000\n")
        .run()
        .success()
        .stdout_is("Fini.\n");
    assert_eq!(server.requests().len(), 21);
    // Reads of 22 kB in a window of 16,000.
    let server = Server::answering(|_, index| if index < 8 { read(index) } else { Reply::text("Fini.") });
    let files = (0..8).fold(Run::task(&server, TASK), |run, index| {
        run.file(&format!("f{index}.txt"), format!("marker-{index}\n{}", line.repeat(470)))
    });
    files.config("models/default.yaml", "context_window: 16000\n").run().success().stdout_is("Fini.\n");
    let requests = server.requests();
    for request in requests.iter().filter(|request| !wants_summary(request)) {
        assert_answered_once(request);
        assert!(tokens(request) <= 16_000 - 4000, "{} tokens", tokens(request));
        assert!(request.messages().len() < 3 || request.last_result().contains("marker-"), "{}", request.raw);
    }
}

#[test]
fn interrupted_in_the_middle_of_a_compression_nothing_has_changed() {
    let gate = Gate::new();
    let waits = gate.clone();
    let server = Server::answering(move |request, _| {
        if wants_summary(request) {
            return Reply::text(&summary("late")).gate(&waits, 0);
        }
        let words = "I consider what this line may mean here. ".repeat(120);
        let depth = replies(request) + 1;
        Reply::text_and_calls(&words, &[("list_dir", json!({"path": ".", "depth": depth}).to_string())])
    });
    let run = run(&server, TASK);
    let place = run.place();
    let running = run.spawn();
    gate.reached();
    running.signal(nix::sys::signal::Signal::SIGINT);
    running.wait().exits(130);
    let before = server.requests();
    let before = &before[before.len() - 2];
    // It goes on from what was there, and this time the summary comes.
    let server = talks_at_length(1, |_| Reply::text(&summary("now")));
    Run::at(&place).args(["run", "--continue", "Go on."]).server(&server).run().success();
    let requests = server.requests();
    assert!(wants_summary(&requests[0]) && requests[0].prefix().0.starts_with(before.prefix().0));
    assert!(requests[1].raw.contains("now goal") && requests[1].raw.contains("Go on."));
}

#[test]
fn every_strategy_can_be_used_alone() {
    for (strategy, standing) in [
        ("summary", "## Goal"),
        ("window", "earlier items of this conversation made room"),
        ("selective", "earlier items of this conversation made room"),
    ] {
        let server = Server::answering(|request, index| match index {
            _ if wants_summary(request) => Reply::text(&summary("short")),
            0..=16 => read(index),
            _ => Reply::text("Fini."),
        });
        let output = run(&server, TASK)
            .config("agent.yaml", &format!("context: {{ budget: {BUDGET}, strategy: {strategy} }}\n"))
            .args(["-o", "jsonl"])
            .run()
            .success();
        let done = compressions(&output);
        assert_eq!(done[0]["strategy"], *strategy);
        assert!(done[0]["tokens_after"].as_u64() <= Some(BUDGET * 6 / 10), "{done:?}");
        let last = server.requests().pop().expect("requests");
        assert!(last.raw.contains(standing), "{strategy}: {}", last.raw);
        assert!(says(&last, TASK), "{strategy}");
        assert_answered_once(&last);
    }
}

#[test]
fn plan_project_instructions_and_loaded_skills_are_still_there_after_a_summary() {
    let server = Server::answering(|request, index| match index {
        0 => Reply::call("todo", &json!({"items": [{"text": "read the third part", "status": "doing"}]})),
        1 => Reply::call("load_skill", &json!({"name": "workspace-tour"})),
        _ if wants_summary(request) => Reply::text(&summary("short")),
        2..=11 => {
            let words = "I consider what this line may mean here. ".repeat(120);
            Reply::text_and_calls(&words, &[("list_dir", json!({"path": ".", "depth": index}).to_string())])
        }
        _ => Reply::text("Fini."),
    });
    let output =
        run(&server, TASK).file("AGENTS.md", "Tabs, never spaces.\n").args(["-o", "jsonl"]).run().success();
    assert!(!compressions(&output).is_empty());
    let last = server.requests().pop().expect("requests");
    assert!(last.system().contains("Tabs, never spaces."));
    let standing =
        last.messages().iter().filter_map(|m| m["content"].as_str()).find(|text| text.contains("## Goal"));
    assert!(standing.expect("a summary").contains("## Plan\n- [doing] read the third part\n"), "{}", last.raw);
    let skill = last.tool_results().into_iter().find(|(_, text)| text.contains("<skill name=\"workspace-tour\">"));
    assert!(skill.is_some(), "the skill of this turn stays: {}", last.raw);
    assert_answered_once(&last);
}
