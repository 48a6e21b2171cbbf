//! A row of the tables: the signs of a refusal, and its class or what it is about.

use super::class::FailureClass;

/// What a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalSubject {
    /// A part of the request that can be left out or replaced; the problem, after the name of the model.
    Request(Remedy, &'static str),
    /// One picture.
    Picture,
    /// More pictures than the server takes.
    PictureCount,
    /// What the conversation says.
    Content,
}

/// The change of the requests that answers a refusal (`learn.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    AnswerFormat,
    Betas,
    Blind,
    CacheKey,
    CacheMarks,
    EagerStream,
    EchoAlways,
    Effort,
    EffortField,
    EncryptedReasoning,
    Instructions,
    LooserSchemas,
    NotMaxCompletionTokens,
    NotMaxTokens,
    OutputLimit,
    ParallelField,
    ParallelSwitch,
    RefusedTool,
    Signatures,
    StopEcho,
    StreamOptions,
    StrictTools,
    Summaries,
    Temperature,
    ThinkingDisplay,
    ThinkingType,
    ToResponses,
    ToolChoice,
    UserAfterResults,
}

/// The signs of a refusal.
#[derive(Clone, Copy)]
pub(super) struct RefusalRow {
    /// `None`: the status tells it.
    pub class: Option<FailureClass>,
    pub subject: Option<RefusalSubject>,
    /// The statuses that it comes with; empty for any. An error in mid-stream may have none, which suits every row.
    pub statuses: &'static [u16],
    /// Whole words of the code.
    pub codes: &'static [&'static str],
    /// Words in the code or the message. Alternatives are separated by `|`, here and below; one is enough.
    pub marks: &'static str,
    /// Words that must all occur as well.
    pub with: &'static [&'static str],
    /// Words that rule it out.
    pub unless: &'static str,
    /// True if words that refuse a parameter must occur too.
    pub refuses: bool,
}

const BLANK: RefusalRow = RefusalRow {
    class: None,
    subject: None,
    statuses: &[],
    codes: &[],
    marks: "",
    with: &[],
    unless: "",
    refuses: false,
};

/// The words in which servers refuse a parameter that they name.
const REFUSING: &str = "unsupported|not supported|does not support|doesn't support|unknown name|unknown field|\
    unknown parameter|unrecognized|not permitted|extra_forbidden|unexpected keyword|\
    unexpected field|not allowed|invalid|only the default|deprecated|must be|cannot|can not|should";

/// True if words, in lower case, refuse a parameter.
pub fn refuses(words: &str) -> bool {
    has_any(words, REFUSING)
}

fn has_any(words: &str, marks: &str) -> bool {
    marks.split('|').any(|mark| !mark.is_empty() && words.contains(mark))
}

impl RefusalRow {
    /// True if a failure has these signs; code and words are in lower case.
    pub fn holds(&self, status: Option<u16>, code: &str, words: &str) -> bool {
        let suits = self.statuses.is_empty() || status.is_none_or(|status| self.statuses.contains(&status));
        let by_code = || code.split(' ').any(|word| self.codes.contains(&word));
        let has_all = || self.with.iter().all(|marks| has_any(words, marks));
        let by_words = || has_any(words, self.marks) && has_all() && (!self.refuses || refuses(words));
        suits && (by_code() || by_words()) && !has_any(words, self.unless)
    }
}

/// A row of a class, with any status.
pub(super) const fn define_class(
    class: FailureClass,
    codes: &'static [&'static str],
    marks: &'static str,
) -> RefusalRow {
    RefusalRow { class: Some(class), codes, marks, ..BLANK }
}

/// A row about a part of the request, which is known by these words alone.
pub(super) const fn define_remedy(remedy: Remedy, about: &'static str, marks: &'static str) -> RefusalRow {
    RefusalRow { subject: Some(RefusalSubject::Request(remedy, about)), marks, ..BLANK }
}

/// A row about a field of the request that is named and refused.
pub(super) const fn define_field(remedy: Remedy, about: &'static str, marks: &'static str) -> RefusalRow {
    RefusalRow { refuses: true, ..define_remedy(remedy, about, marks) }
}

/// A row about a part of the conversation.
pub(super) const fn define_part(subject: RefusalSubject, marks: &'static str) -> RefusalRow {
    RefusalRow { subject: Some(subject), marks, ..BLANK }
}
