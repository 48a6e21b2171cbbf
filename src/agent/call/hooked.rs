//! The hooks that a call concerns.

use serde_json::{Value, json};

use crate::agent::hooks::HookSay;
use crate::agent::{Agent, HookCall};
use crate::config::HookEvent;

/// What hooks say to the model about a call.
#[derive(Debug, Default)]
pub(in crate::agent) struct HookedCall {
    pub texts: Vec<String>,
}

/// True if hooks run before or after a call.
pub(super) fn concern_call(agent: &Agent, tool: &str, arguments: &Value) -> bool {
    if agent.hooks.is_empty() {
        return false;
    }
    let paths = list_paths(agent, tool, arguments);
    let events = [HookEvent::BeforeTool, HookEvent::AfterTool];
    agent.hooks.concern(&events, HookCall { tool, paths: &paths })
}

/// The files that a call names.
fn list_paths(agent: &Agent, tool: &str, arguments: &Value) -> Vec<String> {
    let Some(tool) = agent.tools.get(tool).map(|entry| &entry.tool) else { return Vec::new() };
    tool.reads(arguments).into_iter().chain(tool.writes(arguments)).map(str::to_owned).collect()
}

/// Runs the hooks of an event of a call; `facts` are added to what the call is.
pub(super) async fn run_hooks(agent: &Agent, event: HookEvent, call: (&str, &Value), facts: Value) -> HookSay {
    if agent.hooks.is_empty() {
        return HookSay::default();
    }
    let (tool, arguments) = call;
    let paths = list_paths(agent, tool, arguments);
    let mut object = json!({ "tool_name": tool, "tool_input": arguments });
    if let (Value::Object(object), Value::Object(facts)) = (&mut object, facts) {
        object.extend(facts);
    }
    agent.hooks.run(event, Some(HookCall { tool, paths: &paths }), object).await
}
