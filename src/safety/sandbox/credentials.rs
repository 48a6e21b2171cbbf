//! The places of secrets, which commands cannot read and the agent's own tools ask about: one table.
//!
//! A list, not a search: copies and hard links elsewhere are not found, and files inside the workspace belong to
//! the workspace, unless it contains the whole home directory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::plan::{Boundary, resolve_path};

/// In a home directory: files, or directories with everything in them.
const IN_HOME: &str = include_str!("credentials.txt");

/// Files of the system, which only the superuser could read anyway.
const OF_SYSTEM: &[&str] = &["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/run/secrets"];

fn list_in_home() -> impl Iterator<Item = &'static str> {
    IN_HOME.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Every path to hide, absolute and sorted, whether or not it exists yet. For the superuser that includes the paths that
/// nobody else can read: the system's own and every other home.
pub fn credential_places(plan: &Boundary) -> Vec<PathBuf> {
    #[cfg(unix)]
    return list_paths(plan, nix::unistd::geteuid().is_root());
    #[cfg(not(unix))]
    list_paths(plan, false)
}

fn list_paths(plan: &Boundary, superuser: bool) -> Vec<PathBuf> {
    let home = resolve_path(&plan.home);
    let mut homes = vec![home.clone()];
    if superuser {
        homes.push("/root".into());
        homes.extend(std::fs::read_dir("/home").into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    let mut found: Vec<PathBuf> =
        homes.iter().flat_map(|home| list_in_home().map(move |path| home.join(path))).collect();
    found.extend(plan.own.iter().cloned());
    if superuser {
        found.extend(OF_SYSTEM.iter().map(PathBuf::from));
    }
    let targets = list_targets(&found);
    found.extend(targets);
    let owns_home = home.starts_with(&plan.workspace);
    found.retain(|path| owns_home || !path.starts_with(&plan.workspace));
    // Listing one of them among the writable directories is deliberate.
    found.retain(|path| !plan.write.iter().any(|named| resolve_path(named).starts_with(path)));
    found.sort();
    found.dedup();
    found
}

/// True if a text, in lower case, names a hidden place.
pub(super) fn are_named_in(text: &str, plan: &Boundary) -> bool {
    let text = text.replace("//", "/");
    let own = plan.own.iter().map(|path| path.to_string_lossy().to_lowercase());
    let in_home = list_in_home().map(|place| format!("/{}", place.to_lowercase()));
    own.chain(in_home).any(|place| text.contains(&place))
}

/// The targets of links on the way and at the end, which are hidden like the link itself. There are far fewer
/// directories than paths, and most of those do not exist, so each is looked at once.
fn list_targets(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut dirs = CredentialDirs::default();
    let mut targets = Vec::new();
    for path in paths {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let parent = dirs.resolve(parent);
        let target = parent.real.join(name);
        if parent.exists && target.is_symlink() {
            targets.push(resolve_path(&target));
        }
        targets.push(target);
    }
    targets
}

/// Directories, with links resolved as far as they exist.
#[derive(Default)]
struct CredentialDirs(HashMap<PathBuf, CredentialPath>);

#[derive(Clone)]
struct CredentialPath {
    real: PathBuf,
    exists: bool,
}

impl CredentialDirs {
    fn resolve(&mut self, dir: &Path) -> CredentialPath {
        if let Some(known) = self.0.get(dir) {
            return known.clone();
        }
        let resolved = match (dir.parent().map(|above| self.resolve(above)), dir.file_name()) {
            (Some(above), Some(name)) => {
                let path = above.real.join(name);
                // Nothing exists below a path that does not exist.
                match above.exists.then(|| std::fs::symlink_metadata(&path)) {
                    Some(Ok(entry)) if entry.is_symlink() => {
                        CredentialPath { real: resolve_path(&path), exists: path.exists() }
                    }
                    Some(Ok(_)) => CredentialPath { real: path, exists: true },
                    Some(Err(_)) | None => CredentialPath { real: path, exists: false },
                }
            }
            _ => CredentialPath { real: dir.to_path_buf(), exists: true },
        };
        self.0.insert(dir.to_path_buf(), resolved.clone());
        resolved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_depends_on_where_the_workspace_lies() {
        let root = tempfile::tempdir().expect("a directory can be made");
        let root = crate::files::canonicalize(root.path()).expect("it exists");
        let home = root.join("home");
        std::fs::create_dir_all(home.join("dotfiles/ssh")).expect("made");
        #[cfg(unix)]
        std::os::unix::fs::symlink(home.join("dotfiles/ssh"), home.join(".ssh")).expect("made");
        let plan = |workspace: &Path, write: &[&str]| Boundary {
            write: write.iter().map(|path| home.join(path)).collect(),
            own: vec![home.join("project/data")],
            ..Boundary::around(workspace, &home, &root)
        };
        let hides = |plan: &Boundary, path: &str| list_paths(plan, false).contains(&home.join(path));
        let outside = plan(&root.join("elsewhere"), &[]);
        for place in
            [".claude.json", ".cache/huggingface/token", ".config/github-copilot", ".psql_history", ".bitcoin"]
        {
            assert!(hides(&outside, place), "{place}");
        }
        assert!(hides(&outside, ".ssh") && hides(&outside, ".netrc") && hides(&outside, "project/data"));
        #[cfg(unix)]
        assert!(hides(&outside, "dotfiles/ssh"), "the target of a link");
        let inside = plan(&home.join("project"), &[]);
        assert!(hides(&inside, ".ssh") && !hides(&inside, "project/data"), "the workspace owns what it holds");
        let whole = plan(&home, &[]);
        assert!(hides(&whole, ".ssh") && hides(&whole, "project/data"), "unless it is the whole home");
        let named = plan(&root.join("elsewhere"), &[".aws/cli"]);
        assert!(!hides(&named, ".aws") && hides(&named, ".ssh"), "named on purpose");
    }
}
