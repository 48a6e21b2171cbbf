//! The wires behind one interface.

use super::asked::OutgoingRequest;
use super::decode::Decode;
use super::dialect::{Auth, Dialect};
use super::history::Pictures;
use super::{anthropic, chat, gemini, ollama, responses};
use crate::config::Wire;
use crate::model::ToolDefinition;

/// The ends of addresses of requests. A base URL that has one of them is meant without it.
pub const REQUEST_PATHS: [&str; 4] = ["/chat/completions", "/responses", "/messages", "/api/chat"];

/// The path of a request, and its query. `base` is the path of the base URL, without a slash at its end.
pub fn choose_path(
    wire: Wire,
    dialect: &Dialect,
    base: &str,
    model: &str,
    streaming: bool,
) -> (String, Option<&'static str>) {
    let path = match wire {
        Wire::Chat => format!("{base}/chat/completions"),
        Wire::Responses => format!("{base}/responses"),
        Wire::Anthropic if let Some(cloud) = dialect.anthropic.cloud => cloud.choose_path(base, model, streaming),
        // Messages are below a version, which few people write.
        Wire::Anthropic if base.ends_with("/v1") => format!("{base}/messages"),
        Wire::Anthropic => format!("{base}/v1/messages"),
        // People know the address of its imitation of chat completions.
        Wire::Ollama => {
            format!("{}/api/chat", base.strip_suffix("/v1").or(base.strip_suffix("/api")).unwrap_or(base))
        }
        Wire::Gemini => {
            let base = base.strip_suffix("/openai").unwrap_or(base);
            let base = if base.is_empty() { "/v1beta" } else { base };
            let folder = if model.contains('/') { "" } else { "models/" };
            let (method, query) =
                if streaming { ("streamGenerateContent", Some("alt=sse")) } else { ("generateContent", None) };
            return (format!("{base}/{folder}{model}:{method}"), query);
        }
    };
    (path, None)
}

/// The header that carries the key if the dialect names none.
pub fn choose_auth(wire: Wire) -> Auth {
    match wire {
        Wire::Chat | Wire::Responses | Wire::Ollama => Auth::Bearer,
        Wire::Anthropic => Auth::XApiKey,
        Wire::Gemini => Auth::XGoogApiKey,
    }
}

/// The way that pictures in results are sent to a model that sees.
pub fn place_pictures(wire: Wire, dialect: &Dialect) -> Pictures {
    match wire {
        Wire::Chat => dialect.chat.pictures,
        Wire::Responses => dialect.responses.pictures,
        Wire::Anthropic => Pictures::InResults,
        Wire::Ollama => Pictures::AfterResults,
        Wire::Gemini => dialect.gemini.pictures,
    }
}

/// True if the server takes PDFs.
pub fn takes_documents(wire: Wire, dialect: &Dialect) -> bool {
    match wire {
        Wire::Chat => dialect.chat.documents,
        Wire::Responses => dialect.responses.documents,
        Wire::Anthropic => dialect.anthropic.documents,
        Wire::Ollama => false,
        Wire::Gemini => true,
    }
}

/// True if the user may speak right after results.
pub fn user_after_results(wire: Wire, dialect: &Dialect) -> bool {
    wire != Wire::Chat || dialect.chat.user_after_results
}

/// True if the server is asked to hold the answer to a schema.
pub fn enforces_schemas(wire: Wire, dialect: &Dialect) -> bool {
    match wire {
        Wire::Chat => dialect.chat.answer_format != chat::AnswerFormat::Absent,
        Wire::Responses => dialect.responses.answer_format,
        Wire::Anthropic => dialect.anthropic.answer_format,
        Wire::Ollama => true,
        Wire::Gemini => dialect.gemini.answer_format,
    }
}

/// The body of a request.
pub fn encode_request(wire: Wire, asked: &OutgoingRequest<'_>, dialect: &Dialect) -> Vec<u8> {
    match wire {
        Wire::Chat => chat::encode_request(asked, &dialect.chat),
        Wire::Responses => responses::encode_request(asked, &dialect.responses),
        Wire::Anthropic => anthropic::encode_request(asked, &dialect.anthropic),
        Wire::Ollama => ollama::encode_request(asked),
        Wire::Gemini => gemini::encode_request(asked, &dialect.gemini),
    }
}

/// The headers that a request needs beside the key.
pub fn list_headers(wire: Wire, asked: &OutgoingRequest<'_>, dialect: &Dialect) -> Vec<(&'static str, String)> {
    if wire == Wire::Anthropic { anthropic::list_headers(asked, &dialect.anthropic) } else { Vec::new() }
}

/// A decoder for one reply to a request with these tools.
pub fn create_decoder(wire: Wire, dialect: &Dialect, tools: &[ToolDefinition]) -> Box<dyn Decode> {
    match wire {
        Wire::Chat => Box::new(chat::ChatDecoder::new(&dialect.chat, tools)),
        Wire::Responses => Box::new(responses::ResponsesDecoder::default()),
        Wire::Anthropic => Box::new(anthropic::AnthropicDecoder::new(&dialect.anthropic)),
        Wire::Ollama => Box::new(ollama::OllamaDecoder::default()),
        Wire::Gemini => Box::new(gemini::GeminiDecoder::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_requests_go() {
        for (wire, base, streams, address) in [
            (Wire::Chat, "/v1", true, "/v1/chat/completions"),
            (Wire::Responses, "/v1", true, "/v1/responses"),
            (Wire::Anthropic, "/v1", true, "/v1/messages"),
            (Wire::Anthropic, "/anthropic", true, "/anthropic/v1/messages"),
            (Wire::Ollama, "/v1", true, "/api/chat"),
            (Wire::Ollama, "", true, "/api/chat"),
            (Wire::Ollama, "/below/api", true, "/below/api/chat"),
            (Wire::Gemini, "/v1beta", true, "/v1beta/models/m:streamGenerateContent?alt=sse"),
            (Wire::Gemini, "/v1beta/openai", false, "/v1beta/models/m:generateContent"),
            (Wire::Gemini, "", false, "/v1beta/models/m:generateContent"),
        ] {
            let (path, query) = choose_path(wire, &Dialect::default(), base, "m", streams);
            let whole = query.map_or(path.clone(), |query| format!("{path}?{query}"));
            assert_eq!(whole, address, "{} at `{base}`", wire.name());
        }
        for (cloud, base, model, address) in [
            (
                "bedrock",
                "",
                "eu.anthropic.claude-opus-5-v1:0",
                "/model/eu.anthropic.claude-opus-5-v1%3A0/invoke-with-response-stream",
            ),
            (
                "vertex",
                "/v1/projects/p/locations/l",
                "claude-opus-5@20260901",
                "/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-5@20260901:streamRawPredict",
            ),
        ] {
            let dialect =
                serde_json::from_value(serde_json::json!({"anthropic": {"cloud": cloud}})).expect("a dialect");
            assert_eq!(choose_path(Wire::Anthropic, &dialect, base, model, true).0, address);
        }
        let (path, _) = choose_path(Wire::Gemini, &Dialect::default(), "/v1beta", "tunedModels/mine", false);
        assert_eq!(path, "/v1beta/tunedModels/mine:generateContent");
    }
}
