//! Judges the answers to the questions of a check. Pure functions.

use serde::Serialize;

use super::questions::{COLOUR, PICTURE_TOOL, WEATHER_TOOL, schema};
use crate::agent::AnswerSchema;
use crate::base::text;
use crate::conversation::message::{FinishReason, Part};
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
pub enum Outcome {
    Works,
    DoesNot,
    Unknown,
}

/// The finding about a feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub feature: Feature,
    pub outcome: Outcome,
    /// The server's words or another remark; may be empty.
    pub note: String,
}

/// The answer to a question.
#[derive(Debug)]
pub struct Heard {
    pub reply: Result<ReplyEnd, ModelError>,
    /// The server's refusals of parts of the request, which was sent again without them.
    pub refusals: Vec<String>,
}

impl Feature {
    /// The name of the feature in a table.
    #[must_use]
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
    #[must_use]
    pub fn is(self, outcome: Outcome, note: impl Into<String>) -> Finding {
        Finding { feature: self, outcome, note: note.into() }
    }

    fn unknown(self, note: impl Into<String>) -> Finding {
        self.is(Outcome::Unknown, note)
    }
}

impl Outcome {
    /// The outcome in a table.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::DoesNot => "does not",
            Self::Unknown => "unknown",
        }
    }
}

impl Heard {
    /// True if no more questions should be asked, because the next one would fail in the same way.
    #[must_use]
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
    fn failed(&self, feature: Feature) -> Result<&ReplyEnd, Finding> {
        self.reply.as_ref().map_err(|error| match error.kind {
            ModelErrorKind::BadRequest => feature.is(Outcome::DoesNot, words(error)),
            _ => feature.unknown(words(error)),
        })
    }

    fn works(&self, feature: Feature) -> Finding {
        feature.is(Outcome::Works, self.refused())
    }

    /// The first refusal, in words.
    fn refused(&self) -> String {
        match self.refusals.first() {
            Some(words) => format!("after a refusal: {words}"),
            None => String::new(),
        }
    }
}

/// The findings of the first answer.
#[must_use]
pub fn of_greeting(heard: &Heard, end: &ReplyEnd) -> [Finding; 3] {
    let answers =
        if end.finish == FinishReason::Length { "the answer is cut".to_owned() } else { heard.refused() };
    let streaming = if end.streamed {
        Feature::Streaming.is(Outcome::Works, "")
    } else {
        Feature::Streaming.is(Outcome::DoesNot, "the answer came as a whole")
    };
    let usage = if end.usage.estimated {
        Feature::Usage.is(Outcome::DoesNot, "no tokens are reported: they are estimated")
    } else {
        Feature::Usage.is(Outcome::Works, "")
    };
    [Feature::Answers.is(Outcome::Works, answers), streaming, usage]
}

/// Judges whether the model calls a tool.
#[must_use]
pub fn of_call(heard: &Heard) -> Finding {
    let feature = Feature::ToolCalls;
    let end = match heard.failed(feature) {
        Ok(end) => end,
        Err(finding) => return finding,
    };
    let Some(call) = end.calls().find(|call| call.name == PICTURE_TOOL) else { return in_words(feature, end) };
    match serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(&call.arguments) {
        Ok(_) => heard.works(feature),
        Err(_) => feature.is(
            Outcome::DoesNot,
            format!("its arguments are not a JSON object: {}", text::one_line(&call.arguments, 80)),
        ),
    }
}

/// Judges whether the model calls several tools at once.
#[must_use]
pub fn of_two_calls(heard: &Heard) -> Finding {
    let feature = Feature::ParallelCalls;
    match heard.failed(feature) {
        Err(finding) => finding,
        Ok(end) => match end.calls().filter(|call| call.name == WEATHER_TOOL).count() {
            0 => in_words(feature, end),
            1 => feature.unknown("it called once, though two calls were asked for"),
            _ => heard.works(feature),
        },
    }
}

/// Judges whether the server enforces a schema.
#[must_use]
pub fn of_schema(heard: &Heard) -> Finding {
    let feature = Feature::Schema;
    let end = match heard.failed(feature) {
        Ok(end) => end,
        Err(finding) => return finding,
    };
    let answer = text_of(end);
    let schema = AnswerSchema::new(schema()).expect("it is a schema");
    match (schema.check(&answer), heard.refusals.first()) {
        (Ok(_), None) => heard.works(feature),
        (_, Some(words)) => feature.is(Outcome::DoesNot, words),
        (Err(_), None) if end.finish == FinishReason::Length => feature.unknown("the answer is cut"),
        (Err(_), None) => feature.is(Outcome::DoesNot, format!("it answered: {}", text::one_line(&answer, 80))),
    }
}

/// Judges whether the model sees pictures. `taken_back` is true if the server refused pictures and got notes instead.
#[must_use]
pub fn of_picture(heard: &Heard, taken_back: bool) -> Finding {
    let feature = Feature::Vision;
    if taken_back {
        return feature.is(Outcome::DoesNot, heard.refusals.first().cloned().unwrap_or_default());
    }
    let end = match heard.failed(feature) {
        Ok(end) => end,
        // A request with a result may be refused for other reasons.
        Err(finding) => return feature.unknown(finding.note),
    };
    let answer = text_of(end);
    if answer.to_lowercase().contains(COLOUR) {
        return heard.works(feature);
    }
    let answer = text::one_line(&answer, 80);
    feature.unknown(format!("the picture was taken; asked for its colour, {COLOUR}, it answered: {answer}"))
}

/// Judges whether the second of two requests with the same prefix was served from a cache.
#[must_use]
pub fn of_cache(first: &Heard, second: &Heard) -> Finding {
    let feature = Feature::Caching;
    let (first, second) = match (first.failed(feature), second.failed(feature)) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(finding), _) | (_, Err(finding)) => return feature.unknown(finding.note),
    };
    let cached = |end: &ReplyEnd| end.usage.cached_input_tokens;
    let best = if cached(second) >= cached(first) { second } else { first };
    match (cached(best), best.usage.estimated) {
        (_, true) => feature.unknown("no tokens are reported"),
        (0, false) => feature.unknown("no cached tokens are reported"),
        (tokens, false) => feature.is(Outcome::Works, format!("{tokens} of {} tokens", best.usage.input_tokens)),
    }
}

fn in_words(feature: Feature, end: &ReplyEnd) -> Finding {
    match text::one_line(&text_of(end), 80) {
        answer if answer.trim().is_empty() => feature.unknown("it neither called nor answered"),
        answer => feature.unknown(format!("it did not call, and answered: {answer}")),
    }
}

fn text_of(end: &ReplyEnd) -> String {
    let texts = end.parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        Part::Reasoning { .. } | Part::Call(_) => None,
    });
    texts.collect()
}

/// Formats an error without the name of the model, which is shown above the table.
fn words(error: &ModelError) -> String {
    match error.status {
        Some(status) => format!("HTTP {status}: {}", error.message),
        None => error.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{Call, ToolCall, Usage};

    fn heard(end: ReplyEnd) -> Heard {
        Heard { reply: Ok(end), refusals: Vec::new() }
    }

    fn says(words: &str) -> ReplyEnd {
        ReplyEnd { parts: vec![Part::Text { text: words.to_owned(), opaque: None }], ..ReplyEnd::default() }
    }

    fn calls(calls: &[(&str, &str)]) -> ReplyEnd {
        let part = |(name, arguments): &(&str, &str)| {
            let (id, name, arguments) = ("c".to_owned(), (*name).to_owned(), (*arguments).to_owned());
            Part::Call(Call { request: ToolCall { id, name, arguments }, opaque: None, answer: None })
        };
        ReplyEnd { parts: calls.iter().map(part).collect(), ..ReplyEnd::default() }
    }

    fn fails(kind: ModelErrorKind) -> Heard {
        let error = ModelError {
            kind,
            status: Some(400),
            message: "no".to_owned(),
            model: "m".to_owned(),
            retry_after: None,
            is_lesson: false,
        };
        Heard { reply: Err(error), refusals: Vec::new() }
    }

    #[test]
    fn only_a_refusal_says_that_a_feature_does_not_work() {
        for (kind, outcome) in [
            (ModelErrorKind::BadRequest, Outcome::DoesNot),
            (ModelErrorKind::Transient, Outcome::Unknown),
            (ModelErrorKind::Incomplete, Outcome::Unknown),
            (ModelErrorKind::ContextTooLong, Outcome::Unknown),
        ] {
            for judge in [of_call, of_two_calls, of_schema] {
                let finding = judge(&fails(kind));
                assert_eq!((finding.outcome, finding.note.as_str()), (outcome, "HTTP 400: no"), "{kind:?}");
            }
        }
        assert_eq!(of_picture(&fails(ModelErrorKind::BadRequest), false).outcome, Outcome::Unknown);
    }

    #[test]
    fn a_call_counts_if_it_could_run() {
        for (end, one, two) in [
            (calls(&[("view_picture", r#"{"path":"a"}"#)]), Outcome::Works, Outcome::Unknown),
            (calls(&[("view_picture", "{\"pa")]), Outcome::DoesNot, Outcome::Unknown),
            (calls(&[("weather", "{}"), ("weather", "{}")]), Outcome::Unknown, Outcome::Works),
            (says("view_picture(picture.png)"), Outcome::Unknown, Outcome::Unknown),
        ] {
            let heard = heard(end);
            assert_eq!((of_call(&heard).outcome, of_two_calls(&heard).outcome), (one, two), "{heard:?}");
        }
    }

    #[test]
    fn a_schema_is_held_by_the_server_alone() {
        let refused = |words: &str| Heard { refusals: vec!["unknown field".to_owned()], ..heard(says(words)) };
        for (heard, outcome) in [
            (heard(says(r#"{"colour_in_one_word":"blue"}"#)), Outcome::Works),
            (heard(says(r#"{"colour":"blue"}"#)), Outcome::DoesNot),
            (heard(says("Blue.")), Outcome::DoesNot),
            (heard(ReplyEnd { finish: FinishReason::Length, ..says("{") }), Outcome::Unknown),
            (refused(r#"{"colour_in_one_word":"blue"}"#), Outcome::DoesNot),
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
            (used(0, false), used(8, false), Outcome::Works),
            (used(8, false), used(0, false), Outcome::Works),
            (used(0, false), used(0, false), Outcome::Unknown),
            (used(0, true), used(0, true), Outcome::Unknown),
            (used(0, false), fails(ModelErrorKind::BadRequest), Outcome::Unknown),
        ] {
            assert_eq!(of_cache(&first, &second).outcome, outcome, "{first:?} {second:?}");
        }
    }
}
