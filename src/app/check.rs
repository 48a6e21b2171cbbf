//! What only a run would find out: tools, skills and names in prompts that nothing defines, for every agent that is
//! configured. It asks the very functions that put an agent together, so that the two cannot disagree.

use std::sync::Arc;

use crate::config::{AgentConfig, Config, Mistake, PromptSource};
use crate::prompt::{PromptContext, Registry};
use crate::skills::{Catalogue, Loaded};
use crate::spill::Spill;
use crate::tools::Kit;
use crate::workspace::Ledger;

/// Every mistake in the names that agents use. Prompts that do not exist or do not compile are not among them:
/// reading the configuration tells of those.
#[must_use]
pub fn check(config: &Config) -> Vec<Mistake> {
    let registry = Registry::open(&config.prompt_dirs);
    let mut mistakes = Vec::new();
    for agent in config.agents.values() {
        if let Ok(registry) = &registry {
            prompts(config, agent, registry, &mut mistakes);
        }
        let mut wrong = |key: &str, why: &str| {
            mistakes.push(config.mistake(&format!("agents.{}.{key}", agent.name), why));
        };
        let catalogue = super::skills(config, agent).unwrap_or_else(|why| {
            wrong("skills", &why);
            Catalogue::discover(&config.skill_dirs, &config.dirs.cache)
        });
        let kit = Kit {
            sandbox: None,
            net: Arc::default(),
            fetch_allow: Vec::new(),
            // Naming a tool that some models cannot use is no mistake.
            vision: true,
            ledger: Arc::new(Ledger::default()),
            child_env: Vec::new(),
            spill: Arc::new(Spill::default()),
            person: None,
        };
        if let Err(why) = super::toolbox(agent, &Arc::new(catalogue), &Arc::new(Loaded::default()), kit) {
            wrong("tools", &why);
        }
    }
    mistakes.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    mistakes
}

fn prompts(config: &Config, agent: &AgentConfig, registry: &Registry, mistakes: &mut Vec<Mistake>) {
    let sources = [
        ("system_prompt", &agent.system_prompt, None),
        ("termination_summary_prompt", &agent.termination_summary_prompt, Some((&agent.limits).into())),
    ];
    for (key, source, ending_limits) in sources {
        let Ok(prompt) = registry.of(source, key) else { continue };
        let missing = prompt.undefined_in(&PromptContext::anything(ending_limits));
        if missing.is_empty() {
            continue;
        }
        let names = missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let (part, which) = match source {
            PromptSource::Registered(_) => (".ref", format!("the prompt {}", prompt.origin)),
            PromptSource::Inline(_) => ("", "the prompt".to_owned()),
        };
        let key = format!("agents.{}.{key}{part}", agent.name);
        mistakes.push(config.mistake(&key, &format!("{which} reads {names}, which nothing defines")));
    }
}
