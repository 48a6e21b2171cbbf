//! Prints the functions that `PROGRAM` executes in a one-shot, in a loop of commands and in a chat, as its symbol table
//! spells them: benches/dist-cc lays them side by side.
//!
//! Uses the standard library alone, so that `rustc` compiles it without cargo.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what it prints is what it is for")]

mod observer;
mod callgrind;
mod chat;
#[path = "../compare/programs.rs"]
#[allow(dead_code, reason = "only the agent runs here")]
mod programs;
#[path = "../compare/server.rs"]
#[allow(dead_code, reason = "what the server saw is not asked for")]
mod server;

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;

use programs::Place;
use server::{Phase, Server};

fn main() -> ExitCode {
    let program = std::env::args_os().nth(1).and_then(|program| PathBuf::from(program).canonicalize().ok());
    let Some(program) = program else {
        eprintln!("usage: PROGRAM");
        return ExitCode::from(2);
    };
    let server = Server::start();
    let mut functions = Vec::new();
    for phase in [Phase::OneShot, Phase::Loop] {
        let place = Place::new(&server.address);
        server.begin(phase);
        let command = place.agent(&program, phase, &server.address);
        let Some(profile) = callgrind::profile(&command, phase, place.root()) else {
            eprintln!("valgrind is not installed");
            return ExitCode::FAILURE;
        };
        functions.extend(profile.functions);
    }
    let place = Place::new(&server.address);
    server.begin(Phase::OneShot);
    match chat::functions(&place.agent_in_chat(&program, &server.address), place.root()) {
        Some(of_chat) => functions.extend(of_chat),
        None => eprintln!("script (util-linux) is not installed: the functions of a chat stay where they are."),
    }
    let mut seen = HashSet::new();
    for name in functions {
        if seen.insert(name.clone()) {
            println!("{name}");
        }
    }
    ExitCode::SUCCESS
}
