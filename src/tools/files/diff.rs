//! The changes of a write: counted for the summary, and shown to the person who must allow it.

use std::time::Duration;

use similar::{ChangeTag, TextDiff, TextDiffConfig};

/// After this time the differ settles for a coarser answer.
const DEADLINE: Duration = Duration::from_millis(300);
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

/// A unified diff with three lines of context. All of it: a person allows it.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    let diff = lines(old, new);
    diff.unified_diff().context_radius(3).header(&format!("a/{name}"), &format!("b/{name}")).to_string()
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
    fn a_large_diff_is_whole() {
        let new: String = "line\r\n".repeat(5000);
        assert_eq!(unified("x", "", &new).matches("+line\r\n").count(), 5000);
        let long = "中".repeat(100_000);
        assert!(unified("x", "", &long).contains(&long));
    }
}
