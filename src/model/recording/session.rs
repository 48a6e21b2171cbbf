//! A recording of a session that is over. Its log has no tools of the requests, so these are not compared.

use jiff::tz::TimeZone;

use super::words::RunFacts;
use super::{ExchangeEnd, PieceKind, RecordLine, RecordedExchange, RecordedReply, ReplyPiece, VERSION};
use crate::conversation::message::{ReplyPart, Step};
use crate::conversation::session::{Session, SessionError};
use crate::model::ModelRequest;
use crate::model::neutral::write_neutral;

/// The recording of a session, as a file has it.
///
/// # Errors
/// Its log cannot be read.
pub fn record_session(session: &Session) -> Result<String, SessionError> {
    let about = session.describe();
    let items = session.originals()?;
    let system = session.system().map_or("", |prompt| prompt.text.as_str());
    let date = session.started_at().to_zoned(TimeZone::system()).date().to_string();
    let facts = RunFacts { date, ..RunFacts::now(session.find_root()) };
    let head = RecordLine::Recording { v: VERSION, facts };
    let exchanges = items.iter().enumerate().filter_map(|(at, item)| {
        let step = item.as_step().filter(|step| !step.given)?;
        let request = ModelRequest { system, ..ModelRequest::from_items(&items[..at], session.id()) };
        let request = write_neutral(about.model, &request);
        Some(RecordLine::Request(RecordedExchange { request, pieces: write_pieces(step), end: end_of(step) }))
    });
    let lines = std::iter::once(head).chain(exchanges);
    Ok(lines.filter_map(|line| serde_json::to_string(&line).ok()).map(|line| line + "\n").collect())
}

fn write_pieces(step: &Step) -> Vec<ReplyPiece> {
    let what = |part: &ReplyPart| match part {
        ReplyPart::Text { text, .. } => PieceKind::Text(text.clone()),
        ReplyPart::Reasoning { text, .. } => PieceKind::Reasoning(text.clone()),
        ReplyPart::Call(call) => PieceKind::Call(call.request.name.clone()),
    };
    step.parts.iter().map(|part| ReplyPiece { ms: 0, what: what(part) }).collect()
}

fn end_of(step: &Step) -> ExchangeEnd {
    let (parts, finish, usage, cost_usd) = (step.parts.clone(), step.finish_reason, step.usage, step.cost_usd);
    ExchangeEnd::Reply(RecordedReply { ms: 0, parts, finish, usage, cost_usd, streamed: true })
}
