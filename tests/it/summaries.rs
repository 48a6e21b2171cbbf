//! Summaries of older turns: how they are requested, when they are rejected, and what they contain.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::context::{
    BUDGET, TASK, compressions, read, run, says, summary, talks_at_length, tokens, wants_summary,
};
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Server, assert_answered_once, assert_append_only};

#[test]
fn old_turns_become_a_summary_that_is_asked_over_the_same_prefix_and_brought_up_to_date() {
    let server = talks_at_length(25, |asked| Reply::text(&summary(&format!("round-{asked}"))));
    let output = run(&server, TASK).args(["-o", "jsonl"]).run().success();
    let requests = server.requests();
    let asking: Vec<usize> = (0..requests.len()).filter(|index| wants_summary(&requests[*index])).collect();
    assert_eq!(asking.len(), 2, "{asking:?}");
    for index in &asking {
        let (before, asking, after) = (&requests[index - 1], &requests[*index], &requests[index + 1]);
        assert_append_only(&[before.clone(), asking.clone()]);
        assert_eq!(asking.body["tool_choice"], "none");
        assert!(!after.raw.contains("about to be shortened"), "asking is no part of the conversation");
        assert!(tokens(after) <= BUDGET * 6 / 10, "{}", tokens(after));
        assert_answered_once(after);
    }
    let second = &requests[asking[1]];
    assert!(second.user().contains("already begins with such a summary"), "{}", second.user());
    let last = requests.last().expect("requests");
    let summaries: Vec<&str> = last
        .messages()
        .iter()
        .filter_map(|message| message["content"].as_str())
        .filter(|text| text.contains("## Goal"))
        .collect();
    assert_eq!(summaries.len(), 1, "one summary stands for all: {summaries:?}");
    assert!(!summaries[0].contains("round-0"), "{}", summaries[0]);
    assert!(says(last, TASK), "the request in hand is verbatim");
    let done = compressions(&output);
    assert!(
        done[0]["summarized"].as_u64() > Some(0) && done[0]["usage"]["output_tokens"].as_u64() > Some(0),
        "{done:?}"
    );
    let shown = output.events().text("text.delta");
    assert!(!shown.contains("## Goal"), "what the model writes for itself is not shown");
}

#[test]
fn a_summary_is_asked_over_less_when_the_last_step_brought_in_too_much() {
    let asked = AtomicBool::new(false);
    let server = Server::answering(move |request, index| {
        if wants_summary(request) {
            asked.store(true, Ordering::SeqCst);
            return Reply::text(&summary("short"));
        }
        let words = format!("step-{index} {}", "I consider what this line may mean here. ".repeat(120));
        let call = |number: usize| match index {
            7 => ("read_file", json!({"path": format!("f{number}.txt")}).to_string()),
            _ => ("list_dir", json!({"path": ".", "depth": index + 1}).to_string()),
        };
        match index {
            _ if asked.load(Ordering::SeqCst) => Reply::text("Fini."),
            // Most of the budget in words, and then half of it in results.
            0..7 => Reply::text_and_calls(&words, &[call(0)]),
            _ => Reply::text_and_calls(&words, &(0..8).map(call).collect::<Vec<_>>()),
        }
    });
    let output = run(&server, TASK).args(["-o", "jsonl"]).run().success();
    assert!(compressions(&output)[0]["tokens_before"].as_u64() > Some(BUDGET));
    let requests = server.requests();
    assert_eq!(requests.iter().filter(|request| wants_summary(request)).count(), 1);
    for request in &requests {
        assert!(tokens(request) <= BUDGET, "{} tokens", tokens(request));
    }
}

#[test]
fn a_summary_that_fails_or_lies_is_asked_once_more_and_then_made_in_code() {
    let incomplete = "## Goal\n- only this\n".to_owned();
    for (fault, reply, times) in [
        ("empty", Reply::text(""), 2),
        ("missing", Reply::text(&incomplete), 2),
        ("larger", Reply::text(&summary(&"long ".repeat(2000))), 2),
        ("calls", read(1), 2),
        // Once without tools in between.
        ("refused", Reply::error(400, "not like this"), 3),
        // In three attempts; a shorter one would not help.
        ("broken", Reply::error(500, "out of order"), 3),
        ("too long", Reply::error(400, "prompt is too long: 9000 tokens > 8000 maximum"), 2),
    ] {
        let server = talks_at_length(11, move |_| reply.clone());
        let output = run(&server, TASK).args(["-o", "jsonl"]).run();
        assert_eq!(output.code, 0, "{fault}\n{}", output.shown());
        let requests = server.requests();
        let asked = requests.iter().filter(|request| wants_summary(request)).count();
        assert_eq!((compressions(&output).len(), asked), (1, times), "{fault}: asked once more, and then no more");
        let last = requests.last().expect("requests");
        let made =
            last.messages().iter().find_map(|m| m["content"].as_str().filter(|text| text.contains("## Goal")));
        let made = made.unwrap_or_else(|| panic!("{fault}: no summary in {}", last.raw));
        assert!(
            made.contains("- step-") && made.contains(TASK),
            "{fault}: the decisions are the model's own words: {made}"
        );
        assert!(tokens(last) <= BUDGET, "{fault}");
        assert_answered_once(last);
        for warning in output.events().of("warning") {
            let told = warning["message"].as_str().unwrap_or_default();
            assert!(told.contains("the model gave no usable summary ("), "{fault}: {told}");
        }
        assert!(output.stdout.contains("the model gave no usable summary ("), "{fault}\n{}", output.shown());
    }
}

#[test]
fn what_the_person_said_stays_verbatim_through_a_summary() {
    let server = talks_at_length(7, |_| Reply::text(&summary("short")));
    let first = run(&server, TASK).run().success();
    let server = talks_at_length(8, |_| Reply::text(&summary("short")));
    let second = Run::at(&first.place).args(["run", "--continue", "Now the second part."]).server(&server);
    second.run().success();
    let last = server.requests().pop().expect("requests");
    let quoted =
        last.messages().iter().filter_map(|m| m["content"].as_str()).find(|text| text.contains("## Goal"));
    let quoted = quoted.expect("a summary");
    assert!(quoted.contains(&format!("> {TASK}\n")), "{quoted}");
    assert!(says(&last, "Now the second part."), "{}", last.raw);
}

#[test]
fn a_summary_that_fails_for_good_keeps_what_the_earlier_one_said() {
    for (fault, reply) in [("503", Reply::error(503, "overloaded")), ("garbage", Reply::text("no, thanks"))] {
        let server = talks_at_length(30, move |asked| match asked {
            0 => Reply::text(&summary("kept")),
            _ => reply.clone(),
        });
        let output = run(&server, TASK).args(["-o", "jsonl"]).run().success();
        let done = compressions(&output);
        assert!(done.len() >= 2, "{fault}: {done:?}");
        let last = server.requests().pop().expect("requests");
        let standing = last.messages().iter().filter_map(|m| m["content"].as_str());
        let standing = standing.filter(|text| text.contains("## Goal")).collect::<Vec<_>>();
        assert_eq!(standing.len(), 1, "{fault}");
        for part in ["Goal", "Constraints", "Decisions", "Done", "Do not do again", "Next", "Open errors"] {
            assert!(
                standing[0].contains(&format!("- kept {}\n", part.to_lowercase())),
                "{fault}: {}",
                standing[0]
            );
        }
        assert!(standing[0].contains("- step-1"), "{fault}: what came since is added: {}", standing[0]);
    }
}

#[test]
fn after_a_failed_summary_none_is_asked_for_until_the_conversation_has_grown_by_a_fifth() {
    let server = talks_at_length(34, |_| Reply::error(503, "overloaded"));
    let retry = "retry: { attempts: 5, base_delay: 1ms, max_delay: 5ms }\n";
    let small = "context: { budget: 8000 }\n";
    let output = run(&server, TASK).config("models/default.yaml", retry).config("agent.yaml", small);
    let output = output.args(["-o", "jsonl"]).run().success();
    let requests = server.requests();
    let asked = requests.iter().filter(|request| wants_summary(request)).count();
    let mut in_a_row = requests.chunk_by(|a, b| wants_summary(a) == wants_summary(b));
    assert!(in_a_row.all(|row| !wants_summary(&row[0]) || row.len() == 3), "two retries");
    let done = compressions(&output).len();
    assert!(asked / 3 < done && asked < requests.len() / 2, "asked {asked} times in {done} compressions");
    let warnings = output.events().of("warning").len();
    assert_eq!(warnings, asked / 3, "told each time that one failed: {}", output.shown());
}
