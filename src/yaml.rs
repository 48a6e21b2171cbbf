//! The one door to YAML. There are two parsers: [`parse`] returns typed values (front matter, data files),
//! [`tree`] keeps line and column of every key and value, for layered files whose mistakes need a place.
//!
//! Both refuse input that could exhaust memory or time: long texts, deep nesting, multiplying aliases.

mod node;
mod typed;

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use node::{Form, Key, Node, Place, Plain, Scalar, Tree};
pub use typed::NodeError;

/// The longest accepted text, in bytes.
pub const LONGEST: usize = 1024 * 1024;
const DEEPEST: usize = 64;
const MOST_NODES: usize = 100_000;

/// A YAML error with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// The message, without the place.
    pub message: String,
    /// 1-based, where known.
    pub line: Option<usize>,
    /// 1-based, where known.
    pub column: Option<usize>,
}

/// Parses one document into `T`. Merge keys (`<<`) are applied; a duplicate key is an error.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let text = guarded(text)?;
    let mut document: serde_yaml::Value = serde_yaml::from_str(text).map_err(|error| typed_error(&error))?;
    if text.contains("<<") {
        document.apply_merge().map_err(|error| typed_error(&error))?;
        return serde_yaml::from_value(document).map_err(|error| typed_error(&error));
    }
    // Where a value does not fit, the text is parsed again: only then do errors know their line.
    serde_yaml::from_value(document).or_else(|_| serde_yaml::from_str(text)).map_err(|error| typed_error(&error))
}

/// Writes a value as one document.
///
/// # Errors
/// When YAML cannot express the value (a map with maps as keys).
pub fn write<T: Serialize>(value: &T) -> Result<String, YamlError> {
    serde_yaml::to_string(value).map_err(|error| typed_error(&error))
}

/// Parses one document with the place of every key and value; `source` is copied into each [`Place`]. An empty
/// text is an empty mapping.
///
/// # Errors
/// The first syntax error, or every duplicate key.
pub fn tree(text: &str, source: u16) -> Result<Node, Vec<YamlError>> {
    let (node, duplicates) = tree_of_firsts(text, source).map_err(|error| vec![error])?;
    if duplicates.is_empty() { Ok(node) } else { Err(duplicates) }
}

/// Parses like [`tree`], for a caller that looks for further mistakes: the first of duplicate keys counts, and the
/// others are returned as errors.
///
/// # Errors
/// The first syntax error.
pub fn tree_of_firsts(text: &str, source: u16) -> Result<(Node, Vec<YamlError>), YamlError> {
    let text = guarded(text)?;
    let mut builder = Builder {
        parser: Parser::new_from_str(text),
        source,
        anchors: HashMap::new(),
        nodes: 0,
        duplicates: Vec::new(),
    };
    let node = builder.document()?;
    Ok((node, builder.duplicates))
}

fn typed_error(error: &serde_yaml::Error) -> YamlError {
    let place = error.location();
    let mut message = error.to_string();
    if let Some(place) = &place {
        let suffix = format!(" at line {} column {}", place.line(), place.column());
        message = message.replace(&suffix, "");
    }
    let (line, column) = place.map(|place| (place.line(), place.column())).unzip();
    YamlError { message, line, column }
}

/// The text without its byte order mark, if its size and shape can be parsed quickly.
fn guarded(text: &str) -> Result<&str, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let refuse = |message: String, line| Err(YamlError { message, line, column: None });
    if text.len() > LONGEST {
        return refuse(format!("the text is longer than {} KiB", LONGEST / 1024), None);
    }
    // Runs of opening marks cost the C parser quadratic time before its own limit is reached.
    let (mut brackets, mut dashes) = (0, 0);
    let mut bytes = text.bytes().enumerate();
    while brackets <= DEEPEST && dashes <= DEEPEST {
        let Some((index, byte)) = bytes.next() else { return Ok(text) };
        match byte {
            b'[' | b'{' => brackets += 1,
            b'-' | b'?' if text.as_bytes().get(index + 1) == Some(&b' ') => dashes += 1,
            b' ' | b'\t' => {}
            b'\n' | b'\r' => dashes = 0,
            _ => (brackets, dashes) = (0, 0),
        }
    }
    refuse(format!("nested deeper than {DEEPEST} levels"), None)
}

struct Builder<'t> {
    parser: Parser<'t, StrInput<'t>>,
    source: u16,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    duplicates: Vec<YamlError>,
}

impl<'t> Builder<'t> {
    fn document(&mut self) -> Result<Node, YamlError> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_), _) => {}
                (Event::StreamEnd, span) => {
                    return Ok(Node { tree: Tree::Map(Vec::new()), place: self.place(span) });
                }
                (event, span) => {
                    let root = self.node(event, span, 0)?;
                    return self.nothing_follows().map(|()| root);
                }
            }
        }
    }

    fn nothing_follows(&mut self) -> Result<(), YamlError> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentStart(_), span) => {
                    return Err(at(span, "a second document begins here; one file holds one"));
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, YamlError> {
        if depth > DEEPEST {
            return Err(at(span, &format!("nested deeper than {DEEPEST} levels")));
        }
        self.count(1, span)?;
        let place = self.place(span);
        let (tree, anchor) = match event {
            Event::Alias(id) => {
                let Some(node) = self.anchors.get(&id).cloned() else {
                    return Err(at(span, "this alias refers to what contains it"));
                };
                self.count(node.size(), span)?;
                return Ok(Node { place, ..node });
            }
            Event::Scalar(text, style, anchor, tag) => {
                let forced = match tag.as_deref() {
                    None => false,
                    Some(tag) if tag.is_yaml_core_schema() => tag.suffix == "str",
                    Some(_) => return Err(at(span, "tags have no meaning here")),
                };
                let form = match style {
                    ScalarStyle::Plain if !forced => Form::Plain,
                    ScalarStyle::Literal | ScalarStyle::Folded => Form::Block,
                    _ => Form::Quoted,
                };
                (Tree::Scalar(Scalar { text: text.into_owned(), form }), anchor)
            }
            Event::SequenceStart(anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.map(depth)?, anchor),
            _ => return Err(at(span, "a value was expected here")),
        };
        let node = Node { tree, place };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Tree, YamlError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Tree::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Tree, YamlError> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut merged: Vec<(Key, Node)> = Vec::new();
        loop {
            let (event, span) = match self.next()? {
                (Event::MappingEnd, _) => break,
                (Event::Scalar(text, ..), span) => (text.into_owned(), span),
                (_, span) => return Err(at(span, "a key must be a word, not a list or a mapping")),
            };
            let key = Key { text: event, place: self.place(span) };
            let (value, value_span) = self.next()?;
            let value = self.node(value, value_span, depth + 1)?;
            if key.text == "<<" {
                merged.extend(merge_entries(value, value_span)?);
            } else if let Some((first, _)) = entries.iter().find(|(other, _)| other.text == key.text) {
                let message = format!("the key `{}` stands twice (first in line {})", key.text, first.place.line);
                self.duplicates.push(at(span, &message));
            } else {
                entries.push((key, value));
            }
        }
        for (key, value) in merged {
            if !entries.iter().any(|(other, _)| other.text == key.text) {
                entries.push((key, value));
            }
        }
        Ok(Tree::Map(entries))
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), YamlError> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(scan_error(&error)),
            None => Err(YamlError { message: "the text ends too early".to_owned(), line: None, column: None }),
        }
    }

    fn count(&mut self, nodes: usize, span: Span) -> Result<(), YamlError> {
        self.nodes += nodes;
        if self.nodes > MOST_NODES {
            return Err(at(span, &format!("more than {MOST_NODES} values, aliases counted in full")));
        }
        Ok(())
    }

    fn place(&self, span: Span) -> Place {
        Place { source: self.source, line: span.start.line(), column: span.start.col() + 1 }
    }
}

fn merge_entries(value: Node, span: Span) -> Result<Vec<(Key, Node)>, YamlError> {
    match value.tree {
        Tree::Map(entries) => Ok(entries),
        Tree::List(items) => {
            let mut all = Vec::new();
            for item in items {
                all.extend(merge_entries(item, span)?);
            }
            Ok(all)
        }
        Tree::Scalar(_) => Err(at(span, "`<<` merges a mapping or a list of mappings")),
    }
}

fn at(span: Span, message: &str) -> YamlError {
    YamlError { message: message.to_owned(), line: Some(span.start.line()), column: Some(span.start.col() + 1) }
}

fn scan_error(error: &ScanError) -> YamlError {
    YamlError {
        message: error.info().to_owned(),
        line: Some(error.marker().line()),
        column: Some(error.marker().col() + 1),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use serde_json::{Value, json};

    use super::{parse, tree};

    fn from_tree(text: &str) -> Value {
        tree(text, 0).expect("valid").read().expect("any value")
    }

    /// The two parsers agree on every kind of scalar and on structure.
    #[test]
    fn both_readings_agree() {
        let scalars = [
            "",
            "~",
            "null",
            "Null",
            "true",
            "True",
            "false",
            "yes",
            "no",
            "on",
            "0",
            "-1",
            "+7",
            "012",
            "0x1f",
            "0o17",
            "1.5",
            "-2e3",
            ".5",
            "1_000",
            "1e",
            "abc",
            "'5'",
            "\"true\"",
            "2024-01-01",
            "1:30",
            "a b",
            "--",
            ".",
            "'it''s'",
            "\"a\\nb\"",
            "18446744073709551615",
            "-9223372036854775808",
            "1e400x",
            "gpt-5",
            "4o",
            "[1, x]",
            "{a: 1, b: [2]}",
            "|\n  line\n  more\n",
            ">\n  a\n  b\n",
        ];
        for scalar in scalars {
            let text = format!("k: {scalar}\n");
            assert_eq!(from_tree(&text), parse::<Value>(&text).expect("valid"), "{text}");
        }
        assert_eq!(from_tree("a: &x {b: 1}\nc: {<<: *x, d: 2}"), json!({"a": {"b": 1}, "c": {"d": 2, "b": 1}}));
        assert_eq!(parse::<Value>("a: &x {b: 1}\nc: {<<: *x, d: 2}").expect("valid")["c"]["b"], 1);
        assert_eq!(from_tree("\u{feff}a: 1\r\nb: 2\r\n"), json!({"a": 1, "b": 2}));
        assert_eq!(from_tree(" \n# nothing\n"), json!({}));
    }

    #[test]
    fn every_key_that_stands_twice_is_named() {
        let errors = tree("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n", 0).expect_err("two duplicates");
        let places: Vec<_> = errors.iter().map(|e| (e.line, e.column)).collect();
        assert_eq!(places, [(Some(4), Some(3)), (Some(5), Some(1))]);
        assert_eq!(errors[1].message, "the key `a` stands twice (first in line 1)");
        assert!(parse::<Value>("a: 1\na: 2").is_err());
    }

    #[test]
    fn bombs_are_refused() {
        let laughs = (1..12).fold("a0: &a0 x\n".to_owned(), |mut text, n| {
            let _ = writeln!(text, "a{n}: &a{n} [{}]", vec![format!("*a{}", n - 1); 9].join(","));
            text
        });
        for text in [laughs, "[".repeat(200_000), "- ".repeat(200_000), "a: 1\n".repeat(300_000)] {
            assert!(tree(&text, 0).is_err());
            assert!(parse::<Value>(&text).is_err());
        }
    }
}
