//! Third-party names within a sentence or a tag of ours: one word, or a quotation that nothing can leave.

use std::borrow::Cow;

use super::break_text_marks;
use crate::base::text;

/// The longest name that is shown whole, in bytes.
const LONGEST: usize = 400;

/// A name in a sentence: as it is if it reads as one word, else in quotes and on one line.
pub fn quote_word(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./@+#,~%=:".contains(c);
    if name.len() <= LONGEST && !name.is_empty() && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("\"{}\"", escape_attribute(name)))
}

/// A name as the value of an attribute, without the quotes around it.
pub fn escape_attribute(name: &str) -> String {
    let shown = text::take_head(name, LONGEST);
    let mut line: String = shown.replace('"', "'").replace('\n', "\\n").replace('\t', "\\t");
    if shown.len() < name.len() {
        line.push('…');
    }
    // For a careless reader, a bracket ends a tag even within quotes.
    let line = line.replace('<', "‹").replace('>', "›");
    break_text_marks(&text::make_visible(&line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{escape_attribute, quote_word};

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
            assert_eq!(quote_word(name), shown);
        }
        assert!(escape_attribute(&"x".repeat(5000)).len() < 500);
    }
}
