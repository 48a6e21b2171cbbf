//! The configuration: read-only data from files, variables and flags, with the place where each value was set.
//!
//! Nothing else in the program reads the environment ([`Env`] is its one snapshot). [`load_config`] is the entry point; the
//! modules below are in the order in which a configuration is made.
//!
//! Invariants:
//! - Files that a workspace brings along are read only through `config::Manifest` (`FileAccess`), made once at startup; a
//!   project's values only narrow, by `narrow/table.rs`.
//!
//! To add:
//! - a configuration key: one field in `settings.rs` or `model.rs`.
//! - a place for skills: `skill_dirs.rs`; of a project also `folders.rs`.
//! - a key that a project may set: one row of `narrow/table.rs`.
//! - a variable that commands may see: one name in `children.rs`.

// The shapes.
mod children;
mod stored_keys;
mod env;
mod duration;
mod permissions;
mod narrowed;
mod prompt_source;
mod roles;
mod sandbox;
mod settings;
mod limits;
mod selection;
mod ui;
mod wire;
mod profile;
mod api_key;
mod model;
mod tool;
mod hook;
pub mod peer_tools;
mod mcp;
mod schema;
// From files to the whole.
mod source;
mod mistake;
mod folders;
mod manifest;
mod through;
mod skill_dirs;
mod own_commands;
mod trust;
mod question;
mod options;
mod loaded;
mod layer;
mod document;
mod mcp_json;
mod key;
mod merge;
mod narrow;
mod flags;
mod gather;
mod partly;
mod inspect;
mod rules;
mod command;
mod flow;
mod load;
// Commands about the configuration.
mod explain;
mod changed;
mod init;
mod import;

pub use api_key::{ApiKey, KeySource};
pub use changed::Changed;
pub use duration::{WrittenDuration, format_duration, parse_age, parse_duration};
pub use env::{Env, ProgramDirs};
pub use flags::{SettingFlag, SettingFlags};
pub use flow::{ASK_USER, FlowConfig, FlowInput, FlowRole, FlowStep, StepWork};
pub use folders::PROJECT_FOLDER;
pub use hook::{HookConfig, HookEvent, HookSpeech};
pub use import::{
    EntryPlan, EntryState, ForeignAgent, ForeignPlugin, ImportEntry, PluginLock, digest_plugin, plugin_root,
    read_plugin, read_plugin_files, read_setups, settle_entries, write_entry,
};
pub use init::{InitCopies, InitSkills, copy_built_in, copy_model, write_own};
pub use load::{check_config, load_config, read_sound_parts};
pub use loaded::Config;
pub use manifest::Manifest;
pub use mcp::{McpOauth, McpPermission, McpSandbox, McpServerConfig, McpWalls, is_address, refuse_server_name};
pub use mistake::{ConfigError, Mistake, suggest};
pub use model::{
    CacheLifetime, Capabilities, ModelConfig, ModelProvider, PriceTier, Prices, RetryConfig, ScriptCall,
    ScriptCondition, ScriptError, ScriptReply, ServerTool, Timeouts,
};
pub use options::{LoadOptions, find_brought};
pub use own_commands::{OwnCommand, OwnCommands};
pub use permissions::{ApprovalMode, Permission, PermissionRule, RuleEffect};
pub use profile::GuidanceProfile;
pub use prompt_source::{PromptRef, PromptSource};
pub use roles::{Mode, Reasoning, RoleConfig};
pub use sandbox::{SandboxMode, SandboxSettings};
pub use schema::write_schema;
pub use settings::{
    AgentConfig, ContextSettings, Isolation, LayerShares, Limits, Share, SkillDisclosure, Strategy,
    ToolOutputSettings,
};
pub use skill_dirs::{SkillDir, SkillScope};
pub use source::SubjectKind;
pub use stored_keys::StoredKeys;
pub use through::{FileAccess, PromptDir};
pub use tool::{CommandLine, CommandOutputFormat, ToolConfig, ToolEffect};
pub use trust::TrustStore;
pub use ui::{EditMode, Notify, StatusPart, ThemeChoice, UiSettings};
pub use wire::Wire;

/// Each folder of `tests/config_cases/` is a case: `user/`, `project/` (trusted) and `config/` (as `--config`) are
/// layers, `env` and `set` have one line per variable and flag, `explain` has one key per line. `expected` is the
/// output of `config check`, or, if everything is valid, the warnings and the output of `explain`. A missing `expected`
/// is written, for review.
#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::fs;
    use std::path::Path;

    use super::{ConfigError, Env, LoadOptions, check_config, find_brought, load_config};
    use crate::files::workspace::Workspace;

    #[test]
    fn every_case_gives_what_it_says() {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config_cases");
        let mut cases: Vec<_> =
            fs::read_dir(cases).expect("cases").map(|case| case.expect("readable").path()).collect();
        cases.sort();
        for case in cases {
            let said = without_builtin_lines(&run(&case));
            let expected = case.join("expected");
            if !expected.exists() {
                fs::write(&expected, &said).expect("written");
            }
            let expected = fs::read_to_string(expected).expect("readable");
            assert_eq!(said, expected, "case {}", case.display());
        }
    }

    /// `<built-in>/agent.yaml:N`: the files that come with the program grow, and their lines are no case's business.
    fn without_builtin_lines(said: &str) -> String {
        let mut parts = said.split("<built-in>/");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (file, rest) = part.split_once(':').unwrap_or((part, ""));
            let _ = write!(out, "<built-in>/{file}:N{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
        out
    }

    fn run(case: &Path) -> String {
        let work = tempfile::tempdir().expect("a directory");
        let root = crate::files::canonicalize(work.path()).expect("a path");
        copy(&case.join("user"), &root.join("home/.config/agent"));
        copy(&case.join("project"), &root.join("workspace/.agent"));
        copy(&case.join("config"), &root.join("given"));
        fs::create_dir_all(root.join("workspace")).expect("made");
        let lines = |name: &str| -> Vec<String> {
            let text = fs::read_to_string(case.join(name)).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        };
        let mut pairs = vec![("HOME".to_owned(), root.join("home").display().to_string())];
        pairs.extend(
            lines("env")
                .iter()
                .filter_map(|line| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))),
        );
        let env = Env::from_pairs(pairs);
        let workspace = Workspace::open(&root.join("workspace")).expect("a workspace");
        let given = root.join("given");
        let options = LoadOptions {
            config_dir: given.is_dir().then_some(given),
            sets: &lines("set"),
            brought: find_brought(&env, &workspace, None),
            trust: true,
            tools: &["read_file", "write_file", "edit_file", "run_command"],
            ..LoadOptions::new(&env, &workspace)
        };
        let mut prompt = |_: &[super::PromptDir], reference: &str| match reference {
            "system@production" | "termination@production" | "compression@production" => Ok(()),
            other => Err(format!("there is no prompt `{other}`")),
        };
        let said = match check_config(&options, &mut prompt) {
            (_, mistakes) if !mistakes.is_empty() => {
                let error = ConfigError { mistakes };
                // A run says the same, less what only a check looks for.
                let of_run = load_config(&options).err().map(|error| error.mistakes).unwrap_or_default();
                assert!(of_run.iter().all(|mistake| error.mistakes.contains(mistake)), "{of_run:?}");
                error.to_string()
            }
            (config, _) => {
                let config = config.expect("without mistakes there is a configuration");
                let mut text = String::new();
                for warning in &config.warnings {
                    let _ = writeln!(text, "warning: {warning}");
                }
                for key in lines("explain") {
                    text += &config.explain(&key).unwrap_or_else(|error| format!("{error}\n"));
                }
                text
            }
        };
        said.replace(&root.display().to_string(), "ROOT") + "\n"
    }

    fn copy(from: &Path, to: &Path) {
        for entry in fs::read_dir(from).into_iter().flatten().filter_map(Result::ok) {
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy(&entry.path(), &target);
            } else {
                fs::create_dir_all(to).expect("made");
                fs::copy(entry.path(), target).expect("copied");
            }
        }
    }
}
