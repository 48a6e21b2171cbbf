//! A preview of a run, read from the configuration and its walls: nothing is assembled, opened or sent.

use crate::config::{Config, Mode, ModelProvider};
use crate::model::catalogue::providers;
use crate::model::{self, Face};
use crate::safety::policy::ChosenApproval;

use super::boundary::{self, is_on};
use super::{RunOptions, SetupError, chosen_model, open_net};

/// The model that would answer, and what it may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// The provider's name for the model, or the name of a script.
    pub model: String,
    /// `host[:port]` of the server; `None` for a script.
    pub server: Option<String>,
    /// False if the model needs a key that is not set.
    pub is_configured: bool,
    /// As it will probably be: see [`super::Services`] for what it is.
    pub approval: ChosenApproval,
    pub mode: Mode,
    /// True if commands run in the sandbox.
    pub is_sandboxed: bool,
    pub network: NetworkOf,
    /// The reminder under `edits`.
    pub freedom: String,
}

/// The network access of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkOf {
    Nothing,
    /// This number of hosts, or of patterns of hosts.
    Hosts(usize),
    All,
}

/// Reads the outlook of a run with these options.
///
/// # Errors
/// The agent or the model does not exist, or the provider of the model has no key.
pub fn read_outlook(config: &Config, options: &RunOptions) -> Result<Outlook, SetupError> {
    let agent = config.agent(options.agent.as_deref()).map_err(SetupError::usage)?;
    let chosen = chosen_model(config, agent, options)?;
    let is_script = chosen.provider != ModelProvider::Openai;
    let address = chosen.base_url.as_deref().map(str::trim).filter(|url| !url.is_empty());
    let usual = || providers::by_id("openai").map_or("", |openai| openai.base_url);
    let server = (!is_script).then(|| providers::find_authority(address.unwrap_or_else(usual)).to_owned());
    let is_sandboxed = is_on(agent);
    let network = match agent.sandbox.network.as_slice() {
        _ if !is_sandboxed => NetworkOf::All,
        [] => NetworkOf::Nothing,
        _ if agent.sandbox.reaches_all() => NetworkOf::All,
        hosts => NetworkOf::Hosts(hosts.len()),
    };
    Ok(Outlook {
        is_configured: model::is_configured(&chosen),
        model: chosen.model.filter(|_| !is_script).unwrap_or(chosen.name),
        server,
        approval: boundary::foresee_mode(config, agent, options),
        mode: agent.mode,
        is_sandboxed,
        network,
        freedom: boundary::describe_freedom(agent),
    })
}

/// Advises a person without a configured model how to get one, based on the keys that are set and the local servers
/// that answer within 150 ms.
pub async fn without_model(config: &Config, face: Face) -> String {
    let servers = model::probe_local(&open_net(config)).await;
    model::advise_setup(&servers, &providers::list_set_keys(&config.env), face)
}

#[cfg(test)]
mod tests {
    use super::providers::find_authority;

    #[test]
    fn an_address_is_shown_without_path_and_password() {
        for (address, shown) in [
            ("https://api.openai.com/v1", "api.openai.com"),
            ("http://127.0.0.1:11434/v1", "127.0.0.1:11434"),
            ("https://me:secret@models.example/v1?key=secret", "models.example"),
            ("box", "box"),
        ] {
            assert_eq!(find_authority(address), shown);
        }
    }
}
