//! A prompt with the variables of a case.

use serde_json::{Map, Value};

use crate::prompt::error::PromptError;
use crate::prompt::file::Prompt;
use crate::template;

use super::case::{Case, merged};

/// The text that a case renders a prompt to. `sample` has the variables of the program with fixed values.
///
/// # Errors
/// What [`Prompt::render`] says.
pub fn render(prompt: &Prompt, case: &Case, sample: &template::Value) -> Result<String, PromptError> {
    prompt.render(&with_vars(sample, &case.vars))
}

/// The variables of the program, replaced or deepened by those of a case. `vars` has those of the case, too.
#[must_use]
pub fn with_vars(sample: &template::Value, vars: &Map<String, Value>) -> template::Value {
    let mut names: Vec<(String, template::Value)> = Vec::new();
    let of_program = |name: &str| sample.get_attr(name).ok().filter(|value| !value.is_undefined());
    for name in sample.try_iter().into_iter().flatten() {
        if let Some((name, value)) = name.as_str().and_then(|name| Some((name, of_program(name)?))) {
            names.push((name.to_owned(), value));
        }
    }
    let data = |value: &template::Value| serde_json::to_value(value).unwrap_or_default();
    let deepened = |base: Option<Value>, over: &Value| match (base, over) {
        (Some(Value::Object(base)), Value::Object(over)) => Value::Object(merged(base, over.clone())),
        (_, over) => over.clone(),
    };
    let mut under_vars = vars.clone();
    let nested = under_vars.remove("vars");
    let under_vars = nested.iter().fold(Value::Object(under_vars), |base, over| deepened(Some(base), over));
    let given = vars.iter().filter(|(name, _)| *name != "vars").map(|(name, value)| (name.as_str(), value));
    for (name, over) in given.chain([("vars", &under_vars)]) {
        let value = template::value(&deepened(of_program(name).as_ref().map(data), over));
        match names.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => names.push((name.to_owned(), value)),
        }
    }
    template::object(names)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::with_vars;
    use crate::template::value;

    #[test]
    fn the_variables_of_a_case_replace_or_deepen_those_of_the_program() {
        let sample =
            value(&json!({"session": {"id": "s", "turn": 1}, "tools": [1], "vars": {"a": 1}, "name": "n"}));
        let vars = json!({"session": {"turn": 2}, "tools": [], "who": "Ann", "vars": {"team": "t"}});
        let Value::Object(vars) = vars else { unreachable!("an object") };
        let all = serde_json::to_value(with_vars(&sample, &vars)).expect("data");
        assert_eq!(
            all,
            json!({
                "session": {"id": "s", "turn": 2},
                "tools": [],
                "who": "Ann",
                "vars": {"a": 1, "session": {"turn": 2}, "tools": [], "who": "Ann", "team": "t"},
                "name": "n",
            })
        );
    }
}
