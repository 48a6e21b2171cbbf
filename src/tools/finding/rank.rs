//! Ranks texts by the words of a query: Okapi BM25. Pure, and cheap enough to recompute for every query.

use std::collections::HashMap;

/// BM25's k1, which limits how much repetitions of a word count, and b, which penalises long texts.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

/// The positions of the texts that have any word of the query, best first.
pub fn rank_texts(query: &str, texts: &[String]) -> Vec<usize> {
    let documents: Vec<HashMap<String, f64>> = texts.iter().map(|text| count_words(text)).collect();
    let lengths: Vec<f64> = documents.iter().map(|words| words.values().sum()).collect();
    let count = to_float(documents.len());
    let mean = (lengths.iter().sum::<f64>() / count.max(1.0)).max(1.0);
    let mut wanted: Vec<String> = split_words(query).collect();
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

/// Words in lower case, with names split (`create_issue`, `createIssue`) and plurals as singulars.
fn split_words(text: &str) -> impl Iterator<Item = String> {
    let mut apart = String::with_capacity(text.len() + 16);
    let mut before_is_small = false;
    for c in text.chars() {
        if before_is_small && c.is_uppercase() {
            apart.push(' ');
        }
        before_is_small = c.is_lowercase();
        apart.push(c);
    }
    let words: Vec<String> = apart
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .map(|word| match word.strip_suffix('s') {
            Some(singular) if singular.len() > 2 && !singular.ends_with('s') => singular.to_owned(),
            _ => word,
        })
        .collect();
    words.into_iter()
}

#[expect(clippy::cast_precision_loss, reason = "no list of tools is so long")]
fn to_float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::rank_texts;

    #[test]
    fn the_best_comes_first_and_strangers_do_not_come() {
        let texts = [
            "create_issue Opens an issue in the tracker. title body labels",
            "list_issues Lists the issues of a repository. state",
            "deploy_service Deploys a service to a cluster. service cluster",
            "weather Tells the weather of a city. city",
            "createBranch Makes a branch of a repository. name",
        ]
        .map(str::to_owned);
        let table: [(&str, &[usize]); 7] = [
            ("open a new issue with a title", &[0]),
            ("issues", &[1, 0]),
            ("list issues", &[1, 0]),
            ("WEATHER city", &[3]),
            ("branch", &[4]),
            ("repository branch", &[4, 1]),
            ("quantum", &[]),
        ];
        for (query, expected) in table {
            let found = rank_texts(query, &texts);
            assert!(found.starts_with(expected), "{query}: {found:?}, expected {expected:?} first");
        }
        assert!(
            rank_texts("quantum", &texts).is_empty()
                && rank_texts("", &texts).is_empty()
                && rank_texts("x", &[]).is_empty()
        );
    }
}
