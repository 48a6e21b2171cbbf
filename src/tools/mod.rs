//! The built-in tools, one file each; [`builtin`] is the list that names them all.
//!
//! What they share: paths and their errors (`files`), work that may be abandoned (`aside`), atomic writes
//! (`replace`), diffs (`diff`), what a search sees (`walk`), matching for edits (`edit_match`), and output of any
//! length made fit to be read (`plain`, `bounded`), commands inside
//! the sandbox (`confined`).

mod read_file;
mod write_file;
mod edit_file;
mod edit_match;
mod list_dir;
mod glob;
mod grep;
mod run_command;
mod ask_user;
mod recall;
mod load_skill;
mod load_skill_reference;

mod files;
mod aside;
mod replace;
mod diff;
mod walk;
mod plain;
mod bounded;
mod confined;
mod select;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::contract::{Approver, Effect, Permission, Tool, ToolDefinition};
use crate::output::ToolError;
use crate::sandbox::Sandbox;
use crate::spill::Spill;
use crate::workspace::Ledger;

use ask_user::AskUser;
use confined::Confined;
use edit_file::EditFile;
use glob::Glob;
use grep::Grep;
use list_dir::ListDir;
use read_file::ReadFile;
use recall::Recall;
use run_command::RunCommand;
use write_file::WriteFile;

pub use load_skill::LoadSkill;
pub use load_skill_reference::LoadSkillReference;
pub use select::{Choice, select};

/// What the built-in tools need of the run.
pub struct Kit {
    /// Which files this session has read or written.
    pub ledger: Arc<Ledger>,
    /// The whole environment of commands: [`crate::config::Env::for_children`].
    pub child_env: Vec<(String, String)>,
    /// What did not fit into the conversation.
    pub spill: Arc<Spill>,
    /// The boundary around commands; none where it was switched off.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Whom `ask_user` asks; without a person the tool does not exist.
    pub person: Option<Arc<dyn Approver>>,
}

/// The names of all built-in tools, those included that exist only where a person or skills are.
pub const NAMES: [&str; 11] = [
    "ask_user",
    "edit_file",
    "glob",
    "grep",
    "list_dir",
    "load_skill",
    "load_skill_reference",
    "read_file",
    "recall",
    "run_command",
    "write_file",
];

/// The built-in tools that need nothing but the workspace, the ledger and a person.
#[must_use]
pub fn builtin(kit: Kit) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(ReadFile::new(kit.ledger.clone())),
        Arc::new(WriteFile::new(kit.ledger.clone())),
        Arc::new(EditFile::new(kit.ledger)),
        Arc::new(ListDir::new()),
        Arc::new(Glob::new()),
        Arc::new(Grep::new()),
        Arc::new(RunCommand::new(Confined::new(kit.child_env, kit.sandbox))),
        Arc::new(Recall::new(kit.spill)),
    ];
    if let Some(person) = kit.person.filter(|person| person.present()) {
        tools.push(Arc::new(AskUser::new(person)));
    }
    tools
}

/// A definition whose parameters are an object with these properties and no others.
fn definition(
    name: &str,
    description: &str,
    (permission, effects): (Permission, &[Effect]),
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
        parameters,
        permission,
        effects: effects.to_vec(),
        default: true,
    }
}

/// The arguments of a call as the tool's own type.
fn arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments).map_err(|error| ToolError::parameter(format!("wrong arguments: {error}")))
}

/// The argument `name`, where it is a string.
fn text_of<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

/// `3 lines`, `1 line`.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// How many bytes an observation of `max_tokens` may have: no text has fewer than one token per four bytes or so,
/// and the notices of a tool need a little room.
fn bytes_for(max_tokens: usize) -> usize {
    const NOTICE: usize = 256;
    max_tokens.saturating_mul(4).saturating_sub(NOTICE).max(NOTICE)
}

#[cfg(test)]
mod testing;

#[cfg(test)]
mod tests {
    use super::testing::Nobody;
    use super::*;
    use crate::sandbox::Plan;

    fn all() -> Vec<Arc<dyn Tool>> {
        let person: Arc<dyn Approver> = Arc::new(Nobody { present: true, answer: None });
        let sandbox = Sandbox::new(Plan {
            workspace: "/w".into(),
            write: Vec::new(),
            network: false,
            home: "/h".into(),
            own: Vec::new(),
            temp_base: "/t".into(),
            undone: "/u".into(),
        });
        builtin(Kit {
            ledger: Arc::default(),
            child_env: Vec::new(),
            spill: Arc::default(),
            sandbox: Some(Arc::new(sandbox)),
            person: Some(person),
        })
    }

    /// About 1,000 tokens: such JSON has four and a half bytes a token.
    const MOST_BYTES_OF_DEFINITIONS: usize = 4600;

    #[test]
    fn definitions_are_small() {
        let as_sent = |tool: &Arc<dyn Tool>| {
            let ToolDefinition { name, description, parameters, .. } = tool.definition();
            let function = json!({ "name": name, "description": description, "parameters": parameters });
            json!({ "type": "function", "function": function }).to_string()
        };
        let bytes: usize = all().iter().map(|tool| as_sent(tool).len()).sum();
        assert!(bytes <= MOST_BYTES_OF_DEFINITIONS, "{bytes} bytes of definitions: say it shorter");
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
        let kit = |present| Kit {
            spill: Arc::default(),
            ledger: Arc::default(),
            child_env: Vec::new(),
            sandbox: None,
            person: Some(Arc::new(Nobody { present, answer: None })),
        };
        let names =
            |present| builtin(kit(present)).iter().map(|tool| tool.definition().name.clone()).collect::<Vec<_>>();
        assert!(names(true).contains(&"ask_user".to_owned()));
        assert!(!names(false).contains(&"ask_user".to_owned()));
    }
}
