//! `agent prompt test`: cases that only render, cases with a model, recordings, and what is printed of them.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::reply::{Gate, Reply};
use crate::run::{KEY, Place, Run};
use crate::server::Server;

const GREET: &str = "---\ndescription: Greets.\nrequired_vars: [who]\n---\nYou greet {{ who }}.\n";
const RENDERED: &str = "\
defaults: { render: true, vars: { who: Ann } }
cases:
  - { name: it names who is greeted, assert: [equals: You greet Ann.] }
  - { name: a template in a value stays one, vars: { who: '{{ env }}' }, assert: [contains: '{{ env }}'] }
";
const ASKED: &str = "\
defaults: { vars: { who: Ann }, runs: 4 }
cases:
  - name: it says hello
    messages: [{ user: Hi! }]
    assert: [{ contains: Hello }, { not-contains: sorry }]
";

/// The prompt `greet` with these cases, in the person's own directory.
fn greet(cases: &str) -> Run {
    Run::new().config("prompts/greet/v1.0.md", GREET).config("prompts/greet/tests.yaml", cases)
}

fn test(run: Run, args: &[&str]) -> Run {
    run.args(["prompt", "test"]).args(args.iter().copied())
}

#[test]
fn cases_that_only_render_need_no_model_no_key_and_no_network() {
    let out = test(greet(RENDERED), &["greet"]).run().success();
    assert!(out.stdout.starts_with("greet@v1.0 #"), "{}", out.stdout);
    let out =
        out.stdout_has("a template in a value stays one     1/1  100 %").stdout_has("passed: 2 of 2 cases pass");
    assert_eq!(out.stderr, "");
    // Without a name: everything that has tests, what comes with the program included.
    test(greet(RENDERED), &["--filter", "who is greeted"]).run().success().stdout_has("passed: 1 of 1 cases pass");
}

#[test]
fn a_failure_shows_the_difference_and_ends_with_100() {
    let cases = "cases:\n- { name: bad, render: true, vars: { who: Bob }, assert: [equals: You greet Ann.] }\n";
    let out = test(greet(cases), &["greet"]).run().exits(100);
    out.stdout_has("✗ bad")
        .stdout_has("    - You greet Ann.\n    + You greet Bob.\n")
        .stdout_has("failed: 0 of 1");
    let undefined = "cases:\n- { name: bad, render: true, assert: [contains: x] }\n";
    test(greet(undefined), &["greet"]).run().exits(100).stdout_has("nothing defines `who`");
}

#[test]
fn mistakes_are_told_at_once_with_their_places() {
    let wrong = "cases:\n- name: a\n  asert: []\n  assert: [contians: x]\n- { name: b, assert: [regex: '('] }\n";
    let out = test(greet(wrong), &["greet"]).run().exits(3);
    let out =
        out.stderr_has("tests.yaml:3:3: there is no key of a case `asert`").stderr_has("did you mean `assert`?");
    let out = out.stderr_has("tests.yaml:4:12: there is no assertion `contians`");
    assert_eq!(out.stderr_has("tests.yaml:5:30: it is not a regular expression: unclosed group").stdout, "");
    test(greet(RENDERED), &["gret"]).run().exits(2).stderr_has("did you mean greet?");
    test(greet(RENDERED), &["greet", "--filter", "nothing"]).run().exits(2).stderr_has("--filter");
    let untested = Run::new().config("prompts/greet/v1.0.md", GREET);
    test(untested, &["greet"]).run().exits(2).stderr_has("write greet/tests.yaml beside its versions");
}

#[test]
fn a_case_runs_several_times_with_the_prompt_as_the_system_prompt() {
    let server = Server::answering(|_, at| Reply::text(if at == 1 { "I am sorry." } else { "Hello!" }));
    let out = test(greet(ASKED), &["greet", "--jobs", "1"]).server(&server).run().exits(100);
    let out = out.stdout_has("✗ it says hello     3/4  75 %        30–96 %");
    out.stdout_has(
        "✗ it says hello (run 2)\n    contains: Hello: the output lacks \"Hello\"; it is \"I am sorry.\"",
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!((requests[0].system(), requests[0].user()), ("You greet Ann.", "Hi!"));
    // Three of four are enough where the case says so.
    let lenient = ASKED.replace("runs: 4", "runs: 4, threshold: 0.75");
    let server = Server::answering(|_, at| Reply::text(if at == 1 { "I am sorry." } else { "Hello!" }));
    test(greet(&lenient), &["greet", "--jobs", "1"]).server(&server).run().success();
}

#[test]
fn a_prompt_that_nothing_follows_is_the_whole_request() {
    let cases = "cases:\n- { name: c, runs: 1, vars: { who: '{{ x }}' }, assert: [contains: ok] }\n";
    let server = Server::start([Reply::text("ok")]);
    test(greet(cases), &["greet"]).server(&server).run().success();
    assert_eq!(server.only_request().user(), "You greet {{ x }}.");
}

#[test]
fn the_messages_of_a_prompt_come_before_those_of_the_case() {
    let chat = "---\ndescription: d\nrequired_vars: [who]\nmessages:\n  - user: Who is {{ who }}?\n  - assistant: \
                A friend.\n  - user: Greet {{ who }}.\n---\nYou greet.\n";
    let cases = "\
defaults: { vars: { who: Ann }, runs: 1 }
cases:
  - name: rendered
    render: true
    assert: [equals: \"system:\\nYou greet.\\n\\nuser:\\nWho is Ann?\\n\\nassistant:\\nA friend.\\n\\nuser:\\nGreet Ann.\"]
  - { name: asked, assert: [contains: Hello] }
  - { name: asked for more, messages: [{ assistant: Hello }, { user: Again! }], assert: [contains: Hello] }
";
    let server = Server::always(Reply::text("Hello!"));
    let run = Run::new().config("prompts/chat/v1.0.md", chat).config("prompts/chat/tests.yaml", cases);
    test(run, &["chat", "--jobs", "1"]).server(&server).run().success();
    let requests = server.requests();
    let said = |at: usize| -> Vec<&str> {
        requests[at].messages().iter().filter_map(|message| message["content"].as_str()).collect()
    };
    assert_eq!(said(0), ["You greet.", "Who is Ann?", "A friend.", "Greet Ann."]);
    assert_eq!(said(1)[4..], ["Hello", "Again!"]);
}

#[test]
fn a_run_works_in_a_workspace_of_its_own_with_harmless_tools() {
    let cases = "\
cases:
  - name: it changes the file
    vars: { who: Ann }
    runs: 1
    messages: [{ user: Copy a.txt to b.txt. }]
    files: { dir/a.txt: some text }
    assert:
      - tool-sequence: { tools: [read_file, write_file], exact: true }
      - tool-args-match: { tool: write_file, args: { path: b.txt } }
      - not-tool-called: run_command
      - expr: tools[0].ok and tools | length == 2 and exit_code == 0
";
    let server = Server::start([
        Reply::call("read_file", &json!({"path": "dir/a.txt"})),
        Reply::call("write_file", &json!({"path": "b.txt", "content": "some text"})),
        Reply::text("Done."),
    ]);
    let out = test(greet(cases), &["greet"]).server(&server).run().success();
    assert!(!out.place.exists("b.txt"), "the workspace of the person stays as it is");
    let requests = server.requests();
    assert!(requests[1].last_result().contains("some text"), "{}", requests[1].last_result());
    let tools = requests[0].tool_names();
    assert!(tools.contains(&"edit_file") && !tools.contains(&"run_command") && !tools.contains(&"fetch_url"));

    let named = cases.replace("runs: 1", "runs: 1\n    tools: [grep]");
    let server = Server::start([Reply::text("no")]);
    test(greet(&named), &["greet"]).server(&server).run().exits(100);
    assert_eq!(server.only_request().tool_names(), ["grep"]);
    let unknown = cases.replace("runs: 1", "runs: 1\n    tools: [nothing]");
    test(greet(&unknown), &["greet"]).server(&server).run().exits(3).stderr_has("names the tool `nothing`");
}

#[test]
fn what_was_answered_before_an_interruption_is_recorded() {
    let place = Place::new();
    let gate = Gate::new();
    let said = || Reply::text("Hello, Ann!");
    let server = Server::start([said(), said(), said().gate(&gate, 0)]);
    let case =
        |n: u32| format!("  - {{ name: c{n}, messages: [{{ user: Hi! }}], assert: [{{ contains: Hello }}] }}\n");
    let cases =
        format!("defaults: {{ vars: {{ who: Ann }}, runs: 1 }}\ncases:\n{}{}{}", case(1), case(2), case(3));
    let run = Run::at(&place).config("prompts/greet/v1.0.md", GREET).config("prompts/greet/tests.yaml", &cases);
    let running = test(run, &["greet", "--record", "--jobs", "1"]).server(&server).spawn();
    gate.reached();
    running.signal(Signal::SIGINT);
    running.wait().exits(130).stderr_has("what was answered is recorded");
    let path = place.config().join("prompts/greet/recordings/v1.0.jsonl");
    assert_eq!(std::fs::read_to_string(path).expect("a recording").lines().count(), 2);
}

#[test]
fn what_is_recorded_is_replayed_without_a_model_until_the_prompt_changes() {
    let place = Place::new();
    let answer = format!("Hello, {KEY}!");
    let server = Server::always(Reply::text(&answer));
    let run = |run: Run| run.config("prompts/greet/v1.0.md", GREET).config("prompts/greet/tests.yaml", ASKED);
    test(run(Run::at(&place)), &["greet", "--record"]).server(&server).run().success();
    assert_eq!(server.requests().len(), 4);
    let path = place.config().join("prompts/greet/recordings/v1.0.jsonl");
    let recorded = std::fs::read_to_string(&path).expect("a recording");
    assert_eq!(recorded.lines().count(), 4);
    assert!(!recorded.contains(KEY), "a recording holds no secrets");

    let replayed = test(Run::at(&place), &["greet", "--replay"]).run().success();
    replayed.stdout_has("it says hello     4/4  100 %");
    // What is recorded is not asked again, unless everything is to be.
    test(Run::at(&place), &["greet", "--record"]).server(&server).run().success();
    assert_eq!(server.requests().len(), 4);
    test(Run::at(&place), &["greet", "--update-recordings", "--runs", "2"]).server(&server).run().success();
    assert_eq!(server.requests().len(), 6);
    // Another file renews its own cases alone.
    let other = run(Run::at(&place))
        .file("other.yaml", "cases: [ { name: one, vars: { who: Ann }, assert: [contains: Hello] } ]\n");
    let other = test(other, &["greet", "--file", "other.yaml", "--update-recordings"]);
    other.server(&server).run().success();
    test(Run::at(&place), &["greet", "--replay"]).run().success().stdout_has("it says hello     2/2  100 %");

    let changed = Run::at(&place).config("prompts/greet/v1.0.md", &GREET.replace("greet", "welcome"));
    let out = test(changed, &["greet", "--replay"]).run().exits(100);
    out.stdout_has("its recording is stale: the prompt or the case has changed since; --record records it");
}

#[test]
fn a_rate_limit_is_waited_out_and_a_failing_server_fails_the_run() {
    let limited = |at: usize| match at {
        0 => Reply::error(429, "slow down").header("retry-after", "0"),
        _ => Reply::text("Hello!"),
    };
    let server = Server::answering(move |_, at| limited(at));
    test(greet(ASKED), &["greet"]).quick_retries().server(&server).run().success();
    let server = Server::always(Reply::error(401, "wrong key"));
    let out = test(greet(ASKED), &["greet", "--runs", "1"]).server(&server).run().exits(100);
    out.stdout_has("the run ends with an answer: exit code 4:");
}

#[test]
fn a_judge_is_asked_by_a_prompt_of_its_own() {
    let cases =
        ASKED.replace("runs: 4", "runs: 1").replace("{ not-contains: sorry }", "{ llm-rubric: It is warm. }");
    let judge = |pass: bool| json!({"reason": "It says Hello.", "pass": pass}).to_string();
    for (pass, code) in [(true, 0), (false, 100)] {
        let server = Server::start([Reply::text("Hello </text>"), Reply::text(&judge(pass))]);
        let out = test(greet(&cases), &["greet"]).server(&server).run().exits(code);
        let asked = server.requests()[1].user().to_owned();
        assert!(asked.contains("<rubric>\nIt is warm.\n</rubric>") && asked.contains("Hello"), "{asked}");
        if !pass {
            out.stdout_has("llm-rubric: It is warm.: the judge says: It says Hello.");
        }
    }
}

#[test]
fn likeness_is_measured_by_embeddings() {
    let cases =
        ASKED.replace("runs: 4", "runs: 1").replace("{ not-contains: sorry }", "{ similar: [Cheers, Hi] }");
    let with = |vectors: Value| {
        Server::answering(move |request, _| match request.path.as_str() {
            "/v1/embeddings" => Reply::json(200, &json!({ "data": vectors })),
            _ => Reply::text("Hello!"),
        })
    };
    let item = |index: u64, vector: [f64; 2]| json!({"index": index, "embedding": vector});
    let near = json!([item(0, [1.0, 0.0]), item(1, [0.0, 1.0]), item(2, [2.0, 0.1])]);
    test(greet(&cases), &["greet"]).server(&with(near)).run().success();
    let far = json!([item(0, [1.0, 0.0]), item(1, [0.0, 1.0]), item(2, [1.0, 1.0])]);
    let out = test(greet(&cases), &["greet"]).server(&with(far)).run().exits(100);
    out.stdout_has("the likeness is 0.707, and 0.75 is asked for");
}

#[test]
fn two_versions_stand_side_by_side_and_noise_is_named() {
    let answers = |request: &crate::server::Request, _: usize| {
        Reply::text(if request.system().contains("warmly") { "Hello!" } else { "Go away." })
    };
    let both = |args: &[&str]| {
        let server = Server::answering(answers);
        let run = greet(ASKED).config("prompts/greet/v1.1.md", &GREET.replace("greet {{", "warmly greet {{"));
        test(run, args).server(&server).run().exits(100)
    };
    let out = both(&["--compare", "greet@1.0", "greet@1.1", "--runs", "4"]);
    let out = out.stdout_has("0/4 0 %").stdout_has("4/4 100 %");
    out.stdout_has("greet@v1.1").stdout_has("is better, and the difference is more than noise: p = 0.03.");
    let out = both(&["--compare", "greet@1.0", "greet@1.1", "--runs", "2"]);
    out.stdout_has("The difference may be noise: p = 0.33.").stdout_has("4 runs of each would tell (here: 2)");
}

#[test]
fn a_report_is_written_for_programs_and_for_ci() {
    let out = test(greet(RENDERED), &["greet", "-o", "json"]).run().success().json();
    assert_eq!((&out["passed"], &out["tested"][0]["prompt"]), (&Value::Bool(true), &json!("greet@v1.0")));
    let junit = test(greet(RENDERED), &["greet", "-o", "junit"]).run().success().stdout;
    assert!(junit.contains("<testsuites tests=\"2\" failures=\"0\">"), "{junit}");
    let html = test(greet(RENDERED), &["greet", "-o", "html"]).run().success().stdout;
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"), "{html}");
}

#[test]
fn a_promptfoo_file_is_read_as_it_is_and_what_has_no_equal_is_named() {
    let file = "\
prompts: ['Translate to {{language}}: {{input}}']
providers: [python:model.py]
tests:
  - vars: { language: [French, German], input: Hello }
    assert:
      - { type: icontains, value: '{{language}}' }
      - { type: javascript, value: output.length }
";
    let server = Server::answering(|request, _| Reply::text(request.user()));
    let run = Run::new().file("promptfooconfig.yaml", file);
    let out = test(run, &["--file", "promptfooconfig.yaml"]).server(&server).run().success();
    let out = out.stdout_has("passed: 2 of 2 cases pass");
    out.stderr_has("promptfooconfig.yaml:7: the assertion `javascript` is left out")
        .stderr_has("the provider `python:model.py` is left out");
    assert_eq!(server.requests().len(), 2);
    let ours = Run::new().file("cases.yaml", RENDERED);
    test(ours, &["--file", "cases.yaml"]).run().exits(2).stderr_has("names no prompt");
    test(greet("").file("cases.yaml", RENDERED), &["greet", "--file", "cases.yaml"]).run().success();
}
