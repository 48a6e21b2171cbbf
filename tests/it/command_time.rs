//! The clocks of a command: its own, that of its silence, and that of the run. Which one ran out is said, with what
//! was seen until then.

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server};

/// One command, and the requests that came of it.
fn ran(arguments: &Value, args: &[&str]) -> (Output, Vec<Request>) {
    let server = Server::start([Reply::call("run_command", arguments), Reply::text("done")]);
    let run = Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]).args(args.iter().copied());
    (run.run(), server.requests())
}

#[test]
fn a_call_may_ask_for_more_time_than_is_usual() {
    let slow = json!({"command": "sleep 0.5; echo fine", "timeout": 60});
    let (output, requests) = ran(&slow, &["--set", "limits.tool_timeout=100ms"]);
    assert!(requests[1].last_output().contains("exit 0\nfine"), "{}", requests[1].last_result());
    output.success();
}

#[test]
fn what_says_nothing_of_time_has_the_usual_one() {
    let (output, requests) = ran(&json!({"command": "sleep 600"}), &["--set", "limits.tool_timeout=200ms"]);
    let told = requests[1].last_result();
    assert!(told.contains("ended after 0.2 s; timeout may be up to 600 s. It wrote nothing"), "{told}");
    assert_eq!(output.events().one("tool.finished")["status"], "timeout");
}

#[test]
fn more_than_the_most_is_refused_before_anything_runs() {
    let (output, requests) = ran(&json!({"command": "touch ran", "timeout": 601}), &[]);
    let told = requests[1].last_result();
    assert!(told.contains("up to 600 s (limits.max_tool_timeout), and this one asks for 601 s"), "{told}");
    assert!(!output.place.exists("ran"));
    output.success();
}

#[test]
fn a_silent_command_is_ended_where_that_is_configured() {
    let silent = json!({"command": "echo begun; sleep 600"});
    let (output, requests) = ran(&silent, &["--set", "limits.tool_idle_timeout=200ms"]);
    let told = requests[1].last_result();
    assert!(told.contains("written nothing for 0.2 s (limits.tool_idle_timeout). Until then"), "{told}");
    assert!(told.contains("begun"), "{told}");
    assert_eq!(output.events().one("tool.finished")["status"], "timeout");
}

#[test]
fn what_a_command_wrote_before_the_run_was_out_of_time_is_told_in_the_closing_request() {
    let (output, requests) = ran(&json!({"command": "echo begun; sleep 600"}), &["--max-time", "4s"]);
    let told = requests[1].last_result();
    assert!(told.contains("the time of the whole run is out (limits.max_time). Until then"), "{told}");
    assert!(told.contains("begun") && requests[1].body["tool_choice"] == "none", "{told}");
    output.exits(124);
}

#[test]
fn a_tool_that_may_take_longer_than_any_call_is_a_mistake() {
    let tool = "timeout: 1h\ndescription: Slow. It is.\ncommand: [sleep, '1']\n";
    for command in [&["config", "check"][..], &["run", "-m", "demo", "task"]] {
        let run =
            || Run::new().args(command.iter().copied()).env("OPENAI_API_KEY", "k").config("tools/slow.yaml", tool);
        run().run().exits(3).stderr_has("slow.yaml:1:10").stderr_has("may exceed 10m");
        run().args(["--set", "limits.max_tool_timeout=2h"]).run().success();
    }
    let limits = "limits: { tool_timeout: 20m }\n";
    let check = Run::new().args(["config", "check"]).env("OPENAI_API_KEY", "k").config("agent.yaml", limits).run();
    check.exits(3).stderr_has("`max_tool_timeout` must be at least tool_timeout");
}
