//! The format of `--output jsonl`: one run with a call, pinned to the byte, but for ids, times and what the built-in
//! prompts weigh.

use serde_json::json;

use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

#[test]
fn the_format_of_events_is_pinned() {
    let server = Server::start([
        Reply::text_and_calls("👀", &[("read_file", json!({"path": "a.txt"}).to_string())]).counted(1000),
        // In one piece, like the one character above: how many deltas there are is the network's doing.
        Reply::text_in_pieces("It says hello.", 64).counted(1000),
    ]);
    let output = Run::task(&server, "What does a.txt say?")
        .file("a.txt", "hello\n")
        .config("agents/default.yaml", "tools: [read_file]\n")
        .config("models/default.yaml", "prices: { input: 10.0, output: 100.0 }\n")
        .args(["--output", "jsonl"])
        .run()
        .success();
    let mut settings = insta::Settings::clone_current();
    for (varying, shown) in [
        (r#""time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z""#, r#""time":"TIME""#),
        (r#""(session_id|run_id)":"[^"]+""#, r#""$1":"ID""#),
        (r#""fingerprint":"[0-9a-f]{12}""#, r#""fingerprint":"FINGERPRINT""#),
        (r#""(duration|latency)_ms":[\d.]+"#, r#""${1}_ms":0"#),
        (r#""timestamp":"[^"]+""#, r#""timestamp":"TIME""#),
        (r#""execution_id":"[a-z0-9]{16}""#, r#""execution_id":"ID""#),
        (r#""input_tokens":\d+,"prefix_tokens":\d+"#, r#""input_tokens":0,"prefix_tokens":0"#),
        (r#""cwd":"[^"]+""#, r#""cwd":"WORKSPACE""#),
    ] {
        settings.add_filter(varying, shown);
    }
    settings.bind(|| insta::assert_snapshot!(output.stdout, @r#"
    {"v":1,"type":"run.started","cwd":"WORKSPACE","agent":"default","model":"scripted-model","scripted":false,"provider":"openai","prompts":[{"name":"system","version":"v2.1","fingerprint":"FINGERPRINT"},{"name":"termination","version":"v1.1","fingerprint":"FINGERPRINT"},{"name":"compression","version":"v1.0","fingerprint":"FINGERPRINT"}],"tools":["read_file"],"limits":{"max_turns":50,"max_requests":500,"max_time":"30m","max_tokens":null,"max_cost":null,"tool_timeout":"2m","max_tool_timeout":"10m","tool_idle_timeout":null,"max_parallel":4,"max_depth":1,"loop_window":12,"loop_threshold":3},"context":{"budget":117248,"window":128000},"seq":0,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"turn.started","input":"What does a.txt say?","seq":1,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"message","role":"user","content":"What does a.txt say?","seq":2,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"request.started","step":1,"messages":2,"input_tokens":0,"prefix_tokens":0,"seq":3,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"text.delta","text":"👀","seq":4,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"request.finished","step":1,"attempt":1,"model":"scripted-model","provider":"openai","role":"main","status":"ok","finish_reason":"tool_calls","usage":{"input_tokens":1000,"cached_input_tokens":0,"output_tokens":20,"reasoning_tokens":0,"estimated":false},"cost_usd":0.012,"duration_ms":0,"seq":5,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"message","role":"assistant","content":"👀","tool_calls":[{"id":"call_0","name":"read_file","arguments":"{\"path\":\"a.txt\"}"}],"finish_reason":"tool_calls","usage":{"input_tokens":1000,"cached_input_tokens":0,"output_tokens":20,"reasoning_tokens":0,"estimated":false},"cost_usd":0.012,"seq":6,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"tool.started","call_id":"call_0","name":"read_file","arguments":{"path":"a.txt"},"subject":"a.txt","seq":7,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"tool.finished","call_id":"call_0","name":"read_file","status":"ok","summary":"1 line","telemetry":{"execution_id":"ID","tool_name":"read_file","tool_version":"0.1.0","timestamp":"TIME","latency_ms":0,"duration_ms":0,"input_tokens":4,"output_tokens":14,"tokens_estimated":true,"output_bytes":53,"success":true,"retries":0},"truncated":false,"seq":8,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"message","role":"tool","call_id":"call_0","name":"read_file","content":"<result tool=\"read_file\" untrusted>\n1\thello\n</result>","status":"ok","seq":9,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"request.started","step":2,"messages":4,"input_tokens":0,"prefix_tokens":0,"seq":10,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"text.delta","text":"It says hello.","seq":11,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"request.finished","step":2,"attempt":1,"model":"scripted-model","provider":"openai","role":"main","status":"ok","finish_reason":"stop","usage":{"input_tokens":1000,"cached_input_tokens":0,"output_tokens":20,"reasoning_tokens":0,"estimated":false},"cost_usd":0.012,"duration_ms":0,"seq":12,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"message","role":"assistant","content":"It says hello.","finish_reason":"stop","usage":{"input_tokens":1000,"cached_input_tokens":0,"output_tokens":20,"reasoning_tokens":0,"estimated":false},"cost_usd":0.012,"seq":13,"time":"TIME","session_id":"ID","run_id":"ID"}
    {"v":1,"type":"run.completed","status":"completed","exit_code":0,"reason":"done","result":"It says hello.","usage":{"input_tokens":2000,"cached_input_tokens":0,"output_tokens":40,"reasoning_tokens":0,"estimated":false},"cost_usd":0.024,"turns":1,"steps":2,"requests":2,"tool_calls":1,"denied":0,"duration_ms":0,"seq":14,"time":"TIME","session_id":"ID","run_id":"ID"}
    "#));
}
