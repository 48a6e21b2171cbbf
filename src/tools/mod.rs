//! The built-in tools, one file each; [`list_builtin`] is the list that names them all.
//!
//! The directories beside them contain the code that several tools share: paths and writes (`files`), commands and
//! their output (`commands`), patches (`patch`), the search for tools (`finding`).
//!
//! Invariants:
//! - A tool cannot end a turn: its error is for the model to read. A sink can, and so does a sandbox that was asked for
//!   and is unavailable.
//! - Background commands belong to `commands/jobs.rs`, which kills all of them when it is dropped; a process that exits
//!   without unwinding kills every group by `process::kill_all`.
//! - No value of a call is ever part of a command's text: a list gets it as one argument, a shell as a positional
//!   parameter (`template::PieceTemplate`, `commands/command_line.rs`).
//!
//! To add:
//! - a tool: one file here, one line in [`list_builtin`], its name in [`NAMES`]. What does not depend on the call is data of its
//!   definition.

mod superior;
mod tool;

mod read_file;
mod write_file;
mod edit_file;
mod apply_patch;
mod list_dir;
mod glob;
mod grep;
mod run_command;
mod background;
mod ask_user;
mod recall;
mod todo;
mod propose_plan;
mod fetch_url;
mod view_image;
mod load_skill;
mod load_skill_reference;
mod command;
mod mcp;
mod find_tools;

mod files;
mod patch;
mod commands;
mod finding;
mod readable;
mod aside;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::base::{output::ToolError, text::count_noun};
use crate::config::{Permission, ToolEffect};
use crate::model::ToolDefinition;
use crate::safety::{Approver, net::Net, sandbox::Sandbox};

use apply_patch::ApplyPatch;
use ask_user::AskUser;
use background::Background;
use commands::Confined;
use edit_file::EditFile;
use fetch_url::FetchUrl;
use glob::Glob;
use grep::Grep;
use list_dir::ListDir;
use read_file::ReadFile;
use recall::Recall;
use run_command::RunCommand;
use todo::Todo;
use view_image::ViewImage;
use write_file::WriteFile;

pub use background::BACKGROUND;
pub use command::ConfiguredCommand;
pub use commands::{
    BoundedInput, Environment, Jobs, PlainState, describe_undone, keep_programs_outside, warn_of_changes,
};
pub use files::encoding::decode_text;
pub use find_tools::{CALL_TOOL, FIND_TOOLS, FindTools, call_tool, rank_tools};
pub use finding::{SelectableName, select_names};
pub use load_skill::LoadSkill;
pub use load_skill_reference::LoadSkillReference;
#[cfg(feature = "mcp")]
pub use mcp::{LoginServer, TokenFile, begin_login};
#[cfg(feature = "mcp")]
pub use mcp::{McpCall, McpCallNews, McpOffer, McpQuestion, McpResult, serve_client};
pub use mcp::{McpServer, McpServers, McpSurroundings, TypedOffer, name_tool};
pub use propose_plan::{PROPOSE_PLAN, ProposePlan};
pub use recall::{LeftOut, recall_text};
pub use run_command::RUN_COMMAND;
pub use superior::Superior;
pub use tool::{AskPerson, CallContext, Clocks, Keep, ShellLine, Tool, ToolFuture};

/// The parts of the run that the built-in tools need.
pub struct Kit {
    /// The whole environment of commands: [`crate::config::Env::for_commands`].
    pub child_env: Environment,
    /// The commands that run in the background.
    pub jobs: Arc<Jobs>,
    /// The boundary around commands; `None` if it was turned off.
    pub sandbox: Option<Arc<Sandbox>>,
    /// The network access of `fetch_url`, and the private hosts that it may reach.
    pub net: Arc<Net>,
    pub fetch_allow: Vec<String>,
    /// True if the model has vision; `view_image` exists only then.
    pub vision: bool,
    /// The person that `ask_user` asks; without one the tool does not exist.
    pub person: Option<Arc<dyn Approver>>,
}

/// The tool that calls a helper: it needs the agent, so it is implemented there.
pub const TASK: &str = "task";

/// The names of all built-in tools, including those that exist only with a person, skills or many tools. No
/// configured tool may have such a name.
pub const NAMES: [&str; 20] = [
    "apply_patch", "ask_user", BACKGROUND, CALL_TOOL, "edit_file", "fetch_url", FIND_TOOLS, "glob", "grep",
    "list_dir", "load_skill", "load_skill_reference", PROPOSE_PLAN, "read_file", "recall", RUN_COMMAND, TASK,
    "todo", "view_image", "write_file",
];

/// The built-in tools, except those for skills.
pub fn list_builtin(kit: Kit) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(ReadFile::new()),
        Arc::new(WriteFile::new()),
        Arc::new(EditFile::new()),
        Arc::new(ApplyPatch::new()),
        Arc::new(ListDir::new()),
        Arc::new(Glob::new()),
        Arc::new(Grep::new()),
        Arc::new(RunCommand::new(
            Confined::new(kit.child_env, kit.sandbox, kit.net.proxies().clone()),
            kit.jobs.clone(),
        )),
        Arc::new(Background::new(kit.jobs)),
        Arc::new(Recall::new()),
        Arc::new(Todo::new()),
        Arc::new(FetchUrl::new(kit.net, kit.fetch_allow)),
    ];
    if kit.vision {
        tools.push(Arc::new(ViewImage::new()));
    }
    if let Some(person) = kit.person.filter(|person| person.present()) {
        tools.push(Arc::new(AskUser::new(person)));
    }
    tools
}

/// A definition whose parameters are an object with these properties and no others.
fn define_tool(
    name: &str,
    description: &str,
    (permission, effects): (Permission, &[ToolEffect]),
    properties: Value,
    required: &[&str],
) -> ToolDefinition {
    let mut parameters = json!({ "type": "object" });
    parameters["properties"] = properties;
    if !required.is_empty() {
        parameters["required"] = json!(required);
    }
    parameters["additionalProperties"] = json!(false);
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: Arc::new(parameters),
        permission,
        effects: effects.to_vec(),
        default: true,
        ..ToolDefinition::default()
    }
}

/// The arguments of a call as the tool's own type. They have passed the schema, so only a number can be out of range, or a
/// part that the schema leaves open be another: to say it all would cost tokens in every request.
fn parse_arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    T::deserialize(&arguments).map_err(|error| {
        let fields = arguments.as_object().into_iter().flatten();
        let numbers = fields.filter(|(_, value)| value.is_number() && !value.is_u64()).map(|(name, value)| {
            let expected = if value.as_f64() < Some(0.0) { "at least 0" } else { "an integer below 2^64" };
            format!("\n- `{name}`: expected {expected}, got {value}")
        });
        let numbers: String = numbers.collect();
        let why = if numbers.is_empty() { format!(" {error}") } else { numbers };
        ToolError::parameter(format!("The arguments do not match:{why}"))
    })
}

/// The argument `name`, if it is a string.
fn text_of<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

/// The most bytes that an observation of `max_tokens` may have: a token has about four bytes at most, and the notices
/// of a tool need a little room.
fn bytes_for(max_tokens: usize) -> usize {
    const NOTICE: usize = 256;
    max_tokens.saturating_mul(crate::base::tokens::BYTES_PER_TOKEN).saturating_sub(NOTICE).max(NOTICE)
}

#[cfg(test)]
mod testing;

#[cfg(test)]
mod tests {
    use super::testing::SameAnswer;
    use super::*;
    use crate::base::tokens;

    fn kit(present: bool) -> Kit {
        Kit {
            child_env: Vec::new().into(),
            jobs: Arc::default(),
            sandbox: None,
            net: Arc::default(),
            fetch_allow: Vec::new(),
            vision: true,
            person: Some(Arc::new(SameAnswer { present, answer: None })),
        }
    }

    fn all() -> Vec<Arc<dyn Tool>> {
        let plan: Arc<dyn Tool> = Arc::new(ProposePlan::new());
        list_builtin(kit(true)).into_iter().chain([plan]).collect()
    }

    /// Head and definitions have 2,000 tokens together, which a test of the whole request counts. That test has no
    /// person; `ask_user` gets the rest.
    const MOST_FOR_ASK_USER: u64 = 100;
    const MOST_FOR_A_TOOL: u64 = 150;

    #[test]
    fn definitions_are_small() {
        for tool in all() {
            let ToolDefinition { name, description, parameters, .. } = tool.definition();
            let function = json!({ "name": name, "description": description, "parameters": parameters });
            let sent = json!({ "type": "function", "function": function }).to_string();
            let tokens = tokens::count_tokens(&sent);
            let most = if name == "ask_user" { MOST_FOR_ASK_USER } else { MOST_FOR_A_TOOL };
            assert!(tokens <= most, "{name} takes {tokens} tokens of {most}: say it shorter");
        }
    }

    #[test]
    fn the_names_are_all_listed() {
        assert!(NAMES.is_sorted());
        for tool in all() {
            assert!(NAMES.contains(&tool.definition().name.as_str()), "{}", tool.definition().name);
        }
    }

    #[test]
    fn every_parameter_is_described_and_no_other_is_accepted() {
        for tool in all() {
            let definition = tool.definition();
            assert_eq!(definition.parameters["additionalProperties"], json!(false), "{}", definition.name);
            assert!(definition.description.contains(". "), "{}: a summary, then the rest", definition.name);
            assert!(definition.parameters["properties"].as_object().is_some_and(|all| !all.is_empty()));
        }
    }

    #[test]
    fn every_tool_is_in_the_list_of_names() {
        for tool in all() {
            assert!(NAMES.contains(&tool.definition().name.as_str()), "add {} to NAMES", tool.definition().name);
        }
        assert!(NAMES.is_sorted());
    }

    #[test]
    fn nobody_is_asked_where_nobody_is() {
        let names = |present| {
            list_builtin(kit(present)).iter().map(|tool| tool.definition().name.clone()).collect::<Vec<_>>()
        };
        assert!(names(true).contains(&"ask_user".to_owned()));
        assert!(!names(false).contains(&"ask_user".to_owned()));
    }
}
