//! Errors of servers. `said` finds the server's own words in whatever shape they come, `table` knows what they mean,
//! `hints` reads when to retry. Here the three are combined: words come first, since servers do not agree on statuses,
//! then the status.

mod class;
mod hints;
mod row;
mod said;
mod table;

use super::stated::Stated;
use crate::base::text;
use crate::model::{ModelError, ModelErrorKind};

use class::FailureClass;
pub(super) use hints::Hints;
pub(super) use row::{RefusalSubject, Remedy, refuses};
pub use said::StatedError;
pub(super) use said::looks_like_html;
use table::{CLASSES, SUBJECTS};

/// The most characters that are kept of a server's message.
const LONGEST: usize = 600;

/// Judges a failure. `status` is that of the HTTP response, or `None` if the error came in mid-stream; `model` is the
/// provider's name for the model.
pub(super) fn judge_failure(status: Option<u16>, said: StatedError, hints: Hints, model: &str) -> ModelError {
    let said = StatedError { message: text::one_line(&said.message, LONGEST), ..said };
    let class = find_class(status, &said);
    let kind = match class.kind() {
        // The server says that the same request would fail again.
        ModelErrorKind::RateLimit if hints.is_final => ModelErrorKind::Quota,
        ModelErrorKind::Transient | ModelErrorKind::Incomplete if hints.is_final => ModelErrorKind::BadRequest,
        kind => kind,
    };
    ModelError {
        status: status.or(said.status),
        retry_after: hints.wait.or(said.wait),
        ..ModelError::new(kind, model, class.words(&said.message, model))
    }
}

/// The kind of a failure. `status` is that of the HTTP response, or `None` if the error came in mid-stream.
pub(super) fn classify_failure(status: Option<u16>, said: &StatedError) -> ModelErrorKind {
    find_class(status, said).kind()
}

fn find_class(status: Option<u16>, said: &StatedError) -> FailureClass {
    let status = status.filter(|status| !(200..300).contains(status)).or(said.status);
    match status {
        Some(401) => return FailureClass::Authentication,
        Some(402) => return FailureClass::Quota,
        _ => {}
    }
    let words = format!("{} {}", said.code, said.message).to_ascii_lowercase();
    let code = said.code.to_ascii_lowercase();
    match CLASSES.iter().find(|row| row.holds(status, &code, &words)).and_then(|row| row.class) {
        // Servers name the limit of the window too when `max_tokens` alone is too large.
        Some(FailureClass::Overflow) if Stated::read(&said.message).reply_is_too_long() => FailureClass::Request,
        Some(class) => class,
        None => by_status(status),
    }
}

/// What a refusal can be about, the most specific first; `words` are in lower case.
pub(super) fn list_subjects(status: Option<u16>, words: &str) -> impl Iterator<Item = RefusalSubject> {
    SUBJECTS.iter().filter(move |row| row.holds(status, "", words)).filter_map(|row| row.subject)
}

/// True if a remedy is about this field of the request.
pub(super) fn knows_field(name: &str) -> bool {
    let about = SUBJECTS.iter().filter(|row| matches!(row.subject, Some(RefusalSubject::Request(..))));
    let mut words = about.flat_map(|row| row.with.iter().chain([&row.marks])).flat_map(|words| words.split('|'));
    words.any(|word| word == name)
}

fn by_status(status: Option<u16>) -> FailureClass {
    match status {
        Some(403) => FailureClass::Authentication,
        Some(404) => FailureClass::Address,
        Some(413) => FailureClass::Overflow,
        Some(429) => FailureClass::RateLimit,
        Some(529) => FailureClass::Overloaded,
        Some(408 | 409 | 425 | 500..) | None => FailureClass::Server,
        Some(_) => FailureClass::Request,
    }
}

#[cfg(test)]
mod tests;
