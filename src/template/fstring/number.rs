//! Numbers in the forms of Python's format specs.

use super::layout::{Spec, pad_text};
use crate::template::python::{format_float, not_finite, split_exponent};

/// An integer; types of floats make one of it first.
pub(super) fn of_integer(number: i128, spec: Spec) -> Result<String, String> {
    let magnitude = number.unsigned_abs();
    let (prefix, digits) = match spec.kind {
        None | Some('d') => ("", magnitude.to_string()),
        Some('b') => ("0b", format!("{magnitude:b}")),
        Some('o') => ("0o", format!("{magnitude:o}")),
        Some('x') => ("0x", format!("{magnitude:x}")),
        Some('X') => ("0X", format!("{magnitude:X}")),
        Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') => return of_float(number as f64, spec),
        Some('c') => {
            let c = u32::try_from(number).ok().and_then(char::from_u32);
            let c = c.ok_or_else(|| format!("{number} is not a character"))?;
            return Ok(pad_text("", &c.to_string(), spec, '<'));
        }
        Some(other) => return Err(format!("`{other}` is not a format for an integer")),
    };
    if spec.precision.is_some() {
        return Err("an integer has no precision".to_owned());
    }
    if spec.grouping == Some(',') && !prefix.is_empty() {
        return Err("`,` is for decimal numbers".to_owned());
    }
    let size = if prefix.is_empty() { 3 } else { 4 };
    let prefix = if spec.alternate { prefix } else { "" };
    Ok(place_digits(&format!("{}{prefix}", choose_sign(number < 0, spec)), &digits, "", size, spec))
}

/// A float.
pub(super) fn of_float(number: f64, spec: Spec) -> Result<String, String> {
    if spec.alternate {
        return Err("`#` is not supported for floats".to_owned());
    }
    let magnitude = number.abs();
    let precision = spec.precision.unwrap_or(6);
    let text = match spec.kind {
        _ if !number.is_finite() => not_finite(magnitude).to_owned(),
        Some('f' | 'F') => format!("{magnitude:.precision$}"),
        Some('%') => format!("{:.precision$}", magnitude * 100.0),
        Some('e' | 'E') => format_scientific(magnitude, precision),
        Some('g' | 'G') => format_general(magnitude, precision.max(1), 0),
        None => match spec.precision {
            None => format_float(magnitude),
            Some(precision) => format_general(magnitude, precision.max(1), 1),
        },
        Some(other) => return Err(format!("`{other}` is not a format for a float")),
    };
    let text = if matches!(spec.kind, Some('E' | 'F' | 'G')) { text.to_uppercase() } else { text };
    let whole = text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(whole);
    let rest = if spec.kind == Some('%') { format!("{rest}%") } else { rest.to_owned() };
    Ok(place_digits(choose_sign(number.is_sign_negative() && !number.is_nan(), spec), whole, &rest, 3, spec))
}

fn choose_sign(negative: bool, spec: Spec) -> &'static str {
    match spec.sign {
        _ if negative => "-",
        '+' => "+",
        ' ' => " ",
        _ => "",
    }
}

/// `1.235e+04`
fn format_scientific(number: f64, precision: usize) -> String {
    let written = format!("{number:.precision$e}");
    let (digits, exponent) = split_exponent(&written);
    format!("{digits}e{exponent:+03}")
}

/// Formats with `precision` digits, without zeros at the end, but with at least `kept` digits after the point.
fn format_general(number: f64, precision: usize, kept: usize) -> String {
    let rounded = format!("{number:.*e}", precision - 1);
    let (rounded, exponent) = split_exponent(&rounded);
    let digits = i32::try_from(precision).unwrap_or(i32::MAX);
    let last = digits - i32::from(kept > 0);
    if exponent < -4 || exponent >= last {
        return format!("{}e{exponent:+03}", trim_digits(rounded, 0));
    }
    let behind = usize::try_from(digits - 1 - exponent).unwrap_or(0);
    trim_digits(&format!("{number:.behind$}"), kept)
}

fn trim_digits(digits: &str, kept: usize) -> String {
    match digits.split_once('.') {
        None if kept == 0 => digits.to_owned(),
        None => format!("{digits}.{}", "0".repeat(kept)),
        Some((whole, behind)) => {
            let behind = behind.trim_end_matches('0');
            let behind = format!("{behind:0<kept$}");
            if behind.is_empty() { whole.to_owned() } else { format!("{whole}.{behind}") }
        }
    }
}

/// Groups the digits and pads to the width. Zeros of the padding are grouped too.
fn place_digits(sign: &str, digits: &str, rest: &str, size: usize, spec: Spec) -> String {
    let is_zero_filled = spec.align == Some('0') || (spec.align == Some('=') && spec.fill == '0');
    let spec = Spec { align: spec.align.map(|align| if align == '0' { '=' } else { align }), ..spec };
    let Some(separator) = spec.grouping.filter(|_| !digits.is_empty()) else {
        return pad_text(sign, &format!("{digits}{rest}"), spec, '>');
    };
    let room = spec.width.saturating_sub(sign.chars().count() + rest.chars().count());
    let mut digits = digits.to_owned();
    // A separator never comes first, so the last zero may make it longer than the width by one.
    while is_zero_filled && digits.len() + (digits.len() - 1) / size < room {
        digits.insert(0, '0');
    }
    let mut grouped = String::new();
    for (number, digit) in digits.chars().enumerate() {
        if number > 0 && (digits.len() - number).is_multiple_of(size) {
            grouped.push(separator);
        }
        grouped.push(digit);
    }
    pad_text(sign, &format!("{grouped}{rest}"), spec, '>')
}
