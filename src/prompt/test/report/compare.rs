//! Compares two versions: the significance of the difference, and the number of runs that would show it.

use serde::Serialize;

use super::super::outcome::{CaseOutcome, Tested};
use super::super::statistics::{PassCount, runs_that_tell, test_fisher};

/// A difference counts if the probability that it is only noise is below this.
const SIGNIFICANT: f64 = 0.05;

/// Two versions, or two models, on the same cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub a: ComparedSide,
    pub b: ComparedSide,
    /// The chance of such a difference if both were the same (Fisher's exact test, two-sided).
    pub p: f64,
    /// True if the difference is more than noise.
    pub differs: bool,
    /// Runs of each that would distinguish such rates (power 80 %, 5 %); `None` if the rates are equal.
    pub runs_that_tell: Option<u64>,
    pub cases: Vec<ComparedCase>,
}

/// One of the two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedSide {
    pub label: String,
    pub count: PassCount,
    /// The runs that asked a model, which are the basis of the test.
    pub sampled: PassCount,
}

/// A case in both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCase {
    pub name: String,
    pub a: Option<PassCount>,
    pub b: Option<PassCount>,
}

impl Comparison {
    pub fn compare(a: &Tested, b: &Tested) -> Self {
        let count = |tested: &Tested, name: &str| {
            tested.cases.iter().find(|case| case.name == name).map(CaseOutcome::count)
        };
        let mut names: Vec<&str> = a.cases.iter().map(|case| case.name.as_str()).collect();
        names.extend(b.cases.iter().map(|case| case.name.as_str()).filter(|name| count(a, name).is_none()));
        let row = |name: &str| ComparedCase { name: name.to_owned(), a: count(a, name), b: count(b, name) };
        let cases = names.into_iter().map(row).collect();
        let p = test_fisher(a.count_sampled(), b.count_sampled());
        let side = |tested: &Tested| ComparedSide {
            label: tested.label(),
            count: tested.count(),
            sampled: tested.count_sampled(),
        };
        let runs_that_tell = runs_that_tell(a.count_sampled().rate(), b.count_sampled().rate());
        Self { a: side(a), b: side(b), p, differs: p < SIGNIFICANT, runs_that_tell, cases }
    }

    /// The conclusion, in one or two sentences.
    pub fn conclude(&self) -> String {
        let fewest = self.a.sampled.runs.min(self.b.sampled.runs);
        if fewest == 0 {
            return "Cases that only render have the same result each time: every difference is real.".to_owned();
        }
        let p = if self.p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {:.2}", self.p) };
        if self.differs {
            let better = if self.a.sampled.rate() > self.b.sampled.rate() { &self.a } else { &self.b };
            return format!("{} is better, and the difference is more than noise: {p}.", better.label);
        }
        match self.runs_that_tell {
            None => format!("No difference was found: {p}."),
            Some(runs) if runs > fewest => format!(
                "The difference may be noise: {p}. If these rates are the true ones, {runs} runs of each would tell \
                 (here: {fewest})."
            ),
            Some(runs) => {
                format!("The difference may be noise: {p}. Run it again: {runs} runs of each should tell.")
            }
        }
    }
}
