//! Turns texts into vectors: `POST {base_url}/embeddings`, with the server and the key of the model.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use crate::model::{Embedded, Embedder, ModelError, ModelErrorKind};

use super::endpoint::Endpoint;

/// A model behind a server that makes vectors.
pub(super) struct Embeddings {
    server: Endpoint,
    model: String,
    provider: &'static str,
}

#[derive(Deserialize)]
struct EmbeddingReply {
    data: Vec<EmbeddingItem>,
    #[serde(default)]
    usage: EmbeddingUsage,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: usize,
    embedding: Vec<f32>,
}

#[derive(Default, Deserialize)]
struct EmbeddingUsage {
    #[serde(default)]
    prompt_tokens: u64,
}

impl Embeddings {
    pub fn new(server: Endpoint, model: String, provider: &'static str) -> Self {
        Self { server, model, provider }
    }

    async fn request(&self, texts: &[String]) -> Result<Embedded, ModelError> {
        let body = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        let reply = self.server.post("/embeddings", body.to_string().into()).await?;
        let unusable = |why: String| self.server.error(ModelErrorKind::BadRequest, why);
        let EmbeddingReply { mut data, usage } = serde_json::from_slice(&reply)
            .map_err(|error| unusable(format!("the embeddings cannot be read: {error}")))?;
        data.sort_by_key(|item| item.index);
        if data.len() != texts.len() || data.iter().any(|item| item.embedding.is_empty()) {
            return Err(unusable(format!("{} texts were sent, {} embeddings came", texts.len(), data.len())));
        }
        let vectors = data.into_iter().map(|item| item.embedding).collect();
        Ok(Embedded { vectors, tokens: usage.prompt_tokens })
    }
}

impl Embedder for Embeddings {
    fn model(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> &str {
        self.provider
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embedded, ModelError>> {
        Box::pin(self.request(texts))
    }
}
