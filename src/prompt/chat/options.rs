//! How a template is filled.

use serde_json::{Map, Value as Json};

use crate::template::{self, Undefined, Value};

use super::callbacks::Callbacks;

/// How a template is filled.
#[derive(Debug, Clone)]
pub struct Options {
    /// The value of a variable that nothing defines: an error (the default), or the empty string.
    pub undefined: Undefined,
    /// Values of variables that are not given. A map is merged with the map that is given, at every depth.
    pub defaults: Map<String, Json>,
    pub callbacks: Callbacks,
    /// Anything that the callbacks should see.
    pub extra: Map<String, Json>,
}

impl Default for Options {
    fn default() -> Self {
        let (defaults, extra) = (Map::new(), Map::new());
        Self { undefined: Undefined::Error, defaults, callbacks: Callbacks::default(), extra }
    }
}

impl Options {
    /// Options under which a variable that nothing defines is the empty string.
    #[must_use]
    pub fn lenient() -> Self {
        Self { undefined: Undefined::Empty, ..Self::default() }
    }

    /// Options with these default values.
    ///
    /// ```
    /// use agent::prompt::chat::{ChatMessage, Options};
    /// use agent::template;
    /// use serde_json::json;
    ///
    /// let defaults = json!({ "tone": "plain" }).as_object().cloned().unwrap_or_default();
    /// let message = ChatMessage::user("Be {{ tone }}.");
    /// let options = Options::with_defaults(defaults);
    /// assert_eq!(message.format(&template::value(&json!({})), &options)?, ChatMessage::user("Be plain."));
    /// # Ok::<(), agent::prompt::chat::ChatError>(())
    /// ```
    #[must_use]
    pub fn with_defaults(defaults: Map<String, Json>) -> Self {
        Self { defaults, ..Self::default() }
    }

    /// The variables together with the default values.
    pub(super) fn variables(&self, given: &Value) -> Value {
        if self.defaults.is_empty() {
            return given.clone();
        }
        let names = given.try_iter().into_iter().flatten();
        let own = names.filter_map(|name| Some((name.as_str()?.to_owned(), given.get_item(&name).ok()?)));
        let mut all: Vec<(String, Value)> = own.collect();
        for (name, default) in &self.defaults {
            let at = all.iter().position(|(known, value)| known == name && !value.is_undefined());
            match at.map(|at| &mut all[at].1) {
                None => all.push((name.clone(), template::value(default))),
                Some(value) => {
                    if let Some(merged) = merged(value, default) {
                        *value = merged;
                    }
                }
            }
        }
        template::object(all)
    }
}

/// A map with the entries of `default` that it lacks; `None` where one of the two is no map.
fn merged(given: &Value, default: &Json) -> Option<Value> {
    let Ok(Json::Object(mut fields)) = serde_json::to_value(given) else { return None };
    deepen(&mut fields, default.as_object()?);
    Some(template::value(&fields))
}

fn deepen(fields: &mut Map<String, Json>, defaults: &Map<String, Json>) {
    for (name, default) in defaults {
        match (fields.get_mut(name), default) {
            (None, _) => {
                fields.insert(name.clone(), default.clone());
            }
            (Some(Json::Object(inner)), Json::Object(defaults)) => deepen(inner, defaults),
            (Some(_), _) => {}
        }
    }
}
