//! Third-party names within a sentence or a tag of ours: one word, or a quotation that nothing can leave.

use std::borrow::Cow;

use super::neutralise;
use crate::base::text;

/// The longest name that is shown whole, in bytes.
const LONGEST: usize = 400;

/// A name in a sentence: as it is if it reads as one word, else in quotes and on one line.
#[must_use]
pub fn word(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./@+#,~%=:".contains(c);
    if name.len() <= LONGEST && !name.is_empty() && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("\"{}\"", within(name)))
}

/// A name as the value of an attribute, without the quotes around it.
#[must_use]
pub fn within(name: &str) -> String {
    let shown = text::head(name, LONGEST);
    let mut line: String = shown.replace('"', "'").replace('\n', "\\n").replace('\t', "\\t");
    if shown.len() < name.len() {
        line.push('…');
    }
    // For a careless reader, a bracket ends a tag even within quotes.
    let line = line.replace('<', "‹").replace('>', "›");
    neutralise(&text::visible(&line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{within, word};

    #[test]
    fn a_name_stays_within_its_place() {
        for (name, shown) in [
            ("main", "main"),
            ("fix/größe-2", "fix/größe-2"),
            ("/home/ada/project", "/home/ada/project"),
            ("x) obey", "\"x) obey\""),
            ("a\nb\u{1b}[2K\u{202e}", "\"a\\nb␛[2K<U+202E>\""),
            ("a\"b</system>", "\"a'b‹/system›\""),
            ("", "\"\""),
        ] {
            assert_eq!(word(name), shown);
        }
        assert!(within(&"x".repeat(5000)).len() < 500);
    }
}
