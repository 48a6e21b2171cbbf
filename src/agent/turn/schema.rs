//! `--schema`: the final answer must be one JSON document that matches. The schema is requested with the task and
//! enforced only on a correction, never on the messages between calls.

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::agent::request::purpose::Purpose;
use crate::base::json_text;
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
        let validator = Validator::with_formats(&json)?;
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

    /// Finds the document in an answer that matches: the whole answer, else the last of several. Returns it compact,
    /// with its numbers as they were written.
    ///
    /// # Errors
    /// The mismatch, for the model.
    pub fn check(&self, answer: &str) -> Result<String, String> {
        let mut first_mistake = None;
        for document in json_text::find_documents(answer) {
            match self.check_document(&document) {
                Ok(()) => return Ok(json_text::compact(&document)),
                Err(mistake) => first_mistake = first_mistake.or(Some(mistake)),
            }
        }
        Err(first_mistake.unwrap_or_else(|| match serde_json::from_str::<IgnoredAny>(answer.trim()) {
            Err(why) => format!("It is not JSON: {why}."),
            Ok(_) => "It is not JSON.".to_owned(),
        }))
    }

    fn check_document(&self, document: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(document).map_err(|why| format!("It is not JSON: {why}."))?;
        self.validator.check("The answer does", &value)?;
        if json_text::has_repeated_name(document, &value) {
            return Err("A name stands twice in one object.".to_owned());
        }
        Ok(())
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
                Ok(answer) => return Ok(TurnEnd { stop: TurnStop::Answered, answer }),
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
