//! The table of failures and refusals: the codes and words by which servers report them, and what they mean: the class of
//! a failure, and what a refused request is about, which is a field of it that a remedy can leave out or replace
//! (`learn.rs`), or a part of the conversation. Words are in lower case. For a new wording, add it here, and the answer
//! it comes from to `tests/refusal_cases`.

use super::class::FailureClass;
use super::row::{RefusalRow, RefusalSubject, Remedy, define_class, define_field, define_part, define_remedy};

/// Words of limits that waiting lifts.
const THROTTLED: &str = "rate limit|rate_limit|ratelimit|too many requests|throttl";

/// The classes; the first row that holds decides.
pub(super) const CLASSES: &[RefusalRow] = &[
    define_class(
        FailureClass::Quota,
        // 1308, 1113: the plan and the balance of Z.ai.
        &["1308", "1113", "billing_error", "enforced_spend_limit_reached"],
        "insufficient_quota|billing_hard_limit|billing_not_active|insufficient balance|\
            insufficient credits|credit balance is too low|arrearage|spend limit|api usage limits|\
            usage limit reached|usage limit has been reached|usage_limit_reached|usage_limit_exceeded|\
            usage_not_included|bymodelbyday|余额不足",
    ),
    define_class(
        FailureClass::Overflow,
        // 1261: Z.ai.
        &["1261", "request_too_large", "too_many_prompt_tokens"],
        "context_length_exceeded|context length exceeded|exceed_context_size|contextwindowexceeded|\
            context_window_exceeded|maximum context length|exceeds the context window|maximum model length|\
            context length is only|max_tokens must be at least 1, got -|longer than the model's context|\
            exceeds the available context size|context size has been exceeded|configured context size is|\
            context window exceeded|context window exceeds|exceeds context window|\
            exceeds the context length|exceeded max context length|exceeds maximum context|\
            context the overflows|cannot truncate prompt|greater than the context length|context overflow|\
            range of input length should be|range of prompt length should be|input length should be|\
            exceeds the maximum number of tokens allowed|input context is too long|prompt is too long|\
            prompt too long|exceed context limit|input is too long|maximum prompt length|\
            prompt exceeds max length|exceeded model token limit|model max length exceeded|\
            reduce the length of the messages|request too large for|prompt token count of|\
            total length of all messages is too long|exceeds maximum allowed content length|\
            request body size exceeds",
    ),
    RefusalRow { unless: THROTTLED, ..define_class(FailureClass::Overflow, &[], "too many tokens") },
    define_class(
        FailureClass::Wire,
        &["unsupported_api"],
        "use /v1/responses|not a chat model|only supported in v1/responses",
    ),
    define_class(
        FailureClass::Tools,
        &[],
        "does not support tools|does not support function calling|does not support tool calling|\
            tool use is not supported|tool calling is not supported|tools are not supported|\
            function calling is not supported|function calling is not enabled|support tool use|\
            --enable-auto-tool-choice|requires --jinja",
    ),
    define_class(
        FailureClass::Model,
        &["model_not_found", "invalid_model"],
        "model not exist|no such model|unknown model|unknown_model|invalid model name|\
            is not a valid model|model not found:|supported api model names are|\
            provided model identifier is invalid|with on-demand throughput|reached the end of its life",
    ),
    RefusalRow {
        statuses: &[400, 403, 404],
        with: &["model"],
        ..define_class(FailureClass::Model, &[], "does not exist|not_found_error|do not have access to")
    },
    RefusalRow {
        statuses: &[404],
        with: &["model"],
        ..define_class(FailureClass::Model, &[], "not found|could not be found")
    },
    // NVIDIA NIM, Cloudflare
    RefusalRow { statuses: &[404], ..define_class(FailureClass::Model, &[], "not found for account") },
    define_class(FailureClass::Address, &[], "could not route to"),
    define_class(
        FailureClass::Filter,
        &["content_filter"],
        "content_policy_violation|content management policy|responsibleaipolicyviolation|\
            data_inspection_failed|inappropriate content|input was flagged",
    ),
    RefusalRow {
        // MiniMax says the same of results without their calls.
        unless: "tool result",
        ..define_class(
            FailureClass::Refused,
            &["invalid_prompt", "bio_policy", "misalignment_policy_violation"],
            "usage policy|usage policies",
        )
    },
    define_class(FailureClass::Call, &["tool_use_failed"], ""),
    // llama.cpp and Ollama report these with a 500, but a retry does not help.
    define_class(
        FailureClass::Request,
        &[],
        "image input is not supported|failed to load image|image: unknown format|jinja|raise_exception|\
            role not supported",
    ),
    // OpenRouter knows the address and the model, but nobody who serves this request.
    define_class(FailureClass::Request, &[], "no endpoints found"),
    define_class(
        FailureClass::Authentication,
        &[],
        "invalid_api_key|incorrect api key|invalid api key|api key not valid|api key not found|\
            authentication_error|authenticationerror|permission_error|unauthenticated",
    ),
    // A quota per minute is refilled, and then the server says when.
    RefusalRow {
        unless: "resource_exhausted|per minute|per second|retry in|try again in",
        ..define_class(FailureClass::Quota, &[], "quota exceeded|exceeded your quota|exceeded your current quota")
    },
    RefusalRow { statuses: &[429], ..define_class(FailureClass::RateLimit, &["resource_exhausted"], THROTTLED) },
    RefusalRow {
        statuses: &[400, 429, 500, 503, 529],
        ..define_class(FailureClass::Overloaded, &[], "overloaded|at capacity|degraded function")
    },
    // In mid-stream there are only the words.
    RefusalRow {
        statuses: &[400],
        ..define_class(
            FailureClass::Request,
            // Responses, about pictures and accounts
            &["data_residency_mismatch", "image_parse_error", "empty_image_file", "failed_to_download_image"],
            "invalid_request|bad_request|badrequest|invalid_argument|invalid argument|not_found_error|\
            invalid_image|invalid_base64_image|unsupported_image|image_too_|image_file_",
        )
    },
];

/// What a refused request is about, the most specific first: some refusals also name a parameter that is not their
/// subject. All rows that hold are tried until one changes something.
pub(super) const SUBJECTS: &[RefusalRow] = &[
    define_remedy(Remedy::StopEcho, "refuses earlier reasoning", "bound to a different conversation"),
    RefusalRow {
        with: &["thinking|thought|reasoning|verif|decrypt|organization"],
        ..define_remedy(
            Remedy::Signatures,
            "refuses earlier reasoning",
            "signature|encrypted_content|encrypted content",
        )
    },
    define_remedy(
        Remedy::StopEcho,
        "refuses earlier reasoning",
        "without its required following item|items are not persisted|duplicate item found",
    ),
    define_field(Remedy::Instructions, "takes no instructions", "instructions"),
    define_remedy(
        Remedy::ToResponses,
        "calls tools over Responses",
        "function tools with reasoning_effort|use /v1/responses|not a chat model|\
            only supported in v1/responses",
    ),
    define_remedy(
        Remedy::EchoAlways,
        "wants its reasoning back",
        "must be passed back|reasoning_content is missing|reasoning_content in the thinking",
    ),
    define_remedy(Remedy::Betas, "does not know a beta", "anthropic-beta|beta flag"),
    define_remedy(
        Remedy::OutputLimit,
        "writes no reply as long",
        "max_tokens: |maximum allowed number of output tokens|max_tokens is too large|\
            max_completion_tokens is too large",
    ),
    RefusalRow {
        with: &["enabled"],
        ..define_remedy(Remedy::ThinkingType, "thinks in another way", "thinking.type|thinking type")
    },
    define_field(Remedy::EffortField, "knows no levels of effort", "output_config.effort|output_config: effort"),
    define_field(Remedy::EagerStream, "does not stream arguments early", "eager_input_streaming"),
    define_field(Remedy::ThinkingDisplay, "does not know thinking.display", "thinking.display|display:"),
    define_field(Remedy::ParallelSwitch, "does not know disable_parallel_tool_use", "disable_parallel_tool_use"),
    define_remedy(Remedy::ToolChoice, "does not know this tool_choice", "tool_choice|tool choice"),
    define_remedy(
        Remedy::UserAfterResults,
        "refuses a user's words after results",
        "unexpected role 'user' after role 'tool'|role 'tool' must be followed|after tool",
    ),
    // A model that takes no pictures at all: where one picture is at fault, it alone is left out
    // (`agent/turn/refused_pictures.rs`).
    define_remedy(
        Remedy::Blind,
        "does not see",
        "unknown variant `image_url`|image input is not supported|image inputs are not supported|\
            images are not supported|image_url is not supported|not support image|n't support image|\
            support image input|accept image|only supported by certain models|content must be a string|\
            value must be a string|not a multimodal model|not multimodal|not a vision model|\
            not support vision|vision is not supported|not support multimodal|data required for image input",
    ),
    define_field(Remedy::StreamOptions, "does not know stream_options", "stream_options|stream options"),
    RefusalRow {
        with: &["max_completion_tokens|unsupported|unrecognized|unknown|not permitted"],
        ..define_field(Remedy::NotMaxTokens, "takes no max_tokens", "max_tokens")
    },
    define_field(Remedy::NotMaxCompletionTokens, "takes no max_completion_tokens", "max_completion_tokens"),
    define_field(Remedy::ParallelField, "does not know parallel_tool_calls", "parallel_tool_calls|parallel tool"),
    define_field(Remedy::Temperature, "takes no temperature", "temperature"),
    define_field(
        Remedy::Summaries,
        "gives no summaries of its reasoning",
        "reasoning.summary|reasoning summar|generate reasoning summaries",
    ),
    define_field(
        Remedy::EncryptedReasoning,
        "does not hand out its reasoning",
        "reasoning.encrypted_content|include",
    ),
    define_field(
        Remedy::Effort,
        "does not know this reasoning_effort",
        "reasoning|effort|thinking|valid levels|chat_template",
    ),
    define_field(
        Remedy::AnswerFormat,
        "does not enforce this schema",
        "response_format|json_schema|output_format|output_config.format|text.format|structured output|\
            response mime type|response_mime_type|response_json_schema",
    ),
    define_field(Remedy::StrictTools, "knows no strict tools", "strict"),
    define_remedy(
        Remedy::LooserSchemas,
        "does not compile these schemas",
        "schema is too complex|too many optional parameters|too many strict tools|\
            invalid schema for function",
    ),
    define_remedy(
        Remedy::RefusedTool,
        "refuses a tool",
        "tools.|tools[|function_declarations[|schema for function|for function '|tool schema",
    ),
    define_field(Remedy::CacheKey, "does not know prompt_cache_key", "prompt_cache_key"),
    define_field(Remedy::CacheMarks, "knows no marks for its cache", "cache_control"),
    // Parts of the conversation.
    RefusalRow {
        with: &["image"],
        ..define_part(RefusalSubject::PictureCount, "too many|image(s)|images may|number of images|images >")
    },
    define_part(RefusalSubject::Picture, "image"),
    define_part(
        RefusalSubject::Content,
        "content|flagged|inappropriate|moderation|unsafe|prohibited|usage polic|invalid_prompt|\
            data_inspection|could not process|invalid character|surrogate|utf-8|unicode",
    ),
];
