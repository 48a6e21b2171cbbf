//! Fuzzy matching of paths: finds the paths that contain the given letters in order, the best matches first.
//!
//! Letters score higher at the start of a name or of a word in it, next to one another, and in the file name itself.
//! ASCII letters are compared without case.

use std::cmp::Reverse;

const MATCH: i32 = 16;
const CONSECUTIVE: i32 = 12;
/// For a letter at the start of a directory or file name.
const NAME_START: i32 = 12;
/// For a letter at the start of a word within a name.
const WORD_START: i32 = 8;
/// The penalty for each letter between two that match, up to `WIDEST_GAP` letters.
const GAP: i32 = 2;
const WIDEST_GAP: i32 = 8;
/// If all letters are in the file name.
const IN_FILE_NAME: i32 = 40;
/// If the path begins with the query, or the query is the file name with or without its extension.
const EXACT: i32 = 60;
/// One point is subtracted for this many bytes of a path, so shorter paths win among equal matches.
const BYTES_PER_POINT: usize = 4;

/// Returns the best matches of `query` in `paths`, at most `most`, the best first.
pub fn find_best<'a, P: AsRef<str>>(query: &str, paths: &'a [P], most: usize) -> Vec<&'a str> {
    let query = query.to_ascii_lowercase();
    let scored = paths.iter().filter_map(|path| {
        let path = path.as_ref();
        score_path(query.as_bytes(), path).map(|score| (Reverse(score), path.len(), path))
    });
    let mut found: Vec<(Reverse<i32>, usize, &str)> = scored.collect();
    if found.len() > most && most > 0 {
        found.select_nth_unstable(most - 1);
        found.truncate(most);
    }
    found.sort_unstable();
    found.into_iter().take(most).map(|(_, _, path)| path).collect()
}

/// The score of a path for `query`, which is in lower case; `None` if the path does not match.
fn score_path(query: &[u8], path: &str) -> Option<i32> {
    let bytes = path.as_bytes();
    let name = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let length = i32::try_from(bytes.len() / BYTES_PER_POINT).unwrap_or(i32::MAX);
    let count = |(from, to)| count_points(query, bytes, from, to);
    let in_name = find_window(query, bytes, name).map(|window| count(window) + IN_FILE_NAME);
    let matched = in_name.or_else(|| find_window(query, bytes, 0).map(count))?;
    let stem = bytes[name..].split(|byte| *byte == b'.').next().unwrap_or_default();
    let is_exact =
        starts_with(bytes, query) || stem.eq_ignore_ascii_case(query) || bytes[name..].eq_ignore_ascii_case(query);
    Some(matched + if is_exact { EXACT } else { 0 } - length)
}

fn starts_with(bytes: &[u8], query: &[u8]) -> bool {
    bytes.get(..query.len()).is_some_and(|start| start.eq_ignore_ascii_case(query))
}

/// The bounds of a short part of `bytes`, starting at `from` or later, that contains all letters in order.
fn find_window(query: &[u8], bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let end = find_letters(query.iter(), bytes, from..bytes.len())? + 1;
    // Search back from the end: the first match of a letter may be far before the others.
    Some((find_letters(query.iter().rev(), bytes, (from..end).rev())?, end))
}

/// The place of the last of these letters, if they follow one another in the `places` of `bytes`.
fn find_letters<'q>(
    letters: impl Iterator<Item = &'q u8>,
    bytes: &[u8],
    mut places: impl Iterator<Item = usize>,
) -> Option<usize> {
    let mut last = None;
    for letter in letters {
        last = Some(places.find(|at| bytes[*at].to_ascii_lowercase() == *letter)?);
    }
    last
}

/// The points of the letters in a window.
fn count_points(query: &[u8], bytes: &[u8], from: usize, to: usize) -> i32 {
    let mut points = 0;
    let mut wanted = query.iter().peekable();
    let mut last = None;
    for at in from..to {
        if wanted.next_if(|letter| **letter == bytes[at].to_ascii_lowercase()).is_none() {
            continue;
        }
        points += MATCH;
        points += match at.checked_sub(1).map(|before| bytes[before]) {
            None | Some(b'/') => NAME_START,
            Some(b'_' | b'-' | b'.' | b' ') => WORD_START,
            Some(before) if before.is_ascii_lowercase() && bytes[at].is_ascii_uppercase() => WORD_START,
            Some(_) => 0,
        };
        match last {
            Some(before) if before + 1 == at => points += CONSECUTIVE,
            Some(before) => {
                points -= GAP * i32::try_from(at - before - 1).map_or(WIDEST_GAP, |gap| gap.min(WIDEST_GAP));
            }
            None => {}
        }
        last = Some(at);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::find_best;

    #[test]
    fn the_likeliest_path_comes_first() {
        let paths = [
            "Cargo.toml", "README.md", "docs/main_features.md", "src/agent/mod.rs", "src/main.rs",
            "src/repl/commands/mod.rs", "src/repl/multiline.rs", "tests/it/main.rs", "src/日本語.rs",
        ];
        for (query, first, count) in [
            ("main", "src/main.rs", 3),
            ("srcmain", "src/main.rs", 1),
            ("repcom", "src/repl/commands/mod.rs", 1),
            ("repl/mod", "src/repl/commands/mod.rs", 1),
            ("multi", "src/repl/multiline.rs", 1),
            ("ct", "Cargo.toml", 1),
            ("README", "README.md", 1),
            ("readme", "README.md", 1),
            ("日本", "src/日本語.rs", 1),
            ("tests/", "tests/it/main.rs", 1),
        ] {
            let found = find_best(query, &paths, 10);
            assert_eq!(found.first(), Some(&first), "{query}: {found:?}");
            assert!(found.len() >= count, "{query}: {found:?}");
        }
        assert!(find_best("xyz", &paths, 10).is_empty());
        assert!(find_best("", &paths, 10).is_empty(), "nothing is meant");
        assert_eq!(find_best("s", &paths, 2).len(), 2);
        assert!(find_best("s", &paths, 0).is_empty());
    }
}
