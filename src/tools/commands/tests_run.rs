//! Counts the tests that a command ran, from the last lines of its test runner.

/// The tests of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestsRun {
    pub passed: u64,
    pub failed: u64,
}

/// The beginnings of the lines in which runners count their tests.
const BEGINNINGS: &[&str] = &["Tests:", "Tests ", "Summary ["];

/// The counts in a complete output; `None` if no known runner wrote any. `cargo test` counts each of its programs, and
/// these are added; for other runners the last line counts.
pub fn tests_run(output: &str) -> Option<TestsRun> {
    let programs: Vec<TestsRun> =
        output.lines().filter_map(|line| line.strip_prefix("test result: ")).filter_map(count_tests).collect();
    if !programs.is_empty() {
        return Some(programs.iter().fold(TestsRun::default(), |sum, run| TestsRun {
            passed: sum.passed.saturating_add(run.passed),
            failed: sum.failed.saturating_add(run.failed),
        }));
    }
    output.lines().rev().find_map(|line| {
        // pytest draws a rule around its line: `=== 214 passed in 3.20s ===`.
        let line = line.trim().trim_matches('=').trim();
        let is_of_pytest = line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(" in ");
        let is_known = is_of_pytest || BEGINNINGS.iter().any(|beginning| line.starts_with(beginning));
        is_known.then(|| count_tests(line)).flatten()
    })
}

/// `213 passed`, `1 failed` within a line, in any order.
fn count_tests(line: &str) -> Option<TestsRun> {
    let words: Vec<&str> = line.split([' ', ',', ';', '|', '.']).filter(|word| !word.is_empty()).collect();
    let before = |name| words.windows(2).find(|pair| pair[1] == name)?[0].parse::<u64>().ok();
    let (passed, failed) = (before("passed"), before("failed"));
    (passed.is_some() || failed.is_some())
        .then(|| TestsRun { passed: passed.unwrap_or(0), failed: failed.unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_known_runner_is_read() {
        for (output, expected) in [
            (
                "running 2 tests\ntest result: ok. 200 passed; 0 failed; 1 ignored\n\ntest result: FAILED. 13 passed; 1 \
                 failed; 0 ignored; finished in 0.02s\n",
                Some((213, 1)),
            ),
            ("     Summary [   0.5s] 214 tests run: 213 passed, 1 failed, 3 skipped\n", Some((213, 1))),
            ("====== 1 failed, 213 passed, 2 warnings in 3.20s ======\n", Some((213, 1))),
            ("214 passed in 3.20s\n", Some((214, 0))),
            ("Tests:       1 failed, 213 passed, 214 total\nTime:  2 s\n", Some((213, 1))),
            (" Tests  213 passed | 1 failed (214)\n", Some((213, 1))),
            ("3 failed in 1.02s\n", Some((0, 3))),
            ("3 passed by\n", None),
            ("", None),
            ("all is well, 3 passed by\n", None),
            ("12 files\n", None),
            ("99999999999999999999999 passed in 1s\n", None),
        ] {
            let expected = expected.map(|(passed, failed)| TestsRun { passed, failed });
            assert_eq!(tests_run(output), expected, "{output}");
        }
    }
}
