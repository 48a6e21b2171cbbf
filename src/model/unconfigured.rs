//! The error for a user who has configured no model: it names the next step, depending on the keys that are set and
//! the servers that answer on this machine.

use super::catalogue::choose_small;
use super::catalogue::providers::PROVIDERS;
use super::local::{LocalServer, probe_local};
use crate::model::{ModelError, ModelErrorKind};
use crate::safety::net::Net;

/// The command that the advice is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    Run,
    Chat,
}

impl Face {
    /// The command line that tries a model.
    fn write_command(self, model: &str) -> String {
        match self {
            Self::Run => format!("agent run -m {model} \"Show me around\""),
            Self::Chat => format!("agent -m {model}"),
        }
    }
}

/// The most keys that are named.
const MOST_KEYS: usize = 3;

/// The error of a model that has neither a key nor a server that works without one.
/// `keys_set` are the environment variables with providers' keys that are set.
pub(super) async fn no_model(net: &Net, id: &str, keys_set: &[&str]) -> ModelError {
    let advice = advise_setup(&probe_local(net).await, keys_set, Face::Run);
    ModelError::new(ModelErrorKind::Authentication, id, format!("no model is configured. {advice}"))
}

/// The next step: one line for each key that is set, and three for the rest.
pub fn advise_setup(servers: &[LocalServer], keys_set: &[&str], face: Face) -> String {
    let by_key = PROVIDERS.iter().filter_map(|provider| {
        let key = provider.keys.iter().find(|key| keys_set.contains(key))?;
        Some(format!(
            "{key} is set: {}\n",
            face.write_command(&format!("{}/{}", provider.id, choose_small(provider)?))
        ))
    });
    let by_key: String = by_key.take(MOST_KEYS).collect();
    let local = match servers {
        [] => {
            "set OPENAI_BASE_URL to its address (no server answers on the usual ports of this machine)".to_owned()
        }
        found => {
            let found: Vec<String> = found
                .iter()
                .map(|server| {
                    let model = server.models.first().map_or(String::new(), |id| format!(" AGENT_MODEL={id}"));
                    format!("OPENAI_BASE_URL={}{model} ({} answers there)", server.base_url, server.name)
                })
                .collect();
            format!("set {}", found.join(", or "))
        }
    };
    format!(
        "{by_key}For OpenAI: set OPENAI_API_KEY, or keep it with agent key set openai (AGENT_MODEL names another model)\n\
         For a server of your own: {local}\n\
         To try it without either: {}",
        face.write_command("demo")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_has_three_lines_and_names_what_answers() {
        let server = LocalServer {
            name: "Ollama",
            base_url: "http://127.0.0.1:11434/v1".to_owned(),
            models: vec!["qwen3:8b".to_owned()],
        };
        for servers in [vec![], vec![server]] {
            let text = advise_setup(&servers, &["HF_TOKEN"], Face::Run);
            assert_eq!(text.lines().count(), 3, "{text}");
            assert!(text.contains("-m demo"), "{text}");
            assert_eq!(text.contains("AGENT_MODEL=qwen3:8b"), !servers.is_empty(), "{text}");
        }
    }

    #[test]
    fn every_key_that_is_set_is_a_command_to_try() {
        let text = advise_setup(&[], &["GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"], Face::Run);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "ANTHROPIC_API_KEY is set: agent run -m anthropic/claude-haiku-5-5 \"Show me around\"",
                "GEMINI_API_KEY is set: agent run -m google/gemini-3.8-flash \"Show me around\"",
            ]
        );
        assert_eq!(lines.len(), 5, "{text}");
        let all: Vec<&str> = crate::model::catalogue::providers::list_keys().collect();
        assert_eq!(advise_setup(&[], &all, Face::Chat).lines().count(), 6);
    }
}
