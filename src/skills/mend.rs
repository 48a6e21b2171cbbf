//! Repairs a head that is not valid YAML: values with a colon, a stray quote or an open bracket are quoted, as
//! their author meant them. Every line stays in place, so positions stay valid.

use std::fmt::Write;

/// Quotes every plain value of the head. Blocks, quoted values and keys without a value stay as they are.
pub(super) fn quote_values(head: &str) -> String {
    let lines: Vec<&str> = head.lines().collect();
    let mut out = String::with_capacity(head.len() + 64);
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let indent = indent_of(line);
        let deeper = |line: &&&str| line.trim().is_empty() || indent_of(line) > indent;
        let following = lines[at + 1..].iter().take_while(deeper).count();
        let Some((key, value)) = split_entry(line) else {
            out += line;
            out.push('\n');
            at += 1;
            continue;
        };
        // Lines after a key without a value are repaired separately.
        let taken = if value.is_empty() { 0 } else { following };
        let whole = &lines[at..=at + taken];
        let words: Vec<&str> = std::iter::once(value).chain(whole[1..].iter().map(|line| line.trim())).collect();
        let text = words.join(" ").trim().to_owned();
        if value.is_empty() || is_block(value) || is_quoted(&text) {
            for line in whole {
                out += line;
                out.push('\n');
            }
        } else {
            let quoted = serde_json::Value::String(text).to_string();
            let _ = write!(out, "{}{key}: {quoted}{}", &line[..indent], "\n".repeat(taken + 1));
        }
        at += taken + 1;
    }
    out
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The key and value of a line, if it begins an entry.
fn split_entry(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.trim_start_matches(' ').split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let is_entry = is_key && (value.is_empty() || value.starts_with([' ', '\t', '\r']));
    is_entry.then(|| (key, value.trim()))
}

fn is_block(value: &str) -> bool {
    value.starts_with(['|', '>']) && value[1..].chars().all(|c| c == '-' || c == '+' || c.is_ascii_digit())
}

fn is_quoted(text: &str) -> bool {
    ['"', '\''].iter().any(|quote| {
        let inner = text.strip_prefix(*quote).and_then(|rest| rest.strip_suffix(*quote));
        inner.is_some_and(|inner| !inner.contains(*quote))
    })
}

#[cfg(test)]
mod tests {
    use super::quote_values;

    #[test]
    fn what_its_author_meant_becomes_yaml() {
        for (head, expected) in [
            ("name: a\ndescription: Use when: ever\n", "name: \"a\"\ndescription: \"Use when: ever\"\n"),
            ("d: one: 1\n  two: 2\n\nn: b\n", "d: \"one: 1 two: 2\"\n\n\nn: \"b\"\n"),
            ("d: >\n  one: 1\n  two\nx: {\n", "d: >\n  one: 1\n  two\nx: \"{\"\n"),
            ("d: 'x: y'\ne: \"quo\"ted: z\n", "d: 'x: y'\ne: \"\\\"quo\\\"ted: z\"\n"),
            ("metadata:\n  a: b: c\n", "metadata:\n  a: \"b: c\"\n"),
            ("- no entry\n", "- no entry\n"),
        ] {
            assert_eq!(quote_values(head), expected, "{head:?}");
            assert_eq!(quote_values(head).lines().count(), head.lines().count(), "{head:?}");
        }
    }
}
