//! `--log-wire`: the traffic, ready to become a case, without keys.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::reply::{Act, Reply};
use crate::run::Run;
use crate::server::Server;

const KEY: &str = "sk-hidden-0123456789abcdef";

const ANSWER: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello \u{e9}\"},\"finish_reason\":null}]}\n\n\
                      data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A run that logs to `wire.txt` in its workspace.
fn logged(server: &Server) -> Run {
    let model = format!(
        "api_key: {KEY}\nheaders: {{ x-team-secret: team-word-1, x-plain: plain }}\n\
         retry: {{ attempts: 2, base_delay: 1ms, max_delay: 5ms }}\n"
    );
    Run::task(server, "task").args(["--log-wire", "wire.txt"]).config("models/default.yaml", &model)
}

/// The body of a part, as a person copies it: from the line after the headers to the next head.
fn copied<'l>(log: &'l str, head: &str) -> &'l str {
    let (_, rest) = log.split_once(head).expect("the part");
    let (_, rest) = rest.split_once("\n\n").expect("headers");
    rest.split_once("\n=== ").expect("another part").0
}

#[test]
fn requests_and_streams_are_logged_as_they_went_and_without_keys() {
    let call = Reply::call("list_dir", &json!({}));
    let echo = format!("data: {{\"error\":{{\"message\":\"your key {KEY} is slow\",\"code\":500}}}}\n\n");
    let server = Server::start([
        call.header("x-request-id", "req-7").header("set-cookie", "session=cookie-word"),
        Reply::sse(echo),
        Reply::sse(ANSWER),
    ]);
    let output = logged(&server).run().success();
    let log = output.place.read("wire.txt");
    for hidden in [KEY, "team-word-1", "cookie-word", "authorization"] {
        assert!(!log.contains(hidden), "{hidden} in\n{log}");
    }
    for shown in ["=== 1 POST http://", "\nx-plain: plain\n", "\nx-request-id: req-7\n", "your key *** is slow"] {
        assert!(log.contains(shown), "{shown} not in\n{log}");
    }
    let requests = server.requests();
    for (number, request) in [1, 2, 3].into_iter().zip(&requests) {
        assert_eq!(copied(&log, &format!("=== {number} POST")), request.raw, "request {number}");
    }
    assert_eq!(copied(&log, "=== 3 HTTP 200"), ANSWER);
    assert!(log.ends_with(&format!("=== 3 ends after {} bytes\n", ANSWER.len())), "{log}");
    let mode = output.place.workspace().join("wire.txt").metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_fails_is_logged_too_and_each_run_appends() {
    let refused = Server::always(Reply::error(404, "no such thing"));
    let output = logged(&refused).run().exits(5);
    let cut = Server::always(Reply::sse(ANSWER.split_once("\n\n").expect("events").0).then(1, Act::Cut));
    logged(&cut).run();
    let first = output.place.read("wire.txt");
    assert!(copied(&first, "=== 1 HTTP 404").contains("no such thing"), "{first}");
    let gone = Server::start([]);
    let nobody = gone.url();
    drop(gone);
    let again = Run::at(&output.place).args(["run", "task", "--log-wire", "wire.txt"]);
    again.env("OPENAI_BASE_URL", nobody).run();
    let log = output.place.read("wire.txt");
    assert!(log.starts_with(&first) && log.len() > first.len(), "{log}");
}

#[test]
fn a_log_that_cannot_be_written_is_wrong_usage() {
    let server = Server::always(Reply::text("done"));
    let run = Run::task(&server, "task").args(["--log-wire", "missing/wire.txt"]);
    run.run().exits(2).stderr_has("--log-wire missing/wire.txt");
    let run = Run::task(&server, "task").args(["--log-wire", "pipe"]);
    nix::unistd::mkfifo(&run.place().workspace().join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    run.run().exits(2).stderr_has("--log-wire pipe: it is no regular file, and nobody reads it");
    assert!(server.requests().is_empty());
}
