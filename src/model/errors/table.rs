//! The classes of failures, as data: the codes and words by which servers report each, and what to do then.
//!
//! For a new wording, add a line here. Words are in lower case.

use crate::model::ModelErrorKind;

/// A kind of failure, by what a person can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureClass {
    /// The key is missing, wrong or lacks permission.
    Authentication,
    RateLimit,
    /// A limit that waiting for a retry does not lift: money, a plan, a day.
    Quota,
    Overloaded,
    Server,
    /// The request is longer than the window.
    Overflow,
    /// The server does not know the model.
    Model,
    /// Nothing is served at this address.
    Address,
    /// The model cannot call tools, or its server cannot read calls.
    Tools,
    /// The model is served by another interface.
    Wire,
    /// A filter refused the request or ended the reply.
    Filter,
    /// The provider's rules forbid the request.
    Refused,
    /// The model wrote a call that the server could not read.
    Call,
    /// The request is wrong in another way.
    Request,
}

/// The signs of a class of failure.
pub(super) struct FailureRow {
    pub class: FailureClass,
    /// The statuses that it comes with; empty for any. An error in mid-stream may have none, which suits every row.
    statuses: &'static [u16],
    /// Whole words of the code.
    codes: &'static [&'static str],
    /// Words in the code or the message, one of which is enough.
    marks: &'static [&'static str],
    /// Words that must all occur as well.
    with: &'static [&'static str],
    /// Words that rule it out.
    unless: &'static [&'static str],
}

impl FailureRow {
    /// True if a failure is of this class; code and words are in lower case.
    pub fn holds(&self, status: Option<u16>, code: &str, words: &str) -> bool {
        let any = |marks: &[&str]| marks.iter().any(|mark| words.contains(mark));
        let suits = self.statuses.is_empty() || status.is_none_or(|status| self.statuses.contains(&status));
        let by_code = || code.split(' ').any(|word| self.codes.contains(&word));
        let by_words = || any(self.marks) && self.with.iter().all(|word| words.contains(word));
        suits && (by_code() || by_words()) && !any(self.unless)
    }
}

impl FailureClass {
    /// The kind that decides how the program continues.
    pub fn kind(self) -> ModelErrorKind {
        match self {
            Self::Authentication => ModelErrorKind::Authentication,
            Self::RateLimit => ModelErrorKind::RateLimit,
            Self::Quota => ModelErrorKind::Quota,
            Self::Overloaded | Self::Server => ModelErrorKind::Transient,
            Self::Overflow => ModelErrorKind::ContextTooLong,
            Self::Call => ModelErrorKind::Incomplete,
            Self::Model
            | Self::Address
            | Self::Tools
            | Self::Wire
            | Self::Filter
            | Self::Refused
            | Self::Request => ModelErrorKind::BadRequest,
        }
    }

    /// The server's words between their meaning and the advice, which add no numbers to them.
    pub fn words(self, said: &str, model: &str) -> String {
        let said = if said.is_empty() { "the server gave no reason" } else { said };
        let before = match self {
            Self::Model => format!("the server has no model `{model}`: "),
            Self::Filter => "a content filter of the provider refused this: ".to_owned(),
            Self::Refused => "the provider's rules forbid this request: ".to_owned(),
            _ => String::new(),
        };
        let advice = self.advice();
        if advice.is_empty() {
            return format!("{before}{said}");
        }
        let end = if said.ends_with(['.', '!', '?']) { "" } else { "." };
        format!("{before}{said}{end} {advice}")
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Authentication => {
                "Check the key (`api_key` in the model file, or its variable) and whether it may use this model."
            }
            Self::Quota => "Check the plan and the balance of the account, or use another model (-m).",
            Self::Overloaded => "Try again later, or use another model (-m).",
            Self::Model => "`agent model list` shows the known names; `model` in the model file sets it.",
            Self::Address => {
                "Check `base_url` in the model file: most end with `/v1`, none with `/chat/completions`."
            }
            Self::Tools => {
                "Set `capabilities: { tools: false }` in the model file, or use a model that can call tools (-m)."
            }
            Self::Wire => "Set `wire: responses` in the model file.",
            Self::Filter | Self::Refused => "Put the request in other words, or use another model (-m).",
            Self::RateLimit | Self::Server | Self::Overflow | Self::Call | Self::Request => "",
        }
    }
}

/// A row that suits any status and any other words.
const fn define_row(
    class: FailureClass,
    codes: &'static [&'static str],
    marks: &'static [&'static str],
) -> FailureRow {
    FailureRow { class, statuses: &[], codes, marks, with: &[], unless: &[] }
}

/// Words of limits that waiting lifts.
const THROTTLED: &[&str] = &["rate limit", "rate_limit", "ratelimit", "too many requests", "throttl"];

/// The rows; the first that matches decides.
pub(super) const ROWS: &[FailureRow] = &[
    define_row(
        FailureClass::Quota,
        // 1308: the plan of Z.ai.
        &["1308", "billing_error", "enforced_spend_limit_reached"],
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
        ],
    ),
    define_row(
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
    FailureRow { unless: THROTTLED, ..define_row(FailureClass::Overflow, &[], &["too many tokens"]) },
    define_row(
        FailureClass::Wire,
        &["unsupported_api"],
        &["use /v1/responses", "not a chat model", "only supported in v1/responses"],
    ),
    define_row(
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
    define_row(
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
    FailureRow {
        statuses: &[400, 403, 404],
        with: &["model"],
        ..define_row(FailureClass::Model, &[], &["does not exist", "not_found_error", "do not have access to"])
    },
    FailureRow {
        statuses: &[404],
        with: &["model"],
        ..define_row(FailureClass::Model, &[], &["not found", "could not be found"])
    },
    define_row(
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
    define_row(
        FailureClass::Refused,
        &["invalid_prompt", "bio_policy", "misalignment_policy_violation"],
        &["usage policy", "usage policies"],
    ),
    define_row(FailureClass::Call, &["tool_use_failed"], &[]),
    // llama.cpp and Ollama report these with a 500, but a retry does not help.
    define_row(
        FailureClass::Request,
        &[],
        &["image input is not supported", "failed to load image", "image: unknown format"],
    ),
    // OpenRouter knows the address and the model, but nobody who serves this request.
    define_row(FailureClass::Request, &[], &["no endpoints found"]),
    define_row(
        FailureClass::Authentication,
        &[],
        &[
            "invalid_api_key",
            "incorrect api key",
            "invalid api key",
            "api key not valid",
            "api key not found",
            "authentication_error",
            "authenticationerror",
            "permission_error",
            "unauthenticated",
        ],
    ),
    // A quota per minute is refilled, and then the server says when.
    FailureRow {
        unless: &["resource_exhausted", "per minute", "per second", "retry in", "try again in"],
        ..define_row(
            FailureClass::Quota,
            &[],
            &["quota exceeded", "exceeded your quota", "exceeded your current quota"],
        )
    },
    FailureRow { statuses: &[429], ..define_row(FailureClass::RateLimit, &["resource_exhausted"], THROTTLED) },
    FailureRow {
        statuses: &[500, 503, 529],
        ..define_row(FailureClass::Overloaded, &[], &["overloaded", "at capacity"])
    },
    // In mid-stream there are only the words.
    FailureRow {
        statuses: &[400],
        ..define_row(
            FailureClass::Request,
            // Responses, about pictures and accounts
            &["data_residency_mismatch", "image_parse_error", "empty_image_file", "failed_to_download_image"],
            &[
                "invalid_request",
                "bad_request",
                "badrequest",
                "invalid_argument",
                // xAI
                "invalid argument",
                "not_found_error",
                "invalid_image",
                "invalid_base64_image",
                "unsupported_image",
                "image_too_",
                "image_file_",
            ],
        )
    },
];
