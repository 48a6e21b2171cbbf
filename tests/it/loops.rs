//! Loops are found by lack of progress: honest work runs to its end, a loop gets a hint and then ends with 12.

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server};

/// The words of a hint, whatever it is about.
const HINT: &str = "More of the same will not change that";

/// The default limit of requests in a turn.
const MOST_REQUESTS: usize = 50;

fn command(line: &str) -> (&'static str, Value) {
    ("run_command", json!({ "command": line }))
}

/// A model that makes the calls that `call` returns, until it returns none or may make none.
fn calling(call: impl Fn(usize) -> Option<(&'static str, Value)> + Send + Sync + 'static) -> Server {
    Server::answering(move |request, index| match call(index).filter(|_| !is_stopped(request)) {
        Some((name, arguments)) => Reply::call(name, &arguments),
        None => Reply::text("The answer."),
    })
}

fn is_stopped(request: &Request) -> bool {
    request.body["tool_choice"] == "none"
}

fn hints(server: &Server) -> usize {
    server.requests().last().map_or(0, |request| request.raw.matches(HINT).count())
}

fn run(server: &Server) -> Run {
    let items = (1..60).map(|n| format!("text {n}\n")).collect::<String>();
    let run =
        Run::task(server, "task").args(["--approve", "all"]).file("a.txt", "one\ntwo\n").file("items.txt", &items);
    run.file("q", "the same\n".repeat(40)).file("build.log", "Linking\n")
}

/// The calls run to their end, and the model gets no hint.
#[track_caller]
fn assert_honest(calls: usize, call: impl Fn(usize) -> (&'static str, Value) + Send + Sync + 'static) -> Output {
    let server = calling(move |index| (index < calls).then(|| call(index)));
    let output = run(&server).run().success().stdout_is("The answer.\n");
    assert_eq!((server.requests().len(), hints(&server)), (calls + 1, 0), "{}", output.shown());
    output
}

/// The model gets a hint, goes on, and is stopped long before the limit of requests.
#[track_caller]
fn assert_stopped(call: impl Fn(usize) -> (&'static str, Value) + Send + Sync + 'static) {
    let server = calling(move |index| Some(call(index)));
    let output = run(&server).run().exits(12).stdout_is("The answer.\n").reason_has("stopped in a loop");
    let requests = server.requests().len();
    assert!(hints(&server) == 1 && requests < MOST_REQUESTS * 2 / 3, "{requests} requests\n{}", output.shown());
}

#[test]
fn waiting_for_something_that_does_not_change_is_no_loop() {
    assert_honest(8, |_| command("sleep 0.6; tail -1 build.log"));
}

#[test]
fn looking_at_a_list_between_different_reads_is_no_loop() {
    assert_honest(30, |index| match index % 2 {
        0 => ("read_file", json!({ "path": "a.txt" })),
        _ => ("read_file", json!({ "path": "items.txt", "offset": index, "limit": 1 })),
    });
    assert_honest(30, |index| match index % 2 {
        0 => command("cat a.txt"),
        _ => command(&format!("sed -n {index}p items.txt")),
    });
}

#[test]
fn taking_one_item_after_another_from_a_file_is_no_loop() {
    let output = assert_honest(30, |_| command("head -1 q; sed -i 1d q"));
    assert_eq!(output.place.read("q").lines().count(), 10);
}

#[test]
fn a_command_that_appends_the_same_each_time_is_no_loop() {
    let output = assert_honest(30, |_| command("echo x >> state"));
    assert_eq!(output.place.read("state").lines().count(), 30);
    assert_honest(30, |_| command("mkdir -p sub; cd sub && echo x >> state"));
}

#[test]
fn a_script_that_changes_what_was_read_before_is_no_loop() {
    let output = assert_honest(30, |index| match index {
        0 => ("write_file", json!({ "path": "next.sh", "content": "sed -i 1d q\n" })),
        1 => ("read_file", json!({ "path": "q" })),
        _ => command("sh next.sh"),
    });
    assert_eq!(output.place.read("q").lines().count(), 12);
}

#[test]
fn edits_that_differ_between_tests_that_fail_alike_are_no_loop() {
    assert_honest(30, |index| match index % 2 {
        0 => ("write_file", json!({ "path": "a.sh", "content": format!("exit 1 # {index}\n") })),
        _ => command("sh a.sh"),
    });
    assert_honest(30, |index| match index % 2 {
        0 => command(&format!("echo 'exit 1 # {index}' > a.sh")),
        _ => command("sh a.sh"),
    });
}

#[test]
fn paging_through_a_file_is_no_loop() {
    assert_honest(30, |index| ("read_file", json!({ "path": "q", "offset": index + 1, "limit": 1 })));
    assert_honest(30, |index| command(&format!("sed -n {}p items.txt", index + 1)));
}

#[test]
fn a_cycle_of_six_calls_is_a_loop() {
    assert_stopped(|index| match index % 6 {
        0 => ("list_dir", json!({ "path": "." })),
        1 => ("read_file", json!({ "path": "a.txt" })),
        2 => ("grep", json!({ "pattern": "three" })),
        3 => command("wc -l items.txt"),
        4 => ("read_file", json!({ "path": "build.log" })),
        _ => command("make nothing 2>&1"),
    });
}

#[test]
fn reads_that_only_differ_in_their_limits_are_a_loop() {
    assert_stopped(|index| ("read_file", json!({ "path": "a.txt", "limit": 100 + index })));
    assert_stopped(|index| ("read_file", json!({ "path": "items.txt", "limit": 50 - index })));
    assert_stopped(|index| ("read_file", json!({ "path": "a.txt", "offset": 100 + index })));
    assert_stopped(|index| command(&format!("head -n {} a.txt", 100 + index)));
}

#[test]
fn a_counter_in_a_comment_hides_no_loop() {
    assert_stopped(|index| command(&format!("cat a.txt # attempt {index}")));
    assert_stopped(|index| command(&format!("# attempt {index}\nfalse")));
}

#[test]
fn a_clock_in_the_output_hides_no_loop() {
    assert_stopped(|_| command("date '+%T %s.%N'; cat a.txt"));
    assert_stopped(|index| command(&format!("cat a.txt; date +%s%N # {index}")));
    assert_stopped(|_| command("date > now; cat a.txt"));
}

#[test]
fn an_edit_that_is_undone_and_made_again_is_a_loop() {
    assert_stopped(|index| {
        let (old, new) = if index % 2 == 0 { ("one", "ONE") } else { ("ONE", "one") };
        ("edit_file", json!({ "path": "a.txt", "old_text": old, "new_text": new }))
    });
    assert_stopped(|index| command(["sed -i s/one/ONE/ a.txt", "sed -i s/ONE/one/ a.txt"][index % 2]));
}

#[test]
fn a_call_inside_call_tool_is_seen_as_the_call_that_it_is() {
    let server = calling(|index| match index % 2 {
        0 => Some(("call_tool", json!({ "name": "tool_7", "arguments": "{}" }))),
        _ => Some(("tool_7", json!({}))),
    });
    let tool = "description: Says the same.\npermission: read\ncommand: [echo, the same]\n";
    let run = (0..14).fold(run(&server), |run, n| run.config(&format!("tools/tool_{n}.yaml"), tool));
    run.run().exits(12).reason_has("the same call returned the same result 6 times");
    assert_eq!(hints(&server), 1);
}

#[test]
fn calls_side_by_side_are_not_stopped_before_the_model_could_read_the_hint() {
    let call = || ("read_file", json!({ "path": "a.txt" }).to_string());
    let server = Server::answering(move |request, _| {
        let calls = std::array::from_fn::<_, 8, _>(|_| call());
        if is_stopped(request) { Reply::text("The answer.") } else { Reply::calls(&calls) }
    });
    run(&server).run().exits(12);
    assert_eq!((server.requests().len(), hints(&server)), (3, 1), "the hint is read before the second reply");
}

#[test]
fn the_reason_says_what_kind_of_loop_it_was() {
    let server = calling(|_| Some(command("cat a.txt")));
    run(&server).run().exits(12).reason_has("the same call returned the same result 6 times: stopped in a loop");
    let server = calling(|index| Some(("read_file", json!({ "path": "a.txt", "limit": 100 + index }))));
    run(&server).run().exits(12).reason_has("the last 24 calls brought nothing new: stopped in a loop");
}

#[test]
fn the_window_and_the_threshold_say_after_how_many_calls() {
    let server = calling(|index| Some(("read_file", json!({ "path": "a.txt", "limit": 100 + index }))));
    run(&server)
        .config("agent.yaml", "limits: { loop_window: 3 }\n")
        .run()
        .exits(12)
        .reason_has("the last 6 calls");
    let server = calling(|_| Some(command("cat a.txt")));
    run(&server)
        .config("agent.yaml", "limits: { loop_threshold: 2 }\n")
        .run()
        .exits(12)
        .reason_has("result 4 times");
}

#[test]
fn the_bounded_loops_of_a_flow_are_not_judged() {
    let file = "
inputs: { words: { type: array } }
steps:
  - { id: each, for_each: { in: inputs.words, most: 40 }, tool: read_file, with: { path: a.txt } }
outputs: { reads: '{{ steps.each | length }}' }
";
    let words = format!("words:={}", json!(vec![""; 40]));
    let run = Run::new().config("models/nobody.yaml", "provider: scripted\nscript: [{ text: nobody asked }]\n");
    let run = run.config("flows/f.yaml", file).file("a.txt", "one\n").args(["run", "-m", "nobody", "--flow", "f"]);
    let output = run.args(["-o", "json", "--var", &words]).run().success();
    assert_eq!(output.json()["outputs"], json!({ "reads": 40 }));
}
