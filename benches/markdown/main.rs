//! What it costs to draw Markdown as it streams, against writing the same text as it came.
//!
//! ```text
//! cargo bench --bench markdown -- [--hold]
//! ```
//!
//! A megabyte comes in pieces of 20 bytes, which are joined to frames, each one write to a pseudo-terminal whose other
//! end is read. The processor's time of the writing thread counts, the system's part included. A frame of the program
//! lasts 16 ms: 160 bytes are what a model of 500 tokens a second sends in it, 1 and 4 KiB what reads of a fast network
//! bring. Raw text is made visible and written. Markdown is pushed, and its last lines are erased and drawn again with
//! every frame.
//!
//! `--hold` fails where Markdown costs more than three times as much as raw text at frames of 1 KiB, or where text twice
//! as long takes more than three times as long. Syntax colours are left out of that, and reported.

#![expect(clippy::print_stdout, reason = "what a benchmark prints is what it is for")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use agent::facade::base::text;
use agent::facade::screen::ink::{Line, Style, Theme};
use agent::facade::screen::markdown::Printer;
use nix::pty::openpty;
use nix::sys::resource::{UsageWho, getrusage};

const ANSWER: &str = include_str!("answer.md");
const BYTES: usize = 1_000_000;
const PIECE: usize = 20;
const FRAMES: [usize; 3] = [160, 1024, 4096];
/// The frame at which the bound holds.
const HELD_FRAME: usize = 1024;
const MOST_TIMES_RAW: f64 = 3.0;
const MOST_TIMES_HALF: f64 = 3.0;
const WIDTH: usize = 100;
/// Lines of the unfinished block that are drawn.
const ROWS: usize = 10;
const ROUNDS: usize = 5;
const STYLE: Style = Style { colours: true, theme: Theme::Dark, links: true, spoken: false };

fn main() -> ExitCode {
    let is_held = std::env::args().any(|argument| argument == "--hold");
    let plain = text_of(ANSWER, BYTES);
    let coloured = text_of(&ANSWER.replacen("```\n", "```rust\n", 1), BYTES);
    let mut broken = Vec::new();
    println!("1 MB in pieces of {PIECE} bytes; milliseconds of the processor, the best of {ROUNDS}");
    println!("{:>8} {:>8} {:>10} {:>8} {:>22}", "frame", "raw", "Markdown", "times", "with syntax colours");
    for frame in FRAMES {
        let (raw, drawn) = (best(|| raw(&plain, frame)), best(|| markdown(&plain, frame)));
        let colours = best(|| markdown(&coloured, frame));
        let times = drawn / raw;
        println!("{frame:>8} {raw:>8.1} {drawn:>10.1} {times:>8.2} {colours:>22.1}");
        if frame == HELD_FRAME && times > MOST_TIMES_RAW {
            broken.push(format!("Markdown costs {times:.2} times as much as raw text, at most {MOST_TIMES_RAW}"));
        }
    }
    let (half, whole) = (best(|| pushed(&text_of(ANSWER, BYTES / 2))), best(|| pushed(&plain)));
    println!("pushed piece by piece, nothing drawn: {half:.1} ms for half of it, {whole:.1} ms for all");
    let long: String = plain.lines().map(str::trim).filter(|line| line.starts_with(char::is_alphabetic)).collect();
    let (half_long, long) = (
        best(|| markdown(&long[..long.floor_char_boundary(long.len() / 2)], 1024)),
        best(|| markdown(&long, 1024)),
    );
    println!("one paragraph: {half_long:.1} ms for half of it, {long:.1} ms for all");
    for (name, half, whole) in [("pieces", half, whole), ("a paragraph", half_long, long)] {
        if whole > half * MOST_TIMES_HALF {
            broken.push(format!("{name}: twice the text takes {:.1} times as long", whole / half));
        }
    }
    for line in &broken {
        println!("{line}");
    }
    if is_held && !broken.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn text_of(page: &str, bytes: usize) -> String {
    page.repeat(bytes.div_ceil(page.len()))
}

/// The pieces that a model sends, joined to frames.
fn frames(text: &str, frame: usize) -> impl Iterator<Item = Vec<&str>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut pieces = Vec::new();
        let mut taken = 0;
        while taken < frame && !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE));
            pieces.push(piece);
            taken += piece.len();
            rest = after;
        }
        (!pieces.is_empty()).then_some(pieces)
    })
}

fn raw(text: &str, frame: usize) {
    on_terminal(|terminal| {
        for pieces in frames(text, frame) {
            let mut written = String::new();
            for piece in pieces {
                written += &text::make_visible(piece);
            }
            terminal.write_all(written.as_bytes()).expect("a terminal");
        }
    });
}

fn markdown(text: &str, frame: usize) {
    on_terminal(|terminal| {
        let mut printer = Printer::new(WIDTH, STYLE);
        let mut drawn = 0;
        for pieces in frames(text, frame) {
            let mut written = if drawn > 0 { format!("\x1b[{drawn}A\x1b[J") } else { String::new() };
            write_lines(&mut written, &printer.push(&pieces.concat()));
            let tail = printer.tail(ROWS);
            write_lines(&mut written, &tail);
            drawn = tail.len();
            terminal.write_all(written.as_bytes()).expect("a terminal");
        }
        let mut written = String::new();
        write_lines(&mut written, &printer.finish());
        terminal.write_all(written.as_bytes()).expect("a terminal");
    });
}

fn write_lines(written: &mut String, lines: &[Line]) {
    for line in lines {
        line.paint_to(written, STYLE);
        written.push('\n');
    }
}

fn pushed(text: &str) {
    let mut printer = Printer::new(WIDTH, STYLE);
    let mut lines = 0;
    for piece in frames(text, PIECE).flatten() {
        lines += printer.push(piece).len();
    }
    assert!(lines + printer.finish().len() > 0);
}

/// Lets `write` write to a terminal that somebody reads.
fn on_terminal(write: impl FnOnce(&mut File)) {
    let ends = openpty(None, None).expect("a pseudo-terminal");
    let mut reader = File::from(ends.master);
    let slave: OwnedFd = ends.slave;
    let reading = thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        while reader.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });
    let mut terminal = File::from(slave);
    write(&mut terminal);
    drop(terminal);
    reading.join().expect("the reader ends with the terminal");
}

/// Milliseconds of this thread's processor time, the best of some rounds.
fn best(mut run: impl FnMut()) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let before = used();
        run();
        used().saturating_sub(before).as_secs_f64() * 1000.0
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the system counts");
    let of = |time: nix::sys::time::TimeVal| {
        Duration::from_secs(u64::try_from(time.tv_sec()).unwrap_or(0))
            + Duration::from_micros(u64::try_from(time.tv_usec()).unwrap_or(0))
    };
    of(usage.user_time()) + of(usage.system_time())
}
