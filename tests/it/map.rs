//! `agent map`: a run for each line of stdin, a line of JSON for each run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::{Gate, Reply};
use crate::run::{Place, Run, Running};
use crate::server::Server;

/// A server whose answer is the last word of the task, in capitals.
fn shouts() -> Server {
    Server::answering(|request, _| {
        Reply::text(&request.user().split_whitespace().last().unwrap_or("").to_uppercase())
    })
}

fn map(place: &Arc<Place>, server: &Server, words: &[&str], input: &str) -> Run {
    Run::at(place).server(server).arg("map").args(words.to_vec()).stdin(input)
}

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn texts(rows: &[Value], key: &str) -> Vec<String> {
    rows.iter().map(|row| row[key].as_str().unwrap_or_default().to_owned()).collect()
}

/// The results in a file of the workspace.
fn read_rows(place: &Place) -> Vec<Value> {
    rows(&place.read("out.jsonl"))
}

#[test]
fn each_line_is_a_run_and_the_results_are_in_their_order() {
    let (place, server) = (Place::new(), shouts());
    let done = map(&place, &server, &["Say {{ item }}"], "one\ntwo\nthree\ntwo\n").run().success();
    let rows = rows(&done.stdout);
    assert_eq!(texts(&rows, "result"), ["ONE", "TWO", "THREE", "TWO"]);
    assert_eq!(rows[3]["id"], format!("{}-2", rows[1]["id"].as_str().expect("an id")));
    let first = &rows[0];
    assert_eq!((&first["v"], &first["status"], &first["exit_code"]), (&json!(1), &json!("completed"), &json!(0)));
    let session = first["session"].as_str().expect("a session");
    Run::at(&place).args(["session", "show", session]).run().stdout_has("Say one");
    done.stderr_has("Tasks only read here").stderr_has("4 done, 0 failed");
}

#[test]
fn fields_of_objects_are_named_and_wrong_lines_fail_alone() {
    let (place, server) = (Place::new(), shouts());
    let input = "{\"id\": \"a\", \"word\": \"x\"}\n{\"id\": \"a\", \"word\": \"y\"}\nbroken\n{\"other\": 1}\n{\"id\": 7, \"word\": \"z\"}\n";
    let done = map(&place, &server, &["--ephemeral", "Say {{ item.word }}"], input).run().exits(1);
    let rows = rows(&done.stdout);
    assert_eq!(texts(&rows, "result"), ["X", "", "", "", "Z"]);
    let codes: Vec<_> = rows.iter().map(|row| row["exit_code"].as_u64()).collect();
    assert_eq!(codes, [Some(0), Some(2), Some(2), Some(2), Some(0)]);
    let reasons = texts(&rows, "reason");
    assert!(reasons[1].contains("earlier line") && reasons[2].contains("not JSON"), "{reasons:?}");
    assert!(reasons[3].contains("nothing defines item.word"), "{reasons:?}");
    assert_eq!((&rows[4]["id"], &rows[4]["session"]), (&json!("7"), &Value::Null));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_schema_makes_results_data() {
    let place = Place::new();
    let server = Server::always(Reply::text("{\"label\": \"bug\"}"));
    let schema = r#"{"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}"#;
    let run = map(&place, &server, &["--schema", "s.json", "Label {{ item }}"], "crash\n").file("s.json", schema);
    assert_eq!(rows(&run.run().success().stdout)[0]["result"], json!({ "label": "bug" }));
}

#[test]
fn the_same_command_goes_on_with_what_is_finished() {
    let (place, server) = (Place::new(), shouts());
    let words = ["--output-file", "out.jsonl", "Say {{ item }}"];
    map(&place, &server, &words, "one\ntwo\n").run().success().stdout_is("");
    map(&place, &server, &words, "one\ntwo\nthree\n").run().success().stderr_has("2 results are finished");
    assert_eq!(texts(&read_rows(&place), "result"), ["ONE", "TWO", "THREE"]);
    assert_eq!(server.requests().len(), 3, "what is finished is not asked again");
    assert!(!place.exists("out.jsonl.journal"));
    // A torn line was being written.
    let whole = place.read("out.jsonl");
    fs::write(place.workspace().join("out.jsonl"), &whole[..whole.len() - 9]).expect("written");
    map(&place, &server, &words, "one\ntwo\nthree\n").run().success();
    assert_eq!(texts(&read_rows(&place), "result"), ["ONE", "TWO", "THREE"]);
    assert_eq!(server.requests().len(), 4);
    let other = ["--output-file", "out.jsonl", "Shout {{ item }}"];
    map(&place, &server, &other, "one\n").run().exits(2).stderr_has("the result of another task");
    fs::write(place.workspace().join("out.jsonl"), "my notes\n").expect("written");
    map(&place, &server, &words, "one\n").run().exits(2).stderr_has("out.jsonl:1 is no result of agent map");
    assert_eq!(place.read("out.jsonl"), "my notes\n");
    assert!(!place.exists("out.jsonl.journal.new"));
}

#[test]
fn what_failed_is_run_again_only_on_request() {
    let place = Place::new();
    let refused = Reply::error(400, "no");
    let server = Server::start([Reply::text("ONE"), refused, Reply::text("TWO")]);
    let words = ["--jobs", "1", "--output-file", "out.jsonl", "Say {{ item }}"];
    let run = |more: &[&str]| map(&place, &server, &[&words[..], more].concat(), "one\ntwo\n").run();
    run(&[]).exits(1);
    run(&[]).exits(1).stderr_has("1 done, 1 failed");
    assert_eq!(server.requests().len(), 2);
    run(&["--retry-failed"]).success();
    assert_eq!(texts(&read_rows(&place), "result"), ["ONE", "TWO"]);
}

#[test]
fn what_failed_stays_until_it_has_another_result() {
    for order in [&[][..], &["--unordered"]] {
        let (place, gate) = (Place::new(), Gate::new());
        let held = gate.clone();
        let server = Server::answering(move |request, at| match (at, request.user()) {
            (1 | 2, _) => Reply::error(400, "no"),
            (4, _) => Reply::text("late").gate(&held, 0),
            (_, said) => Reply::text(&said.split_whitespace().last().unwrap_or("").to_uppercase()),
        });
        let words = [&["--jobs", "1", "--output-file", "out.jsonl", "Say {{ item }}"][..], order].concat();
        let run = |more: &[&str]| map(&place, &server, &[&words[..], more].concat(), "one\ntwo\nthree\n");
        let results = || texts(&read_rows(&place), "result").into_iter().collect::<BTreeSet<_>>();
        run(&[]).run().exits(1);
        let running = run(&["--retry-failed"]).spawn();
        while server.requests().len() < 5 || !place.read("out.jsonl").contains("TWO") {
            std::thread::yield_now();
        }
        running.signal(Signal::SIGKILL);
        running.wait();
        run(&[]).run().exits(1).stderr_has("2 done, 1 failed");
        assert_eq!(read_rows(&place).len(), 3, "one line for each item");
        assert_eq!(results(), ["ONE", "TWO", ""].map(str::to_owned).into());
        assert!(read_rows(&place).iter().any(|row| row["reason"].as_str().is_some_and(|why| why.contains("no"))));
        assert_eq!(server.requests().len(), 5);
        gate.open();
        run(&["--retry-failed"]).run().success().stderr_has("2 results are finished");
        assert_eq!(read_rows(&place).len(), 3, "one line for each item");
        assert_eq!(results(), ["ONE", "TWO", "THREE"].map(str::to_owned).into());
        assert_eq!(server.requests().len(), 6);
        assert!(!place.exists("out.jsonl.journal") && !place.exists("out.jsonl.new"));
    }
}

#[test]
fn what_is_finished_stays_when_its_items_do_not_come_again() {
    let place = Place::new();
    let server = Server::answering(|request, _| Reply::text(request.user()));
    let words = ["--jobs", "1", "--output-file", "out.jsonl", "{{ item }}"];
    let run = |input: &str| map(&place, &server, &words, input).run();
    run("one\ntwo\nthree\n").success();
    run("").success().stderr_has("3 results wait in the journal");
    run("one\n").success().stderr_has("2 results wait in the journal");
    assert_eq!(texts(&read_rows(&place), "result"), ["one"]);
    run("one\ntwo\nthree\n").success();
    assert_eq!(texts(&read_rows(&place), "result"), ["one", "two", "three"]);
    assert_eq!(server.requests().len(), 3, "nothing ran twice");
    assert!(!place.exists("out.jsonl.journal"));
}

#[test]
fn a_slow_task_holds_nothing_back_and_what_is_done_survives_a_kill() {
    let (place, gate) = (Place::new(), Gate::new());
    let held = gate.clone();
    let server = Server::answering(move |request, _| match request.user() {
        "Say slow" => Reply::text("SLOW").gate(&held, 0),
        said => Reply::text(&said.split_whitespace().last().unwrap_or("").to_uppercase()),
    });
    let words = ["--output-file", "out.jsonl", "Say {{ item }}"];
    let input = "first\nslow\nthree\nfour\nfive\n";
    let running = map(&place, &server, &words, input).spawn();
    while server.requests().len() < 5 || place.read("out.jsonl.journal").lines().count() < 4 {
        std::thread::yield_now();
    }
    map(&place, &server, &words, input).run().exits(2).stderr_has("is being written by another agent map");
    running.signal(Signal::SIGKILL);
    running.wait();
    assert_eq!(texts(&read_rows(&place), "result"), ["FIRST"], "the rest waits for the slow one");
    gate.open();
    map(&place, &server, &words, input).run().success();
    assert_eq!(texts(&read_rows(&place), "result"), ["FIRST", "SLOW", "THREE", "FOUR", "FIVE"]);
    let asked: Vec<String> = server.requests().iter().map(|request| request.user().to_owned()).collect();
    assert_eq!(asked.len(), 6, "only the slow one was asked again: {asked:?}");
    assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), 5);
}

#[test]
fn one_of_several_that_begin_at_once_writes_and_a_link_stays_a_link() {
    for order in [&[][..], &["--unordered"]] {
        let (place, gate) = (Place::new(), Gate::new());
        let held = gate.clone();
        let server = Server::answering(move |_, _| Reply::text("DONE").gate(&held, 0));
        let (target, link) = (place.workspace().join("kept.jsonl"), place.workspace().join("out.jsonl"));
        fs::write(&target, "").expect("written");
        std::os::unix::fs::symlink("kept.jsonl", &link).expect("linked");
        let words = [&["--output-file", "out.jsonl", "Say {{ item }}"][..], order].concat();
        let begun: Vec<_> = (0..4).map(|_| map(&place, &server, &words, "one\n").spawn()).collect();
        while server.requests().is_empty() {
            std::thread::yield_now();
        }
        gate.open();
        let ended: Vec<Output> = begun.into_iter().map(Running::wait).collect();
        // Whoever comes after the first has ended finds everything done.
        for refused in ended.iter().filter(|output| output.code != 0) {
            assert!(refused.stderr.contains("is being written by another agent map"), "{}", refused.shown());
        }
        assert_eq!(server.requests().len(), 1, "nothing ran twice");
        assert!(link.is_symlink() && !place.exists("kept.jsonl.journal") && !place.exists("kept.jsonl.new"));
        assert_eq!(texts(&read_rows(&place), "result"), ["DONE"]);
    }
}

#[test]
fn results_come_as_they_are_done_when_order_does_not_matter() {
    let (place, gate) = (Place::new(), Gate::new());
    let held = gate.clone();
    let server = Server::answering(move |request, _| match request.user() {
        "Say slow" => Reply::text("SLOW").gate(&held, 0),
        said => Reply::text(&said.split_whitespace().last().unwrap_or("").to_uppercase()),
    });
    let running = map(&place, &server, &["--unordered", "Say {{ item }}"], "first\nslow\nthree\n").spawn();
    running.wait_stdout("THREE");
    gate.open();
    let done = running.wait().success();
    assert_eq!(texts(&rows(&done.stdout), "result"), ["FIRST", "THREE", "SLOW"]);
}

#[test]
fn an_interrupt_lets_running_tasks_end() {
    let (place, gate) = (Place::new(), Gate::new());
    let held = gate.clone();
    let server = Server::answering(move |_, at| match at {
        0 => Reply::text("ONE"),
        _ => Reply::text("TWO").gate(&held, 0),
    });
    let words = ["--jobs", "1", "Say {{ item }}"];
    let running = map(&place, &server, &words, "one\ntwo\nthree\n").spawn();
    running.wait_stdout("ONE");
    while server.requests().len() < 2 {
        std::thread::yield_now();
    }
    running.signal(Signal::SIGINT);
    running.wait_stderr("No new task begins");
    gate.open();
    let done = running.wait().exits(130);
    assert_eq!(texts(&rows(&done.stdout), "result"), ["ONE", "TWO"]);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_refusal_for_too_many_requests_is_no_failure() {
    let place = Place::new();
    let limited = |after: &str| Reply::error(429, "slow down").header("retry-after", after);
    let server = Server::start([Reply::text("ONE"), limited("0"), limited("1"), Reply::text("TWO")]);
    let words = ["--jobs", "1", "--ephemeral", "Say {{ item }}"];
    let done = map(&place, &server, &words, "one\ntwo\n").config("agent.yaml", "limits: {max_time: 5m}\n").run();
    let done = done.success().stderr_has("The server's limit is reached: requests wait");
    assert_eq!(texts(&rows(&done.stdout), "result"), ["ONE", "TWO"]);
}

#[test]
fn tasks_that_change_files_work_each_in_a_worktree() {
    let place = Place::new();
    let server = Server::answering(|request, _| {
        if request.tool_results().is_empty() {
            let name = request.user().split_whitespace().last().unwrap_or("").to_owned();
            Reply::call("write_file", &json!({ "path": format!("{name}.txt"), "content": name }))
        } else {
            Reply::text("done")
        }
    });
    let git = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first";
    let made = Command::new("sh").args(["-c", git]).current_dir(place.workspace()).status();
    assert!(made.expect("git runs").success());
    let words = ["--isolate", "worktree", "--approve", "edits", "Write {{ item }}"];
    let done = map(&place, &server, &words, "one\ntwo\n").run().success();
    for (row, name) in rows(&done.stdout).iter().zip(["one", "two"]) {
        let branch = row["branch"].as_str().expect("a branch");
        let shown = Command::new("git")
            .args(["show", &format!("{branch}:{name}.txt")])
            .current_dir(place.workspace())
            .output()
            .expect("git runs");
        assert_eq!(String::from_utf8_lossy(&shown.stdout), name);
    }
    assert!(!place.exists("one.txt"));
}

#[test]
fn without_isolation_nothing_can_be_written() {
    let (place, server) = (Place::new(), shouts());
    map(&place, &server, &["Say {{ item }}"], "one\n").run().success();
    let names: Vec<String> = server.only_request().tool_names().iter().map(|name| (*name).to_owned()).collect();
    assert!(names.contains(&"read_file".to_owned()) && !names.contains(&"write_file".to_owned()), "{names:?}");
}

#[test]
fn options_of_one_run_and_an_empty_input_are_told() {
    let (place, server) = (Place::new(), shouts());
    let refused = |words: &[&str], why: &str| -> Output {
        map(&place, &server, words, "x\n").run().exits(2).stderr_has(why)
    };
    refused(&["--continue", "x"], "--continue is about one run");
    refused(&[], "no task");
    refused(&["Say {{ item"], "the task:");
    map(&place, &server, &["Say {{ item }}"], "").run().success().stdout_is("").stderr_has("0 done");
}

#[test]
fn the_example_labels_a_thousand_issues() {
    let place = Place::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/triage");
    let issues = Command::new("sh").arg(example.join("issues.sh")).arg("1000").output().expect("sh runs").stdout;
    let words = ["-m", "labels", "--jobs", "32", "--ephemeral", "--output-file", "out.jsonl"];
    let map = Run::at(&place).args(["map", "-c"]).arg(example.join("config").display().to_string()).args(words);
    let map = map.arg("--schema").arg(example.join("label.schema.json").display().to_string());
    let done = map
        .arg("Label this issue: {{ item.title }}")
        .stdin(String::from_utf8(issues).expect("text"))
        .run()
        .success();
    done.stderr_has("1000 done, 0 failed");
    let rows = read_rows(&place);
    assert_eq!(
        (rows.len(), &rows[0]["id"], &rows[0]["result"]["label"]),
        (1000, &json!("issue-1"), &json!("question"))
    );
    let urgent = rows.iter().filter(|row| row["result"]["urgent"] == true).count();
    assert_eq!(urgent, 200);
}

#[test]
fn what_the_budget_of_all_stops_is_not_finished_and_a_higher_one_goes_on_with_it() {
    let place = Place::new();
    let server = Server::always(Reply::text("r").counted(2300));
    let prices = "prices: { input: 1.0, output: 10.0 }\nmax_output_tokens: 4096\n";
    let run = |budget: &str, input: &str| {
        let words = ["-j", "1", "--max-cost", budget, "--output-file", "out.jsonl", "label {{ item }}"];
        map(&place, &server, &words, input).config("models/default.yaml", prices).run()
    };
    let items = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
    run("0.03", items).exits(8).stderr_has("--max-cost is reached");
    let first = read_rows(&place).len();
    assert!((1..10).contains(&first), "{first}");
    assert!(read_rows(&place).iter().all(|row| row["exit_code"] == 0));
    run("9", items).success();
    assert_eq!(read_rows(&place).len(), 10);
    // One that does not even suffice for the first task.
    let words = ["--max-cost", "0.0001", "--output-file", "none.jsonl", "label {{ item }}"];
    map(&place, &server, &words, items).config("models/default.yaml", prices).run().exits(8);
    assert_eq!(place.read("none.jsonl"), "");
}
