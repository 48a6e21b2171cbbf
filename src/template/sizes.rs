//! Limits while a Jinja template is rendered: on the size of single values, on that of all values together, and on
//! their nesting.

use std::cell::Cell;

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters, functions};

use super::{DEEPEST, LONGEST_OUTPUT, MOST_ITEMS, value_too_long};

/// The most bytes of all values that a rendering makes.
const MOST_MADE: usize = 256 * LONGEST_OUTPUT;
/// The bytes of an item of a list.
const ITEM: usize = 32;
/// A kept text of this size is counted as if it were a copy.
const LARGE_TEXT: usize = 4096;
/// The widest field and the most digits that a format may ask for.
const WIDEST: usize = 10_000;

thread_local! {
    /// The approximate number of bytes that the rendering on this thread has made.
    static MADE: Cell<usize> = const { Cell::new(0) };
}

/// Makes the environment refuse values that are too long.
pub(super) fn bound_environment(environment: &mut Environment<'_>) {
    environment.add_filter("__operand__", |value: Value| {
        check_shown(&value)?;
        charge_value(value)
    });
    environment.add_filter("__searched__", charge_value);
    environment.add_filter("__whole__", charge_result);
    environment.add_filter("__kept__", |value: Value| {
        check_value(&value)?;
        let mut items = MOST_ITEMS;
        check_kept(&value, &mut items, 0)?;
        charge_bytes((MOST_ITEMS - items) * ITEM).map(|()| value)
    });
    add_filters(environment);
    environment
        .add_filter("count", |state: &mut State<'_, '_>, value: Value| state.apply_filter("length", &[value]));
    environment.add_function("range", |lower: isize, upper: Option<isize>, step: Option<isize>| {
        charge_value(functions::range(lower, upper, step)?)
    });
    environment.set_formatter(|out, state, value| {
        charge_bytes(check_shown(value)?)?;
        minijinja::escape_formatter(out, state, value)
    });
}

/// Begins a rendering on this thread.
pub(super) fn begin_rendering() {
    MADE.set(0);
}

/// Refuses the arguments of a method that would make a text too long.
pub(super) fn check_method(value: &Value, name: &str, arguments: &[Value]) -> Result<(), Error> {
    match (name, value.as_str(), arguments) {
        ("replace", Some(text), [from, to, ..]) => {
            check_replaced(text, from.as_str().unwrap_or_default(), to.as_str().unwrap_or_default())
        }
        ("join", Some(joiner), [items]) => check_joined(items, joiner),
        ("format", Some(format), _) => check_format(format, arguments),
        (_, Some(text), _) => charge_bytes(text.len()),
        _ => Ok(()),
    }
}

/// Checks and counts the result of a filter or a method.
pub(super) fn charge_result(value: Value) -> Result<Value, Error> {
    check_value(&value)?;
    charge_value(value)
}

fn charge_value(value: Value) -> Result<Value, Error> {
    charge_bytes(estimate_size(&value)).map(|()| value)
}

/// A check of the input of a filter: the value and then its arguments.
type FilterCheck = fn(&[Value]) -> Result<(), Error>;

/// Wraps the engine's own filters in checks; the originals stay under hidden names.
fn add_filters(environment: &mut Environment<'_>) {
    macro_rules! bounded {
        ($($name:ident: $check:expr),* $(,)?) => {$(
            environment.add_filter(concat!("__", stringify!($name), "__"), filters::$name);
            environment.add_filter(stringify!($name), |state: &mut State<'_, '_>, given: Rest<ValueOrKwargs>| {
                let given: Vec<Value> = given.0.into_iter().map(ValueOrKwargs::into_value).collect();
                let check: FilterCheck = $check;
                check(&given)?;
                charge_result(state.apply_filter(concat!("__", stringify!($name), "__"), &given)?)
            });
        )*};
    }
    bounded!(
        batch: |given| check_shown_all(given).and_then(|()| check_count(given, MOST_ITEMS)),
        capitalize: check_short, chain: check_short, dictsort: check_short, escape: check_short, groupby: check_short, items: check_short, lines: check_short,
        list: check_short, lower: check_short, map: check_short, reject: charge_test, rejectattr: charge_test, reverse: check_short, select: charge_test,
        selectattr: charge_test, sort: check_short, split: check_short, title: check_short, trim: check_short, unique: check_short, upper: check_short, zip: check_short,
        pprint: check_shown_all, string: check_shown_all, sum: check_shown_all, urlencode: check_shown_all,
        format: |given| match given {
            [format, rest @ ..] => check_format(format.as_str().unwrap_or_default(), rest),
            [] => Ok(()),
        },
        indent: check_indented,
        join: |given| match given {
            [items, rest @ ..] => check_joined(items, rest.first().and_then(Value::as_str).unwrap_or_default()),
            [] => Ok(()),
        },
        length: charge_values,
        replace: |given| match given {
            [text, from, to, ..] => {
                check_shown_all(given)?;
                check_replaced(&text.to_string(), &from.to_string(), &to.to_string())
            }
            _ => Ok(()),
        },
        slice: |given| check_short(given).and_then(|()| check_count(given, MOST_ITEMS)),
        tojson: |given| check_shown_all(given).and_then(|()| check_count(given, 16)),
    );
}

/// Checks that no value is too long or has too many items.
fn check_short(given: &[Value]) -> Result<(), Error> {
    given.iter().try_for_each(check_value)
}

/// Counts the values that a filter iterates over, although it makes nothing of them.
fn charge_values(given: &[Value]) -> Result<(), Error> {
    given.iter().try_for_each(|value| charge_bytes(estimate_size(value)))
}

/// Counts for a test, which may iterate over its argument once per item.
fn charge_test(given: &[Value]) -> Result<(), Error> {
    check_short(given)?;
    let [value, rest @ ..] = given else { return Ok(()) };
    let once: usize = rest.iter().map(|value| value.as_str().map_or(value.len().unwrap_or(1), str::len)).sum();
    charge_bytes(value.len().unwrap_or(1).saturating_mul(once))
}

fn check_shown_all(given: &[Value]) -> Result<(), Error> {
    given.iter().try_for_each(|value| charge_bytes(check_shown(value)?))
}

/// Checks that the first argument, or a named one, is a number up to `most`.
fn check_count(given: &[Value], most: usize) -> Result<(), Error> {
    const NAMES: [&str; 4] = ["count", "linecount", "slices", "indent"];
    if given.iter().skip(1).filter_map(|value| read_count(value, &NAMES)).any(|asked| asked > most) {
        return Err(refuse_value(format!("a filter is asked for more than {most}")));
    }
    Ok(())
}

/// The number in an argument, or in a named one of these names.
fn read_count(argument: &Value, names: &[&str]) -> Option<usize> {
    let find = |name: &&str| argument.get_attr(name).ok().filter(|value| !value.is_undefined());
    let count = if argument.is_kwargs() { names.iter().find_map(find)?.as_i64() } else { argument.as_i64() };
    usize::try_from(count?).ok()
}

/// Checks that lines are not indented so far that the text is too long.
fn check_indented(given: &[Value]) -> Result<(), Error> {
    check_shown_all(given)?;
    let [text, rest @ ..] = given else { return Ok(()) };
    let width = rest.first().and_then(|width| read_count(width, &["width"])).unwrap_or(4);
    let text = text.to_string();
    check_length(width.saturating_mul(text.matches('\n').count() + 1).saturating_add(text.len()))
}

/// Checks that a format asks for widths and digits within limits, and that its arguments are short.
fn check_format(format: &str, given: &[Value]) -> Result<(), Error> {
    let too_wide = || refuse_value(format!("a format asks for more than {WIDEST} characters or digits"));
    let numbers = format.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let mut widest = 1;
    for digits in numbers {
        widest = digits.parse().ok().filter(|number: &usize| *number <= WIDEST).ok_or_else(too_wide)?.max(widest);
    }
    let mut longest = widest;
    for value in given {
        // A width may be given as `*`, or as a field within a field.
        let number = value.as_i64().filter(|_| format.contains('*') || format.contains(":{"));
        if number.is_some_and(|number| number.unsigned_abs() > WIDEST as u64) {
            return Err(too_wide());
        }
        longest = longest.max(check_shown(value)?);
    }
    let fields = format.matches(['%', '{']).count();
    let wide = if format.contains('*') || format.contains(":{") { WIDEST } else { 0 };
    charge_bytes(format.len())?;
    check_length(fields.saturating_mul(longest.max(wide)) / 16)
}

/// The approximate size of a value in bytes, without the values in it.
pub(super) fn estimate_size(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.len().unwrap_or(1).saturating_mul(ITEM), str::len)
}

/// Refuses a value that is itself too long.
fn check_value(value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => check_length(text.len()),
        None if value.len().is_some_and(|items| items > MOST_ITEMS) => Err(too_large()),
        None => Ok(()),
    }
}

/// Refuses a value whose text would be too long; returns its approximate length.
fn check_shown(value: &Value) -> Result<usize, Error> {
    let mut left = LONGEST_OUTPUT;
    count_shown(value, &mut left, 0).map(|()| LONGEST_OUTPUT - left)
}

fn count_shown(value: &Value, left: &mut usize, depth: usize) -> Result<(), Error> {
    let length = value.as_str().map_or(1, str::len);
    *left = left.checked_sub(length).ok_or_else(too_long)?;
    visit_values(value, depth, |item| count_shown(item, left, depth + 1))
}

fn check_kept(value: &Value, items: &mut usize, depth: usize) -> Result<(), Error> {
    *items = items.checked_sub(1).ok_or_else(too_large)?;
    if let Some(text) = value.as_str().filter(|text| depth > 0 && text.len() > LARGE_TEXT) {
        return charge_bytes(text.len());
    }
    visit_values(value, depth, |item| check_kept(item, items, depth + 1))
}

/// Visits the values within a value.
fn visit_values(
    value: &Value,
    depth: usize,
    mut visit: impl FnMut(&Value) -> Result<(), Error>,
) -> Result<(), Error> {
    let is_map = value.kind() == ValueKind::Map;
    if !is_map && !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(());
    }
    if depth > DEEPEST {
        return Err(refuse_value(format!("values are nested more than {DEEPEST} levels deep")));
    }
    // A value that cannot be listed has nothing in it.
    let Ok(items) = value.try_iter() else { return Ok(()) };
    for item in items {
        visit(&item)?;
        if is_map {
            visit(&value.get_item(&item).unwrap_or_default())?;
        }
    }
    Ok(())
}

fn charge_bytes(bytes: usize) -> Result<(), Error> {
    MADE.set(MADE.get().saturating_add(bytes));
    if MADE.get() > MOST_MADE {
        return Err(refuse_value(format!("its values take more than {} MiB", MOST_MADE / LONGEST_OUTPUT)));
    }
    Ok(())
}

fn refuse_value(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn too_long() -> Error {
    refuse_value(value_too_long())
}

fn too_large() -> Error {
    refuse_value(format!("a value has more than {MOST_ITEMS} items"))
}

fn check_length(length: usize) -> Result<(), Error> {
    if length > LONGEST_OUTPUT { Err(too_long()) } else { Ok(()) }
}

fn check_replaced(text: &str, from: &str, to: &str) -> Result<(), Error> {
    let places = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
    check_length(text.len().saturating_add(places.saturating_mul(to.len())))
}

fn check_joined(items: &Value, joiner: &str) -> Result<(), Error> {
    let mut length = 0usize;
    if matches!(items.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map) {
        for item in items.try_iter()? {
            length = length.saturating_add(check_shown(&item)?).saturating_add(joiner.len());
            check_length(length)?;
        }
    }
    Ok(())
}
