//! Values with Go's semantics: truth, comparison and formatting.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::ValueKind;

use crate::template::python::split_exponent;
use crate::template::{DEEPEST, LONGEST_OUTPUT, MOST_ITEMS, value_too_long};

/// The kind of a value for Go's comparisons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Basic<'v> {
    Nil,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(&'v str),
    /// A list or a map, or something else that cannot be compared.
    Other,
}

pub(super) fn classify_value(value: &Value) -> Basic<'_> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Basic::Nil,
        ValueKind::Bool => Basic::Bool(value.is_true()),
        ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).map_or(Basic::Other, Basic::Int),
        ValueKind::Number => f64::try_from(value.clone()).map_or(Basic::Other, Basic::Float),
        _ => value.as_str().map_or(Basic::Other, Basic::Text),
    }
}

/// The name of its type, for errors.
pub(super) fn type_name(value: &Value) -> &'static str {
    match classify_value(value) {
        Basic::Nil => "nil",
        Basic::Bool(_) => "bool",
        Basic::Int(_) => "int",
        Basic::Float(_) => "float",
        Basic::Text(_) => "string",
        Basic::Other if is_map(value) => "map",
        Basic::Other if is_list(value) => "list",
        Basic::Other => "object",
    }
}

pub(super) fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

pub(super) fn is_map(value: &Value) -> bool {
    value.kind() == ValueKind::Map
}

/// True if it counts as true for `{{if}}`: it is neither zero nor empty.
pub(super) fn is_true(value: &Value) -> bool {
    match classify_value(value) {
        Basic::Nil => false,
        Basic::Bool(value) => value,
        Basic::Int(value) => value != 0,
        Basic::Float(value) => value != 0.0,
        Basic::Text(value) => !value.is_empty(),
        Basic::Other => value.is_true(),
    }
}

/// The keys of a map in the order in which Go goes through them.
pub(super) fn sorted_keys(map: &Value) -> Vec<Value> {
    let mut keys: Vec<Value> = map.try_iter().into_iter().flatten().collect();
    keys.sort();
    keys
}

/// Converts it to a value of the formatting crate; an error if it is too large.
pub(super) fn for_formatting(value: &Value) -> Result<gotmpl::Value, String> {
    let converted = ValueAllowance::new(gotmpl::Value::Float).convert(value, 0);
    converted.ok_or_else(|| "a value is too large to be shown".to_owned())
}

/// Formats it like Go's `%v`; an error if that is too long.
pub(super) fn show_value(value: &Value) -> Result<String, String> {
    // The crate's own text of a float has no exponent.
    let float = |number| gotmpl::Value::String(format_float(number).into());
    let shown = ValueAllowance::new(float).convert(value, 0).map(|value| value.to_string());
    shown.filter(|shown| shown.len() <= LONGEST_OUTPUT).ok_or_else(value_too_long)
}

/// The shortest digits that read back, with an exponent if the number is large or small.
fn format_float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let written = format!("{number:e}");
    let (digits, exponent) = split_exponent(&written);
    if (-4..6).contains(&exponent) { number.to_string() } else { format!("{digits}e{exponent:+03}") }
}

/// What is left of the size that a value may have.
struct ValueAllowance {
    items: usize,
    bytes: usize,
    float: fn(f64) -> gotmpl::Value,
}

impl ValueAllowance {
    fn new(float: fn(f64) -> gotmpl::Value) -> Self {
        Self { items: MOST_ITEMS, bytes: LONGEST_OUTPUT, float }
    }

    fn text(&mut self, text: &str) -> Option<Arc<str>> {
        self.bytes = self.bytes.checked_sub(text.len())?;
        Some(Arc::from(text))
    }

    fn convert(&mut self, value: &Value, depth: usize) -> Option<gotmpl::Value> {
        self.items = self.items.checked_sub(1).filter(|_| depth <= DEEPEST)?;
        Some(match classify_value(value) {
            Basic::Nil => gotmpl::Value::Nil,
            Basic::Bool(value) => gotmpl::Value::Bool(value),
            Basic::Int(number) => match (i64::try_from(number), u64::try_from(number)) {
                (Ok(number), _) => gotmpl::Value::Int(number),
                (_, Ok(number)) => gotmpl::Value::Uint(number),
                _ => gotmpl::Value::String(self.text(&number.to_string())?),
            },
            Basic::Float(number) => (self.float)(number),
            Basic::Text(text) => gotmpl::Value::String(self.text(text)?),
            Basic::Other if is_list(value) => {
                let mut items = Vec::new();
                for item in value.try_iter().ok()? {
                    items.push(self.convert(&item, depth + 1)?);
                }
                gotmpl::Value::List(items.into())
            }
            Basic::Other if is_map(value) && value.try_iter().is_ok() => {
                let mut entries = BTreeMap::new();
                for key in value.try_iter().ok()? {
                    let item = self.convert(&value.get_item(&key).unwrap_or_default(), depth + 1)?;
                    entries.insert(self.text(&key.to_string())?, item);
                }
                gotmpl::Value::Map(Arc::new(entries))
            }
            Basic::Other => gotmpl::Value::String(self.text(&value.to_string())?),
        })
    }
}

/// The approximate size of a value in bytes, without the values in it.
pub(super) fn estimate_size(value: &Value) -> usize {
    const ITEM: usize = 32;
    value.as_str().map_or_else(|| value.len().unwrap_or(1).saturating_mul(ITEM), str::len)
}
