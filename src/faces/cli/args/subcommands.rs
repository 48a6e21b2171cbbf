//! The subcommands of `agent config`, `plugin`, `prompt`, `skill`, `model` and `tool`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ReportFormat;
use super::prompt_test::PromptTestArgs;
use super::values::{ArgumentValues, parse_approval, parse_one_of};
use super::var::{self, Var};
use crate::base::output::{Encoding, ResponseFormat};
use crate::config::{ApprovalMode, Permission};
use crate::prompt::{PRODUCTION, Version};

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print where configuration is looked for, lowest precedence first
    Path,
    /// Print the merged result; secrets show as ***
    Show,
    /// Report every mistake at once
    Check,
    /// Show which file and line, variable or flag set a key
    Explain {
        /// The key, with dots between its parts: limits.max_turns
        #[arg(add = ArgumentValues::SettingKeys)]
        key: String,
    },
    /// Print the JSON Schema of a kind of file, for editors
    Schema {
        /// The kind, such as settings or agents; one that is unknown is answered with all
        #[arg(value_name = "KIND", add = ArgumentValues::FileKinds)]
        kind: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Show what a plugin brings, and install it
    #[command(after_help = "Examples:\n  agent plugin add ~/plugins/hookify\n  agent plugin add \
                      https://github.com/obra/superpowers@v5.0.0\n\nIts commands, agents, hooks and servers become files of \
                      your configuration, whose names begin with that of the plugin; its skills keep their names. Hooks \
                      run inside the walls of commands. Nothing is overwritten.")]
    Add {
        /// A directory, or the address of a git repository, and a revision of it
        #[arg(value_name = "DIR|URL[@REVISION]")]
        source: String,
    },
    /// List the plugins, with their versions and sources
    List,
    /// Show what changed at the sources of plugins, and take it over
    Update {
        /// The plugins [default: all]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a help text, not a link")]
        #[arg(add = ArgumentValues::Plugins)]
        names: Vec<String>,
    },
    /// Remove a plugin; files that you changed stay
    Remove {
        /// Its name
        #[arg(add = ArgumentValues::Plugins)]
        name: String,
    },
    /// Report what is not as it was installed; the exit code is 1 then
    Check,
}

#[derive(Debug, Subcommand)]
pub enum PromptCommand {
    /// List the prompts with their versions
    List,
    /// Print the source of a prompt
    Show {
        /// NAME or NAME@VERSION
        #[arg(add = ArgumentValues::Prompts)]
        reference: String,
    },
    /// Print a prompt as the agent would render it here
    Render {
        /// NAME or NAME@VERSION
        #[arg(add = ArgumentValues::Prompts)]
        reference: String,
        /// Set vars.K: K=TEXT, K=@FILE, K:=JSON (repeatable)
        #[arg(long = "var", value_name = "K=V", value_parser = var::parse_var)]
        vars: Vec<Var>,
        /// Print the messages as JSON
        #[arg(long)]
        messages: bool,
    },
    /// Run the test cases of prompts, and report how many pass
    #[command(
        after_help = "Examples:\n  agent prompt test router@1.1 --runs 10\n  agent prompt test --replay -o junit\n  \
                      agent prompt test --compare router@1.0 router@1.1\n\nExit codes: 0 when every case passes, 100 \
                      when one fails."
    )]
    Test(PromptTestArgs),
    /// Compare two versions: their text, and the tokens of their parts
    #[command(after_help = "Example:\n  agent prompt diff system@1.0 system@2.0")]
    Diff {
        /// The older one, as NAME@VERSION
        #[arg(value_name = "A", add = ArgumentValues::Prompts)]
        old: String,
        /// The newer one
        #[arg(value_name = "B", add = ArgumentValues::Prompts)]
        new: String,
    },
    /// Report errors and likely mistakes in prompts, and the tokens of their parts
    Check {
        /// NAME[@VERSION] [default: every version of every prompt]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a help text, not a link")]
        #[arg(value_name = "NAME", add = ArgumentValues::Prompts)]
        references: Vec<String>,
    },
    /// Release a version, once its tests pass
    #[command(
        after_help = "Examples:\n  agent prompt promote system 2.1 --canary 10\n  agent prompt promote system 2.1 \
                            -m \"Shorter rules\"\n\nWrites release.yaml, release.lock and changelog.md beside the prompt."
    )]
    Promote {
        /// The prompt
        #[arg(add = ArgumentValues::Prompts)]
        name: String,
        /// The version to release
        version: Version,
        /// Release it to this share of the sessions only; the production version stays
        #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=99), conflicts_with = "label")]
        canary: Option<u8>,
        /// The label to set
        #[arg(long, default_value = PRODUCTION, value_name = "LABEL")]
        label: String,
        /// The entry for the changelog
        #[arg(short, long, default_value = "", hide_default_value = true, value_name = "TEXT")]
        message: String,
        /// Release it even if its tests fail, or it has fewer than ten
        #[arg(long)]
        force: bool,
    },
    /// Undo the last release: the canary, else the version in production
    Rollback {
        /// The prompt
        #[arg(add = ArgumentValues::Prompts)]
        name: String,
    },
    /// Mend its releases: labels of versions that are gone, files that cannot be read
    Repair {
        /// The prompt
        #[arg(add = ArgumentValues::Prompts)]
        name: String,
    },
    /// Create a prompt, or the next version of one
    #[command(after_help = "Prints the files that it wrote. Overwrites nothing.")]
    New {
        /// The prompt: a new name, or one whose next version to begin
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum SkillCommand {
    /// List the skills: where each comes from, what it is for
    List {
        /// The agent whose skills to list
        #[arg(short, long, value_name = "NAME", add = ArgumentValues::Agents)]
        agent: Option<String>,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Print a skill: its location, its requirements, its files and its instructions
    Show {
        /// The skill's name
        #[arg(value_name = "SKILL", add = ArgumentValues::Skills)]
        skill: String,
        /// The agent whose skill to print
        #[arg(short, long, value_name = "NAME", add = ArgumentValues::Agents)]
        agent: Option<String>,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Check skills against the standard; exit with 100 if one is invalid
    #[command(after_help = "Examples:\n  agent skill check                 those found here\n  \
        agent skill check skills/brew     one, or all in a directory")]
    Check {
        /// A skill, or a directory of skills [default: those found here]
        #[arg(value_name = "DIR")]
        dirs: Vec<PathBuf>,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
}

#[derive(Debug, Subcommand)]
pub enum KeyAction {
    /// Keep the key of a provider, pasted at the prompt or piped in
    #[command(
        after_help = "Examples:\n  agent key set anthropic\n  pass show deepseek | agent key set deepseek\n\nThe file is readable by you alone. Commands never get the key."
    )]
    Set {
        /// The provider, as before the slash of -m: openai, anthropic, deepseek, …
        #[arg(add = ArgumentValues::Providers)]
        provider: String,
    },
    /// List the providers whose key is set, and where
    List,
    /// Remove the key of a provider
    Remove {
        /// The provider
        #[arg(add = ArgumentValues::Providers)]
        provider: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models that -m takes: configured ones, then those of the catalogue
    #[command(
        after_help = "Examples:\n  agent model list claude\n  agent model list -o json groq/ | jq -r '.models[].name'"
    )]
    List {
        /// Only models whose name contains this
        #[arg(default_value = "", hide_default_value = true)]
        filter: String,
        /// The output format: text (a table), json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Find out what a model's server supports: tools, schemas, pictures, caching; send seven small requests
    #[command(
        after_help = "Examples:\n  agent model check anthropic/claude-sonnet-5-5\n  agent model check local -o json | jq .file\n\nExit codes: 0 when it answers at all, else that of the failure (4: key, 5: server, 6: rate limit)."
    )]
    Check {
        /// The model, named as for -m [default: that of the default agent]
        #[arg(add = ArgumentValues::Models)]
        name: Option<String>,
        /// Append each request and answer to this file as it went over the wire, without keys
        #[arg(long, value_name = "FILE")]
        log_wire: Option<PathBuf>,
        /// The output format: text (a table), json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Update prices and windows from another catalogue: a newer one of this program, or the api.json of models.dev
    #[command(
        after_help = "Example:\n  agent model update https://models.dev/api.json\n\nIt is kept in the data directory as models.txt; remove that file to go back."
    )]
    Update {
        /// Its file or address
        #[arg(value_name = "FILE|URL")]
        source: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum ToolCommand {
    /// List the tools of the agent: permission, effects and origin of each
    List {
        /// Only these tools: names and globs; ! excludes
        names: Vec<String>,
        /// Only tools up to this permission: read, write, admin
        #[arg(long, value_name = "LEVEL", hide_possible_values = true, value_parser = parse_one_of::<Permission>(&["read", "write", "admin"]))]
        permission: Option<Permission>,
        /// The agent whose tools to list
        #[arg(short, long, value_name = "NAME", add = ArgumentValues::Agents)]
        agent: Option<String>,
    },
    /// Print the definition of a tool as the model sees it
    Show {
        /// The tool's name
        #[arg(add = ArgumentValues::Tools)]
        name: String,
        /// The agent whose tool to print
        #[arg(short, long, value_name = "NAME", add = ArgumentValues::Agents)]
        agent: Option<String>,
    },
    /// Call a tool under the same policy as the model, and print what the model would read
    #[command(
        after_help = "Example:\n  agent tool call grep '{\"pattern\": \"main\"}' --format standard --encoding json"
    )]
    Call(CallArgs),
}

#[derive(Debug, Args)]
pub struct CallArgs {
    /// The tool's name
    #[arg(add = ArgumentValues::Tools)]
    pub name: String,
    /// The arguments: one JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    pub arguments: String,
    /// The parts of the result: concise, standard, detailed, raw
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = parse_one_of::<ResponseFormat>(&["concise", "standard", "detailed", "raw"]))]
    pub format: Option<ResponseFormat>,
    /// The notation: text, json, yaml, xml, compact
    #[arg(long, value_name = "ENCODING", hide_possible_values = true, value_parser = parse_one_of::<Encoding>(&["text", "json", "yaml", "xml", "compact"]))]
    pub encoding: Option<Encoding>,
    /// Which calls run without asking: auto, ask, edits, all, never
    #[arg(long, value_name = "MODE", hide_possible_values = true, value_parser = parse_approval())]
    pub approve: Option<ApprovalMode>,
    /// The agent whose tool to call
    #[arg(short, long, value_name = "NAME", add = ArgumentValues::Agents)]
    pub agent: Option<String>,
}
