//! Completion of slash commands and their arguments at the start of a line, and of workspace files after `@`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::commands::{Completes, find_command, list_commands};
use super::find::Finder;
use super::own::takes_arguments;
use crate::agent::assembly;
use crate::base::text;
use crate::config::{ApprovalMode, Config, Mode, OwnCommand};
use crate::model::catalogue::providers;
use crate::model::effort::Effort;
use crate::prompt::{MODULES, Registry};
use crate::screen::line::Offer;
use crate::tools::{McpServers, TypedOffer};

/// Names that complete as arguments.
#[derive(Debug, Clone, Default)]
pub struct ArgumentNames {
    pub skills: Vec<String>,
    pub own: Vec<OwnCommand>,
    pub files: Finder,
    /// The source of the names of models, agents, prompts and keys.
    pub config: Option<Arc<Config>>,
    /// The servers of tools, whose resources and prompts are named. They end with the chat, not with these words.
    pub servers: Weak<McpServers>,
}

/// The most files that are offered for a word.
const MOST_FILES: usize = 16;

/// Completes the word under the cursor, and waits at most `patience` for files. Returns its start (a byte of `line`) and the
/// offers to replace it.
pub fn complete_line(
    line: &str,
    cursor: usize,
    vocabulary: &ArgumentNames,
    patience: Duration,
) -> (usize, Vec<Offer>) {
    let typed = &line[..cursor];
    if let Some(at) = find_mention(typed) {
        if let Some(offers) = vocabulary.complete_offer(&typed[at..], patience) {
            return (at, offers);
        }
        return (at, vocabulary.files.offers(&typed[at..], MOST_FILES, patience));
    }
    let Some(command) = typed.strip_prefix('/') else {
        return (cursor, Vec::new());
    };
    let Some((name, argument)) = command.split_once(' ') else {
        let built_in =
            list_commands().flat_map(|command| command.names().map(|name| (name, !command.argument.is_empty())));
        let own = vocabulary.own.iter().map(|own| (own.name.as_str(), takes_arguments(own)));
        let offers = built_in.chain(own).filter(|(name, _)| name.starts_with(command));
        if let Some(offers) = vocabulary.complete_offer(typed, patience) {
            return (0, offers);
        }
        let offers = offers.map(|(name, takes)| Offer {
            shown: format!("/{name}"),
            inserted: format!("/{name}{}", if takes { " " } else { "" }),
        });
        return (0, offers.collect());
    };
    if let Some(offers) = vocabulary.complete_prompt(name, argument, patience) {
        let last = argument.rsplit(' ').next().unwrap_or_default();
        return (cursor - last.len(), offers);
    }
    let completes = find_command(name).map_or(Completes::Nothing, |command| command.completes);
    let offers = if completes == Completes::Paths {
        let path = argument.trim_start_matches('"');
        let mut offers = vocabulary.files.list_continuations(path, path != argument, MOST_FILES);
        for offer in &mut offers {
            offer.inserted = offer.inserted.trim_start_matches('@').to_owned();
        }
        offers
    } else {
        let words = complete_argument(completes, argument, vocabulary).into_iter();
        let words = words.filter(|word| word.starts_with(argument));
        words.map(|word| Offer { shown: word.clone(), inserted: word }).collect()
    };
    (cursor - argument.len(), offers)
}

impl ArgumentNames {
    /// Completes `@SERVER:ADDRESS` and `/SERVER:PROMPT`; `None` if no server has this name.
    fn complete_offer(&self, typed: &str, patience: Duration) -> Option<Vec<Offer>> {
        let (server, begun) = typed[1..].split_once(':')?;
        let servers = self.servers.upgrade()?;
        servers.find(server)?;
        let listed = servers.list_offers(server, patience).unwrap_or_default();
        let is_mention = typed.starts_with('@');
        let values = if is_mention && !begun.is_empty() {
            servers.complete_offer(server, TypedOffer::Resource(begun), patience)
        } else {
            Vec::new()
        };
        let names = if is_mention { &listed.resources } else { &listed.prompts };
        let offers =
            names.iter().filter(|(name, _)| name.starts_with(begun)).take(MOST_FILES).map(|(name, about)| {
                let inserted = format!("{}{server}:{name}", &typed[..1]);
                let separator = if is_mention { " · " } else { " " };
                let shown =
                    if about.is_empty() { inserted.clone() } else { format!("{inserted}{separator}{about}") };
                Offer { shown: text::make_visible(&shown).into_owned(), inserted }
            });
        let values = values.into_iter().take(MOST_FILES).map(|value| {
            let inserted = format!("@{server}:{value}");
            Offer { shown: text::make_visible(&inserted).into_owned(), inserted }
        });
        let offers = offers.chain(values);
        Some(offers.filter(|offer| !offer.inserted.contains(char::is_whitespace)).collect())
    }

    /// Completes the argument of `/SERVER:PROMPT`; `None` if `name` is none.
    fn complete_prompt(&self, name: &str, words: &str, patience: Duration) -> Option<Vec<Offer>> {
        let (server, name) = name.split_once(':')?;
        let servers = self.servers.upgrade()?;
        servers.find(server)?;
        let values = servers.complete_offer(server, TypedOffer::Prompt { name, words }, patience);
        let offer = |value: String| Offer { shown: text::make_visible(&value).into_owned(), inserted: value };
        Some(values.into_iter().take(MOST_FILES).map(offer).collect())
    }
}

/// The possible arguments of a command.
fn complete_argument(completes: Completes, argument: &str, vocabulary: &ArgumentNames) -> Vec<String> {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let config = vocabulary.config.as_deref();
    match completes {
        Completes::Nothing | Completes::Paths => Vec::new(),
        Completes::Words(words) => owned(words),
        Completes::Commands => {
            let names = list_commands().map(|command| command.name.to_owned());
            names.chain(vocabulary.own.iter().map(|own| own.name.clone())).collect()
        }
        Completes::Skills => vocabulary.skills.clone(),
        Completes::Modes => owned(&Mode::ALL.map(Mode::name)),
        Completes::Approvals => owned(&ApprovalMode::ALL.map(ApprovalMode::name)),
        Completes::Models => {
            let levels = Effort::ALL.map(Effort::word);
            match argument.rsplit_once(' ') {
                Some((name, _)) => levels.map(|level| format!("{name} {level}")).to_vec(),
                None => {
                    let names = config.into_iter().flat_map(list_models);
                    names.chain(levels.map(str::to_owned)).collect()
                }
            }
        }
        Completes::Agents => config.into_iter().flat_map(|config| config.agents.keys().cloned()).collect(),
        Completes::Prompts => config.into_iter().flat_map(list_prompts).collect(),
        Completes::Keys => config.into_iter().flat_map(Config::keys).map(|key| key + "=").collect(),
    }
}

/// The models that can be named: the configured ones, and those of each provider whose key is set.
pub fn list_models(config: &Config) -> Vec<String> {
    let listed = assembly::list_models(config, "").models.into_iter();
    let has_key = |name: &str| {
        let provider = providers::split_name(name).map(|(provider, _)| provider);
        provider.is_some_and(|provider| provider.keys.iter().any(|key| config.env.get(key).is_some()))
    };
    let usable = listed.filter(|model| model.is_configured || has_key(&model.name));
    usable.map(|model| model.name).collect()
}

/// The prompts that can be named: all but the modules that others include.
pub fn list_prompts(config: &Config) -> Vec<String> {
    let names = Registry::new(&config.prompt_dirs).names();
    names.into_iter().flatten().filter(|name| !name.starts_with(MODULES)).collect()
}

/// Returns the start of the `@` word at the end of `typed`, if there is one.
pub fn find_mention(typed: &str) -> Option<usize> {
    let quoted = typed.rfind("@\"").filter(|at| !typed[at + 2..].contains('"'));
    let word = || typed.trim_end_matches(|c: char| !c.is_whitespace()).len();
    let start = quoted.unwrap_or_else(word);
    typed[start..].starts_with('@').then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Env, LoadOptions, load_config};
    use crate::files::workspace::Workspace;

    fn inserted(line: &str, vocabulary: &ArgumentNames) -> (usize, Vec<String>) {
        let (at, offers) = complete_line(line, line.len(), vocabulary, Duration::from_secs(9));
        (at, offers.into_iter().map(|offer| offer.inserted).collect())
    }

    #[test]
    fn commands_and_their_arguments_complete_at_the_start_of_a_line() {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let models = dir.path().join(".config/agent/models");
        std::fs::create_dir_all(&models).expect("created");
        std::fs::write(models.join("fast.yaml"), "provider: scripted\nscript: []\n").expect("written");
        let env = Env::from_pairs([("HOME", dir.path().display().to_string())]);
        let workspace = Workspace::open(dir.path()).expect("it exists");
        let options = LoadOptions::new(&env, &workspace);
        let config = load_config(&options).expect("nothing is wrong with it");
        let own = |name: &str, text: &str| OwnCommand {
            name: name.to_owned(),
            text: text.to_owned(),
            ..OwnCommand::default()
        };
        let vocabulary = ArgumentNames {
            skills: vec!["brew".to_owned(), "bake".to_owned()],
            own: vec![own("commit", "Commit."), own("convert", "Convert $1.")],
            config: Some(Arc::new(config)),
            ..ArgumentNames::default()
        };
        for (line, at, expected) in [
            ("/m", 0, vec!["/model ", "/mode ", "/mcp"]),
            ("/mode e", 6, vec!["explore"]),
            ("/co", 0, vec!["/context", "/compact ", "/copy ", "/cost", "/commit", "/convert "]),
            ("/model de", 7, vec!["default", "demo"]),
            ("/model f", 7, vec!["fast"]),
            ("/model fast h", 7, vec!["fast high"]),
            ("/agent d", 7, vec!["default"]),
            ("/approve a", 9, vec!["auto", "ask", "all"]),
            ("/prompt rev", 8, vec!["review"]),
            ("/set limits.max_tu", 5, vec!["limits.max_turns="]),
            ("/last r", 6, vec!["reasoning"]),
            ("/help sk", 6, vec!["skills", "skill"]),
            ("/help comm", 6, vec!["commit"]),
            ("/skill b", 7, vec!["brew", "bake"]),
            ("/skill brew x", 7, vec![]),
            ("/tools x", 7, vec![]),
            ("/commit x", 8, vec![]),
            ("say /m", 6, vec![]),
        ] {
            let expected = (at, expected.into_iter().map(str::to_owned).collect());
            assert_eq!(inserted(line, &vocabulary), expected, "{line:?}");
        }
    }

    #[test]
    fn paths_complete_after_an_at() {
        let dir = tempfile::tempdir().expect("a directory for the test");
        for name in ["src/main.rs", "src/日本語.rs", "my docs/a b.md", ".hidden"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("created");
            std::fs::write(path, "").expect("written");
        }
        let vocabulary = ArgumentNames { files: Finder::new(dir.path()), ..ArgumentNames::default() };
        for (line, at, expected) in [
            ("@", 0, vec!["@\"my docs/", "@src/"]),
            ("see @src/", 4, vec!["@src/main.rs", "@src/日本語.rs"]),
            ("見て @src/日", 7, vec!["@src/日本語.rs"]),
            ("@\"my docs/a", 0, vec!["@\"my docs/a b.md\""]),
            ("@.h", 0, vec!["@.hidden"]),
            ("me@s", 4, vec![]),
            ("/image sr", 7, vec!["src/"]),
            ("/image my", 7, vec!["\"my docs/"]),
        ] {
            let expected = (at, expected.into_iter().map(str::to_owned).collect());
            assert_eq!(inserted(line, &vocabulary), expected, "{line:?}");
        }
    }
}
