//! Reads a text as a located tree. The build uses this file as well, for the built-in files, so it depends only on the
//! tree.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::lines;
use super::node::{Node, Scalar, ScalarForm, YamlKey, YamlPlace, YamlTree};

/// The longest accepted text, in bytes.
pub const LONGEST: usize = 1024 * 1024;
const DEEPEST: usize = 64;
const MOST_NODES: usize = 100_000;
const KEY_IS_MAPPING: &str = r#"a key must be a word, not a mapping; put a template in quotes: "{{ … }}""#;

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

/// Parses one document with the place of every key and value; `source` is copied into each [`YamlPlace`]. An empty
/// text is an empty mapping.
///
/// # Errors
/// There is a syntax error, or there are duplicate keys, which are all returned.
pub fn parse_tree(text: &str, source: u16) -> Result<Node, Vec<YamlError>> {
    let (node, duplicates) = tree_of_firsts(text, source).map_err(|error| vec![error])?;
    if duplicates.is_empty() { Ok(node) } else { Err(duplicates) }
}

/// Parses like [`parse_tree`], for a caller that looks for further mistakes: the first of duplicate keys counts, and the
/// others are returned as errors.
///
/// # Errors
/// The first syntax error.
pub fn tree_of_firsts(text: &str, source: u16) -> Result<(Node, Vec<YamlError>), YamlError> {
    if let Some(node) = lines::read_mapping(text, source) {
        return Ok((node, Vec::new()));
    }
    let text = check_shape(text)?;
    Builder::read(text, source).or_else(|error| {
        let joined = join_surrogates(text).filter(|_| text.trim_start().starts_with(['{', '[']));
        Builder::read(&joined.ok_or(error)?, source)
    })
}

/// Writes the pairs of escapes that JSON has for characters beyond 16 bits as the single escapes of YAML, which knows no
/// pairs. `None` if there are none.
fn join_surrogates(text: &str) -> Option<String> {
    let read_escape = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (mut joined, mut rest, mut at) = (String::new(), 0, 0);
    while let Some(found) = text.get(at..)?.find('\\').map(|next| at + next) {
        match (read_escape(found), read_escape(found + 6)) {
            (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                joined += text.get(rest..found)?;
                let _ = write!(joined, "\\U{code:08X}");
                (rest, at) = (found + 12, found + 12);
            }
            // What follows a backslash is no beginning of an escape.
            _ => at = found + 1 + text.get(found + 1..)?.chars().next().map_or(0, char::len_utf8),
        }
    }
    (rest > 0).then(|| joined + &text[rest..])
}

/// The text without its byte order mark, if its size and shape can be parsed quickly.
pub(super) fn check_shape(text: &str) -> Result<&str, YamlError> {
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

pub(super) struct Builder<'t> {
    parser: Parser<'t, StrInput<'t>>,
    source: u16,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    duplicates: Vec<YamlError>,
}

impl<'t> Builder<'t> {
    /// The document, and the duplicate keys.
    pub(super) fn read(text: &'t str, source: u16) -> Result<(Node, Vec<YamlError>), YamlError> {
        let mut builder = Self {
            parser: Parser::new_from_str(text),
            source,
            anchors: HashMap::new(),
            nodes: 0,
            duplicates: Vec::new(),
        };
        let node = builder.document()?;
        Ok((node, builder.duplicates))
    }

    fn document(&mut self) -> Result<Node, YamlError> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_), _) => {}
                (Event::StreamEnd, span) => {
                    return Ok(Node { tree: YamlTree::Map(Vec::new()), place: self.place(span) });
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
                    return Err(place_error(span, "a second document begins here; a file may contain only one"));
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, YamlError> {
        if depth > DEEPEST {
            return Err(place_error(span, &format!("nested deeper than {DEEPEST} levels")));
        }
        self.count(1, span)?;
        let place = self.place(span);
        let (tree, anchor) = match event {
            Event::Alias(id) => {
                let Some(node) = self.anchors.get(&id).cloned() else {
                    return Err(place_error(span, "this alias refers to what contains it"));
                };
                self.count(node.size(), span)?;
                return Ok(Node { place, ..node });
            }
            Event::Scalar(text, style, anchor, tag) => {
                let forced = match tag.as_deref() {
                    None => false,
                    Some(tag) if tag.is_yaml_core_schema() => tag.suffix == "str",
                    Some(_) => return Err(place_error(span, "tags have no meaning here")),
                };
                let form = match style {
                    ScalarStyle::Plain if !forced => ScalarForm::Plain,
                    ScalarStyle::Literal | ScalarStyle::Folded => ScalarForm::Block,
                    _ => ScalarForm::Quoted,
                };
                (YamlTree::Scalar(Scalar { text: text.into_owned().into(), form }), anchor)
            }
            Event::SequenceStart(anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.map(depth)?, anchor),
            _ => return Err(place_error(span, "a value was expected here")),
        };
        let node = Node { tree, place };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<YamlTree, YamlError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(YamlTree::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<YamlTree, YamlError> {
        let mut entries: Vec<(YamlKey, Node)> = Vec::new();
        let mut merged: Vec<(YamlKey, Node)> = Vec::new();
        loop {
            let (event, span) = match self.next()? {
                (Event::MappingEnd, _) => break,
                (Event::Scalar(text, ..), span) => (Cow::Owned(text.into_owned()), span),
                (Event::MappingStart(..), span) => return Err(place_error(span, KEY_IS_MAPPING)),
                (_, span) => return Err(place_error(span, "a key must be a word, not a list")),
            };
            let key = YamlKey { text: event, place: self.place(span) };
            let (value, value_span) = self.next()?;
            let value = self.node(value, value_span, depth + 1)?;
            if key.text == "<<" {
                merged.extend(merge_entries(value, value_span)?);
            } else if let Some((first, _)) = entries.iter().find(|(other, _)| other.text == key.text) {
                let message = format!("the key `{}` is duplicated (first in line {})", key.text, first.place.line);
                self.duplicates.push(place_error(span, &message));
            } else {
                entries.push((key, value));
            }
        }
        for (key, value) in merged {
            if !entries.iter().any(|(other, _)| other.text == key.text) {
                entries.push((key, value));
            }
        }
        Ok(YamlTree::Map(entries))
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
            return Err(place_error(span, &format!("more than {MOST_NODES} values, aliases counted in full")));
        }
        Ok(())
    }

    fn place(&self, span: Span) -> YamlPlace {
        YamlPlace { source: self.source, line: span.start.line(), column: span.start.col() + 1 }
    }
}

fn merge_entries(value: Node, span: Span) -> Result<Vec<(YamlKey, Node)>, YamlError> {
    match value.tree {
        YamlTree::Map(entries) => Ok(entries),
        YamlTree::List(items) => {
            let mut all = Vec::new();
            for item in items {
                all.extend(merge_entries(item, span)?);
            }
            Ok(all)
        }
        YamlTree::Scalar(_) => Err(place_error(span, "`<<` merges a mapping or a list of mappings")),
    }
}

fn place_error(span: Span, message: &str) -> YamlError {
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

    use proptest::prelude::*;

    use super::{Node, YamlTree, tree_of_firsts};

    /// The text as JSON writes it where only ASCII may stand: each UTF-16 unit an escape.
    fn escape_for_json(text: &str) -> String {
        text.encode_utf16().fold(String::new(), |mut json, unit| {
            let _ = write!(json, "\\u{unit:04x}");
            json
        })
    }

    fn read_member(json: &str) -> Option<String> {
        let (node, _) = tree_of_firsts(json, 0).ok()?;
        match &node.get("text").map(|node: &Node| &node.tree)? {
            YamlTree::Scalar(scalar) => Some(scalar.text.to_string()),
            _ => None,
        }
    }

    proptest! {
        #[test]
        fn escapes_of_json_are_read(text in any::<String>(), plain in "[a-z\\\\\"]{0,4}") {
            let plain_json = serde_json::to_string(&plain).expect("written");
            let json = format!("{{\"text\": \"{}{}\"}}", &plain_json[1..plain_json.len() - 1], escape_for_json(&text));
            prop_assert_eq!(read_member(&json), Some(plain + &text));
        }
    }

    #[test]
    fn half_a_pair_is_a_mistake_and_a_written_backslash_begins_no_escape() {
        assert_eq!(read_member(r#"{"text": "\ud83d"}"#), None);
        assert_eq!(read_member(r#"{"text": "\\ud83d\ude00"}"#), None);
        assert_eq!(
            read_member(r#"{"text": "\\ud83d\\ude00 \ud83d\ude00"}"#).as_deref(),
            Some("\\ud83d\\ude00 😀")
        );
    }
}
