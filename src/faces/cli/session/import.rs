//! `agent session import`: conversations that other programs recorded, to go on with here.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::agent::assembly;
use crate::base::secrets::Redactor;
use crate::base::text::count_noun;
use crate::config::Config;
use crate::conversation::event::CallTelemetry;
use crate::conversation::import::{Imported, read_conversation};
use crate::conversation::message::{Call, CallAnswer, Item, ReplyPart, Step, UserText};
use crate::conversation::session::{About, Session, SessionError};
use crate::files::regular::{Links, read_bytes};
use crate::files::workspace::Workspace;

use super::super::setup::CliSetup;
use super::super::{CommandFailure, CommandOutcome, exit, note_progress, print_text, warn_person};

/// The largest file, in bytes.
const LARGEST: u64 = 512 << 20;
/// The answer to a call whose result the file does not hold.
const NO_RESULT: &str = "The imported conversation has no result of this call.";

pub(super) fn import_sessions(
    setup: &CliSetup,
    config: &Config,
    workspace: &Workspace,
    files: &[PathBuf],
) -> CommandOutcome {
    // All are read before the first is written.
    let all = files.iter().map(|path| Ok((path, read_file(path)?)));
    let all = all.collect::<Result<Vec<_>, CommandFailure>>()?;
    let redactor = config.redactor();
    for (path, imported) in all {
        let id = write_session(setup, config, workspace, path, imported, &redactor)?;
        print_text(format!("{id}\n"))?;
    }
    Ok(exit::DONE)
}

fn read_file(path: &Path) -> Result<Imported, CommandFailure> {
    let wrong = |why: String| CommandFailure::usage(format!("{}: {why}", path.display()));
    let bytes = read_bytes(path, Links::Follow, LARGEST).map_err(wrong)?;
    let bytes = bytes.ok_or_else(|| wrong("there is no such file".to_owned()))?;
    read_conversation(&String::from_utf8_lossy(&bytes)).map_err(wrong)
}

fn write_session(
    setup: &CliSetup,
    config: &Config,
    workspace: &Workspace,
    path: &Path,
    imported: Imported,
    redactor: &Redactor,
) -> Result<String, CommandFailure> {
    let Imported { source, model, items, loose, damaged } = imported;
    let about = About {
        workspace: workspace.root(),
        copy: None,
        is_layer: false,
        agent: &config.settings.default_agent,
        model: model.as_deref().unwrap_or("imported"),
    };
    let mut session = assembly::open_store(config).create(about, Timestamp::now());
    let count = items.len() as u64;
    // What it holds was not asked for here: more calls ask from now on.
    session.mark_tainted(&format!("a conversation of {source}"), Timestamp::now());
    write_items(&mut session, items, redactor)?;
    let name = path.display();
    if damaged > 0 {
        warn_person(&format!("{name}: {} could not be read", count_noun(damaged as u64, "line", "lines")));
    }
    if loose > 0 {
        let what = count_noun(loose as u64, "call or result has", "calls or results have");
        warn_person(&format!("{name}: {what} no counterpart"));
    }
    if !setup.global.quiet {
        let id = session.id();
        let messages = count_noun(count, "message", "messages");
        note_progress(&format!("{name}: {messages} of {source}. To go on: agent --session {id}"));
    }
    Ok(session.id().to_owned())
}

fn write_items(session: &mut Session, items: Vec<Item>, redactor: &Redactor) -> Result<(), SessionError> {
    let now = Timestamp::now();
    let redact = |text: String| redactor.redact(&text).into_owned();
    for item in items {
        match item {
            Item::Said(said) => session.say(UserText { text: redact(said.text), ..said }, now)?,
            Item::Summary(_) => {}
            Item::Step(step) => {
                let mut answers = Vec::new();
                let parts = step.parts.into_iter().map(|part| redact_part(part, &redact, &mut answers)).collect();
                let number = session.reply(Step { parts, ..step }, now)?;
                for (at, (tool, answer)) in answers.into_iter().enumerate() {
                    let Some(answer) = answer else { continue };
                    let telemetry = CallTelemetry::unmeasured(&tool, answer.status);
                    session.answer((number, at), answer, telemetry, now)?;
                }
                session.settle(NO_RESULT, now)?;
            }
        }
    }
    session.sync()
}

/// A part without secrets; the answer of a call is put aside.
fn redact_part(
    part: ReplyPart,
    redact: &dyn Fn(String) -> String,
    answers: &mut Vec<(String, Option<CallAnswer>)>,
) -> ReplyPart {
    match part {
        ReplyPart::Text { text, opaque } => ReplyPart::Text { text: redact(text), opaque },
        ReplyPart::Reasoning { text, opaque } => ReplyPart::Reasoning { text: redact(text), opaque },
        ReplyPart::Call(Call { mut request, answer, .. }) => {
            request.arguments = redact(request.arguments);
            let answer = answer.map(|answer| CallAnswer { content: redact(answer.content), ..answer });
            answers.push((request.name.clone(), answer));
            ReplyPart::Call(Call { request, opaque: None, answer: None })
        }
    }
}
