//! What happens in a run, as the editor is told it: each event becomes the updates of a session, or none.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::rpc::RpcPeer;
use crate::base::output::CallStatus;
use crate::base::text;
use crate::config::format_duration;
use crate::conversation::EventSink;
use crate::conversation::event::plan::StepStatus;
use crate::conversation::event::{Event, EventKind, EventMessage};
use crate::files::regular::{Links, read_bytes};

/// The most bytes of a running command's output that are shown.
const MOST_LIVE: usize = 4096;
/// The largest file whose former content is shown beside the new one.
const LARGEST_FILE: u64 = 1024 * 1024;

/// The call about which a person is asked.
pub type AskedCall = Arc<Mutex<String>>;

/// Tells an editor what happens in a session.
pub struct UpdateSink {
    peer: Arc<RpcPeer>,
    session: String,
    workspace: PathBuf,
    window: u64,
    asked: AskedCall,
    plan: Vec<Value>,
    /// True if a part of the answer to the running request was told.
    has_begun: bool,
    /// The end of the running command's output.
    live: String,
}

impl UpdateSink {
    pub fn new(peer: &Arc<RpcPeer>, session: &str, workspace: &Path, window: u64, asked: &AskedCall) -> Self {
        Self {
            peer: Arc::clone(peer),
            session: session.to_owned(),
            workspace: workspace.to_path_buf(),
            window,
            asked: Arc::clone(asked),
            plan: Vec::new(),
            has_begun: false,
            live: String::new(),
        }
    }

    fn update(&self, update: &Value) {
        send_update(&self.peer, &self.session, update);
    }

    fn show_plan(&self) {
        self.update(&json!({ "sessionUpdate": "plan", "entries": self.plan }));
    }

    fn set_step(&mut self, step: u32, status: &str) {
        if let Some(entry) = usize::try_from(step).ok().and_then(|step| self.plan.get_mut(step.checked_sub(1)?)) {
            entry["status"] = status.into();
            self.show_plan();
        }
    }

    fn begin_call(&mut self, id: &str, name: &str, subject: &str, arguments: &Value) {
        self.live.clear();
        if name == "todo" {
            let items = arguments["items"].as_array().cloned().unwrap_or_default();
            self.plan = items.iter().map(|item| plan_entry(&item["text"], word_status(&item["status"]))).collect();
            self.show_plan();
        }
        self.update(&json!({
            "sessionUpdate": "tool_call",
            "toolCallId": id,
            "title": describe_call(name, subject),
            "kind": name_kind(name),
            "status": "in_progress",
            "rawInput": arguments,
            "locations": list_locations(&self.workspace, arguments),
            "content": list_diffs(&self.workspace, name, arguments),
        }));
    }
}

impl EventSink for UpdateSink {
    fn emit(&mut self, event: &Event) -> io::Result<()> {
        // What helpers do is theirs: their call is shown with its result.
        if !event.path.is_empty() {
            return Ok(());
        }
        let own_id = |call: &str| format!("{}-{call}", event.run_id);
        match &event.kind {
            EventKind::RequestStarted { .. } => self.has_begun = false,
            EventKind::TextDelta { text } => {
                self.has_begun |= !text.is_empty();
                self.update(&chunk("agent_message_chunk", text));
            }
            EventKind::Retry { attempt, attempts, delay_ms, cause } => {
                let delay = format_duration(Duration::from_millis(*delay_ms));
                let said = format!("retry {attempt}/{attempts} in {delay}: {}", text::one_line(cause, 200));
                // An editor joins the chunks of an answer.
                if std::mem::take(&mut self.has_begun) {
                    let said = format!("\n\n{said}\nthe answer above was cut off and starts again\n\n");
                    self.update(&chunk("agent_message_chunk", &said));
                } else {
                    self.update(&chunk("agent_thought_chunk", &format!("{said}\n")));
                }
            }
            EventKind::ReasoningDelta { text } => self.update(&chunk("agent_thought_chunk", text)),
            EventKind::Warning { message } => {
                self.update(&chunk("agent_thought_chunk", &format!("Warning: {message}\n")));
            }
            EventKind::ToolStarted { call_id, name, arguments, subject } => {
                self.begin_call(&own_id(call_id), name, subject, arguments);
            }
            EventKind::ToolOutput { call_id, chunk } => {
                self.live.push_str(chunk);
                let cut = self.live.len() - text::take_tail(&self.live, MOST_LIVE).len();
                self.live.drain(..cut);
                self.update(&json!({
                    "sessionUpdate": "tool_call_update",
                    "toolCallId": own_id(call_id),
                    "content": [text_content(&self.live)],
                }));
            }
            EventKind::PermissionRequested { call_id, .. } => {
                *self.asked.lock().expect("no holder of the id panics") = own_id(call_id);
            }
            EventKind::Message(EventMessage::Tool { call_id, content, status, .. }) => {
                self.update(&end_call(&own_id(call_id), content, *status));
            }
            EventKind::PlanCreated(created) => {
                let steps = created.steps.iter();
                self.plan = steps.map(|step| plan_entry(&json!(step.description), "pending")).collect();
                self.show_plan();
            }
            EventKind::StepStarted(step) => self.set_step(step.step_id, "in_progress"),
            EventKind::StepFinished(step) if step.status == StepStatus::Ok => {
                self.set_step(step.step_id, "completed");
            }
            EventKind::RequestFinished(request) if request.usage.input_tokens > 0 => {
                let used = request.usage.input_tokens + request.usage.output_tokens;
                let mut update = json!({ "sessionUpdate": "usage_update", "used": used, "size": self.window });
                if let Some(cost) = request.cost_usd {
                    update["cost"] = json!({ "amount": cost, "currency": "USD" });
                }
                self.update(&update);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Sends one update of a session.
pub fn send_update(peer: &RpcPeer, session: &str, update: &Value) {
    peer.notify("session/update", &json!({ "sessionId": session, "update": update }));
}

/// A piece of a text: of the agent, of its thoughts, of the person.
pub fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

/// The end of a call, with its result.
pub fn end_call(id: &str, result: &str, status: CallStatus) -> Value {
    json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": id,
        "status": if status == CallStatus::Ok { "completed" } else { "failed" },
        "content": [text_content(strip_frame(result))],
    })
}

/// A result without the tags between which models read it.
fn strip_frame(result: &str) -> &str {
    let inner = result.strip_prefix("<result ").and_then(|rest| rest.split_once(">\n"));
    inner.map_or(result, |(_, inner)| inner.strip_suffix("</result>").unwrap_or(inner)).trim_end()
}

/// The title of a call.
pub fn describe_call(name: &str, subject: &str) -> String {
    if subject.is_empty() { name.to_owned() } else { text::one_line(&format!("{name} {subject}"), 200) }
}

/// The kind by which an editor chooses how to show a call.
pub fn name_kind(tool: &str) -> &'static str {
    match tool {
        "read_file" | "view_image" | "recall" | "load_skill" | "load_skill_reference" => "read",
        "write_file" | "edit_file" | "apply_patch" => "edit",
        "glob" | "grep" | "list_dir" | "find_tools" => "search",
        "run_command" | "background" => "execute",
        "fetch_url" => "fetch",
        "todo" | "propose_plan" => "think",
        _ => "other",
    }
}

/// The file that a call is about.
pub fn list_locations(workspace: &Path, arguments: &Value) -> Value {
    let path = arguments["path"].as_str().map(|path| workspace.join(path));
    path.map_or_else(|| json!([]), |path| json!([{ "path": path, "line": arguments["offset"].as_u64() }]))
}

fn text_content(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

fn plan_entry(text: &Value, status: &str) -> Value {
    json!({ "content": text.as_str().unwrap_or_default(), "priority": "medium", "status": status })
}

fn word_status(status: &Value) -> &'static str {
    match status.as_str() {
        Some("doing" | "in_progress") => "in_progress",
        Some("done" | "completed") => "completed",
        _ => "pending",
    }
}

/// The changes that a call would make to files.
fn list_diffs(workspace: &Path, name: &str, arguments: &Value) -> Value {
    let Some(path) = arguments["path"].as_str().map(|path| workspace.join(path)) else { return json!([]) };
    let diff = |old: &Value, new: &Value| json!({ "type": "diff", "path": path, "oldText": old, "newText": new });
    match name {
        "write_file" => {
            let former = read_bytes(&path, Links::Refuse, LARGEST_FILE).ok().flatten();
            let former = former.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            json!([diff(&json!(former), &arguments["content"])])
        }
        "edit_file" => {
            let one = std::iter::once(arguments).filter(|edit| edit["new_text"].is_string());
            let several = arguments["edits"].as_array().into_iter().flatten();
            one.chain(several).map(|edit| diff(&edit["old_text"], &edit["new_text"])).collect()
        }
        _ => json!([]),
    }
}
