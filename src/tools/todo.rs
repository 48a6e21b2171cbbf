//! `todo`: the plan of a long task, replaced as a whole by each call. It is kept in the session's state, so that
//! it survives a resume, and shown to the person.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::base::output::{ToolError, ToolOutput};
use crate::base::text;
use crate::config::Permission;
use crate::model::ToolDefinition;

use super::{CallContext, Tool, ToolFuture, define_tool, parse_arguments};

/// The key of the items in the session's state.
pub(super) const STATE: &str = "todo";
/// A longer plan is not useful.
const MOST_ITEMS: usize = 50;

/// `todo`: the plan that the person sees.
pub struct Todo(ToolDefinition);

#[derive(Debug, Deserialize)]
struct TodoArguments {
    items: Vec<TodoItem>,
}

#[derive(Debug, Serialize, Deserialize)]
struct TodoItem {
    text: String,
    status: TodoStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    #[serde(alias = "in_progress")]
    Doing,
    #[serde(alias = "completed")]
    Done,
}

impl Todo {
    pub fn new() -> Self {
        Self(ToolDefinition {
            advice: "Send it again, whole, when an item is done. Not for tasks of one or two steps.",
            is_trusted: true,
            ..define_tool(
                "todo",
                "Replaces your plan, which the user sees. For long tasks: send all items, at most one doing.",
                (Permission::Read, &[]),
                json!({
                    "items": { "type": "array", "items": {
                        "type": "object",
                        "properties": {
                            "text": { "type": "string" },
                            "status": { "enum": ["pending", "doing", "done", "in_progress", "completed"] },
                        },
                        "required": ["text", "status"],
                        "additionalProperties": false,
                    } },
                }),
                &["items"],
            )
        })
    }
}

impl Tool for Todo {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn call<'a>(&'a self, given: Value, _context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let TodoArguments { items } = parse_arguments(given)?;
            check_items(&items)?;
            Ok(report_items(&items))
        })
    }
}

/// Rules that the schema cannot express.
fn check_items(items: &[TodoItem]) -> Result<(), ToolError> {
    let doing = count_items(items, TodoStatus::Doing);
    if doing > 1 {
        return Err(ToolError::parameter(format!(
            "{doing} items are `doing`: at most one may be, the others wait"
        )));
    }
    if let Some(at) = items.iter().position(|item| item.text.trim().is_empty()) {
        return Err(ToolError::parameter(format!("item {} has no text", at + 1)));
    }
    if items.len() > MOST_ITEMS {
        let many = items.len();
        return Err(ToolError::parameter(format!("{many} items are too many to follow: at most {MOST_ITEMS}")));
    }
    Ok(())
}

fn report_items(items: &[TodoItem]) -> ToolOutput {
    let (done, total) = (count_items(items, TodoStatus::Done), items.len());
    let state = if items.is_empty() { Value::Null } else { json!(items) };
    let counts = if items.is_empty() { "no plan".to_owned() } else { format!("{done} of {total} done") };
    let summary: Vec<String> = std::iter::once(counts.clone()).chain(items.iter().map(format_item)).collect();
    ToolOutput {
        result: json!({ "items": items, "done": done, "total": total }),
        observation: format!("The plan is kept: {counts}."),
        summary: summary.join("\n"),
        state_update: Map::from_iter([(STATE.to_owned(), state)]),
        ..ToolOutput::default()
    }
}

fn format_item(item: &TodoItem) -> String {
    let mark = match item.status {
        TodoStatus::Pending => '☐',
        TodoStatus::Doing => '▸',
        TodoStatus::Done => '✓',
    };
    format!("{mark} {}", text::one_line(&item.text, 200))
}

fn count_items(items: &[TodoItem], status: TodoStatus) -> usize {
    items.iter().filter(|item| item.status == status).count()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Place;
    use super::*;

    fn items(items: &[(&str, &str)]) -> Value {
        let items: Vec<Value> =
            items.iter().map(|(text, status)| json!({ "text": text, "status": status })).collect();
        json!({ "items": items })
    }

    #[test]
    fn a_plan_is_counted_shown_and_kept() {
        let plan = items(&[("look", "done"), ("change\nit", "doing"), ("check", "pending")]);
        let output = Place::new().call(&Todo::new(), plan.clone()).expect("it is kept");
        assert_eq!(output.observation, "The plan is kept: 1 of 3 done.");
        assert_eq!(output.summary, "1 of 3 done\n✓ look\n▸ change it\n☐ check");
        assert_eq!(output.state_update["todo"], plan["items"]);
        let words = items(&[("look", "completed"), ("change\nit", "in_progress"), ("check", "pending")]);
        let output = Place::new().call(&Todo::new(), words).expect("the words of others are known");
        assert_eq!(output.state_update["todo"], plan["items"]);
        let output = Place::new().call(&Todo::new(), items(&[])).expect("it is cleared");
        assert_eq!(output.state_update["todo"], Value::Null);
        assert_eq!(output.summary, "no plan");
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        let fail = |plan: &[(&str, &str)]| Place::new().fail(&Todo::new(), items(plan));
        assert!(fail(&[("a", "doing"), ("b", "doing")]).contains("at most one"));
        assert!(fail(&[("a", "done"), (" ", "pending")]).contains("item 2 has no text"));
        assert!(fail(&vec![("a", "done"); 51]).contains("at most 50"));
    }
}
