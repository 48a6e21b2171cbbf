//! The first and the last event of a run.

use serde_json::value::RawValue;

use crate::agent::turn::{TurnEnd, TurnStop};
use crate::agent::{Agent, Run};
use crate::conversation::event::{ContextSize, EventKind, RunCompleted, RunResult, RunStarted};

use super::exit::Ending;

/// The first event of a run in this session.
pub fn report_start(agent: &Agent, session: &str) -> EventKind {
    EventKind::RunStarted(RunStarted {
        cwd: agent.workspace.root().display().to_string(),
        agent: agent.name.clone(),
        model: agent.model.info().id.clone(),
        scripted: agent.model.info().scripted,
        provider: agent.model.info().provider.clone(),
        prompts: agent.briefing.list_prompts(session),
        tools: agent.tools.names().filter(|name| !agent.tools.is_hidden(name)).map(str::to_owned).collect(),
        limits: serde_json::json!(agent.limits),
        context: ContextSize { budget: agent.budget.tokens, window: agent.budget.window },
    })
}

/// The last event of a run.
pub fn report_completed(agent: &Agent, run: &Run, ending: &Ending, end: &TurnEnd) -> EventKind {
    let valid = matches!(end.stop, TurnStop::Answered);
    let result = match &agent.schema {
        Some(_) if valid => RawValue::from_string(end.answer.clone()).map_or(RunResult::Missing, RunResult::Data),
        Some(_) => RunResult::Missing,
        None => RunResult::Text(end.answer.clone()),
    };
    let (totals, spent) = (run.totals, run.ledger.spent());
    EventKind::RunCompleted(RunCompleted {
        status: ending.status,
        exit_code: ending.code,
        reason: ending.reason.clone(),
        result,
        outputs: run.outputs.clone().filter(|_| valid),
        usage: spent.usage,
        // What used nothing cost nothing, also where there are no prices.
        cost_usd: spent.cost.usd().or((spent.usage.total() == 0).then_some(0.0)),
        turns: spent.turns,
        steps: spent.steps,
        requests: spent.requests,
        tool_calls: totals.tool_calls,
        denied: totals.denied,
        duration_ms: u64::try_from(run.ledger.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}
