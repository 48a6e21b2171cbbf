//! Statistics of runs: the interval of a rate, the significance of the difference of two rates, and the number of runs
//! that would show it. Pure functions of counts.

use serde::Serialize;

/// The normal deviate of a two-sided 5 %.
const Z_95: f64 = 1.959_963_984_540_054;
/// The normal deviate of a power of 80 %.
const Z_80: f64 = 0.841_621_233_572_914;

/// Runs, and those of them that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PassCount {
    pub passed: u64,
    pub runs: u64,
}

impl PassCount {
    /// The share that passed, from 0 to 1; 0 of no runs.
    pub fn rate(self) -> f64 {
        if self.runs == 0 { 0.0 } else { to_float(self.passed) / to_float(self.runs) }
    }

    /// The 95 % interval of the rate by Wilson's score; from 0 to 1 for no runs.
    pub fn interval(self) -> (f64, f64) {
        if self.runs == 0 {
            return (0.0, 1.0);
        }
        let (n, p, z2) = (to_float(self.runs), self.rate(), Z_95 * Z_95);
        let middle = p + z2 / (2.0 * n);
        let spread = Z_95 * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        let whole = 1.0 + z2 / n;
        (((middle - spread) / whole).max(0.0), ((middle + spread) / whole).min(1.0))
    }
}

impl std::iter::Sum for PassCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, count| Self {
            passed: sum.passed + count.passed,
            runs: sum.runs + count.runs,
        })
    }
}

impl std::fmt::Display for PassCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.passed, self.runs)
    }
}

/// The probability of a difference at least as great if both had the same rate: Fisher's exact test, two-sided, which
/// adds up every outcome that is not more likely than this one. From 0 to 1.
pub fn test_fisher(a: PassCount, b: PassCount) -> f64 {
    /// Outcomes of equal chance differ by rounding.
    const ROUNDING: f64 = 1e-7;
    let (passed, runs) = (a.passed + b.passed, a.runs + b.runs);
    if a.runs == 0 || b.runs == 0 {
        return 1.0;
    }
    let factorials = list_log_factorials(runs);
    let factorial = |n: u64| usize::try_from(n).ok().and_then(|n| factorials.get(n)).copied().unwrap_or(0.0);
    let choose = |n: u64, k: u64| factorial(n) - factorial(k) - factorial(n - k);
    let chance = |k: u64| (choose(a.runs, k) + choose(b.runs, passed - k) - choose(runs, passed)).exp();
    let limit = chance(a.passed) * (1.0 + ROUNDING);
    let possible = passed.saturating_sub(b.runs)..=passed.min(a.runs);
    possible.map(chance).filter(|chance| *chance <= limit).sum::<f64>().min(1.0)
}

/// The number of runs of each that would distinguish two rates, with a chance of 80 % to see the difference and of 5 %
/// to see one if there is none, by the normal approximation. `None` if the rates are equal.
pub fn runs_that_tell(a: f64, b: f64) -> Option<u64> {
    /// With fewer, the exact test never finds a difference.
    const FEWEST: f64 = 4.0;
    /// A count beyond any budget; a difference that needs more is negligible.
    const MOST: f64 = 1e9;
    let middle = f64::midpoint(a, b);
    let both = Z_95 * (2.0 * middle * (1.0 - middle)).sqrt();
    let each = Z_80 * (a * (1.0 - a) + b * (1.0 - b)).sqrt();
    let runs = ((both + each) / (a - b)).powi(2).ceil();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number up to 1e9")]
    (runs.is_finite() && runs <= MOST).then_some(runs.max(FEWEST) as u64)
}

/// ln(n!) from n = 0 to `most`.
fn list_log_factorials(most: u64) -> Vec<f64> {
    let logs = (1..=most).scan(0.0, |sum, n| {
        *sum += to_float(n).ln();
        Some(*sum)
    });
    std::iter::once(0.0).chain(logs).collect()
}

fn to_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{PassCount, runs_that_tell, test_fisher};

    fn count(passed: u64, runs: u64) -> PassCount {
        PassCount { passed, runs }
    }

    /// Intervals as textbooks and statsmodels (`proportion_confint(method="wilson")`) give them.
    #[test]
    fn wilson_intervals_are_those_of_the_books() {
        for (passed, runs, low, high) in [
            (10, 10, 0.722_467, 1.0),
            (0, 10, 0.0, 0.277_533),
            (5, 10, 0.236_593, 0.763_407),
            (9, 10, 0.595_850, 0.982_124),
            (81, 263, 0.255_289, 0.366_218),
            (1, 1, 0.206_549, 1.0),
            (0, 0, 0.0, 1.0),
        ] {
            let (l, h) = count(passed, runs).interval();
            assert!((l - low).abs() < 1e-5 && (h - high).abs() < 1e-5, "{passed}/{runs}: {l}..{h}");
        }
    }

    /// Values as R's `fisher.test` gives them; the first is Fisher's own tea table.
    #[test]
    fn fishers_test_gives_known_values() {
        for (a, b, p) in [
            (count(3, 4), count(1, 4), 0.485_714),
            (count(4, 4), count(0, 4), 0.028_571),
            (count(1, 10), count(11, 14), 0.002_759),
            (count(10, 10), count(5, 10), 0.032_508),
            (count(5, 5), count(5, 5), 1.0),
            (count(0, 5), count(0, 5), 1.0),
            (count(0, 0), count(3, 5), 1.0),
            (count(8, 10), count(8, 10), 1.0),
        ] {
            let got = test_fisher(a, b);
            assert!((got - p).abs() < 1e-5, "{a:?} {b:?}: {got}");
        }
    }

    /// Sizes as tables of two proportions have them (two-sided 5 %, power 80 %, no correction for continuity).
    #[test]
    fn the_number_of_runs_is_that_of_the_tables() {
        assert_eq!(runs_that_tell(0.9, 0.8), Some(199));
        assert_eq!(runs_that_tell(0.5, 0.6), Some(388));
        assert_eq!(runs_that_tell(0.6, 0.5), Some(388));
        assert_eq!(runs_that_tell(0.7, 0.7), None);
        assert_eq!(runs_that_tell(0.0, 1.0), Some(4));
    }

    proptest! {
        #[test]
        fn figures_stay_within_their_bounds(runs_a in 0..300_u64, runs_b in 0..300_u64, a in 0..=1000_u64, b in 0..=1000_u64) {
            let (a, b) = (count(runs_a * a / 1000, runs_a), count(runs_b * b / 1000, runs_b));
            let p = test_fisher(a, b);
            prop_assert!((0.0..=1.0).contains(&p) && (p - test_fisher(b, a)).abs() < 1e-9);
            let (low, high) = a.interval();
            prop_assert!(low <= a.rate() + 1e-12 && a.rate() <= high + 1e-12);
        }
    }
}
