//! An expression in the language of templates (`json.tool == 'calculator' and tokens < 200`), compiled once: a
//! yes-or-no question, or a value that keeps its type.

use std::collections::BTreeSet;

use minijinja::value::ValueKind;
use minijinja::{Environment, UndefinedBehavior, Value};
use serde_json::Value as Json;

use super::guard::{OrderForm, RenderGuard};
use super::jinja::{GROUND, without_globals, word_error};
use super::nesting::check_expression;
use super::{Syntax, TemplateError, Undefined, convert_value};

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    environment: Environment<'static>,
    source: String,
    guard: RenderGuard,
}

impl Expression {
    /// # Errors
    /// `source` is not an expression.
    pub fn compile(source: &str) -> Result<Self, TemplateError> {
        let mut environment = GROUND.clone();
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        let source = source.trim().to_owned();
        let is_plain = check_expression(&source)?;
        let apart = |text| RenderGuard::apart(OrderForm::Expression, Syntax::Jinja, "", text, Undefined::Error);
        let guard = if is_plain { RenderGuard::here() } else { apart(&source) };
        let expression = Self { environment, source, guard };
        expression.compiled().map_err(|error| word_error(&error))?;
        Ok(expression)
    }

    /// The text of the expression, without surrounding spaces.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names that it reads from its context, without their attributes.
    pub fn variables(&self) -> BTreeSet<String> {
        self.list_undeclared(false)
    }

    /// The names that it reads with dotted attributes: `steps.list.entries`.
    pub fn paths(&self) -> BTreeSet<String> {
        self.list_undeclared(true)
    }

    fn list_undeclared(&self, nested: bool) -> BTreeSet<String> {
        let names = self.compiled().map(|expression| expression.undeclared_variables(nested));
        without_globals(&self.environment, names.unwrap_or_default())
    }

    /// The value as data, with `context` as the top-level names.
    ///
    /// # Errors
    /// It cannot be evaluated, is undefined, or is not data (a function).
    pub fn value(&self, context: &Value) -> Result<Json, String> {
        let value = self.evaluate_defined(context)?;
        serde_json::to_value(&value).map_err(|error| format!("`{}` is not data: {error}", self.source))
    }

    /// The answer, with `context` as the top-level names.
    ///
    /// # Errors
    /// It cannot be evaluated, or its value is neither true nor false.
    pub fn holds(&self, context: &Value) -> Result<bool, String> {
        let value = self.evaluate_guarded(context)?;
        match value.kind() {
            ValueKind::Bool => Ok(value.is_true()),
            kind => Err(format!("its value is of the kind {kind}, and must be true or false")),
        }
    }

    /// True if the value counts as true: not false, none, zero or empty.
    ///
    /// # Errors
    /// It cannot be evaluated, or is undefined.
    pub fn is_true(&self, context: &Value) -> Result<bool, String> {
        self.evaluate_defined(context).map(|value| value.is_true())
    }

    fn evaluate_defined(&self, context: &Value) -> Result<Value, String> {
        let value = self.evaluate_guarded(context)?;
        if value.is_undefined() { Err(format!("`{}` is undefined", self.source)) } else { Ok(value) }
    }

    fn evaluate_guarded(&self, context: &Value) -> Result<Value, String> {
        let read = |value: Option<Json>| value.map_or(Value::UNDEFINED, |value| convert_value(&value));
        self.guard.render(context, || self.evaluate(context), read).map_err(|error| error.message)
    }

    /// The value, evaluated here.
    pub(super) fn evaluate(&self, context: &Value) -> Result<Value, TemplateError> {
        self.compiled().and_then(|expression| expression.eval(context)).map_err(|error| word_error(&error))
    }

    fn compiled(&self) -> Result<minijinja::Expression<'_, '_>, minijinja::Error> {
        self.environment.compile_expression(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Expression;
    use crate::template::convert_value;

    #[test]
    fn an_expression_is_true_or_false_or_says_why_it_is_neither() {
        let context = convert_value(&json!({"output": "12 apples", "json": {"n": 3}, "none": null}));
        for (source, expected) in [
            ("json.n == 3 and 'apples' in output", Ok(true)),
            ("output.startswith('1') and json.n > 3", Ok(false)),
            ("json.nothing is defined", Ok(false)),
            ("json.nothing == 4", Err("`json.nothing` is undefined".to_owned())),
            ("json.n", Err("its value is of the kind number, and must be true or false".to_owned())),
            ("output | upper", Err("its value is of the kind string, and must be true or false".to_owned())),
        ] {
            assert_eq!(Expression::compile(source).expect(source).holds(&context), expected, "{source}");
        }
        assert!(Expression::compile("output ==").is_err() && Expression::compile("").is_err());
        assert!(Expression::compile("nothing.deep.er == 1").expect("sound").holds(&context).is_err());
        let names = Expression::compile("json.n in range(4) and outptu").expect("sound").variables();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["json", "outptu"]);
    }

    #[test]
    fn a_value_keeps_its_type_and_names_what_it_reads() {
        let context =
            convert_value(&json!({"steps": {"list": {"entries": [{"name": "a"}, {"name": "b"}]}}, "n": 2}));
        for (source, expected) in [
            ("n + 1", Ok(json!(3))),
            ("steps.list.entries[1]", Ok(json!({"name": "b"}))),
            ("steps.list.entries | map(attribute='name') | list", Ok(json!(["a", "b"]))),
            ("n > 1 and none", Ok(json!(null))),
            ("steps.list.size", Err("`steps.list.size` is undefined".to_owned())),
            ("steps.other | default([])", Ok(json!([]))),
        ] {
            assert_eq!(Expression::compile(source).expect(source).value(&context), expected, "{source}");
        }
        for (source, expected) in [
            ("n", Ok(true)),
            ("n - 2", Ok(false)),
            ("steps.list.entries", Ok(true)),
            ("none or ''", Ok(false)),
            ("n > 1 and steps.list.entries", Ok(true)),
            ("steps.nothing", Err("`steps.nothing` is undefined".to_owned())),
        ] {
            assert_eq!(Expression::compile(source).expect(source).is_true(&context), expected, "{source}");
        }
        let paths = Expression::compile("steps.a.b + range(inputs.n)[0] + item").expect("sound").paths();
        assert_eq!(paths.into_iter().collect::<Vec<_>>(), ["inputs.n", "item", "steps.a.b"]);
    }

    #[test]
    fn an_expression_stays_within_the_bounds_of_templates() {
        assert!(Expression::compile(&format!("1{}", " + 1".repeat(20_000))).is_err());
        for source in ["'a' * 99000000 == ''", "('%99999999d'|format(1)) == ''"] {
            let told = Expression::compile(source).expect(source).holds(&convert_value(&json!({})));
            assert_eq!(told, Err("it runs too long".to_owned()), "{source}");
        }
    }
}
