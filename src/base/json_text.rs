//! JSON kept as text: documents found in prose, and laid out anew without touching how a number is written.

use std::cmp::Reverse;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::json::{each_byte, first_block, without_trailing_commas};

/// What begins a document that can be found among words.
const OPENERS: [char; 2] = ['{', '['];
const FENCE: &str = "```";

/// The JSON documents of a text in the order in which they are likely to be its answer: the whole text, then what stands
/// in a fence or in brackets, the last first. What stands within another document does not count.
pub fn find_documents(text: &str) -> Vec<String> {
    let mut places = find_in_brackets(text);
    places.extend(find_in_fences(text));
    places.sort_by_key(|(at, _)| Reverse(*at));
    let written = std::iter::once(text).chain(places.into_iter().map(|(_, document)| document));
    // A comma too many leaves no doubt about what was meant.
    let mended = first_block(text, &OPENERS).map(without_trailing_commas);
    let all = written.map(|document| document.trim().to_owned()).chain(mended);
    all.filter(|document| serde_json::from_str::<IgnoredAny>(document).is_ok()).collect()
}

/// Each document that begins with a bracket, and its place.
fn find_in_brackets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(OPENERS).map(|at| from + at) {
        let mut documents = serde_json::Deserializer::from_str(&text[at..]).into_iter::<IgnoredAny>();
        if let Some(Ok(_)) = documents.next() {
            from = at + documents.byte_offset();
            found.push((at, &text[at..from]));
        } else {
            from = at + 1;
        }
    }
    found
}

/// What stands in each fence, and its place: also a text, a number or a word such as `null`.
fn find_in_fences(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut at, mut open) = (0, None);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with(FENCE) {
            match open.take() {
                Some(begin) => found.push((begin, &text[begin..at])),
                None => open = Some(at + line.len()),
            }
        }
        at += line.len();
    }
    found
}

/// True if an object of a document, whose value is given, has two fields of one name: readers differ in which they take.
pub fn has_repeated_name(document: &str, value: &Value) -> bool {
    let mut fields = 0;
    each_byte(document, |_, byte, is_in_string| fields += usize::from(byte == b':' && !is_in_string));
    fields != count_fields(value)
}

fn count_fields(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len() + fields.values().map(count_fields).sum::<usize>(),
        Value::Array(items) => items.iter().map(count_fields).sum(),
        _ => 0,
    }
}

/// A document without white space between its parts; names, texts and numbers stay as they were written.
pub fn compact(document: &str) -> String {
    let mut out = Vec::with_capacity(document.len());
    each_byte(document, |_, byte, is_in_string| {
        if is_in_string || !byte.is_ascii_whitespace() {
            out.push(byte);
        }
    });
    String::from_utf8(out).expect("only ASCII is left out")
}

/// A document for a person: each field and each item on a line of its own.
pub fn indent(document: &str) -> String {
    const STEP: usize = 2;
    let mut out = Vec::with_capacity(document.len() * 2);
    let start_line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.resize(out.len() + depth * STEP, b' ');
    };
    let (mut depth, mut is_begun) = (0usize, false);
    each_byte(&compact(document), |_, byte, is_in_string| {
        let is_end = !is_in_string && matches!(byte, b'}' | b']');
        depth = depth.saturating_sub(usize::from(is_end));
        // Empty brackets stay together.
        if is_end != is_begun {
            start_line(&mut out, depth);
        }
        out.push(byte);
        is_begun = !is_in_string && matches!(byte, b'{' | b'[');
        depth += usize::from(is_begun);
        match byte {
            b',' if !is_in_string => start_line(&mut out, depth),
            b':' if !is_in_string => out.push(b' '),
            _ => {}
        }
    });
    String::from_utf8(out).expect("only ASCII is added")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_document_comes_before_the_others() {
        for (text, expected) in [
            ("{\"a\": 1}", &["{\"a\": 1}", "{\"a\": 1}"][..]),
            (
                "For example {\"a\": 0}. So:\n```json\n{\"a\": 1}\n```\nDone.",
                &["{\"a\": 1}", "{\"a\": 1}", "{\"a\": 0}"],
            ),
            ("```\nnull\n```", &["null"]),
            ("Either [1] or [2, [3]] or {.", &["[2, [3]]", "[1]"]),
            ("[1, 2,]", &["[1, 2]"]),
            (" \"text\" ", &["\"text\""]),
            ("It is 42.", &[]),
        ] {
            let found = find_documents(text);
            let distinct: Vec<&str> = found.iter().map(String::as_str).collect();
            assert!(expected.iter().all(|one| distinct.contains(one)), "{text}: {found:?}");
            assert_eq!(distinct.first(), expected.first(), "{text}");
            assert_eq!(distinct.last().is_some(), !expected.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_number_stays_as_it_was_written() {
        let text = "{ \"n\" : 123456789012345678901234567890, \"x\": [1.0, 1e3, {}, [ ]] , \"t\": \"a : {b},\" }";
        assert_eq!(
            compact(text),
            "{\"n\":123456789012345678901234567890,\"x\":[1.0,1e3,{},[]],\"t\":\"a : {b},\"}"
        );
        assert!(indent(text).starts_with("{\n  \"n\": 123456789012345678901234567890,\n  \"x\": [\n    1.0,"));
    }

    #[test]
    fn a_name_that_stands_twice_is_seen() {
        for (text, expected) in [
            ("{\"a\": 1, \"a\": 2}", true),
            ("[{\"a\": \":\"}, {\"a\": {\"a\": 1}}]", false),
            ("{\"a\":1,\"\\u0061\":2}", true),
        ] {
            let value = serde_json::from_str(text).expect("JSON");
            assert_eq!(has_repeated_name(text, &value), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_layout_keeps_the_value(key in ".{0,8}", text in ".{0,40}", number: i64) {
            let value = json!({key: [text, number, null, {}], "": []});
            prop_assert_eq!(compact(&format!("{value:#}")), value.to_string());
            prop_assert_eq!(indent(&value.to_string()), format!("{value:#}"));
            let found = find_documents(&format!("So: {value}!"));
            prop_assert_eq!(found.first(), Some(&value.to_string()));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]{},:\"\\\\a`é\n ]{0,40}") {
            find_documents(&text);
        }
    }
}
