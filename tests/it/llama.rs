//! Long conversations with llama.cpp's own server and a tiny model of random weights: whatever happens to a session,
//! a short message afterwards is answered.
//!
//! `.ci/llama` starts the server and names its base URL in `AGENT_TEST_LLAMA`; without it these tests are skipped.

use std::io::Write;
use std::sync::Arc;

use nix::sys::signal::Signal;

use crate::output::Output;
use crate::run::{Place, Run};

const TURNS: usize = 30;

/// The window of the server, in tokens.
const REAL: usize = 16384;

/// The possible ends of a run that did not fail: answered, the answer cut by a limit, a call denied.
const FINE: [i32; 3] = [0, 8, 7];

#[test]
fn nothing_kills_a_session_in_a_window_of_4k() {
    drive(4096);
}

#[test]
fn nothing_kills_a_session_in_a_window_of_8k() {
    drive(8192);
}

#[test]
fn nothing_kills_a_session_in_a_window_of_16k() {
    drive(REAL);
}

#[test]
fn nothing_kills_a_session_whose_window_is_smaller_than_declared() {
    drive(REAL * 2);
}

/// Thirty turns of every kind; after each of them the session must still answer.
fn drive(window: usize) {
    let Ok(url) = std::env::var("AGENT_TEST_LLAMA") else {
        // The handle, because what `eprintln!` writes is shown only when a test fails.
        let _ = writeln!(std::io::stderr(), "skipped: AGENT_TEST_LLAMA names no server (.ci/llama starts one)");
        return;
    };
    let session = Session::start(&url, window);
    for turn in 0..TURNS {
        let (what, output) = match turn % 6 {
            0 => ("a question", session.run("noise", &["What is next?"])),
            1 => ("a file of an eighth of the window", session.attach("noise", window / 8)),
            2 => ("an answer that runs on", session.run("runaway", &["Go on."])),
            3 => ("a file of twice the window", session.attach("noise", window * 2)),
            4 => ("an interrupt", session.interrupt()),
            _ => ("calls of tools", session.run("caller", &["Look around."])),
        };
        assert!(output.code != 101 && !output.stderr.contains("panicked"), "{what}\n{}", output.shown());
        let hello = session.run("noise", &["hello"]);
        let line = format!("window {window}, turn {turn}: {what} ended with {}, hello with", output.code);
        let _ = writeln!(std::io::stderr(), "{line} {}", hello.code);
        assert!(FINE.contains(&hello.code), "{line} {}\n{}\n{}", hello.code, output.stderr, hello.stderr);
    }
}

struct Session {
    place: Arc<Place>,
}

impl Session {
    /// Tokens 2 and 3 of the model end an answer and begin a call (tests/llama/model.py).
    fn start(url: &str, window: usize) -> Self {
        let place = Place::new();
        let first = [
            ("noise", "logit_bias: [[2, 5], [3, false]]"),
            ("caller", "logit_bias: [[2, 4], [3, 5]]"),
            ("runaway", &format!("ignore_eos: true, max_tokens: {}, logit_bias: [[3, false]]", window / 2)),
        ]
        .into_iter()
        .fold(Run::at(&place), |run, (name, bias)| {
            let model = format!(
                "provider: openai\nbase_url: {url}\nmodel: noise\ncontext_window: {window}\n\
                 retry: {{ attempts: 5, base_delay: 1ms, max_delay: 5ms }}\n\
                 extra_body: {{ top_k: 0, top_p: 1.0, min_p: 0.0, {bias} }}\n"
            );
            run.config(&format!("models/{name}.yaml"), &model)
        });
        let hello = first.args(["run", "-m", "noise", "hello"]).run();
        assert!(FINE.contains(&hello.code), "window {window}: a first hello ends with {}", hello.shown());
        Self { place }
    }

    fn next(&self, model: &str) -> Run {
        Run::at(&self.place).args(["run", "--continue", "--max-turns", "4", "-m", model])
    }

    fn run(&self, model: &str, args: &[&str]) -> Output {
        self.next(model).args(args.iter().copied()).run()
    }

    /// With a file of about so many tokens.
    fn attach(&self, model: &str, tokens: usize) -> Output {
        let text = "The budget is what one request may hold. ".repeat(tokens / 10);
        self.next(model).args(["-f", "text.txt", "Read this."]).file("text.txt", text).run()
    }

    /// In the middle of an answer.
    fn interrupt(&self) -> Output {
        let running = self.next("runaway").args(["-o", "jsonl", "Go on."]).spawn();
        running.wait_stdout("\"text.delta\"");
        running.signal_if_alive(Signal::SIGINT);
        running.wait()
    }
}
