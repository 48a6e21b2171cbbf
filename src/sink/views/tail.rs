//! The last lines of a command's output while it runs.

use std::collections::VecDeque;

/// The lines that are kept.
const LINES: usize = 5;
/// The longest line that is waited for, in bytes.
const LONGEST_LINE: usize = 4096;

/// The last lines that say something, the unfinished one among them.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    whole: VecDeque<String>,
    partial: String,
}

impl Tail {
    /// Takes a piece of output.
    pub fn hear(&mut self, chunk: &str) {
        for piece in chunk.split_inclusive('\n') {
            self.partial.push_str(piece);
            if !piece.ends_with('\n') && self.partial.len() <= LONGEST_LINE {
                continue;
            }
            let line = std::mem::take(&mut self.partial);
            if !line.trim().is_empty() {
                self.whole.push_back(line);
            }
            while self.whole.len() > LINES {
                self.whole.pop_front();
            }
        }
    }

    /// The lines, oldest first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let partial = Some(&self.partial).filter(|partial| !partial.trim().is_empty());
        let all: Vec<&String> = self.whole.iter().chain(partial).collect();
        let last = &all[all.len().saturating_sub(LINES)..];
        last.iter().map(|line| line.trim_end_matches(['\n', '\r']).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_in_whatever_pieces_they_come() {
        for (chunks, expected) in [
            (vec![""], vec![]),
            (vec!["one\ntwo\n"], vec!["one", "two"]),
            (vec!["on", "e\n\n \ntw"], vec!["one", "tw"]),
            (vec!["1\n2\n3\n", "4\n5\n6\r\n", "7"], vec!["3", "4", "5", "6", "7"]),
        ] {
            let mut tail = Tail::default();
            for chunk in &chunks {
                tail.hear(chunk);
            }
            assert_eq!(tail.lines(), expected, "{chunks:?}");
        }
        let mut tail = Tail::default();
        for _ in 0..3000 {
            tail.hear("1234");
        }
        assert!(tail.lines().iter().map(String::len).sum::<usize>() < 5 * (LONGEST_LINE + 8));
        assert_eq!(tail.lines().len(), 3);
    }
}
