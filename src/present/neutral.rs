//! Marks in data that a model could take for the frame around it: role markers, tags that look like ours.
//!
//! A word joiner (U+2060, which shows nothing) is put behind the first character of such a mark, so that it is not the
//! mark any more and still reads the same. It is reversible: file tools take it out again before they match or write.

use std::borrow::Cow;

const JOINER: char = '\u{2060}';

/// What follows the first character of a mark. Letters match in either case.
const MARKS: [(char, &[&str]); 2] = [
    (
        '<',
        &[
            "result",
            "/result",
            "|",
            "system",
            "/system",
            "user>",
            "/user>",
            "assistant",
            "/assistant",
            "attachment",
            "/attachment",
            "skill",
            "/skill",
            "<sys>>",
            "</sys>>",
            "tool_",
            "/tool_",
            "function_",
            "/function_",
            "function=",
            "/function>",
            "invoke ",
            "invoke>",
            "/invoke>",
            "think>",
            "/think>",
            "start_of_turn",
            "end_of_turn",
            // A bar of full width.
            "\u{ff5c}",
        ],
    ),
    (
        '[',
        &[
            "inst]",
            "/inst]",
            "tool_calls]",
            "tool_results]",
            "/tool_results]",
            "available_tools]",
            "/available_tools]",
        ],
    ),
];

/// `text` with every mark broken.
#[must_use]
pub fn neutralise(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (at, c) in text.char_indices() {
        if is_mark(c, &text[at + c.len_utf8()..]) {
            let end = at + c.len_utf8();
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

/// The text that [`neutralise`] was given.
#[must_use]
pub fn restore(text: &str) -> Cow<'_, str> {
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

/// Whether `opener` begins a mark that goes on with `rest`. Joiners in between count as nothing: a mark that was
/// broken before is broken once more, so that taking one joiner out gives what there was.
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
            let broken = neutralise(mark);
            assert_ne!(broken, mark);
            assert_eq!(broken.replace(JOINER, ""), mark);
        }
        for plain in ["if a < b { x[i] }", "<div>", "Vec<u8>", "a <= b", "<users>", "[install]"] {
            assert!(matches!(neutralise(plain), Cow::Borrowed(_)), "{plain}");
        }
    }

    proptest! {
        #[test]
        fn it_is_reversible(text in "(<|\\[|\u{2060}|result|/|system|\\||inst\\]|x| ){0,12}") {
            let broken = neutralise(&text).into_owned();
            prop_assert_eq!(restore(&broken).into_owned(), text);
            prop_assert!(!broken.contains("</result"));
        }
    }
}
