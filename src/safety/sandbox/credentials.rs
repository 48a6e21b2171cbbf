//! The places of secrets, which commands cannot read and the agent's own tools ask about: one table.
//!
//! A list, not a search: copies and hard links elsewhere are not found, and files inside the workspace belong to
//! the workspace, unless it contains the whole home directory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::plan::{Boundary, resolve_path};

/// In a home directory: files, or directories with everything in them.
#[rustfmt::skip]
const IN_HOME: &[&[&str]] = &[
    // keys, passwords, tokens of tools
    &[
        ".ssh", ".gnupg", ".password-store", ".netrc", "_netrc", ".git-credentials", ".config/git/credentials",
        ".config/gh", ".config/hub", ".config/glab-cli", ".docker/config.json", ".config/containers/auth.json",
        ".cargo/credentials", ".cargo/credentials.toml", ".npmrc", ".yarnrc.yml", ".pypirc",
        ".config/pypoetry/auth.toml", ".gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml",
        ".gradle/gradle.properties", ".composer/auth.json", ".config/composer/auth.json",
        ".nuget/NuGet/NuGet.Config", ".terraform.d/credentials.tfrc.json", ".vault-token", ".pgpass", ".my.cnf",
        ".mylogin.cnf", ".config/rclone", ".config/sops", ".config/age", ".config/ngrok", ".ngrok2",
        ".config/sentry", ".sentryclirc", ".config/tailscale",
    ],
    // clouds, and services that are used from a command line
    &[
        ".aws", ".azure", ".config/gcloud", ".boto", ".s3cfg", ".oci", ".kube", ".config/doctl", ".config/hcloud",
        ".config/linode-cli", ".config/scw", ".config/fly", ".fly/config.yml", ".netlify", ".config/netlify", ".vercel",
        ".local/share/com.vercel.cli", ".config/heroku", ".heroku", ".wrangler", ".config/.wrangler",
        ".config/wrangler", ".config/stripe", ".supabase", ".config/configstore/firebase-tools.json",
        ".databrickscfg", ".databricks/token-cache.json", ".snowflake", ".config/snowflake", ".railway/config.json", ".config/ibm", ".bluemix/config.json",
        ".pulumi/credentials.json", ".config/exoscale", ".config/upcloud", ".kaggle", ".config/kaggle",
    ],
    // managers of passwords
    &[
        ".local/share/keyrings", ".local/share/kwalletd", ".config/op", ".op", ".config/1Password",
        ".local/share/1password", ".config/Bitwarden", ".config/Bitwarden CLI", ".config/rbw", ".local/share/rbw",
        ".config/lastpass", ".local/share/lpass", ".lpass", ".config/keepassxc", ".cache/keepassxc", ".keepass",
        ".config/KeePass", "Passwords.kdbx", "Database.kdbx", "Documents/Passwords.kdbx", "Documents/Database.kdbx",
        "Library/Keychains", "Library/Application Support/1Password", "Library/Application Support/Bitwarden",
        "Library/Application Support/KeePassXC",
    ],
    // other agents, and models
    &[
        ".claude.json", ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json",
        ".qwen/oauth_creds.json", ".config/github-copilot", ".local/share/opencode/auth.json", ".local/share/goose",
        ".config/goose/secrets.yaml", ".aider.conf.yml", ".continue/.env", ".cache/huggingface/token",
        ".cache/huggingface/stored_tokens", ".huggingface", ".config/openai", ".config/io.datasette.llm/keys.json",
    ],
    // wallets
    &[
        ".bitcoin", ".ethereum", ".electrum", ".electrum-ltc", ".litecoin", ".dogecoin", ".monero", "Monero",
        ".zcash", ".config/solana", ".config/Exodus", ".config/atomic", ".config/Ledger Live", ".foundry/keystores",
        ".brownie/accounts", ".near-credentials", ".sui", ".aptos", "Library/Application Support/Exodus",
        "Library/Application Support/Bitcoin", "Library/Ethereum",
    ],
    // typed input, which often contains one of the above
    &[
        ".bash_history", ".zsh_history", ".zhistory", ".histfile", ".sh_history", ".ksh_history", ".history",
        ".local/share/fish/fish_history", ".config/nushell/history.txt", ".config/nushell/history.sqlite3",
        ".local/share/xonsh", ".xonsh_history.json", ".local/share/atuin", ".psql_history",
        ".mysql_history", ".mariadb_history", ".rediscli_history", ".sqlite_history", ".mongosh", ".mongodb", ".mongorc.js",
        ".dbshell", ".python_history", ".ipython/profile_default/history.sqlite", ".node_repl_history", ".ts_node_repl_history", ".irb_history",
        ".lesshst", ".viminfo",
    ],
    // browsers, mail and messages
    &[
        ".mozilla", ".thunderbird", ".librewolf", ".waterfox", ".zen", ".tor-browser", ".config/google-chrome",
        ".config/google-chrome-beta", ".config/google-chrome-unstable", ".config/chromium", ".config/BraveSoftware",
        ".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".config/Arc", ".config/mozilla",
        ".config/librewolf", ".config/zen", ".local/share/evolution", ".config/evolution", ".config/Signal",
        ".config/Element", ".config/discord", ".config/Slack", ".local/share/TelegramDesktop",
        ".var/app/org.mozilla.firefox", ".var/app/org.mozilla.Thunderbird", ".var/app/com.google.Chrome",
        ".var/app/org.chromium.Chromium", ".var/app/com.brave.Browser", ".var/app/com.microsoft.Edge",
        ".var/app/com.vivaldi.Vivaldi", ".var/app/com.opera.Opera", ".var/app/io.gitlab.librewolf-community",
        ".var/app/app.zen_browser.zen", ".var/app/org.signal.Signal", ".var/app/com.bitwarden.desktop",
        ".var/app/org.keepassxc.KeePassXC", ".var/app/com.slack.Slack", ".var/app/com.discordapp.Discord",
        ".var/app/org.telegram.desktop", "snap/firefox", "snap/chromium", "snap/brave", "snap/opera",
        "snap/thunderbird", "snap/signal-desktop", "snap/bitwarden", "snap/keepassxc", "snap/slack",
        "Library/Application Support/Google/Chrome", "Library/Application Support/Chromium",
        "Library/Application Support/Firefox", "Library/Application Support/BraveSoftware",
        "Library/Application Support/Microsoft Edge", "Library/Application Support/Arc",
        "Library/Application Support/zen", "Library/Application Support/LibreWolf",
        "Library/Application Support/Vivaldi", "Library/Application Support/com.operasoftware.Opera",
        "Library/Application Support/Signal", "Library/Application Support/Slack", "Library/Safari",
        "Library/Cookies", "Library/Mail", "Library/Messages",
    ],
];

/// Files of the system, which only the superuser could read anyway.
const OF_SYSTEM: &[&str] = &["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/run/secrets"];

/// The places of credentials, for the agent's own tools.
pub fn credential_places(plan: &Boundary) -> Vec<PathBuf> {
    list_paths(plan, is_superuser())
}

#[cfg(unix)]
fn is_superuser() -> bool {
    nix::unistd::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_superuser() -> bool {
    false
}

/// Every path to hide, absolute and sorted, whether or not it exists yet. `superuser` adds the paths that only the
/// superuser can read: the system's own and every other home.
pub(super) fn list_paths(plan: &Boundary, superuser: bool) -> Vec<PathBuf> {
    let home = resolve_path(&plan.home);
    let mut homes = vec![home.clone()];
    if superuser {
        homes.push("/root".into());
        homes.extend(std::fs::read_dir("/home").into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    let mut found: Vec<PathBuf> =
        homes.iter().flat_map(|home| IN_HOME.iter().copied().flatten().map(move |path| home.join(path))).collect();
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
    let in_home = IN_HOME.iter().copied().flatten().map(|place| format!("/{}", place.to_lowercase()));
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
    use super::super::Network;
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
            network: Network::Closed,
            home: home.clone(),
            own: vec![home.join("project/data")],
            temp_base: root.clone(),
            undone: root.join("undone"),
            caches: "/caches".into(),
            namespaces: false,
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
