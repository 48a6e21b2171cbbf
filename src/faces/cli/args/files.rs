//! The subcommands of `agent config` and `agent prompt`.

use clap::Subcommand;

use crate::prompt::{PRODUCTION, Version};

use super::prompt_test::PromptTestArgs;
use super::var::{self, Var};

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print where configuration is looked for, lowest precedence first
    Path,
    /// Print the merged result; secrets show as ***
    Show,
    /// Report every mistake at once
    Check,
    /// Show which file and line, variable or flag set a key
    Explain { key: String },
    /// Print the JSON Schema of a kind of file, for editors
    Schema {
        #[arg(value_name = "KIND")]
        kind: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum PromptCommand {
    /// List the prompts with their versions
    List,
    /// Print the source of a prompt
    Show { reference: String },
    /// Print a prompt as the agent would render it here
    Render {
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
        #[arg(value_name = "A")]
        old: String,
        #[arg(value_name = "B")]
        new: String,
    },
    /// Report errors and likely mistakes in prompts, and the tokens of their parts
    Check {
        /// NAME[@VERSION] [default: every version of every prompt]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a help text, not a link")]
        #[arg(value_name = "NAME")]
        references: Vec<String>,
    },
    /// Release a version, once its tests pass
    #[command(
        after_help = "Examples:\n  agent prompt promote system 2.1 --canary 10\n  agent prompt promote system 2.1 \
                            -m \"Shorter rules\"\n\nWrites release.yaml, release.lock and changelog.md beside the prompt."
    )]
    Promote {
        name: String,
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
    Rollback { name: String },
    /// Create a prompt, or the next version of one
    #[command(after_help = "Prints the files that it wrote. Overwrites nothing.")]
    New { name: String },
}
