//! The change that is to be reviewed.

use std::sync::Arc;

use crate::config::Config;
use crate::files::workspace::Workspace;
use crate::safety::Nobody;

use super::git::Git;
use super::ground::AgentInputs;
use super::{RunOptions, SetupError};

/// The diff of a range (`main..HEAD`, `HEAD~3`); of what is not committed without one. Binary files are only named.
///
/// # Errors
/// git cannot be run, or knows no such range.
pub async fn read_diff(
    config: &Arc<Config>,
    workspace: &Workspace,
    options: &RunOptions,
    range: Option<&str>,
) -> Result<String, SetupError> {
    let range = range.unwrap_or("HEAD");
    if range.starts_with('-') {
        return Err(SetupError::usage(format!("`{range}` is no range of commits: main..HEAD, HEAD~3")));
    }
    let ground = AgentInputs::new(config, workspace, options, Arc::new(Nobody));
    let failed = |why: String| {
        let why = if why.contains("ot a git repository") { "this is no git repository" } else { &why };
        SetupError::usage(format!("there is no diff of `{range}`: {why}"))
    };
    let git = Git::open(&ground, workspace.root()).map_err(failed)?;
    let line = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", range, "--"];
    let diff = git.read(&line).await.map_err(failed)?;
    Ok(String::from_utf8_lossy(&diff).into_owned())
}
