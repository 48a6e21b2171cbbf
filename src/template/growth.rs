//! Keeps values from growing without bound: the engine counts steps, but no bytes, and a text that is joined to
//! itself has a gigabyte after thirty steps.
//!
//! The engine has no hook for `~` and `+`, so a check is written into the source, as a filter behind each of their
//! operands. Only templates that can keep a value (`set`, `macro`, `recursive`) need it.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use minijinja::value::{Kwargs, StringInput, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

use super::LONGEST_OUTPUT;

/// The check, as it stands in the source.
const MARK: &str = "|__bounded__";
const FILTER: &str = "__bounded__";
/// The most that all `{{ … }}` of a rendering may print, into captured text as well.
const MOST_PRINTED: usize = 16 * LONGEST_OUTPUT;

thread_local! {
    /// What the rendering that runs on this thread has printed.
    static PRINTED: Cell<usize> = const { Cell::new(0) };
}

/// Makes the environment refuse values that are too long.
pub(super) fn bound(environment: &mut Environment<'_>) {
    environment.add_filter(FILTER, |value: Value| checked(&value).map(|()| value));
    environment.add_filter("replace", replace);
    environment.add_filter("join", join);
    environment.add_filter("indent", indent);
    environment.set_formatter(|out, state, value| {
        checked(value)?;
        let printed = PRINTED.get() + value.as_str().map_or(0, str::len);
        PRINTED.set(printed);
        if printed > MOST_PRINTED {
            return Err(too_long());
        }
        minijinja::escape_formatter(out, state, value)
    });
}

/// A rendering begins on this thread.
pub(super) fn begin() {
    PRINTED.set(0);
}

/// Refuses the arguments of a method that would make a text too long.
pub(super) fn check_method(value: &Value, name: &str, arguments: &[Value]) -> Result<(), Error> {
    match (name, value.as_str(), arguments) {
        ("replace", Some(text), [from, to, ..]) => {
            check_replaced(text, from.as_str().unwrap_or_default(), to.as_str().unwrap_or_default())
        }
        ("join", Some(joiner), [items]) => check_joined(items, joiner),
        _ => Ok(()),
    }
}

/// The source with checks in it.
pub(super) fn guarded(source: &str) -> Cow<'_, str> {
    let keeps = ["set", "macro", "recursive", "call"].iter().any(|word| source.contains(word));
    if !keeps || !source.contains(['~', '+']) {
        return Cow::Borrowed(source);
    }
    let mut places = Vec::new();
    for tag in tags(source) {
        mark_operands(source, tag, &mut places);
    }
    places.sort_unstable();
    places.dedup();
    let mut out = String::with_capacity(source.len() + places.len() * MARK.len());
    let mut copied = 0;
    for place in places {
        out += &source[copied..place];
        out += MARK;
        copied = place;
    }
    out += &source[copied..];
    Cow::Owned(out)
}

/// A part of a guarded source as it was written.
pub(super) fn as_written(guarded: &str) -> String {
    guarded.replace(MARK, "")
}

fn checked(value: &Value) -> Result<(), Error> {
    let length = value.as_str().map_or(0, str::len);
    if length > LONGEST_OUTPUT { Err(too_long()) } else { Ok(()) }
}

fn too_long() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("a value is longer than {} KiB", LONGEST_OUTPUT / 1024))
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
            length = length.saturating_add(item.as_str().map_or(0, str::len)).saturating_add(joiner.len());
            check_length(length)?;
        }
    }
    Ok(())
}

fn replace(
    state: &mut State<'_, '_>,
    value: StringInput<'_>,
    from: StringInput<'_>,
    to: StringInput<'_>,
) -> Result<Value, Error> {
    check_replaced(value.as_str(), from.as_str(), to.as_str())?;
    filters::replace(state, value, from, to)
}

fn join(
    state: &mut State<'_, '_>,
    value: &Value,
    joiner: Option<StringInput<'_>>,
    attribute: Option<&str>,
    named: Kwargs,
) -> Result<Value, Error> {
    // What an iterator gives is gone once it was counted.
    if value.kind() != ValueKind::Iterable {
        check_joined(value, joiner.as_ref().map_or("", StringInput::as_str))?;
    }
    filters::join(state, value, joiner, attribute, named)
}

fn indent(
    value: StringInput<'_>,
    width: Option<usize>,
    first_line: Option<bool>,
    blank_lines: Option<bool>,
    named: Kwargs,
) -> Result<Value, Error> {
    let lines = value.as_str().matches('\n').count() + 1;
    let width_asked = width.or_else(|| named.peek("width").ok()).unwrap_or(4);
    check_length(width_asked.saturating_mul(lines).saturating_add(value.as_str().len()))?;
    filters::indent(value, width, first_line, blank_lines, named)
}

/// The insides of `{{ … }}` and `{% … %}`, without the marks that trim blanks; none within comments and `raw`.
fn tags(source: &str) -> Vec<Range<usize>> {
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(open) = source[at..].find('{').map(|open| at + open) {
        let rest = &source[open..];
        at = open + 1;
        if rest.starts_with("{#") {
            let Some(end) = rest.find("#}") else { break };
            at = open + end + 2;
        } else if rest.starts_with("{{") || rest.starts_with("{%") {
            let Some(end) = end_of_tag(source, open + 2) else { break };
            at = end + 2;
            let inside = source[open + 2..end].trim_start_matches(['-', '+']);
            let start = end - inside.len();
            let inside = inside.trim_end_matches(['-', '+']);
            if rest.starts_with("{%") && inside.trim() == "raw" {
                let Some(raw) = source[at..].find("endraw") else { break };
                at += raw;
            } else {
                tags.push(start..start + inside.len());
            }
        }
    }
    tags
}

/// Where the tag is closed whose inside begins at `start`: not within a text, nor within a mapping.
fn end_of_tag(source: &str, start: usize) -> Option<usize> {
    let bytes = source.as_bytes();
    let (mut at, mut depth) = (start, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => at += text(&bytes[at..], quote),
            b'%' if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            b'}' if depth == 0 => return (bytes.get(at + 1) == Some(&b'}')).then_some(at),
            byte => {
                match byte {
                    b'{' => depth += 1,
                    b'}' => depth -= 1,
                    _ => {}
                }
                at += 1;
            }
        }
    }
    None
}

/// The length of a quoted text, quotes included.
fn text(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        at += if *byte == b'\\' { 2 } else { 1 };
        if *byte == quote {
            break;
        }
    }
    at.min(bytes.len())
}

/// Finds the ends of all operands of `~` and `+` in a tag.
fn mark_operands(source: &str, tag: Range<usize>, places: &mut Vec<usize>) {
    let tokens = tokens(source, tag);
    for (index, operator) in tokens.iter().enumerate() {
        let Some(left) = index.checked_sub(1).map(|before| &tokens[before]) else { continue };
        if !matches!(&source[operator.clone()], "~" | "+") || !ends_operand(&source[left.clone()]) {
            continue;
        }
        places.push(left.end);
        let mut depth = 0usize;
        let mut end = None;
        for token in &tokens[index + 1..] {
            let words = &source[token.clone()];
            match words {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" if depth == 0 => break,
                ")" | "]" | "}" => depth -= 1,
                // A sign may stand before the operand.
                _ if depth == 0 && end.is_some() && ends_expression(words) => break,
                _ => {}
            }
            end = Some(token.end).filter(|_| ends_operand(words)).or(end);
        }
        places.extend(end);
    }
}

/// Words, texts and single signs.
fn tokens(source: &str, tag: Range<usize>) -> Vec<Range<usize>> {
    let bytes = source.as_bytes();
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let mut tokens = Vec::new();
    let mut at = tag.start;
    while at < tag.end {
        let length = match bytes[at] {
            quote @ (b'"' | b'\'') => text(&bytes[at..tag.end], quote),
            byte if is_of_word(byte) => bytes[at..tag.end].iter().take_while(|byte| is_of_word(**byte)).count(),
            _ => 1,
        };
        if !bytes[at].is_ascii_whitespace() {
            tokens.push(at..at + length);
        }
        at += length;
    }
    tokens
}

/// Words that stand between expressions.
const BETWEEN: [&str; 9] = ["and", "or", "not", "in", "is", "if", "else", "set", "recursive"];

fn ends_operand(token: &str) -> bool {
    let last = token.as_bytes()[token.len() - 1];
    !BETWEEN.contains(&token)
        && (last.is_ascii_alphanumeric()
            || !last.is_ascii()
            || matches!(last, b'_' | b')' | b']' | b'}' | b'"' | b'\''))
}

fn ends_expression(token: &str) -> bool {
    BETWEEN.contains(&token)
        || matches!(token, "~" | "+" | "-" | "*" | "/" | "%" | "=" | "!" | "<" | ">" | "," | ":")
}

#[cfg(test)]
mod tests {
    use super::super::{Template, Undefined, Value};
    use super::{MARK, as_written, guarded};

    fn marked(source: &str) -> String {
        guarded(source).replace(MARK, "^")
    }

    #[test]
    fn both_sides_of_a_joining_operator_are_checked() {
        for (source, expected) in [
            ("{% set x = a ~ b %}", "{% set x = a^ ~ b^ %}"),
            ("{%- set x = a ~ b -%}", "{%- set x = a^ ~ b^ -%}"),
            ("{% set x = a ~ b ~ c.d[1] %}", "{% set x = a^ ~ b^ ~ c.d[1]^ %}"),
            ("{% set ns.x = ns.x ~ (a + b)|upper %}", "{% set ns.x = ns.x^ ~ (a^ + b^)|upper^ %}"),
            ("{% set x = f(a ~ 'b ~ }}', c) %}", "{% set x = f(a^ ~ 'b ~ }}'^, c) %}"),
            ("{% set x = a ~ b if c else d + -1 %}", "{% set x = a^ ~ b^ if c else d^ + -1^ %}"),
            ("{% set x = [a] + [b] %}{# a ~ b #}", "{% set x = [a]^ + [b]^ %}{# a ~ b #}"),
            ("{% set x = {'a': {'b': c ~ d}} %}", "{% set x = {'a': {'b': c^ ~ d^}} %}"),
            (
                "{% set x = 1 %}{% raw %}{{ a ~ b }}{% endraw %}{{ a ~ b }}",
                "{% set x = 1 %}{% raw %}{{ a ~ b }}{% endraw %}{{ a^ ~ b^ }}",
            ),
            ("{{ a ~ b }}", "{{ a ~ b }}"),
            ("{% set x = a %} a ~ b", "{% set x = a %} a ~ b"),
        ] {
            assert_eq!(marked(source), expected);
            assert_eq!(as_written(&guarded(source)), source);
        }
    }

    #[test]
    fn what_is_guarded_gives_the_same() {
        for (source, expected) in [
            ("{% set x = 'a' ~ (1 + 2) %}{{ x }}", "a3"),
            ("{% set x = 1 + 2 * 3 %}{{ x + 1 }}", "8"),
            ("{% set x = [1] + [2] %}{{ x | join(', ') }}", "1, 2"),
            (
                "{% set ns = namespace(x='') %}{% for i in range(3) %}{% set ns.x = ns.x ~ i ~ ';' %}{% endfor %}{{ ns.x }}",
                "0;1;2;",
            ),
            ("{% macro m(a) %}<{{ 'x' ~ a|upper }}>{% endmacro %}{{ m('b' ~ 'c') }}", "<xBC>"),
            ("{% set x = 'a' ~ 'b' if true else 'c' ~ 'd' %}{{ x }}", "ab"),
        ] {
            let template = Template::compile("t", source, Undefined::Error).expect(source);
            assert_eq!(template.render(&Value::from(())).expect(source), expected);
        }
    }

    #[test]
    fn no_value_grows_without_bound() {
        let straight = format!("{{% set x = 'aaaaaaaa' %}}{}", "{% set x = x ~ x %}".repeat(40));
        let captured =
            format!("{{% set x %}}aaaaaaaa{{% endset %}}{}", "{% set x %}{{ x }}{{ x }}{% endset %}".repeat(40));
        for source in [
            "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
            "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
            "{% macro m(x, n) %}{% if n > 0 %}{{ m(x ~ x, n - 1) }}{% endif %}{% endmacro %}{{ m('aaaaaaaa', 40) }}",
            "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] | join %}{% endfor %}",
            "{% set ns = namespace(x='aa') %}{% for i in range(40) %}{% set ns.x = ns.x.replace('a', 'aa') %}{% endfor %}",
            "{% set ns = namespace(x='aa') %}{% for i in range(40) %}{% set ns.x = ns.x | replace('a', 'aa') %}{% endfor %}",
            "{% set x %}{% for i in range(99999) %}{{ 'a' * 100000 }}{% endfor %}{% endset %}",
            "{{ 'a' | indent(99999999999, true) }}",
            &straight,
            &captured,
        ] {
            let template = Template::compile("t", source, Undefined::Empty).expect(source);
            let error = template.render(&Value::from(())).expect_err(source);
            assert!(error.message.contains("a value is longer than 1024 KiB"), "{source}: {error}");
        }
    }

    #[test]
    fn places_are_those_of_the_source_as_it_was_written() {
        let source = "{% set x = 'a' ~ 'b' %}{{ x ~ }}";
        let error = Template::compile("t", source, Undefined::Empty).expect_err("an operand is missing");
        let unguarded = Template::compile(
            "t",
            &source.replace("set x =", "if").replace("%}{{ x", "%}{% endif %}{{ x"),
            Undefined::Empty,
        );
        assert!(unguarded.is_err());
        assert_eq!((error.line, error.column), (Some(1), Some(31)));
        let source = "{% set x = 'a' ~ 'b' %}\n{{ x ~ nothing() }}";
        let template = Template::compile("t", source, Undefined::Error).expect("valid");
        let error = template.render(&Value::from(())).expect_err("undefined");
        assert_eq!((error.line, error.column), (Some(2), Some(8)));
        assert_eq!(error.missing, ["nothing"]);
    }
}
