//! The places of secrets, which commands cannot read.
//!
//! A list, not a search: copies and hard links elsewhere are not found, and files inside the workspace belong to
//! the workspace, unless it contains the whole home directory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::Boundary;

/// In a home directory.
const IN_HOME: &[&str] = &[
    // keys, passwords, tokens
    ".ssh",
    ".gnupg",
    ".password-store",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".oci",
    ".kube",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".config/rclone",
    ".config/op",
    ".config/sops",
    ".config/age",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    "Library/Keychains",
    // other agents
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    // what was typed, which often holds one of the above
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    // browsers and mail
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".var/app/org.mozilla.firefox",
    ".var/app/com.google.Chrome",
    ".var/app/org.chromium.Chromium",
    "snap/firefox",
    "snap/chromium",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Microsoft Edge",
    "Library/Safari",
    "Library/Cookies",
    "Library/Mail",
];

/// Of the system: only the superuser could read them anyway.
const OF_SYSTEM: &[&str] = &["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/run/secrets"];

/// Whether a path is one of those places, in whatever home.
#[must_use]
pub fn holds_credentials(path: &Path) -> bool {
    let is_in_home = |place: &str| {
        let place = Path::new(place);
        path.ancestors()
            .any(|part| part.ends_with(place) && part.components().count() > place.components().count() + 1)
    };
    OF_SYSTEM.iter().any(|place| path.starts_with(place)) || IN_HOME.iter().any(|place| is_in_home(place))
}

/// Every path to hide, absolute and sorted, whether or not it exists yet. `superuser` adds the paths that only the
/// superuser can read: the system's own and every other home.
pub(super) fn paths(plan: &Boundary, superuser: bool) -> Vec<PathBuf> {
    let home = real(&plan.home);
    let mut homes = vec![home.clone()];
    if superuser {
        homes.push("/root".into());
        homes.extend(std::fs::read_dir("/home").into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    let mut found: Vec<PathBuf> =
        homes.iter().flat_map(|home| IN_HOME.iter().map(move |path| home.join(path))).collect();
    found.extend(plan.own.iter().cloned());
    if superuser {
        found.extend(OF_SYSTEM.iter().map(PathBuf::from));
    }
    let targets = targets(&found);
    found.extend(targets);
    let owns_home = home.starts_with(&plan.workspace);
    found.retain(|path| owns_home || !path.starts_with(&plan.workspace));
    // A person who lists one of them among the writable directories means it.
    found.retain(|path| !plan.write.iter().any(|named| real(named).starts_with(path)));
    found.sort();
    found.dedup();
    found
}

/// The targets of links on the way and at the end, which are hidden like the link itself. There are far fewer
/// directories than paths, so each is resolved once.
fn targets(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut parents = HashMap::new();
    let mut targets = Vec::new();
    for path in paths {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let target = parents.entry(parent).or_insert_with(|| real(parent)).join(name);
        if target.is_symlink() {
            targets.push(real(&target));
        }
        targets.push(target);
    }
    targets
}

/// Resolves links as far as the path exists.
pub(super) fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_depends_on_where_the_workspace_lies() {
        let root = tempfile::tempdir().expect("a directory can be made");
        let root = root.path().canonicalize().expect("it exists");
        let home = root.join("home");
        std::fs::create_dir_all(home.join("dotfiles/ssh")).expect("made");
        #[cfg(unix)]
        std::os::unix::fs::symlink(home.join("dotfiles/ssh"), home.join(".ssh")).expect("made");
        let plan = |workspace: &Path, write: &[&str]| Boundary {
            workspace: workspace.to_path_buf(),
            write: write.iter().map(|path| home.join(path)).collect(),
            network: false,
            home: home.clone(),
            own: vec![home.join("project/data")],
            temp_base: root.clone(),
            undone: root.join("undone"),
        };
        let hides = |plan: &Boundary, path: &str| paths(plan, false).contains(&home.join(path));
        let outside = plan(&root.join("elsewhere"), &[]);
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
