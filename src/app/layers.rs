//! Whether the layers that do not change while an agent runs keep to their limits: found out before a run, not by a
//! cut in the middle of one.

use jiff::Timestamp;

use crate::agent::Agent;
use crate::context::Layer;
use crate::session::{About, Session};
use crate::tokens;

/// The first layer that is over its limit, as a sentence.
pub(super) fn mistake(agent: &Agent) -> Option<String> {
    let (lists, instructions) = agent.briefing.elastic();
    let definitions = agent.tools.definitions();
    let definitions: u64 = definitions
        .iter()
        .map(|tool| tokens::estimate(&tool.description) + tokens::estimate(&tool.parameters.to_string()))
        .sum();
    let (shares, budget) = (&agent.context.layers, agent.budget.tokens);
    // No token is shorter than a byte: where the bytes fit, nothing is rendered or counted.
    let bytes = lists.len() + instructions.len() + agent.briefing.system.body.len();
    let at_most = bytes as u64 + definitions * 4;
    if [shares.system, shares.context, shares.reminders].iter().all(|share| at_most <= share.of(budget)) {
        return None;
    }
    let (lists, instructions) = (tokens::estimate(&lists), tokens::estimate(instructions));
    let about = About { workspace: agent.workspace.root(), agent: &agent.name, model: &agent.model.info().id };
    let session = Session::ephemeral(about, Timestamp::UNIX_EPOCH);
    // A prompt that cannot be rendered is reported where it is rendered for good.
    let rendered = agent.briefing.system(&session, "").ok()?;
    let system = tokens::estimate(&rendered).saturating_sub(lists + instructions);
    let reminders = tokens::estimate(&agent.briefing.termination.body);
    let over = |layer: Layer, parts: &[(&str, u64)]| layer.over(shares, budget, parts);
    over(Layer::System, &[("the system prompt without lists and instructions", system)])
        .or_else(|| {
            let parts = [
                ("tool definitions", definitions),
                ("lists in the prompt", lists),
                ("project instructions", instructions),
            ];
            over(Layer::Context, &parts)
        })
        .or_else(|| over(Layer::Reminders, &[("the termination prompt", reminders)]))
}
