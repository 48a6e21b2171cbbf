//! What a look at the source of a Jinja template tells. Nesting on which the engine would call itself until the stack
//! overflows is refused: its parser bounds brackets and blocks, but not chains such as `1 + 1 + …`, which it compiles by
//! recursion. And a template without loops, definitions, slices, repetition and calls of functions is plain: what it
//! costs follows from the length of the source and of its values.

use std::ops::Range;

use super::TemplateError;

/// The longest chain of operators, attributes and filters, together with those around it.
const LONGEST_CHAIN: usize = 200;
/// The most `elif` in nested blocks together.
const MOST_ELIFS: usize = 100;
/// Words that make a chain longer.
const LINKS: [&str; 7] = ["and", "or", "not", "in", "is", "if", "else"];

/// A word, a text or a sign of a tag.
struct JinjaToken<'s> {
    start: usize,
    text: &'s str,
}

/// The tags of plain templates.
const PLAIN_TAGS: [&str; 5] = ["if", "elif", "else", "endif", "raw"];
/// Filters that go through a list with another filter or test, and those that write as much as they are told to.
const LOOPS: [&str; 9] =
    ["map", "select", "reject", "selectattr", "rejectattr", "batch", "slice", "format", "indent"];

/// Checks a template. Returns true if it is plain.
pub(super) fn check_nesting(source: &str) -> Result<bool, TemplateError> {
    let mut is_plain = true;
    let mut elifs: Vec<usize> = Vec::new();
    for (tag, is_block) in find_tags(source) {
        let tokens = split_tokens(source, tag);
        match tokens.first().filter(|_| is_block).map_or("", |first| first.text) {
            "if" => elifs.push(0),
            "endif" => drop(elifs.pop()),
            "elif" => {
                elifs.last_mut().into_iter().for_each(|last| *last += 1);
                if elifs.iter().sum::<usize>() > MOST_ELIFS {
                    let message = format!("nested blocks have at most {MOST_ELIFS} `elif`");
                    return Err(TemplateError::place_at(source, tokens[0].start..tokens[0].start + 1, message));
                }
            }
            _ => {}
        }
        check_chains(source, &tokens)?;
        let tag = tokens.first().filter(|_| is_block).map_or("else", |first| first.text);
        is_plain &= PLAIN_TAGS.contains(&tag) && is_plain_expression(&tokens);
    }
    Ok(is_plain)
}

/// Checks a single expression. Returns true if it is plain.
pub(super) fn check_expression(source: &str) -> Result<bool, TemplateError> {
    let tokens = split_tokens(source, 0..source.len());
    check_chains(source, &tokens).map(|()| is_plain_expression(&tokens))
}

fn is_plain_expression(tokens: &[JinjaToken<'_>]) -> bool {
    // Where a bracket is open that follows a value, a colon makes a slice.
    let mut open = Vec::new();
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    (0..tokens.len()).all(|at| {
        let (before, last) = (text(at.wrapping_sub(2)), text(at.wrapping_sub(1)));
        let follows_word = last.ends_with(|c: char| c.is_alphanumeric() || c == '_') && !LINKS.contains(&last);
        match text(at) {
            "(" | "[" | "{" => open.push(text(at)),
            ")" | "]" | "}" => drop(open.pop()),
            _ => {}
        }
        match text(at) {
            "*" => false,
            // Methods, filters and tests.
            "(" => !follows_word || [".", "|", "is", "not"].contains(&before),
            ":" => open.last() != Some(&"["),
            word => last != "|" || !LOOPS.contains(&word),
        }
    })
}

fn check_chains(source: &str, tokens: &[JinjaToken<'_>]) -> Result<(), TemplateError> {
    // The length of the chain, and of those outside its brackets.
    let (mut chain, mut outer) = (0usize, Vec::new());
    for token in tokens {
        match token.text {
            "(" | "[" | "{" => outer.push(std::mem::take(&mut chain) + 1),
            ")" | "]" | "}" => chain = outer.pop().unwrap_or(chain),
            "," => chain = 0,
            "~" | "+" | "-" | "*" | "/" | "%" | "|" | "." | "<" | ">" => chain += 1,
            word if LINKS.contains(&word) => chain += 1,
            _ => continue,
        }
        if chain + outer.iter().sum::<usize>() > LONGEST_CHAIN {
            let message = format!("an expression has more than {LONGEST_CHAIN} operators in a row");
            return Err(TemplateError::place_at(source, token.start..token.start + 1, message));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::super::{Template, Undefined, Value};

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
    fn what_can_run_away_is_not_plain() {
        for (source, is_plain) in [
            ("{{ env.A | default('*') }}{% if a == 'b' and (c or not (d)) %}{{ {'a': x[0]}.a }}{% endif %}", true),
            ("{{ env.NAMES.split(',')[0] }}{{ datetime.now().strftime('%F') }}{{ a is divisibleby(3) }}", true),
            ("{# {% for %} #}{% raw %}{{ a * b }}{% endraw %}{{ a ~ '{% for %}' }}", true),
            ("{% for x in xs %}{% endfor %}", false),
            ("{% set x = 1 %}", false),
            ("{% include 'a' %}", false),
            ("{{ 'a' * 3 }}", false),
            ("{{ xs[1:] }}", false),
            ("{{ xs[ -1 : ] }}", false),
            ("{{ range(3) }}", false),
            ("{{ f((1)) }}", false),
            ("{{ xs|map('upper') }}", false),
            ("{{ xs | select }}", false),
        ] {
            assert_eq!(super::check_nesting(source), Ok(is_plain), "{source}");
        }
        assert_eq!(super::check_expression("json.n == 3 and 'a' in json.b"), Ok(true));
        assert_eq!(super::check_expression("range(3)|list"), Ok(false));
    }
}
