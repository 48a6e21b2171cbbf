//! Flags that name a setting: each is a value above all other layers, under the name that a person types.

use std::collections::BTreeSet;

use super::source::{ConfigDocument, ConfigLayer, Sources, SubjectKind};
use crate::base::yaml::{Node, Scalar, ScalarForm, YamlTree};

/// A flag that sets a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingFlag {
    Approve,
    Mode,
    MaxTurns,
    MaxRequests,
    MaxTime,
    MaxTokens,
    MaxCost,
}

/// The agents whose value a flag sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlagReach {
    RunningAgent,
    EveryAgent,
}

/// The flags, with the key of an agent that each sets.
const TABLE: [(SettingFlag, &str, &str, FlagReach); 7] = [
    (SettingFlag::Approve, "--approve", "approval", FlagReach::EveryAgent),
    (SettingFlag::Mode, "--mode", "mode", FlagReach::RunningAgent),
    (SettingFlag::MaxTurns, "--max-turns", "limits.max_turns", FlagReach::RunningAgent),
    (SettingFlag::MaxRequests, "--max-requests", "limits.max_requests", FlagReach::RunningAgent),
    (SettingFlag::MaxTime, "--max-time", "limits.max_time", FlagReach::RunningAgent),
    (SettingFlag::MaxTokens, "--max-tokens", "limits.max_tokens", FlagReach::RunningAgent),
    (SettingFlag::MaxCost, "--max-cost", "limits.max_cost", FlagReach::RunningAgent),
];

impl SettingFlag {
    /// The flag as a person types it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The dotted key of an agent that it sets.
    pub fn key(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> &'static (Self, &'static str, &'static str, FlagReach) {
        TABLE.iter().find(|row| row.0 == self).expect("every flag has a row")
    }
}

/// The flags of a run that name a setting, and the agent that it runs.
#[derive(Debug, Clone, Default)]
pub struct SettingFlags {
    /// `None`: the default agent.
    agent: Option<String>,
    values: Vec<(SettingFlag, String)>,
}

impl SettingFlags {
    /// The same flags for the run of another agent; `None` for the default one.
    pub fn of_agent(self, agent: Option<String>) -> Self {
        Self { agent, ..self }
    }

    /// Sets a flag to a value as files write it, in place of an earlier one. `None` unsets it.
    pub fn with(mut self, flag: SettingFlag, value: Option<String>) -> Self {
        self.values.retain(|(known, _)| *known != flag);
        self.values.extend(value.map(|value| (flag, value)));
        self
    }

    /// The flags that are set, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (SettingFlag, &str)> {
        self.values.iter().map(|(flag, value)| (*flag, value.as_str()))
    }

    /// Adds a document for each agent that a flag reaches. An unknown agent is reported when it is assembled.
    pub(super) fn lay(&self, documents: &mut Vec<ConfigDocument>, sources: &mut Sources) {
        let agents = documents.iter().filter(|document| document.kind == SubjectKind::Agents);
        let agents: BTreeSet<String> = agents.map(|document| document.name.clone()).collect();
        let running = self.agent.clone().or_else(|| default_agent(documents));
        for (flag, value) in self.iter() {
            let (_, name, key, reach) = flag.row();
            let place = sources.add_value(ConfigLayer::Flags, (*name).to_owned());
            let scalar = Scalar { text: value.to_owned().into(), form: ScalarForm::Given };
            let value = Node { tree: YamlTree::Scalar(scalar), place };
            let reached =
                agents.iter().filter(|agent| *reach == FlagReach::EveryAgent || Some(*agent) == running.as_ref());
            let path: Vec<String> = key.split('.').map(str::to_owned).collect();
            documents.extend(reached.map(|agent| {
                let (layer, kind) = (ConfigLayer::Flags, SubjectKind::Agents);
                ConfigDocument::of_value(layer, kind, agent.clone(), path.clone(), value.clone())
            }));
        }
    }
}

/// The name of the default agent; the highest layer decides.
fn default_agent(documents: &[ConfigDocument]) -> Option<String> {
    let settings = documents.iter().rev().filter(|document| document.kind == SubjectKind::Settings);
    settings.filter_map(|document| document.node.get("default_agent")?.text()).map(str::to_owned).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ApprovalMode, Config, Env, LoadOptions, load_config};
    use crate::files::workspace::Workspace;

    /// The built-in configuration under these flags.
    fn under(flags: SettingFlags) -> Config {
        let dir = tempfile::tempdir().expect("a directory");
        let env = Env::from_pairs([("HOME", dir.path().to_str().expect("UTF-8"))]);
        let workspace = Workspace::open(dir.path()).expect("a workspace");
        let sets = ["agents.default.limits.max_turns=9".to_owned()];
        let options = LoadOptions { sets: &sets, flags, ..LoadOptions::new(&env, &workspace) };
        load_config(&options).expect("the configuration is valid")
    }

    #[test]
    fn a_limit_is_that_of_the_agent_that_runs_and_an_approval_that_of_all() {
        let flags = SettingFlags::default()
            .with(SettingFlag::MaxTurns, Some("3".to_owned()))
            .with(SettingFlag::MaxTime, Some("90s".to_owned()))
            .with(SettingFlag::Approve, Some("all".to_owned()));
        for (agent, [of_default, of_explore]) in
            [(None, [true, false]), (Some("explore"), [false, true]), (Some("unknown"), [false, false])]
        {
            let config = under(flags.clone().of_agent(agent.map(str::to_owned)));
            for (name, is_reached) in [("default", of_default), ("explore", of_explore)] {
                let limits = &config.agents[name].limits;
                assert_eq!(limits.max_turns == Some(3), is_reached, "{name} where {agent:?} runs");
                assert_eq!(config.place(&format!("agents.{name}.limits.max_time")) == "--max-time", is_reached);
            }
            assert!(config.agents.values().all(|agent| agent.approval == ApprovalMode::All));
        }
    }

    #[test]
    fn a_flag_is_above_set_until_it_is_unset() {
        let flags = SettingFlags::default().with(SettingFlag::MaxTurns, Some("3".to_owned()));
        assert_eq!(under(flags.clone()).agents["default"].limits.max_turns, Some(3));
        assert_eq!(under(flags.with(SettingFlag::MaxTurns, None)).agents["default"].limits.max_turns, Some(9));
    }
}
