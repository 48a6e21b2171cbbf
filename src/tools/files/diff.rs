//! The changes of a write: counted for the summary, and shown to the person who must allow it.

use std::fmt::Write as _;
use std::time::Duration;

use similar::{ChangeTag, TextDiff, TextDiffConfig};

use crate::text;

use crate::tools::counted;

/// After this time the differ settles for a coarser answer.
const DEADLINE: Duration = Duration::from_millis(300);
/// The most lines that a person can be expected to read before allowing a write.
const MOST_LINES: usize = 400;
const MOST_BYTES: usize = 32 * 1024;

/// Lines added and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub added: u64,
    pub removed: u64,
}

impl Change {
    pub fn between(old: &str, new: &str) -> Self {
        let mut change = Self { added: 0, removed: 0 };
        for piece in lines(old, new).iter_all_changes() {
            match piece.tag() {
                ChangeTag::Insert => change.added += 1,
                ChangeTag::Delete => change.removed += 1,
                ChangeTag::Equal => {}
            }
        }
        change
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "+{} −{} lines", self.added, self.removed)
    }
}

/// A unified diff with three lines of context; what exceeds the bounds is counted.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    let diff = lines(old, new);
    let whole =
        diff.unified_diff().context_radius(3).header(&format!("a/{name}"), &format!("b/{name}")).to_string();
    let mut out = String::new();
    let mut left_out = 0;
    for (index, line) in whole.lines().enumerate() {
        if index < MOST_LINES && out.len() < MOST_BYTES {
            let shown = text::head(line, MOST_BYTES / 8);
            let _ = writeln!(out, "{shown}{}", if shown.len() < line.len() { "…" } else { "" });
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let _ = writeln!(out, "[… {} of the diff not shown]", counted(left_out, "more line", "more lines"));
    }
    out
}

fn lines<'a>(old: &'a str, new: &'a str) -> TextDiff<'a, 'a, str> {
    TextDiffConfig::default().timeout(DEADLINE).diff_lines(old, new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_counted_and_shown() {
        let (old, new) = ("a\nb\nc\n", "a\nB\nc\nd\n");
        assert_eq!(Change::between(old, new).to_string(), "+2 −1 lines");
        assert_eq!(unified("x", old, new), "--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n");
    }

    #[test]
    fn a_large_diff_is_bounded() {
        let new: String = "line\n".repeat(5000);
        let shown = unified("x", "", &new);
        assert_eq!(shown.lines().count(), MOST_LINES + 1);
        assert!(shown.ends_with("[… 4603 more lines of the diff not shown]\n"));
        assert!(unified("x", "", &"中".repeat(100_000)).len() < MOST_BYTES);
    }
}
