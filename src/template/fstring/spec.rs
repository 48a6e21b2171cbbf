//! Format specs: `[[fill]align][sign][#][0][width][grouping][.precision][type]`.

use minijinja::Value;
use minijinja::value::ValueKind;

use super::layout::{Spec, pad_text};
use super::number;

/// The most that a width or a precision may ask for.
const MOST: usize = 10_000;

/// The value in the form that the spec asks for.
pub(super) fn format_value(value: &Value, written: &str) -> Result<String, String> {
    let spec = read_spec(written)?;
    match value.kind() {
        ValueKind::String => of_text(value.as_str().unwrap_or_default(), spec),
        ValueKind::Bool => number::of_integer(i128::from(value.is_true()), spec),
        ValueKind::Number => match i128::try_from(value.clone()) {
            Ok(integer) if value.is_integer() => number::of_integer(integer, spec),
            _ => number::of_float(f64::try_from(value.clone()).unwrap_or(f64::NAN), spec),
        },
        kind => Err(format!("a value of type {kind} has no formats; `!s` makes a text of it first")),
    }
}

fn of_text(text: &str, spec: Spec) -> Result<String, String> {
    match spec {
        Spec { kind: Some(kind), .. } if kind != 's' => Err(format!("`{kind}` is not a format for text")),
        Spec { sign: '+' | ' ', .. } => Err("text has no sign".to_owned()),
        Spec { alternate: true, .. } => Err("`#` is not a format for text".to_owned()),
        Spec { grouping: Some(sign), .. } => Err(format!("`{sign}` is not a format for text")),
        Spec { align: Some('='), .. } => Err("`=` is not an alignment for text".to_owned()),
        _ => {
            let cut =
                spec.precision.and_then(|most| text.char_indices().nth(most)).map_or(text.len(), |(at, _)| at);
            let align = spec.align.filter(|align| *align != '0');
            Ok(pad_text("", &text[..cut], Spec { align, ..spec }, '<'))
        }
    }
}

fn read_spec(written: &str) -> Result<Spec, String> {
    let is_align = |c: &char| "<>^=".contains(*c);
    let mut signs = written.chars();
    let (first, second) = (signs.next(), signs.next());
    let (fill, align, length) = match (first, second.filter(is_align), first.filter(is_align)) {
        (Some(fill), Some(align), _) => (Some(fill), Some(align), fill.len_utf8() + 1),
        (_, _, align) => (None, align, usize::from(align.is_some())),
    };
    let mut rest = &written[length..];
    let mut take = |wanted: &str| {
        let found = rest.chars().next().filter(|c| wanted.contains(*c));
        rest = &rest[usize::from(found.is_some())..];
        found
    };
    let sign = take("+- ").unwrap_or('-');
    if take("z").is_some() {
        return Err("`z` is not supported".to_owned());
    }
    let alternate = take("#").is_some();
    let zero = take("0");
    let (width, rest) = read_number(rest)?;
    let (grouping, rest) = match rest.strip_prefix([',', '_']) {
        Some(after) => (rest.chars().next(), after),
        None => (None, rest),
    };
    let (precision, rest) =
        rest.strip_prefix('.').map_or(Ok((None, rest)), |digits| match read_number(digits)? {
            (None, _) => Err("a precision has digits behind its point".to_owned()),
            precision => Ok(precision),
        })?;
    let mut kinds = rest.chars();
    match (kinds.next(), kinds.next()) {
        (Some('n'), None) => Err("`n` (numbers as a place writes them) is not supported".to_owned()),
        (_, Some(_)) => Err(format!("`{written}` is not a format")),
        (kind, None) => Ok(Spec {
            fill: fill.or(zero).unwrap_or(' '),
            // A zero before the width fills between the sign and the number.
            align: align.or(zero),
            sign,
            alternate,
            width: width.unwrap_or(0),
            grouping,
            precision,
            kind,
        }),
    }
}

/// The number at the beginning of a text, if there is one, and the rest.
fn read_number(text: &str) -> Result<(Option<usize>, &str), String> {
    let (digits, rest) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    if digits.is_empty() {
        return Ok((None, rest));
    }
    let number = digits.parse().ok().filter(|number| *number <= MOST);
    let number =
        number.ok_or_else(|| format!("{digits} is more than {MOST}, the most of a width or a precision"))?;
    Ok((Some(number), rest))
}

#[cfg(test)]
mod tests {
    use super::format_value;
    use crate::template::Value;

    #[test]
    fn specs_are_those_of_python() {
        let cases: [(Value, &str, &str); 35] = [
            ("ab".into(), ">5", "   ab"),
            ("ab".into(), "^5", " ab  "),
            ("ab".into(), "*<5", "ab***"),
            ("ab".into(), "05", "ab000"),
            ("abc".into(), ".2", "ab"),
            ("abc".into(), "5.2s", "ab   "),
            (42.into(), "d", "42"),
            (42.into(), "5", "   42"),
            (42.into(), "<5", "42   "),
            (42.into(), "+d", "+42"),
            (42.into(), " d", " 42"),
            (Value::from(-42), "06", "-00042"),
            (255.into(), "x", "ff"),
            (255.into(), "#X", "0XFF"),
            (255.into(), "#010b", "0b11111111"),
            (255.into(), "o", "377"),
            (1_234_567.into(), ",", "1,234,567"),
            (1_234_567.into(), "_", "1_234_567"),
            (65_535.into(), "_x", "ffff"),
            (1_048_575.into(), "_b", "1111_1111_1111_1111_1111"),
            (1234.into(), "08,", "0,001,234"),
            (1234.into(), "07,", "001,234"),
            (97.into(), "c", "a"),
            (42.into(), ".2f", "42.00"),
            (true.into(), "d", "1"),
            (true.into(), ">5", "    1"),
            (1.23456.into(), ".2f", "1.23"),
            (1.23456.into(), "8.2f", "    1.23"),
            (0.256.into(), ".1%", "25.6%"),
            (1234.5.into(), ",.2f", "1,234.50"),
            (12345.678.into(), ".3e", "1.235e+04"),
            (12345.678.into(), "g", "12345.7"),
            (1e-7.into(), "G", "1E-07"),
            (12345.0.into(), ".6", "12345.0"),
            (123_456.0.into(), ".6", "1.23456e+05"),
        ];
        for (value, spec, expected) in cases {
            assert_eq!(format_value(&value, spec).as_deref(), Ok(expected), "{value}:{spec}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (value, spec) in [
            (Value::from("a"), "d"),
            ("a".into(), "+5"),
            ("a".into(), ","),
            (1.into(), "s"),
            (1.into(), ".2"),
            (1.into(), ".2d"),
            (1.5.into(), "d"),
            (1.5.into(), "x"),
            (1.into(), "q"),
            (1.into(), "99999999999999999999999"),
            (1.into(), ">999999999"),
            (1.5.into(), ".99999f"),
            (1.into(), "n"),
            (1.into(), ",x"),
            (().into(), ">5"),
        ] {
            assert!(format_value(&value, spec).is_err(), "{value}:{spec}");
        }
    }
}
