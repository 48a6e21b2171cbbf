//! Methods of Python's texts that the engine's own collection lacks.

use minijinja::value::Tuple;
use minijinja::{Error, ErrorKind, Value};

type Method = fn(&str, &[Value]) -> Result<Value, Error>;

/// Every method by its name.
const METHODS: &[(&str, Method)] = &[
    ("casefold", |text, _| Ok(Value::from(text.to_lowercase()))),
    ("center", |text, given| {
        let (missing, fill) = measure_padding(text, given)?;
        // If the padding is odd, the larger half is on the left if the width is odd too, as in Python.
        let left = missing / 2 + (missing & (text.chars().count() + missing) & 1);
        Ok(Value::from(format!("{}{text}{}", fill.repeat(left), fill.repeat(missing - left))))
    }),
    ("ljust", |text, given| {
        measure_padding(text, given).map(|(missing, fill)| Value::from(text.to_owned() + &fill.repeat(missing)))
    }),
    ("rjust", |text, given| {
        measure_padding(text, given).map(|(missing, fill)| Value::from(fill.repeat(missing) + text))
    }),
    ("zfill", |text, given| {
        let (missing, _) = measure_padding(text, given)?;
        let digits = text.strip_prefix(['+', '-']);
        let sign = digits.map_or("", |digits| &text[..text.len() - digits.len()]);
        Ok(Value::from(format!("{sign}{}{}", "0".repeat(missing), digits.unwrap_or(text))))
    }),
    ("removeprefix", |text, given| {
        get_argument(given).map(|prefix| Value::from(text.strip_prefix(prefix).unwrap_or(text)))
    }),
    ("removesuffix", |text, given| {
        get_argument(given).map(|suffix| Value::from(text.strip_suffix(suffix).unwrap_or(text)))
    }),
    ("swapcase", |text, _| {
        let swapped = text
            .chars()
            .map(|c| if c.is_uppercase() { c.to_lowercase().to_string() } else { c.to_uppercase().to_string() });
        Ok(Value::from(swapped.collect::<String>()))
    }),
    ("partition", |text, given| {
        let by = get_argument(given)?;
        Ok(list_parts(text.split_once(by).map_or([text, "", ""], |(before, after)| [before, by, after])))
    }),
    ("rpartition", |text, given| {
        let by = get_argument(given)?;
        Ok(list_parts(text.rsplit_once(by).map_or(["", "", text], |(before, after)| [before, by, after])))
    }),
];

/// Calls a method of a text; `None` if there is no such method here.
pub(super) fn call_method(text: &str, name: &str, given: &[Value]) -> Option<Result<Value, Error>> {
    METHODS.iter().find(|(known, _)| *known == name).map(|(_, method)| method(text, given))
}

fn list_parts(parts: [&str; 3]) -> Value {
    Value::from(Tuple::from(parts.map(Value::from).to_vec()))
}

fn get_argument(given: &[Value]) -> Result<&str, Error> {
    let text = given.first().and_then(Value::as_str).filter(|text| !text.is_empty());
    text.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "the method takes a text that is not empty"))
}

/// The number of characters of padding, and the character.
fn measure_padding(text: &str, given: &[Value]) -> Result<(usize, String), Error> {
    const WIDEST: usize = 10_000;
    let width = given.first().and_then(Value::as_i64).map_or(0, |width| usize::try_from(width).unwrap_or(0));
    let fill = given.get(1).and_then(Value::as_str).unwrap_or(" ");
    if width > WIDEST || fill.chars().count() != 1 {
        let message = format!("the method takes a width of at most {WIDEST}, and one character to fill with");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    Ok((width.saturating_sub(text.chars().count()), fill.to_owned()))
}
