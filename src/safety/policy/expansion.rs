//! The names that a word stands for: what its braces make, and what its patterns match now, as a shell expands them.

use std::cell::Cell;
use std::ops::Range;
use std::path::Path;

use crate::base::text::GlobPattern;
use crate::files::disk::Dir;

/// The longest path that a system opens, in bytes.
pub(super) const LONGEST_PATH: usize = 4096;
/// The most names that the words of a line are followed to.
const MOST_NAMES: usize = 2_000;
const PATTERN: [char; 3] = ['*', '?', '['];
const BRACES: [char; 2] = ['{', '}'];

/// Expands the words of one line.
pub(super) struct WordExpander<'d> {
    dir: &'d Path,
    /// The names that are left to the line.
    left: Cell<usize>,
}

impl<'d> WordExpander<'d> {
    pub fn new(dir: &'d Path) -> Self {
        Self { dir, left: Cell::new(MOST_NAMES) }
    }

    /// The names that a word stands for. A pattern is among them before its names, as it may be a name of its own, or
    /// one in a protected directory that is not there yet.
    pub fn expand(&self, word: &str) -> Vec<String> {
        if !word.contains(PATTERN) && !word.contains(BRACES) {
            return vec![word.to_owned()];
        }
        self.expand_whole(word).unwrap_or_else(|| list_fixed(word))
    }

    /// `None` if that is too much, or not understood.
    fn expand_whole(&self, word: &str) -> Option<Vec<String>> {
        let mut names = Vec::new();
        for word in self.expand_braces(word)? {
            let matched = if word.contains(PATTERN) { self.match_names(&word)? } else { Vec::new() };
            names.push(word);
            names.extend(matched);
        }
        Some(names)
    }

    fn expand_braces(&self, word: &str) -> Option<Vec<String>> {
        let (mut open, mut made) = (vec![word.to_owned()], Vec::new());
        while let Some(word) = open.pop().filter(|word| word.len() <= LONGEST_PATH) {
            let Some((group, choices)) = find_braces(&word) else {
                made.push(word);
                continue;
            };
            // The first is taken first: which name is the last one may matter.
            for choice in choices.iter().rev() {
                self.take_name()?;
                open.push(format!("{}{choice}{}", &word[..group.start], &word[group.end..]));
            }
        }
        made.retain(|word| !word.is_empty());
        (open.is_empty() && !made.iter().any(|word| word.contains(BRACES))).then_some(made)
    }

    fn match_names(&self, pattern: &str) -> Option<Vec<String>> {
        let mut found = vec![String::new()];
        for (at, part) in pattern.split('/').enumerate() {
            let between = if at == 0 { "" } else { "/" };
            if !part.contains(PATTERN) {
                for path in &mut found {
                    path.extend([between, part]);
                }
                continue;
            }
            let glob = GlobPattern::word(part).ok().filter(|_| !part.contains("[:"))?;
            let mut matched = Vec::new();
            for path in found {
                let within = self.dir.join(format!("{path}{between}"));
                for entry in Dir::open(&within).and_then(|dir| dir.entries()).unwrap_or_default() {
                    let name = entry.name.to_string_lossy();
                    // Only a pattern that says so matches a hidden name.
                    if glob.matches(&name) && (!name.starts_with('.') || part.starts_with('.')) {
                        self.take_name()?;
                        matched.push(format!("{path}{between}{name}"));
                    }
                }
            }
            found = matched;
        }
        Some(found)
    }

    fn take_name(&self) -> Option<()> {
        self.left.set(self.left.get().checked_sub(1)?);
        Some(())
    }
}

/// The first braces that are closed and make several words, and what they make in their place.
fn find_braces(word: &str) -> Option<(Range<usize>, Vec<String>)> {
    let mut open: Vec<Vec<usize>> = Vec::new();
    for (at, c) in word.char_indices() {
        match c {
            '{' => open.push(vec![at]),
            ',' => {
                if let Some(marks) = open.last_mut() {
                    marks.push(at);
                }
            }
            '}' => {
                let Some(mut marks) = open.pop() else { continue };
                let begin = marks[0];
                marks.push(at);
                let choices: Vec<String> = match marks.len() {
                    2 => list_letters(&word[begin + 1..at]),
                    _ => marks.windows(2).map(|pair| word[pair[0] + 1..pair[1]].to_owned()).collect(),
                };
                if !choices.is_empty() {
                    return Some((begin..at + 1, choices));
                }
            }
            _ => {}
        }
    }
    None
}

/// The letters of `a..e`. A step leaves some out, which does not matter here.
fn list_letters(range: &str) -> Vec<String> {
    let ends: Vec<&str> = range.split("..").collect();
    let ([from, to] | [from, to, _]) = ends[..] else { return Vec::new() };
    let (&[from], &[to]) = (from.as_bytes(), to.as_bytes()) else { return Vec::new() };
    let letters = (from.min(to)..=from.max(to)).map(|letter| char::from(letter).to_string());
    if from <= to { letters.collect() } else { letters.rev().collect() }
}

/// What a word that is not followed may name by the text that is fixed in it.
fn list_fixed(word: &str) -> Vec<String> {
    let pieces = word.split(['*', '?', '[', ']', '{', '}', ',']);
    let mut names: Vec<String> = pieces.filter(|piece| !piece.is_empty()).map(str::to_owned).collect();
    let loose = match (word.find(['{', '[']), word.rfind(['}', ']'])) {
        (Some(from), Some(to)) if from < to => format!("{}*{}", &word[..from], &word[to + 1..]),
        _ => word.to_owned(),
    };
    let may_be = |part: &str| {
        (part.starts_with('.') || word.contains('{') && !part.trim_matches('*').is_empty())
            && GlobPattern::word(part).is_ok_and(|glob| glob.matches(".git"))
    };
    let is_named = names.iter().any(|name| name.split('/').any(|part| part == ".git"));
    names.push(word.to_owned());
    if is_named || loose.split('/').any(may_be) {
        names.push(".git".to_owned());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_make_words_until_the_line_has_too_many() {
        for (word, expected) in [
            (".git{,x}", ".git .gitx"),
            ("a{b,{c,d}e}", "ab ace ab ade"),
            ("{c..a}", "c b a"),
            ("{,}", ""),
            ("x{1..20}", "x 1..20 x{1..20}"),
            ("{a,.git/x{y}}", "a .git/x y {a,.git/x{y}} .git"),
            (".[[:alpha:]]it", ". :alpha: it .[[:alpha:]]it .git"),
        ] {
            let expander = WordExpander::new(Path::new("/nowhere"));
            assert_eq!(expander.expand(word).join(" "), expected, "{word}");
        }
        let expander = WordExpander::new(Path::new("/nowhere"));
        let many = "{a..z}".repeat(3);
        assert!(expander.expand(&many).len() < MOST_NAMES);
        assert_eq!(expander.expand("{a,b}"), ["a", "b", "{a,b}"], "the rest of the line is not followed");
    }
}
