//! The loop: ask the model, run its calls, answer them, again, until an answer stands.
//!
//! Three things are kept apart: [`Agent`] holds services and no conversation, [`Session`]
//! is the conversation, [`Run`] is what this process has done with it. Cancelling is dropping: [`take_turn`] drops
//! the work, and then settles what it left open, so that the next request is valid.

mod arguments;
mod ask;
mod by_hand;
mod briefing;
mod cancel;
mod clock;
mod compact;
mod compress;
mod summarise;
mod closing;
mod dispatch;
mod prepare;
mod permission;
mod execute;
mod measure;
mod emitter;
mod limits;
mod repeat;
mod retry;
mod schema;
mod toolbox;
mod turn;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::config::{ApprovalMode, ContextSettings, Limits, Redactor, ToolOutputSettings};
use crate::context::{Budget, Ruler};
use crate::contract::{Approver, CallRecord, ChatModel};
use crate::message::Usage;
use crate::policy::{Grants, Rules};
use crate::session::Session;
use crate::spill::Spill;
use crate::tools::Jobs;
use crate::workspace::Workspace;

pub use briefing::Briefing;
pub use by_hand::{Called, call_by_hand};
pub use cancel::Cancel;
pub use compact::{Change, Preview, compact, pin, preview, usage};
pub use emitter::{Emitter, SinkClosed};
pub use limits::{Limit, cost_usd};
pub use repeat::{RepeatDetector, Repetition};
pub use schema::AnswerSchema;
pub use toolbox::{Filter, Found, Terms, Toolbox};
pub use turn::{Stop, TurnEnd, settle, take_turn};

/// An agent: everything that a turn needs besides the conversation. Holds no state.
pub struct Agent {
    pub name: String,
    pub model: Arc<dyn ChatModel>,
    pub tools: Toolbox,
    pub briefing: Briefing,
    pub limits: Limits,
    pub budget: Budget,
    /// When and how a conversation is compressed, and how much one result may bring in.
    pub context: ContextSettings,
    /// How results are written for the model.
    pub tool_output: ToolOutputSettings,
    pub approval: ApprovalMode,
    pub rules: Rules,
    pub workspace: Workspace,
    /// Directories outside of the workspace that may be read without asking (skills).
    pub readable: Vec<PathBuf>,
    pub approver: Arc<dyn Approver>,
    /// Where what does not fit into the conversation goes.
    pub spill: Arc<Spill>,
    /// What goes on in the background.
    pub jobs: Arc<Jobs>,
    pub redactor: Arc<Redactor>,
    /// What the final answer must match.
    pub schema: Option<AnswerSchema>,
}

impl Agent {
    /// The most bytes that one result may bring in, as an estimate.
    #[must_use]
    pub fn result_bytes(&self) -> usize {
        const BYTES_PER_TOKEN: usize = 4;
        self.context.tool_result_max_tokens.saturating_mul(BYTES_PER_TOKEN)
    }

    /// The system prompt of a session, with the skills that it is to show.
    ///
    /// # Errors
    /// When the prompt reads what nothing defines.
    pub fn system_prompt(&self, session: &Session, run_id: &str) -> anyhow::Result<String> {
        let prompt = self.briefing.system(session, run_id)?;
        let section = self.briefing.loaded.section();
        if section.is_empty() {
            return Ok(prompt);
        }
        Ok(format!("{}\n\n{}\n", prompt.trim_end(), self.redactor.redact(&section)))
    }
}

/// What this process has done with a session so far.
pub struct Run {
    pub emitter: Arc<Emitter>,
    pub started: Instant,
    pub totals: Totals,
    /// What the person allowed for the rest of the session.
    grants: Grants,
    granted_in: String,
    /// Finished calls as data, kept only where a script may read them.
    results: Vec<CallRecord>,
    ruler: Ruler,
    /// How many compressions in a row were no progress.
    stalled: u32,
}

/// Sums over the turns of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    pub usage: Usage,
    /// USD; `None` as long as no price was known.
    pub cost_usd: Option<f64>,
    pub turns: u64,
    pub steps: u64,
    pub tool_calls: u64,
    /// Calls that were denied, by whomever.
    pub denied: u64,
    /// Those of them that were denied because nobody could be asked.
    pub unasked: u64,
}

impl Run {
    /// A run that has done nothing yet.
    #[must_use]
    pub fn new(emitter: Emitter) -> Self {
        Self {
            emitter: Arc::new(emitter),
            started: Instant::now(),
            totals: Totals::default(),
            grants: Grants::default(),
            granted_in: String::new(),
            results: Vec::new(),
            ruler: Ruler::default(),
            stalled: 0,
        }
    }

    /// Begins the next run of a chat: its sums start anew, what scripts and sizes rest on stays.
    pub fn begin(&mut self, session_id: &str, run_id: String) {
        self.emitter.begin(session_id.to_owned(), run_id);
        if self.granted_in != session_id {
            self.grants = Grants::default();
            self.ruler = Ruler::default();
            self.stalled = 0;
            session_id.clone_into(&mut self.granted_in);
        }
        self.started = Instant::now();
        self.totals = Totals::default();
    }
}
