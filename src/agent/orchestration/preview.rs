//! Previews the first request of a turn that asks a role first (`--dry-run`).

use serde_json::Value;

use crate::agent::{Agent, Conversation};
use crate::config::Mode;
use crate::model::{Request, ToolChoice};

use super::plan::planner_variables;
use super::routing::router_variables;

impl Agent {
    /// The body of the request to the router or the planner; `None` in a mode that asks neither.
    ///
    /// # Errors
    /// The prompt of the role cannot be rendered.
    pub fn preview_role(
        &self,
        conversation: &Conversation,
        run_id: &str,
        request: &str,
    ) -> anyhow::Result<Option<Value>> {
        let Some(orchestration) = &self.orchestration else { return Ok(None) };
        let (role, variables) = match self.mode {
            Mode::Route => (&orchestration.roles.router, router_variables(self, orchestration, request)),
            Mode::Plan => {
                (&orchestration.roles.planner, planner_variables(self, orchestration, request, String::new()))
            }
            Mode::Direct | Mode::Explore => return Ok(None),
        };
        let prompt = role.render(self, (conversation, run_id), variables)?;
        let schema = role.schema();
        let request = Request {
            aside: Some(&prompt),
            tool_choice: ToolChoice::None,
            schema: schema.as_deref(),
            ..Request::of(&[], conversation.session.id())
        };
        Ok(Some(role.model.preview(request)))
    }
}
