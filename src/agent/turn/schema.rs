//! `--schema`: the final answer must be one JSON document that matches. The schema is requested with the task and
//! enforced only on a correction, never on the messages between calls.

use serde_json::Value;

use crate::agent::request::purpose::Purpose;
use crate::base::json;
use crate::base::validator::Validator;
use crate::conversation::message::UserText;

use super::{Turn, TurnEnd, TurnStop};

/// The most corrections of a wrong answer.
const CORRECTIONS: usize = 2;

/// A JSON Schema for the final answer.
pub struct AnswerSchema {
    json: Value,
    validator: Validator,
}

impl AnswerSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// `json` is not a valid JSON Schema.
    pub fn new(json: Value) -> Result<Self, String> {
        let validator = Validator::new(&json)?;
        Ok(Self { json, validator })
    }

    /// The schema as it was given.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// The instruction that is sent with the task.
    pub fn instruction(&self) -> String {
        format!(
            "Your final answer must be one JSON document, with nothing around it, that matches this JSON Schema:\n{}",
            self.json
        )
    }

    /// Checks an answer. Returns it as JSON.
    ///
    /// # Errors
    /// The mismatch, for the model.
    pub fn check(&self, answer: &str) -> Result<Value, String> {
        let value = json::parse_document(answer).map_err(|why| format!("It is not JSON: {why}."))?;
        self.validator.check("The answer does", &value)?;
        Ok(value)
    }
}

impl Turn<'_> {
    /// Handles an answer without calls: final, unless a schema rejects it.
    pub(in crate::agent) async fn answer(&mut self, mut text: String) -> Result<TurnEnd, TurnStop> {
        let Some(schema) = &self.agent.schema else {
            return Ok(TurnEnd { stop: TurnStop::Answered, answer: text });
        };
        let mut corrections = 0;
        loop {
            let mistake = match schema.check(&text) {
                Ok(value) => return Ok(TurnEnd { stop: TurnStop::Answered, answer: value.to_string() }),
                Err(mistake) => mistake,
            };
            if corrections == CORRECTIONS {
                return Err(TurnStop::SchemaMismatch(mistake));
            }
            corrections += 1;
            if let Some(limit) = self.reached_limit() {
                return Err(TurnStop::Limit(limit));
            }
            let content = format!("That answer cannot be used. {mistake}\n\n{}", schema.instruction());
            self.say(UserText::by_program(content))?;
            let (_, step) = self.step(Purpose::Closing).await?;
            self.settle_calls("this reply had to be the answer alone")?;
            text = step.text();
        }
    }
}
