//! Settings: read-only data from files, variables and flags, with the place where each value was set.
//!
//! Nothing else in the program reads the environment ([`Env`] is its one snapshot).

mod env;
mod duration;
mod model;
mod secret;
mod settings;

pub use duration::{format as format_duration, parse as parse_duration};
pub use env::{Dirs, Env};
pub use model::{
    Capabilities, ModelConfig, Prices, Provider, RetryConfig, ScriptCall, ScriptCondition, ScriptError,
    ScriptReply, Timeouts,
};
pub use secret::{Secret, looks_secret};
pub use settings::{
    AgentConfig, ApprovalMode, ContextSettings, Limits, Named, PromptRef, PromptSettings, PromptSource,
    SessionStoreConfig, Settings,
};
