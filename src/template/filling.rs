//! A value that is written as text: one expression between braces, whose value keeps its type, or a text with values in
//! it. A value is inserted as it is and never rendered a second time.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{Expression, Template, TemplateError, Undefined, Value};

/// A compiled text.
#[derive(Debug)]
pub enum Filling {
    /// `{{ EXPRESSION }}` and nothing else.
    Typed(Box<Expression>),
    /// Anything else, including a text without braces.
    Text(Template),
}

impl Filling {
    /// # Errors
    /// `source` is not a template.
    pub fn compile(source: &str) -> Result<Self, TemplateError> {
        let inside = source.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        // `{{ a }} and {{ b }}` begins and ends with braces, too; the text between them is not an expression.
        match inside.map(Expression::compile) {
            Some(Ok(expression)) => Ok(Self::Typed(Box::new(expression))),
            _ => Template::compile("template", source, Undefined::Error).map(Self::Text),
        }
    }

    /// The value, with `context` as the top-level names.
    ///
    /// # Errors
    /// Something that it reads is undefined, or it exceeds a limit.
    pub fn fill(&self, context: &Value) -> Result<Json, String> {
        match self {
            Self::Typed(expression) => expression.value(context),
            Self::Text(template) => template.render(context).map(Json::String).map_err(|error| error.message),
        }
    }

    /// The names that it reads from its context, with dotted attributes.
    pub fn paths(&self) -> BTreeSet<String> {
        match self {
            Self::Typed(expression) => expression.paths(),
            Self::Text(template) => template.variables(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Filling;
    use crate::template::convert_value;

    #[test]
    fn braces_alone_keep_the_type_and_text_around_them_makes_text() {
        let context = convert_value(&json!({"n": 3, "list": [1, 2], "said": "{{ n }}", "none": null}));
        for (source, expected) in [
            ("{{ n }}", json!(3)),
            ("  {{ list }}\n", json!([1, 2])),
            ("{{ none }}", json!(null)),
            ("{{ said }}", json!("{{ n }}")),
            ("[{{ said }}]", json!("[{{ n }}]")),
            ("{{ n }}{{ n }}", json!("33")),
            ("{{ '}}' ~ n }}", json!("}}3")),
            ("{% if n > 2 %}many{% endif %}", json!("many")),
            ("plain", json!("plain")),
            ("", json!("")),
        ] {
            assert_eq!(Filling::compile(source).expect(source).fill(&context), Ok(expected), "{source}");
        }
        assert!(Filling::compile("{{ n + }}").is_err() && Filling::compile("{% if %}").is_err());
        for source in ["{{ nothing }}", "a {{ nothing }}"] {
            let error = Filling::compile(source).expect("sound").fill(&context).expect_err("undefined");
            assert!(error.contains("nothing"), "{error}");
        }
    }
}
