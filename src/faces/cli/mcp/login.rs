//! `agent mcp login / logout`: a person allows the server's use in a browser.

use std::sync::Arc;

use crate::agent::assembly;
use crate::base::text;
use crate::config::{Config, McpServerConfig, suggest};
use crate::faces::cli::browser::BrowserReturn;
use crate::faces::cli::setup::{CliSetup, build_runtime};
use crate::faces::cli::{CommandFailure, CommandOutcome, exit, print_text};
use crate::tools::{LoginServer, TokenFile, begin_login};

pub(super) fn log_in(setup: &CliSetup, name: &str) -> CommandOutcome {
    let (config, server) = find_server(setup, name)?;
    let (net, url) = (assembly::open_net(&config), server.url.clone().unwrap_or_default());
    let tokens = TokenFile::new(&config.mcp_token_dir(), &url);
    let login = LoginServer { url: &url, tokens: &tokens, oauth: server.oauth.as_ref() };
    let port = server.oauth.as_ref().and_then(|oauth| oauth.callback_port);
    let failed = |why: String| {
        let why = text::one_line(&config.redactor().redact(&why), 300);
        CommandFailure::word(exit::AUTHENTICATION, format!("the server `{name}` {why}"))
    };
    let runtime = build_runtime()?;
    let done = runtime.block_on(async {
        let home = BrowserReturn::open("127.0.0.1", port).await?;
        let (login, address) = begin_login(&net, &login, &home.callback()).await.map_err(failed)?;
        let back = home.wait(&address).await?;
        login.finish(&back).await.map_err(failed)
    });
    // A thread may still read a line.
    runtime.shutdown_background();
    done?;
    print_text(format!("Logged in to {name}.\n"))
}

pub(super) fn log_out(setup: &CliSetup, name: &str) -> CommandOutcome {
    let (config, server) = find_server(setup, name)?;
    let tokens = TokenFile::new(&config.mcp_token_dir(), server.url.as_deref().unwrap_or_default());
    if tokens.remove()? {
        return print_text(format!("Logged out of {name}.\n"));
    }
    Err(CommandFailure::usage(format!("there is no login to {name}")))
}

/// The configuration, and a server with an address in it.
fn find_server(setup: &CliSetup, name: &str) -> Result<(Arc<Config>, McpServerConfig), CommandFailure> {
    let (_, config) = setup.load()?;
    let with_address = || config.servers.values().filter(|server| server.url.is_some());
    let Some(server) = with_address().find(|server| server.name == name) else {
        let known: Vec<&str> = with_address().map(|server| server.name.as_str()).collect();
        let hint = suggest(name, &known, "configured");
        return Err(CommandFailure::usage(format!("no server with an address is called `{name}`: {hint}")));
    };
    let server = server.clone();
    Ok((config, server))
}
