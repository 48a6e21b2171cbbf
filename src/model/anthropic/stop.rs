//! The reasons that a model stopped, as servers state them.

use serde_json::Value;

use crate::base::text;
use crate::conversation::message::FinishReason;

/// The most characters of a server's words that are shown.
const LONGEST: usize = 400;

/// The end of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AnthropicStop {
    pub finish: FinishReason,
    /// A notice about it for the user.
    pub notice: Option<String>,
}

impl AnthropicStop {
    /// Reads `stop_reason` and `stop_details`.
    pub fn read(reason: &str, details: Option<&str>) -> Self {
        let (finish, notice) = match reason {
            "end_turn" | "stop_sequence" => (FinishReason::Stop, None),
            "tool_use" => (FinishReason::ToolCalls, None),
            "max_tokens" => (FinishReason::Length, None),
            "model_context_window_exceeded" => {
                (FinishReason::Length, Some("the model's context window is full: the reply ends there".to_owned()))
            }
            "pause_turn" => (FinishReason::Paused, None),
            "refusal" => (FinishReason::ContentFilter, Some(describe_refusal(details))),
            "sensitive" | "content_filter" => (FinishReason::ContentFilter, None),
            other => {
                let other = text::one_line(other, LONGEST);
                (
                    FinishReason::Stop,
                    Some(format!("the model stopped for a reason that is not known here: {other}")),
                )
            }
        };
        Self { finish, notice }
    }
}

fn describe_refusal(details: Option<&str>) -> String {
    let details: Value = details.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    let detail = |key: &str| {
        let words = details.get(key).and_then(Value::as_str).map(|words| text::one_line(words, LONGEST));
        words.filter(|words| !words.is_empty())
    };
    let words = [
        Some("the model refuses".to_owned()),
        detail("category").map(|category| format!(" (category {category})")),
        detail("explanation").map(|why| format!(": {}", why.trim_end_matches('.'))),
        detail("recommended_model").map(|model| format!("; the provider recommends {model}")),
    ];
    words.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use FinishReason::{ContentFilter, Length, Paused, Stop as Ended, ToolCalls};

    use super::*;

    #[test]
    fn every_reason() {
        for (reason, finish, has_notice) in [
            ("end_turn", Ended, false),
            ("stop_sequence", Ended, false),
            ("tool_use", ToolCalls, false),
            ("max_tokens", Length, false),
            ("model_context_window_exceeded", Length, true),
            ("pause_turn", Paused, false),
            ("refusal", ContentFilter, true),
            ("sensitive", ContentFilter, false),
            ("compaction", Ended, true),
        ] {
            let stop = AnthropicStop::read(reason, None);
            assert_eq!((stop.finish, stop.notice.is_some()), (finish, has_notice), "{reason}");
        }
    }
}
