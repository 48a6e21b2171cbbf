//! Tools as chat completions and Responses declare them.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::model::ToolDefinition;

/// A function that the model may call.
#[derive(Serialize)]
pub struct FunctionTool<'a> {
    name: &'a str,
    description: &'a str,
    pub parameters: Cow<'a, Value>,
    /// Left out if it is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

impl<'a> FunctionTool<'a> {
    pub fn new(tool: &'a ToolDefinition, strict: Option<bool>) -> Self {
        let parameters = Cow::Borrowed(&*tool.parameters);
        Self { name: &tool.name, description: &tool.description, parameters, strict }
    }
}
