//! The system prompt of a conversation: rendered once, and again when its ingredients have changed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::agent::turn::{Turn, TurnStop};
use crate::agent::{Agent, Conversation, Run};
use crate::base::digest::hash_cheaply;
use crate::config::SkillDisclosure;
use crate::conversation::event::EventKind;
use crate::conversation::knowledge::SkillChange;
use crate::conversation::session::{StateChange, SystemPrompt};
use crate::skills::{FileContent, FileWindow};

/// Gives a conversation its system prompt, or a new one if an ingredient has changed: with the same ingredients
/// the prompt stays byte for byte. Returns messages for the person, one sentence each.
///
/// # Errors
/// The prompt cannot be rendered.
pub fn brief_conversation(
    agent: &Agent,
    conversation: &mut Conversation,
    run: &Run,
) -> anyhow::Result<Vec<String>> {
    let now = Timestamp::now();
    let model = &agent.model.info().id;
    let about = conversation.session.describe();
    if (about.agent, about.model) != (agent.name.as_str(), model.as_str()) {
        conversation.session.switch(&agent.name, model, now);
    }
    conversation.read_shown_skills(agent);
    let basis = collect_ingredients(agent, conversation);
    let before = conversation.session.system();
    if before.is_some_and(|prompt| prompt.basis == basis) {
        return Ok(Vec::new());
    }
    let changed = before.map(|prompt| list_changes(&prompt.basis, &basis));
    let before_messages = before.and_then(|prompt| prompt.basis.get(MESSAGES).cloned());
    let text = agent.system_prompt(conversation, &run.emitter.run_id())?;
    let mut told: Vec<String> = Vec::new();
    let begun = !conversation.session.items().is_empty();
    if begun && before_messages.as_ref() != basis.get(MESSAGES) && basis.contains_key(MESSAGES) {
        told.push("the messages of the prompt only open new sessions; this session began without them".to_owned());
    }
    if let Some(changed) = changed.filter(|changed| !changed.is_empty())
        && conversation.session.items().iter().any(|item| item.as_step().is_some())
    {
        told.push(format!("the system prompt was rendered again: {} changed", changed.join(", ")));
    }
    conversation.session.set_system(SystemPrompt { text, basis }, now);
    Ok(told)
}

/// The prompt whose messages opened the conversation, among the ingredients. The text does not depend on it.
const MESSAGES: &str = "messages";

/// The names of the ingredients that differ.
fn list_changes(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let names = before.keys().chain(now.keys().filter(|name| !before.contains_key(*name)));
    names.filter(|name| *name != MESSAGES && before.get(*name) != now.get(*name)).cloned().collect()
}

/// What the requests of a conversation hold beside its recorded prompt, and what differs today.
pub fn list_changes_since(agent: &Agent, conversation: &Conversation) -> Vec<String> {
    let Some(prompt) = conversation.session.system() else { return Vec::new() };
    let mut changed = list_changes(&prompt.basis, &collect_ingredients(agent, conversation));
    changed.retain(|name| matches!(name.as_str(), "model" | "tools"));
    changed
}

/// The ingredient that names the system prompt: `system@v2.0#0123456789ab`.
pub const PROMPT_BASIS: &str = "prompt";

/// The ingredients of the system prompt in short: a value, or a digest of it.
fn collect_ingredients(agent: &Agent, conversation: &Conversation) -> BTreeMap<String, String> {
    let facts = &agent.briefing.facts;
    let prompt = agent.briefing.system_of(conversation).id();
    let tools = facts.agent.tools.iter().flat_map(|tool| [tool.name.as_str(), "\0", &tool.description, "\n"]);
    let skills = facts.agent.skills.iter().flat_map(|skill| [skill.name.as_str(), "\0", &skill.description, "\n"]);
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}\0{text}\n"),
        other => format!("{name}\0{other}\n"),
    };
    let vars = facts.vars.iter().map(line);
    let values = [
        ("workspace", facts.workspace.dir.clone()),
        ("agent", agent.name.clone()),
        ("model", agent.model.info().id.clone()),
        (PROMPT_BASIS, prompt),
        ("project instructions", hash_cheaply([&facts.instructions])),
        ("tools", hash_cheaply(tools)),
        ("skills", hash_cheaply(skills)),
        ("approval", agent.approval.name().to_owned()),
        ("profile", facts.agent.profile.name().to_owned()),
        ("variables", hash_cheaply(vars)),
        ("date", conversation.clock.to_zoned(TimeZone::system()).date().to_string()),
    ];
    let chosen = agent.briefing.choose_prompt(conversation);
    let messages = chosen.has_messages().then(|| (MESSAGES, chosen.id()));
    values.into_iter().chain(messages).map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Agent {
    /// The system prompt of a conversation, with the skills that it should show.
    ///
    /// # Errors
    /// The prompt reads an undefined variable.
    pub fn system_prompt(&self, conversation: &Conversation, run_id: &str) -> anyhow::Result<String> {
        let prompt = self.briefing.system(conversation, run_id)?;
        let section = conversation.skills().section();
        if section.is_empty() {
            return Ok(prompt);
        }
        Ok(format!("{}\n\n{}\n", prompt.trim_end(), self.redactor.redact(&section)))
    }
}

impl Conversation {
    /// Under `skill_disclosure: system`, reads the instructions of loaded skills that this process does not have
    /// yet. A skill that no longer exists is unloaded.
    fn read_shown_skills(&mut self, agent: &Agent) {
        let briefing = &agent.briefing;
        if briefing.disclosure != SkillDisclosure::System || !self.skills().lacks_instructions() {
            return;
        }
        for change in self.session.state().skills.clone() {
            match change {
                SkillChange::Loaded { name, .. } => match briefing.catalogue.load(&name, "") {
                    Ok(body) => self.skills().show(&name, body.instructions(agent.result_bytes())),
                    Err(_) => drop(self.skills().forget(&name)),
                },
                SkillChange::Referenced { name, file, offset, limit } => {
                    let window = FileWindow::new(offset, limit, agent.result_bytes());
                    if let Ok(page) = briefing.catalogue.reference(&name, &file, window)
                        && let FileContent::Lines { text, .. } = &page.content
                    {
                        self.skills().show_reference(&name, &file, (offset, limit), (&page.title(), text));
                    }
                }
                SkillChange::Unloaded { .. } => {}
            }
        }
        // The log has these changes already, except for the skills that are gone.
        let mut gone = self.skills().take_news();
        gone.retain(|change| matches!(change, SkillChange::Unloaded { .. }));
        self.session.update_state(StateChange { skills: gone, ..StateChange::default() }, Timestamp::now());
    }
}

impl Turn<'_> {
    /// Under `skill_disclosure: system`, renders the prompt again if skills were loaded since.
    pub(in crate::agent) fn show_loaded_skills(&mut self) -> Result<(), TurnStop> {
        let is_shown = self.agent.briefing.disclosure == SkillDisclosure::System;
        if is_shown && self.conversation.skills().take_changed() { self.render_again() } else { Ok(()) }
    }

    /// Renders the system prompt again, since the list of loaded skills may have changed.
    pub(in crate::agent) fn render_again(&mut self) -> Result<(), TurnStop> {
        let text = self.agent.system_prompt(self.conversation, &self.run.emitter.run_id())?;
        let Some(before) = self.conversation.session.system() else { return Ok(()) };
        if before.text != text {
            let prompt = SystemPrompt { text, basis: before.basis.clone() };
            self.conversation.session.set_system(prompt, Timestamp::now());
        }
        Ok(())
    }

    /// Unloads a skill and tells the observers.
    pub(in crate::agent) fn forget_skill(&mut self, name: &str, tokens: u64) -> Result<(), TurnStop> {
        let path = self.conversation.skills().forget(name).unwrap_or_default();
        let name = name.to_owned();
        Ok(self.run.emitter.emit(EventKind::SkillUnloaded { name, path, tokens })?)
    }
}
