//! Neutralises marks in data that a model could mistake for the frame around it: role markers, tags, notices and
//! headings such as ours.
//!
//! A word joiner (U+2060, which is invisible) is inserted after the first character of such a mark, which breaks
//! the mark but looks the same. This is reversible: file tools remove it before they match or write.

use std::borrow::Cow;

const JOINER: char = '\u{2060}';

/// The rest of each mark, after its first character, which is one byte. Matching ignores case.
#[rustfmt::skip]
const MARKS: [(char, &[&str]); 3] = [
    // The headings of the system prompt that give orders.
    ('#', &[" project instructions", " rules that come first", " above all", " loaded skill instructions"]),
    // The last is a full-width bar.
    ('<', &[
        "result", "/result", "|", "system", "/system", "user>", "/user>", "assistant", "/assistant", "instructions",
        "/instructions", "untrusted", "/untrusted", "attachment", "/attachment", "skill", "/skill", "<sys>>", "</sys>>",
        "tool_", "/tool_", "function_", "/function_", "function=", "/function>", "invoke ", "invoke>", "/invoke>",
        "think>", "/think>", "start_of_turn", "end_of_turn", "\u{ff5c}",
    ]),
    // The first four are notices of this program about text that it left out or shortened.
    ('[', &[
        "… ", "shortened:", "note: this call", "cut here:", "inst]", "/inst]", "tool_calls]", "tool_results]",
        "/tool_results]", "available_tools]", "/available_tools]",
    ]),
];

/// `text` with every mark broken.
pub fn break_text_marks(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        let end = at + 1;
        if matches!(byte, b'#' | b'<' | b'[') && is_mark(char::from(byte), &text[end..]) {
            out += &text[copied..end];
            out.push(JOINER);
            copied = end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out += &text[copied..];
    Cow::Owned(out)
}

/// The text that was passed to [`break_text_marks`].
pub fn restore_text_marks(text: &str) -> Cow<'_, str> {
    if !text.contains(JOINER) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        out.push(c);
        let rest = &text[at + c.len_utf8()..];
        if rest.starts_with(JOINER) && is_mark(c, rest) {
            chars.next();
        }
    }
    Cow::Owned(out)
}

/// True if `opener` and `rest` form a mark. Joiners in between are ignored: a mark that was already broken is broken
/// again, so that removing one joiner restores the original.
fn is_mark(opener: char, rest: &str) -> bool {
    let Some((_, endings)) = MARKS.iter().find(|(mark, _)| *mark == opener) else { return false };
    let rest = rest.trim_start_matches(JOINER);
    endings.iter().any(|ending| {
        rest.len() >= ending.len() && rest.as_bytes()[..ending.len()].eq_ignore_ascii_case(ending.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn marks_are_broken_and_code_is_not() {
        for mark in ["</result>", "<|im_start|>", "<System>", "[INST]", "</Attachment-2>", "<tool_call>"] {
            let broken = break_text_marks(mark);
            assert_ne!(broken, mark);
            assert_eq!(broken.replace(JOINER, ""), mark);
        }
        for plain in ["if a < b { x[i] }", "<div>", "Vec<u8>", "a <= b", "<users>", "[install]"] {
            assert!(matches!(break_text_marks(plain), Cow::Borrowed(_)), "{plain}");
        }
    }

    proptest! {
        #[test]
        fn it_is_reversible(text in "(<|\\[|\u{2060}|result|/|system|\\||inst\\]|x| ){0,12}") {
            let broken = break_text_marks(&text).into_owned();
            prop_assert_eq!(restore_text_marks(&broken).into_owned(), text);
            prop_assert!(!broken.contains("</result"));
        }
    }
}
