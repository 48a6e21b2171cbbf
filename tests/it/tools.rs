//! The tools as a model sees them: the results of its calls.

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server};

/// Plays these calls one after the other in a workspace with `files`; the run, and what each call returned.
fn called(files: &[(&str, &str)], calls: &[(&str, Value)]) -> (Output, Vec<String>) {
    let mut replies: Vec<Reply> = calls.iter().map(|(name, arguments)| Reply::call(name, arguments)).collect();
    replies.push(Reply::text("done"));
    let server = Server::start(replies);
    let mut run = Run::task(&server, "task").args(["--approve", "all"]);
    for (path, content) in files {
        run = run.file(path, content);
    }
    let output = run.run().success().stdout_is("done\n");
    let requests = server.requests();
    let last = requests.last().expect("a request");
    let results = last.tool_results().iter().map(|(_, text)| (*text).to_owned()).collect();
    (output, results)
}

/// The request of a run under a profile.
fn request_under(profile: &str) -> Request {
    let server = Server::start([Reply::text("done")]);
    let set = format!("agents.default.profile={profile}");
    Run::task(&server, "task").args(["--set", &set, "--approve", "edits"]).run().success();
    server.only_request()
}

#[test]
fn the_definitions_have_two_sizes() {
    // Where a person is present `ask_user` comes on top, with at most 100.
    for (profile, most) in [("concise", 1400), ("guided", 1900)] {
        let tools = request_under(profile).body["tools"].to_string();
        let tokens = agent::facade::base::tokens::count_tokens(&tools);
        assert!(tokens <= most, "{profile}: {tokens} tokens of {most}: say it shorter");
        assert_eq!(tools.contains("whole lines of it"), profile == "guided", "{tools}");
    }
}

#[test]
fn the_defaults_are_offered_sorted_and_within_their_budget() {
    let request = request_under("concise");
    let names = request.tool_names();
    assert!(names.is_sorted(), "definitions are sorted: {names:?}");
    for name in
        ["read_file", "list_dir", "glob", "grep", "write_file", "edit_file", "run_command", "recall", "todo"]
    {
        assert!(names.contains(&name), "{name} is missing from {names:?}");
    }
    for name in ["apply_patch", "fetch_url", "view_image"] {
        assert!(!names.contains(&name), "{name} is only for agents that name it: {names:?}");
    }
    let text = format!("{}{}", request.system(), request.body["tools"]);
    // The name of the temporary directory has more tokens in one run than in another.
    let (before, after) = text.split_once("/workspace on ").expect("the prompt says where it is");
    let before = &before[..=before.rfind(char::is_whitespace).expect("words stand before the path")];
    let tokens = agent::facade::base::tokens::count_tokens(&format!("{before}/workspace on {after}"));
    // Where a person is present `ask_user` comes on top, with at most 100.
    assert!(tokens <= 2150, "system prompt and tools take {tokens} tokens of 2,150: say it shorter");
}

#[test]
fn read_file_numbers_lines_and_honours_offset_and_limit() {
    let text: String = (1..=50).map(|n| format!("line {n}\n")).collect();
    let (_, results) = called(
        &[("long.txt", &text)],
        &[
            ("read_file", json!({"path": "long.txt", "offset": 10, "limit": 2})),
            ("read_file", json!({"path": "none.txt"})),
        ],
    );
    assert!(results[0].contains("line 10") && results[0].contains("line 11"), "{}", results[0]);
    assert!(!results[0].contains("line 12") && !results[0].contains("line 9\n"), "{}", results[0]);
    assert!(results[1].contains("none.txt"), "{}", results[1]);
}

#[test]
fn binary_and_huge_files_are_described_not_dumped() {
    let huge = "0123456789abcdef\n".repeat(200_000);
    let (_, results) = called(
        &[("image.bin", "\0\0\u{1}PNG\0"), ("huge.txt", &huge)],
        &[("read_file", json!({"path": "image.bin"})), ("read_file", json!({"path": "huge.txt"}))],
    );
    assert!(results[0].contains("binary") && !results[0].contains('\0'), "{}", results[0]);
    assert!(results[1].len() < 64 * 1024, "{} bytes of a huge file", results[1].len());
    assert!(results[1].contains("offset"), "how to read on: {}", &results[1][results[1].len() - 200..]);
}

#[test]
fn write_file_makes_directories_and_refuses_what_was_never_read() {
    let (output, results) = called(
        &[("old.txt", "precious\n")],
        &[
            ("write_file", json!({"path": "deep/new.txt", "content": "new\n"})),
            ("write_file", json!({"path": "old.txt", "content": "gone\n"})),
            ("read_file", json!({"path": "old.txt"})),
            ("write_file", json!({"path": "old.txt", "content": "replaced\n"})),
        ],
    );
    assert_eq!(output.place.read("deep/new.txt"), "new\n");
    assert!(results[1].contains("read"), "an unread file is refused with the reason: {}", results[1]);
    assert_eq!(output.place.read("old.txt"), "replaced\n");
}

#[test]
fn edit_file_changes_what_is_unique_and_keeps_line_endings() {
    let read = |path: &str| ("read_file", json!({"path": path}));
    let edit =
        |path: &str, old: &str, new: &str| ("edit_file", json!({"path": path, "old_text": old, "new_text": new}));
    let (output, results) = called(
        &[
            ("exact.rs", "fn a() {}\nfn b() {}\n"),
            ("crlf.txt", "one\r\ntwo\r\nthree\r\n"),
            ("space.txt", "let x = 1;  \nlet y = 2;\n"),
            ("quotes.txt", "say \u{201c}hi\u{201d}\n"),
            ("twice.txt", "same\nsame\n"),
        ],
        &[
            read("exact.rs"),
            read("crlf.txt"),
            read("space.txt"),
            read("quotes.txt"),
            read("twice.txt"),
            edit("exact.rs", "fn b() {}", "fn c() {}"),
            edit("crlf.txt", "one\ntwo", "uno\ndos"),
            edit("space.txt", "let x = 1;\nlet y = 2;", "let z = 3;"),
            edit("quotes.txt", "say \"hi\"", "say \"bye\""),
            edit("twice.txt", "same", "other"),
            edit("exact.rs", "fn nowhere() {}", "fn d() {}"),
            (
                "edit_file",
                json!({"path": "twice.txt", "old_text": "same", "new_text": "other", "replace_all": true}),
            ),
        ],
    );
    assert_eq!(output.place.read("exact.rs"), "fn a() {}\nfn c() {}\n");
    assert_eq!(output.place.read("crlf.txt"), "uno\r\ndos\r\nthree\r\n");
    assert_eq!(output.place.read("space.txt"), "let z = 3;\n");
    assert!(output.place.read("quotes.txt").contains("bye"), "{}", results[8]);
    assert!(results[9].contains('2'), "how often it was found: {}", results[9]);
    assert!(results[10].contains("fn a"), "the nearest region: {}", results[10]);
    assert_eq!(output.place.read("twice.txt"), "other\nother\n");
}

#[test]
fn list_glob_and_grep_honour_gitignore() {
    let (_, results) = called(
        &[
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".gitignore", "target/\n"),
            ("src/main.rs", "fn main() { needle(); }\n"),
            ("target/out.rs", "needle\n"),
            ("notes.md", "a Needle here\n"),
        ],
        &[
            ("glob", json!({"pattern": "**/*.rs"})),
            ("grep", json!({"pattern": "needle"})),
            ("grep", json!({"pattern": "needle", "ignore_case": true, "glob": "*.md"})),
            ("list_dir", json!({"path": "src"})),
            ("grep", json!({"pattern": "("})),
            ("grep", json!({"pattern": "absent-everywhere"})),
        ],
    );
    assert!(results[0].contains("src/main.rs") && !results[0].contains("target"), "{}", results[0]);
    assert!(results[1].contains("src/main.rs") && !results[1].contains("target"), "{}", results[1]);
    assert!(results[2].contains("notes.md") && !results[2].contains("main.rs"), "{}", results[2]);
    assert!(results[3].contains("main.rs"), "{}", results[3]);
    assert!(results[4].contains('('), "a bad pattern is named: {}", results[4]);
    assert!(!results[5].is_empty(), "nothing found is said, not left empty");
}

#[test]
fn run_command_returns_output_and_code_and_knows_no_stdin_and_no_pager() {
    let (_, results) = called(
        &[],
        &[
            ("run_command", json!({"command": "echo out; echo err >&2; exit 3"})),
            ("run_command", json!({"command": "cat; echo \"pager=$PAGER\""})),
            ("run_command", json!({"command": "pwd", "workdir": "."})),
            ("run_command", json!({"command": "no-such-program-anywhere"})),
            ("run_command", json!({"command": "printf 'a\\033[31mb'"})),
        ],
    );
    assert!(
        results[0].contains("out") && results[0].contains("err") && results[0].contains('3'),
        "{}",
        results[0]
    );
    assert!(results[1].contains("pager=cat"), "{}", results[1]);
    assert!(results[2].contains("workspace"), "{}", results[2]);
    assert!(results[3].contains("127") || results[3].contains("not found"), "{}", results[3]);
    assert!(results[4].contains('a') && results[4].contains('b'), "{}", results[4]);
}

#[test]
fn a_command_that_takes_too_long_is_stopped_and_says_so() {
    let (_, results) = called(&[], &[("run_command", json!({"command": "echo begun; sleep 600", "timeout": 1}))]);
    assert!(results[0].contains("begun"), "what was written before stays: {}", results[0]);
    assert!(results[0].contains("1 s") || results[0].contains("time"), "{}", results[0]);
}

#[test]
fn long_output_keeps_its_head_and_its_tail() {
    let (_, results) =
        called(&[], &[("run_command", json!({"command": "seq 1 200000; echo the error is here >&2"}))]);
    let text = &results[0];
    assert!(text.len() < 100_000, "{} bytes", text.len());
    assert!(
        text.contains("1\n2\n3\n") && text.contains("the error is here"),
        "{} … {}",
        &text[..100],
        &text[text.len() - 200..]
    );
}

#[test]
fn a_path_outside_the_workspace_is_named_as_such() {
    let server = Server::start([
        Reply::call("write_file", &json!({"path": "../out.txt", "content": "x"})),
        Reply::text("done"),
    ]);
    let output = Run::task(&server, "task").args(["--approve", "edits"]).run().exits(7);
    assert!(!output.place.exists("../out.txt"));
    assert!(server.requests()[1].last_result().contains("outside"), "{}", server.requests()[1].last_result());
}

#[test]
fn a_skill_is_disclosed_by_name_and_loaded_on_demand() {
    let skill = "---\nname: brew\ndescription: How to brew coffee.\n---\nGrind {{ beans }}, then pour.\n";
    let server = Server::start([
        Reply::call("load_skill", &json!({"name": "brew"})),
        Reply::call("load_skill_reference", &json!({"name": "brew", "path": "beans.md"})),
        Reply::call("load_skill_reference", &json!({"name": "brew", "path": "../../models/default.yaml"})),
        Reply::text("done"),
    ]);
    Run::task(&server, "coffee?")
        .config("skills/brew/SKILL.md", skill)
        .config("skills/brew/beans.md", "Arabica.\n")
        .config("models/default.yaml", "temperature: 0.25\n")
        .run()
        .success();
    let requests = server.requests();
    assert!(requests[0].raw.contains("How to brew coffee."), "the skill is not disclosed");
    assert!(!requests[0].raw.contains("then pour"), "its body is loaded on demand");
    assert!(requests[1].last_result().contains("Grind {{ beans }}, then pour."), "{}", requests[1].last_result());
    assert!(requests[2].last_result().contains("Arabica."), "{}", requests[2].last_result());
    assert!(!requests[3].last_result().contains("0.25"), "a reference leads out of its skill");
}

#[test]
fn what_a_long_output_leaves_out_is_recalled_by_id_and_by_search() {
    let lines = "i=1; while [ $i -le 20000 ]; do echo \"line $i of many\"; i=$((i+1)); done";
    let server = Server::start([
        Reply::call("run_command", &json!({"command": lines})),
        Reply::call("recall", &json!({"id": "r1", "offset": 10000, "limit": 2})),
        Reply::call("recall", &json!({"query": "LINE 12345 "})),
        Reply::call("recall", &json!({"id": "r9"})),
        Reply::text("done"),
    ]);
    let output = Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]).run().success();
    let requests = server.requests();
    let notice = requests[1].last_result();
    assert!(notice.contains("left out; recall id=r1 reads the whole"), "{}", &notice[notice.len() / 2..]);
    assert!(requests[2].last_result().contains("line 10000 of many\nline 10001 of many\n"), "by id");
    assert!(requests[3].last_result().contains("r1:12345: line 12345 of many"), "by search");
    assert!(requests[4].last_result().contains("the ids are r1"), "an unknown id names those that there are");
    let events = output.events();
    let finished = events.0.iter().find(|event| event["type"] == "tool.finished").expect("the command ended");
    assert_eq!(finished["spill_id"], "r1");
}
