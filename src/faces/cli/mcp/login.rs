//! `agent mcp login / logout`: a person allows the server's use in a browser.

use crate::agent::assembly;
use crate::config::suggest;
use crate::faces::cli::browser::BrowserReturn;
use crate::faces::cli::setup::{CliSetup, build_runtime};
use crate::faces::cli::{CommandFailure, CommandOutcome, exit, print_text};
use crate::safety::net::Net;
use crate::tools::{TokenFile, begin_login};

pub(super) fn log_in(setup: &CliSetup, name: &str) -> CommandOutcome {
    let (net, url, tokens) = find_server(setup, name)?;
    let failed = |why: String| CommandFailure::word(exit::AUTHENTICATION, format!("the server `{name}` {why}"));
    let runtime = build_runtime()?;
    let done = runtime.block_on(async {
        let home = BrowserReturn::open("127.0.0.1").await?;
        let (login, address) = begin_login(&net, &url, &home.callback(), &tokens).await.map_err(failed)?;
        let back = home.wait(&address).await?;
        login.finish(&back).await.map_err(failed)
    });
    // A thread may still read a line.
    runtime.shutdown_background();
    done?;
    print_text(format!("Logged in to {name}.\n"))
}

pub(super) fn log_out(setup: &CliSetup, name: &str) -> CommandOutcome {
    let (_, _, tokens) = find_server(setup, name)?;
    if tokens.remove()? {
        return print_text(format!("Logged out of {name}.\n"));
    }
    Err(CommandFailure::usage(format!("there is no login to {name}")))
}

/// The way out, the address of a server, and the file of its tokens.
fn find_server(setup: &CliSetup, name: &str) -> Result<(Net, String, TokenFile), CommandFailure> {
    let (_, config) = setup.load()?;
    let with_address = || config.servers.values().filter_map(|server| Some((&server.name, server.url.as_ref()?)));
    let Some((_, url)) = with_address().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = with_address().map(|(name, _)| name.as_str()).collect();
        let hint = suggest(name, &known, "configured");
        return Err(CommandFailure::usage(format!("no server with an address is called `{name}`: {hint}")));
    };
    let tokens = TokenFile::new(&config.mcp_token_dir(), url);
    Ok((assembly::open_net(&config), url.clone(), tokens))
}
