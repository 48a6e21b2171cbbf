//! The kinds of failures, and the sentences about them.

use std::time::Duration;

use ModelErrorKind::{Authentication, BadRequest, ContextTooLong, Incomplete, Quota, RateLimit, Transient};

use super::*;

#[test]
fn kinds_by_status_and_code() {
    for (status, body, kind) in [
        (Some(401), r#"{"error":{"message":"no key"}}"#, Authentication),
        (Some(403), "forbidden", Authentication),
        (
            Some(400),
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}]"#,
            Authentication,
        ),
        (Some(402), "pay", Quota),
        (
            Some(429),
            r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#,
            Quota,
        ),
        (
            Some(429),
            r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota"}}"#,
            RateLimit,
        ),
        (Some(429), "slow down", RateLimit),
        (Some(408), "", Transient),
        (Some(409), "", Transient),
        (Some(500), "", Transient),
        (Some(500), "image input is not supported - hint: you may need to provide the mmproj", BadRequest),
        (Some(529), r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, Transient),
        (Some(400), r#"{"error":{"message":"max_tokens is too large: 99999"}}"#, BadRequest),
        (Some(404), "no such model", BadRequest),
        (Some(413), "", ContextTooLong),
        (Some(403), r#"{"error":{"code":"insufficient_quota","message":"no"}}"#, Quota),
        // Limits that no retry lifts, and one that a minute does.
        (Some(429), r#"{"error":{"code":"1308","message":"Usage limit reached for 5 hour"}}"#, Quota),
        (
            Some(429),
            r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached"}}"#,
            Quota,
        ),
        (
            Some(429),
            r#"{"error":{"type":"rate_limit_error","message":"no","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
            Quota,
        ),
        (
            Some(429),
            r#"{"error":{"code":"RateLimitReached","message":"Rate limit of 50 per 86400s exceeded for UserByModelByDay. Please wait 41230 seconds before retrying."}}"#,
            Quota,
        ),
        (Some(429), "Quota exceeded for this month", Quota),
        (Some(429), "Quota exceeded for metric requests. Please retry in 34.1s.", RateLimit),
        (Some(429), "Too many tokens, please wait: rate limit", RateLimit),
        (Some(429), "Rate limit reached on tokens per minute (TPM). Please try again in 1.2s.", RateLimit),
        (Some(400), r#"{"error":{"code":"tool_use_failed","message":"Failed to call a function."}}"#, Incomplete),
        (Some(307), "", BadRequest),
        // After HTTP 200.
        (Some(200), r#"{"error":{"code":502,"message":"Upstream failed"}}"#, Transient),
        (Some(200), r#"{"error":{"code":"429","message":"busy"}}"#, RateLimit),
        (None, r#"{"error":{"type":"rate_limit_error","message":"busy"}}"#, RateLimit),
        (None, r#"{"error":{"type":"invalid_request_error","message":"no"}}"#, BadRequest),
        (None, r#"{"error":{"type":"server_error","message":"oops"}}"#, Transient),
    ] {
        assert_eq!(classify_failure(status, &StatedError::read(body)), kind, "{status:?} {body}");
    }
}

#[test]
fn too_long_by_every_wording() {
    for message in [
        // OpenAI
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        // DeepSeek
        "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens.",
        // llama.cpp
        "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "Context size has been exceeded.",
        // vLLM
        "The decoder prompt (length 40960) is longer than the maximum model length of 32768.",
        // LiteLLM
        "litellm.ContextWindowExceededError: litellm.BadRequestError: too big",
        // Ollama
        "the input length exceeds the context length",
        "prompt too long; exceeded max context length by 12 tokens",
        // LM Studio
        "Trying to keep the first 5000 tokens when context the overflows. The model is loaded with 4096 tokens.",
        // Qwen
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
        // Gemini
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        // Anthropic
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        // Mistral, xAI, GLM, Kimi, Groq
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Prompt exceeds max length",
        "prompt token count of 9001 exceeds the limit of 8192",
        // others
        "invalid params, context window exceeds limit",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "Prompt has 9001 tokens, but the configured context size is 8192 tokens",
        "too many tokens",
        "Input is too long for requested model.",
        "exceeds maximum allowed content length. RequestSize(bytes): 9, Limit(bytes): 8",
        "Your request exceeded model token limit: 262144",
        "Please reduce the length of the messages or completion.",
        // Perplexity
        "The total length of all messages is too long.",
    ] {
        for status in [Some(400), Some(413), Some(500), None] {
            let said = StatedError { message: message.to_owned(), ..StatedError::default() };
            assert_eq!(classify_failure(status, &said), ContextTooLong, "{status:?} {message}");
        }
    }
    for code in ["context_length_exceeded", "exceed_context_size_error"] {
        let said = StatedError { code: code.to_owned(), ..StatedError::default() };
        assert_eq!(classify_failure(Some(400), &said), ContextTooLong, "{code}");
    }
}

#[test]
fn a_limit_on_the_reply_is_a_wrong_parameter() {
    for message in [
        // OpenAI
        "max_tokens is too large: 200000. This model supports at most 16384 completion tokens, whereas you \
         provided 200000.",
        "This model's maximum context length is 8192 tokens. However, you requested 100020 tokens (20 in the \
         messages, 100000 in the completion). Please reduce the length of the messages or completion.",
        // Anthropic, and what speaks like it
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for this model",
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        "input length and `max_tokens` exceed context limit: 190 + 200000 > 200000",
        // vLLM
        "'max_tokens' or 'max_completion_tokens' is too large: 100000. This model's maximum context length is \
         8192 tokens and your request has 20 input tokens (100000 > 8192 - 20).",
        // SGLang
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total \
         of 100020 tokens: 20 tokens from the input messages and 100000 tokens for the completion.",
        // OpenRouter
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 100050 tokens (50 \
         of text input, 100000 in the output). Please reduce the length of either one.",
        // llama.cpp
        "n_predict must be at least -1",
        // Mistral, Groq
        "max_tokens must be less than or equal to 32768",
        "`max_completion_tokens` must be less than or equal to `32768`, the maximum value for \
         `max_completion_tokens` is less than the `context_window` for this model",
        // Gemini
        "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is \
         from 1 (inclusive) to 65537 (exclusive). Update the value and try again.",
        // DeepSeek, Qwen
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
        // Other limits on length
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
        "Invalid 'tools': array too long. Expected an array with maximum length 128.",
    ] {
        for status in [Some(400), Some(422)] {
            let said = StatedError { message: message.to_owned(), ..StatedError::default() };
            assert_eq!(classify_failure(status, &said), BadRequest, "{status:?} {message}");
        }
    }
    // A request that would fit if it were shorter, however much is kept for the reply.
    for message in [
        "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 8192 \
         tokens and your request has 7000 input tokens (2000 > 8192 - 7000).",
        "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (4000 in the \
         messages, 1000 in the completion).",
    ] {
        let said = StatedError { message: message.to_owned(), ..StatedError::default() };
        assert_eq!(classify_failure(Some(400), &said), ContextTooLong, "{message}");
    }
}

#[test]
fn each_failure_says_what_to_do() {
    for (status, body, expected) in [
        (
            404,
            r#"{"error":{"message":"The model `m` does not exist or you do not have access to it.","code":"model_not_found"}}"#,
            "the server has no model `m`: The model `m` does not exist or you do not have access to it. \
             `agent model list` shows the known names; `model` in the model file sets it.",
        ),
        (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"}}"#,
            "the server has no model `m`: model: m. `agent model list` shows",
        ),
        (404, r#"{"error":"model 'm' not found, try pulling it first"}"#, "the server has no model `m`: "),
        (400, r#"{"error":{"message":"m is not a valid model ID","code":400}}"#, "the server has no model `m`: "),
        (
            400,
            r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}"#,
            "the server has no model",
        ),
        (400, r#"{"code":"invalid-argument","error":"Model not found: m"}"#, "the server has no model `m`: "),
        (
            400,
            r#"{"message":"Invalid model: m","type":"invalid_model","code":"1500"}"#,
            "the server has no model `m`: ",
        ),
        (
            400,
            r#"{"error":{"message":"The supported API model names are a or b, but you passed m."}}"#,
            "the server has no model `m`: ",
        ),
        (404, "404 page not found", "404 page not found. Check `base_url` in the model file"),
        (
            400,
            r#"{"error":{"message":"registry.ollama.ai/library/m:2b does not support tools"}}"#,
            "registry.ollama.ai/library/m:2b does not support tools. Set `capabilities: { tools: false }` in the",
        ),
        (
            404,
            r#"{"error":{"message":"No endpoints found that support tool use."}}"#,
            "Set `capabilities: { tools:",
        ),
        (
            400,
            r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"}"#,
            "Set `capabilities: { tools: false }`",
        ),
        (
            404,
            r#"{"error":{"message":"This is not a chat model and thus not supported in the v1/chat/completions endpoint."}}"#,
            "Set `wire: responses` in the model file.",
        ),
        (
            400,
            r#"{"error":{"message":"Thinking mode does not support this tool_choice"}}"#,
            "Thinking mode does not support this tool_choice",
        ),
        (401, r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#, "Check the key"),
        (402, r#"{"error":{"message":"Insufficient Balance"}}"#, "Insufficient Balance. Check the plan"),
        (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Try again later"),
        (400, r#"{"error":{"code":"content_filter","message":"no"}}"#, "a content filter of the provider refused"),
        (
            400,
            r#"{"error":{"code":"invalid_prompt","message":"no"}}"#,
            "the provider's rules forbid this request: no",
        ),
        (500, "oops", "oops"),
        (500, "", "the server gave no reason"),
    ] {
        let words = judge_failure(Some(status), StatedError::read(body), Hints::default(), "m").message;
        assert!(words.contains(expected), "{body}: {words}");
        assert!(!words.contains('\n'), "{words}");
    }
}

#[test]
fn codes_of_responses_in_mid_stream() {
    for (code, kind) in [
        ("server_error", Transient),
        ("rate_limit_exceeded", RateLimit),
        ("insufficient_quota", Quota),
        ("usage_not_included", Quota),
        ("subscription_sharing_usage_limit_exceeded", Quota),
        ("context_length_exceeded", ContextTooLong),
        ("model_not_found", BadRequest),
        ("invalid_prompt", BadRequest),
        ("bio_policy", BadRequest),
        ("data_residency_mismatch", BadRequest),
        ("invalid_image_format", BadRequest),
        ("image_too_large", BadRequest),
        ("image_content_policy_violation", BadRequest),
        ("image_file_not_found", BadRequest),
    ] {
        let event =
            format!(r#"{{"type":"error","code":"{code}","message":"no","param":null,"sequence_number":3}}"#);
        assert_eq!(classify_failure(None, &StatedError::read(&event)), kind, "{code}");
    }
    // xAI, as the body of a success
    let body = r#"{"code":"Client specified an invalid argument","error":"Invalid request content"}"#;
    assert_eq!(classify_failure(Some(200), &StatedError::read(body)), BadRequest);
}

#[test]
fn a_server_that_advises_against_a_retry_is_believed() {
    let hints = Hints { is_final: true, ..Hints::default() };
    for (status, kind) in [(429, Quota), (500, BadRequest), (413, ContextTooLong), (401, Authentication)] {
        assert_eq!(judge_failure(Some(status), StatedError::default(), hints, "m").kind, kind, "{status}");
    }
}

#[test]
fn the_wait_of_the_headers_comes_before_that_of_the_words() {
    let said = || StatedError::read("busy, try again in 9s");
    let of_header = Hints { wait: Some(Duration::from_secs(3)), is_final: false };
    for (hints, seconds) in [(of_header, 3), (Hints::default(), 9)] {
        assert_eq!(judge_failure(Some(429), said(), hints, "m").retry_after, Some(Duration::from_secs(seconds)));
    }
}

#[test]
fn errors_of_the_messages_api() {
    for (status, error, kind) in [
        (400, r#"{"type":"invalid_request_error","message":"messages.0: no"}"#, BadRequest),
        (
            400,
            r#"{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again"}"#,
            ContextTooLong,
        ),
        (
            400,
            r#"{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."}"#,
            BadRequest,
        ),
        (
            400,
            r#"{"type":"invalid_request_error","message":"You have reached your specified API usage limits."}"#,
            Quota,
        ),
        (
            400,
            r#"{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}"#,
            Quota,
        ),
        (401, r#"{"type":"authentication_error","message":"invalid x-api-key"}"#, Authentication),
        (402, r#"{"type":"billing_error","message":"no money"}"#, Quota),
        (403, r#"{"type":"permission_error","message":"no"}"#, Authentication),
        (404, r#"{"type":"not_found_error","message":"model: claude-x"}"#, BadRequest),
        (409, r#"{"type":"conflict_error","message":"again"}"#, Transient),
        (413, r#"{"type":"request_too_large","message":"Request exceeds the maximum size"}"#, ContextTooLong),
        (429, r#"{"type":"rate_limit_error","message":"slow down"}"#, RateLimit),
        (
            429,
            r#"{"type":"rate_limit_error","message":"no more","details":{"error_code":"enforced_spend_limit_reached"}}"#,
            Quota,
        ),
        (500, r#"{"type":"api_error","message":"oops"}"#, Transient),
        (504, r#"{"type":"timeout_error","message":"late"}"#, Transient),
        (529, r#"{"type":"overloaded_error","message":"Overloaded"}"#, Transient),
    ] {
        let said = StatedError::read(&format!(r#"{{"type":"error","error":{error},"request_id":"req_1"}}"#));
        assert_eq!(classify_failure(Some(status), &said), kind, "{status} {error}");
        // After HTTP 200, where only the words tell.
        if !matches!(status, 403 | 404) {
            assert_eq!(classify_failure(None, &said), kind, "{error}");
        }
    }
}
