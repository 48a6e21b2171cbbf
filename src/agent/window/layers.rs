//! The layers of a request: the content of each, its share of the budget, and the order in which they are cut.
//!
//! | layer | content | when there is too much |
//! |---|---|---|
//! | system | identity, rules, form of the answer | never cut; too much is a mistake in the configuration |
//! | context | definitions of tools, list of skills, project instructions, loaded skills | idle skills are cut second |
//! | history | messages, replies, calls and results | cut first |
//! | input | the person's last message | never cut |
//! | reminders | texts that this program adds, in place | never cut |
//! | reserve | room for the reply | never used otherwise |

use serde::Serialize;

use crate::base::spelling::spell;
use crate::config::{LayerShares, Share};

/// One layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowLayer {
    System,
    Context,
    History,
    Input,
    Reminders,
}

impl WindowLayer {
    /// Its name, also in the configuration.
    pub fn name(self) -> &'static str {
        spell(&self)
    }

    /// The share of the budget that it may take; history takes the rest.
    fn share(self, shares: &LayerShares) -> Option<Share> {
        match self {
            Self::System => Some(shares.system),
            Self::Context => Some(shares.context),
            Self::Input => Some(shares.input),
            Self::Reminders => Some(shares.reminders),
            Self::History => None,
        }
    }

    /// The message for a layer over its limit; `parts` are its contents with their tokens. `enough` says in words what
    /// gives a budget.
    pub fn describe_excess(
        self,
        shares: &LayerShares,
        budget: u64,
        parts: &[(&str, u64)],
        enough: impl FnOnce(u64) -> String,
    ) -> Option<String> {
        let share = self.share(shares)?;
        let limit = share.take_share(budget);
        let tokens: u64 = parts.iter().map(|(_, tokens)| tokens).sum();
        if tokens <= limit {
            return None;
        }
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, tokens)| *tokens > 0)
            .map(|(part, tokens)| format!("{part} {tokens}"))
            .collect();
        let name = self.name();
        Some(format!(
            "the layer `{name}` has {tokens} tokens ({}), more than the {limit} that context.layers.{name} gives it of \
             a budget of {budget}: make it shorter, raise the share, or use {}",
            parts.join(", "),
            enough(share.find_whole(tokens))
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_over_its_limit_is_named_with_what_is_in_it() {
        let shares: LayerShares =
            serde_json::from_str(r#"{"system":0.5,"context":0.25,"input":0.8,"reminders":0.2}"#).expect("shares");
        let over = |layer: WindowLayer, tokens| {
            let parts = [("tools", tokens), ("skills", 0)];
            layer.describe_excess(&shares, 1000, &parts, |budget| format!("a budget of {budget}"))
        };
        assert_eq!(over(WindowLayer::Context, 250), None);
        assert_eq!(over(WindowLayer::History, 5000), None, "history has no limit of its own: it gives way");
        let why = over(WindowLayer::Context, 251).expect("too much");
        let begins = "the layer `context` has 251 tokens (tools 251), more than the 250 that";
        assert!(why.starts_with(begins) && why.ends_with("or use a budget of 1004"), "{why}");
    }
}
