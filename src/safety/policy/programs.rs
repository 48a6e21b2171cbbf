//! The one table of programs (`programs.txt`), which every rule reads: a row is a fact, the programs that it is about,
//! and words.

use std::collections::HashMap;
use std::sync::LazyLock;

const TABLE: &str = include_str!("programs.txt");

/// The names and the words of each row, by the fact. A command asks some dozen times, so the table is split once.
static ROWS: LazyLock<HashMap<&str, Vec<(&str, &str)>>> = LazyLock::new(|| {
    let mut rows: HashMap<_, Vec<_>> = HashMap::new();
    for (fact, rest) in TABLE.lines().filter_map(|row| row.split_once(' ')).filter(|(fact, _)| *fact != "#") {
        rows.entry(fact).or_default().push(rest.split_once(' ').unwrap_or((rest, "")));
    }
    rows
});

/// The words of each row with this fact about a program.
pub fn find_rows(fact: &str, name: &str) -> impl Iterator<Item = &'static str> {
    let rows = ROWS.get(fact).into_iter().flatten();
    rows.filter_map(move |(names, words)| names.split('|').any(|known| known == name).then_some(*words))
}

/// True if the table has this fact about a program.
pub fn has_row(fact: &str, name: &str) -> bool {
    find_rows(fact, name).next().is_some()
}

/// True if a word is one of `a|b`, where a last `*` stands for any ending, and `-*x` for letters of flags up to this one.
pub fn fits_word(expected: &str, word: &str) -> bool {
    let fits = |one: &str| match one.strip_prefix("-*").filter(|letter| !letter.is_empty()) {
        Some(letter) => {
            let flags = word.strip_prefix('-').and_then(|flags| flags.split_once(letter));
            flags.is_some_and(|(before, _)| before.chars().all(|c| c.is_ascii_alphabetic()))
        }
        None => one.strip_suffix('*').map_or(one == word, |begins| word.starts_with(begins)),
    };
    expected.split('|').any(fits)
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn every_row_says_something_that_a_rule_asks_for() {
        let with_words = [
            "only-reads", "reads", "network", "files", "writes", "no-objects", "prints", "harmless", "plain",
            "valued", "wraps", "interprets", "filters", "takes-code",
        ];
        let without = [
            "copies", "takes-dir", "helped", "names-none", "pattern", "delegates", "runs", "shell", "opaque",
            "evaluates", "assigns", "begins", "code-variable",
        ];
        for row in TABLE.lines().filter(|row| !row.is_empty() && !row.starts_with('#')) {
            let words: Vec<&str> = row.split(' ').collect();
            let is_known =
                if words.len() > 2 { with_words.contains(&words[0]) } else { without.contains(&words[0]) };
            assert!(is_known && !words.contains(&""), "{row}");
            assert!(words[0] != "wraps" || words.len() == 7 && words[5].parse::<usize>().is_ok(), "{row}");
        }
        let is_there = |fact: &&str| TABLE.lines().any(|row| row.starts_with(&format!("{fact} ")));
        assert!(with_words.iter().chain(&without).all(is_there));
    }
}
