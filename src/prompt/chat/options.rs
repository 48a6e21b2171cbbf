//! Options for filling a template.

use serde_json::{Map, Value as Json};

use crate::template::{self, Syntax, Undefined, Value};

/// Options for filling a template.
#[derive(Debug, Clone, Default)]
pub struct FillOptions {
    /// The value of a variable that nothing defines: an error (the default), or the empty string.
    pub undefined: Undefined,
    /// The syntax of the texts, in place of the template's own; a single message has none and uses Jinja.
    pub syntax: Option<Syntax>,
    /// Values of variables that are not given. A map is merged with the map that is given, at every depth.
    pub defaults: Map<String, Json>,
}

impl FillOptions {
    /// Options under which a variable that nothing defines is the empty string.
    pub fn lenient() -> Self {
        Self { undefined: Undefined::Empty, ..Self::default() }
    }

    /// Options with these default values.
    ///
    /// ```
    /// use agent::facade::prompt::chat::{ChatMessage, FillOptions};
    /// use agent::facade::template;
    /// use serde_json::json;
    ///
    /// let defaults = json!({ "tone": "plain" }).as_object().cloned().unwrap_or_default();
    /// let message = ChatMessage::user("Be {{ tone }}.");
    /// let options = FillOptions::with_defaults(defaults);
    /// assert_eq!(message.format(&template::convert_value(&json!({})), &options)?, ChatMessage::user("Be plain."));
    /// # Ok::<(), agent::facade::prompt::chat::ChatError>(())
    /// ```
    pub fn with_defaults(defaults: Map<String, Json>) -> Self {
        Self { defaults, ..Self::default() }
    }

    /// The variables together with the default values.
    pub(super) fn variables(&self, given: &Value) -> Value {
        if self.defaults.is_empty() {
            return given.clone();
        }
        template::layer_values(given.clone(), template::convert_value(&self.defaults))
    }
}
