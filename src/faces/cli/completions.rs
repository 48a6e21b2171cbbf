//! `agent completions SHELL`, and the names that its script asks for: what the configuration and the sessions here have.
//! Nothing is asked of a person or a server, and nothing is written.

use std::ffi::OsString;
use std::io::Write;

use jiff::Timestamp;

use crate::agent::assembly;
use crate::base::text::make_visible;
use crate::config::{Config, PluginLock, SubjectKind};
use crate::faces::chat::{list_models, list_prompts};
use crate::files::workspace::Workspace;
use crate::model::catalogue::providers::{PROVIDERS, Provider, ProviderRole};
use crate::skills::{RunVariables, SkillCatalogue};

use super::args::{self, ArgumentValues, GlobalArgs, OfferedValue};
use super::setup::CliSetup;
use super::{CommandOutcome, Env, exit};

/// The most sessions that are offered, the latest first.
const MOST_SESSIONS: usize = 50;

/// Answers a script. It gives its words after `--`; what is typed wrongly has no continuations.
pub(super) fn answer_script(shell: &str, args: &[OsString]) -> CommandOutcome {
    let words = args.iter().skip_while(|arg| *arg != "--").skip(1).cloned().collect();
    let answer = args::complete_words(shell, words, list_values)?;
    std::io::stdout().write_all(&answer)?;
    Ok(exit::DONE)
}

fn list_values(global: &GlobalArgs, values: ArgumentValues) -> Vec<OfferedValue> {
    let named = |name: &str, about: &str| OfferedValue { value: name.to_owned(), about: about.to_owned() };
    let provider = |row: &Provider| named(row.id, row.name);
    match values {
        ArgumentValues::FileKinds => SubjectKind::ALL.iter().map(|kind| named(kind.name(), "")).collect(),
        ArgumentValues::LoginProviders => {
            PROVIDERS.iter().filter(|row| row.login.is_some()).map(provider).collect()
        }
        ArgumentValues::Providers => {
            PROVIDERS.iter().filter(|row| row.kind != ProviderRole::Local).map(provider).collect()
        }
        _ => {
            let setup = CliSetup { global: global.clone(), env: Env::capture().with_stored_keys() };
            let Some((workspace, config)) = setup.read_unasked() else { return Vec::new() };
            list_configured(&workspace, &config, values)
        }
    }
}

fn list_configured(workspace: &Workspace, config: &Config, values: ArgumentValues) -> Vec<OfferedValue> {
    let named = |value: String| OfferedValue { value, about: String::new() };
    let about = |value: &str, about: &str| OfferedValue {
        value: value.to_owned(),
        about: make_visible(about.lines().next().unwrap_or_default()).into_owned(),
    };
    match values {
        ArgumentValues::Agents => {
            config.agents.values().map(|agent| about(&agent.name, &agent.description)).collect()
        }
        ArgumentValues::Flows => config.flows.keys().cloned().map(named).collect(),
        ArgumentValues::Models => list_models(config).into_iter().map(named).collect(),
        ArgumentValues::Prompts => list_prompts(config).into_iter().map(named).collect(),
        ArgumentValues::Servers => config.servers.keys().cloned().map(named).collect(),
        ArgumentValues::SettingKeys => config.keys().into_iter().map(|key| named(key + "=")).collect(),
        ArgumentValues::Tools => {
            let built_in = crate::tools::NAMES.iter().map(|name| (*name).to_owned());
            built_in.chain(config.tools.keys().cloned()).map(named).collect()
        }
        ArgumentValues::Plugins => {
            let lock = PluginLock::open(&config.dirs.config).ok();
            lock.into_iter().flat_map(|lock| lock.plugins.into_keys()).map(named).collect()
        }
        ArgumentValues::Skills => {
            let skills = SkillCatalogue::discover(&config.skill_dirs, &config.dirs.cache, RunVariables::default());
            skills.iter().map(|skill| about(&skill.name, &skill.description)).collect()
        }
        ArgumentValues::Sessions => {
            let listed = assembly::open_store(config).list(Some(workspace.root()), Timestamp::now());
            let listed = listed
                .into_iter()
                .flat_map(|listed| listed.sessions)
                .filter(|session| session.parent.is_none())
                .take(MOST_SESSIONS);
            listed.map(|session| about(&session.id, &session.title)).collect()
        }
        ArgumentValues::FileKinds | ArgumentValues::LoginProviders | ArgumentValues::Providers => Vec::new(),
    }
}
