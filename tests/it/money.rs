//! Models that cost more from a size on: the budget stops below it, and who crosses it is told before.

use serde_json::Value;

use crate::context::{compressions, read, tokens, with_files};
use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// Above 10,000 tokens everything costs five times as much.
const MODEL: &str = "context_window: 32000\nretry: { attempts: 2, base_delay: 1ms }\n\
    prices: { input: 0.1, output: 0.5, tiers: [ { above: 10000, input: 0.5, output: 2.5 } ] }\n";

const CLIFF: u64 = 10_000;

/// A server that reads so many files, and then answers.
fn reads(files: usize) -> Server {
    Server::answering(move |_, index| if index < files { read(index) } else { Reply::text("Fini.") })
}

fn run(server: &Server, settings: &str) -> Run {
    let run = with_files(Run::task(server, "Read them.")).config("agent.yaml", settings);
    run.config("models/default.yaml", MODEL).args(["-o", "jsonl"])
}

fn warnings(output: &Output) -> Vec<String> {
    let words = |event: &&Value| event["message"].as_str().unwrap_or_default().to_owned();
    output.events().of("warning").iter().map(words).collect()
}

#[test]
fn a_budget_stops_below_the_size_from_which_a_model_costs_more() {
    let server = reads(20);
    let output = run(&server, "").run().success();
    let budget = output.events().one("run.started")["context"]["budget"].as_u64().expect("a number");
    assert!((CLIFF * 9 / 10..CLIFF).contains(&budget), "{budget}");
    for request in server.requests() {
        assert!(tokens(&request) <= CLIFF, "{}", tokens(&request));
    }
    assert!(!compressions(&output).is_empty());
    assert_eq!(warnings(&output), Vec::<String>::new());
}

#[test]
fn who_allows_to_cross_it_is_told_before_with_both_prices_and_then_stays_above() {
    let server = reads(14);
    let output = run(&server, "context: { cross_price_tier: true }\n").run().success();
    assert!(server.requests().last().is_some_and(|request| tokens(request) > CLIFF));
    let told = warnings(&output);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("above 10000") && told[0].contains("$0.5 instead of $0.1"), "{told:?}");
    let events = output.events().0;
    let warned = events.iter().position(|event| event["type"] == "warning").expect("told");
    let dear = |event: &Value| event["usage"]["input_tokens"].as_u64() > Some(CLIFF);
    let paid =
        events.iter().position(|event| event["type"] == "request.finished" && dear(event)).expect("crossed");
    assert!(warned < paid, "told before it is sent");
    // A session that is above already is not compressed for it.
    let server = Server::always(Reply::text("More."));
    let again = Run::at(&output.place).args(["run", "--continue", "more", "-o", "jsonl"]).server(&server);
    let again = again.config("agent.yaml", "").run().success();
    assert_eq!((compressions(&again).len(), warnings(&again).len()), (0, 1), "{}", again.shown());
    assert!(tokens(&server.only_request()) > CLIFF);
}

#[test]
fn a_message_that_is_larger_than_the_tier_is_sent_whole_and_told() {
    let server = Server::always(Reply::text("Read."));
    let file = "A line that is read as it is.\n".repeat(1500);
    let output = run(&server, "").file("big.txt", &file).args(["-f", "big.txt"]).run().success();
    assert!(server.only_request().raw.matches("A line that is read as it is.").count() == 1500);
    assert_eq!(warnings(&output).len(), 1, "{}", output.shown());
}
