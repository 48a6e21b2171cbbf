//! The only entry to YAML. A text is read once, into a tree with the line and column of every key and value ([`parse_tree`]);
//! [`parse_document`] reads that tree as a type. The simplest texts are read line by line (`lines`). Trees that the build has
//! read are only unpacked ([`unpack_tree`]).
//!
//! Texts that could exhaust memory or time are refused: long ones, deep nesting, multiplying aliases.

mod lines;
mod node;
mod packed;
mod reader;
mod typed;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use node::{Node, Scalar, ScalarForm, YamlKey, YamlPlace, YamlTree};
pub use packed::unpack_tree;
pub use reader::{YamlError, parse_tree, tree_of_firsts};
pub use typed::NodeError;

/// Parses one document into `T`. Merge keys (`<<`) are applied; a duplicate key is an error. A number or a word such as
/// `true` is text where `T` wants text.
pub fn parse_document<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let mut node = parse_tree(text, 0).map_err(|mut errors| errors.swap_remove(0))?;
    let read = node.read().or_else(|error| {
        loosen_node(&mut node);
        node.read().map_err(|_| error)
    });
    read.map_err(|error| YamlError {
        message: error.message,
        line: error.place.map(|place| place.line),
        column: error.place.map(|place| place.column),
    })
}

fn loosen_node(node: &mut Node) {
    match &mut node.tree {
        YamlTree::Scalar(scalar) if scalar.form == ScalarForm::Plain => scalar.form = ScalarForm::Given,
        YamlTree::Scalar(_) => {}
        YamlTree::List(items) => items.iter_mut().for_each(loosen_node),
        YamlTree::Map(entries) => entries.iter_mut().for_each(|(_, value)| loosen_node(value)),
    }
}

/// Writes a value as one document.
///
/// # Errors
/// YAML cannot express the value (a map with maps as keys).
pub fn write_document<T: Serialize>(value: &T) -> Result<String, YamlError> {
    serde_yaml::to_string(value).map_err(|error| YamlError {
        message: error.to_string(),
        line: None,
        column: None,
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use serde_json::{Value, json};

    use super::{parse_document, parse_tree};

    /// What is read here is what the library that writes would read, for every kind of scalar and for structure.
    #[test]
    fn readings_agree_with_those_of_the_writer() {
        let from_tree = |text: &str| parse_document::<Value>(text).expect("valid");
        let scalars = [
            "", "~", "null", "Null", "true", "True", "false", "yes", "no", "on", "0", "-1", "+7", "012", "0x1f",
            "0o17", "1.5", "-2e3", ".5", "1_000", "1e", "abc", "'5'", "\"true\"", "2024-01-01", "1:30", "a b",
            "--", ".", "'it''s'", "\"a\\nb\"", "18446744073709551615", "-9223372036854775808", "1e400x", "gpt-5",
            "4o", "[1, x]", "{a: 1, b: [2]}", "|\n  line\n  more\n", ">\n  a\n  b\n",
        ];
        for scalar in scalars {
            let text = format!("k: {scalar}\n");
            let by_writer: Value = serde_yaml::from_str(&text).expect("valid");
            assert_eq!(from_tree(&text), by_writer, "{text}");
        }
        assert_eq!(from_tree("a: &x {b: 1}\nc: {<<: *x, d: 2}"), json!({"a": {"b": 1}, "c": {"d": 2, "b": 1}}));
        assert_eq!(from_tree("\u{feff}a: 1\r\nb: 2\r\n"), json!({"a": 1, "b": 2}));
        assert_eq!(from_tree(" \n# nothing\n"), json!({}));
        assert_eq!(parse_document::<Vec<String>>("[a, -5, true]").expect("texts"), ["a", "-5", "true"]);
    }

    #[test]
    fn every_key_that_stands_twice_is_named() {
        let errors = parse_tree("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n", 0).expect_err("two duplicates");
        let places: Vec<_> = errors.iter().map(|e| (e.line, e.column)).collect();
        assert_eq!(places, [(Some(4), Some(3)), (Some(5), Some(1))]);
        assert_eq!(errors[1].message, "the key `a` is duplicated (first in line 1)");
        assert!(parse_document::<Value>("a: 1\na: 2").is_err());
    }

    #[test]
    fn bombs_are_refused() {
        let laughs = (1..12).fold("a0: &a0 x\n".to_owned(), |mut text, n| {
            let _ = writeln!(text, "a{n}: &a{n} [{}]", vec![format!("*a{}", n - 1); 9].join(","));
            text
        });
        for text in [laughs, "[".repeat(200_000), "- ".repeat(200_000), "a: 1\n".repeat(300_000)] {
            assert!(parse_tree(&text, 0).is_err());
            assert!(parse_document::<Value>(&text).is_err());
        }
    }
}
