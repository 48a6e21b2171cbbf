//! Renders a prompt with the variables of a case.

use serde_json::{Map, Value};

use crate::prompt::error::PromptError;
use crate::prompt::file::Prompt;
use crate::prompt::variables::with_given;
use crate::template;

use super::case::{Case, merge_maps};

/// The text that a case renders a prompt to. `sample` has the variables of the program with fixed values.
///
/// # Errors
/// Those of [`Prompt::render`].
pub fn render_case(prompt: &Prompt, case: &Case, sample: &template::Value) -> Result<String, PromptError> {
    prompt.show(&with_vars(sample, &case.vars))
}

/// The variables of the program, replaced or extended by those of a case. `vars` has those of the case, too; one given
/// as `vars.NAME` is also available as `NAME`.
pub fn with_vars(sample: &template::Value, vars: &Map<String, Value>) -> template::Value {
    let mut given = vars.clone();
    if let Some(Value::Object(nested)) = given.remove("vars") {
        given = merge_maps(given, nested);
    }
    with_given(sample, &given)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::with_vars;
    use crate::template::convert_value;

    #[test]
    fn the_variables_of_a_case_replace_or_deepen_those_of_the_program() {
        let sample = convert_value(
            &json!({"session": {"id": "s", "turn": 1}, "tools": [1], "vars": {"a": 1}, "name": "n"}),
        );
        let vars = json!({"session": {"turn": 2}, "tools": [], "vars": {"team": "t"}});
        let Value::Object(vars) = vars else { unreachable!("an object") };
        let all = serde_json::to_value(with_vars(&sample, &vars)).expect("data");
        assert_eq!(
            all,
            json!({
                "session": {"id": "s", "turn": 2},
                "tools": [],
                "team": "t",
                "vars": {"a": 1, "session": {"turn": 2}, "tools": [], "team": "t"},
                "name": "n",
            })
        );
    }
}
