//! Windows of every usual size: measures how often the same work is compressed in them, and the savings.
//!
//! `none` is the same work in a window that is large enough. Its results are cut where the smaller window cuts them.

use std::fmt::Write;

use crate::figures::{Figures, Rule, share};
use crate::model::Play;
use crate::stage::{self, Setting};
use crate::workload::{Sizes, Workload};
use crate::{SEED, percent};

const WINDOWS: [u64; 6] = [8192, 16_384, 32_768, 65_536, 131_072, 200_000];
/// Tokens; no result brings in more, however large the window is.
const RESULT: u64 = 8000;
const BYTES_PER_TOKEN: u64 = 4;

/// One piece of work in one window.
pub struct Row {
    window: u64,
    work: &'static str,
    /// The tokens that ten steps bring in, as a share of the budget.
    ten_steps: f64,
    staged: Figures,
    none: Figures,
}

/// Plays the work of 300 steps in every window, as it is and in small steps.
pub fn rows() -> Vec<Row> {
    let works = [("as it is", None), ("small steps", Some(40))];
    let pairs = works.into_iter().flat_map(|work| WINDOWS.map(|window| (work, window)));
    let row = |((name, share), window): ((&'static str, Option<u64>), u64)| {
        let sizes = share.map_or(Sizes::Lognormal, |share| {
            Sizes::Small(usize::try_from(stage::budget(window).tokens / share).expect("small"))
        });
        Row::new(window, name, || Workload::new(SEED, sizes))
    };
    pairs.map(row).collect()
}

/// Forty reads of 7,000 tokens in a window of 32,000.
pub fn large_reads() -> Row {
    Row::new(32_000, "40 reads of 7,000 tokens", || Workload::reads(SEED, 40, 7000))
}

impl Row {
    fn new(window: u64, work: &'static str, make: impl Fn() -> Workload) -> Self {
        let staged = played(make(), Setting::window(window, RESULT));
        let budget = stage::budget(window).tokens;
        let cap = (budget.saturating_sub(staged.fixed) / 4).min(RESULT);
        let none = played(make(), Setting::endless(cap));
        let workload = make();
        let files = workload.files.values().map(String::len);
        let outputs = workload.steps.iter().flat_map(|step| &step.calls).map(|call| call.output.len());
        let tokens = files.chain(outputs).map(|bytes| (bytes as u64 / BYTES_PER_TOKEN).min(cap)).sum::<u64>();
        let ten_steps = share(tokens * 10, budget * workload.steps.len() as u64);
        Self { window, work, ten_steps, staged, none }
    }

    fn price(&self) -> f64 {
        share(self.staged.cost(Rule::LongestPrefix), self.none.cost(Rule::LongestPrefix))
    }

    fn per_ten_steps(&self) -> f64 {
        share(self.staged.compressions * 10, self.staged.steps())
    }

    /// The conditions, and whether they are met.
    pub fn goals(&self) -> Vec<(String, bool)> {
        let (name, figures) = (format!("{} window, {}", self.window, self.work), &self.staged);
        let (passes, summaries) = (figures.compressions, figures.summaries);
        let lost: u64 = figures.checks.iter().map(|check| check.lost).sum();
        let mut goals = vec![
            (
                format!("{name}: one summary in three compressions at most ({summaries} in {passes})"),
                summaries * 3 <= passes,
            ),
            (format!("{name}: at most half the price of none ({})", percent(self.price())), self.price() <= 0.5),
            (format!("{name}: every fact is in the request or found by recall ({lost} lost)"), lost == 0),
        ];
        if self.ten_steps <= 0.25 {
            let what = format!("{name}: one compression in ten steps at most ({:.2})", self.per_ten_steps());
            goals.insert(0, (what, self.per_ten_steps() <= 1.0));
        }
        goals
    }
}

/// One line per row.
pub fn table(rows: &[Row]) -> String {
    let heads = [
        "window", "work", "ten steps bring in", "requests", "compressions", "in ten steps", "summaries",
        "price of `none`", "within reach", "recalled", "called again",
    ];
    let mut table = format!("| {} |\n|--:|---|{}\n", heads.join(" | "), "--:|".repeat(heads.len() - 2));
    for row in rows {
        let figures = &row.staged;
        let reach = figures.checks.iter().map(crate::figures::Check::reachable).fold(1.0, f64::min);
        let cells = [
            crate::thousands(row.window),
            row.work.to_owned(),
            percent(row.ten_steps),
            figures.requests.to_string(),
            figures.compressions.to_string(),
            format!("{:.2}", row.per_ten_steps()),
            figures.summaries.to_string(),
            percent(row.price()),
            percent(reach),
            figures.recalls.to_string(),
            figures.repeats.to_string(),
        ];
        let _ = writeln!(table, "| {} |", cells.join(" | "));
    }
    table
}

fn played(work: Workload, setting: Setting) -> Figures {
    let play = Play::new(work);
    stage::play(&play, setting);
    std::mem::take(&mut play.state().figures)
}
