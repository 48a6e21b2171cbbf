//! Flows from outside: what they are given, what runs and in which order, what they return, and what ends or interrupts
//! them. The examples of docs/flows.md run here exactly as they stand there.

use std::path::Path;

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// A model that is not asked.
const NOBODY: &str = "provider: scripted\nscript: [{ text: nobody asked }]\n";

/// A run of the flow `f`, whose only model is a scripted one that is not asked.
pub fn flow(file: &str, args: &[&str]) -> Run {
    let run = Run::new().config("models/nobody.yaml", NOBODY).config("flows/f.yaml", file);
    run.args(["run", "-m", "nobody", "--flow", "f"]).args(args.to_vec())
}

/// Names and states of the steps, in the order in which they ended.
pub fn steps(output: &Output) -> String {
    let events = output.events();
    let told = |event: &&Value| {
        format!("{} {}", event["name"].as_str().unwrap_or("?"), event["status"].as_str().unwrap_or("?"))
    };
    events.of("step.finished").iter().map(told).collect::<Vec<_>>().join(", ")
}

fn outputs(output: &Output) -> Value {
    output.events().one("run.completed")["outputs"].clone()
}

#[test]
fn inputs_are_typed_and_what_is_missing_or_unknown_is_named_before_anything_runs() {
    let file = "
inputs:
  path: { description: where to look }
  depth: { type: integer, default: 1 }
steps:
  - { id: look, tool: list_dir, with: { path: '{{ inputs.path }}', depth: '{{ inputs.depth }}' } }
outputs: { names: \"{{ steps.look.entries | map(attribute='name') | list }}\" }
";
    let output = flow(file, &["-o", "json", "--var", "path=in", "--var", "depth=2"]).file("in/a/b.txt", "x").run();
    assert_eq!(output.success().json()["outputs"], json!({ "names": ["a", "a/b.txt"] }));
    for (args, code, reason) in [
        (&["--var", "depth=2"][..], 2, "the flow `f`: it needs `path` (where to look)"),
        (&["--var", "path=in", "--var", "depth=deep"], 2, "the input `depth` is a whole number"),
        (&["--var", "path=in", "--var", "pth=x"], 2, "it has no input `pth` (its inputs: `depth`, `path`)"),
        (&["--var", "path=in", "a task"], 2, "the flow `f` takes no task"),
        (&["--var", "path=in", "--dry-run"], 2, "--dry-run shows one request"),
        (&["--var", "path=nowhere"], 1, "the flow `f` ended at its step `look`"),
    ] {
        flow(file, args).file("in/a/b.txt", "x").run().exits(code).reason_has(reason);
    }
    let unknown = Run::new().config("flows/found.yaml", file).args(["run", "--flow", "fuond"]).run();
    unknown.exits(2).reason_has("there is no flow `fuond`: did you mean `found`?");
    Run::new().args(["run", "--flow", "x"]).run().exits(2).reason_has("there is no flow `x`: none is configured");
}

#[test]
fn a_task_is_an_input_from_the_line_or_from_stdin() {
    let file = "
inputs: { task: {} }
steps: [{ id: keep, tool: write_file, with: { path: kept.txt, content: '<{{ inputs.task }}>' } }]
answer: '{{ inputs.task }}'
";
    let edits = ["--approve", "edits"];
    let output = flow(file, &edits).arg("say {{ steps }} it").run().success().stdout_is("say {{ steps }} it\n");
    assert_eq!(output.place.read("kept.txt"), "<say {{ steps }} it>", "a value is never rendered");
    flow(file, &edits).stdin("piped").run().success().stdout_is("piped\n");
    flow(file, &edits).args(["--var", "task=given"]).run().success().stdout_is("given\n");
}

#[test]
fn conditions_loops_groups_and_other_flows() {
    let inner = "
inputs: { word: {} }
steps: [{ id: keep, tool: write_file, with: { path: '{{ inputs.word }}.txt', content: '{{ inputs.word }}' } }]
outputs: { kept: '{{ inputs.word }}' }
";
    let file = "
inputs: { words: { type: array } }
steps:
  - { id: each, for_each: { in: inputs.words, most: 3 }, flow: inner, with: { word: '{{ item }}' } }
  - id: never
    when: inputs.words | length > 9
    tool: list_dir
  - { id: after_never, tool: read_file, with: { path: '{{ steps.never.path }}' } }
  - id: again
    repeat: { until: last.look.total > 2, most: 5 }
    steps:
      - { id: more, tool: write_file, with: { path: 'again/{{ round }}.txt', content: x } }
      - { id: look, tool: list_dir, with: { path: again }, depends_on: [more] }
outputs:
  each: '{{ steps.each }}'
  files: '{{ steps.again.look.total }}'
";
    let run = flow(file, &["-o", "jsonl", "--approve", "edits", "--var", "words:=[\"a\", \"b\"]"]);
    let output = run.config("flows/inner.yaml", inner).run().success();
    assert_eq!(outputs(&output), json!({ "each": [{ "kept": "a" }, { "kept": "b" }], "files": 3 }));
    assert_eq!(output.place.read("b.txt"), "b");
    let expected = "never skipped, after_never skipped, each[1]/keep ok, each[1] ok, each[2]/keep ok, each[2] ok, \
                    again[1]/more ok, again[1]/look ok, again[1] ok, again[2]/more ok, again[2]/look ok, again[2] ok, \
                    again[3]/more ok, again[3]/look ok, again[3] ok";
    assert_eq!(steps(&output), expected);
    let run =
        flow(file, &["--approve", "edits", "--var", "words:=[1, 2, 3, 4]"]).config("flows/inner.yaml", inner);
    run.run().exits(1).reason_has("`inputs.words` has 4 items, more than `most`: 3");
}

#[test]
fn a_value_is_no_part_of_a_command() {
    let file = "
inputs: { word: {} }
steps: [{ id: say, tool: run_command, with: { command: 'printf %s {{ inputs.word }}' } }]
answer: '{{ steps.say.output }}'
";
    let word = "a b'; touch hacked; echo \"$(touch hacked)";
    let output =
        flow(file, &["--approve", "all", "--sandbox", "off"]).args(["--var", &format!("word={word}")]).run();
    let output = output.success().stdout_has(word);
    assert!(!output.place.exists("hacked"));
    let quoted = file.replace("{{ inputs.word }}", "\"{{ inputs.word }}\"");
    flow(&quoted, &["--var", "word=x"]).run().exits(3).stderr_has("the placeholder is inside quotes");
}

#[test]
fn steps_run_under_the_same_policy() {
    let file = "steps: [{ id: make, tool: write_file, with: { path: made.txt, content: x } }]\n";
    let output = flow(file, &[]).run().exits(7).stderr_has("▸ make · write_file");
    assert!(!output.place.exists("made.txt"));
    let with_default = file.replace("id: make,", "id: make, default: nothing,");
    flow(&with_default, &["--approve", "never"]).run().success().stdout_is("nothing\n");
}

#[test]
fn a_prompt_is_asked_with_its_variables_and_under_a_schema_once_more() {
    let replies = [Reply::text("no JSON"), Reply::text("{\"count\": \"2\"}"), Reply::text("two")];
    let server = Server::start(replies);
    let file = "
inputs: { task: {} }
steps:
  - id: count
    prompt: 'Count <words>{{ words }}</words>'
    with: { words: '{{ inputs.task }}' }
    schema: { type: object, required: [count], properties: { count: { type: integer } } }
  - { id: say, prompt: 'Say {{ n + 1 }}', with: { n: '{{ steps.count.count }}' } }
";
    let run =
        Run::new().config("flows/f.yaml", file).server(&server).args(["run", "--flow", "f", "{{ evil }} words"]);
    run.run().success().stdout_is("two\n");
    let requests = server.requests();
    assert_eq!(requests[0].user(), "Count <words>{{ evil }} words</words>");
    assert!(requests[1].user().contains("That reply cannot be used."), "{}", requests[1].user());
    assert_eq!(requests[2].user(), "Say 3");
}

#[test]
fn the_graph_is_checked_with_the_tools_of_the_agent() {
    let file = "
steps:
  - { id: a, tool: raed_file, with: { path: x } }
  - { id: b, tool: read_file, with: { pth: x } }
";
    let check = flow(file, &[]).run().exits(3);
    check.stderr_has("f.yaml:3:20: the agent has no tool `raed_file`; did you mean `read_file`");
    let run =
        Run::new().config("models/nobody.yaml", NOBODY).config("flows/f.yaml", file).args(["config", "check"]);
    let output = run.env("AGENT_MODEL", "x").env("OPENAI_API_KEY", "k").run().exits(3);
    output.stderr_has("the tool needs the argument `path`").stderr_has("the tool takes no argument `pth`");
}

#[test]
fn what_was_finished_is_not_repeated() {
    let file = "
inputs: { word: {} }
steps:
  - { id: once, tool: run_command, with: { command: 'echo {{ inputs.word }} >> once.txt' } }
  - { id: gate, tool: read_file, with: { path: gate.txt }, depends_on: [once] }
  - { id: ask, prompt: 'Is {{ word }} well?', with: { word: '{{ inputs.word }}' }, depends_on: [gate] }
answer: '{{ steps.ask }} {{ steps.gate.text }}'
";
    let server = Server::start([Reply::error(401, "no"), Reply::text("It is.")]);
    let args = ["run", "--flow", "f", "--approve", "all", "--sandbox", "off"];
    let first = Run::new().config("flows/f.yaml", file).server(&server).file("gate.txt", "open");
    let first = first.args(args).args(["--var", "word=all"]).run().exits(4);
    let again = Run::at(&first.place).server(&server).args(args).arg("--continue").run().success();
    again.stdout_is("It is. open\n").stderr_has("going on with the flow `f` that was interrupted");
    assert_eq!(first.place.read("once.txt"), "all\n");
    let third = Run::at(&first.place).server(&server).args(args).arg("--continue").run();
    third.exits(1).reason_has("it needs `word`");
}

#[test]
fn a_failed_command_fails_its_step_and_large_data_is_whole() {
    let file = "
steps:
  - { id: bad, tool: run_command, with: { command: exit 3 } }
  - { id: after, tool: write_file, with: { path: out.txt, content: '{{ steps.bad.exit_code }}' } }
";
    let args = ["--approve", "all"];
    let output = flow(file, &args).run().exits(1).reason_has("the flow `f` ended at its step `bad`");
    assert!(!output.place.exists("out.txt"));
    let file = "
steps:
  - { id: list, tool: list_dir, with: { path: many } }
  - { id: found, tool: glob, with: { pattern: 'many/*' } }
  - { id: lines, tool: grep, with: { pattern: x, path: many } }
answer: '{{ steps.list.entries | length }} {{ steps.found.files | length }} {{ steps.lines.matches | length }}'
";
    let run = (0..700).fold(flow(file, &[]), |run, n| run.file(&format!("many/{n}"), "x\n"));
    run.run().success().stdout_is("700 700 700\n");
}

#[test]
fn a_flow_takes_no_mode() {
    let file = "steps: [{ id: look, tool: list_dir }]\n";
    flow(file, &["--mode", "plan"]).run().exits(2).reason_has("leave out --mode");
}

/// A flow that a router picks by its description.
const COUNT: &str = "
description: Counts the entries of a directory.
inputs: { dir: { description: which directory } }
steps: [{ id: list, tool: list_dir, with: { path: '{{ inputs.dir }}' } }]
answer: 'There are {{ steps.list.total }}.'
";

#[test]
fn a_router_that_gives_a_flow_bad_inputs_is_told_once() {
    let route = |input: &Value| {
        let reply = json!({ "reasoning": "r", "tool_name": "flow:count", "tool_input": input, "confidence": 0.9 });
        Reply::text(&reply.to_string())
    };
    let server = Server::start([route(&json!({ "dri": "in" })), route(&json!({ "dir": "in" }))]);
    let run = Run::task(&server, "how many?").config("flows/count.yaml", COUNT).args(["--mode", "route"]);
    run.file("in/a", "").run().success().stdout_is("There are 1.\n");
    assert!(server.requests()[1].user().contains("it has no input `dri`"), "{}", server.requests()[1].user());
}

#[test]
fn a_router_picks_a_flow() {
    let route = json!({
        "reasoning": "it counts", "tool_name": "flow:count", "tool_input": { "dir": "in" }, "confidence": 0.9,
    });
    let server = Server::start([Reply::text(&route.to_string())]);
    let run = Run::task(&server, "how many?").config("flows/count.yaml", COUNT).args(["--mode", "route"]);
    let run = run.file("AGENTS.md", "Count hidden files too.\n");
    run.file("in/a", "").file("in/b", "").run().success().stdout_is("There are 2.\n");
    let asked = server.requests()[0].user().to_owned();
    for part in ["count", "Counts the entries of a directory.", "Count hidden files too.", "; today is 20"] {
        assert!(asked.contains(part), "no `{part}`: {asked}");
    }
}

/// A block of docs/flows.md: what is typed, and what it prints.
fn example(page: &str, command: &str) -> String {
    let (_, after) =
        page.split_once(&format!("$ {command}\n")).unwrap_or_else(|| panic!("`{command}` is not there"));
    after.split("```").next().expect("the block ends").to_owned()
}

#[test]
fn the_page_shows_what_happens() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(package.join("docs/flows.md")).expect("the page is text");
    for name in ["summarise", "solve"] {
        let file = std::fs::read_to_string(package.join(format!("docs/flows/flows/{name}.yaml"))).expect("a flow");
        assert!(page.contains(&file), "docs/flows.md shows {name}.yaml as it is");
    }
    let config = package.join("docs/flows");
    for command in [
        "agent run -m scripted --flow summarise",
        "agent run -m scripted --flow summarise --var most=1 -o json | jq .outputs",
        "agent run -m scripted --flow solve \"How many lines do a.txt and b.txt have?\"",
    ] {
        let typed = command.strip_suffix(" | jq .outputs");
        let script = typed.unwrap_or(command).replace("agent run", "agent run -c \"$CONFIG\"");
        let run = Run::script("/bin/sh", &script).env("CONFIG", config.display().to_string());
        let output = run.file("a.txt", "a\nb\n").file("b.txt", "c\n").run().success();
        let shown = example(&page, command);
        if typed.is_some() {
            let shown: Value = serde_json::from_str(&shown).expect("the page shows JSON");
            assert_eq!(output.json()["outputs"], shown, "{command}");
        } else {
            output.stdout_is(&shown);
        }
    }
}

#[test]
fn a_schema_is_asked_of_the_answer_and_not_written_into_the_input() {
    let file = "
inputs: { task: {} }
steps: [{ id: a, tool: read_file, with: { path: '{{ inputs.task }}' } }]
answer: '{\"of\": \"{{ inputs.task }}\"}'
";
    let run =
        flow(file, &["--schema", "s.json", "a.txt"]).file("a.txt", "hi").file("s.json", "{\"type\": \"object\"}");
    run.run().success().stdout_is("{\"of\":\"a.txt\"}\n");
}
