//! `agent login`: a key from a provider that lets a person allow this program one in a browser.

use crate::config::suggest;
use crate::model::KeyLogin;
use crate::model::catalogue::providers::{PROVIDERS, Provider, by_id};
use crate::safety::net::Net;

use super::browser::BrowserReturn;
use super::key::keep_key;
use super::setup::{CliSetup, build_runtime};
use super::{CommandFailure, CommandOutcome, exit, print_text};

pub(super) fn log_in(setup: &CliSetup, name: &str) -> CommandOutcome {
    let provider = find_provider(name)?;
    let failed = |why| CommandFailure::word(exit::AUTHENTICATION, format!("{} {why}", provider.name));
    let net = Net::new(|name| setup.env.get(name));
    let redactor = setup.env.redactor();
    let runtime = build_runtime()?;
    let key = runtime.block_on(async {
        // The provider takes this name of this machine, on any port.
        let home = BrowserReturn::open("localhost", None).await?;
        let begun = KeyLogin::begin(provider, &home.callback()).map_err(failed)?;
        let (login, address) = begun.ok_or_else(|| failed("has no login".to_owned()))?;
        let back = home.wait(&address).await?;
        login.finish(&net, &redactor, provider.base_url, &back).await.map_err(failed)
    });
    // A thread may still read a line.
    runtime.shutdown_background();
    if let Some(variable) = provider.keys.first() {
        keep_key(setup, variable, &key?)?;
    }
    print_text(format!("Logged in to {0}. `agent key remove {1}` forgets it.\n", provider.name, provider.id))
}

/// The provider of this name, if it has a login.
fn find_provider(name: &str) -> Result<&'static Provider, CommandFailure> {
    if let Some(provider) = by_id(name) {
        let (what, id) = (provider.name, provider.id);
        return Some(provider).filter(|provider| provider.login.is_some()).ok_or_else(|| {
            CommandFailure::usage(match provider.keys {
                [] => format!("{what} needs no key"),
                _ => format!("{what} has no login for programs like this one; `agent key set {id}` keeps a key"),
            })
        });
    }
    let known: Vec<&str> = PROVIDERS.iter().filter(|row| row.login.is_some()).map(|row| row.id).collect();
    Err(CommandFailure::usage(format!("no provider `{name}` has a login: {}", suggest(name, &known, "known"))))
}
