//! Compact: one line of `key:value` pairs with `|` between them. `\`, `|` and line breaks in a value are escaped.

use super::ResultView;

pub(super) fn encode_view(view: &ResultView<'_>) -> String {
    let mut pairs = vec![format!("tool:{}", escape_text(view.source.tool))];
    if !view.source.trusted {
        pairs.push("untrusted:true".to_owned());
    }
    pairs.extend(view.fields.iter().map(|(name, field)| format!("{name}:{}", escape_text(&field.as_text()))));
    pairs.join("|")
}

const ESCAPES: [(char, char); 7] =
    [('\\', '\\'), ('|', 'p'), ('\n', 'n'), ('\r', 'r'), ('\u{85}', 'e'), ('\u{2028}', 'l'), ('\u{2029}', 'g')];

fn escape_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match ESCAPES.iter().find(|(plain, _)| *plain == c) {
            Some((_, letter)) => out.extend(['\\', *letter]),
            None => out.push(c),
        }
    }
    out
}

/// The pairs of an encoded line.
#[cfg(test)]
pub(super) fn decode(line: &str) -> Vec<(String, String)> {
    line.split('|')
        .filter_map(|pair| pair.split_once(':'))
        .map(|(name, value)| {
            let mut out = String::new();
            let mut chars = value.chars();
            while let Some(c) = chars.next() {
                let letter = (c == '\\').then(|| chars.next()).flatten();
                let plain = ESCAPES.iter().find(|(_, escape)| Some(*escape) == letter).map(|(plain, _)| *plain);
                out.push(plain.unwrap_or(c));
            }
            (name.to_owned(), out)
        })
        .collect()
}
