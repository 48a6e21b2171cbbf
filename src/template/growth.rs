//! Limits the growth of values: the engine counts steps but not bytes, and a text that is joined to itself has a
//! gigabyte after thirty steps.
//!
//! The engine has no hook for its operators and for `set`, so checks (`sizes`) are written into the source, as filters:
//! after each operand of `~` and `+`, after slices and the right side of `in`, after each expression with one of `~`,
//! `+`, `*`, and after the value of `set`. Nesting on which the engine would recurse until the stack overflows is
//! refused before the engine sees it.

use std::borrow::Cow;
use std::ops::Range;

/// The form of the checks in the source. The spaces distinguish an opening parenthesis of ours from the template's.
const MARK: &str = "|__operand__";
const OPEN: &str = "(\r\t\r";
const CLOSE: &str = ")|__whole__";
const SEARCHED: &str = "|__searched__";
const CLOSE_KEPT: &str = ")|__kept__";
/// The longest chain of operators, attributes and filters, together with those around it.
const LONGEST_CHAIN: usize = 200;
/// The most `elif` in nested blocks together.
const MOST_ELIFS: usize = 100;

/// The reason that a source is refused: the byte and the message.
pub(super) type Refusal = (usize, String);

/// A check and the byte of the source before which it is written.
type Insertion = (usize, &'static str);

/// A word, a text or a sign of a tag.
struct JinjaToken<'s> {
    start: usize,
    text: &'s str,
}

impl JinjaToken<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// The source with checks in it.
pub(super) fn guard_source(source: &str) -> Result<Cow<'_, str>, Refusal> {
    let mut insertions: Vec<Insertion> = Vec::new();
    let mut elifs: Vec<usize> = Vec::new();
    for (tag, is_block) in find_tags(source) {
        let tokens = split_tokens(source, tag);
        match tokens.first().filter(|_| is_block).map_or("", |first| first.text) {
            "if" => elifs.push(0),
            "endif" => drop(elifs.pop()),
            "elif" => {
                elifs.last_mut().into_iter().for_each(|last| *last += 1);
                if elifs.iter().sum::<usize>() > MOST_ELIFS {
                    return Err((tokens[0].start, format!("nested blocks have at most {MOST_ELIFS} `elif`")));
                }
            }
            "set" => insertions.extend(mark_kept(&tokens).into_iter().flatten()),
            _ => {}
        }
        insertions.extend(guard_tokens(&tokens, is_block)?);
    }
    Ok(if insertions.is_empty() { Cow::Borrowed(source) } else { Cow::Owned(with_insertions(source, insertions)) })
}

/// Does the same for a single expression.
pub(super) fn guarded_expression(source: &str) -> Result<String, Refusal> {
    let insertions = guard_tokens(&split_tokens(source, 0..source.len()), false)?;
    Ok(with_insertions(source, insertions))
}

fn guard_tokens(tokens: &[JinjaToken<'_>], is_block: bool) -> Result<Vec<Insertion>, Refusal> {
    check_chains(tokens)?;
    let mut insertions = mark_wholes(tokens, is_block);
    mark_operands(tokens, &mut insertions);
    mark_slices(tokens, &mut insertions);
    Ok(insertions)
}

fn with_insertions(source: &str, mut insertions: Vec<Insertion>) -> String {
    // At the same place the inner parenthesis is closed first and opened last; operands are the innermost.
    insertions.sort_by_key(|(at, what)| {
        (*at, [SEARCHED, MARK, CLOSE, CLOSE_KEPT, OPEN].iter().position(|known| known == what))
    });
    insertions.dedup_by(|one, other| one == other && [SEARCHED, MARK].contains(&one.1));
    let mut out = String::with_capacity(source.len() + insertions.len() * MARK.len());
    let mut copied = 0;
    for (place, what) in insertions {
        out += &source[copied..place];
        out += what;
        copied = place;
    }
    out + &source[copied..]
}

/// A part of a guarded source without the checks.
pub(super) fn as_written(guarded: &str) -> String {
    [CLOSE, CLOSE_KEPT, OPEN, MARK, SEARCHED].iter().fold(guarded.to_owned(), |text, mark| text.replace(mark, ""))
}

/// Refuses chains that would make the engine recurse too deeply.
fn check_chains(tokens: &[JinjaToken<'_>]) -> Result<(), Refusal> {
    // The length of the chain, and of those outside its brackets.
    let (mut chain, mut outer) = (0usize, Vec::new());
    for token in tokens {
        match token.text {
            "(" | "[" | "{" => outer.push(std::mem::take(&mut chain) + 1),
            ")" | "]" | "}" => chain = outer.pop().unwrap_or(chain),
            "," => chain = 0,
            "~" | "+" | "-" | "*" | "/" | "%" | "|" | "." | "<" | ">" => chain += 1,
            word if BETWEEN.contains(&word) => chain += 1,
            _ => continue,
        }
        if chain + outer.iter().sum::<usize>() > LONGEST_CHAIN {
            return Err((token.start, format!("an expression has more than {LONGEST_CHAIN} operators in a row")));
        }
    }
    Ok(())
}

/// Parentheses for the value of `set`, with a check after it.
fn mark_kept(tokens: &[JinjaToken<'_>]) -> Option<[Insertion; 2]> {
    let assigned = tokens.iter().position(|token| token.text == "=")?;
    Some([(tokens.get(assigned + 1)?.start, OPEN), (tokens.last()?.end(), CLOSE_KEPT)])
}

/// An expression on one level of brackets.
#[derive(Default)]
struct OpenExpression {
    /// Its first and last byte.
    span: Option<Range<usize>>,
    /// True if it contains an operator.
    can_grow: bool,
    is_test: bool,
}

impl OpenExpression {
    fn extend_to(&mut self, token: &JinjaToken<'_>) {
        self.span = Some(self.span.as_ref().map_or(token.start, |span| span.start)..token.end());
    }
}

/// Parentheses for expressions that can be longer than their operands, with a check after them.
fn mark_wholes(tokens: &[JinjaToken<'_>], is_block: bool) -> Vec<Insertion> {
    let mut insertions = Vec::new();
    let (mut open, mut outer) = (OpenExpression::default(), Vec::new());
    let mut finish = |done: OpenExpression| {
        if let Some(span) = done.span.filter(|_| done.can_grow && !done.is_test) {
            insertions.extend([(span.start, OPEN), (span.end, CLOSE)]);
        }
    };
    for (number, token) in tokens.iter().enumerate() {
        match token.text {
            ")" | "]" | "}" => {
                finish(std::mem::replace(&mut open, outer.pop().unwrap_or_default()));
                open.extend_to(token);
            }
            "," | ":" | "=" | "<" | ">" | "!" => finish(std::mem::take(&mut open)),
            word if BETWEEN.contains(&word) || (number == 0 && is_block) => {
                finish(std::mem::take(&mut open));
                open.is_test = word == "is";
            }
            word => {
                open.extend_to(token);
                open.can_grow |= matches!(word, "~" | "+" | "*");
                if matches!(word, "(" | "[" | "{") {
                    outer.push(std::mem::take(&mut open));
                }
            }
        }
    }
    outer.into_iter().chain([open]).for_each(finish);
    insertions
}

/// The contents of `{{ … }}` and `{% … %}` (true), without the marks that trim spaces; none within comments and `raw`.
fn find_tags(source: &str) -> Vec<(Range<usize>, bool)> {
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
                tags.push((start..start + inside.len(), rest.starts_with("{%")));
            }
        }
    }
    tags
}

/// The end of the tag whose content begins at `start`, skipping texts and mappings.
fn end_of_tag(source: &str, start: usize) -> Option<usize> {
    let bytes = source.as_bytes();
    let (mut at, mut depth) = (start, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => at += measure_text(&bytes[at..], quote),
            b'%' if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            b'}' if depth == 0 => return (bytes.get(at + 1) == Some(&b'}')).then_some(at),
            byte => {
                depth += usize::from(byte == b'{');
                depth -= usize::from(byte == b'}');
                at += 1;
            }
        }
    }
    None
}

/// The length of a quoted text, quotes included.
fn measure_text(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        at += if *byte == b'\\' { 2 } else { 1 };
        if *byte == quote {
            break;
        }
    }
    at.min(bytes.len())
}

/// Finds the ends of all operands of `~` and `+` in a tag, and of the right sides of `in`.
fn mark_operands(tokens: &[JinjaToken<'_>], insertions: &mut Vec<Insertion>) {
    for (left, index) in tokens.iter().zip(1..) {
        let Some(operator) = tokens.get(index) else { return };
        let end = || end_of_operand(&tokens[index + 1..]);
        match operator.text {
            "~" | "+" if ends_operand(left.text) => {
                insertions.push((left.end(), MARK));
                insertions.extend(end().map(|end| (end, MARK)));
            }
            "in" => insertions.extend(end().map(|end| (end, SEARCHED))),
            _ => {}
        }
    }
}

/// Finds the ends of slices that are not followed by something with its own check.
fn mark_slices(tokens: &[JinjaToken<'_>], insertions: &mut Vec<Insertion>) {
    // For each open bracket: whether it follows a value, and whether it contains `:`.
    let mut open = Vec::new();
    let mut before = "";
    for (token, next) in tokens.iter().zip(tokens.iter().skip(1).map(|next| next.text).chain([""])) {
        match token.text {
            "(" | "{" => open.push((false, false)),
            "[" => open.push((ends_operand(before), false)),
            ":" => open.last_mut().into_iter().for_each(|last| last.1 = true),
            ")" | "]" | "}" => {
                let is_slice = open.pop() == Some((true, true));
                if is_slice && !matches!(next, "." | "[" | "(") {
                    insertions.push((token.end(), SEARCHED));
                }
            }
            _ => {}
        }
        before = token.text;
    }
}

/// The end of the operand at the beginning of these tokens.
fn end_of_operand(tokens: &[JinjaToken<'_>]) -> Option<usize> {
    let mut depth = 0usize;
    let mut end = None;
    for token in tokens {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => break,
            ")" | "]" | "}" => depth -= 1,
            // A sign may precede the operand.
            word if depth == 0 && end.is_some() && ends_expression(word) => break,
            _ => {}
        }
        end = Some(token.end()).filter(|_| ends_operand(token.text)).or(end);
    }
    end
}

/// Words, texts and single signs.
fn split_tokens(source: &str, tag: Range<usize>) -> Vec<JinjaToken<'_>> {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let mut tokens = Vec::new();
    let mut start = tag.start;
    while start < tag.end {
        let rest = &source.as_bytes()[start..tag.end];
        let length = match rest[0] {
            quote @ (b'"' | b'\'') => measure_text(rest, quote),
            byte if is_of_word(byte) => rest.iter().take_while(|byte| is_of_word(**byte)).count(),
            _ => 1,
        };
        if !rest[0].is_ascii_whitespace() {
            tokens.push(JinjaToken { start, text: &source[start..start + length] });
        }
        start += length;
    }
    tokens
}

/// Words between expressions.
const BETWEEN: [&str; 9] = ["and", "or", "not", "in", "is", "if", "else", "set", "recursive"];

fn ends_operand(token: &str) -> bool {
    let ends = |last: char| last.is_ascii_alphanumeric() || !last.is_ascii() || "_)]}\"'".contains(last);
    !BETWEEN.contains(&token) && token.ends_with(ends)
}

fn ends_expression(token: &str) -> bool {
    BETWEEN.contains(&token)
        || matches!(token, "~" | "+" | "-" | "*" | "/" | "%" | "=" | "!" | "<" | ">" | "," | ":")
}

#[cfg(test)]
mod tests {
    use super::super::{Template, Undefined, Value, convert_value};
    use super::{CLOSE, CLOSE_KEPT, MARK, OPEN, SEARCHED, as_written, guard_source};

    fn marked(source: &str) -> String {
        let marks = [(CLOSE_KEPT, ">"), (SEARCHED, "?"), (CLOSE, ")"), (OPEN, "("), (MARK, "^")];
        marks
            .iter()
            .fold(guard_source(source).expect(source).into_owned(), |text, (mark, sign)| text.replace(mark, sign))
    }

    #[test]
    fn both_sides_of_a_joining_operator_are_checked() {
        for (source, expected) in [
            ("{% set x = a ~ b %}", "{% set x = ((a^ ~ b^)> %}"),
            ("{%- set x = a -%}", "{%- set x = (a> -%}"),
            ("{% set x %}{{ a }}{% endset %}", "{% set x %}{{ a }}{% endset %}"),
            ("{{ a ~ b ~ c.d[1] }}", "{{ (a^ ~ b^ ~ c.d[1]^) }}"),
            ("{{ a * 2 - 1 == b }}", "{{ (a * 2 - 1) == b }}"),
            ("{{ a ~ (b * c)|upper }}", "{{ (a^ ~ ((b * c))|upper^) }}"),
            ("{{ f(a ~ 'b ~ }}', c) }}", "{{ f((a^ ~ 'b ~ }}'^), c) }}"),
            ("{{ a ~ b if c else d + -1 }}", "{{ (a^ ~ b^) if c else (d^ + -1^) }}"),
            ("{% if a + 1 > 2 and x is none %}", "{% if (a^ + 1^) > 2 and x is none %}"),
            ("{% for x in a + b %}", "{% for x in (a?^ + b^) %}"),
            ("{% if a.b not in c[1:] and d[1:].e() %}", "{% if a.b not in c[1:]? and d[1:].e() %}"),
            ("{{ [a] + [b] }}{# a ~ b #}", "{{ ([a]^ + [b]^) }}{# a ~ b #}"),
            ("{{ {'a': {'b': c ~ d}} }}", "{{ {'a': {'b': (c^ ~ d^)}} }}"),
            ("{% raw %}{{ a ~ b }}{% endraw %}{{ a }}", "{% raw %}{{ a ~ b }}{% endraw %}{{ a }}"),
            ("a ~ b", "a ~ b"),
        ] {
            assert_eq!(marked(source), expected);
            assert_eq!(as_written(&guard_source(source).expect(source)), source);
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
            let is_told = ["a value is longer than 1024 KiB", "its values take more than 256 MiB"]
                .iter()
                .any(|told| error.message.contains(told));
            assert!(is_told, "{source}: {error}");
        }
    }

    #[test]
    fn what_was_too_large_for_memory_or_stack_is_refused() {
        let context = convert_value(&serde_json::json!({"big": "x".repeat(1_000_000)}));
        let grown = |step: &str| {
            format!(
                "{{% set ns = namespace(x=[1]) %}}{{% for i in range(90000) %}}{{% set ns.x = {step} %}}{{% endfor %}}"
            )
        };
        for (source, expected) in [
            ("{{ '%999999999d'|format(1) }}", "a format asks for more than 10000"),
            ("{{ '%*d'|format(999999999, 1) }}", "a format asks for more than 10000"),
            ("{{ '{:>999999999}'.format(1) }}", "a format asks for more than 10000"),
            ("{{ '{:.999999999f}'.format(1.5) }}", "a format asks for more than 10000"),
            ("{{ '{:{}}'.format(1, 999999999) }}", "a format asks for more than 10000"),
            ("{{ [1]|batch(1000000000, 'x')|list }}", "a filter is asked for more than 100000"),
            ("{{ [1]|slice(1000000000)|list }}", "a filter is asked for more than 100000"),
            ("{{ {'a': [1]}|tojson(indent=999999999) }}", "a filter is asked for more than 16"),
            ("{{ ([big] * 100000)|string }}", "a value is longer than"),
            ("{{ ([big] * 100000)|sum(start='') }}", "a value is longer than"),
            ("{{ ([big] * 100000)|tojson }}", "a value is longer than"),
            ("{{ ([big] * 100000)|join }}", "a value is longer than"),
            ("{{ ([big] * 100000) ~ '' }}", "a value is longer than"),
            ("{{ [1] * 1000000 }}", "a value has more than 100000 items"),
            ("{{ 'a' * 90000000 }}", "a value is longer than"),
            ("{% set x %}{{ [big] * 10000 }}{% endset %}", "a value is longer than"),
            ("{% set x = ('a' * 90000000)|length %}", "a value is longer than"),
            (&grown("ns.x + ns.x"), "a value has more than 100000 items"),
            (&grown("[ns.x]"), "values are nested more than 100 levels deep"),
            (&grown("{'a': ns.x}"), "values are nested more than 100 levels deep"),
            (&grown("[ns.x] + []"), "values are nested more than 100 levels deep"),
            (&grown("[ns.x, ns.x]"), "a value has more than 100000 items"),
            (&grown("ns.x + [big[1:]]"), "a value is longer than"),
            (&grown("ns.x + [range(90000)|list]"), "a value has more than"),
            (&grown("big.upper()"), "its values take more than"),
            (&grown("'zz' in big"), "its values take more than"),
            ("{{ range(99999)|select('in', [1] * 99999)|list }}", "its values take more than"),
            ("{% block a %}{{ self.a() }}{% endblock %}", "recursion limit"),
            ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion limit"),
            ("{% include 'a' %}", "recursion limit"),
        ] {
            let include = |name: &str| (name == "a").then(|| "{% include 'a' %}".to_owned());
            let template = Template::compile_with("t", source, Undefined::Empty, include).expect(source);
            let error = template.render(&context).expect_err(source);
            assert!(error.message.contains(expected), "{source}: {error}");
        }
    }

    #[test]
    fn what_the_engine_would_go_through_by_calling_itself_is_refused() {
        for (first, repeated, last) in [
            ("{{ 1", " + 1", " }}"),
            ("{{ x", ".a", " }}"),
            ("{{ x", "|upper", " }}"),
            ("{{ x", "()", " }}"),
            ("{{ x", "[0]", " }}"),
            ("{{ ", "not ", "x }}"),
            ("{{ ", "- ", "1 }}"),
            ("{{ ", "1 if 0 else ", "1 }}"),
            ("{{ 1", " is true", " }}"),
            ("{{ 1", " ** 1", " }}"),
            ("{{ ", "[", "1 }}"),
            ("{% if 0 %}", "{% elif 0 %}", "{% endif %}"),
            ("", "{% if 1 %}{% else %}", ""),
        ] {
            let source = format!("{first}{}{last}", repeated.repeat(20_000));
            assert!(Template::compile("t", &source, Undefined::Empty).is_err(), "{repeated}");
        }
        let list = format!("{{{{ [{}]|length }}}}", "{'a': x.y|upper ~ 1}, ".repeat(5_000));
        let template = Template::compile("t", &list, Undefined::Empty).expect("a long list is not deep");
        assert_eq!(template.render(&Value::from(())).as_deref(), Ok("5000"));
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
