//! The reasons that Gemini stopped, as the server states them.

use super::super::assembly::Broken;
use crate::base::text;
use crate::conversation::message::FinishReason;

/// The end of a reply, with a notice about it for the user.
///
/// # Errors
/// The model wrote a call that nobody can read: the reply is of no use.
pub(super) fn read_stop(reason: &str, message: &str) -> Result<(FinishReason, Option<String>), Broken> {
    let said = |before: &str| {
        let message = text::one_line(message, 200);
        let words = if message.is_empty() { reason } else { &message };
        format!("{before}: {words}")
    };
    Ok(match reason {
        "STOP" | "FINISH_REASON_UNSPECIFIED" => (FinishReason::Stop, None),
        "MAX_TOKENS" => (FinishReason::Length, None),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => (FinishReason::ContentFilter, Some(said("Google's filter ended the reply"))),
        "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "UNEXPECTED_TOOL_CALL"
        | "MISSING_THOUGHT_SIGNATURE" => {
            return Err(Broken::Unreadable(said("the model wrote a call that cannot be read")));
        }
        other => {
            let other = text::one_line(other, 80);
            (FinishReason::Stop, Some(format!("the model stopped for a reason that is not known here: {other}")))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason() {
        for (reason, finish, has_notice) in [
            ("STOP", FinishReason::Stop, false),
            ("MAX_TOKENS", FinishReason::Length, false),
            ("SAFETY", FinishReason::ContentFilter, true),
            ("PROHIBITED_CONTENT", FinishReason::ContentFilter, true),
            ("TOO_MANY_TOOL_CALLS", FinishReason::Stop, true),
        ] {
            let (read, notice) = read_stop(reason, "").expect("a reply");
            assert_eq!((read, notice.is_some()), (finish, has_notice), "{reason}");
        }
        assert!(matches!(read_stop("MALFORMED_FUNCTION_CALL", "print("), Err(Broken::Unreadable(_))));
    }
}
