//! Checks that the layers that do not change during a run keep to their limits, so the mistake is found before a run
//! and not by a cut in the middle of one.

use jiff::Timestamp;

use crate::agent::window::{WindowLayer, describe_enough};
use crate::agent::{Agent, Briefing};
use crate::base::json;
use crate::base::tokens;
use crate::config::{Config, Mistake};
use crate::model::ToolDefinition;
use crate::prompt::Released;

use super::sessions::unsaved_conversation;

/// Finds every layer that is over its limit. The mistake is placed at the value that sets the limit: the share, the
/// budget or the model's window.
pub(super) fn find_layer_mistakes(config: &Config, agent: &Agent) -> Vec<Mistake> {
    let model = &agent.model.info().name;
    let mistake = |(layer, why): (WindowLayer, String)| {
        let keys = [
            format!("agents.{}.context.layers.{}", agent.name, layer.name()),
            format!("agents.{}.context.budget", agent.name),
            format!("agents.{}.context.reserve_output", agent.name),
            format!("models.{model}.context_window"),
        ];
        config.mistake_of(&keys, &why)
    };
    find_over_limit(agent).into_iter().map(mistake).collect()
}

fn find_over_limit(agent: &Agent) -> Vec<(WindowLayer, String)> {
    let (lists, instructions) = agent.briefing.elastic();
    let definitions = agent.tools.definitions();
    let (shares, budget) = (&agent.context.layers, agent.budget.divide_by_layers());
    // A token has at least one byte: if the bytes fit, nothing needs to be rendered or counted.
    let size = |tool: &ToolDefinition| tool.description.len() + json::most_bytes(&tool.parameters);
    let of_tools: usize = definitions.iter().map(size).sum();
    let Briefing { system, own, .. } = &agent.briefing;
    let templates: usize =
        system.all().chain(own.iter().flat_map(Released::all)).map(|prompt| prompt.template_bytes()).sum();
    let bytes = lists.len() + instructions.len() + templates + of_tools;
    let at_most = bytes as u64;
    if [shares.system, shares.context, shares.reminders].iter().all(|share| at_most <= share.take_share(budget)) {
        return Vec::new();
    }
    let definitions: u64 = definitions
        .iter()
        .map(|tool| {
            tokens::estimate_tokens(&tool.description) + tokens::estimate_tokens(&tool.parameters.to_string())
        })
        .sum();
    let (lists, instructions) = (tokens::estimate_tokens(&lists), tokens::estimate_tokens(instructions));
    let conversation = unsaved_conversation(agent, Timestamp::UNIX_EPOCH);
    // A prompt that cannot be rendered is reported when the run renders it.
    let Ok(rendered) = agent.briefing.system(&conversation, "") else { return Vec::new() };
    let system = tokens::estimate_tokens(&rendered).saturating_sub(lists + instructions);
    let reminders = tokens::estimate_tokens(agent.briefing.termination.stable.body());
    let parts: [(WindowLayer, &[(&str, u64)]); 3] = [
        (WindowLayer::System, &[("the system prompt without lists and instructions", system)]),
        (
            WindowLayer::Context,
            &[
                ("tool definitions", definitions),
                ("lists in the prompt", lists),
                ("project instructions", instructions),
            ],
        ),
        (WindowLayer::Reminders, &[("the termination prompt", reminders)]),
    ];
    let over = |(layer, parts): (WindowLayer, &[(&str, u64)])| {
        let enough = |tokens| describe_enough(tokens, agent.model.info(), &agent.context);
        Some((layer, layer.describe_excess(shares, budget, parts, enough)?))
    };
    parts.into_iter().filter_map(over).collect()
}
