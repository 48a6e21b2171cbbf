//! Measures what compressing a conversation saves, loses and costs: one long piece of work, played through the real
//! loop under every strategy, and in windows of every usual size.
//!
//! ```text
//! cargo bench --bench context               plays it, prints the tables and the bars
//! cargo bench --bench context -- windows    only the windows
//! cargo bench --bench context -- --write    also puts the tables into docs/context.md
//! ```
//!
//! The model and its commands follow a plan, files are read and written for real, nothing goes over the network. The
//! table is the same on every machine; the times and the memory are not. A bar that is missed fails the bench.

#![expect(clippy::print_stdout, reason = "what a benchmark prints is what it is for")]

mod figures;
mod model;
mod speed;
mod stage;
mod windows;
mod workload;

use std::process::ExitCode;
use std::time::Duration;

use agent::facade::config::Strategy;
use figures::{Figures, RULES, Rule};
use model::Play;
use stage::Setting;
use workload::{Kind, Sizes, Workload};

/// The tokens that a request may contain.
const BUDGET: u64 = 100_000;
const SEED: u64 = 11;
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/context.md");

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [first, thousands] = args.as_slice()
        && first == "memory"
    {
        speed::measure_memory(thousands.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    let mut bars = Bars::default();
    if args.iter().any(|arg| arg == "windows") {
        windows(&mut bars);
    } else {
        let tables = [("strategies", strategies(&mut bars)), ("windows", windows(&mut bars))];
        bars.of_speed();
        if args.iter().any(|arg| arg == "--write") {
            write(&tables);
        }
    }
    if bars.missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Every strategy with the same budget.
fn strategies(bars: &mut Bars) -> String {
    let ways = [
        ("none", Strategy::Staged, 100 * BUDGET),
        ("staged", Strategy::Staged, BUDGET),
        ("summary", Strategy::Summary, BUDGET),
        ("window", Strategy::Window, BUDGET),
        ("selective", Strategy::Selective, BUDGET),
    ];
    let runs: Vec<(&str, Figures)> = ways
        .into_iter()
        .map(|(name, strategy, budget)| {
            let play = Play::new(Workload::new(SEED, Sizes::Lognormal));
            stage::play(&play, Setting::budget(strategy, budget));
            let figures = std::mem::take(&mut play.state().figures);
            bars.of_run(name, &figures, budget);
            (name, figures)
        })
        .collect();
    let table = table(&runs);
    println!("{table}");
    bars.of_cost(&runs[0].1, &runs[1].1);
    table
}

/// `staged` in every window.
fn windows(bars: &mut Bars) -> String {
    let mut rows = windows::rows();
    rows.push(windows::large_reads());
    let table = windows::table(&rows);
    println!("{table}");
    for (what, holds) in rows.iter().flat_map(windows::Row::goals) {
        bars.hold(&what, holds);
    }
    table
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number below a million with a comma, as it is read.
fn thousands(number: u64) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}

fn say(line: &str) {
    println!("{line}");
}

/// A line of the table: its name, and what it says of a run.
type Measure<'a> = (&'a str, Box<dyn Fn(&Figures) -> String + 'a>);

/// One column per strategy, one line per measure.
fn table(runs: &[(&str, Figures)]) -> String {
    let worst =
        |figures: &Figures, of: &dyn Fn(&figures::Check) -> f64| figures.checks.iter().map(of).fold(1.0, f64::min);
    let only = |kind: Kind| move |check: &figures::Check| check.verbatim(|of| of == kind);
    let kilo = |tokens: u64| thousands(tokens / 1000);
    let cost = |rule: Rule| move |figures: &Figures| kilo(figures.cost(rule));
    let measures: Vec<Measure<'_>> = vec![
        ("largest request, tokens", Box::new(|f| f.peak.to_string())),
        ("requests", Box::new(|f| f.requests.to_string())),
        ("sent in all, thousands of tokens", Box::new(|f| kilo(f.sent))),
        ("of a request kept by the next, bytes", Box::new(|f| percent(f.kept()))),
        ("cost¹, longest prefix", Box::new(cost(RULES[0]))),
        ("cost¹, steps of 128", Box::new(cost(RULES[1]))),
        ("cost¹, whole requests only", Box::new(cost(RULES[2]))),
        ("compressions", Box::new(|f| f.compressions.to_string())),
        ("requests for a summary", Box::new(|f| f.summaries.to_string())),
        ("constraints verbatim²", Box::new(|f| percent(worst(f, &only(Kind::Constraint))))),
        ("decisions verbatim²", Box::new(|f| percent(worst(f, &only(Kind::Decision))))),
        ("errors verbatim²", Box::new(|f| percent(worst(f, &only(Kind::Error))))),
        ("paths verbatim²", Box::new(|f| percent(worst(f, &only(Kind::Path))))),
        ("numbers verbatim²", Box::new(|f| percent(worst(f, &only(Kind::Number))))),
        ("verbatim or found by `recall`²", Box::new(|f| percent(worst(f, &|check| check.reachable())))),
        ("calls of `recall`", Box::new(|f| f.recalls.to_string())),
        ("calls made again", Box::new(|f| f.repeats.to_string())),
    ];
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let names = std::iter::once(String::new()).chain(runs.iter().map(|(name, _)| format!("`{name}`")));
    let mut table = row(names.collect());
    table += &("|---|".to_owned() + &"--:|".repeat(runs.len()) + "\n");
    for (name, of) in &measures {
        table += &row(std::iter::once((*name).to_owned()).chain(runs.iter().map(|(_, f)| of(f))).collect());
    }
    table
}

/// The conditions that must hold.
#[derive(Default)]
struct Bars {
    missed: bool,
}

impl Bars {
    fn hold(&mut self, what: &str, holds: bool) {
        println!("{} {what}", if holds { "ok    " } else { "MISSED" });
        self.missed |= !holds;
    }

    fn of_run(&mut self, name: &str, figures: &Figures, budget: u64) {
        self.hold(&format!("{name}: no request above the budget ({})", figures.peak), figures.peak <= budget);
        let lost: u64 = figures.checks.iter().map(|check| check.lost).sum();
        self.hold(&format!("{name}: every fact is in the request or found by recall ({lost} lost)"), lost == 0);
        if name == "staged" {
            for kind in [Kind::Constraint, Kind::Decision] {
                let least = figures.checks.iter().map(|check| check.verbatim(|of| of == kind)).fold(1.0, f64::min);
                let what = format!("{name}: {kind:?}s verbatim in 90 % at least ({:.1} %)", least * 100.0);
                self.hold(&what, least >= 0.9);
            }
        }
    }

    fn of_cost(&mut self, none: &Figures, staged: &Figures) {
        let part = figures::share(staged.cost(Rule::LongestPrefix), none.cost(Rule::LongestPrefix));
        self.hold(
            &format!("staged costs at most half of none (longest prefix: {:.1} %)", part * 100.0),
            part <= 0.5,
        );
    }

    fn of_speed(&mut self) {
        for (near, name) in [(false, "far from the threshold"), (true, "near it, counted exactly")] {
            let (median, worst) = speed::append_and_decide(near);
            let what = format!(
                "200,000 tokens, one message more, {name}: {median:.0?}, at worst {worst:.0?}, under 1 ms"
            );
            self.hold(&what, median < Duration::from_millis(1));
        }
        let play = Play::new(Workload::new(SEED, Sizes::Lognormal));
        let took = stage::play(&play, Setting::budget(Strategy::Staged, 250_000));
        let worst = took.iter().max().copied().unwrap_or_default();
        let what = format!("200,000 tokens compressed in {worst:.1?} at worst (of {}), under 50 ms", took.len());
        self.hold(&what, !took.is_empty() && worst < Duration::from_millis(50));
        let kept = speed::memory();
        for pair in kept.windows(2) {
            let factor = pair[1].factor_since(&pair[0]);
            let [held, after] = [pair[1].held, pair[1].compressed].map(|bytes| bytes / 1024);
            let what = format!(
                "{},000 tokens, {} KiB of text: {held} KiB in memory, {after} KiB once compressed; it grows by {factor:.1} \
                 times the text, under 3",
                pair[1].thousands,
                pair[1].text / 1024
            );
            self.hold(&what, factor < 3.0);
        }
    }
}

/// Puts tables into the page, each between its marks.
fn write(tables: &[(&str, String)]) {
    let mut page = std::fs::read_to_string(PAGE).expect("the page is there");
    for (name, table) in tables {
        let [begin, end] = [format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->")];
        let (before, rest) = page.split_once(&begin).expect("the first mark");
        let (_, after) = rest.split_once(&end).expect("the second mark");
        page = [before, &begin, table.as_str(), &end, after].concat();
    }
    std::fs::write(PAGE, page).expect("written");
}
