//! Parses a template: text, and fields between braces.

use std::ops::Range;

use crate::template::error::TemplateError;

/// A piece of a template.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FStringPiece {
    Text(String),
    Field(FStringField),
}

/// `{first.name[0]!r:spec}`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FStringField {
    pub first: String,
    pub steps: Vec<FieldStep>,
    pub conversion: Option<Conversion>,
    /// Text and fields, without their own conversion and spec.
    pub spec: Vec<FStringPiece>,
    /// The range in the source, including the braces.
    pub range: Range<usize>,
}

/// One step into a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FieldStep {
    /// `.name`
    Attribute(String),
    /// `[0]`
    Item(usize),
    /// `[key]`
    Key(String),
}

/// `!s`, `!r` and `!a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conversion {
    Str,
    Repr,
    Ascii,
}

impl FStringField {
    /// The name as it is written: `a.b[0]`.
    pub(super) fn name(&self) -> String {
        self.steps.iter().fold(self.first.clone(), |name, step| match step {
            FieldStep::Attribute(attribute) => name + "." + attribute,
            FieldStep::Item(at) => format!("{name}[{at}]"),
            FieldStep::Key(key) => format!("{name}[{key}]"),
        })
    }

    /// Its name up to the first item: `a.b`.
    pub(super) fn attributes(&self) -> String {
        let attributes = self.steps.iter().map_while(|step| match step {
            FieldStep::Attribute(name) | FieldStep::Key(name) => Some(name),
            FieldStep::Item(_) => None,
        });
        attributes.fold(self.first.clone(), |name, attribute| name + "." + attribute)
    }
}

/// The fields among these pieces.
pub(super) fn list_fields(pieces: &[FStringPiece]) -> impl Iterator<Item = &FStringField> {
    pieces.iter().filter_map(|piece| match piece {
        FStringPiece::Field(field) => Some(field),
        FStringPiece::Text(_) => None,
    })
}

/// Reads a whole template.
pub(super) fn parse_pieces(source: &str) -> Result<Vec<FStringPiece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut at = 0;
    while let Some(brace) = source[at..].find(['{', '}']).map(|brace| at + brace) {
        text += &source[at..brace];
        let sign = &source[brace..=brace];
        if source[brace + 1..].starts_with(sign) {
            text += sign;
            at = brace + 2;
        } else if sign == "}" {
            let message = "a lone `}` ends no field: write `}}` for a brace in the text";
            return Err(TemplateError::place_at(source, brace..brace + 1, message));
        } else {
            if !text.is_empty() {
                pieces.push(FStringPiece::Text(std::mem::take(&mut text)));
            }
            let end = end_of_field(source, brace + 1)?;
            pieces.push(FStringPiece::Field(parse_field(source, brace + 1..end)?));
            at = end + 1;
        }
    }
    text += &source[at..];
    if !text.is_empty() {
        pieces.push(FStringPiece::Text(text));
    }
    Ok(pieces)
}

/// The position of the `}` that ends the field whose content begins at `start`.
fn end_of_field(source: &str, start: usize) -> Result<usize, TemplateError> {
    let (mut depth, mut bracket) = (0usize, false);
    for (offset, byte) in source[start..].bytes().enumerate() {
        match byte {
            b'[' if depth == 0 => bracket = true,
            b']' => bracket = false,
            b'{' if !bracket => depth += 1,
            b'}' if !bracket && depth == 0 => return Ok(start + offset),
            b'}' if !bracket => depth -= 1,
            // An item never continues in the next line, so that the error is at the brace.
            b'\n' if depth == 0 => break,
            _ => {}
        }
    }
    let message = "a lone `{` begins a field that nothing ends: write `{{` for a brace in the text";
    Err(TemplateError::place_at(source, start - 1..start, message))
}

/// Reads a field; `inside` is the range between its braces.
fn parse_field(source: &str, inside: Range<usize>) -> Result<FStringField, TemplateError> {
    let text = &source[inside.clone()];
    let wrong = |message: String| TemplateError::place_at(source, inside.start - 1..inside.end + 1, message);
    let (name, rest) = text.split_at(end_of_name(text));
    let (first, steps) = parse_path(name).map_err(&wrong)?;
    let (conversion, rest) = match rest.strip_prefix('!') {
        None => (None, rest),
        Some(rest) => {
            let letter = rest.chars().next().unwrap_or(' ');
            match letter {
                's' => (Some(Conversion::Str), &rest[1..]),
                'r' => (Some(Conversion::Repr), &rest[1..]),
                'a' => (Some(Conversion::Ascii), &rest[1..]),
                _ => return Err(wrong(format!("`!{letter}` is not a conversion; there are !s, !r and !a"))),
            }
        }
    };
    let spec = match rest.strip_prefix(':') {
        Some(written) => parse_spec(source, inside.end - written.len()..inside.end)?,
        None if rest.is_empty() => Vec::new(),
        None => return Err(wrong(format!("after a conversion comes `:` or the end of the field, not `{rest}`"))),
    };
    Ok(FStringField { first, steps, conversion, spec, range: inside.start - 1..inside.end + 1 })
}

fn end_of_name(text: &str) -> usize {
    let mut bracket = false;
    text.find(|c| {
        match c {
            '[' => bracket = true,
            ']' => bracket = false,
            _ => {}
        }
        !bracket && matches!(c, '!' | ':')
    })
    .unwrap_or(text.len())
}

/// A spec may have fields in it: `{x:{width}}`.
fn parse_spec(source: &str, range: Range<usize>) -> Result<Vec<FStringPiece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut at = range.start;
    while let Some(open) = source[at..range.end].find('{').map(|open| at + open) {
        if open > at {
            pieces.push(FStringPiece::Text(source[at..open].to_owned()));
        }
        let inside = open + 1..end_of_field(source, open + 1)?;
        let field = parse_field(source, inside.clone())?;
        if field.conversion.is_some() || !field.spec.is_empty() {
            let message = "a field within a format has a name and nothing else";
            return Err(TemplateError::place_at(source, field.range, message));
        }
        pieces.push(FStringPiece::Field(field));
        at = inside.end + 1;
    }
    if at < range.end {
        pieces.push(FStringPiece::Text(source[at..range.end].to_owned()));
    }
    Ok(pieces)
}

/// `a.b[0]`.
fn parse_path(name: &str) -> Result<(String, Vec<FieldStep>), String> {
    let length = name.find(['.', '[']).unwrap_or(name.len());
    let (first, mut rest) = name.split_at(length);
    if first.is_empty() || first.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "`{{{name}}}` counts its value, and values have names here: write `{{name}}`, or \
                            `{{{{` and `}}}}` for braces in the text"
        ));
    }
    if !is_name(first) {
        return Err(format!(
            "`{first}` is not the name of a variable, and expressions are not supported: write `{{{{` and \
                            `}}}}` for braces in the text"
        ));
    }
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let (attribute, left) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
            if !is_name(attribute) {
                return Err(format!("`{attribute}` is not the name of an attribute in `{name}`"));
            }
            steps.push(FieldStep::Attribute(attribute.to_owned()));
            rest = left;
        } else if let Some((key, left)) = rest.strip_prefix('[').and_then(|after| after.split_once(']')) {
            if key.is_empty() || key.starts_with(['"', '\'', '-']) {
                return Err(format!(
                    "`[{key}]` is not an item in `{name}`: write a number from 0 on, or a key without \
                                    quotes"
                ));
            }
            let number = key.bytes().all(|b| b.is_ascii_digit()).then(|| key.parse().ok()).flatten();
            steps.push(number.map_or_else(|| FieldStep::Key(key.to_owned()), FieldStep::Item));
            rest = left;
        } else {
            return Err(format!("`{name}` continues with neither `.` nor `[…]`"));
        }
    }
    Ok((first.to_owned(), steps))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
