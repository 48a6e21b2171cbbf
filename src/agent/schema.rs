//! `--schema`: the final answer must be one JSON document that matches. The schema is asked for with the task and
//! forced only on a correction, never on the messages between calls.

use serde_json::Value;

use crate::contract::ToolChoice;
use crate::json;
use crate::message::Message;
use crate::validator::Validator;

use super::turn::{Stop, Turn, TurnEnd};

/// How often a wrong answer may be corrected.
const CORRECTIONS: usize = 2;

/// A JSON Schema for the final answer.
pub struct AnswerSchema {
    json: Value,
    validator: Validator,
}

impl AnswerSchema {
    /// # Errors
    /// When it is not a valid JSON Schema.
    pub fn new(json: Value) -> Result<Self, String> {
        let validator = Validator::new(&json)?;
        Ok(Self { json, validator })
    }

    /// The schema as it was given.
    #[must_use]
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// What is said with the task.
    #[must_use]
    pub fn instruction(&self) -> String {
        format!(
            "Your final answer must be one JSON document, with nothing around it, that matches this JSON Schema:\n{}",
            self.json
        )
    }

    /// # Errors
    /// What does not match, for the model.
    pub fn check(&self, answer: &str) -> Result<Value, String> {
        let value = json::document(answer).map_err(|why| format!("It is not JSON: {why}."))?;
        self.validator.check("The answer does", &value)?;
        Ok(value)
    }
}

impl Turn<'_> {
    /// An answer without calls: final, unless a schema says otherwise.
    pub(super) async fn answer(&mut self, mut text: String) -> Result<TurnEnd, Stop> {
        let Some(schema) = &self.agent.schema else {
            return Ok(TurnEnd { stop: Stop::Answered, answer: text });
        };
        let mut corrections = 0;
        loop {
            let mistake = match schema.check(&text) {
                Ok(value) => return Ok(TurnEnd { stop: Stop::Answered, answer: value.to_string() }),
                Err(mistake) => mistake,
            };
            if corrections == CORRECTIONS {
                return Err(Stop::SchemaMismatch(mistake));
            }
            corrections += 1;
            if let Some(limit) = self.meter.reached(&self.agent.limits) {
                return Err(Stop::Limit(limit));
            }
            let content = format!("That answer cannot be used. {mistake}\n\n{}", schema.instruction());
            self.record(Message::reminder(content))?;
            text = self.step(ToolChoice::None).await?.content;
        }
    }
}
