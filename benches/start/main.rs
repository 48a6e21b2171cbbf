//! What a start takes, in counts that do not depend on how fast or busy the machine is: instructions, page faults,
//! system calls, opened files and memory of a one-shot without calls, the instructions of a step and of a token; and the
//! size of the program.
//!
//! ```text
//! cargo bench --bench start -- [--program FILE] [--hold]
//! ```
//!
//! prints the counts; `--hold` fails where one is too high. Instructions are counted by callgrind, system calls and files
//! by strace: what is not installed is left out, and `--hold` needs both.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what a benchmark prints is what it is for")]

mod observer;
mod callgrind;
mod strace;
#[path = "../compare/measure.rs"]
#[expect(dead_code, reason = "times are not counted here")]
mod measure;
#[path = "../compare/programs.rs"]
#[expect(dead_code, reason = "only the agent is counted here")]
mod programs;
#[path = "../compare/server.rs"]
#[expect(dead_code, reason = "only how many requests there were is asked for here")]
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use programs::Place;
use server::{LOOP_STEPS, Phase, STREAM_TOKENS, Server};

/// Runs of a one-shot whose median counts: threads make small differences.
const ROUNDS: usize = 5;

/// What `--hold` allows the main process of a one-shot without calls.
const MOST_INSTRUCTIONS: f64 = 5_800_000.0;
const MOST_FILES: f64 = 12.0;
const MOST_SYSTEM_CALLS: f64 = 205.0;
const MOST_MEMORY_MB: f64 = 8.0;
/// The goal is 19.
const MOST_SIZE_MB: f64 = 22.7;
const MOST_OF_STEP: f64 = 1_750_000.0;
const MOST_OF_TOKEN: f64 = 6_000.0;

/// One count, and how high it may be.
struct Count {
    what: &'static str,
    value: Option<f64>,
    most: Option<f64>,
}

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if args.first().is_some_and(|first| first == "measure") {
        return measure::parent(&args[1..]);
    }
    let mut program = PathBuf::from(env!("CARGO_BIN_EXE_agent"));
    if let Some(at) = args.iter().position(|arg| arg == "--program") {
        let Some(path) = args.get(at + 1) else {
            eprintln!("--program needs the path of a program");
            return ExitCode::from(2);
        };
        program = path.into();
        args.drain(at..=at + 1);
    }
    let Ok(program) = program.canonicalize() else {
        eprintln!("there is no program {}", program.display());
        return ExitCode::from(2);
    };
    let subject = Subject { program, server: Server::start() };
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => report(&subject.counts(), false),
        ["--hold"] => report(&subject.counts(), true),
        _ => {
            eprintln!("usage: [--program FILE] [--hold]");
            ExitCode::from(2)
        }
    }
}

/// The program that is counted, and the server that it talks to.
struct Subject {
    program: PathBuf,
    server: Server,
}

impl Subject {
    fn counts(&self) -> Vec<Count> {
        let one = Phase::OneShot;
        let costs: Vec<_> = (0..ROUNDS).map(|_| self.in_place(one, measure::cost)).collect();
        let traces: Option<Vec<_>> = (0..ROUNDS).map(|_| self.in_place(one, strace::trace)).collect();
        let instructions = |phase| {
            let profile = |command: &Command, dir: &Path| callgrind::profile(command, phase, dir);
            self.in_place(phase, profile).map(|profile| profile.instructions)
        };
        let start = median((0..ROUNDS).map_while(|_| instructions(one)).collect());
        let beyond_start = |phase, parts: usize| {
            let parts = parts as f64;
            Some((instructions(phase)? - start?) / parts)
        };
        let of_traces = |count: fn(&strace::Trace) -> f64| median(traces.iter().flatten().map(count).collect());
        let of_costs = |figure: fn(&measure::Cost) -> f64| median(costs.iter().map(figure).collect());
        let size = std::fs::metadata(&self.program).ok().map(|file| file.len() as f64 / 1e6);
        let count = |what, value, most| Count { what, value, most };
        vec![
            count("instructions", start, Some(MOST_INSTRUCTIONS)),
            count("system calls", of_traces(|trace| trace.system_calls), Some(MOST_SYSTEM_CALLS)),
            count("files opened", of_traces(|trace| trace.files), Some(MOST_FILES)),
            count("processes started", of_traces(|trace| trace.processes), Some(0.0)),
            count("peak memory, MB", of_costs(|cost| cost.rss_mb), Some(MOST_MEMORY_MB)),
            count("size of the program, MB", size, Some(MOST_SIZE_MB)),
            count("page faults", of_costs(|cost| cost.faults), None),
            count(
                "instructions of a step, main process",
                beyond_start(Phase::Loop, LOOP_STEPS),
                Some(MOST_OF_STEP),
            ),
            count("instructions of a token", beyond_start(Phase::Stream, STREAM_TOKENS), Some(MOST_OF_TOKEN)),
        ]
    }

    /// Runs the program once, in a fresh home and workspace.
    fn in_place<T>(&self, phase: Phase, run: impl FnOnce(&Command, &Path) -> T) -> T {
        let place = Place::new(&self.server.address);
        self.server.begin(phase);
        // The path of the program itself has a length, too.
        let program = place.root().join("agent");
        std::fs::copy(&self.program, &program).expect("the temporary directory has room for the program");
        let result = run(&place.agent(&program, phase, &self.server.address), place.root());
        let requests = self.server.seen().len();
        assert!(requests <= LOOP_STEPS + 1, "the run made {requests} requests");
        result
    }
}

fn report(counts: &[Count], hold: bool) -> ExitCode {
    println!("one-shot without calls: medians of {ROUNDS} runs");
    let mut missed = Vec::new();
    for Count { what, value, most } in counts {
        let value_shown = value.map_or_else(|| "not counted".to_owned(), shown);
        let verdict = match (value, most) {
            (Some(value), Some(most)) if value <= most => format!("at most {:<10} met", shown(*most)),
            (_, Some(most)) => {
                missed.push(format!("{what}: {value_shown}, at most {} allowed", shown(*most)));
                format!("at most {:<10} MISSED", shown(*most))
            }
            (_, None) => String::new(),
        };
        println!("{}", format!("  {what:<38} {value_shown:>12}   {verdict}").trim_end());
    }
    if missed.is_empty() || !hold {
        return ExitCode::SUCCESS;
    }
    // Once more at the end: of a failed part, the last lines are shown.
    eprintln!("too high: {}", missed.join("; "));
    ExitCode::FAILURE
}

/// Whole numbers, with one decimal where they are small.
fn shown(figure: f64) -> String {
    if figure.fract() == 0.0 || figure >= 1000.0 { format!("{figure:.0}") } else { format!("{figure:.1}") }
}

fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}
