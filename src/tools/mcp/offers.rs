//! What a person takes from a server by its name: the text of a resource, the message of a prompt.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::base::text;

use super::offered::ServerOffers;
use super::{McpPart, McpServer, McpServers};

/// The longest text that is taken, in bytes.
const MOST_BYTES: usize = 256 * 1024;
/// The most prompts that a message names.
const MOST_NAMED: usize = 30;

/// The most names that are kept of each kind.
const MOST_NAMES: usize = 1000;

/// What a person begins to type.
#[derive(Debug, Clone, Copy)]
pub enum TypedOffer<'t> {
    /// The address of a resource.
    Resource(&'t str),
    Prompt {
        name: &'t str,
        words: &'t str,
    },
}

/// An argument that is begun, with what is typed of its value.
pub(super) struct BegunArgument {
    pub of: CompletedOffer,
    pub argument: String,
    pub value: String,
}

/// What has the argument.
pub(super) enum CompletedOffer {
    /// By its name.
    Prompt(String),
    /// By its form, such as `note://{day}`.
    Template(String),
}

impl TypedOffer<'_> {
    /// The argument that is begun, and what of the typed text stands before its value.
    fn find_argument(self, listed: &ServerOffers) -> Option<(BegunArgument, String)> {
        let begin = |of, argument: &str, value: &str, before: &str| {
            let begun = BegunArgument { of, argument: argument.to_owned(), value: value.to_owned() };
            (begun, before.to_owned())
        };
        match self {
            Self::Resource(typed) => listed.resources.iter().find_map(|(form, _)| {
                let (before, rest) = form.split_once('{')?;
                let value = typed.strip_prefix(before).filter(|value| !value.contains('/'))?;
                Some(begin(CompletedOffer::Template(form.clone()), rest.split_once('}')?.0, value, before))
            }),
            Self::Prompt { name, words } => {
                let (_, arguments) = listed.prompts.iter().find(|(known, _)| known == name)?;
                let (done, last) = words.rsplit_once(' ').unwrap_or(("", words));
                let by_name =
                    last.split_once('=').filter(|(name, _)| arguments.split(' ').any(|known| known == *name));
                let next = || arguments.split(' ').nth(done.split_whitespace().count());
                let (argument, value) = by_name.or_else(|| Some((next()?, last)))?;
                let before = &last[..last.len() - value.len()];
                Some(begin(CompletedOffer::Prompt(name.to_owned()), argument, value, before))
            }
        }
    }
}

/// What is taken.
enum WantedOffer {
    /// By its address.
    Resource(String),
    /// By its name, with its arguments as a person typed them.
    Prompt { name: String, words: String },
}

impl McpServers {
    /// The server of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<McpServer>> {
        self.iter().find(|server| server.name() == name)
    }

    /// Reads a resource of a server, and starts the server if it is not up.
    ///
    /// # Errors
    /// There is no such server or resource, or it is too large: a sentence.
    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<String, String> {
        self.take_offer(server, WantedOffer::Resource(uri.to_owned())).await
    }

    /// Writes the message of a prompt of a server. `words` are its arguments: `NAME=VALUE`, else in their order, and the
    /// last one takes the rest.
    ///
    /// # Errors
    /// There is no such server or prompt, or the server refuses its arguments: a sentence.
    pub async fn write_prompt(&self, server: &str, name: &str, words: &str) -> Result<String, String> {
        self.take_offer(server, WantedOffer::Prompt { name: name.to_owned(), words: words.to_owned() }).await
    }

    /// What a person can take from a server, which is started if it is not up. Waits at most `patience` for it; `None` as long as
    /// it is not known. The next call may know.
    pub fn list_offers(&self, name: &str, patience: Duration) -> Option<Arc<ServerOffers>> {
        const LOOK: Duration = Duration::from_millis(10);
        let server = self.find(name)?;
        let until = Instant::now() + patience;
        if server.offers.begin() {
            let (server, limit) = (Arc::clone(server), server.timeout());
            self.runtime()?.spawn(async move {
                let listed = timeout(limit, list_names(&server)).await;
                server.offers.keep(listed.ok().and_then(Result::ok));
            });
        }
        while server.offers.get().is_none() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        server.offers.get()
    }

    /// The values that a server offers for what a person begins to type of a resource or of a prompt's arguments; each takes
    /// the place of what was typed of it. Waits at most `patience`.
    pub fn complete_offer(&self, name: &str, typed: TypedOffer<'_>, patience: Duration) -> Vec<String> {
        let complete = || {
            let listed = self.list_offers(name, patience)?;
            let (begun, before) = typed.find_argument(&listed)?;
            let (server, (sender, values)) = (Arc::clone(self.find(name)?), mpsc::sync_channel(1));
            self.runtime()?.spawn(async move {
                if let Ok(connection) = server.connect().await {
                    let _ = sender.send(connection.complete_argument(&begun).await);
                }
            });
            let values = values.recv_timeout(patience).ok()?.ok()?;
            let plain = values.iter().filter(|value| !value.chars().any(char::is_control));
            Some(plain.map(|value| format!("{before}{value}")).collect())
        };
        if patience.is_zero() { Vec::new() } else { complete().unwrap_or_default() }
    }

    async fn take_offer(&self, name: &str, wanted: WantedOffer) -> Result<String, String> {
        let server = self.find(name).ok_or_else(|| {
            let known: Vec<&str> = self.iter().map(|server| server.name()).collect();
            format!("there is no server `{}` ({})", text::one_line(name, 60), known.join(", "))
        })?;
        let runtime = self.runtime().ok_or("no thread is left for servers")?;
        let (asked, limit) = (Arc::clone(server), server.timeout());
        let taken = runtime.spawn(async move { timeout(limit, take_parts(&asked, wanted)).await });
        let late = || format!("the server `{name}` did not answer within {} s", limit.as_secs());
        let parts = taken.await.map_err(|_| late())?.map_err(|_| late())?;
        let parts = parts.map_err(|why| format!("the server `{name}`: {}", server.quote(&why, 300)))?;
        let texts = parts.into_iter().map(|part| match part {
            McpPart::Text(text) => text,
            McpPart::Picture(_) => "[a picture, not shown]".to_owned(),
            McpPart::Unshown(what) => format!("[not shown: {what}]"),
        });
        let joined = texts.collect::<Vec<_>>().join("\n\n");
        if joined.len() > MOST_BYTES {
            let size = joined.len() / 1024;
            return Err(format!("the server `{name}` gave {size} KiB, the limit is {} KiB", MOST_BYTES / 1024));
        }
        Ok(joined)
    }
}

/// Asks a server for the names of what it offers. One that has none of a kind refuses the question.
async fn list_names(server: &Arc<McpServer>) -> Result<ServerOffers, String> {
    let connection = server.connect().await?;
    let mut resources = connection.list_resources().await.unwrap_or_default();
    resources.extend(connection.list_templates().await.unwrap_or_default());
    let prompts = connection.list_prompts().await.unwrap_or_default();
    resources.truncate(MOST_NAMES);
    let about = |(name, arguments): (String, Vec<String>)| (name, arguments.join(" "));
    Ok(ServerOffers { resources, prompts: prompts.into_iter().take(MOST_NAMES).map(about).collect() })
}

async fn take_parts(server: &Arc<McpServer>, wanted: WantedOffer) -> Result<Vec<McpPart>, String> {
    let connection = server.connect().await?;
    let (name, words) = match wanted {
        WantedOffer::Resource(uri) => return connection.read_resource(&uri).await,
        WantedOffer::Prompt { name, words } => (name, words),
    };
    let prompts = connection.list_prompts().await?;
    let Some((_, arguments)) = prompts.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = prompts.iter().map(|(known, _)| known.as_str()).take(MOST_NAMED).collect();
        return Err(format!("there is no prompt `{}`; it has {}", text::one_line(&name, 60), known.join(", ")));
    };
    connection.write_prompt(&name, fill_arguments(arguments, &words)).await
}

/// The arguments of a prompt from the words of a person.
fn fill_arguments(names: &[String], words: &str) -> Map<String, Value> {
    let mut filled = Map::new();
    let mut rest = words.trim();
    while !rest.is_empty() {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let by_name = word.split_once('=').filter(|(name, _)| names.iter().any(|known| known == name));
        let mut open = names.iter().filter(|name| !filled.contains_key(*name));
        let (name, value) = match by_name {
            Some((name, value)) => (name.to_owned(), value),
            None => match (open.next().cloned(), open.next()) {
                (Some(last), None) => {
                    filled.insert(last, rest.into());
                    break;
                }
                (Some(name), Some(_)) => (name, word),
                (None, _) => break,
            },
        };
        filled.insert(name, value.into());
        rest = after.trim_start();
    }
    filled
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_arguments_in_order_or_by_name() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (known, words, expected) in [
            (names(&["a", "b"]), "one two three", json!({ "a": "one", "b": "two three" })),
            (names(&["a", "b"]), "b=two one", json!({ "b": "two", "a": "one" })),
            (names(&["a"]), "x=1 and more", json!({ "a": "x=1 and more" })),
            (names(&[]), "ignored", json!({})),
            (names(&["a"]), "", json!({})),
        ] {
            assert_eq!(Value::Object(fill_arguments(&known, words)), expected, "{words}");
        }
    }
}
