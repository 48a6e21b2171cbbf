//! Recordings of what is over: of a session, whose log has no tools of the requests, so that these are not compared, and
//! of a conversation of another program, whose requests are not known at all.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::words::RunFacts;
use super::{
    ExchangeEnd, PieceKind, RecordLine, RecordedExchange, RecordedReply, RecordedRun, ReplyPiece, VERSION,
};
use crate::base::json;
use crate::conversation::import::Imported;
use crate::conversation::message::{Item, ReplyPart, Step, ToolCall};
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

/// The name of another program's tool, and that of ours which does the same: `bash=run_command:command`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRename {
    pub from: String,
    pub to: String,
    /// Our name for the only argument.
    pub argument: Option<String>,
}

impl ToolRename {
    /// Reads one from the command line.
    ///
    /// # Errors
    /// A sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').filter(|(from, to)| !from.is_empty() && !to.is_empty());
        let (from, to) = parts.ok_or("it is THEIRS=OURS or THEIRS=OURS:ARGUMENT")?;
        let (to, argument) =
            to.split_once(':').map_or((to, None), |(to, argument)| (to, Some(argument.to_owned())));
        Ok(Self { from: from.to_owned(), to: to.to_owned(), argument })
    }

    fn rename(&self, call: &mut ToolCall) {
        self.to.clone_into(&mut call.name);
        let Some(argument) = &self.argument else { return };
        if let Ok(arguments) = json::parse_object(&call.arguments)
            && let [value] = arguments.values().collect::<Vec<_>>().as_slice()
        {
            call.arguments = serde_json::json!({ argument: value }).to_string();
        }
    }
}

impl RecordedRun {
    /// The replies of a conversation from elsewhere.
    pub fn of_foreign(imported: Imported, renames: &[ToolRename]) -> Self {
        let steps = imported.items.into_iter().filter_map(|item| match item {
            Item::Step(step) => Some(step),
            _ => None,
        });
        let exchanges = steps.map(|mut step| {
            for part in &mut step.parts {
                if let ReplyPart::Call(call) = part
                    && let Some(rename) = renames.iter().find(|rename| rename.from == call.request.name)
                {
                    rename.rename(&mut call.request);
                }
            }
            RecordedExchange { request: Value::Null, pieces: write_pieces(&step), end: end_of(&step) }
        });
        Self { exchanges: exchanges.collect(), calls: Vec::new() }
    }
}
