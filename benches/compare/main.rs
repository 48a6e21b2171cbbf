//! Whole processes against a server of our own: start, memory, a long stream, a tool loop; and the bars.
//!
//! Rounds are interleaved (every program once, then again), the first is not counted, and every ratio is of medians
//! in this one run, so that a busy machine slows all alike. `benches/compare.sh [ROUNDS]` builds and runs it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what a benchmark prints is what it is for")]

mod measure;
mod server;
mod floor;
mod programs;

use std::collections::BTreeSet;
use std::process::ExitCode;

use measure::{Cost, cost};
use programs::Place;
use serde_json::Value;
use server::{Phase, Seen, Server};

/// The measurements of one program in one round.
#[derive(Clone, Default)]
struct Round {
    cost: Cost,
    first_ms: f64,
    /// From the last byte of a reply to the next request.
    steps_ms: Vec<f64>,
    connections: usize,
    /// The least part of a request that the next one kept as its prefix.
    kept: f64,
    prompt: String,
}

/// All rounds of one program in one phase.
struct Row {
    name: &'static str,
    rounds: Vec<Round>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.first().map(String::as_str) {
        Some("measure") => measure::parent(&args[1..]),
        Some("floor") => floor::main(&args[1..]),
        rounds => {
            compare(rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(7));
            ExitCode::SUCCESS
        }
    }
}

fn compare(rounds: usize) {
    let server = Server::start();
    let place = Place::new(&server.address);
    let phases =
        [(Phase::OneShot, "one-shot"), (Phase::Stream, "50,000 tokens"), (Phase::Loop, "loop of 20 calls")];
    let [one, stream, steps] = phases.map(|(phase, title)| {
        println!("\n{title}: medians of {rounds} rounds");
        let rows = measured(phase, rounds, &server, &place);
        for row in &rows {
            println!(
                "  {:<7} first request {} ms   wall {} ms   cpu {} ms   memory {} MB   step {} ms",
                row.name,
                shown(row.median(|round| round.first_ms)),
                shown(row.median(|round| round.cost.wall_ms)),
                shown(row.median(|round| round.cost.cpu_ms)),
                shown(row.median(|round| round.cost.rss_mb)),
                shown(row.step()),
            );
        }
        rows
    });
    println!("\nbars");
    let first = |row: &Row| row.median(|round| round.first_ms);
    let wall = |row: &Row| row.median(|round| round.cost.wall_ms);
    ratio("first request / aichat", &one, "aichat", 0.5, first);
    ratio("one-shot wall / aichat", &one, "aichat", 0.5, wall);
    bar("one-shot memory, MB", agent(&one).median(|round| round.cost.rss_mb), 10.0);
    ratio("stream wall / curl", &stream, "curl", 2.0, wall);
    ratio("stream CPU / floor", &stream, "floor", 3.0, |row| row.median(|round| round.cost.cpu_ms));
    ratio("loop step / floor", &steps, "floor", 1.5, Row::step);
    ratio("loop step / aichat", &steps, "aichat", 0.5, Row::step);
    #[expect(clippy::cast_precision_loss, reason = "a handful of connections, some thousand tokens")]
    {
        bar("connections of a loop", agent(&steps).median(|round| round.connections as f64), 1.0);
        bar("system prompt and tools, tokens", tokens(&agent(&one).rounds[0].prompt) as f64, 2000.0);
    }
    let rewritten = agent(&steps).rounds.iter().map(|round| 100.0 - 100.0 * round.kept).fold(0.0, f64::max);
    bar("prefix rewritten, %", rewritten, 0.0);
    bar("size of the binary, MB", programs::size_mb(), 25.0);
}

fn measured(phase: Phase, rounds: usize, server: &Server, place: &Place) -> Vec<Row> {
    let programs = place.programs(phase, &server.address);
    let mut rows: Vec<Row> = programs.iter().map(|(name, _)| Row { name, rounds: Vec::new() }).collect();
    for round in 0..=rounds {
        for (row, (_, command)) in rows.iter_mut().zip(&programs) {
            server.begin(phase);
            let cost = cost(command, place.root());
            if round > 0 {
                row.rounds.push(read(cost, &server.seen()));
            }
        }
    }
    rows
}

/// The measurements of one run, from the requests that the server saw.
fn read(cost: Cost, seen: &[Seen]) -> Round {
    #[expect(clippy::cast_precision_loss, reason = "differences of a few seconds")]
    let ms = |from: u128, to: u128| to.saturating_sub(from) as f64 / 1e6;
    let prompts: Vec<String> = seen.iter().map(|request| prompt(&request.body)).collect();
    let kept = prompts.windows(2).map(|pair| {
        let same = pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
        #[expect(clippy::cast_precision_loss, reason = "sizes of requests")]
        let part = same as f64 / pair[0].len().max(1) as f64;
        part
    });
    Round {
        cost,
        first_ms: seen.first().map_or(f64::NAN, |request| ms(cost.started, request.arrived)),
        steps_ms: seen.windows(2).map(|pair| ms(pair[0].answered, pair[1].arrived)).collect(),
        connections: seen.iter().map(|request| request.connection).collect::<BTreeSet<_>>().len(),
        kept: kept.fold(1.0, f64::min),
        prompt: prompts.into_iter().next().unwrap_or_default(),
    }
}

/// The prompt in the order in which providers cache it, tools first; the closing bracket of the messages left off.
fn prompt(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let messages = body["messages"].to_string();
    format!("{}{}", body["tools"], messages.strip_suffix(']').unwrap_or(&messages))
}

fn tokens(prompt: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(prompt).len()
}

impl Row {
    fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(figure).collect())
    }

    fn step(&self) -> f64 {
        median(self.rounds.iter().flat_map(|round| round.steps_ms.iter().copied()).collect())
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    match figures.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => figures[n / 2],
        n => f64::midpoint(figures[n / 2 - 1], figures[n / 2]),
    }
}

fn agent(rows: &[Row]) -> &Row {
    rows.iter().find(|row| row.name == "agent").expect("the agent takes part in every phase")
}

fn ratio(what: &str, rows: &[Row], other: &str, most: f64, figure: impl Fn(&Row) -> f64) {
    match rows.iter().find(|row| row.name == other) {
        Some(row) => bar(what, figure(agent(rows)) / figure(row), most),
        None => println!("  {what:<34}        {other} is not installed"),
    }
}

fn bar(what: &str, value: f64, most: f64) {
    let verdict = if value <= most { "met" } else { "MISSED" };
    println!("  {what:<34} {}   at most {most:<6} {verdict}", shown(value));
}

fn shown(figure: f64) -> String {
    if figure.is_nan() { format!("{:>9}", "-") } else { format!("{figure:>9.2}") }
}
