//! Formats values like Python: `str`, `repr` and `ascii`.

use std::fmt::{self, Write};

use minijinja::Value;
use minijinja::value::ValueKind;

use super::DEEPEST;

/// `str(value)`.
pub(super) fn write_str(out: &mut impl Write, value: &Value) -> fmt::Result {
    match value.as_str() {
        Some(text) => out.write_str(text),
        None => write_repr(out, value, false),
    }
}

/// `repr(value)`, or `ascii(value)`.
pub(super) fn write_repr(out: &mut impl Write, value: &Value, ascii: bool) -> fmt::Result {
    write_nested(out, value, ascii, 0)
}

fn write_nested(out: &mut impl Write, value: &Value, ascii: bool, depth: usize) -> fmt::Result {
    if depth > DEEPEST {
        return Err(fmt::Error);
    }
    match value.kind() {
        ValueKind::Undefined => Ok(()),
        ValueKind::None => out.write_str("None"),
        ValueKind::Bool => out.write_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number if value.is_integer() => write!(out, "{value}"),
        ValueKind::Number => out.write_str(&format_float(f64::try_from(value.clone()).unwrap_or(f64::NAN))),
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default(), ascii),
        ValueKind::Seq | ValueKind::Iterable => {
            out.write_char('[')?;
            for (number, item) in value.try_iter().map_err(|_| fmt::Error)?.enumerate() {
                if number > 0 {
                    out.write_str(", ")?;
                }
                write_nested(out, &item, ascii, depth + 1)?;
            }
            out.write_char(']')
        }
        // A map that cannot be listed formats itself.
        ValueKind::Map if value.try_iter().is_ok() => {
            out.write_char('{')?;
            for (number, key) in value.try_iter().map_err(|_| fmt::Error)?.enumerate() {
                if number > 0 {
                    out.write_str(", ")?;
                }
                write_nested(out, &key, ascii, depth + 1)?;
                out.write_str(": ")?;
                write_nested(out, &value.get_item(&key).unwrap_or_default(), ascii, depth + 1)?;
            }
            out.write_char('}')
        }
        _ => write!(out, "{value}"),
    }
}

/// `repr(number)`: the shortest digits that read back, with an exponent if the number is very large or small.
pub(super) fn format_float(number: f64) -> String {
    if !number.is_finite() {
        return not_finite(number).to_owned();
    }
    let shortest = format!("{number:e}");
    let (digits, exponent) = split_exponent(&shortest);
    if (-4..16).contains(&exponent) { format!("{number:?}") } else { format!("{digits}e{exponent:+03}") }
}

/// The digits of `1.5e-7`, and the exponent.
pub(super) fn split_exponent(written: &str) -> (&str, i32) {
    let (digits, exponent) = written.split_once('e').unwrap_or((written, "0"));
    (digits, exponent.parse().unwrap_or(0))
}

/// `nan`, `inf` and `-inf`.
pub(super) fn not_finite(number: f64) -> &'static str {
    match number {
        _ if number.is_nan() => "nan",
        _ if number < 0.0 => "-inf",
        _ => "inf",
    }
}

fn write_quoted(out: &mut impl Write, text: &str, ascii: bool) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            _ if c == quote => write!(out, "\\{c}")?,
            _ if is_printable(c) && (c.is_ascii() || !ascii) => out.write_char(c)?,
            _ => match u32::from(c) {
                code @ ..=0xff => write!(out, "\\x{code:02x}")?,
                code @ ..=0xffff => write!(out, "\\u{code:04x}")?,
                code => write!(out, "\\U{code:08x}")?,
            },
        }
    }
    out.write_char(quote)
}

/// True if Python would show the character itself. Characters that no version of Unicode has assigned count as
/// printable.
fn is_printable(c: char) -> bool {
    let format = matches!(u32::from(c),
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x180e | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x2064
        | 0x2066..=0x206f | 0xe000..=0xf8ff | 0xfeff | 0xfff9..=0xfffb | 0xe0001 | 0xe0020..=0xe007f
        | 0xf_0000..=0x10_ffff);
    c == ' ' || !(c.is_control() || c.is_whitespace() || format)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{format_float, write_repr};
    use crate::template::convert_value;

    #[test]
    fn values_look_as_in_python() {
        for (given, expected) in [
            (json!(["a", 1, 1.0, true, null]), "['a', 1, 1.0, True, None]"),
            (json!({"b": {"c": []}, "a": {}}), "{'b': {'c': []}, 'a': {}}"),
            (json!("it's"), "\"it's\""),
            (json!("it's \"x\""), "'it\\'s \"x\"'"),
            (json!("a\nb\\\u{7f}\u{a0}é"), "'a\\nb\\\\\\x7f\\xa0é'"),
        ] {
            let mut out = String::new();
            write_repr(&mut out, &convert_value(&given), false).expect("short");
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn numbers_look_as_in_python() {
        for (number, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(format_float(number), expected);
        }
    }
}
