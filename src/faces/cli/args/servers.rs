//! The arguments of `agent mcp` and `agent acp`.

use clap::{ArgGroup, Args, Subcommand};

use super::ReportFormat;
use super::subcommands::CallArgs;
use super::values::{ArgumentValues, parse_approval, parse_header, parse_variable};
use crate::config::ApprovalMode;

#[derive(Debug, Args)]
pub struct AcpArgs {
    /// Choose a model and keep its key, in a terminal
    #[arg(long)]
    pub setup: bool,
    #[command(flatten)]
    pub serving: ServingArgs,
}

/// What every run that another program asks for begins with.
#[derive(Debug, Args)]
pub struct ServingArgs {
    /// The agent to use
    #[arg(short, long, value_name = "NAME", add = ArgumentValues::Agents)]
    pub agent: Option<String>,
    /// The model to use
    #[arg(short, long, value_name = "NAME", add = ArgumentValues::Models)]
    pub model: Option<String>,
    /// Which calls run without asking: auto, ask, edits, all, never
    #[arg(long, value_name = "MODE", hide_possible_values = true, value_parser = parse_approval())]
    pub approve: Option<ApprovalMode>,
}

#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// List the servers that are configured; none is started
    List {
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Start the servers, and report which are up and what they speak
    #[command(after_help = "Exit codes: 0 when all are up, 11 when one is not.")]
    Check {
        /// Only this server
        #[arg(add = ArgumentValues::Servers)]
        name: Option<String>,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Start the servers, and list their tools by the names that the model calls
    Tools {
        /// Only this server
        #[arg(add = ArgumentValues::Servers)]
        name: Option<String>,
    },
    /// Call a tool under the same policy as the model, and print what the model would read
    #[command(after_help = "Example:\n  agent mcp call files__read_file '{\"path\": \"a.txt\"}'")]
    Call(CallArgs),
    /// Write a server into your configuration
    #[command(
        after_help = "Examples:\n  agent mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes\n  \
                      agent mcp add docs --url https://docs.example/mcp --header 'Authorization: Bearer {{ env.DOCS_TOKEN }}'"
    )]
    Add(McpAddArgs),
    /// Log in to a server by OAuth, in a browser
    Login {
        /// The server's name
        #[arg(add = ArgumentValues::Servers)]
        name: String,
    },
    /// Forget the login of a server
    Logout {
        /// The server's name
        #[arg(add = ArgumentValues::Servers)]
        name: String,
    },
    /// Remove a server from your configuration
    Remove {
        /// The server's name
        #[arg(add = ArgumentValues::Servers)]
        name: String,
    },
    /// Serve the agent to another program on stdin and stdout: it runs tasks in this workspace
    #[cfg(feature = "mcp")]
    #[command(
        after_help = "Example, for the configuration of another agent:\n  {\"mcpServers\": {\"agent\": {\"command\": \"agent\", \
                      \"args\": [\"mcp\", \"serve\"]}}}\n\nA client may narrow what --approve says, and never widen it."
    )]
    Serve(ServingArgs),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("place").required(true).args(["url", "command"]))]
pub struct McpAddArgs {
    /// The name before __ in the names of its tools
    pub name: String,
    /// The address of a server that speaks HTTP
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Set a variable of the program (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable, conflicts_with = "url")]
    pub env: Vec<(String, String)>,
    /// Send a header with each request (repeatable)
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = parse_header, requires = "url")]
    pub headers: Vec<(String, String)>,
    /// The id that was registered for this program at the server's login
    #[arg(long, value_name = "ID", requires = "url")]
    pub client_id: Option<String>,
    /// The variable with the secret of that id
    #[arg(long, value_name = "NAME", requires = "client_id")]
    pub client_secret_env: Option<String>,
    /// The program and its arguments, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
