//! `ask_user`: a question to the person at the terminal. The tool exists only if there is one.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::output::{ToolError, ToolOutput};
use crate::base::text;
use crate::config::Permission;
use crate::model::ToolDefinition;
use crate::safety::Approver;

use super::{CallContext, Tool, ToolFuture, define_tool, parse_arguments, text_of};

/// `ask_user`: a question to the person at the terminal.
pub struct AskUser {
    definition: ToolDefinition,
    person: Arc<dyn Approver>,
}

#[derive(Debug, Deserialize)]
struct AskUserArguments {
    question: String,
    choices: Option<Vec<String>>,
}

impl AskUser {
    /// Asks through `person`, who must be present.
    pub fn new(person: Arc<dyn Approver>) -> Self {
        let definition = ToolDefinition {
            waits_for_person: true,
            advice: "Ask once, for all that is missing.",
            is_trusted: true,
            ..define_tool(
                "ask_user",
                "Asks the user a question. Returns the answer. Only for what you cannot find out or reasonably \
                 assume.",
                (Permission::Read, &[]),
                json!({
                    "question": { "type": "string", "description": "Short" },
                    "choices": { "type": "array", "items": { "type": "string" }, "description": "Suggestions" },
                }),
                &["question"],
            )
        };
        Self { definition, person }
    }
}

impl Tool for AskUser {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn subject(&self, arguments: &Value) -> String {
        text::one_line(text_of(arguments, "question").unwrap_or_default(), 80)
    }

    fn call<'a>(&'a self, given: Value, _context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let AskUserArguments { question, choices } = parse_arguments(given)?;
            match self.person.answer(&question, &choices.unwrap_or_default()).await {
                Some(answer) => Ok(ToolOutput {
                    result: json!({ "answer": answer }),
                    summary: text::one_line(&answer, 60),
                    observation: answer,
                    ..ToolOutput::default()
                }),
                None => Err(ToolError::permanent(
                    "nobody answered: go on with what is most reasonable, and say what you assumed",
                )),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Place, SameAnswer};
    use super::*;

    #[test]
    fn the_answer_or_what_to_do_without_one() {
        let ask = |answer: Option<&str>| {
            let person = SameAnswer { present: true, answer: answer.map(str::to_owned) };
            let tool = AskUser::new(Arc::new(person));
            assert!(tool.definition().waits_for_person, "the time that a person takes counts against no limit");
            Place::new().call(&tool, json!({ "question": "Which?", "choices": ["a", "b"] }))
        };
        assert_eq!(ask(Some("都行")).expect("there is an answer").observation, "都行");
        assert!(ask(None).expect_err("there is none").message.contains("say what you assumed"));
    }
}
