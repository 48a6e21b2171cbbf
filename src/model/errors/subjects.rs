//! What a refused request is about, by the words of the server: a field of it, which a remedy can leave out or replace
//! (`learn.rs`), or a part of the conversation. All rows that hold are tried, in order, until one changes something.
//! For a new wording, add a line here.

use super::row::{RefusalRow, RefusalSubject, Remedy, define_field, define_part, define_remedy};

/// The rows, the most specific first: some refusals also name a parameter that is not their subject. Words are in lower
/// case.
pub(super) const SUBJECTS: &[RefusalRow] = &[
    define_remedy(Remedy::StopEcho, "refuses earlier reasoning", &["bound to a different conversation"]),
    RefusalRow {
        with: &["thinking|thought|reasoning|verif|decrypt|organization"],
        ..define_remedy(
            Remedy::Signatures,
            "refuses earlier reasoning",
            &["signature", "encrypted_content", "encrypted content"],
        )
    },
    define_remedy(
        Remedy::StopEcho,
        "refuses earlier reasoning",
        &["without its required following item", "items are not persisted", "duplicate item found"],
    ),
    define_field(Remedy::Instructions, "takes no instructions", &["instructions"]),
    define_remedy(
        Remedy::ToResponses,
        "calls tools over Responses",
        &[
            "function tools with reasoning_effort",
            "use /v1/responses",
            "not a chat model",
            "only supported in v1/responses",
        ],
    ),
    define_remedy(
        Remedy::EchoAlways,
        "wants its reasoning back",
        &["must be passed back", "reasoning_content is missing", "reasoning_content in the thinking"],
    ),
    define_remedy(Remedy::Betas, "does not know a beta", &["anthropic-beta", "beta flag"]),
    define_remedy(
        Remedy::OutputLimit,
        "writes no reply as long",
        &[
            "max_tokens: ",
            "maximum allowed number of output tokens",
            "max_tokens is too large",
            "max_completion_tokens is too large",
        ],
    ),
    RefusalRow {
        with: &["enabled"],
        ..define_remedy(Remedy::ThinkingType, "thinks in another way", &["thinking.type", "thinking type"])
    },
    define_field(
        Remedy::EffortField,
        "knows no levels of effort",
        &["output_config.effort", "output_config: effort"],
    ),
    define_field(Remedy::EagerStream, "does not stream arguments early", &["eager_input_streaming"]),
    define_field(Remedy::ThinkingDisplay, "does not know thinking.display", &["thinking.display", "display:"]),
    define_field(
        Remedy::ParallelSwitch,
        "does not know disable_parallel_tool_use",
        &["disable_parallel_tool_use"],
    ),
    define_remedy(Remedy::ToolChoice, "does not know this tool_choice", &["tool_choice", "tool choice"]),
    define_remedy(
        Remedy::UserAfterResults,
        "refuses a user's words after results",
        &["unexpected role 'user' after role 'tool'", "role 'tool' must be followed", "after tool"],
    ),
    // A model that takes no pictures at all: where one picture is at fault, it alone is left out
    // (`agent/turn/refused_pictures.rs`).
    define_remedy(
        Remedy::Blind,
        "does not see",
        &[
            "unknown variant `image_url`",
            "image input is not supported",
            "image inputs are not supported",
            "images are not supported",
            "image_url is not supported",
            "not support image",
            "n't support image",
            "support image input",
            "accept image",
            "only supported by certain models",
            "content must be a string",
            "value must be a string",
            "not a multimodal model",
            "not multimodal",
            "not a vision model",
            "not support vision",
            "vision is not supported",
            "not support multimodal",
            "data required for image input",
        ],
    ),
    define_field(Remedy::StreamOptions, "does not know stream_options", &["stream_options", "stream options"]),
    RefusalRow {
        with: &["max_completion_tokens|unsupported|unrecognized|unknown|not permitted"],
        ..define_field(Remedy::NotMaxTokens, "takes no max_tokens", &["max_tokens"])
    },
    define_field(Remedy::NotMaxCompletionTokens, "takes no max_completion_tokens", &["max_completion_tokens"]),
    define_field(
        Remedy::ParallelField,
        "does not know parallel_tool_calls",
        &["parallel_tool_calls", "parallel tool"],
    ),
    define_field(Remedy::Temperature, "takes no temperature", &["temperature"]),
    define_field(
        Remedy::Summaries,
        "gives no summaries of its reasoning",
        &["reasoning.summary", "reasoning summar", "generate reasoning summaries"],
    ),
    define_field(
        Remedy::EncryptedReasoning,
        "does not hand out its reasoning",
        &["reasoning.encrypted_content", "include"],
    ),
    define_field(
        Remedy::Effort,
        "does not know this reasoning_effort",
        &["reasoning", "effort", "thinking", "valid levels", "chat_template"],
    ),
    define_field(
        Remedy::AnswerFormat,
        "does not enforce this schema",
        &[
            "response_format", "json_schema", "output_format", "output_config.format", "text.format",
            "structured output", "response mime type", "response_mime_type", "response_json_schema",
        ],
    ),
    define_field(Remedy::StrictTools, "knows no strict tools", &["strict"]),
    define_remedy(
        Remedy::LooserSchemas,
        "does not compile these schemas",
        &[
            "schema is too complex",
            "too many optional parameters",
            "too many strict tools",
            "invalid schema for function",
        ],
    ),
    define_remedy(
        Remedy::RefusedTool,
        "refuses a tool",
        &["tools.", "tools[", "function_declarations[", "schema for function", "for function '", "tool schema"],
    ),
    define_field(Remedy::CacheKey, "does not know prompt_cache_key", &["prompt_cache_key"]),
    define_field(Remedy::CacheMarks, "knows no marks for its cache", &["cache_control"]),
    // Parts of the conversation.
    RefusalRow {
        with: &["image"],
        ..define_part(
            RefusalSubject::PictureCount,
            &["too many", "image(s)", "images may", "number of images", "images >"],
        )
    },
    define_part(RefusalSubject::Picture, &["image"]),
    define_part(
        RefusalSubject::Content,
        &[
            "content", "flagged", "inappropriate", "moderation", "unsafe", "prohibited", "usage polic",
            "invalid_prompt", "data_inspection", "could not process", "invalid character", "surrogate", "utf-8",
            "unicode",
        ],
    ),
];
