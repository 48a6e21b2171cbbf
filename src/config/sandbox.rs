//! The settings of the boundary around commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The boundary around commands. The default is the narrowest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSettings {
    pub mode: SandboxMode,
    /// Directories that commands may write besides the workspace and their temporary directory. `~/` is the home
    /// directory; a relative one is in the workspace.
    pub write: Vec<String>,
    /// The hosts that commands reach, through a proxy on their loopback: `crates.io`, `*.example.com`,
    /// `localhost:8080`. `["*"]` means the network of this machine, including its loopback.
    pub network: Vec<String>,
    /// Variables that commands get besides the harmless ones, even with the sandbox off: names, or globs over names
    /// that neither look like secrets nor make programs run other code.
    pub env: Vec<String>,
}

impl SandboxSettings {
    /// The entry of `network` that opens it, and the only one allowed.
    pub const ANY_HOST: &str = "*";

    /// True if commands reach every host.
    pub fn reaches_all(&self) -> bool {
        self.network.iter().any(|host| host == Self::ANY_HOST)
    }
}

/// The switch of the boundary around commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// If the system has none, no command runs.
    #[default]
    On,
    Off,
}
