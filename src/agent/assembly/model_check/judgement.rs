//! Judges the answers to the questions of a check. Pure functions.

use serde::Serialize;

use super::questions::{COLOUR, PICTURE_TOOL, WEATHER_TOOL, answer_schema};
use crate::agent::AnswerSchema;
use crate::base::text;
use crate::conversation::message::{FinishReason, ReplyPart};
use crate::model::{ModelError, ModelErrorKind, ReplyEnd};

/// A feature that a server and its model may support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    Answers,
    Streaming,
    Usage,
    ToolCalls,
    ParallelCalls,
    Schema,
    Vision,
    Caching,
}

/// The outcome for a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureOutcome {
    Works,
    DoesNot,
    Unknown,
}

/// The finding about a feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub feature: Feature,
    pub outcome: FeatureOutcome,
    /// The server's words or another remark; may be empty.
    pub note: String,
}

/// The answer to a question.
#[derive(Debug)]
pub struct CheckAnswer {
    pub reply: Result<ReplyEnd, ModelError>,
    /// The server's refusals of parts of the request, which was sent again without them.
    pub refusals: Vec<String>,
}

impl Feature {
    /// The name of the feature in a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Streaming => "streaming",
            Self::Usage => "usage",
            Self::ToolCalls => "tool calls",
            Self::ParallelCalls => "parallel calls",
            Self::Schema => "schema",
            Self::Vision => "vision",
            Self::Caching => "caching",
        }
    }

    /// A finding about it.
    pub fn is(self, outcome: FeatureOutcome, note: impl Into<String>) -> Finding {
        Finding { feature: self, outcome, note: note.into() }
    }

    fn find_unknown(self, note: impl Into<String>) -> Finding {
        self.is(FeatureOutcome::Unknown, note)
    }
}

impl FeatureOutcome {
    /// The outcome in a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::DoesNot => "does not",
            Self::Unknown => "unknown",
        }
    }
}

impl CheckAnswer {
    /// True if no more questions should be asked, because the next one would fail in the same way.
    pub fn ends_all(&self) -> bool {
        use ModelErrorKind::{Authentication, Quota, RateLimit, Transient};
        let Err(error) = &self.reply else { return false };
        // Some servers answer 500 to requests that they do not support.
        let is_unreachable = error.kind == Transient && error.status.is_none();
        is_unreachable || matches!(error.kind, Authentication | Quota | RateLimit)
    }

    /// Returns the reply, or the finding without one: a refusal means that the feature does not work, another error
    /// means
    /// nothing.
    fn judge_failure(&self, feature: Feature) -> Result<&ReplyEnd, Finding> {
        self.reply.as_ref().map_err(|error| match error.kind {
            ModelErrorKind::BadRequest => feature.is(FeatureOutcome::DoesNot, word_error(error)),
            _ => feature.find_unknown(word_error(error)),
        })
    }

    /// The finding that `judge` makes of the reply, or the one without a reply.
    fn judge(&self, feature: Feature, judge: impl FnOnce(&ReplyEnd) -> Finding) -> Finding {
        self.judge_failure(feature).map_or_else(|finding| finding, judge)
    }

    fn works(&self, feature: Feature) -> Finding {
        feature.is(FeatureOutcome::Works, self.word_refusal())
    }

    /// The first refusal, in words.
    fn word_refusal(&self) -> String {
        self.refusals.first().map_or_else(String::new, |words| format!("after a refusal: {words}"))
    }
}

/// The findings of the first answer.
pub fn of_greeting(heard: &CheckAnswer, end: &ReplyEnd) -> [Finding; 3] {
    let answers =
        if end.finish == FinishReason::Length { "the answer is cut".to_owned() } else { heard.word_refusal() };
    let finding = |feature: Feature, works: bool, why_not: &str| {
        if works { feature.is(FeatureOutcome::Works, "") } else { feature.is(FeatureOutcome::DoesNot, why_not) }
    };
    let streaming = finding(Feature::Streaming, end.streamed, "the answer came as a whole");
    let usage = finding(Feature::Usage, !end.usage.estimated, "no tokens are reported: they are estimated");
    [Feature::Answers.is(FeatureOutcome::Works, answers), streaming, usage]
}

/// Judges whether the model calls a tool.
pub fn of_call(heard: &CheckAnswer) -> Finding {
    let feature = Feature::ToolCalls;
    heard.judge(feature, |end| match end.calls().find(|call| call.name == PICTURE_TOOL) {
        None => in_words(feature, end),
        Some(call) if serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(&call.arguments).is_ok() => {
            heard.works(feature)
        }
        Some(call) => {
            let arguments = text::one_line(&call.arguments, 80);
            feature.is(FeatureOutcome::DoesNot, format!("its arguments are not a JSON object: {arguments}"))
        }
    })
}

/// Judges whether the model calls several tools at once.
pub fn of_two_calls(heard: &CheckAnswer) -> Finding {
    let feature = Feature::ParallelCalls;
    heard.judge(feature, |end| match end.calls().filter(|call| call.name == WEATHER_TOOL).count() {
        0 => in_words(feature, end),
        1 => feature.find_unknown("it called once, though two calls were asked for"),
        _ => heard.works(feature),
    })
}

/// Judges whether the server enforces a schema.
pub fn of_schema(heard: &CheckAnswer) -> Finding {
    let feature = Feature::Schema;
    let schema = AnswerSchema::new(answer_schema()).expect("it is a schema");
    heard.judge(feature, |end| {
        let answer = text_of(end);
        match (schema.check(&answer), heard.refusals.first()) {
            (Ok(_), None) => heard.works(feature),
            (_, Some(words)) => feature.is(FeatureOutcome::DoesNot, words),
            (Err(_), None) if end.finish == FinishReason::Length => feature.find_unknown("the answer is cut"),
            (Err(_), None) => {
                feature.is(FeatureOutcome::DoesNot, format!("it answered: {}", text::one_line(&answer, 80)))
            }
        }
    })
}

/// Judges whether the model sees pictures. `taken_back` is true if the server refused pictures and got notes instead.
pub fn of_picture(heard: &CheckAnswer, taken_back: bool) -> Finding {
    let feature = Feature::Vision;
    if taken_back {
        return feature.is(FeatureOutcome::DoesNot, heard.refusals.first().cloned().unwrap_or_default());
    }
    let end = match heard.judge_failure(feature) {
        Ok(end) => end,
        // A request with a result may be refused for other reasons.
        Err(finding) => return feature.find_unknown(finding.note),
    };
    let answer = text_of(end);
    if answer.to_lowercase().contains(COLOUR) {
        return heard.works(feature);
    }
    let answer = text::one_line(&answer, 80);
    feature.find_unknown(format!("the picture was taken; asked for its colour, {COLOUR}, it answered: {answer}"))
}

/// Judges whether the second of two requests with the same prefix was served from a cache.
pub fn of_cache(first: &CheckAnswer, second: &CheckAnswer) -> Finding {
    let feature = Feature::Caching;
    let (first, second) = match (first.judge_failure(feature), second.judge_failure(feature)) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(finding), _) | (_, Err(finding)) => return feature.find_unknown(finding.note),
    };
    let cached = |end: &ReplyEnd| end.usage.cached_input_tokens;
    let best = if cached(second) >= cached(first) { second } else { first };
    match (cached(best), best.usage.estimated) {
        (_, true) => feature.find_unknown("no tokens are reported"),
        (0, false) => feature.find_unknown("no cached tokens are reported"),
        (tokens, false) => {
            feature.is(FeatureOutcome::Works, format!("{tokens} of {} tokens", best.usage.input_tokens))
        }
    }
}

fn in_words(feature: Feature, end: &ReplyEnd) -> Finding {
    match text::one_line(&text_of(end), 80) {
        answer if answer.trim().is_empty() => feature.find_unknown("it neither called nor answered"),
        answer => feature.find_unknown(format!("it did not call, and answered: {answer}")),
    }
}

fn text_of(end: &ReplyEnd) -> String {
    let texts = end.parts.iter().filter_map(|part| match part {
        ReplyPart::Text { text, .. } => Some(text.as_str()),
        ReplyPart::Reasoning { .. } | ReplyPart::Call(_) => None,
    });
    texts.collect()
}

/// Formats an error without the name of the model, which is shown above the table.
fn word_error(error: &ModelError) -> String {
    let message = &error.message;
    error.status.map_or_else(|| message.clone(), |status| format!("HTTP {status}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{Call, ToolCall, Usage};

    fn heard(end: ReplyEnd) -> CheckAnswer {
        CheckAnswer { reply: Ok(end), refusals: Vec::new() }
    }

    fn says(words: &str) -> ReplyEnd {
        ReplyEnd { parts: vec![ReplyPart::Text { text: words.to_owned(), opaque: None }], ..ReplyEnd::default() }
    }

    fn calls(calls: &[(&str, &str)]) -> ReplyEnd {
        let part = |(name, arguments): &(&str, &str)| {
            let (id, name, arguments) = ("c".to_owned(), (*name).to_owned(), (*arguments).to_owned());
            ReplyPart::Call(Call { request: ToolCall { id, name, arguments }, opaque: None, answer: None })
        };
        ReplyEnd { parts: calls.iter().map(part).collect(), ..ReplyEnd::default() }
    }

    fn fails(kind: ModelErrorKind) -> CheckAnswer {
        let error = ModelError {
            kind,
            status: Some(400),
            message: "no".to_owned(),
            model: "m".to_owned(),
            retry_after: None,
            is_lesson: false,
        };
        CheckAnswer { reply: Err(error), refusals: Vec::new() }
    }

    #[test]
    fn only_a_refusal_says_that_a_feature_does_not_work() {
        for (kind, outcome) in [
            (ModelErrorKind::BadRequest, FeatureOutcome::DoesNot),
            (ModelErrorKind::Transient, FeatureOutcome::Unknown),
            (ModelErrorKind::Incomplete, FeatureOutcome::Unknown),
            (ModelErrorKind::ContextTooLong, FeatureOutcome::Unknown),
        ] {
            for judge in [of_call, of_two_calls, of_schema] {
                let finding = judge(&fails(kind));
                assert_eq!((finding.outcome, finding.note.as_str()), (outcome, "HTTP 400: no"), "{kind:?}");
            }
        }
        assert_eq!(of_picture(&fails(ModelErrorKind::BadRequest), false).outcome, FeatureOutcome::Unknown);
    }

    #[test]
    fn a_call_counts_if_it_could_run() {
        for (end, one, two) in [
            (calls(&[("view_picture", r#"{"path":"a"}"#)]), FeatureOutcome::Works, FeatureOutcome::Unknown),
            (calls(&[("view_picture", "{\"pa")]), FeatureOutcome::DoesNot, FeatureOutcome::Unknown),
            (calls(&[("weather", "{}"), ("weather", "{}")]), FeatureOutcome::Unknown, FeatureOutcome::Works),
            (says("view_picture(picture.png)"), FeatureOutcome::Unknown, FeatureOutcome::Unknown),
        ] {
            let heard = heard(end);
            assert_eq!((of_call(&heard).outcome, of_two_calls(&heard).outcome), (one, two), "{heard:?}");
        }
    }

    #[test]
    fn a_schema_is_held_by_the_server_alone() {
        let refused =
            |words: &str| CheckAnswer { refusals: vec!["unknown field".to_owned()], ..heard(says(words)) };
        for (heard, outcome) in [
            (heard(says(r#"{"colour_in_one_word":"blue"}"#)), FeatureOutcome::Works),
            (heard(says(r#"{"colour":"blue"}"#)), FeatureOutcome::DoesNot),
            (heard(says("Blue.")), FeatureOutcome::DoesNot),
            (heard(ReplyEnd { finish: FinishReason::Length, ..says("{") }), FeatureOutcome::Unknown),
            (refused(r#"{"colour_in_one_word":"blue"}"#), FeatureOutcome::DoesNot),
        ] {
            assert_eq!(of_schema(&heard).outcome, outcome, "{heard:?}");
        }
    }

    #[test]
    fn a_cache_is_seen_in_the_tokens() {
        let used = |cached, estimated| {
            let usage = Usage { input_tokens: 9, cached_input_tokens: cached, estimated, ..Usage::default() };
            heard(ReplyEnd { usage, ..ReplyEnd::default() })
        };
        for (first, second, outcome) in [
            (used(0, false), used(8, false), FeatureOutcome::Works),
            (used(8, false), used(0, false), FeatureOutcome::Works),
            (used(0, false), used(0, false), FeatureOutcome::Unknown),
            (used(0, true), used(0, true), FeatureOutcome::Unknown),
            (used(0, false), fails(ModelErrorKind::BadRequest), FeatureOutcome::Unknown),
        ] {
            assert_eq!(of_cache(&first, &second).outcome, outcome, "{first:?} {second:?}");
        }
    }
}
