//! Finds loops by lack of progress: calls that bring nothing new, however they differ.
//!
//! Evidence of progress is: time that passed in a wait; a file in a state that it did not have before; a question that
//! was not asked before and was answered; a command that was not run before, changes something and succeeds; a line
//! of a result that was not seen before. Clocks are never new. Numbers are new only in the result of a call that was
//! not made before: polling that counts up is a wait, and says so by waiting.
//!
//! One kind of standstill is the same call with the same result again and again, the other a number of calls of any
//! kind without progress. Either is a hint to the model first, and the end at twice as many.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use serde_json::Value;

use super::normal_form::{Numbers, hash_call, hash_value, is_notice, omit_clocks, omit_numbers};

/// The most entries of one generation of what was seen; two are kept, about 2 MB.
const MOST_SEEN: usize = 1 << 16;
/// The shortest time that counts as waiting.
const SHORTEST_WAIT: Duration = Duration::from_millis(500);

/// Observes the calls of one turn.
#[derive(Debug)]
pub struct LoopDetector {
    window: usize,
    threshold: usize,
    seen: SeenHashes,
    /// The calls since the last progress with their results, clocks omitted, and how often each was made. The call
    /// that brought the progress is the first of them.
    repeated: HashMap<u64, usize>,
    /// The calls since the last progress.
    fruitless: usize,
    /// The step in which the model was told of the standstill.
    told_in: Option<u64>,
}

/// A finished call, as far as it matters for finding loops.
#[derive(Debug, Clone, Copy)]
pub struct ObservedCall<'a> {
    /// The number of its step. Calls of one step run side by side: the model could not heed a hint between them.
    pub step: u64,
    pub name: &'a str,
    pub arguments: &'a Value,
    pub result: &'a str,
    pub end: ObservedEnd,
    /// True if the call may write or run something: its permission is above `read`.
    pub changes: bool,
    /// The time that passed in it, if it was meant to wait.
    pub waited: Option<Duration>,
    /// Hashes of the files that are no longer as they were at the call before, with what they hold now.
    pub files: &'a [u64],
}

/// The end of an observed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObservedEnd {
    Succeeded,
    /// It ran and has a result, which is a failure: an exit code other than 0.
    Failed,
    /// It has no result but an error or a denial.
    Refused,
}

/// A judgement of the calls so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopVerdict {
    Progress,
    /// The model should be told.
    Hint(Standstill),
    /// The model was told and did not change course.
    Stop(Standstill),
}

/// The lack of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standstill {
    /// The same call returned the same result so many times.
    SameResult(usize),
    /// So many calls in a row brought nothing new.
    NothingNew(usize),
}

impl LoopDetector {
    /// The same call with the same result `threshold` times without progress in between, or `window` calls of any
    /// kind without progress, are a hint; twice as many stop. A threshold of 0 disables both.
    pub fn new(window: usize, threshold: usize) -> Self {
        let (seen, repeated) = (SeenHashes::default(), HashMap::new());
        Self { window, threshold, seen, repeated, fruitless: 0, told_in: None }
    }

    /// Records a finished call and judges the calls so far.
    pub fn observe(&mut self, observed: ObservedCall<'_>) -> LoopVerdict {
        if self.threshold == 0 {
            return LoopVerdict::Progress;
        }
        let call = hash_call(observed.name, observed.arguments, Numbers::Kept);
        let lines = self.see_lines(observed.result);
        if self.brings_news(call, &lines, observed) {
            self.repeated.clear();
            self.fruitless = 0;
            self.told_in = None;
        } else {
            self.fruitless += 1;
        }
        let times = self.repeated.entry(hash_value(&(call, observed.end, lines.sum))).or_default();
        *times += 1;
        let times = *times;
        self.judge(times, observed.step)
    }

    fn judge(&mut self, times: usize, step: u64) -> LoopVerdict {
        let at = |factor: usize| match self.fruitless {
            _ if times >= factor * self.threshold => Some(Standstill::SameResult(times)),
            calls if calls >= factor.saturating_mul(self.window) => Some(Standstill::NothingNew(calls)),
            _ => None,
        };
        match (self.told_in, at(1), at(2)) {
            (None, Some(standstill), _) => {
                self.told_in = Some(step);
                LoopVerdict::Hint(standstill)
            }
            (Some(told_in), _, Some(standstill)) if told_in != step => LoopVerdict::Stop(standstill),
            _ => LoopVerdict::Progress,
        }
    }

    /// True if the call is evidence of progress. Everything about it counts as seen from now on.
    fn brings_news(&mut self, call: u64, lines: &SeenLines, observed: ObservedCall<'_>) -> bool {
        let ObservedCall { name, arguments, end, changes, waited, files, .. } = observed;
        let question = hash_call(name, arguments, Numbers::Omitted);
        let is_new_call = self.seen.insert(&("call", call));
        let is_new_question = self.seen.insert(&("question", question));
        let new_files = files.iter().filter(|file| self.seen.insert(&("file", file))).count();
        let has_new_line = match end {
            ObservedEnd::Succeeded | ObservedEnd::Failed if is_new_call => lines.new_but_for_clocks,
            // An error may quote the numbers that it was given.
            ObservedEnd::Succeeded | ObservedEnd::Failed | ObservedEnd::Refused => lines.new_but_for_numbers,
        };
        waited.is_some_and(|time| time >= SHORTEST_WAIT)
            || new_files > 0
            || has_new_line
            || is_new_question && end != ObservedEnd::Refused
            || is_new_call && changes && end == ObservedEnd::Succeeded
    }

    fn see_lines(&mut self, result: &str) -> SeenLines {
        let mut lines = SeenLines::default();
        for line in result.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
            let without_numbers = omit_numbers(line);
            let without_clocks = if is_notice(line) { without_numbers.clone() } else { omit_clocks(line) };
            lines.sum = lines.sum.wrapping_add(hash_value(&without_clocks));
            lines.new_but_for_clocks |= self.seen.insert(&("line", without_clocks));
            lines.new_but_for_numbers |= self.seen.insert(&("shape", without_numbers));
        }
        lines
    }
}

/// The lines of a result against those that were seen before.
#[derive(Debug, Default)]
struct SeenLines {
    /// The lines in any order, clocks omitted.
    sum: u64,
    /// A line is new although its clocks do not count.
    new_but_for_clocks: bool,
    /// A line is new although its numbers do not count.
    new_but_for_numbers: bool,
}

/// Hashes of what was seen lately, in bounded memory: two generations, of which the older is forgotten when the newer
/// is full.
#[derive(Debug, Default)]
struct SeenHashes {
    newer: HashSet<u64>,
    older: HashSet<u64>,
}

impl SeenHashes {
    /// Returns true if the value was not seen.
    fn insert(&mut self, value: &impl Hash) -> bool {
        let hash = hash_value(value);
        let is_new = self.newer.insert(hash) && !self.older.contains(&hash);
        if self.newer.len() >= MOST_SEEN {
            self.older = std::mem::take(&mut self.newer);
        }
        is_new
    }
}

impl Standstill {
    /// The note for the model, at the end of the result.
    pub fn hint(self) -> String {
        let what = match self {
            Self::SameResult(times) => format!("this call has now returned the same result {times} times"),
            Self::NothingNew(calls) => format!(
                "the last {calls} calls brought nothing new: their results differ from earlier ones in numbers and \
                 times at most, and no file that they name has changed"
            ),
        };
        format!(
            "\n[note: {what}. More of the same will not change that: try something else, or answer with what you \
             have. To wait for something, use `sleep`.]"
        )
    }
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameResult(times) => write!(f, "the same call returned the same result {times} times"),
            Self::NothingNew(calls) => write!(f, "the last {calls} calls brought nothing new"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::normal_form::waits;
    use super::*;

    /// One letter per call, whose case is the result: `a` and `A` are the same call with different results.
    fn verdicts(calls: &str) -> String {
        let mut detector = LoopDetector::new(12, 3);
        let verdict = |(step, c): (usize, char)| {
            let (name, result) = (c.to_lowercase().to_string(), format!("result {c}"));
            mark(detector.observe(ObservedCall { step: step as u64, ..read(&name, &result) }))
        };
        calls.chars().enumerate().map(verdict).collect()
    }

    fn read<'a>(name: &'a str, result: &'a str) -> ObservedCall<'a> {
        ObservedCall {
            step: 1,
            name,
            arguments: &Value::Null,
            result,
            end: ObservedEnd::Succeeded,
            changes: false,
            waited: None,
            files: &[],
        }
    }

    fn mark(verdict: LoopVerdict) -> char {
        match verdict {
            LoopVerdict::Progress => '.',
            LoopVerdict::Hint(_) => '?',
            LoopVerdict::Stop(_) => '!',
        }
    }

    #[test]
    fn the_same_call_with_the_same_result_is_hinted_then_stopped() {
        assert_eq!(verdicts("aaaaaa"), "..?..!");
    }

    #[test]
    fn a_result_that_differs_in_words_is_progress() {
        assert_eq!(verdicts("aAbBcCdDeE"), "..........");
    }

    #[test]
    fn calls_that_bring_nothing_new_are_hinted_and_stopped_whatever_their_cycle() {
        for length in 1..=20 {
            let cycle = &"abcdefghijklmnopqrst"[..length];
            let seen = verdicts(&cycle.repeat(50 / length + 1)[..50]);
            let (hint, stop) = (seen.find('?').expect("a hint"), seen.find('!').expect("a stop"));
            assert!(length <= hint && hint < length + 12 && hint < stop && stop < length + 24, "{seen}");
        }
    }

    #[test]
    fn progress_in_between_makes_a_repetition_harmless() {
        assert_eq!(verdicts("axaxbaxaxcaxaxd"), "...............");
    }

    #[test]
    fn calls_of_one_step_are_not_stopped_before_the_model_could_read_the_hint() {
        let mut detector = LoopDetector::new(12, 3);
        let mut observe = |step| mark(detector.observe(ObservedCall { step, ..read("a", "x") }));
        let beside: String = (0..64).map(|_| observe(1)).collect();
        assert_eq!((beside.matches('?').count(), beside.matches('!').count()), (1, 0), "{beside}");
        assert_eq!(observe(2), '!');
    }

    #[test]
    fn a_threshold_of_zero_never_stops() {
        let mut detector = LoopDetector::new(12, 0);
        let mut observe = |step| detector.observe(ObservedCall { step, ..read("a", "") });
        assert!((0..50).all(|step| observe(step) == LoopVerdict::Progress));
    }

    #[test]
    fn memory_is_bounded_and_what_was_seen_lately_is_known() {
        let mut seen = SeenHashes::default();
        for n in 0..3 * MOST_SEEN {
            assert!(seen.insert(&n));
            assert!(!seen.insert(&n.saturating_sub(MOST_SEEN / 4)));
        }
        assert!(seen.newer.len() <= MOST_SEEN && seen.older.len() <= MOST_SEEN);
    }

    /// Judges a line of a case: `. changes ok run_command took=2s {"command": "make"} => exit 0`. It begins with the
    /// expected verdict: `.` for progress, `?` for a hint, `!` for a stop. `ok` with a result that begins with an exit
    /// code is a failure, unless that is 0. `\n` in a result is a line break. Between the name and the arguments may
    /// stand `took=5s`, the time that passed; `file=NAME:STATE`, the content of a file after the call; and `beside`, if
    /// the call is of the same step as the one before.
    fn verdict_of_line(detector: &mut LoopDetector, step: &mut u64, line: &str) -> (char, char) {
        let mut words = line.splitn(2, ' ');
        let expected = words.next().and_then(|word| word.chars().next()).expect("a line begins with its verdict");
        let rest = words.next().unwrap_or_default();
        let (head, rest) = rest.split_once('{').expect("arguments are an object");
        let (arguments, result) = rest.rsplit_once("} => ").expect("a result follows the arguments");
        let arguments: Value = serde_json::from_str(&format!("{{{arguments}}}")).expect("arguments are JSON");
        let head: Vec<&str> = head.split_whitespace().collect();
        let [effect, status, name, facts @ ..] = &head[..] else { panic!("{line}") };
        let end = match (*status, result.strip_prefix("exit ")) {
            ("ok", Some(code)) if !code.starts_with('0') => ObservedEnd::Failed,
            ("ok", _) => ObservedEnd::Succeeded,
            ("error" | "denied", _) => ObservedEnd::Refused,
            _ => panic!("{line}"),
        };
        let (mut took, mut files, mut is_beside) = (Duration::ZERO, Vec::new(), false);
        for fact in facts {
            match fact.split_once('=') {
                Some(("took", time)) => {
                    let seconds = time.strip_suffix('s').and_then(|number| number.parse().ok());
                    took = Duration::from_secs_f64(seconds.expect("a number of seconds"));
                }
                Some(("file", state)) => files.push(hash_value(&state)),
                None if *fact == "beside" => is_beside = true,
                _ => panic!("{fact} in {line}"),
            }
        }
        *step += u64::from(!is_beside);
        let is_wait = *name == "background" || arguments["command"].as_str().is_some_and(waits);
        let observed = ObservedCall {
            step: *step,
            name,
            arguments: &arguments,
            result: &result.replace("\\n", "\n"),
            end,
            changes: *effect == "changes",
            waited: is_wait.then_some(took),
            files: &files,
        };
        assert!(["reads", "changes"].contains(effect), "{line}");
        (mark(detector.observe(observed)), expected)
    }

    #[test]
    fn honest_work_is_never_taken_for_a_loop_and_no_loop_is_missed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/loop_cases");
        let (mut work, mut loops) = (0, 0);
        for entry in std::fs::read_dir(folder).expect("the folder of cases is there") {
            let path = entry.expect("a file").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let case = std::fs::read_to_string(&path).expect("a case is text");
            let (mut detector, mut step) = (LoopDetector::new(12, 3), 0);
            let lines = case.lines().filter(|line| !line.starts_with('#'));
            let (seen, expected): (String, String) =
                lines.map(|line| verdict_of_line(&mut detector, &mut step, line)).unzip();
            assert_eq!(seen, expected, "{name}");
            if name.starts_with("loop_") {
                assert!(seen.contains('?') && seen.ends_with('!'), "{name}: hinted, then stopped: {seen}");
                loops += 1;
            } else {
                assert!(name.starts_with("work_") && seen.chars().all(|verdict| verdict == '.'), "{name}: {seen}");
                work += 1;
            }
        }
        assert!(work >= 45 && loops >= 30, "{work} cases of work, {loops} loops");
    }
}
