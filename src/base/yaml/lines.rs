//! Reads a mapping in the simplest form: one line for each key, with a plain or simply quoted value. Most heads of
//! skills have it, and hundreds of them are read when a run starts.
//!
//! Anything else is left to the full parser. A test checks that both agree.

use super::node::{Node, Scalar, ScalarForm, YamlKey, YamlPlace, YamlTree};

/// Longer texts, and mappings with more keys, are left to the full parser.
const LONGEST: usize = 64 * 1024;
const MOST_KEYS: usize = 64;

/// The mapping, if each line can be read on its own.
pub fn read_mapping(text: &str, source: u16) -> Option<Node> {
    if text.len() > LONGEST {
        return None;
    }
    let mut entries: Vec<(YamlKey, Node)> = Vec::new();
    for (line, written) in (1..).zip(text.split('\n')) {
        if written.is_empty() {
            continue;
        }
        let (key, value) = written.split_once(": ")?;
        let spaces = value.len() - value.trim_start_matches(' ').len();
        let scalar = read_scalar(&value[spaces..])?;
        let is_new = entries.len() < MOST_KEYS && entries.iter().all(|(other, _)| other.text != key);
        if !is_key(key) || !is_new {
            return None;
        }
        let place = |column| YamlPlace { source, line, column };
        let value = Node { tree: YamlTree::Scalar(scalar), place: place(key.len() + 3 + spaces) };
        entries.push((YamlKey { text: key.to_owned().into(), place: place(1) }, value));
    }
    let place = entries.first()?.0.place;
    Some(Node { tree: YamlTree::Map(entries), place })
}

fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.len() <= 64
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// A value that ends with its line.
fn read_scalar(text: &str) -> Option<Scalar> {
    // Byte order marks, and line breaks that only some readers know, are excluded.
    let is_plain = |c: char| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    if !text.chars().all(is_plain) {
        return None;
    }
    let quoted = |mark: char, forbidden: &[char]| {
        let inner = text.strip_prefix(mark)?.strip_suffix(mark)?;
        let is_simple = !inner.is_empty() && !inner.contains(forbidden);
        is_simple.then(|| Scalar { text: inner.to_owned().into(), form: ScalarForm::Quoted })
    };
    match text.chars().next()? {
        '"' => quoted('"', &['"', '\\']),
        '\'' => quoted('\'', &['\'']),
        first if first.is_alphanumeric() => {
            let is_whole = !text.ends_with([' ', ':']) && !text.contains(": ") && !text.contains(" #");
            is_whole.then(|| Scalar { text: text.to_owned().into(), form: ScalarForm::Plain })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::read_mapping;
    use crate::base::yaml::reader::{Builder, check_shape};

    fn by_whole_reader(text: &str) -> Option<crate::base::yaml::Node> {
        let (node, duplicates) = Builder::read(check_shape(text).ok()?, 3).ok()?;
        duplicates.is_empty().then_some(node)
    }

    #[test]
    fn usual_heads_are_read_and_the_rest_is_declined() {
        for (text, is_read) in [
            ("name: my-skill\ndescription: Does (this), and [that]; 50% of it.\n", true),
            ("\nname: a\n\nlicense:   MIT\nversion: 1.0\nflag: true\nnull-able: null", true),
            ("name: \"a: b # c\"\ndescription: 'Use when: \"always\"'\n", true),
            ("name: 技能\ndescription: 做这个：那个\n", true),
            ("", false),
            ("name:\n", false),
            ("name: a\n  more\n", false),
            ("name: a\n- b\n", false),
            ("name: a: b\n", false),
            ("name: a #b\n", false),
            ("name: a\nname: b\n", false),
            ("name: \"a\\n\"\n", false),
            ("name: 'it''s'\n", false),
            ("name: [a]\n", false),
            ("name: |\n  text\n", false),
            ("name: &x a\n", false),
            ("name: a\r\nb: c\r\n", false),
            ("---\nname: a\n", false),
            ("# name\nname: a\n", false),
            ("metadata:\n  name: a\n", false),
        ] {
            let node = read_mapping(text, 3);
            assert_eq!(node.is_some(), is_read, "{text:?}");
            if is_read {
                assert_eq!(node, by_whole_reader(text), "{text:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn what_is_read_is_what_the_whole_reader_reads(
            lines in prop::collection::vec(
                prop_oneof![
                    "[a-z-]{1,3}: {1,2}[a-zA-Z0-9 :#'\"\\[\\]{},&*!|>%@`~?.é\u{85}\u{a0}\u{3000}\t-]{0,8}",
                    "[a-z]: [\"'][ -~]{0,6}[\"']",
                    "[a-z]: \\PC{1,6}",
                    "[ -~]{0,6}",
                ],
                1..4,
            ),
        ) {
            let text = lines.join("\n");
            if let Some(node) = read_mapping(&text, 3) {
                prop_assert_eq!(Some(node), by_whole_reader(&text), "{:?}", text);
            }
        }
    }
}
