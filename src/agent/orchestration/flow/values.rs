//! Evaluates the texts of a flow and the arguments of its steps. Values from outside are data: they are inserted as
//! they are, never rendered again, and reach a command as variables.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::agent::orchestration::code::{judge_place, push_variable};
use crate::agent::orchestration::command::MOST_VARIABLE_BYTES;
use crate::agent::orchestration::reference::{as_text, map_texts};
use crate::config::FlowStep;
use crate::template::{self, Expression, Filling, PieceTemplate, RenderedPiece, Undefined};
use crate::tools::RUN_COMMAND;

/// The names that a text can read.
#[derive(Debug, Clone, Default)]
pub struct FlowScope {
    /// `inputs`, and those of the loops around it.
    names: BTreeMap<String, template::Value>,
    /// The results of the steps that have ended.
    steps: BTreeMap<String, template::Value>,
}

/// The arguments of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowArguments {
    pub with: Map<String, Value>,
    /// Values for a command, by the names of their variables.
    pub variables: Vec<(String, String)>,
    /// The file that the step may replace unread.
    pub replaces: Option<String>,
}

impl FlowScope {
    /// The scope at the start of a flow.
    pub fn of_inputs(inputs: &Map<String, Value>) -> Self {
        Self::default().add_name("inputs", inputs)
    }

    /// Adds a name.
    pub fn add_name<T: serde::Serialize>(mut self, name: &str, value: &T) -> Self {
        self.names.insert(name.to_owned(), template::convert_value(value));
        self
    }

    /// Adds the result of a step.
    pub fn add(&mut self, step: &str, result: &Value) {
        self.steps.insert(step.to_owned(), template::convert_value(result));
    }

    fn context(&self) -> template::Value {
        let steps = template::make_object(self.steps.iter().map(|(id, value)| (id.clone(), value.clone())));
        let names = self.names.iter().map(|(name, value)| (name.clone(), value.clone()));
        template::make_object(names.chain([("steps".to_owned(), steps)]))
    }

    /// True if an expression holds.
    ///
    /// # Errors
    /// It cannot be evaluated.
    pub fn holds(&self, expression: &str) -> Result<bool, String> {
        let expression = Expression::compile(expression).map_err(|error| error.message)?;
        expression.is_true(&self.context())
    }

    /// The list that an expression gives, of at most `most` items.
    ///
    /// # Errors
    /// It is not a list, or too long.
    pub fn list(&self, expression: &str, most: u32) -> Result<Vec<Value>, String> {
        let compiled = Expression::compile(expression).map_err(|error| error.message)?;
        match compiled.value(&self.context())? {
            Value::Array(items) if items.len() > most as usize => {
                Err(format!("`{expression}` has {} items, more than `most`: {most}", items.len()))
            }
            Value::Array(items) => Ok(items),
            _ => Err(format!("`{expression}` is not a list")),
        }
    }

    /// A value with every text in it filled.
    ///
    /// # Errors
    /// A text reads an undefined name.
    pub fn fill(&self, value: &Value) -> Result<Value, String> {
        fill_value(value, &self.context())
    }

    /// The arguments of a step.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn arguments(&self, step: &FlowStep) -> Result<FlowArguments, String> {
        let context = self.context();
        let mut arguments = FlowArguments::default();
        for (key, value) in &step.with {
            let is_command = step.tool.as_deref() == Some(RUN_COMMAND) && key == "command";
            let value = match value {
                Value::String(line) if is_command => write_command(line, &context, &mut arguments.variables),
                value => fill_value(value, &context),
            };
            arguments.with.insert(key.clone(), value.map_err(|why| format!("`with.{key}`: {why}"))?);
        }
        if let Some(path) = &step.replaces {
            let path = fill_value(&path.as_str().into(), &context).map_err(|why| format!("`replaces`: {why}"))?;
            arguments.replaces = Some(as_text(&path));
        }
        Ok(arguments)
    }
}

fn fill_value(value: &Value, context: &template::Value) -> Result<Value, String> {
    map_texts(value, &mut |text| {
        Filling::compile(text).map_err(|error| error.message).and_then(|filling| filling.fill(context))
    })
}

/// Makes a shell command in which each value is a variable in double quotes: one word, whatever it contains.
fn write_command(
    line: &str,
    context: &template::Value,
    variables: &mut Vec<(String, String)>,
) -> Result<Value, String> {
    let template = PieceTemplate::compile("command", line, Undefined::Error).map_err(|error| error.message)?;
    let pieces = template.render(context).map_err(|error| error.message)?;
    let mut text = String::new();
    for piece in pieces {
        match piece {
            RenderedPiece::Literal(literal) => text.push_str(&literal),
            RenderedPiece::Given(value) if value.len() > MOST_VARIABLE_BYTES => {
                return Err(format!(
                    "a value has {} bytes, and an environment variable takes {MOST_VARIABLE_BYTES}",
                    value.len()
                ));
            }
            RenderedPiece::Given(value) => {
                if let Some(why) = judge_place(&text, line).find_danger(Some(&value)) {
                    let before = text.rsplit('\n').next().unwrap_or_default();
                    return Err(format!("the value after `{before}` {why}"));
                }
                let name = format!("flow_value_{}", variables.len() + 1);
                push_variable(&mut text, &name);
                variables.push((name, value));
            }
        }
    }
    Ok(Value::String(text))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::FlowScope;
    use crate::config::FlowStep;

    fn scope() -> FlowScope {
        let inputs = json!({ "word": "'; rm -rf ~ {{ steps }}", "n": 3 });
        let mut scope = FlowScope::of_inputs(inputs.as_object().expect("an object"));
        scope.add("list", &json!({ "entries": ["a", "b"] }));
        scope
    }

    fn step(step: Value) -> FlowStep {
        serde_json::from_value(step).expect("a step")
    }

    #[test]
    fn a_value_reaches_a_command_as_a_variable_and_anything_else_as_data() {
        let with =
            json!({ "command": "grep -e {{ inputs.word }} {{ steps.list.entries[0] }} | head -{{ inputs.n }}" });
        let command = step(json!({ "id": "x", "tool": "run_command", "with": with }));
        let arguments = scope().arguments(&command).expect("filled");
        assert_eq!(
            arguments.with["command"],
            "grep -e \"${flow_value_1}\" \"${flow_value_2}\" | head -\"${flow_value_3}\""
        );
        assert_eq!(arguments.variables[0], ("flow_value_1".to_owned(), "'; rm -rf ~ {{ steps }}".to_owned()));
        let other = step(json!({ "id": "x", "tool": "search", "with": {
            "command": "{{ inputs.word }}", "all": ["{{ steps.list.entries }}", { "n": "{{ inputs.n }}", "t": "n={{ inputs.n }}" }],
        } }));
        let arguments = scope().arguments(&other).expect("filled");
        assert_eq!(
            Value::Object(arguments.with),
            json!({ "command": "'; rm -rf ~ {{ steps }}", "all": [["a", "b"], { "n": 3, "t": "n=3" }] })
        );
        let missing = step(json!({ "id": "x", "tool": "search", "with": { "query": "{{ steps.list.nope }}" } }));
        assert_eq!(
            scope().arguments(&missing).expect_err("undefined"),
            "`with.query`: `steps.list.nope` is undefined"
        );
    }

    #[test]
    fn a_value_is_one_word_after_comments_in_quotes_and_in_here_documents() {
        for (line, expected) in [
            ("# it's\necho {{ inputs.n }}", "# it's\necho \"${flow_value_1}\""),
            ("echo \"a {{ inputs.n }}\"", "echo \"a ${flow_value_1}\""),
            ("cat <<E\n{{ inputs.n }}\nE", "cat <<E\n${flow_value_1}\nE"),
        ] {
            let command = step(json!({ "id": "x", "tool": "run_command", "with": { "command": line } }));
            assert_eq!(scope().arguments(&command).expect("filled").with["command"], expected);
        }
    }

    #[test]
    fn a_value_that_a_command_would_run_fails_its_step() {
        let mut scope = scope();
        scope.add("r", &json!({ "text": "q[$(touch x)]", "word": "q" }));
        let fill = |command: &str| {
            scope.arguments(&step(json!({ "id": "x", "tool": "run_command", "with": { "command": command } })))
        };
        for command in [
            "sh -c {{ steps.r.word }}", "trap {{ steps.r.word }} EXIT", "echo $(( {{ steps.r.text }} ))",
            "[[ {{ steps.r.text }} -eq 1 ]]", "declare {{ steps.r.text }}=1", "read {{ steps.r.text }} < a",
        ] {
            let why = fill(command).expect_err(command);
            assert!(why.starts_with("`with.command`: the value after `"), "{why}");
        }
        for command in
            ["echo $(( {{ steps.r.word }} + {{ inputs.n }} ))", "sh -c 'echo \"$1\"' _ {{ steps.r.text }}"]
        {
            fill(command).expect(command);
        }
    }

    #[test]
    fn lists_are_bounded() {
        for (expression, most, expected) in [
            ("steps.list.entries", 2, Ok(vec![json!("a"), json!("b")])),
            ("steps.list.entries", 1, Err("`steps.list.entries` has 2 items, more than `most`: 1")),
            ("inputs.n", 9, Err("`inputs.n` is not a list")),
            ("range(inputs.n)", 3, Ok(vec![json!(0), json!(1), json!(2)])),
        ] {
            assert_eq!(scope().list(expression, most), expected.map_err(str::to_owned), "{expression}");
        }
    }
}
