//! `propose_plan`: the model lists steps that the program then carries out by itself. The loop checks the plan before the
//! call, a person reviews it, and the steps run once the reply is answered; this tool only confirms that.

use serde_json::{Value, json};

use crate::base::output::ToolOutput;
use crate::base::text::{self, count_noun};
use crate::config::Permission;
use crate::model::ToolDefinition;

use super::{CallContext, Tool, ToolFuture, define_tool};

/// The name of the tool that proposes a plan.
pub const PROPOSE_PLAN: &str = "propose_plan";

/// `propose_plan`: steps for the program.
pub struct ProposePlan(ToolDefinition);

impl ProposePlan {
    pub fn new() -> Self {
        Self(ToolDefinition {
            waits_for_person: true,
            advice: "Not where the next call depends on what the last one finds.",
            is_trusted: true,
            ..define_tool(
                PROPOSE_PLAN,
                "Runs up to 8 calls that can all be named now. In input, $step_1_result.key is a result. []: resumes the plan that waits.",
                (Permission::Read, &[]),
                json!({
                    "steps": {
                        "type": "array",
                        "items": { "type": "object" },
                        "description": "[{id, description, tool, input, depends_on, replaces}]",
                    },
                    "why": { "type": "string" },
                }),
                &["steps"],
            )
        })
    }
}

impl Tool for ProposePlan {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn idempotent(&self) -> bool {
        false
    }

    fn subject(&self, arguments: &Value) -> String {
        let steps = arguments["steps"].as_array().map_or(0, Vec::len) as u64;
        let why = text::one_line(arguments["why"].as_str().unwrap_or_default(), 80);
        let colon = if why.is_empty() { "" } else { ": " };
        format!("{}{colon}{why}", count_noun(steps, "step", "steps"))
    }

    fn call<'a>(&'a self, _given: Value, _context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let observation = "The plan runs now. Its calls and their results follow.".to_owned();
            let summary = "it runs now".to_owned();
            Ok(ToolOutput { result: Value::Null, observation, summary, ..ToolOutput::default() })
        })
    }
}
