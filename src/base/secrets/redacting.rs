//! Redacts text as it arrives, in pieces of whole lines: a private key spans many of them.

use super::redact::{MASK, Redactor};
use super::shapes::{self, Goes};

/// Remembers from piece to piece whether a private key has begun.
#[derive(Debug)]
pub struct Redacting<'r> {
    redactor: &'r Redactor,
    /// `Some` within a key: true if a line of base 64 has come by now.
    in_key: Option<bool>,
}

impl<'r> Redacting<'r> {
    /// Starts at the beginning of a text.
    pub fn new(redactor: &'r Redactor) -> Self {
        Self { redactor, in_key: None }
    }

    /// The next piece as it may be shown; empty if all of it belongs to a key.
    pub fn push(&mut self, piece: &str) -> String {
        let mut rest = piece;
        if let Some(seen) = self.in_key.take() {
            match shapes::follow_key(piece, seen) {
                Goes::Until(end) => rest = &piece[end..],
                Goes::On(seen) => {
                    self.in_key = Some(seen);
                    return String::new();
                }
            }
        }
        let Some((begin, seen)) = shapes::open_key(rest) else {
            return self.redactor.redact(rest).into_owned();
        };
        self.in_key = Some(seen);
        format!("{}{MASK}\n", self.redactor.redact(&rest[..begin]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stays_hidden_however_it_is_cut() {
        let line = "a1B2c3D4".repeat(8);
        let key = format!("-----BEGIN PRIVATE KEY-----\n{line}\n{line}\nab==\n-----END PRIVATE KEY-----\n");
        let text = format!("before\n{key}after\n{key}end\n");
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (size, first) in (1..=lines.len()).flat_map(|size| (0..size).map(move |first| (size, first))) {
            let redactor = Redactor::default();
            let mut redacting = Redacting::new(&redactor);
            let (opening, others) = lines.split_at(first);
            let pieces = std::iter::once(opening).chain(others.chunks(size));
            let shown: String = pieces.map(|piece| redacting.push(&piece.concat())).collect();
            assert!(!shown.contains("a1B2") && !shown.contains("ab=="), "{size}: {shown}");
            for kept in ["before\n", "after\n", "end\n"] {
                assert!(shown.contains(kept), "{size}: {shown}");
            }
        }
    }

    #[test]
    fn a_beginning_alone_hides_nothing_else() {
        let redactor = Redactor::default();
        let mut redacting = Redacting::new(&redactor);
        let shown: String = ["grep -----BEGIN PRIVATE KEY-----\n", "ok\n", "three matches\n"]
            .map(|piece| redacting.push(piece))
            .concat();
        assert!(shown.ends_with("ok\nthree matches\n"), "{shown}");
    }
}
