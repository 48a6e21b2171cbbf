//! Templates like Python's `str.format`: `{name}`, `{a.b}`, `{xs[0]}`, `{name!r:>10}`, and `{{` and `}}` for braces.

mod parse;
mod layout;
mod number;
mod spec;

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use minijinja::Value;
use minijinja::value::ValueKind;

use super::error::TemplateError;
use super::{LONGEST_OUTPUT, Undefined, python, too_long};
use parse::{Conversion, FStringField, FStringPiece, FieldStep};

/// A compiled template.
#[derive(Debug)]
pub(super) struct FString {
    source: String,
    pieces: Vec<FStringPiece>,
    undefined: Undefined,
}

/// The reason that a field cannot be written.
enum FieldFailure {
    TooLong,
    Wrong(String),
}

impl From<fmt::Error> for FieldFailure {
    fn from(_: fmt::Error) -> Self {
        Self::TooLong
    }
}

impl FString {
    pub(super) fn compile(source: &str, undefined: Undefined) -> Result<Self, TemplateError> {
        Ok(Self { source: source.to_owned(), pieces: parse::parse_pieces(source)?, undefined })
    }

    pub(super) fn render(&self, context: &Value) -> Result<String, TemplateError> {
        self.look_for_missing(context)?;
        let mut out = BoundedText::default();
        for piece in &self.pieces {
            let (done, place) = match piece {
                FStringPiece::Text(text) => (out.write_str(text).map_err(FieldFailure::from), 0..0),
                FStringPiece::Field(field) => (write_field(&mut out, field, context), field.range.clone()),
            };
            done.map_err(|failure| match failure {
                FieldFailure::TooLong => TemplateError::new(too_long()),
                FieldFailure::Wrong(message) => TemplateError::place_at(&self.source, place, message),
            })?;
        }
        Ok(out.0)
    }

    pub(super) fn variables(&self) -> BTreeSet<String> {
        self.fields().map(FStringField::attributes).collect()
    }

    fn fields(&self) -> impl Iterator<Item = &FStringField> {
        let fields = parse::list_fields(&self.pieces);
        fields.flat_map(|field| std::iter::once(field).chain(parse::list_fields(&field.spec)))
    }

    fn look_for_missing(&self, context: &Value) -> Result<(), TemplateError> {
        if self.undefined == Undefined::Empty {
            return Ok(());
        }
        let missing: Vec<&FStringField> =
            self.fields().filter(|field| find_value(field, context).is_undefined()).collect();
        let Some(first) = missing.first() else { return Ok(()) };
        let names: BTreeSet<String> = missing.iter().map(|field| field.name()).collect();
        let error = TemplateError::place_at(&self.source, first.range.clone(), String::new());
        Err(error.add_missing(names.into_iter().collect()))
    }
}

/// The value of a field; undefined if it has none.
fn find_value(field: &FStringField, context: &Value) -> Value {
    let first = context.get_attr(&field.first).unwrap_or_default();
    field.steps.iter().fold(first, |value, step| {
        let found = match step {
            FieldStep::Attribute(name) => value.get_attr(name),
            FieldStep::Item(at) => match value.as_str() {
                Some(text) => Ok(text.chars().nth(*at).map(Value::from).unwrap_or_default()),
                None if value.kind() == ValueKind::Map => {
                    let text = value.get_attr(&at.to_string()).ok().filter(|value| !value.is_undefined());
                    text.map_or_else(|| value.get_item(&Value::from(*at)), Ok)
                }
                None => value.get_item(&Value::from(*at)),
            },
            FieldStep::Key(key) => value.get_attr(key),
        };
        found.unwrap_or_default()
    })
}

fn write_field(out: &mut BoundedText, field: &FStringField, context: &Value) -> Result<(), FieldFailure> {
    let value = find_value(field, context);
    if value.is_undefined() {
        return Ok(());
    }
    let mut written = BoundedText::default();
    for piece in &field.spec {
        match piece {
            FStringPiece::Text(text) => written.write_str(text)?,
            FStringPiece::Field(inner) => write_field(&mut written, inner, context)?,
        }
    }
    let mut shown = BoundedText::default();
    let value = match field.conversion {
        None => value,
        Some(conversion) => {
            match conversion {
                Conversion::Str => python::write_str(&mut shown, &value)?,
                Conversion::Repr => python::write_repr(&mut shown, &value, false)?,
                Conversion::Ascii => python::write_repr(&mut shown, &value, true)?,
            }
            Value::from(shown.0)
        }
    };
    if written.0.is_empty() {
        return Ok(python::write_str(out, &value)?);
    }
    let wrong = |why| FieldFailure::Wrong(format!("`{}` cannot be formatted so: {why}", field.name()));
    Ok(out.write_str(&spec::format_value(&value, &written.0).map_err(wrong)?)?)
}

/// Text up to [`LONGEST_OUTPUT`] bytes.
#[derive(Default)]
struct BoundedText(String);

impl Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_OUTPUT {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::template::{Syntax, Template, TemplateError, Undefined, convert_value};

    fn render(source: &str, undefined: Undefined) -> Result<String, TemplateError> {
        let data =
            json!({"name": "Ann", "n": 3, "pi": 1.23456, "user": {"id": 7}, "xs": ["a", "b"], "raw": "{name}"});
        Template::compile_as(Syntax::FString, "t", source, undefined)?.render(&convert_value(&data))
    }

    #[test]
    fn what_templates_give() {
        for (source, expected) in [
            ("{name}/{user.id}/{user[id]}/{xs[1]}/{name[0]}", "Ann/7/7/b/A"),
            ("{{\"a\": {{{name}}}}}", "{\"a\": {Ann}}"),
            ("{raw}{{raw}}", "{name}{raw}"),
            (
                "{name!r}|{xs}|{name:>5}|{pi:.2f}|{name!r:*^9}|{n:0{n}}",
                "'Ann'|['a', 'b']|  Ann|1.23|**'Ann'**|003",
            ),
        ] {
            assert_eq!(render(source, Undefined::Error).as_deref(), Ok(expected), "{source}");
        }
        assert_eq!(render("<{one}{two:>5}{user.x!r}>", Undefined::Empty).as_deref(), Ok("<>"));
    }

    #[test]
    fn all_missing_names_are_told_at_once() {
        let error =
            render("a\n{name} {one} {user.two:>3} {xs[7]} {n:{four}}", Undefined::Error).expect_err("missing");
        assert_eq!(error.missing, ["four", "one", "user.two", "xs[7]"]);
        assert_eq!((error.line, error.column), (Some(2), Some(8)));
        let template = Template::compile_as(Syntax::FString, "t", "{a.b[0].c}{d[e]}{f:{g}}", Undefined::Error);
        let names: Vec<String> = template.expect("valid").variables().into_iter().collect();
        assert_eq!(names, ["a.b", "d.e", "f", "g"]);
    }

    #[test]
    fn a_brace_that_is_no_field_says_how_to_write_it() {
        for (source, column, message) in [
            ("a { b", 3, "write `{{` for a brace"),
            ("a } b", 3, "write `}}` for a brace"),
            ("x {\"a\": 1}", 3, "write `{{` and `}}` for braces"),
            ("x {}", 3, "write `{name}`, or `{{` and `}}` for braces"),
            ("x {0}", 3, "values have names here"),
            ("{\n  \"a\": 1\n}", 1, "write `{{` for a brace"),
            ("{name + 1}", 1, "expressions are not supported"),
            ("{name!x}", 1, "`!x` is not a conversion; there are !s, !r and !a"),
            ("{name=}", 1, "expressions are not supported"),
            ("{user['id']}", 1, "without quotes"),
            ("{name:d}", 1, "`d` is not a format for text"),
            ("{name:>999999999}", 1, "more than 10000"),
            ("{pi:.99999999f}", 1, "more than 10000"),
        ] {
            let error = render(source, Undefined::Error).expect_err(source);
            assert!(error.message.contains(message), "{source}: {error}");
            assert_eq!((error.line, error.column), (Some(1), Some(column)), "{source}");
            assert!(error.excerpt.is_some(), "{source}");
        }
    }
}
