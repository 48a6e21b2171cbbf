//! The change that is to be reviewed.

use std::path::Path;
use std::sync::Arc;

use crate::config::Config;
use crate::files::file_name;
use crate::files::workspace::Workspace;
use crate::safety::policy::PolicyRules;
use crate::safety::{Nobody, Reach};

use super::git::Git;
use super::ground::AgentInputs;
use super::{RunOptions, SetupError};

/// The largest diff, in bytes: less than a prompt may have.
const MOST_DIFF: usize = 1_000_000;

/// A diff to review.
pub struct ReviewedDiff {
    pub text: String,
    /// The files that are not in it, by their names as one word each, because a rule denies them or credentials are kept there.
    pub left_out: Vec<String>,
}

/// The diff of a range (`main..HEAD`, `HEAD~3`); of what is not committed without one. Binary files are only named.
///
/// # Errors
/// git cannot be run, or knows no such range.
pub async fn read_diff(
    config: &Arc<Config>,
    workspace: &Workspace,
    options: &RunOptions,
    range: Option<&str>,
) -> Result<ReviewedDiff, SetupError> {
    let range = range.unwrap_or("HEAD");
    if range.starts_with('-') {
        return Err(SetupError::usage(format!("`{range}` is no range of commits: main..HEAD, HEAD~3")));
    }
    // The whole repository is read, also from a directory in it.
    let top = workspace.git_root().unwrap_or(workspace.root());
    let repository = Workspace::open(top).map_err(SetupError::from_failure)?;
    let ground = AgentInputs::new(config, &repository, options, Arc::new(Nobody));
    let failed = |why: String| {
        let why = if why.contains("ot a git repository") { "this is no git repository" } else { &why };
        SetupError::usage(format!("there is no diff of `{range}`: {why}"))
    };
    let git = Git::open(&ground, top).map_err(failed)?;
    let names = git.read(&["diff", "--name-only", "--no-renames", "-z", range, "--"]).await.map_err(failed)?;
    let settings = ground.settings()?;
    let rules = PolicyRules::new(&settings.permissions.rules).map_err(SetupError::configuration)?;
    let reach = Reach::new(workspace, Vec::new(), rules.denied_to("read_file"));
    let is_denied = |name: &&str| {
        let path = top.join(name);
        let mut above = path.ancestors().take_while(|above| *above != top);
        above.any(|above| reach.omits(above, top))
    };
    let names = String::from_utf8_lossy(&names);
    let left_out: Vec<String> = names.split_terminator('\0').filter(is_denied).map(str::to_owned).collect();
    let excluded = left_out.iter().map(|name| exclude_path(name)).collect::<Vec<_>>();
    let mut line =
        vec!["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", range, "--", ":(top)"];
    line.extend(excluded.iter().map(String::as_str));
    let diff = git.read(&line).await.map_err(failed)?;
    if diff.len() > MOST_DIFF {
        return Err(SetupError::usage(format!(
            "the diff of `{range}` has {} KiB, and a review holds {}: review a smaller range, or leave out files that were \
             generated (`{{ deny: read_file, path: \"**/*.lock\" }}`)",
            diff.len() >> 10,
            MOST_DIFF >> 10
        )));
    }
    let left_out = left_out.iter().map(|name| file_name::quote(Path::new(name)).into_owned()).collect();
    Ok(ReviewedDiff { text: String::from_utf8_lossy(&diff).into_owned(), left_out })
}

/// A pattern of git that leaves a file out. Where its name is no text, so is what has any bytes there.
fn exclude_path(name: &str) -> String {
    let Some(_) = name.find(char::REPLACEMENT_CHARACTER) else { return format!(":(top,exclude,literal){name}") };
    let mut pattern = String::from(":(top,exclude,glob)");
    for character in name.chars() {
        match character {
            char::REPLACEMENT_CHARACTER => pattern.push('*'),
            '*' | '?' | '[' | '\\' => pattern.extend(['\\', character]),
            _ => pattern.push(character),
        }
    }
    pattern
}
