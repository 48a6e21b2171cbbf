//! Whole processes against our own server: startup, memory, a long stream, a tool loop, a chat; and the bars.
//!
//! Rounds are interleaved (every program once, then again), the first is not counted, and every ratio is of medians
//! in this one run, so that a busy machine slows all alike. `benches/compare.sh [ROUNDS]` builds the program and runs
//! this with it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what a benchmark prints is what it is for")]

mod measure;
mod server;
mod floor;
mod programs;
mod chat;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use measure::{Cost, cost};
use programs::Place;
use serde_json::Value;
use server::{Phase, Seen, Server};

const ROUNDS: usize = 7;
/// Keys whose echo is measured.
const KEYS: usize = 60;

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

impl Round {
    fn connections(&self) -> f64 {
        self.connections as f64
    }
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
        program => {
            let program = program.map_or_else(|| env!("CARGO_BIN_EXE_agent").into(), PathBuf::from);
            let rounds = args.get(1).map(|rounds| rounds.parse());
            let (Ok(program), None | Some(Ok(_))) = (program.canonicalize(), &rounds) else {
                eprintln!("usage: [PROGRAM [ROUNDS]]");
                return ExitCode::from(2);
            };
            compare(&program, rounds.and_then(Result::ok).unwrap_or(ROUNDS));
            ExitCode::SUCCESS
        }
    }
}

fn compare(program: &Path, rounds: usize) {
    let server = Server::start();
    let place = Place::new(&server.address);
    let phases = [
        (Phase::OneShot, "A one-shot"),
        (Phase::Stream, "A reply of 50,000 tokens"),
        (Phase::Loop, "A loop of 20 commands"),
        (Phase::BusyLoop, "A loop of 20 commands while every core is busy"),
    ];
    println!("Medians of {rounds} rounds.");
    let [one, stream, steps, busy] = phases.map(|(phase, title)| {
        let load = (phase == Phase::BusyLoop).then(Load::start);
        let rows = measured(program, phase, rounds, &server, &place);
        drop(load);
        print(title, &rows);
        rows
    });
    let chats = chats(program, rounds, &server, &place);
    server.begin(Phase::Paced);
    let echoes = chat::echoes(&place.agent_in_chat(program, &server.address), KEYS);
    println!("\n## Bars\n\n| | figure | bar | |\n|---|--:|--:|---|");
    let first = |row: &Row| row.median(|round| round.first_ms);
    let wall = |row: &Row| row.median(|round| round.cost.wall_ms);
    ratio("first request / aichat", &one, "aichat", 0.45, first);
    ratio("one-shot wall / aichat", &one, "aichat", 0.45, wall);
    bar("one-shot memory, MB", agent(&one).median(|round| round.cost.rss_mb), 8.0);
    ratio("loop step / floor", &steps, "floor", 1.5, Row::step);
    ratio("loop step, busy cores / aichat", &busy, "aichat", 0.6, Row::step);
    bar("first command beyond later ones, ms", agent(&steps).first_command(), 3.0);
    ratio("stream wall / curl", &stream, "curl", 1.5, wall);
    ratio("stream CPU / floor", &stream, "floor", 2.5, |row| row.median(|round| round.cost.cpu_ms));
    bar("size of the binary, MB", programs::size_mb(program), 18.0);
    ratio("chat to its prompt / aichat", &chats, "aichat", 0.6, wall);
    println!(
        "| a key's echo while 500 tokens a second stream, median, ms | {} | | |",
        shown(median(echoes.clone()))
    );
    bar("the slowest of them, ms", echoes.into_iter().fold(0.0, f64::max), 16.0);
    bar("connections of a loop", agent(&steps).median(Round::connections), 1.0);
    bar("system prompt and tools, tokens", tokens(&agent(&one).rounds[0].prompt), 2000.0);
    let rewritten = agent(&steps).rounds.iter().map(|round| 100.0 - 100.0 * round.kept).fold(0.0, f64::max);
    bar("prefix rewritten, %", rewritten, 0.0);
}

/// Prints the medians of one phase as a table in Markdown.
fn print(title: &str, rows: &[Row]) {
    println!(
        "\n## {title}\n\n| | first request, ms | wall, ms | CPU, ms | memory, MB | page faults | step, ms | connections |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    for row in rows {
        let figures = [
            row.median(|round| round.first_ms),
            row.median(|round| round.cost.wall_ms),
            row.median(|round| round.cost.cpu_ms),
            row.median(|round| round.cost.rss_mb),
            row.median(|round| round.cost.faults),
            row.step(),
            row.median(Round::connections),
        ];
        println!("| {} | {} |", row.name, figures.map(shown).join(" | "));
    }
}

/// Another thread at full load on each core, as far as the scheduler can tell; it ends with this value.
struct Load {
    over: Arc<AtomicBool>,
}

impl Load {
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self { over }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn measured(program: &Path, phase: Phase, rounds: usize, server: &Server, place: &Place) -> Vec<Row> {
    let programs = place.programs(program, phase, &server.address);
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

fn chats(program: &Path, rounds: usize, server: &Server, place: &Place) -> Vec<Row> {
    let programs = place.chats(program, &server.address);
    let mut rows: Vec<Row> = programs.iter().map(|(name, _)| Row { name, rounds: Vec::new() }).collect();
    for round in 0..=rounds {
        for (row, (_, command)) in rows.iter_mut().zip(&programs) {
            let wall_ms = chat::to_prompt(command);
            if round > 0 {
                row.rounds.push(Round { cost: Cost { wall_ms, ..Cost::default() }, ..Round::default() });
            }
        }
    }
    println!("\n## Chat to its prompt\n\n| | ms |\n|---|--:|");
    for row in &rows {
        println!("| {} | {} |", row.name, shown(row.median(|round| round.cost.wall_ms)));
    }
    rows
}

/// The measurements of one run, from the requests that the server saw.
fn read(cost: Cost, seen: &[Seen]) -> Round {
    let ms = |from: u128, to: u128| to.saturating_sub(from) as f64 / 1e6;
    let prompts: Vec<String> = seen.iter().map(|request| prompt(&request.body)).collect();
    let kept = prompts.windows(2).map(|pair| {
        let same = pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
        same as f64 / pair[0].len().max(1) as f64
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

fn tokens(prompt: &str) -> f64 {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(prompt).len() as f64
}

impl Row {
    fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(figure).collect())
    }

    fn step(&self) -> f64 {
        median(self.rounds.iter().flat_map(|round| round.steps_ms.iter().copied()).collect())
    }

    /// The additional time of the first step of a loop.
    fn first_command(&self) -> f64 {
        median(self.rounds.iter().filter_map(|round| round.steps_ms.first().copied()).collect()) - self.step()
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
        None => println!("| {what} | {other} is not installed | {most} | |"),
    }
}

fn bar(what: &str, value: f64, most: f64) {
    let verdict = if value <= most { "met" } else { "MISSED" };
    println!("| {what} | {} | {most} | {verdict} |", shown(value));
}

fn shown(figure: f64) -> String {
    match figure {
        figure if figure.is_nan() => "–".to_owned(),
        figure if figure >= 100.0 || figure.fract() == 0.0 => format!("{figure:.0}"),
        figure if figure >= 10.0 => format!("{figure:.1}"),
        figure => format!("{figure:.2}"),
    }
}
