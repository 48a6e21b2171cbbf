//! Turns texts into vectors: `POST {base_url}/embeddings`, with the server and the key of the model.

use serde::Deserialize;
use serde_json::json;

use crate::model::{ModelError, ModelErrorKind};

use super::endpoint::Endpoint;

/// A model behind a server that turns texts into vectors; texts with similar meanings get vectors that are close to
/// each other.
pub struct Embeddings {
    server: Endpoint,
    model: String,
}

#[derive(Deserialize)]
struct EmbeddingReply {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: usize,
    embedding: Vec<f32>,
}

impl Embeddings {
    pub(super) fn new(server: Endpoint, model: String) -> Self {
        Self { server, model }
    }

    /// One vector per text, in the order of the texts. One call is one request.
    ///
    /// # Errors
    /// The vectors did not arrive; the error says why, by kind.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let body = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        let reply = self.server.post("/embeddings", body.to_string().into()).await?;
        let unusable = |why: String| self.server.error(ModelErrorKind::BadRequest, why);
        let EmbeddingReply { mut data } = serde_json::from_slice(&reply)
            .map_err(|error| unusable(format!("the embeddings cannot be read: {error}")))?;
        data.sort_by_key(|item| item.index);
        if data.len() != texts.len() || data.iter().any(|item| item.embedding.is_empty()) {
            return Err(unusable(format!("{} texts were sent, {} embeddings came", texts.len(), data.len())));
        }
        Ok(data.into_iter().map(|item| item.embedding).collect())
    }
}
