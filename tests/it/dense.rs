//! Results that are denser than prose (noise, identifiers, tables of numbers): whatever the window, the model gets to
//! read each of them before it is shortened to a note.

use agent::facade::base::tokens::count_tokens;
use serde_json::json;

use crate::context::{summary, wants_summary};
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server, assert_answered_once};

/// The fewest tokens of a result that the model has not read.
const LEAST: u64 = 300;

/// Random words of these letters, a line each.
fn noise(seed: u64, letters: &[u8], width: usize, bytes: usize) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut line = || -> String {
        (0..width).map(|_| char::from(letters[random.usize(..letters.len())])).chain(['\n']).collect()
    };
    (0..bytes / (width + 1)).map(|_| line()).collect()
}

/// A server that counts as models of OpenAI do, and asks for so many files at a time.
fn reads(calls: usize, steps: usize) -> Server {
    Server::answering(move |request, index| {
        let read =
            |call: usize| ("read_file", json!({"path": format!("f{}.txt", index * calls + call)}).to_string());
        let reply = match index {
            _ if wants_summary(request) => Reply::text(&summary("short")),
            _ if index < steps => Reply::calls(&(0..calls).map(read).collect::<Vec<_>>()),
            _ => Reply::text("Done."),
        };
        reply.counted(count_tokens(&request.raw))
    })
}

/// The tokens of the newest results in a request.
fn newest(request: &Request, calls: usize) -> Vec<u64> {
    let results = request.tool_results();
    results[results.len() - calls..].iter().map(|(_, text)| count_tokens(text)).collect()
}

#[test]
fn no_dense_result_is_hidden_before_the_model_has_read_it() {
    const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const IDS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    for (window, calls, letters, width) in [
        (200_000, 4, BASE64, 76),
        (200_000, 4, BASE64, 20_000),
        (65_536, 2, IDS, 12),
        (32_768, 2, IDS, 12),
        (16_384, 8, IDS, 12),
        (16_384, 2, BASE64, 76),
    ] {
        let server = reads(calls, 4);
        let run = Run::task(&server, "Read them all.")
            .config("models/default.yaml", &format!("context_window: {window}\n"))
            .args(["--set", "agents.default.profile=concise"]);
        let files = (0..calls * 4)
            .fold(run, |run, file| run.file(&format!("f{file}.txt"), noise(file as u64, letters, width, 60_000)));
        files.run().success().stdout_is("Done.\n");
        let requests: Vec<Request> =
            server.requests().into_iter().filter(|request| !wants_summary(request)).collect();
        for request in &requests[1..] {
            assert_answered_once(request);
            let shown = newest(request, calls);
            assert!(shown.iter().all(|tokens| *tokens >= LEAST), "{window}, {calls} of {width}: {shown:?}");
            let size = count_tokens(&request.raw);
            assert!(size <= window, "{window}, {calls} of {width}: {size}");
        }
    }
}

/// A run in a small window whose model asks twice for so many files at once.
fn reads_too_many(window: usize, calls: usize) -> Vec<Request> {
    let server = reads(calls, 2);
    let run = Run::task(&server, "Read them all.")
        .config("models/default.yaml", &format!("context_window: {window}\n"))
        .args(["--set", "agents.default.profile=concise"]);
    let text = |file: usize| noise(file as u64, b"0123456789abcdef", 64, 9000);
    let files = (0..calls * 2).fold(run, |run, file| run.file(&format!("f{file}.txt"), text(file)));
    files.run().success().stdout_is("Done.\n");
    server.requests().into_iter().filter(|request| !wants_summary(request)).collect()
}

#[test]
fn calls_whose_results_have_no_room_are_not_run() {
    for (window, calls) in [(4096, 8), (8192, 40)] {
        for request in &reads_too_many(window, calls)[1..] {
            assert_answered_once(request);
            let results = request.tool_results();
            let newest = results[results.len() - calls..].iter().map(|(_, text)| *text);
            let (refused, read): (Vec<&str>, Vec<&str>) =
                newest.partition(|text| text.contains("Not run: too many calls in one reply: only the first "));
            assert!(!read.is_empty() && !refused.is_empty(), "{window}: {} were read", read.len());
            for text in read {
                let tokens = count_tokens(text);
                assert!(tokens >= 50 && text.contains("recall id="), "{window}: {tokens} of {text}");
            }
        }
    }
}

/// Their calls alone are more than the window holds beside a summary.
#[test]
fn a_reply_of_more_calls_than_a_window_holds_does_not_end_the_session() {
    for request in &reads_too_many(4096, 24) {
        assert_answered_once(request);
    }
}
