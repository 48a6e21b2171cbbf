//! `agent prompt diff`: shows how two versions differ in their text and in the tokens of their parts.

use crate::base::diff::unify;
use crate::prompt::{PartSize, Prompt, PromptContext, Registry};
use crate::template::Value;

use super::super::{CommandOutcome, print_text, print_visible, tables};

pub(super) fn print_diff(registry: &Registry, old: &str, new: &str) -> CommandOutcome {
    let [old, new] = [old, new].map(|reference| registry.get(reference));
    let (old, new) = (old?, new?);
    let diff = unify("", &old.whole_text(), &new.whole_text());
    if diff.is_empty() {
        return print_text(format!("{} and {} are identical\n", old.id(), new.id()));
    }
    // The ids of the versions replace the names of files.
    let hunks = diff.lines().skip(2).fold(String::new(), |text, line| text + line + "\n");
    let sample = PromptContext::sample().value();
    print_visible(&format!("--- {}\n+++ {}\n{hunks}\n{}", old.id(), new.id(), format_sizes(&old, &new, &sample)))
}

/// Formats the tokens of each part in both versions.
fn format_sizes(old: &Prompt, new: &Prompt, sample: &Value) -> String {
    let (old, new) = match (old.sizes(sample), new.sizes(sample)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(error), _) | (_, Err(error)) => return format!("tokens: unknown: {error}\n"),
    };
    let tokens = |parts: &[PartSize], name: &str| -> u64 {
        parts.iter().filter(|part| part.name == name).map(|part| part.tokens).sum()
    };
    let mut names: Vec<&str> = Vec::new();
    for part in old.iter().chain(&new) {
        if !names.contains(&part.name.as_str()) {
            names.push(&part.name);
        }
    }
    let row = |name: &str, before: u64, after: u64| {
        let change = i128::from(after) - i128::from(before);
        [name.to_owned(), before.to_string(), after.to_string(), format!("{change:+}")]
    };
    let head = ["tokens", "before", "after", "change"].map(str::to_owned);
    let sum = |parts: &[PartSize]| parts.iter().map(|part| part.tokens).sum();
    let rows: Vec<[String; 4]> = std::iter::once(head)
        .chain(names.iter().map(|name| row(name, tokens(&old, name), tokens(&new, name))))
        .chain([row("total", sum(&old), sum(&new))])
        .collect();
    tables::lay_out_columns(&rows, tables::find_edge())
}
