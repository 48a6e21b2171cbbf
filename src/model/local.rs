//! Finds the model servers that answer on this machine, for the message to a user who has configured none.

use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;

use crate::safety::net::{self, Net};

/// A server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// The program that usually listens on this port.
    pub name: &'static str,
    /// For `base_url`.
    pub base_url: String,
    /// The models that it offers, in the server's order.
    pub models: Vec<String>,
}

/// The models that a server on this machine offers, in its order; `None` if it does not answer within two seconds.
pub async fn list_served(net: &Net, base_url: &str) -> Option<Vec<String>> {
    ask_for_models(net, base_url, Duration::from_secs(2)).await
}

const USUAL: [(&str, u16); 4] = [("Ollama", 11434), ("llama.cpp", 8080), ("LM Studio", 1234), ("vLLM", 8000)];

/// Asks the usual ports of this machine, all at once, and waits 150 ms at most.
pub async fn probe_local(net: &Net) -> Vec<LocalServer> {
    let probes = USUAL.map(async |(name, port)| {
        let base_url = format!("http://127.0.0.1:{port}/v1");
        let models = ask_for_models(net, &base_url, Duration::from_millis(150)).await?;
        Some(LocalServer { name, base_url, models })
    });
    join_all(probes).await.into_iter().flatten().collect()
}

async fn ask_for_models(net: &Net, base_url: &str, patience: Duration) -> Option<Vec<String>> {
    let url = net::parse_url(&format!("{base_url}/models")).ok()?;
    let client = net.client(&url, patience).ok()?;
    let response = client.get(url).timeout(patience).send().await.ok()?;
    model_ids(&response.bytes().await.ok()?)
}

/// The ids in a list of models; `None` for any other answer.
fn model_ids(body: &[u8]) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct ServedModels {
        object: Option<String>,
        data: Option<Vec<ServedModel>>,
    }
    #[derive(Deserialize)]
    struct ServedModel {
        id: String,
    }
    let list: ServedModels = serde_json::from_slice(body).ok()?;
    // Ollama says `null` when it has no model yet.
    let models = list.data.or_else(|| (list.object.as_deref() == Some("list")).then(Vec::new))?;
    Some(models.into_iter().map(|model| model.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_list_of_models_is_a_model_server() {
        for (body, ids) in [
            (
                r#"{"object":"list","data":[{"id":"qwen3"},{"id":"llama3.1:8b"}]}"#,
                Some(vec!["qwen3", "llama3.1:8b"]),
            ),
            (r#"{"data":[]}"#, Some(vec![])),
            (r#"{"object":"list","data":null}"#, Some(vec![])),
            (r#"{"status":"ok"}"#, None),
            ("<html>", None),
        ] {
            let ids = ids.map(|ids| ids.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(model_ids(body.as_bytes()), ids, "{body}");
        }
    }
}
