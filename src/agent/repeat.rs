//! Loop detection: the same call with the same arguments *and the same result*, repeatedly, or a cycle of such
//! calls, without progress in between.
//!
//! Two things are progress. First, a result that changes: honest polling is never stopped. Second, a successful
//! call that changes something and was not made before in this turn: it resets the count, so edit → check → edit →
//! check is work although the check returns the same. An edit that is undone and repeated is not a new call, so
//! going back and forth is detected.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// The longest cycle of calls that is recognised.
const LONGEST_CYCLE: usize = 5;

/// Observes the calls of one turn.
#[derive(Debug)]
pub struct RepeatDetector {
    window: usize,
    threshold: usize,
    /// The calls since the last progress with their results, newest last.
    history: VecDeque<u64>,
    /// The calls that changed something, without their results.
    changes: HashSet<u64>,
}

/// A finished call.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    pub name: &'a str,
    pub arguments: &'a Value,
    pub result: &'a str,
    pub succeeded: bool,
    /// True if the call may write or run something: its permission is above `read`.
    pub changes: bool,
}

/// A judgement of the calls so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    Progress,
    /// The model should be told, once each time the threshold is reached.
    Hint {
        times: usize,
    },
    /// The model was told and did not change course.
    Stop {
        times: usize,
    },
}

impl RepeatDetector {
    /// Repeating `threshold` times within the last `window` calls is a hint; twice that stops. A threshold of 0
    /// disables both.
    #[must_use]
    pub fn new(window: usize, threshold: usize) -> Self {
        Self { window, threshold, history: VecDeque::new(), changes: HashSet::new() }
    }

    /// Records a finished call and judges the calls so far.
    pub fn observe(&mut self, observed: Observed<'_>) -> Repetition {
        if self.threshold == 0 {
            return Repetition::Progress;
        }
        let call = call(observed.name, observed.arguments);
        if observed.changes && observed.succeeded && self.changes.insert(call) {
            self.history.clear();
        }
        self.history.push_back(digest(&(call, observed.succeeded, observed.result)));
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

    /// The number of times that the newest cycle of up to [`LONGEST_CYCLE`] calls repeats without a break.
    fn longest_run_of_cycles(&self) -> usize {
        let newest_first: Vec<u64> = self.history.iter().rev().copied().collect();
        (2..=LONGEST_CYCLE).map(|length| whole_repeats(&newest_first, length)).max().unwrap_or(0)
    }
}

/// The number of times that the first `length` entries repeat at the front.
fn whole_repeats(calls: &[u64], length: usize) -> usize {
    let mut groups = calls.chunks_exact(length);
    let Some(first) = groups.next() else { return 0 };
    1 + groups.take_while(|group| *group == first).count()
}

/// A hash of a call without its result. The order of its keys and the spacing of a command do not matter;
/// everywhere else, spaces are content.
fn call(name: &str, arguments: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    normalise("", arguments, &mut hasher);
    hasher.finish()
}

/// Arguments whose value is a shell line.
const COMMANDS: &[&str] = &["command", "cmd", "script"];

fn normalise(key: &str, value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::String(text) if COMMANDS.contains(&key) => spaced_once(text).hash(hasher),
        Value::Array(items) => {
            items.len().hash(hasher);
            for item in items {
                normalise(key, item, hasher);
            }
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            sorted.len().hash(hasher);
            for (name, field) in sorted {
                name.hash(hasher);
                normalise(name, field, hasher);
            }
        }
        other => other.to_string().hash(hasher),
    }
}

/// Normalises a command: each run of spaces outside quotes becomes one space, each run of line breaks one line
/// break. A command with a here-document (`<<`) is unchanged.
fn spaced_once(command: &str) -> String {
    if command.contains("<<") {
        return command.to_owned();
    }
    let mut spaced = String::with_capacity(command.len());
    let (mut quote, mut escaped, mut gap) = (None, false, None);
    for c in command.trim().chars() {
        if quote.is_none() && !escaped && c.is_whitespace() {
            gap = if c == '\n' || gap == Some('\n') { Some('\n') } else { Some(' ') };
            continue;
        }
        spaced.extend(gap.take());
        spaced.push(c);
        if escaped {
            escaped = false;
            continue;
        }
        match (quote, c) {
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    spaced
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One letter per call, whose case is the result: `a` and `A` are the same call with different results.
    fn verdicts(calls: &str) -> String {
        let mut detector = RepeatDetector::new(12, 3);
        calls
            .chars()
            .map(|c| mark(detector.observe(read(&c.to_lowercase().to_string(), &c.to_string()))))
            .collect()
    }

    fn read<'a>(name: &'a str, result: &'a str) -> Observed<'a> {
        Observed { name, arguments: &Value::Null, result, succeeded: true, changes: false }
    }

    fn mark(repetition: Repetition) -> char {
        match repetition {
            Repetition::Progress => '.',
            Repetition::Hint { .. } => '?',
            Repetition::Stop { .. } => '!',
        }
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
        assert!((0..50).all(|_| detector.observe(read("a", "")) == Repetition::Progress));
    }

    #[test]
    fn calls_are_the_same_whatever_the_order_of_keys_and_the_spacing_of_commands() {
        for (a, b, same) in [
            (json!({"path": "a", "limit": 1}), json!({"limit": 1, "path": "a"}), true),
            (json!({"command": "ls -l  a"}), json!({"command": " ls\t-l a\n"}), true),
            (json!({"command": "a\n\n  b"}), json!({"command": "a\nb"}), true),
            (json!({"command": "a\nb"}), json!({"command": "a b"}), false),
            (json!({"command": "echo 'a  b'"}), json!({"command": "echo 'a b'"}), false),
            (json!({"command": "echo \"\\\"  b\""}), json!({"command": "echo \"\\\" b\""}), false),
            (json!({"command": "echo \\'  a  b"}), json!({"command": "echo \\' a b"}), true),
            (json!({"command": "cat <<E\n  a\nE"}), json!({"command": "cat <<E\n a\nE"}), false),
            (json!({"path": "a", "content": "  x"}), json!({"path": "a", "content": " x"}), false),
            (json!({"edits": [{"old": "a", "new": "b"}]}), json!({"edits": [{"new": "b", "old": "a"}]}), true),
            (json!([["a"], "b"]), json!([["a", "b"]]), false),
            (json!({"a": "1"}), json!({"a": 1}), false),
        ] {
            assert_eq!(call("t", &a) == call("t", &b), same, "{a} {b}");
        }
        assert_ne!(call("t", &Value::Null), call("u", &Value::Null));
    }

    /// Judges a line of a case: `. changes ok run_command {"command": "make"} => exit 0`. It begins with the
    /// expected verdict: `.` for progress, `?` for a hint, `!` for a stop.
    fn verdict_of_line(detector: &mut RepeatDetector, line: &str) -> (char, char) {
        let mut words = line.splitn(2, ' ');
        let expected = words.next().and_then(|word| word.chars().next()).expect("a line begins with its verdict");
        let rest = words.next().unwrap_or_default();
        let (head, rest) = rest.split_once('{').expect("arguments are an object");
        let (arguments, result) = rest.rsplit_once("} => ").expect("a result follows the arguments");
        let arguments: Value = serde_json::from_str(&format!("{{{arguments}}}")).expect("arguments are JSON");
        let [effect, status, name] = head.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert!(["reads", "changes"].contains(&effect) && ["ok", "error", "denied"].contains(&status), "{line}");
        let (succeeded, changes) = (status == "ok", effect == "changes");
        (mark(detector.observe(Observed { name, arguments: &arguments, result, succeeded, changes })), expected)
    }

    #[test]
    fn honest_work_is_never_taken_for_a_loop_and_no_loop_is_missed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/loop_cases");
        let (mut work, mut loops) = (0, 0);
        for entry in std::fs::read_dir(folder).expect("the folder of cases is there") {
            let path = entry.expect("a file").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let case = std::fs::read_to_string(&path).expect("a case is text");
            let mut detector = RepeatDetector::new(12, 3);
            let lines = case.lines().filter(|line| !line.starts_with('#'));
            let (seen, expected): (String, String) =
                lines.map(|line| verdict_of_line(&mut detector, line)).unzip();
            assert_eq!(seen, expected, "{name}");
            if name.starts_with("loop_") {
                assert!(seen.contains('?') && seen.ends_with('!'), "{name}: hinted, then stopped: {seen}");
                loops += 1;
            } else {
                assert!(name.starts_with("work_") && seen.chars().all(|verdict| verdict == '.'), "{name}: {seen}");
                work += 1;
            }
        }
        assert!(work >= 30 && loops >= 15, "{work} cases of work, {loops} loops");
    }
}
