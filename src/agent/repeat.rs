//! Loop detection: the same call with the same arguments *and the same result*, again and again, or a cycle of such
//! calls. Arguments alone would stop honest polling; here a result that changes is progress.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The longest cycle of calls that is recognised.
const LONGEST_CYCLE: usize = 5;

/// Watches the calls of one turn.
#[derive(Debug)]
pub struct RepeatDetector {
    window: usize,
    threshold: usize,
    /// Newest last.
    history: VecDeque<u64>,
}

/// What the calls so far look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    Progress,
    /// The model should be told, once for each time the threshold is reached anew.
    Hint {
        times: usize,
    },
    /// The model was told and did not change course.
    Stop {
        times: usize,
    },
}

impl RepeatDetector {
    /// `threshold` times within the last `window` calls is a hint; twice that stops. A threshold of 0 is never
    /// reached.
    #[must_use]
    pub fn new(window: usize, threshold: usize) -> Self {
        Self { window, threshold, history: VecDeque::new() }
    }

    /// Notes a finished call and says what the calls so far look like.
    pub fn observe(&mut self, name: &str, arguments: &str, result: &str) -> Repetition {
        if self.threshold == 0 {
            return Repetition::Progress;
        }
        let mut hasher = DefaultHasher::new();
        (name, arguments, result).hash(&mut hasher);
        self.history.push_back(hasher.finish());
        let most = self.window.max(LONGEST_CYCLE * 2 * self.threshold);
        while self.history.len() > most {
            self.history.pop_front();
        }
        self.judge()
    }

    fn judge(&self) -> Repetition {
        let times = self.same_in_window().max(self.longest_run_of_cycles());
        if times >= 2 * self.threshold {
            Repetition::Stop { times }
        } else if times == self.threshold {
            Repetition::Hint { times }
        } else {
            Repetition::Progress
        }
    }

    fn same_in_window(&self) -> usize {
        let last = self.history.back();
        self.history.iter().rev().take(self.window).filter(|call| Some(*call) == last).count()
    }

    /// How often the newest cycle of up to [`LONGEST_CYCLE`] calls has run without a break.
    fn longest_run_of_cycles(&self) -> usize {
        let newest_first: Vec<u64> = self.history.iter().rev().copied().collect();
        (2..=LONGEST_CYCLE).map(|length| whole_repeats(&newest_first, length)).max().unwrap_or(0)
    }
}

/// How many times the first `length` entries stand one after another at the front.
fn whole_repeats(calls: &[u64], length: usize) -> usize {
    let mut groups = calls.chunks_exact(length);
    let Some(first) = groups.next() else { return 0 };
    1 + groups.take_while(|group| *group == first).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter a call, its case the result: `a` and `A` are the same call with different results.
    fn verdicts(calls: &str) -> String {
        let mut detector = RepeatDetector::new(12, 3);
        calls
            .chars()
            .map(|c| match detector.observe(&c.to_lowercase().to_string(), "{}", &c.to_string()) {
                Repetition::Progress => '.',
                Repetition::Hint { .. } => '?',
                Repetition::Stop { .. } => '!',
            })
            .collect()
    }

    #[test]
    fn the_same_call_with_the_same_result_is_hinted_then_stopped() {
        assert_eq!(verdicts("aaaaaa"), "..?..!");
    }

    #[test]
    fn polling_that_sees_something_new_is_progress() {
        assert_eq!(verdicts("aAbBcCdDeE"), "..........");
    }

    #[test]
    fn work_in_between_does_not_hide_a_repetition_inside_the_window() {
        assert_eq!(verdicts("axaya"), "....?");
    }

    #[test]
    fn a_repetition_older_than_the_window_is_forgotten() {
        assert_eq!(verdicts("aabcdefghijklma"), "...............");
    }

    #[test]
    fn a_cycle_of_five_is_stopped_although_the_window_holds_only_two_of_it() {
        let seen = verdicts(&"abcde".repeat(6));
        assert!(seen.contains('?'), "{seen}");
        assert!(seen.ends_with('!'), "{seen}");
    }

    #[test]
    fn a_threshold_of_zero_never_stops() {
        let mut detector = RepeatDetector::new(12, 0);
        assert!((0..50).all(|_| detector.observe("a", "", "") == Repetition::Progress));
    }
}
