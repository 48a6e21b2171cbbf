//! The environment of commands: a list of variables that are known to be harmless, and those that `sandbox.env` names.
//!
//! A list of secrets is never complete, so nothing is passed because its name looks harmless. And nothing on the list
//! is passed with a secret, by its name or in its value.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::base::secrets::{Redactor, looks_secret, user_info};
use crate::base::text::GlobPattern;
use crate::files::workspace::Workspace;

const TABLE: &str = include_str!("variables.txt");

/// What holds for the names of each row, and the names.
static ROWS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    TABLE.lines().filter_map(|row| row.split_once(": ")).filter(|(terms, _)| !terms.starts_with('#')).collect()
});

/// The terms of the variables that make programs run other code.
const STEERING: &str = "steering";

/// Variables that `sandbox.env` names: spelled out, or by a pattern.
#[derive(Debug, Default)]
pub(super) struct NamedVariables {
    exact: Vec<String>,
    patterns: Vec<GlobPattern>,
}

impl NamedVariables {
    /// Patterns that are not globs have been reported as mistakes, and match nothing.
    pub fn new(names: &[String]) -> Self {
        let (patterns, exact): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| is_pattern(name));
        Self {
            exact: exact.into_iter().cloned().collect(),
            patterns: patterns.into_iter().filter_map(|pattern| GlobPattern::word(pattern).ok()).collect(),
        }
    }

    fn spells(&self, name: &str) -> bool {
        self.exact.iter().any(|other| other == name)
    }

    fn covers(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(name))
    }
}

/// True if a name in `sandbox.env` stands for several.
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '[', '{', '\\'])
}

/// The value with which commands get a variable; `None` if they do not get it.
pub(super) fn value_for_commands<'v>(
    name: &str,
    value: &'v str,
    named: &NamedVariables,
    workspace: &Workspace,
) -> Option<Cow<'v, str>> {
    if named.spells(name) {
        return if name.starts_with("LD_") || name.starts_with("DYLD_") {
            loaded_from_elsewhere(name, value, workspace)
        } else {
            Some(value.into())
        };
    }
    let is_open = !looks_secret(name) && (named.covers(name) && !is_steering(name) || is_harmless(name, value));
    is_open.then_some(Cow::Borrowed(value))
}

fn is_harmless(name: &str, value: &str) -> bool {
    let is_listed = |(terms, names): &&(&str, &str)| *terms != STEERING && matches_name(names, name);
    let Some((terms, _)) = ROWS.iter().find(is_listed) else { return false };
    let keeps_to_them = match terms.split_once(' ') {
        Some((_, options)) => {
            let holds_secret = |word: &str| word.split_once('=').is_some_and(|(key, _)| looks_secret(key));
            let is_refused =
                |word: &str| options.split(' ').any(|option| is_option(word, option)) || holds_secret(word);
            !value.split_whitespace().any(is_refused)
        }
        None if *terms == "proxy" => !value.contains('@'),
        None => !is_steering(name),
    };
    keeps_to_them && user_info(value).is_none() && matches!(Redactor::default().redact(value), Cow::Borrowed(_))
}

fn is_steering(name: &str) -> bool {
    ROWS.iter().any(|(terms, names)| *terms == STEERING && matches_name(names, name))
}

/// True if `word` is the option, with or without a value after it.
fn is_option(word: &str, option: &str) -> bool {
    word.trim_matches(['"', '\'']).strip_prefix(option).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(['=', ':']) || (option.len() == 2 && !option.starts_with("--"))
    })
}

/// True if one of these names, or of these beginnings before a `*`, is that of the variable.
fn matches_name(names: &str, name: &str) -> bool {
    names
        .split_whitespace()
        .any(|pattern| pattern.strip_suffix('*').map_or(pattern == name, |beginning| name.starts_with(beginning)))
}

/// A variable without the paths in the workspace from which the dynamic loader would load code into every program;
/// `None` if nothing is left. `cargo run` sets such a path. Relative paths count, wherever the program starts.
fn loaded_from_elsewhere<'a>(name: &str, value: &'a str, workspace: &Workspace) -> Option<Cow<'a, str>> {
    let is_list_of_places = name.ends_with("_PATH");
    let is_in_workspace = |place: &str| {
        let is_place = is_list_of_places || place.contains('/');
        is_place && (!place.starts_with('/') || workspace.resolve(place).inside)
    };
    // Libraries are separated by spaces too, and paths may contain some.
    let separators: &[char] = if is_list_of_places { &[':', ';'] } else { &[':', ' '] };
    if !value.split(separators).any(is_in_workspace) {
        return Some(Cow::Borrowed(value));
    }
    let kept: Vec<&str> = value.split(separators).filter(|place| !is_in_workspace(place)).collect();
    (!kept.is_empty()).then(|| Cow::Owned(kept.join(":")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(named: &[&str], name: &str, value: &str) -> Option<String> {
        let home = tempfile::tempdir().expect("a directory");
        let workspace = Workspace::open(home.path()).expect("a workspace");
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        value_for_commands(name, value, &NamedVariables::new(&named), &workspace).map(Cow::into_owned)
    }

    /// Names that hold secrets where people work, most of them without a word that says so.
    const SECRETS: &[(&str, &str)] = &[
        ("DATABASE_URL", "postgres://app:s3cr3t@db/app"),
        ("MYSQL_PWD", "hunter2hunter2"),
        ("PGPASSWORD", "x"),
        ("PGPASSFILE", "/home/me/.pgpass"),
        ("REDIS_URL", "redis://:pw@cache:6379"),
        ("MONGODB_URI", "mongodb+srv://u:p@cluster"),
        ("AMQP_URL", "amqp://u:p@mq"),
        ("CELERY_BROKER_URL", "amqp://u:p@mq"),
        ("SENTRY_DSN", "https://abc@o1.ingest.sentry.io/1"),
        ("SQLALCHEMY_DATABASE_URI", "mysql://u:p@db"),
        ("JDBC_URL", "jdbc:mysql://db?password=x"),
        ("CONNECTION_STRING", "Server=db;Password=x"),
        ("AZURE_STORAGE_CONNECTION_STRING", "AccountKey=x"),
        ("GITHUB_PAT", "x"),
        ("GH_TOKEN", "x"),
        ("GITHUB_TOKEN", "x"),
        ("GITLAB_PAT", "x"),
        ("CI_JOB_JWT", "x"),
        ("CI_REGISTRY_PASSWORD", "x"),
        ("CARGO_REGISTRY_TOKEN", "x"),
        ("CARGO_REGISTRIES_MINE_TOKEN", "x"),
        ("NPM_TOKEN", "x"),
        ("NODE_AUTH_TOKEN", "x"),
        ("npm_config__auth", "bWU6cHc="),
        ("npm_config_//registry.npmjs.org/:_authToken", "x"),
        ("YARN_NPM_AUTH_IDENT", "me:pw"),
        ("PYPI_TOKEN", "x"),
        ("TWINE_PASSWORD", "x"),
        ("PIP_INDEX_URL", "https://me:pw@pypi.example.com/simple"),
        ("UV_INDEX_URL", "https://me:pw@pypi.example.com/simple"),
        ("UV_PUBLISH_TOKEN", "x"),
        ("POETRY_PYPI_TOKEN_PYPI", "x"),
        ("POETRY_HTTP_BASIC_MINE_PASSWORD", "x"),
        ("BUNDLE_GEMS__CONTRIBSYS__COM", "me:pw"),
        ("GEM_HOST_API_KEY", "x"),
        ("HEX_API_KEY", "x"),
        ("COMPOSER_AUTH", "{}"),
        ("NUGET_API_KEY", "x"),
        ("MAVEN_PASSWORD", "x"),
        ("ORG_GRADLE_PROJECT_signingPassword", "x"),
        ("GOPROXY", "https://me:pw@goproxy.example.com"),
        ("DOCKER_AUTH_CONFIG", "{}"),
        ("DOCKER_PASSWORD", "x"),
        ("KUBECONFIG", "/home/me/.kube/config"),
        ("VAULT_TOKEN", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AWS_SESSION_TOKEN", "x"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json"),
        ("GOOGLE_CLOUD_PROJECT", "mine"),
        ("ARM_CLIENT_SECRET", "x"),
        ("TF_VAR_db_pass", "x"),
        ("HEROKU_API_KEY", "x"),
        ("SLACK_WEBHOOK_URL", "https://hooks.slack.com/services/T0/B0/x"),
        ("DISCORD_WEBHOOK", "x"),
        ("TELEGRAM_BOT", "1:x"),
        ("STRIPE_SK", "x"),
        ("TWILIO_AUTH", "x"),
        ("SENDGRID_API", "x"),
        ("SMTP_PASS", "x"),
        ("MAIL_URL", "smtp://u:p@mail"),
        ("RAILS_MASTER_KEY", "x"),
        ("SECRET_KEY_BASE", "x"),
        ("ANSIBLE_VAULT_PASSWORD_FILE", "/home/me/.vault"),
        ("SSH_AUTH_SOCK", "/run/user/1000/agent"),
        ("GPG_AGENT_INFO", "/run/user/1000/gpg"),
        ("OPENAI_API_KEY", "x"),
        ("AGENT_MODEL", "m"),
        ("http_proxy", "http://me:pw@proxy:3128"),
        ("HTTPS_PROXY", "me:pw@proxy:3128"),
        ("ALL_PROXY", "socks5://me@proxy"),
        ("CFLAGS", "-DURL=https://me:pw@host"),
        ("PYTHONSTARTUP", "/home/me/start.py"),
        ("NODE_OPTIONS", "--max-old-space-size=1 --require ./x.js"),
        ("NODE_OPTIONS", "-r ./x.js"),
        ("NODE_OPTIONS", "--import=./x.mjs"),
        ("GOFLAGS", "-mod=vendor -toolexec=./x"),
        ("MAVEN_OPTS", "-javaagent:x.jar"),
        ("GRADLE_OPTS", "-Xmx1g -Dsigning.password=x"),
        ("BASH_ENV", "x.sh"),
        ("ENV", "x.sh"),
        ("BASH_FUNC_ls%%", "() { id; }"),
        ("PROMPT_COMMAND", "id"),
        ("PERL5OPT", "-Mx"),
        ("RUBYOPT", "-rx"),
        ("JAVA_TOOL_OPTIONS", "-javaagent:x.jar"),
        ("GIT_SSH_COMMAND", "x"),
        ("GIT_CONFIG_COUNT", "1"),
        ("LD_PRELOAD", "/opt/x.so"),
        ("LD_LIBRARY_PATH", "/opt/lib"),
        ("DYLD_INSERT_LIBRARIES", "/opt/x.dylib"),
        ("SOMETHING_ELSE", "x"),
    ];

    #[test]
    fn what_is_not_known_to_be_harmless_stays_here() {
        for (name, value) in SECRETS {
            assert_eq!(passes(&[], name, value), None, "{name}");
        }
    }

    #[test]
    fn what_commands_need_passes() {
        for (name, value) in [
            ("PATH", "/usr/bin:/bin"),
            ("LC_ALL", "C"),
            ("XDG_CACHE_HOME", "/home/me/.cache"),
            ("CARGO_HOME", "/home/me/.cargo"),
            ("RUSTFLAGS", "-D warnings"),
            ("RUSTC_WRAPPER", "sccache"),
            ("VIRTUAL_ENV", "/home/me/venv"),
            ("PYTHONPATH", "src"),
            ("PYTHONUNBUFFERED", "1"),
            ("PIP_INDEX_URL", "https://pypi.example.com/simple"),
            ("NODE_ENV", "test"),
            ("NODE_OPTIONS", "--max-old-space-size=4096 --enable-source-maps"),
            ("GOFLAGS", "-mod=mod"),
            ("GOPROXY", "https://proxy.golang.org,direct"),
            ("MAVEN_OPTS", "-Xmx2g"),
            ("CFLAGS", "-O2 -DNDEBUG"),
            ("MAKEFLAGS", "-j8"),
            ("GIT_AUTHOR_NAME", "Me"),
            ("GIT_COMMITTER_EMAIL", "me@example.com"),
            ("https_proxy", "http://proxy:3128"),
            ("NO_PROXY", "localhost,127.0.0.1"),
            ("CI", "true"),
        ] {
            assert_eq!(passes(&[], name, value).as_deref(), Some(value), "{name}");
        }
    }

    #[test]
    fn the_settings_name_more_and_secrets_only_by_their_whole_name() {
        for (named, name, value, expected) in [
            (&["DATABASE_URL"][..], "DATABASE_URL", "postgres://u:p@db", Some("postgres://u:p@db")),
            (&["NPM_TOKEN"], "NPM_TOKEN", "x", Some("x")),
            (&["NPM_*"], "NPM_TOKEN", "x", None),
            (&["MY_*"], "MY_FLAG", "x", Some("x")),
            (&["MY_*"], "YOUR_FLAG", "x", None),
            (&["*"], "BASH_ENV", "x", None),
            (&["*"], "LD_PRELOAD", "/opt/x.so", None),
            (&["*"], "AWS_SECRET_ACCESS_KEY", "x", None),
            (&["*"], "ANYTHING", "x", Some("x")),
            (&["BASH_ENV"], "BASH_ENV", "x", Some("x")),
            (&["LD_PRELOAD"], "LD_PRELOAD", "/opt/x.so", Some("/opt/x.so")),
            (&["LD_PRELOAD"], "LD_PRELOAD", "./x.so", None),
            (&["LD_LIBRARY_PATH"], "LD_LIBRARY_PATH", "/opt/lib:target/debug:", Some("/opt/lib")),
            (&["http_proxy"], "http_proxy", "http://me:pw@p", Some("http://me:pw@p")),
        ] {
            assert_eq!(passes(named, name, value).as_deref(), expected, "{named:?} {name}={value}");
        }
    }
}
