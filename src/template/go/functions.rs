//! The functions of Go's templates. `and` and `or`, which evaluate only as many arguments as they need, are in `run`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write;

use minijinja::Value;

use super::values::{self, Basic, classify_value, for_formatting, is_list, is_map, type_name};
use crate::template::{LONGEST_OUTPUT, value_too_long};

/// A function with the fewest and the most arguments that it takes.
type FunctionRow = (&'static str, usize, usize, fn(&[Value]) -> Result<Value, String>);

/// Every function.
const FUNCTIONS: &[FunctionRow] = &[
    ("eq", 2, usize::MAX, equal_to_any),
    ("ne", 2, 2, |of| Ok(Value::from(!is_equal(&of[0], &of[1])?))),
    ("lt", 2, 2, |of| compare_order(of, Ordering::is_lt)),
    ("le", 2, 2, |of| compare_order(of, Ordering::is_le)),
    ("gt", 2, 2, |of| compare_order(of, Ordering::is_gt)),
    ("ge", 2, 2, |of| compare_order(of, Ordering::is_ge)),
    ("not", 1, 1, |of| Ok(Value::from(!values::is_true(&of[0])))),
    ("len", 1, 1, get_length),
    ("index", 1, usize::MAX, |of| of[1..].iter().try_fold(of[0].clone(), |value, key| get_index(&value, key))),
    ("slice", 1, 4, get_slice),
    ("print", 0, usize::MAX, |of| print_values(of, false)),
    ("println", 0, usize::MAX, |of| print_values(of, true)),
    ("printf", 1, usize::MAX, print_format),
    ("html", 1, usize::MAX, |of| escape_texts(of, gotmpl::html_escape)),
    ("js", 1, usize::MAX, |of| escape_texts(of, gotmpl::js_escape)),
    ("urlquery", 1, usize::MAX, |of| escape_texts(of, gotmpl::url_encode)),
];

/// The numbers of arguments that a function takes; an error says that there is no such function.
pub(super) fn count_arguments(name: &str) -> Result<(usize, usize), String> {
    match name {
        "and" | "or" => Ok((1, usize::MAX)),
        "call" => Err("`call` is not supported: no value is a function".to_owned()),
        _ => find_function(name).map(|(_, fewest, most, _)| (*fewest, *most)),
    }
}

fn find_function(name: &str) -> Result<&'static FunctionRow, String> {
    FUNCTIONS.iter().find(|(known, ..)| *known == name).ok_or_else(|| {
        let known: Vec<&str> = FUNCTIONS.iter().map(|(known, ..)| *known).collect();
        format!("there is no function `{name}`; there are and, or, {}", known.join(", "))
    })
}

/// Calls a function by its name.
pub(super) fn call_function(name: &str, given: &[Value]) -> Result<Value, String> {
    let (fewest, most) = count_arguments(name)?;
    if given.len() < fewest || given.len() > most {
        let wanted = if given.len() < fewest { format!("at least {fewest}") } else { format!("at most {most}") };
        return Err(format!("`{name}` takes {wanted} arguments, not {}", given.len()));
    }
    let (.., function) = find_function(name)?;
    function(given)
}

/// The value as `{{.}}` shows it; `<no value>` for nothing.
pub(super) fn show_value(value: &Value) -> Result<Cow<'_, str>, String> {
    match classify_value(value) {
        Basic::Text(text) => Ok(text.into()),
        Basic::Nil => Ok("<no value>".into()),
        _ => values::show_value(value).map(Cow::from),
    }
}

fn equal_to_any(of: &[Value]) -> Result<Value, String> {
    let equal = of[1..].iter().map(|other| is_equal(&of[0], other)).find(|equal| *equal != Ok(false));
    equal.unwrap_or(Ok(false)).map(Value::from)
}

fn is_equal(one: &Value, other: &Value) -> Result<bool, String> {
    match (classify_value(one), classify_value(other)) {
        (Basic::Other, _) | (_, Basic::Other) => {
            Err(format!("a {} and a {} cannot be compared", type_name(one), type_name(other)))
        }
        (Basic::Nil, other) | (other, Basic::Nil) => Ok(other == Basic::Nil),
        (one, other) if std::mem::discriminant(&one) == std::mem::discriminant(&other) => Ok(one == other),
        _ => Err(refuse_comparison(one, other)),
    }
}

fn compare_order(of: &[Value], wanted: fn(Ordering) -> bool) -> Result<Value, String> {
    let order = match (classify_value(&of[0]), classify_value(&of[1])) {
        (Basic::Int(one), Basic::Int(other)) => Some(one.cmp(&other)),
        (Basic::Text(one), Basic::Text(other)) => Some(one.cmp(other)),
        (Basic::Float(one), Basic::Float(other)) => one.partial_cmp(&other),
        _ => return Err(refuse_comparison(&of[0], &of[1])),
    };
    Ok(Value::from(order.is_some_and(wanted)))
}

fn refuse_comparison(one: &Value, other: &Value) -> String {
    format!("a value of type {} cannot be compared with one of type {}", type_name(one), type_name(other))
}

fn get_length(of: &[Value]) -> Result<Value, String> {
    let value = &of[0];
    // Bytes, as in Go.
    let length = value.as_str().map(str::len).or_else(|| value.len().filter(|_| is_list(value) || is_map(value)));
    length.map(Value::from).ok_or_else(|| format!("a value of type {} has no length", type_name(value)))
}

fn get_index(value: &Value, key: &Value) -> Result<Value, String> {
    let number = || match classify_value(key) {
        Basic::Int(number) => Ok(number),
        _ => Err(format!("a value of type {} is not an index of a {}", type_name(key), type_name(value))),
    };
    match classify_value(value) {
        Basic::Text(text) => {
            let at = number()?;
            let byte = usize::try_from(at).ok().and_then(|at| text.as_bytes().get(at));
            byte.map(|byte| Value::from(*byte)).ok_or_else(|| out_of_range(at, text.len()))
        }
        _ if is_list(value) => {
            let (at, length) = (number()?, value.len().unwrap_or(0));
            let item = usize::try_from(at).ok().filter(|at| *at < length);
            let item = item.ok_or_else(|| out_of_range(at, length))?;
            value.get_item_by_index(item).map_err(|_| out_of_range(at, length))
        }
        _ if is_map(value) => {
            Ok(value.get_item(key).ok().filter(|item| !item.is_undefined()).unwrap_or(Value::from(())))
        }
        _ => Err(format!("a value of type {} has no items", type_name(value))),
    }
}

fn out_of_range(at: i128, length: usize) -> String {
    format!("there is no item {at} in {length}")
}

fn get_slice(of: &[Value]) -> Result<Value, String> {
    let value = &of[0];
    let length = match value.as_str() {
        Some(text) if of.len() < 4 => text.len(),
        Some(_) => return Err("a string is sliced by two numbers at most".to_owned()),
        None if is_list(value) => value.len().unwrap_or(0),
        None => return Err(format!("a value of type {} cannot be sliced", type_name(value))),
    };
    let mut bounds = Vec::new();
    for bound in &of[1..] {
        let Basic::Int(at) = classify_value(bound) else {
            return Err(format!("a value of type {} is not a bound of a slice", type_name(bound)));
        };
        let at = usize::try_from(at).ok().filter(|at| *at <= length).ok_or_else(|| out_of_range(at, length))?;
        bounds.push(at);
    }
    if !bounds.is_sorted() {
        return Err("the bounds of a slice go upwards".to_owned());
    }
    let start = bounds.first().copied().unwrap_or(0);
    let end = bounds.get(1).copied().unwrap_or(length);
    match value.as_str() {
        Some(text) => {
            let cut = || format!("a slice from byte {start} to {end} cuts a character in two");
            text.get(start..end).map(Value::from).ok_or_else(cut)
        }
        None => {
            let items = value.try_iter().map_err(|_| "a list cannot be read".to_owned())?;
            Ok(Value::from(items.skip(start).take(end.saturating_sub(start)).collect::<Vec<_>>()))
        }
    }
}

fn escape_texts(of: &[Value], escape: fn(&str) -> String) -> Result<Value, String> {
    let text = match of {
        [one] if one.as_str().is_some() => one.clone(),
        _ => print_values(of, false)?,
    };
    bound_text(escape(text.as_str().unwrap_or_default()))
}

/// `printf`, unless its result could be too large: widths are clamped, but each verb has its own.
fn print_format(of: &[Value]) -> Result<Value, String> {
    const WIDEST: usize = u16::MAX as usize;
    const MOST: usize = 64 * LONGEST_OUTPUT;
    let Some(format) = of[0].as_str() else {
        let kind = type_name(&of[0]);
        return Err(format!("the first argument of `printf` is a format, not a value of type {kind}"));
    };
    let verbs = format.matches('%').count();
    // A width is written in digits, or is an argument.
    let is_wide = format.contains('*') || format.bytes().filter(u8::is_ascii_digit).count() > 2;
    let mut largest = if is_wide { WIDEST } else { 100 };
    for value in &of[1..] {
        // A byte is at most `\x00` or ` 0x00` of a quoted text or of one in hexadecimal digits.
        largest = largest.max(show_value(value)?.len().saturating_mul(6));
    }
    if verbs.saturating_mul(largest) > MOST {
        return Err(value_too_long());
    }
    format_values(of)
}

/// The result of the crate's own `printf`, which can only be called by a template.
fn format_values(of: &[Value]) -> Result<Value, String> {
    let mut source = "{{printf".to_owned();
    let mut named = std::collections::BTreeMap::new();
    let mut bytes = 0;
    for (number, value) in of.iter().enumerate() {
        let _ = write!(source, " .a{number}");
        bytes += value.as_str().map_or(0, str::len);
        if bytes > 16 * LONGEST_OUTPUT {
            return Err(value_too_long());
        }
        named.insert(format!("a{number}").into(), for_formatting(value)?);
    }
    source += "}}";
    let template = gotmpl::Template::new("").parse(&source).map_err(|error| error.to_string())?;
    let text = template.execute_to_string(&gotmpl::Value::Map(named.into())).map_err(|error| error.to_string())?;
    bound_text(text)
}

/// `print`, with a space between values that are not texts; or `println`, with one between all.
fn print_values(of: &[Value], is_line: bool) -> Result<Value, String> {
    let mut out = String::new();
    let mut after_text = true;
    for (number, value) in of.iter().enumerate() {
        let is_text = value.as_str().is_some();
        if number > 0 && (is_line || !(is_text || after_text)) {
            out.push(' ');
        }
        out += &values::show_value(value)?;
        if out.len() > LONGEST_OUTPUT {
            return Err(value_too_long());
        }
        after_text = is_text;
    }
    if is_line {
        out.push('\n');
    }
    bound_text(out)
}

fn bound_text(text: String) -> Result<Value, String> {
    if text.len() > LONGEST_OUTPUT { Err(value_too_long()) } else { Ok(Value::from(text)) }
}
