//! The reports of orchestrated turns: routes, plans, steps, scores and decisions. Events carry these values, the log
//! keeps them, and the state of a plan is the fold over them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A decision of the router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Routed {
    /// The kind of the choice: `tool`, `agent`, `flow`, or `none`.
    pub kind: String,
    /// Its name; `none` if nothing was chosen.
    pub name: String,
    pub reasoning: String,
    /// From 0 to 1, as the model said.
    pub confidence: f64,
}

/// One step of a plan: one call of one tool, or one job for an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanStep {
    #[serde(alias = "id")]
    pub step_id: u32,
    pub description: String,
    /// A tool, or an agent.
    #[serde(alias = "tool")]
    pub tool_name: String,
    /// Its arguments. `$step_N_result` stands for the result of an earlier step.
    #[serde(default, alias = "input")]
    pub tool_input: Value,
    /// The steps whose results it needs.
    #[serde(default)]
    pub depends_on: Vec<u32>,
    /// The check of the program after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<StepCheck>,
    /// A file that the step may replace unread, if a person approved the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

/// Who wrote a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanAuthor {
    /// The planner, asked beside the conversation.
    #[default]
    Planner,
    /// The model of the conversation, with the tool `propose_plan`.
    Model,
    /// A person, who edited what a model wrote.
    Person,
    /// A flow, which has a role carry it out. It goes on with the flow only.
    Flow,
}

/// A check by the program after a step. It overrides the scores of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepCheck {
    /// A command that must exit with 0.
    Command(String),
    /// A file that must exist.
    File(String),
    /// A JSON Schema that the result must match.
    Schema(Value),
}

/// A valid plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanCreated {
    /// The request that it answers.
    pub request: String,
    /// Counts the plans of the request, from 1.
    pub revision: u32,
    pub analysis: String,
    #[serde(default)]
    pub author: PlanAuthor,
    /// True if a person read it and let it run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
    pub steps: Vec<PlanStep>,
    /// The steps whose results of an earlier revision stay valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<u32>,
}

/// A step begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStarted {
    pub step_id: u32,
    /// For a flow: the id of the step, with the groups, flows and rounds around it (`work[2]/plan`). The number then
    /// counts the steps that have begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Counts from 1 within a revision.
    pub attempt: u32,
    pub tool_name: String,
    pub description: String,
}

/// The end of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    #[default]
    Ok,
    /// The tool or the program that it ran failed, or its arguments could not be made.
    Failed,
    /// A person, a rule or the policy did not allow its call.
    Denied,
    /// A step that it depends on failed.
    Skipped,
}

impl StepStatus {
    /// The word for a step that did not end well; empty for one that did.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Skipped => "skipped",
        }
    }
}

/// The result of a program's check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCheck {
    pub passed: bool,
    /// One line: the check and its result.
    pub detail: String,
}

/// A step ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepFinished {
    pub step_id: u32,
    /// As in [`StepStarted`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub attempt: u32,
    pub status: StepStatus,
    /// One line for a person; for a failure, the reason.
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<ProgramCheck>,
    pub duration_ms: u64,
    /// True if the result lacks a part that the call asked for: it was too large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The result as data. The log keeps it; observers read it in the call's own events.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
}

/// A score from 1 to 5, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    pub score: u8,
    pub reason: String,
}

/// The scores of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluation {
    pub completeness: Score,
    pub correctness: Score,
    pub format: Score,
}

impl Evaluation {
    /// Returns the scores in one line for a person.
    pub fn word_scores(&self) -> String {
        let Self { completeness, correctness, format } = self;
        format!("complete {}, correct {}, form {}", completeness.score, correctness.score, format.score)
    }
}

/// The decision that follows from the scores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ScoreDecision {
    Accept,
    RetryStep { step_id: u32, modification: String },
    Replan { modification: String },
    Escalate { why: String },
}

impl ScoreDecision {
    /// Returns the decision in words for a person.
    pub fn word_decision(&self) -> String {
        match self {
            Self::Accept => "accepted".to_owned(),
            Self::RetryStep { step_id, modification } => format!("step {step_id} again: {modification}"),
            Self::Replan { modification } => format!("a new plan: {modification}"),
            Self::Escalate { why } => format!("not accepted: {why}"),
        }
    }
}

/// A judgement of the results, and the decision that follows from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reflection {
    pub evaluation: Evaluation,
    /// The model's overall verdict.
    pub overall_pass: bool,
    #[serde(flatten)]
    pub decision: ScoreDecision,
    /// The number of retries and new plans before it.
    pub retries: u32,
}

/// An event of a plan or of a flow, as the log keeps it. A flow may carry out plans; the events of its own steps have
/// names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum PlanEvent {
    /// A flow begins.
    Begun {
        flow: String,
        /// The digest of the files of all flows as they were then: results are valid for no others.
        digest: String,
        inputs: Value,
    },
    Planned(PlanCreated),
    Started(StepStarted),
    Finished(StepFinished),
    Reflected(Reflection),
    /// The plan is over: answered, refused by the person, or dropped; or the flow is.
    Closed {
        why: String,
    },
}
