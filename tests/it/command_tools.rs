//! Commands as tools, from YAML, and what the configuration says of tools that are built in.

use serde_json::{Value, json};

use crate::output::Output;
use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::{Request, Server};

const SHOW: &str = r#"
name: show_arguments
description: Shows what it is given. Returns one line for each argument.
parameters:
  type: object
  required: [first]
  properties: { first: { type: string }, second: { type: string }, flag: { type: boolean } }
command: ["printf", "<%s>\n", "{{ first }}", "--flag={{ flag }}", "{{ second }}"]
"#;

/// One call of a tool that the user configured; what came of it, and the requests.
fn called(files: &[(&str, &str)], args: &[&str], name: &str, arguments: &Value) -> (Output, Vec<Request>) {
    let server = Server::start([Reply::call(name, arguments), Reply::text("done")]);
    let mut run = Run::task(&server, "task").args(["-o", "jsonl"]).args(args.iter().copied());
    for (path, content) in files {
        run = run.config(path, content);
    }
    (run.run(), server.requests())
}

/// The result of that call, as the model read it.
fn told(files: &[(&str, &str)], args: &[&str], name: &str, arguments: &Value) -> String {
    let (output, requests) = called(files, args, name, arguments);
    assert_eq!(requests.len(), 2, "{}", output.shown());
    requests[1].last_result().to_owned()
}

#[test]
fn a_configured_command_is_a_tool_and_each_part_is_one_argument() {
    let files = [("tools/show.yaml", SHOW)];
    let arguments = json!({"first": "a b; touch x $(id) '\"", "flag": true});
    let (output, requests) = called(&files, &["--approve", "all"], "show_arguments", &arguments);
    let output = output.success();
    assert!(!output.place.exists("x"), "nothing in a value is run");
    let sent = requests[0].body["tools"].as_array().expect("tools");
    let sent = sent.iter().find(|tool| tool["function"]["name"] == "show_arguments").expect("it is sent");
    assert_eq!(sent["function"]["parameters"]["required"], json!(["first"]));
    assert_eq!(sent["function"]["parameters"]["additionalProperties"], json!(false));
    let result = requests[1].last_result();
    assert!(result.contains("<a b; touch x $(id) '\">\n<--flag=true>"), "{result}");
    assert!(!result.contains("<>"), "a part whose argument was not given is left out: {result}");
    let started = output.events().one("tool.started").clone();
    assert!(started["subject"].as_str().is_some_and(|shown| shown.starts_with("printf")), "{started}");
}

#[test]
fn arguments_are_checked_before_anything_runs() {
    let files = [("tools/show.yaml", SHOW)];
    let result = told(&files, &["--approve", "all"], "show_arguments", &json!({"frist": "x"}));
    assert!(result.contains("status: error") && result.contains("frist") && result.contains("first"), "{result}");
}

#[test]
fn a_command_asks_unless_it_only_reads_and_confirmation_always_asks() {
    let tool = |more: &str| format!("description: Makes a file.\ncommand: [touch, made.txt]\n{more}");
    #[rustfmt::skip]
    let table = [
        ("",                                                 "ask",   7),
        ("effects: [files]\n",                               "edits", 0),
        ("",                                                 "all",   0),
        ("permission: read\n",                               "ask",   0),
        ("permission: read\nrequires_confirmation: true\n",  "ask",   7),
        ("permission: read\nrequires_confirmation: true\n",  "edits", 7),
        ("permission: read\nrequires_confirmation: true\n",  "all",   0),
    ];
    for (more, mode, code) in table {
        let file = tool(more);
        let (output, _) = called(&[("tools/make.yaml", &file)], &["--approve", mode], "make", &json!({}));
        assert_eq!(output.code, code, "{more:?} --approve {mode}\n{}", output.shown());
        assert_eq!(output.place.exists("made.txt"), code == 0, "{more:?} --approve {mode}");
    }
    let file = tool("permission: read\nrequires_confirmation: true\n");
    let (output, _) = called(&[("tools/make.yaml", &file)], &["--approve", "never"], "make", &json!({}));
    assert!(!output.success().place.exists("made.txt"));
}

/// Touches what it is told to; in both ways that a tool may be written.
const TOUCH: [&str; 2] = [
    "description: Touches.\ncommand: [touch, \"--\", \"{{ path }}\"]\n\
     parameters: { required: [path], properties: { path: { type: string } } }\n",
    "description: Touches.\nshell: true\ncommand: \"touch -- {{ path }} && echo it is there\"\n\
     parameters: { required: [path], properties: { path: { type: string } } }\n",
];

#[test]
fn rules_over_commands_look_into_what_it_would_run() {
    #[rustfmt::skip]
    let table = [
        ("{ deny: run_command, command: [touch, \"*\"] }",           "all", "made.txt",   "denied", 0),
        ("{ deny: run_command, command: [touch, \"*\", no.txt] }",   "all", "no.txt",     "denied", 0),
        ("{ deny: run_command, command: [touch, \"*\", no.txt] }",   "all", "made.txt",   "ok",     0),
        ("{ deny: \"*\", path: \"secrets/**\" }",                    "all", "secrets/x",  "denied", 0),
        ("{ ask: run_command, command: [touch, \"*\"] }",            "all", "made.txt",   "denied", 7),
        ("{ allow: run_command, command: [\"*\"] }",                 "ask", "made.txt",   "ok",     0),
        ("{ allow: run_command, command: [touch, \"--\", \"m*\"] }", "ask", "other.txt",  "denied", 7),
        ("{ allow: run_command }",                                  "ask", "made.txt",   "denied", 7),
        ("{ allow: make }",                                         "ask", "made.txt",   "ok",     0),
    ];
    for tool in TOUCH {
        for (rule, mode, path, status, code) in table {
            let settings = format!("permissions:\n  rules:\n    - {rule}\n");
            let files = [("tools/make.yaml", tool), ("agent.yaml", settings.as_str())];
            let (output, _) = called(&files, &["--approve", mode], "make", &json!({ "path": path }));
            let finished = output.events().one("tool.finished").clone();
            assert_eq!(finished["status"], status, "{rule} {path} {tool}\n{}", output.shown());
            assert_eq!(output.code, code, "{rule} {path} {tool}");
        }
    }
}

#[test]
fn always_means_these_arguments_alone() {
    for tool in TOUCH {
        let make = |path: &str| Reply::call("make", &json!({ "path": path }));
        let replies = [make("a b"), make("a b"), make("c"), Reply::text("Done.")];
        let server = Server::start(replies);
        let run = Run::new().server(&server).config("tools/make.yaml", tool);
        let mut terminal = Terminal::start(&run);
        terminal.line("go");
        terminal.wait_for("Always: make `touch -- 'a b'");
        terminal.wait_for("with these arguments alone");
        terminal.wait_for("Always: ");
        terminal.pick("Always");
        terminal.wait_until("the second question", |screen| {
            screen.contains("Allow? Always: ") && screen.contains("(y or n")
        });
        terminal.line("n");
        terminal.wait_for("Done.");
        assert!(terminal.place.exists("a b") && !terminal.place.exists("c"));
    }
}

#[test]
fn a_line_for_the_shell_never_holds_a_value() {
    let tool = "description: Counts.\nshell: true\npermission: read\n\
                parameters: { properties: { text: { type: string }, more: { type: string } } }\n\
                command: \"printf '[%s]' {{ text }}{% if more %} {{ more }}{% endif %} | tr a-z A-Z; exit 3\"\n";
    let result = told(&[("tools/count.yaml", tool)], &[], "count", &json!({"text": "a'; touch x; \"$(id)` b"}));
    assert!(result.contains("exit 3\n[A'; TOUCH X; \"$(ID)` B]"), "{result}");
}

#[test]
fn directory_environment_time_format_and_size_are_the_tools_own() {
    let tool = "description: Looks around.\npermission: read\nshell: true\ncommand: pwd; echo $LEVEL; seq 2000\n\
                parameters: { properties: { dir: { type: string } } }\n\
                workdir: \"{{ dir }}\"\nenv: { LEVEL: \"level-{{ dir }}\" }\nmax_tokens: 200\n\
                format: standard\nencoding: json\n";
    let server = Server::start([
        Reply::call("look", &json!({"dir": "sub"})),
        Reply::call("look", &json!({"dir": "../.."})),
        Reply::text("done"),
    ]);
    Run::task(&server, "task").config("tools/look.yaml", tool).file("sub/a.txt", "").run().success();
    let requests = server.requests();
    let results = requests[2].tool_results();
    let first: Value = serde_json::from_str(results[0].1).expect("JSON, as the tool says");
    let content = first["content"].as_str().expect("content");
    assert!(content.contains("/sub\nlevel-sub\n1\n") && content.contains("left out"), "{content}");
    assert!(content.len() <= 800 && first["summary"] == "exit 0", "{first}");
    assert!(results[1].1.contains("outside the workspace"), "{}", results[1].1);

    let slow = "description: Takes long.\npermission: read\ncommand: [sleep, \"1000\"]\ntimeout: 1s\n";
    let (output, _) = called(&[("tools/slow.yaml", slow)], &[], "slow", &json!({}));
    assert_eq!(output.success().events().one("tool.finished")["status"], "timeout");
}

#[test]
fn a_secret_of_a_tool_is_seen_by_its_command_alone() {
    const KEY: &str = "glpat{{x}}-0123456789";
    let tool = "description: Asks the server.\nshell: true\npermission: read\n\
                command: printf '%s' \"$ACCESS\" | tr a-z A-Z; echo \" $ACCESS\"\nenv: { ACCESS: \"{{ env.GITLAB_TOKEN }}\" }\n";
    let server = Server::start([
        Reply::call("ask", &json!({})),
        Reply::call("run_command", &json!({"command": "echo \"<$ACCESS$GITLAB_TOKEN>\""})),
        Reply::text("done"),
    ]);
    let run = Run::task(&server, "task").args(["-o", "jsonl", "--approve", "all"]).env("GITLAB_TOKEN", KEY);
    let output = run.config("tools/ask.yaml", tool).run().success();
    let requests = server.requests();
    let results = requests[2].tool_results();
    assert!(results[0].1.contains("GLPAT{{X}}-0123456789 ***"), "{}", results[0].1);
    assert!(results[1].1.contains("<>"), "{}", results[1].1);
    assert!(!output.stdout.contains(KEY) && !output.stderr.contains(KEY), "{}", output.shown());
}

#[test]
fn json_output_becomes_data() {
    let tool = |command: &str| {
        format!(
            "description: Gives data.\npermission: read\noutput_format: json\nformat: raw\nencoding: json\n{command}"
        )
    };
    let good = tool("command: [printf, 'Compiling\\n{\"names\": [\"a\", \"b\"]}\\n']\n");
    let result = told(&[("tools/data.yaml", &good)], &[], "data", &json!({}));
    assert_eq!(serde_json::from_str::<Value>(&result).expect("JSON")["result"], json!({"names": ["a", "b"]}));
    let bad = tool("command: [echo, no data]\n");
    let result = told(&[("tools/data.yaml", &bad)], &[], "data", &json!({}));
    assert!(result.contains("JSON document") && result.contains("no data"), "{result}");
}

#[test]
fn a_command_may_print_every_part_of_its_result() {
    let tool = |printed: &Value, more: &str| {
        let command = json!(["printf", "%s\n", printed.to_string()]);
        format!("description: Counts.\npermission: read\noutput_format: result\n{more}command: {command}\n")
    };
    let agent = "termination_summary_prompt: 'Stop; {{ state.count }} are counted.'\n";
    let printed = json!({
        "result": {"files": [1, 2]}, "observation": "Two files are new.", "summary": "2 files",
        "state_update": {"count": 2, "gone": null}, "checkpoint": "counted"
    });
    let server = Server::start([
        Reply::call("count", &json!({})),
        Reply::text("one"),
        Reply::call("list_dir", &json!({})),
        Reply::text("two"),
    ]);
    let place = Place::new();
    let run = |words: &[&str]| {
        let run = Run::at(&place).config("tools/count.yaml", &tool(&printed, "")).arg("run").args(words.to_vec());
        run.config("agents/default.yaml", agent).server(&server).run()
    };
    let output = run(&["-o", "jsonl", "first"]).success();
    assert_eq!(output.events().one("tool.finished")["summary"], "2 files");
    let result = server.requests()[1].last_result().to_owned();
    assert!(result.contains("Two files are new.") && !result.contains("files\":"), "{result}");
    run(&["--continue", "--max-turns", "1", "second"]).exits(8);
    let closing = server.requests().pop().expect("four");
    assert_eq!(closing.user(), "Stop; 2 are counted.");
    let id = Run::at(&place).args(["session", "list", "-o", "json"]).run().success().json()[0]["id"].clone();
    let id = id.as_str().expect("an id");
    let fork = Run::at(&place).args(["session", "fork", id, "--at", "counted"]).run().success().stdout;
    let forked = Run::at(&place).args(["session", "show", fork.trim()]).run().success().stdout;
    assert!(forked.contains("first") && !forked.contains("second"), "{forked}");

    let (exit, shell) = (json!({"observation": "no", "state_update": {"a": 1}}), "shell: true\n");
    let failing = tool(&exit, shell).replace("command: [\"printf\"", "command: [\"false\"");
    let wrong = [
        (tool(&json!({"reslut": 1}), ""), "unknown field `reslut`"),
        (tool(&json!({"state_update": {"todo": []}}), ""), "belongs to the tool `todo`"),
        (tool(&json!({"checkpoint": "m12"}), ""), "not like a number or an id"),
        (tool(&json!({"state_update": {"a": "x".repeat(70_000)}}), ""), "more than 64 KiB"),
        (tool(&json!([1]), ""), "a result that is none"),
        (failing.replace("shell: true\n", ""), "exit 1"),
    ];
    for (file, why) in wrong {
        let result = told(&[("tools/count.yaml", &file)], &[], "count", &json!({}));
        assert!(result.contains(why), "{why}: {result}");
    }
}

#[test]
fn a_tool_that_is_switched_off_is_not_shown_at_all() {
    let server = Server::start([Reply::text("done")]);
    let admin = "description: Reaches far.\ncommand: [echo]\npermission: admin\n";
    let run = Run::task(&server, "task").config("tools/grep.yaml", "enabled: false\n");
    run.config("tools/far.yaml", admin).run().success();
    let request = server.only_request();
    assert!(!request.tool_names().contains(&"far"), "nor is what reaches further than permissions.max");
    assert!(
        !request.tool_names().contains(&"grep") && !request.system().contains("grep,"),
        "{}",
        request.system()
    );
}

#[test]
fn what_may_succeed_later_is_tried_again_only_if_it_does_nothing_twice() {
    let tool = |idempotent: bool| {
        format!(
            "description: Works the second time.\npermission: write\nidempotent: {idempotent}\nshell: true\n\
             command: echo try >> tries; test $(wc -l < tries) -gt 1 || exit 75; echo worked\n"
        )
    };
    let (output, requests) =
        called(&[("tools/flaky.yaml", &tool(true))], &["--approve", "all"], "flaky", &json!({}));
    let output = output.success();
    assert_eq!(output.place.read("tries"), "try\ntry\n");
    assert!(requests[1].last_result().contains("worked"), "and the model never hears of it");
    let finished = output.events().one("tool.finished").clone();
    assert_eq!((&finished["status"], &finished["telemetry"]["retries"]), (&json!("ok"), &json!(1)));

    let (output, requests) =
        called(&[("tools/flaky.yaml", &tool(false))], &["--approve", "all"], "flaky", &json!({}));
    assert_eq!(output.success().place.read("tries"), "try\n");
    assert!(requests[1].last_result().contains("may succeed later"), "{}", requests[1].last_result());
}

#[test]
fn a_broken_definition_ends_with_3_and_its_place() {
    let broken = SHOW.replace("{{ second }}", "{{ secnd }}");
    Run::new()
        .args(["run", "-m", "demo", "task"])
        .config("tools/show.yaml", &broken)
        .run()
        .exits(3)
        .stderr_has("tools/show.yaml:8:71: template: no parameter is called `secnd`")
        .stderr_has("did you mean `second`?");
    for (name, content, reason) in [
        ("tools/grep.yaml", "description: Mine.\ncommand: [echo]\n", "`grep` is the name of a built-in tool"),
        ("tools/grpe.yaml", "enabled: false\n", "did you mean `grep`?"),
        ("agents/default.yaml", "tools: [\"*\", \"shw_arguments\"]\n", "did you mean `show_arguments`?"),
    ] {
        for command in [&["config", "check"][..], &["run", "-m", "demo", "task"]] {
            let run = Run::new().args(command.iter().copied()).config("tools/show.yaml", SHOW);
            run.config(name, content).run().exits(3).stderr_has(reason).stderr_has(&format!("{name}:1:"));
        }
    }
}

#[test]
fn a_project_adds_commands_only_when_it_is_trusted_and_they_are_named_as_such() {
    let server = Server::always(Reply::text("done"));
    let project = (".agent/tools/show.yaml", SHOW);
    Run::task(&server, "task").file(project.0, project.1).run().success();
    Run::task(&server, "task").arg("--trust").file(project.0, project.1).run().success();
    let offered: Vec<bool> =
        server.requests().iter().map(|request| request.tool_names().contains(&"show_arguments")).collect();
    assert_eq!(offered, [false, true]);

    let mut terminal = Terminal::start(&Run::task(&server, "task").file(project.0, project.1));
    terminal.wait_for("tools/show.yaml: command: printf");
    terminal.line("n");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_list_that_is_cut_names_the_handle_that_reads_the_whole() {
    let list = "name: numbers\ndescription: Lists numbers. Returns JSON.\npermission: read\noutput_format: json\n\
        shell: true\ncommand: |\n  printf '['; for n in $(seq 1 4000); do printf '{\"number\": %d},\\n' $n; done; \
        printf '{\"number\": 0}]'\n";
    for format in ["concise", "raw", "detailed"] {
        let server = Server::start([
            Reply::call("numbers", &json!({})),
            Reply::call("recall", &json!({"id": "r1", "offset": 3999, "limit": 3})),
            Reply::text("done"),
        ]);
        let run = Run::task(&server, "task").args(["--approve", "all"]);
        let run = run.config("tools/numbers.yaml", &format!("{list}format: {format}\nmax_tokens: 500\n"));
        run.run().success();
        let requests = server.requests();
        let read = requests[1].last_result();
        assert!(read.contains("of 4001 items; recall id=r1 reads the whole"), "{format}: {read}");
        assert!(read.len() < 8000, "{format}: {} bytes", read.len());
        let whole = requests[2].last_result();
        assert!(whole.contains("{\"number\": 3999}"), "{format}: {whole}");
    }
}
