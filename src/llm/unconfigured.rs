//! The error for somebody who has configured no model: the next step, and the servers that answer on this machine.

use super::local::{LocalServer, probe_local};
use crate::contract::{ModelError, ModelErrorKind};
use crate::net::Net;

/// The error of a model that has neither a key nor a server that works without one.
pub(super) async fn no_model(net: &Net, id: &str) -> ModelError {
    ModelError {
        kind: ModelErrorKind::Authentication,
        status: None,
        message: advice(&probe_local(net).await),
        model: id.to_owned(),
        retry_after: None,
    }
}

/// The next step, in three lines.
fn advice(servers: &[LocalServer]) -> String {
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
        "no model is configured. For OpenAI: set OPENAI_API_KEY (AGENT_MODEL names another model than gpt-5-mini)\n\
         For a server of your own: {local}\n\
         To try it without either: agent run -m demo \"Show me around\""
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
            let text = advice(&servers);
            assert_eq!(text.lines().count(), 3, "{text}");
            assert!(text.contains("-m demo"), "{text}");
            assert_eq!(text.contains("AGENT_MODEL=qwen3:8b"), !servers.is_empty(), "{text}");
        }
    }
}
