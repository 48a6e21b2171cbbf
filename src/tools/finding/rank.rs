//! Ranks texts by the words of a query: Okapi BM25 over stems of English words and pairs of Chinese, Japanese and Korean
//! characters. Pure, and cheap enough to recompute for every query.

use std::collections::HashMap;

/// BM25's k1, which limits how much repetitions of a word count, and b, which penalises long texts.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

/// Words that say nothing about which text is meant.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "all", "any", "are", "as", "at", "be", "by", "can", "do", "for", "from", "give", "have",
    "how", "i", "in", "into", "is", "it", "its", "me", "my", "need", "of", "on", "or", "our", "please", "some",
    "that", "the", "their", "them", "this", "to", "us", "want", "we", "what", "which", "will", "with", "you",
    "your",
];

/// Endings that a stem has not, the longest first, each with what it is replaced by.
const ENDINGS: &[(&str, &str)] = &[
    ("ations", ""),
    ("ation", ""),
    ("ators", ""),
    ("ating", ""),
    ("ator", ""),
    ("ated", ""),
    ("ates", ""),
    ("ate", ""),
    ("ments", ""),
    ("ment", ""),
    ("ities", ""),
    ("ings", ""),
    ("ions", ""),
    ("ing", ""),
    ("ies", "y"),
    ("ion", ""),
    ("ity", ""),
    ("ers", ""),
    ("ors", ""),
    ("ed", ""),
    ("er", ""),
    ("or", ""),
    ("es", ""),
    ("ly", ""),
    ("s", ""),
];

/// The fewest characters that a stem keeps.
const SHORTEST_STEM: usize = 3;

/// The positions of the texts that have any word of the query, best first.
pub fn rank_texts<T: AsRef<str>>(query: &str, texts: &[T]) -> Vec<usize> {
    let documents: Vec<HashMap<String, f64>> = texts.iter().map(|text| count_words(text.as_ref())).collect();
    let lengths: Vec<f64> = documents.iter().map(|words| words.values().sum()).collect();
    let count = to_float(documents.len());
    let mean = (lengths.iter().sum::<f64>() / count.max(1.0)).max(1.0);
    let mut wanted = split_words(query);
    wanted.sort();
    wanted.dedup();
    let weights: Vec<(String, f64)> = wanted
        .into_iter()
        .map(|word| {
            let holding = to_float(documents.iter().filter(|document| document.contains_key(&word)).count());
            let weight = ((count - holding + 0.5) / (holding + 0.5)).ln_1p();
            (word, weight)
        })
        .collect();
    let score = |position: usize| -> f64 {
        let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * lengths[position] / mean;
        let of_word = |(word, weight): &(String, f64)| {
            let times = documents[position].get(word).copied().unwrap_or_default();
            weight * times * (SATURATION + 1.0) / (times + SATURATION * length)
        };
        weights.iter().map(of_word).sum()
    };
    let mut scored: Vec<(f64, usize)> = (0..documents.len())
        .map(|position| (score(position), position))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.into_iter().map(|(_, position)| position).collect()
}

fn count_words(text: &str) -> HashMap<String, f64> {
    let mut counts = HashMap::new();
    for word in split_words(text) {
        *counts.entry(word).or_default() += 1.0;
    }
    counts
}

/// The words of a text that count, in the form that is compared. Names are split (`create_issue`, `createIssue`); texts
/// without spaces become pairs of characters.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut run) = (String::new(), Vec::new());
    let mut before_is_small = false;
    for c in text.chars().chain([' ']) {
        let is_written_together = matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{3ffff}');
        if is_written_together || !c.is_alphanumeric() || (before_is_small && c.is_uppercase()) {
            words.extend(stem_word(&std::mem::take(&mut word)));
        }
        if is_written_together {
            run.push(c);
        } else {
            push_pairs(&std::mem::take(&mut run), &mut words);
            word.extend(Some(c).filter(|c| c.is_alphanumeric()));
        }
        before_is_small = c.is_lowercase() || c.is_ascii_digit();
    }
    words
}

fn push_pairs(run: &[char], words: &mut Vec<String>) {
    match run {
        [] => {}
        [one] => words.push(one.to_string()),
        _ => words.extend(run.windows(2).map(|pair| pair.iter().collect::<String>())),
    }
}

/// The stem of a word in lower case; `None` for one that says nothing.
fn stem_word(word: &str) -> Option<String> {
    let word = word.to_lowercase();
    if word.is_empty() || STOP_WORDS.contains(&word.as_str()) {
        return None;
    }
    let is_long =
        |stem: &str| stem.chars().count() >= SHORTEST_STEM && stem.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    let cut = |(ending, instead): &(&str, &str)| {
        let stem =
            word.strip_suffix(ending).filter(|stem| is_long(stem) && !(*ending == "s" && stem.ends_with('s')))?;
        Some(format!("{stem}{instead}"))
    };
    let mut stem = ENDINGS.iter().find_map(cut).unwrap_or_else(|| word.clone());
    let last_two: Vec<char> = stem.chars().rev().take(2).collect();
    if stem.len() < word.len() && matches!(last_two[..], [a, b] if a == b && !"aeioulsz".contains(a)) {
        stem.pop();
    }
    if is_long(stem.trim_end_matches('e')) {
        stem.truncate(stem.trim_end_matches('e').len());
    }
    Some(stem)
}

fn to_float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::{rank_texts, stem_word};

    #[test]
    fn the_forms_of_a_word_have_one_stem() {
        for forms in [
            &["deploy", "deploys", "deployed", "deploying", "deployment", "deployments"][..],
            &["create", "creates", "created", "creating", "creation", "creator"],
            &["query", "queries"],
            &["run", "runs", "running"],
            &["issue", "issues"],
            &["delete", "deletes", "deleted", "deletion"],
            &["translate", "translation", "translating"],
            &["install", "installs", "installation", "installed"],
            &["configure", "configuration"],
            &["state", "states"],
        ] {
            let stems: Vec<Option<String>> = forms.iter().map(|form| stem_word(form)).collect();
            assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{forms:?}: {stems:?}");
        }
        assert_eq!(stem_word("The"), None);
        assert_eq!(stem_word("class").as_deref(), Some("class"));
    }

    #[test]
    fn the_best_comes_first_and_strangers_do_not_come() {
        let texts = [
            "create_issue Opens an issue in the tracker. title body labels",
            "list_issues Lists the issues of a repository. state",
            "deploy_service Deploys a service to a cluster. service cluster",
            "weather Tells the weather of a city. city",
            "createBranch Makes a branch of a repository. name",
            "translate_text 把文字翻译成另一种语言",
        ]
        .map(str::to_owned);
        let table: [(&str, &[usize]); 10] = [
            ("open a new issue with a title", &[0]),
            ("list issues", &[1, 0]),
            ("WEATHER city", &[3]),
            ("branch", &[4]),
            ("repository branch", &[4, 1]),
            ("the deployment of our services", &[2]),
            ("请帮我翻译这段文字", &[5]),
            ("翻译", &[5]),
            ("the of and with", &[]),
            ("quantum", &[]),
        ];
        for (query, expected) in table {
            let found = rank_texts(query, &texts);
            assert!(found.starts_with(expected), "{query}: {found:?}, expected {expected:?} first");
            assert!(!expected.is_empty() || found.is_empty(), "{query}: {found:?}");
        }
        assert!(rank_texts("", &texts).is_empty() && rank_texts::<&str>("x", &[]).is_empty());
    }
}
