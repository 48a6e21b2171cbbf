//! The table of failures: the codes and words by which servers report each, and the class of it, which is that of the
//! first row that holds. What a refused request is about stands in `subjects.rs`. For a new wording, add a line here.

use super::class::FailureClass;
use super::row::{RefusalRow, define_class};

/// Words of limits that waiting lifts.
const THROTTLED: &[&str] = &["rate limit", "rate_limit", "ratelimit", "too many requests", "throttl"];

/// The rows. Words are in lower case.
pub(super) const CLASSES: &[RefusalRow] = &[
    define_class(
        FailureClass::Quota,
        // 1308, 1113: the plan and the balance of Z.ai.
        &["1308", "1113", "billing_error", "enforced_spend_limit_reached"],
        &[
            "insufficient_quota",
            "billing_hard_limit",
            "billing_not_active",
            "insufficient balance",
            "insufficient credits",
            "credit balance is too low",
            "arrearage",
            "spend limit",
            "api usage limits",
            "usage limit reached",
            "usage limit has been reached",
            "usage_limit_reached",
            "usage_limit_exceeded",
            "usage_not_included",
            // GitHub Models: so many requests a day
            "bymodelbyday",
            "余额不足",
        ],
    ),
    define_class(
        FailureClass::Overflow,
        // 1261: Z.ai.
        &["1261", "request_too_large", "too_many_prompt_tokens"],
        &[
            "context_length_exceeded",
            "context length exceeded",
            "exceed_context_size",
            "contextwindowexceeded",
            "context_window_exceeded",
            // OpenAI, DeepSeek, vLLM, OpenRouter, Mistral
            "maximum context length",
            "exceeds the context window",
            // vLLM, SGLang, Together
            "maximum model length",
            "context length is only",
            "max_tokens must be at least 1, got -",
            "longer than the model's context",
            // llama.cpp
            "exceeds the available context size",
            "context size has been exceeded",
            "configured context size is",
            // LiteLLM, MiniMax
            "context window exceeded",
            "context window exceeds",
            "exceeds context window",
            // Ollama
            "exceeds the context length",
            "exceeded max context length",
            "exceeds maximum context",
            // LM Studio
            "context the overflows",
            "cannot truncate prompt",
            "greater than the context length",
            "context overflow",
            // Qwen
            "range of input length should be",
            "range of prompt length should be",
            "input length should be",
            // Gemini
            "exceeds the maximum number of tokens allowed",
            "input context is too long",
            // Anthropic and what speaks like it
            "prompt is too long",
            "prompt too long",
            "exceed context limit",
            "input is too long",
            // xAI, GLM, Kimi, Groq, GitHub Copilot
            "maximum prompt length",
            "prompt exceeds max length",
            "exceeded model token limit",
            "model max length exceeded",
            "reduce the length of the messages",
            "request too large for",
            "prompt token count of",
            // Perplexity
            "total length of all messages is too long",
            // bytes
            "exceeds maximum allowed content length",
            "request body size exceeds",
        ],
    ),
    RefusalRow { unless: THROTTLED, ..define_class(FailureClass::Overflow, &[], &["too many tokens"]) },
    define_class(
        FailureClass::Wire,
        &["unsupported_api"],
        &["use /v1/responses", "not a chat model", "only supported in v1/responses"],
    ),
    define_class(
        FailureClass::Tools,
        &[],
        &[
            // Ollama
            "does not support tools",
            "does not support function calling",
            "does not support tool calling",
            "tool use is not supported",
            "tool calling is not supported",
            "tools are not supported",
            "function calling is not supported",
            "function calling is not enabled",
            // OpenRouter
            "support tool use",
            // vLLM, llama.cpp
            "--enable-auto-tool-choice",
            "requires --jinja",
        ],
    ),
    define_class(
        FailureClass::Model,
        &["model_not_found", "invalid_model"],
        &[
            "model not exist",
            "no such model",
            "unknown model",
            "unknown_model",
            "invalid model name",
            "is not a valid model",
            // xAI, DeepSeek
            "model not found:",
            "supported api model names are",
        ],
    ),
    RefusalRow {
        statuses: &[400, 403, 404],
        with: &["model"],
        ..define_class(FailureClass::Model, &[], &["does not exist", "not_found_error", "do not have access to"])
    },
    RefusalRow {
        statuses: &[404],
        with: &["model"],
        ..define_class(FailureClass::Model, &[], &["not found", "could not be found"])
    },
    // NVIDIA NIM, Cloudflare
    RefusalRow { statuses: &[404], ..define_class(FailureClass::Model, &[], &["not found for account"]) },
    define_class(FailureClass::Address, &[], &["could not route to"]),
    define_class(
        FailureClass::Filter,
        &["content_filter"],
        &[
            "content_policy_violation",
            "content management policy",
            "responsibleaipolicyviolation",
            "data_inspection_failed",
            "inappropriate content",
            "input was flagged",
        ],
    ),
    RefusalRow {
        // MiniMax says the same of results without their calls.
        unless: &["tool result"],
        ..define_class(
            FailureClass::Refused,
            &["invalid_prompt", "bio_policy", "misalignment_policy_violation"],
            &["usage policy", "usage policies"],
        )
    },
    define_class(FailureClass::Call, &["tool_use_failed"], &[]),
    // llama.cpp and Ollama report these with a 500, but a retry does not help.
    define_class(
        FailureClass::Request,
        &[],
        &[
            "image input is not supported",
            "failed to load image",
            "image: unknown format",
            // The model's template, which runs into an order or a role that it does not know.
            "jinja",
            "raise_exception",
            "role not supported",
        ],
    ),
    // OpenRouter knows the address and the model, but nobody who serves this request.
    define_class(FailureClass::Request, &[], &["no endpoints found"]),
    define_class(
        FailureClass::Authentication,
        &[],
        &[
            "invalid_api_key", "incorrect api key", "invalid api key", "api key not valid", "api key not found",
            "authentication_error", "authenticationerror", "permission_error", "unauthenticated",
        ],
    ),
    // A quota per minute is refilled, and then the server says when.
    RefusalRow {
        unless: &["resource_exhausted", "per minute", "per second", "retry in", "try again in"],
        ..define_class(
            FailureClass::Quota,
            &[],
            &["quota exceeded", "exceeded your quota", "exceeded your current quota"],
        )
    },
    RefusalRow { statuses: &[429], ..define_class(FailureClass::RateLimit, &["resource_exhausted"], THROTTLED) },
    RefusalRow {
        statuses: &[400, 429, 500, 503, 529],
        ..define_class(FailureClass::Overloaded, &[], &["overloaded", "at capacity", "degraded function"])
    },
    // In mid-stream there are only the words.
    RefusalRow {
        statuses: &[400],
        ..define_class(
            FailureClass::Request,
            // Responses, about pictures and accounts
            &["data_residency_mismatch", "image_parse_error", "empty_image_file", "failed_to_download_image"],
            &[
                "invalid_request", "bad_request", "badrequest", "invalid_argument",
                // xAI
                "invalid argument", "not_found_error", "invalid_image", "invalid_base64_image",
                "unsupported_image", "image_too_", "image_file_",
            ],
        )
    },
];
