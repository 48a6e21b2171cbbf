//! `agent mcp list / check / tools / call / add / remove`: the servers of tools.

#[cfg(feature = "mcp")]
mod login;
#[cfg(not(feature = "mcp"))]
mod no_login;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::assembly;
use crate::base::{text, yaml};
use crate::config::{self, suggest};
use crate::files::private::make_private_dir;
use crate::tools::{McpServer, McpServers};

#[cfg(feature = "mcp")]
use super::acp;
use super::args::{McpAddArgs, McpCommand, ReportFormat};
use super::setup::CliSetup;
use super::{CommandFailure, CommandOutcome, exit, print_json, print_table, print_text, tool, warn_person};

#[cfg(not(feature = "mcp"))]
use no_login as login;

/// What `list` says where no server is configured.
const NONE: &str = "No server is configured. `agent mcp add NAME -- COMMAND` adds one.\n";

pub(super) fn run_mcp(setup: CliSetup, command: McpCommand) -> CommandOutcome {
    match command {
        #[cfg(feature = "mcp")]
        McpCommand::Serve(args) => acp::serve_mcp(setup, args),
        McpCommand::List { output } => {
            let Some(servers) = gather_servers(&setup)? else { return print_none(output) };
            print_servers(servers.iter(), output)
        }
        McpCommand::Check { name, output } => {
            let Some(servers) = gather_servers(&setup)? else { return print_none(output) };
            let chosen = choose_servers(&servers, name.as_deref())?;
            servers.wait_until_up(&chosen);
            print_servers(chosen.iter().copied(), output)?;
            if chosen.iter().all(|server| server.is_up()) { Ok(exit::DONE) } else { Ok(exit::UNAVAILABLE) }
        }
        McpCommand::Tools { name } => {
            let Some(servers) = gather_servers(&setup)? else { return print_text(NONE) };
            let chosen = choose_servers(&servers, name.as_deref())?;
            servers.wait_until_up(&chosen);
            let is_chosen = |server: &Arc<McpServer>| chosen.iter().any(|chosen| chosen.name() == server.name());
            let tools = servers.tools().into_iter().filter(|(server, _)| is_chosen(server));
            let row = |name: &str, summary: &str| [name.to_owned(), text::one_line(summary, 100)];
            let rows: Vec<[String; 2]> =
                tools.map(|(_, tool)| row(&tool.definition().name, tool.definition().summary())).collect();
            let failed: Vec<_> = chosen.iter().filter(|server| !server.is_up()).collect();
            for server in &failed {
                warn_person(&format!("the server `{}` {}", server.name(), server.status().0));
            }
            print_table(&rows)?;
            if failed.is_empty() { Ok(exit::DONE) } else { Ok(exit::UNAVAILABLE) }
        }
        McpCommand::Call(args) => {
            let server = args.name.split_once("__").map_or("", |(server, _)| server);
            // Its list is known afterwards, and so is the tool.
            let servers = gather_servers(&setup)?;
            if let Some(servers) = &servers {
                let chosen = choose_servers(servers, Some(server))?;
                servers.wait_until_up(&chosen);
                if let Some(down) = chosen.iter().find(|server| !server.is_up()) {
                    let why = format!("the server `{}` {}", down.name(), down.status().0);
                    return Err(CommandFailure::word(exit::UNAVAILABLE, why));
                }
            }
            tool::call_tool(&setup, args, servers)
        }
        McpCommand::Add(args) => add_server(&setup, args),
        McpCommand::Login { name } => login::log_in(&setup, &name),
        McpCommand::Logout { name } => login::log_out(&setup, &name),
        McpCommand::Remove { name } => {
            let path = setup.own_dir().join("mcp").join(format!("{}.yaml", check_name(&name)?));
            fs::remove_file(&path).map_err(|error| {
                CommandFailure::usage(format!("{}: {error} (`agent mcp list` names the servers)", path.display()))
            })?;
            print_text(format!("Removed {}.\n", path.display()))
        }
    }
}

/// The servers of the default agent.
fn gather_servers(setup: &CliSetup) -> Result<Option<Arc<McpServers>>, CommandFailure> {
    let (workspace, config) = setup.load()?;
    config.warnings.iter().for_each(|warning| warn_person(warning));
    Ok(assembly::gather_servers_alone(&config, &workspace)?)
}

fn choose_servers<'s>(
    servers: &'s McpServers,
    name: Option<&str>,
) -> Result<Vec<&'s Arc<McpServer>>, CommandFailure> {
    let chosen: Vec<_> = servers.iter().filter(|server| name.is_none_or(|name| name == server.name())).collect();
    match (chosen.is_empty(), name) {
        (true, Some(name)) => {
            let known: Vec<&str> = servers.iter().map(|server| server.name()).collect();
            let shown = text::one_line(name, 60);
            Err(CommandFailure::usage(format!(
                "there is no server `{shown}`: {}",
                suggest(name, &known, "configured")
            )))
        }
        _ => Ok(chosen),
    }
}

fn print_none(output: ReportFormat) -> CommandOutcome {
    match output {
        ReportFormat::Text => print_text(NONE),
        ReportFormat::Json => print_json(&json!({ "servers": [] })),
    }
}

fn print_servers<'s>(servers: impl Iterator<Item = &'s Arc<McpServer>>, output: ReportFormat) -> CommandOutcome {
    let described = servers.map(|server| {
        let (state, tools) = server.status();
        (server, state, tools)
    });
    match output {
        ReportFormat::Text => {
            let rows: Vec<[String; 4]> = described
                .map(|(server, state, tools)| {
                    let tools = text::count_noun(tools as u64, "tool", "tools");
                    [server.name().to_owned(), state, tools, text::one_line(&server.place(), 80)]
                })
                .collect();
            print_table(&rows)
        }
        ReportFormat::Json => {
            let servers: Vec<Value> = described
                .map(|(server, state, tools)| {
                    json!({ "name": server.name(), "state": state, "tools": tools, "place": server.place() })
                })
                .collect();
            print_json(&json!({ "servers": servers }))
        }
    }
}

/// A name that can be that of a file.
fn check_name(name: &str) -> Result<&str, CommandFailure> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 40 || !name.chars().all(is_good) || name.contains("__") {
        let shown = text::one_line(name, 60);
        let rule = "letters, digits, `-` and single `_`, 40 at most";
        return Err(CommandFailure::usage(format!("`{shown}` is not a name for a server: {rule}")));
    }
    Ok(name)
}

fn add_server(setup: &CliSetup, args: McpAddArgs) -> CommandOutcome {
    let McpAddArgs { name, url, env, headers, client_id, client_secret_env, command } = args;
    let mut file = serde_json::Map::new();
    let pairs = |given: Vec<(String, String)>| json!(given.into_iter().collect::<BTreeMap<_, _>>());
    match url {
        Some(url) if !config::is_address(&url) && !url.contains("{{") => {
            let shown = text::one_line(&url, 60);
            return Err(CommandFailure::usage(format!("`{shown}` is not an http:// or https:// address")));
        }
        Some(url) => file.insert("url".to_owned(), json!(url)),
        None => file.insert("command".to_owned(), json!(command)),
    };
    if !env.is_empty() {
        file.insert("env".to_owned(), pairs(env));
    }
    if !headers.is_empty() {
        file.insert("headers".to_owned(), pairs(headers));
    }
    if let Some(id) = client_id {
        let mut oauth = json!({ "client_id": id });
        if let Some(variable) = client_secret_env {
            oauth["client_secret"] = format!("{{{{ env.{variable} }}}}").into();
        }
        file.insert("oauth".to_owned(), oauth);
    }
    let dir = setup.own_dir().join("mcp");
    let path = dir.join(format!("{}.yaml", check_name(&name)?));
    let failed =
        |error: std::io::Error| CommandFailure::word(exit::FAILED, format!("{}: {error}", path.display()));
    let text = yaml::write_document(&Value::Object(file)).map_err(|error| failed(std::io::Error::other(error)))?;
    // It may contain a key.
    make_private_dir(&dir).map_err(failed)?;
    if !config::write_own(path.clone(), &text).map_err(failed)?.written {
        let why = format!("{} exists: edit it, or `agent mcp remove {name}` first", path.display());
        return Err(CommandFailure::usage(why));
    }
    print_text(format!("Wrote {}. `agent mcp check {name}` starts it.\n", path.display()))
}
