//! Steps of flows side by side, one after another, again, or not at all: what runs beside what, limits of time, retries,
//! permission, answers given beforehand, and steps that may have run in part.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::flows::{flow, steps};
use crate::reply::{Gate, Reply};
use crate::run::Run;
use crate::server::Server;

/// A run of the flow `f` with a server.
fn asking(server: &Server, file: &str, args: &[&str]) -> Run {
    Run::new().config("flows/f.yaml", file).server(server).args(["run", "--flow", "f"]).args(args.to_vec())
}

/// A server whose reply to a prompt is its text, and waits at the gate of that text.
fn gated(gates: &[(&'static str, Gate)]) -> Server {
    let gates = gates.to_vec();
    Server::answering(move |request, _| {
        let text = request.user().to_owned();
        let reply = Reply::text(&text);
        match gates.iter().find(|(name, _)| *name == text) {
            Some((_, gate)) => reply.gate(gate, 0),
            None => reply,
        }
    })
}

#[test]
fn prompts_are_asked_side_by_side() {
    let file = "
steps:
  - { id: all, for_each: { in: 'range(4)', most: 4 }, prompt: 'p{{ n }}', with: { n: '{{ item }}' } }
answer: '{{ steps.all | join }}'
";
    let gates = ["p0", "p1", "p2", "p3"].map(|name| (name, Gate::new()));
    let server = gated(&gates);
    let running = asking(&server, file, &["--set", "limits.max_parallel=4", "--max-turns", "2"]).spawn();
    for (_, gate) in &gates {
        gate.reached();
    }
    // The order of the answers is that of the items.
    for (_, gate) in gates.iter().rev() {
        gate.open();
    }
    running.wait().success().stdout_is("p0p1p2p3\n");
    let server = gated(&[]);
    let output = asking(&server, file, &["--set", "limits.max_parallel=1", "-o", "jsonl"]).run().success();
    let in_turn = "all[1] ok, all[2] ok, all[3] ok, all[4] ok";
    assert_eq!(steps(&output), in_turn, "{}", output.shown());
}

#[test]
fn a_slow_step_holds_up_no_step_that_does_not_need_it() {
    let file = "
steps:
  - { id: slow, prompt: slow }
  - { id: first, steps: [{ id: inner, prompt: first }, { id: read, tool: read_file, with: { path: a.txt } }] }
  - { id: made, tool: run_command, with: { command: 'echo made > made.txt' }, depends_on: [first] }
  - { id: last, prompt: last, depends_on: [made] }
answer: '{{ steps.slow }} {{ steps.last }}'
";
    let gates = ["slow", "last"].map(|name| (name, Gate::new()));
    let server = gated(&gates);
    let run = asking(&server, file, &["--approve", "all"]).file("a.txt", "a");
    let place = run.place();
    let running = run.spawn();
    gates[0].1.reached();
    gates[1].1.reached();
    assert_eq!(place.read("made.txt"), "made\n");
    for (_, gate) in &gates {
        gate.open();
    }
    running.wait().success().stdout_is("slow last\n");
}

#[test]
fn a_step_has_its_own_time() {
    let command =
        "steps: [{ id: s, tool: run_command, with: { command: sleep 60 }, time_limit: 200ms, default: late }]\n";
    let output = flow(command, &["--approve", "all", "-o", "jsonl"]).run().success();
    assert_eq!(
        (steps(&output).as_str(), output.events().one("run.completed")["result"].as_str()),
        ("s failed", Some("late"))
    );
    let gate = Gate::new();
    let server = gated(&[("p", gate.clone())]);
    let output = asking(&server, "steps: [{ id: s, prompt: p, time_limit: 200ms }]\n", &[]).run();
    output.exits(1).reason_has("it took longer than its `time_limit` of 200ms");
    gate.open();
}

#[test]
fn a_failure_that_may_pass_is_tried_again_where_that_is_safe() {
    let file = "
steps:
  - id: s
    tool: run_command
    with: { command: 'echo x >> tries.txt; test $(wc -l < tries.txt) = 3' }
    retry: 2
    idempotent: true
";
    let output = flow(file, &["--approve", "all", "-o", "jsonl"]).run().success();
    assert_eq!(steps(&output), "s failed, s failed, s ok");
    let attempts: Vec<_> =
        output.events().of("step.started").iter().map(|event| event["attempt"].clone()).collect();
    assert_eq!(attempts, [1, 2, 3]);
    flow(&file.replace("retry: 2", "retry: 1"), &["--approve", "all"]).run().exits(1);
    let unsafe_file = file.replace("idempotent: true", "default: x");
    flow(&unsafe_file, &[]).run().exits(3).stderr_has("`run_command` may change something");
    let server = Server::start([Reply::text("no"), Reply::text("no"), Reply::text("{\"n\": 1}")]);
    let prompt = "steps: [{ id: s, prompt: p, schema: { type: object, required: [n] }, retry: 1 }]\nanswer: '{{ steps.s.n }}'\n";
    asking(&server, prompt, &[]).run().success().stdout_is("1\n");
    let refusing = Server::start([Reply::error(400, "no"), Reply::text("late")]);
    let prompt = "steps: [{ id: s, prompt: p, retry: 1, default: none }]\nanswer: '{{ steps.s }}'\n";
    asking(&refusing, prompt, &[]).run().success().stdout_is("none\n");
    assert_eq!(refusing.requests().len(), 1, "what is refused is not asked again");
}

#[test]
fn a_step_that_a_person_has_to_allow_does_not_run_in_a_pipe() {
    let file = "
steps:
  - { id: first, tool: write_file, with: { path: first.txt, content: x } }
  - { id: second, tool: write_file, with: { path: second.txt, content: x }, approve: true, depends_on: [first] }
";
    let output = flow(file, &["--approve", "all"]).run().exits(7).reason_has("a person has to allow it");
    assert!(output.place.exists("first.txt") && !output.place.exists("second.txt"));
    let only = "steps: [{ id: look, tool: list_dir, approve: true, default: denied }]\n";
    let output = flow(only, &["--approve", "never", "-o", "jsonl"]).run().success();
    assert_eq!(steps(&output), "look denied");
}

#[test]
fn a_question_is_answered_beforehand_or_ends_a_pipe() {
    let file = "
steps: [{ id: which, tool: ask_user, with: { question: Which one? } }]
answer: 'It is {{ steps.which.answer }}.'
";
    flow(file, &["--var", "which=the red one"]).run().success().stdout_is("It is the red one.\n");
    flow(file, &[]).run().exits(7).reason_has("--var which=ANSWER");
    let with_default = file.replace("tool: ask_user,", "tool: ask_user, default: { answer: any },");
    flow(&with_default, &[]).run().success().stdout_is("It is any.\n");
}

#[test]
fn a_file_is_replaced_if_the_flow_names_it() {
    let file = "
steps:
  - { id: out, tool: write_file, with: { path: report.md, content: new }, replaces: report.md }
";
    let output = flow(file, &["--approve", "edits"]).file("report.md", "old").run().success();
    assert_eq!(output.place.read("report.md"), "new");
    let without = file.replace(", replaces: report.md", "");
    let output = flow(&without, &["--approve", "edits"]).file("report.md", "old").run().exits(1);
    assert_eq!(output.place.read("report.md"), "old");
}

#[test]
fn a_flow_asks_nobody_for_closing_words() {
    let server = Server::answering(|_, _| Reply::text("more"));
    let file = "steps: [{ id: s, prompt: p, repeat: { until: 'false', most: 9 } }]\n";
    asking(&server, file, &["--max-requests", "3"]).run().exits(8).stdout_is("");
    assert_eq!(server.requests().len(), 3);
}

/// Kills a flow whose only step sends a mail and hangs.
fn killed_while_it_mails(more: &str, signal: Signal) -> Run {
    let file = format!(
        "steps:\n  - {{ id: mail, tool: run_command, with: {{ command: 'echo mail >> log.txt; echo begun; test -e go || sleep 60' }}{more} }}\n"
    );
    let first = flow(&file, &["--approve", "all", "-o", "jsonl"]);
    let place = first.place();
    let running = first.spawn();
    running.wait_stdout("\"chunk\":\"begun");
    running.signal(signal);
    running.wait();
    std::fs::write(place.workspace().join("go"), "").expect("the workspace can be written");
    Run::at(&place).args(["run", "-m", "nobody", "--flow", "f", "--approve", "all", "--continue"])
}

#[test]
fn a_step_that_may_have_run_in_part_is_not_repeated_unasked() {
    for signal in [Signal::SIGKILL, Signal::SIGINT] {
        let output = killed_while_it_mails("", signal).run().exits(1);
        let output = output.reason_has("it may have run in part before it was interrupted");
        assert_eq!(output.place.read("log.txt"), "mail\n", "{signal}: it was sent once");
        let output = killed_while_it_mails(", idempotent: true", signal).run().success();
        assert_eq!(output.place.read("log.txt"), "mail\nmail\n", "{signal}");
    }
}

#[test]
fn the_log_of_a_flow_tells_what_became_of_its_steps() {
    let file = "
steps:
  - { id: good, tool: list_dir }
  - { id: bad, tool: read_file, with: { path: none }, default: nothing }
answer: '{{ steps.bad }}'
";
    let output = flow(file, &[]).run().success();
    let log = std::fs::read_to_string(&output.place.session_logs()[0]).expect("the log is text");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of the log is JSON"));
    let told: Vec<Value> =
        lines.filter(|line| line["type"] == "progress").map(|line| line["what"].clone()).collect();
    assert_eq!(told, ["begun", "started", "started", "finished", "finished", "closed"].map(Value::from));
}

#[test]
fn a_default_stands_in_for_a_provider_that_fails() {
    let server = Server::always(Reply::error(400, "no"));
    let run = |step: &str| {
        let file = format!("steps: [{{ id: ask, prompt: look around{step} }}]\nanswer: '{{{{ steps.ask }}}}'\n");
        Run::new().server(&server).config("flows/f.yaml", &file).args(["run", "--flow", "f"]).run()
    };
    run(", default: fallback").success().stdout_is("fallback\n");
    run("").exits(5);
}

#[test]
fn a_budget_that_ends_a_helper_of_a_step_ends_the_run_as_a_limit() {
    let server = Server::always(Reply::text("seen"));
    let file = "steps: [{ id: look, agent: explore, with: { prompt: look around } }]\n";
    let run = Run::new().server(&server).config("flows/f.yaml", file);
    let run = run.config("models/default.yaml", "prices: { input: 1.0, output: 4.0 }\n");
    let done = run.args(["run", "--flow", "f", "--max-cost", "0.0001", "-o", "json"]).run().exits(8).json();
    assert_eq!((&done["status"], &done["requests"]), (&json!("limit"), &json!(0)));
    assert!(done["reason"].as_str().is_some_and(|why| why.contains("max_cost")), "{done}");
}

#[test]
fn a_command_is_judged_with_its_values() {
    let file = "
inputs: { dir: {} }
steps: [{ id: gone, tool: run_command, with: { command: 'rm -rf {{ inputs.dir }}' } }]
answer: '{{ steps.gone.exit_code }}'
";
    let removing = |dir: &str| {
        let run = flow(file, &["--var", &format!("dir={dir}"), "--approve", "all"]);
        run.file(".git/config", "").file("made/x", "").run()
    };
    removing(".git").exits(7).reason_has("decides what runs later");
    removing("made").success().stdout_is("0\n");
}
