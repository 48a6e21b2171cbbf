//! Claude in the clouds of others. Amazon Bedrock (`InvokeModel`) and Google Vertex AI (`rawPredict`) take the body of the
//! Messages API without the model, which the path names, and with a version of their own.

use serde::Deserialize;

use crate::base::digest::percent_encode;

/// The cloud that serves the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaudeCloud {
    Bedrock,
    Vertex,
}

impl ClaudeCloud {
    /// `anthropic_version` of the body.
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::Bedrock => "bedrock-2023-05-31",
            Self::Vertex => "vertex-2023-10-16",
        }
    }

    /// The path of a request below that of the base URL.
    pub fn choose_path(self, base: &str, model: &str, streaming: bool) -> String {
        match self {
            Self::Bedrock => {
                let method = if streaming { "invoke-with-response-stream" } else { "invoke" };
                format!("{base}/model/{}/{method}", percent_encode(model, b""))
            }
            Self::Vertex => {
                let base = base.strip_suffix("/endpoints/openapi").unwrap_or(base);
                let method = if streaming { "streamRawPredict" } else { "rawPredict" };
                format!("{base}/publishers/anthropic/models/{model}:{method}")
            }
        }
    }
}
