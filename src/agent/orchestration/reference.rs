//! `$step_N_result`: results of earlier steps, as data in the input of a later one.
//!
//! A path selects a part of the result: `$step_2_result.items[0].id`, `$step_2_result["a key"]`; braces end it before
//! text: `${step_2_result}s`. Values are never searched for references again, so a result that contains such a name is
//! not changed.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::base::json;
use crate::base::validator::Hole;

/// The results of the steps, by number. They may be large: only the parts that are referred to are copied.
pub type Results<'r> = BTreeMap<u32, &'r Value>;

/// The most bytes of one filled input: a plan could double a result with every step.
const MOST_BYTES: usize = 16 << 20;

/// A part of the result of a step.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    pub step: u32,
    pub path: Vec<ReferenceKey>,
}

/// One part of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferenceKey {
    Name(String),
    Index(usize),
}

/// The references in the strings of an input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputReferences {
    /// In the order of the text.
    pub references: Vec<Reference>,
    /// Text that looks like a reference but is not one.
    pub mistakes: Vec<String>,
}

/// Finds the references in all strings of a value.
pub fn find_references(value: &Value) -> InputReferences {
    let mut found = InputReferences::default();
    each_text(value, "", &mut |_, text| {
        for piece in split_pieces(text) {
            match piece {
                ReferencePiece::Text(_) => {}
                ReferencePiece::Reference(reference) => found.references.push(reference),
                ReferencePiece::Mistake(text) => found.mistakes.push(text.to_owned()),
            }
        }
    });
    found
}

/// The places of references in a value, as JSON pointers, for the check of a schema.
pub fn find_holes(value: &Value) -> BTreeMap<String, Hole> {
    let mut holes = BTreeMap::new();
    each_text(value, "", &mut |place, text| {
        let pieces = split_pieces(text);
        if find_whole(&pieces).is_some() {
            holes.insert(place.to_owned(), Hole::Anything);
        } else if pieces.iter().any(|piece| matches!(piece, ReferencePiece::Reference(_))) {
            holes.insert(place.to_owned(), Hole::Text);
        }
    });
    holes
}

/// Puts results in the place of references. A string that is wholly a reference becomes the value; inside a longer one
/// the value becomes text.
///
/// # Errors
/// A sentence that names the first reference without a value.
pub fn fill_references(value: &Value, results: &Results<'_>) -> Result<Value, String> {
    let mut left = MOST_BYTES;
    map_texts(value, &mut |text| fill_text(text, results, &mut left))
}

/// A copy of a value in which `fill` gives the value of every string, except keys.
pub(super) fn map_texts(
    value: &Value,
    fill: &mut dyn FnMut(&str) -> Result<Value, String>,
) -> Result<Value, String> {
    match value {
        Value::String(text) => fill(text),
        Value::Array(items) => items.iter().map(|item| map_texts(item, fill)).collect(),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| Ok((key.clone(), map_texts(value, fill)?));
            fields.iter().map(field).collect::<Result<Map<_, _>, String>>().map(Value::Object)
        }
        plain => Ok(plain.clone()),
    }
}

fn fill_text(text: &str, results: &Results<'_>, left: &mut usize) -> Result<Value, String> {
    let pieces = split_pieces(text);
    let mut take = |reference: &Reference| {
        let value = reference.value(results)?;
        *left = left
            .checked_sub(json::most_bytes(value))
            .ok_or_else(|| format!("`{reference}` makes the input larger than {} MiB", MOST_BYTES >> 20))?;
        Ok::<&Value, String>(value)
    };
    if let Some(reference) = find_whole(&pieces) {
        return take(reference).cloned();
    }
    let mut filled = String::with_capacity(text.len());
    for piece in &pieces {
        match piece {
            ReferencePiece::Text(text) | ReferencePiece::Mistake(text) => filled.push_str(text),
            ReferencePiece::Reference(reference) => filled.push_str(&as_text(take(reference)?)),
        }
    }
    Ok(Value::String(filled))
}

impl Reference {
    /// The value that it refers to.
    ///
    /// # Errors
    /// A sentence that names the missing part.
    pub fn value<'r>(&self, results: &Results<'r>) -> Result<&'r Value, String> {
        let mut value: &'r Value = results
            .get(&self.step)
            .copied()
            .ok_or_else(|| format!("`{self}` has no value: step {} has no result", self.step))?;
        for key in &self.path {
            let next = match (key, value) {
                (ReferenceKey::Name(name), Value::Object(fields)) => fields.get(name),
                (ReferenceKey::Name(name), Value::Array(items)) => {
                    name.parse().ok().and_then(|at: usize| items.get(at))
                }
                (ReferenceKey::Index(at), Value::Array(items)) => items.get(*at),
                _ => None,
            };
            value = next.ok_or_else(|| {
                let holds = describe_content(value);
                format!("`{self}` has no value: there is no `{key}` in the result of step {}{holds}", self.step)
            })?;
        }
        Ok(value)
    }

    /// A name for its environment variable: `step_1_result_items_0_id`.
    pub(super) fn variable(&self) -> String {
        let mut name = format!("step_{}_result", self.step);
        for key in &self.path {
            name.push('_');
            match key {
                ReferenceKey::Name(key) => {
                    name.extend(key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
                }
                ReferenceKey::Index(at) => name.push_str(&at.to_string()),
            }
        }
        name
    }
}

/// Describes a value in a few words, for a part of it that was not found.
fn describe_content(value: &Value) -> String {
    const MOST_NAMES: usize = 12;
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let names: Vec<&str> = fields.keys().take(MOST_NAMES).map(String::as_str).collect();
            let more = if fields.len() > MOST_NAMES { ", …" } else { "" };
            format!(", which has {}{more} there", names.join(", "))
        }
        Value::Array(items) => format!(", which has a list of {} there", items.len()),
        Value::String(_) => ", which has text there".to_owned(),
        _ => String::new(),
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "$step_{}_result", self.step)?;
        self.path.iter().try_for_each(|key| match key {
            ReferenceKey::Name(name) if is_plain(name) => write!(formatter, ".{name}"),
            ReferenceKey::Name(name) => write!(formatter, "[{}]", Value::from(name.as_str())),
            ReferenceKey::Index(at) => write!(formatter, "[{at}]"),
        })
    }
}

impl fmt::Display for ReferenceKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Index(at) => write!(formatter, "[{at}]"),
        }
    }
}

/// A piece of a string.
#[derive(Debug, PartialEq)]
pub(super) enum ReferencePiece<'t> {
    Text(&'t str),
    Reference(Reference),
    /// Text that looks like a reference but is not one.
    Mistake(&'t str),
}

/// The one reference that a string consists of, apart from spaces.
fn find_whole<'p>(pieces: &'p [ReferencePiece<'_>]) -> Option<&'p Reference> {
    let mut written =
        pieces.iter().filter(|piece| !matches!(piece, ReferencePiece::Text(text) if text.trim().is_empty()));
    match (written.next(), written.next()) {
        (Some(ReferencePiece::Reference(reference)), None) => Some(reference),
        _ => None,
    }
}

/// The pieces of a string, in order.
pub(super) fn split_pieces(text: &str) -> Vec<ReferencePiece<'_>> {
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(start) = text[at..].find('$').map(|found| at + found) {
        let (piece, length) = parse_reference(&text[start..]);
        at = start + length;
        if let Some(piece) = piece {
            if from < start {
                pieces.push(ReferencePiece::Text(&text[from..start]));
            }
            pieces.push(piece);
            from = at;
        }
    }
    if from < text.len() {
        pieces.push(ReferencePiece::Text(&text[from..]));
    }
    pieces
}

/// Parses text that begins with `$`. Returns the piece and its length in bytes.
fn parse_reference(text: &str) -> (Option<ReferencePiece<'_>>, usize) {
    let (braced, body) = match text.strip_prefix("${") {
        Some(body) => (true, body),
        None => (false, &text[1..]),
    };
    let Some(numbered) = body.strip_prefix("step_") else { return (None, 1) };
    let digits = numbered.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return (None, 1);
    }
    let mistake = || {
        let end = text.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',')).unwrap_or(text.len());
        (Some(ReferencePiece::Mistake(&text[..end])), end)
    };
    let named = numbered[digits..].strip_prefix("_result");
    let (Ok(step), Some(named)) = (numbered[..digits].parse(), named) else { return mistake() };
    let Some((path, rest)) = parse_path(named) else { return mistake() };
    let rest = match (braced, rest.strip_prefix('}')) {
        (true, Some(rest)) => rest,
        (false, _) if !rest.starts_with(is_word) => rest,
        _ => return mistake(),
    };
    (Some(ReferencePiece::Reference(Reference { step, path })), text.len() - rest.len())
}

/// Parses a path as far as it goes; `None` if a bracket contains neither a number nor a quoted name.
fn parse_path(mut rest: &str) -> Option<(Vec<ReferenceKey>, &str)> {
    let mut path = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('.').filter(|after| after.starts_with(is_word)) {
            let end = after.find(|c: char| !is_word(c)).unwrap_or(after.len());
            path.push(ReferenceKey::Name(after[..end].to_owned()));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix('[') {
            let (key, after) = parse_bracket(after)?;
            path.push(key);
            rest = after;
        } else {
            return Some((path, rest));
        }
    }
}

/// Parses `0]`, `"name"]` or `'name']`.
fn parse_bracket(text: &str) -> Option<(ReferenceKey, &str)> {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let inner = &text[1..];
        let end = inner.find(quote)?;
        let rest = inner[end + 1..].strip_prefix(']')?;
        return Some((ReferenceKey::Name(inner[..end].to_owned()), rest));
    }
    let end = text.find(']')?;
    Some((ReferenceKey::Index(text[..end].parse().ok()?), &text[end + 1..]))
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_word)
}

/// Formats a value for use inside a longer text.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        data => data.to_string(),
    }
}

/// Calls `seen` with every string of a value and its JSON pointer, except keys.
fn each_text(value: &Value, place: &str, seen: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::String(text) => seen(place, text),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| each_text(item, &format!("{place}/{at}"), seen));
        }
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            each_text(value, &format!("{place}/{key}"), seen);
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values() -> [(u32, Value); 3] {
        [
            (
                1,
                json!({ "items": [{ "id": 7, "name": "a b" }, null], "a key": "x", "0": "zero", "deep": { "n": 1.5 } }),
            ),
            (2, json!("plain $step_1_result {{ x }}")),
            (12, json!(["first", ["second"]])),
        ]
    }

    fn results(values: &[(u32, Value)]) -> Results<'_> {
        values.iter().map(|(step, value)| (*step, value)).collect()
    }

    #[test]
    fn what_a_string_becomes() {
        for (text, expected) in [
            ("$step_1_result.items[0].id", Ok(json!(7))),
            (" $step_1_result.items[0].id\n", Ok(json!(7))),
            ("${step_1_result.items[0].id}", Ok(json!(7))),
            ("$step_1_result.items.0.id", Ok(json!(7))),
            ("$step_1_result.items[1]", Ok(json!(null))),
            ("$step_1_result[\"a key\"]", Ok(json!("x"))),
            ("$step_1_result['a key']", Ok(json!("x"))),
            ("$step_1_result.0", Ok(json!("zero"))),
            ("$step_12_result[1]", Ok(json!(["second"]))),
            ("$step_2_result", Ok(json!("plain $step_1_result {{ x }}"))),
            ("id $step_1_result.items[0].id.", Ok(json!("id 7."))),
            ("see $step_1_result.items: all", Ok(json!("see [{\"id\":7,\"name\":\"a b\"},null]: all"))),
            ("$step_1_result.deep.n$step_1_result.deep.n", Ok(json!("1.51.5"))),
            ("${step_12_result[0]}s", Ok(json!("firsts"))),
            ("<$step_2_result>", Ok(json!("<plain $step_1_result {{ x }}>"))),
            ("costs $5, $HOME, ${x}, $step, $step_", Ok(json!("costs $5, $HOME, ${x}, $step, $step_"))),
            ("$", Ok(json!("$"))),
            ("$step_3_result", Err("`$step_3_result` has no value: step 3 has no result")),
            (
                "$step_1_result.itens",
                Err("there is no `itens` in the result of step 1, which has items, a key, 0, deep there"),
            ),
            (
                "$step_1_result.items[5]",
                Err("there is no `[5]` in the result of step 1, which has a list of 2 there"),
            ),
            ("$step_2_result.id", Err("there is no `id` in the result of step 2, which has text there")),
            ("a $step_1_result.deep.n.x b", Err("there is no `x` in the result of step 1")),
        ] {
            match (fill_references(&json!({ "k": [text] }), &results(&values())), expected) {
                (Ok(filled), Ok(expected)) => assert_eq!(filled, json!({ "k": [expected] }), "{text}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn what_only_looks_like_a_reference_is_told() {
        for text in [
            "$step_1_output", "$step_1_results", "$step_1_result_x", "$step_1", "$step_99999999999_result",
            "$step_1_result[*]", "$step_1_result[-1]", "$step_1_result[x]", "${step_1_result",
            "${step_1_result|upper}",
        ] {
            let found = find_references(&json!(format!("before {text} after")));
            assert_eq!((found.references.len(), found.mistakes.as_slice()), (0, &[text.to_owned()][..]), "{text}");
        }
    }

    #[test]
    fn holes_know_whether_they_become_text() {
        let value = json!({ "a/b": ["$step_1_result", "x $step_1_result"], "~": "none", "$step_1_result": 1 });
        let expected = [("/a~1b/0".to_owned(), Hole::Anything), ("/a~1b/1".to_owned(), Hole::Text)];
        assert_eq!(find_holes(&value), expected.into());
    }

    #[test]
    fn results_that_double_have_a_bound() {
        let large = json!("x".repeat(9 << 20));
        let results: Results<'_> = [(1, &large)].into();
        let once = json!({ "a": "$step_1_result" });
        assert!(fill_references(&once, &results).is_ok());
        let twice = json!({ "a": "$step_1_result", "b": "and $step_1_result" });
        let why = fill_references(&twice, &results).expect_err("too large");
        assert!(why.contains("larger than 16 MiB"), "{why}");
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            Just(Value::from("$step_2_result")),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z ]{1,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_whole_reference_is_the_value_and_nothing_of_it_is_looked_at(result in value()) {
            let results: Results<'_> = [(1, &result)].into();
            let filled = fill_references(&json!(["$step_1_result", { "k": "${step_1_result}" }]), &results);
            prop_assert_eq!(filled, Ok(json!([result, { "k": result }])));
        }

        #[test]
        fn every_part_is_found_by_its_own_name(result in value()) {
            fn walk(value: &Value, reference: &Reference, results: &Results<'_>) {
                let written = Value::from(reference.to_string());
                assert_eq!(fill_references(&written, results).as_ref(), Ok(value), "{written}");
                let deeper = |key| Reference { path: [reference.path.clone(), vec![key]].concat(), ..*reference };
                match value {
                    Value::Array(items) => items.iter().enumerate()
                        .for_each(|(at, item)| walk(item, &deeper(ReferenceKey::Index(at)), results)),
                    Value::Object(fields) => fields.iter()
                        .for_each(|(name, item)| walk(item, &deeper(ReferenceKey::Name(name.clone())), results)),
                    _ => {}
                }
            }
            let results: Results<'_> = [(1, &result)].into();
            walk(&result, &Reference { step: 1, path: Vec::new() }, &results);
        }

        #[test]
        fn no_text_makes_it_panic(text in "(\\$|\\{|\\}|step_|1|_result|\\.|\\[|\\]|\"|'|é|a| ){0,16}") {
            let known = json!({ "a": [1] });
            let results: Results<'_> = [(1, &known)].into();
            let _ = fill_references(&Value::from(text.as_str()), &results);
            let _ = find_references(&Value::from(text.as_str()));
        }

        #[test]
        fn a_value_without_references_stays_as_it_is(result in value()) {
            prop_assume!(find_references(&result).references.is_empty());
            prop_assert_eq!(fill_references(&result, &Results::new()), Ok(result));
        }
    }
}
