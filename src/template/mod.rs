//! The one door to templates (Jinja): compiled once, rendered in a sandbox with fuel, never with a value rendered
//! a second time.

use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

pub use minijinja::Value;

/// A compiled template.
#[derive(Debug)]
pub struct Template {
    environment: Environment<'static>,
    name: String,
}

/// What a name that nothing defines becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undefined {
    /// The empty string: configuration.
    Empty,
    /// An error: prompts and scripts.
    Error,
}

/// What is wrong with a template, and where. Never holds a value that was rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    pub message: String,
    /// 1-based line in the template, where known.
    pub line: Option<usize>,
}

impl Template {
    /// `name` is what errors call it.
    pub fn compile(name: &str, source: &str, undefined: Undefined) -> Result<Self, TemplateError> {
        const FUEL: u64 = 1_000_000;
        let mut environment = Environment::new();
        environment.set_undefined_behavior(match undefined {
            Undefined::Empty => UndefinedBehavior::Chainable,
            Undefined::Error => UndefinedBehavior::SemiStrict,
        });
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.add_template_owned(name.to_owned(), source.to_owned()).map_err(|e| TemplateError::from(&e))?;
        Ok(Self { environment, name: name.to_owned() })
    }

    /// The names that the template reads and does not itself define, dotted as it reads them (`vars.team`).
    #[must_use]
    pub fn variables(&self) -> Vec<String> {
        let template = self.environment.get_template(&self.name);
        template.map(|template| template.undeclared_variables(true).into_iter().collect()).unwrap_or_default()
    }

    /// Renders with `context` as the top-level names.
    pub fn render(&self, context: &Value) -> Result<String, TemplateError> {
        self.environment
            .get_template(&self.name)
            .and_then(|template| template.render(context))
            .map_err(|error| TemplateError::from(&error))
    }
}

impl From<&minijinja::Error> for TemplateError {
    fn from(error: &minijinja::Error) -> Self {
        Self { message: error.to_string(), line: error.line() }
    }
}

/// Any serialisable value, for a template to read.
pub fn value<T: Serialize>(value: &T) -> Value {
    Value::from(minijinja::value::Serde(value))
}
