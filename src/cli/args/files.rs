//! What may follow `agent config` and `agent prompt`.

use clap::Subcommand;

use super::prompt_test::PromptTestArgs;
use super::var::{self, Var};

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print where configuration is looked for, in the order of precedence
    Path,
    /// Print the merged result; secrets show as ***
    Show,
    /// Report every mistake at once
    Check,
    /// Tell which file and line, variable or flag set a key
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
    /// Print a prompt as it is written
    Show { reference: String },
    /// Print a prompt as the agent would render it here
    Render {
        reference: String,
        /// Set vars.K: K=TEXT, K=@FILE, K:=JSON (repeatable)
        #[arg(long = "var", value_name = "K=V", value_parser = var::var)]
        vars: Vec<Var>,
    },
    /// Run the cases of prompts and tell how many pass
    #[command(
        after_help = "Examples:\n  agent prompt test router@1.1 --runs 10\n  agent prompt test --replay -o junit\n  \
                      agent prompt test --compare router@1.0 router@1.1\n\nExit codes: 0 when every case passes, 100 \
                      when one fails."
    )]
    Test(PromptTestArgs),
}
