//! The loop: ask the model, run its calls, answer them, and repeat until there is a final answer.
//!
//! Three things are separate: [`Agent`] holds services and settings and no state, [`Conversation`] is the state,
//! [`Run`] is what this process has done with it. [`run_input`] drives a run from an input to its ending. Dropping the
//! work cancels it: what it left open is settled, so that the next request is valid.
//!
//! The rooms, from the ground up: `window` (what a request holds), `loops` (what finds them), `request` (one request to a
//! model), `turn` (from an input to its answer), `call` (the one path of a call), `briefing` (the prompts about the run),
//! `run` (the driver, the endings), `orchestration` (roles, plans, flows), `assembly` (the services), `workers` (tasks from a queue).
//!
//! Invariants:
//! - Every face drives its runs through `run/`, and a dry run is that run, stopped before its first request. A run
//!   whose future is dropped is settled and ends like any other.
//! - Every request of a run passes `request/`: reserved in the ledger (`model/ledger/`) at every caller above, sent,
//!   entered, and reported by one event. What does not fit into a limit, with the closing answer after it, is not sent.
//! - Every call, whoever wrote it, takes one path (`call/`): prepared, scheduled, permitted, executed, shaped, settled.
//!   Which calls run side by side is decided in `call/schedule.rs` alone, what the model reads of a result in
//!   `call/shape.rs` alone. How a call ended is a type (`CallEnd`); `ok` and ✓ stand only for what was done.
//! - Every call has one answer before the next request, whatever was cancelled: cancelling drops the turn, then
//!   `call/settle.rs` answers open calls with what is known about them.
//! - The messages of a prompt are recorded before the first input of a conversation, and never again
//!   (`briefing/opening.rs`). Their replies are marked as given, and no sum counts them.
//! - Marks in a tool's result are broken once, before the loop adds its own notices (a cut, a hint): an unbroken notice
//!   is ours.
//! - Only a compression breaks the prefix of requests, in one pass, recorded as one entry when it is complete. Pure
//!   functions plan what is removed (`window/plan.rs`, cases in `tests/plan_cases/`). The log keeps the originals, and
//!   `recall` reads them there. A request that can be made to fit is never refused: the last step and the person's last
//!   message are shortened last.
//! - Roles (`orchestration/`) are asked beside the conversation, and their replies are data: pure functions check
//!   plans, follow their steps and decide from scores; the drivers do what these decide. A step of a plan is a call
//!   that no model wrote (`Step.given`), and takes the path of every call. The events of a plan are logged, and its
//!   state is the fold over them.
//! - A helper (`assembly/task/`) is a run within a run, with no more tools, permissions, limits or trust than its
//!   caller.
//! - A retry voids the text that its step has shown; a pipe sees only the final answer, so nothing is doubled there.
//! - A call through `call_tool` becomes the call that it names before anything else looks at it (`call/prepare.rs`).
//!
//! To add:
//! - a role: one file beside its prompt (`reply.json`), one type in `orchestration/reply.rs`.
//! - a reply of a role that is read, or refused: one file in `tests/reply_cases/ROLE/`; a plan, one in
//!   `tests/graph_cases/`.
//! - a kind of step of a flow: one variant of `StepWork` in `config/flow/`, its code in `orchestration/steps/flow_work.rs`.
//! - a case for loop detection: one file in `tests/loop_cases/`.
//! - a case for compression: one file in `tests/plan_cases/`.

pub mod window;

mod cancel;
mod clock;
mod emitter;
mod loops;
mod limits;
mod stop;
mod unfinished;
mod hooks;
mod toolbox;
mod live_calls;
mod request;
mod conversation;
mod turn;
mod call;
mod briefing;
mod run;
pub mod orchestration;
pub mod assembly;
#[cfg(feature = "scale")]
pub mod workers;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::agent::window::Budget;
use crate::base::secrets::Redactor;
use crate::base::tokens::BYTES_PER_TOKEN;
use crate::config::{ApprovalMode, ContextSettings, Limits, Mode, ToolOutputSettings};
use crate::files::workspace::Workspace;
use crate::model::ledger::RunLedger;
use crate::model::{ChatModel, Tape};
use crate::safety::Approver;
use crate::safety::policy::PolicyRules;
use crate::safety::sandbox::Sandbox;
use crate::tools::Jobs;
use crate::tools::Superior;

pub use briefing::{Briefing, PROMPT_BASIS};
pub use call::{CallEnd, CalledByHand, call_by_hand};
pub use cancel::Cancel;
pub use conversation::Conversation;
pub use emitter::Emitter;
pub use hooks::{HookCall, HookGround, HookReport, Hooks};
pub use limits::ReachedLimit;
pub use loops::{LoopDetector, LoopVerdict, ObservedCall, ObservedEnd};
pub use orchestration::{ChosenFlow, FlowPrompt, Flows, Orchestration, Role, Roles, Titler, title_conversation};
pub use run::{
    KeepAnswer, Preview, RunEnd, RunInput, exit, measure_fill, pin_items, preview_compression, refresh_prompt,
    run_compression, run_input, show_request, unload_skill, unpin_items,
};
pub use toolbox::{Filter, ToolEntry, ToolTerms, Toolbox};
pub use turn::{AnswerSchema, Steering, TurnEnd, TurnStop, end_session};
pub use unfinished::UnfinishedWork;

/// An agent: everything that a turn needs besides the conversation. It does not change while it answers.
pub struct Agent {
    pub name: String,
    pub model: Arc<dyn ChatModel>,
    pub tools: Toolbox,
    pub briefing: Briefing,
    pub limits: Limits,
    pub budget: Budget,
    /// The settings for compression and for the size of one result.
    pub context: ContextSettings,
    /// The format of results for the model.
    pub tool_output: ToolOutputSettings,
    pub approval: ApprovalMode,
    /// True if calls are judged by `ask` where changes cannot be undone.
    pub needs_undo: bool,
    /// The way a request is carried out.
    pub mode: Mode,
    pub rules: PolicyRules,
    /// What runs at events of a run.
    pub hooks: Hooks,
    pub workspace: Workspace,
    /// The boundary around commands, if there is one.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Directories outside the workspace that may be read without asking (skills).
    pub readable: Vec<PathBuf>,
    pub approver: Arc<dyn Approver>,
    /// Runs commands in the background.
    pub jobs: Arc<Jobs>,
    pub redactor: Arc<Redactor>,
    /// Records the results of calls, or gives recorded ones back.
    pub tape: Option<Tape>,
    /// The schema that the final answer must match.
    pub schema: Option<AnswerSchema>,
    /// What plans and flows need.
    pub orchestration: Orchestration,
    /// What gives conversations their titles, if a model is to do that.
    pub titler: Option<Titler>,
    /// What cancelled helpers left to be done.
    pub unfinished: Arc<UnfinishedWork>,
}

impl Agent {
    /// The most bytes that one result may have, as an estimate.
    pub fn result_bytes(&self) -> usize {
        self.context.tool_result_max_tokens.saturating_mul(BYTES_PER_TOKEN)
    }

    /// Kills the background commands. Returns a line that names them.
    pub fn end_background(&self) -> Option<String> {
        let ended = self.jobs.end_all();
        (!ended.is_empty()).then(|| format!("ended the background commands: {}", ended.join(", ")))
    }
}

/// The work of this process so far: its events and its sums.
pub struct Run {
    pub emitter: Arc<Emitter>,
    /// What it may spend and has spent, with all its helpers.
    pub ledger: RunLedger,
    pub totals: CallTotals,
    /// For a helper: the run that called it.
    pub superior: Option<Arc<dyn Superior>>,
    /// The outputs of the last flow, by key.
    pub outputs: Option<Value>,
    /// The person's messages during a running turn.
    pub steering: Steering,
    /// The session of which hooks have heard that it begins or goes on.
    pub heard: Option<String>,
    /// True if the first request is shown instead of sent: [`TurnStop::Shown`].
    pub is_dry: bool,
    /// True if the person wants the plan that waits to go on with the next message.
    pub resumes_plan: bool,
}

/// The calls of a run, without those of its helpers.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallTotals {
    pub tool_calls: u64,
    /// Denied calls, whoever denied them.
    pub denied: u64,
    /// Calls denied because nobody could be asked.
    pub unasked: u64,
}

impl Run {
    /// A run that has done nothing yet.
    pub fn new(emitter: Emitter) -> Self {
        let emitter = Arc::new(emitter);
        Self {
            emitter,
            ledger: RunLedger::default(),
            totals: CallTotals::default(),
            superior: None,
            outputs: None,
            steering: Steering::default(),
            heard: None,
            is_dry: false,
            resumes_plan: false,
        }
    }

    /// Begins the next run of a chat: its sums start at zero.
    pub fn begin(&mut self, session_id: &str, run_id: String) {
        self.emitter.begin(session_id.to_owned(), run_id);
        self.ledger = RunLedger::default();
        self.totals = CallTotals::default();
        self.outputs = None;
    }
}

#[cfg(test)]
mod tests;
