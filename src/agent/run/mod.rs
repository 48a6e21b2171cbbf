//! The driver: one run, from what a face gives it to its ending. Chat, one task, helpers and tests of prompts go through
//! here, so that none of them leaves a part out.
//!
//! The order: the messages of the prompt, the skills and the system prompt, so that a mistake in them comes before any
//! event; `run.started` and the warnings; the turn; the end of background commands; the ending with secrets masked,
//! recorded in the session and emitted as `run.completed`. A run whose future is dropped is settled and ends the same
//! way. The events of a helper belong to the run of its caller, which alone begins and ends. A dry run is the same run,
//! stopped before its first request.

pub(super) mod compact;
pub mod exit;
mod report;
mod skills_by_hand;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::agent::briefing::{brief_conversation, list_changes_since};
use crate::agent::request::purpose::Purpose;
use crate::agent::turn::{Turn, TurnEnd, TurnInput, TurnStop, hear_hooks, take_turn};
use crate::agent::{Agent, Cancel, Conversation, Run};
use crate::conversation::attachment::{Attachments, attach_files};
use crate::conversation::event::{Compressed, EventKind};
use crate::conversation::message::{Item, UserText};
use crate::files::history::AppearedPaths;
use crate::tools::warn_of_changes;

use compact::compress_conversation;
use exit::Ending;
use report::{report_completed, report_start};
use skills_by_hand::{already_loaded, fetch_skills, load_skills};

pub use compact::{Preview, measure_fill, pin_items, preview_compression, unpin_items};
pub use skills_by_hand::unload_skill;

/// Keeps the answer of a run somewhere else. The error is a sentence, and fails the run.
pub type KeepAnswer<'a> = Box<dyn FnOnce(&TurnEnd) -> Result<(), String> + Send + 'a>;

/// What a face gives a run.
#[derive(Default)]
pub struct RunInput<'a> {
    /// The person's message. `None`: the user message that ends the messages of the prompt.
    pub said: Option<UserText>,
    /// The messages before it, in place of those of the prompt.
    pub opening: Option<Vec<Item>>,
    /// The skills to load with it.
    pub skills: Vec<String>,
    pub attached: Attachments,
    /// Warnings about the preparation, to show first.
    pub warnings: Vec<String>,
    /// Background commands go on after the run, unless it was interrupted.
    pub keeps_background: bool,
    /// Called with the end of the turn, before the ending is recorded.
    pub keep_answer: Option<KeepAnswer<'a>>,
}

/// The end of a run.
#[derive(Debug)]
pub struct RunEnd {
    pub stop: TurnStop,
    /// As in [`TurnEnd`].
    pub answer: String,
    pub ending: Ending,
    /// False if nobody can read the output any more.
    pub is_seen: bool,
}

/// Runs one input to its ending.
///
/// # Errors
/// A skill or a prompt is wrong, its rendering was interrupted, or there is nothing to answer: the run has not begun, and
/// no event was emitted.
pub async fn run_input(
    agent: &Agent,
    conversation: &mut Conversation,
    run: &mut Run,
    mut given: RunInput<'_>,
    cancel: &Cancel,
) -> Result<RunEnd, Ending> {
    if let Some(source) = run.superior.as_ref().and_then(|superior| superior.taint()) {
        conversation.session.mark_tainted(source, Timestamp::now());
    }
    if let Some(servers) = agent.tools.servers().filter(|_| !run.is_dry) {
        servers.begin();
    }
    if run.superior.is_none() && !run.is_dry {
        let text = given.said.as_ref().map(|said| said.text.as_str());
        match Box::pin(hear_hooks(agent, conversation, run, text, &mut given.warnings)).await {
            Ok(added) => given.attached.texts.extend(added),
            Err(why) => return Err(agent.refuse(&anyhow::Error::msg(why), cancel.signal())),
        }
    }
    if let Err(error) = fetch_skills(agent, conversation, &given.skills, cancel).await {
        return Err(agent.refuse(&error.into(), cancel.signal()));
    }
    let prepared = complete_input(agent, conversation, run, &mut given)
        .and_then(|(input, loaded)| Ok((input, loaded, brief_conversation(agent, conversation, run)?)));
    let (input, loaded, notes) = prepared.map_err(|error| agent.refuse(&error, cancel.signal()))?;
    let RunInput { skills, warnings, keeps_background, keep_answer, .. } = given;
    let emitter = Arc::clone(&run.emitter);
    if announces(run) {
        emitter.notify(report_start(agent, conversation.session.id()));
    }
    emitter.warn(warnings);
    emitter.warn(already_loaded(&skills, &loaded));
    for event in loaded {
        emitter.notify(event);
    }
    emitter.warn(notes);
    let work = Some(Work::Turn);
    let mut open = OpenRun { agent, conversation, run, cancel, keeps_background, keep_answer, work };
    open.finish_left_work().await;
    let end = take_turn(agent, open.conversation, open.run, input, cancel).await;
    open.finish_left_work().await;
    open.run.emitter.warn(agent.tools.take_failures());
    Ok(open.end_turn(end))
}

/// Compresses a conversation as a run of its own. `focus` is the topic that a summary must keep. `None` if there is
/// nothing to gain.
///
/// # Errors
/// The prompt is wrong, it was interrupted, or the program itself failed.
pub async fn run_compression(
    agent: &Agent,
    conversation: &mut Conversation,
    run: &mut Run,
    focus: &str,
    cancel: &Cancel,
) -> Result<Option<Compressed>, Ending> {
    refresh_prompt(agent, conversation, run, cancel)?;
    let work = Some(Work::Compression);
    let mut open = OpenRun { agent, conversation, run, cancel, keeps_background: true, keep_answer: None, work };
    let done = compress_conversation(agent, open.conversation, open.run, focus, cancel).await;
    let done = done.map_err(|stop| open.settle().err().unwrap_or(stop));
    open.work = None;
    done.map_err(|stop| agent.ending(&stop, open.run, cancel))
}

/// Gives a conversation the system prompt of its next request, for a look at that request. Warns as a run would.
///
/// # Errors
/// The prompt is wrong.
pub fn refresh_prompt(
    agent: &Agent,
    conversation: &mut Conversation,
    run: &Run,
    cancel: &Cancel,
) -> Result<(), Ending> {
    let refuse = |error| agent.refuse(&error, cancel.signal());
    let notes = brief_conversation(agent, conversation, run).map_err(refuse)?;
    run.emitter.warn(notes);
    Ok(())
}

/// The body of the request that the model was sent when a conversation stood as it does, and what of the configuration
/// has changed since, so that it may have been another.
pub fn show_request(
    agent: &Agent,
    conversation: &mut Conversation,
    run: &mut Run,
    closing: bool,
) -> (Value, Vec<String>) {
    let changed = list_changes_since(agent, conversation);
    let purpose = if closing { Purpose::Closing } else { Purpose::Answer };
    let turn = Turn::new(agent, conversation, run);
    (agent.model.preview(turn.request(&purpose, true)), changed)
}

/// A run that has begun. Dropping it ends it as interrupted.
struct OpenRun<'a> {
    agent: &'a Agent,
    conversation: &'a mut Conversation,
    run: &'a mut Run,
    cancel: &'a Cancel,
    keeps_background: bool,
    keep_answer: Option<KeepAnswer<'a>>,
    /// `None` once it has ended.
    work: Option<Work>,
}

/// The work of a run.
#[derive(Clone, Copy)]
enum Work {
    Turn,
    Compression,
}

impl OpenRun<'_> {
    /// Completes the conversation after its turn was dropped.
    fn settle(&mut self) -> Result<(), TurnStop> {
        Turn::new(self.agent, self.conversation, self.run).settle(&TurnStop::Interrupted)
    }

    /// Does what cancelled helpers left to be done. Only the outermost run does it.
    async fn finish_left_work(&mut self) {
        if announces(self.run) {
            self.run.emitter.warn(self.agent.unfinished.finish().await);
        }
    }

    /// Ends the turn: for its helpers and commands, in the session, and for the observers.
    fn end_turn(&mut self, end: TurnEnd) -> RunEnd {
        self.work = None;
        let Self { agent, conversation, run, cancel, .. } = self;
        if !self.keeps_background || matches!(end.stop, TurnStop::Interrupted) {
            run.emitter.warn(agent.end_background());
        }
        let appeared = match (conversation.file_history(), &run.superior) {
            (Some(history), None) => history.end_turn(),
            // Who called a helper ends the turn.
            (Some(_), Some(_)) => Some(AppearedPaths::default()),
            (None, _) => None,
        };
        let known = appeared.as_ref().map(|appeared| &*appeared.repositories);
        let undone = agent.sandbox.as_ref().map(|sandbox| sandbox.guard_turn(known)).unwrap_or_default();
        run.emitter.warn(warn_of_changes(&undone, &appeared.unwrap_or_default().executables));
        if let (Some(superior), Some(source)) = (&run.superior, conversation.session.taint()) {
            superior.report_taint(source);
        }
        let mut ending = agent.ending(&end.stop, run, cancel);
        if let Some(Err(why)) = self.keep_answer.take().map(|keep| keep(&end)) {
            ending.fail(why);
        }
        if let Err(error) = conversation.session.end_turn(&ending.reason, ending.code, Timestamp::now()) {
            ending.fail(exit::word_failure(&error.into()));
        }
        let is_seen = !announces(run) || run.emitter.emit(report_completed(agent, run, &ending, &end)).is_ok();
        RunEnd { stop: end.stop, answer: end.answer, ending, is_seen }
    }
}

impl Drop for OpenRun<'_> {
    fn drop(&mut self) {
        let Some(work) = self.work else { return };
        let failure = self.settle().err();
        match work {
            Work::Turn => {
                let stop = failure.unwrap_or(TurnStop::Interrupted);
                self.end_turn(TurnEnd { stop, answer: String::new() });
            }
            Work::Compression => {
                let reason = |stop| self.agent.ending(&stop, self.run, self.cancel).reason;
                self.run.emitter.warn(failure.map(reason));
            }
        }
    }
}

/// True if the observers hear where the run begins and ends: a helper's run is part of its caller's, and a dry run
/// reports nothing but warnings.
fn announces(run: &Run) -> bool {
    run.superior.is_none() && !run.is_dry
}

/// The input of the turn: what opens the conversation, and the message with skills, attachments and the instruction of
/// the schema. Returns the events of the skills, too.
fn complete_input(
    agent: &Agent,
    conversation: &Conversation,
    run: &Run,
    given: &mut RunInput<'_>,
) -> anyhow::Result<(TurnInput, Vec<EventKind>)> {
    let mut opening = match given.opening.take() {
        Some(opening) => opening,
        None => agent.opening(conversation, &run.emitter.run_id())?,
    };
    let mut said = match given.said.take() {
        Some(said) => said,
        None => match opening.pop() {
            Some(Item::Said(said)) => said,
            _ => anyhow::bail!("nothing is left to answer: the prompt's messages end with none of the user"),
        },
    };
    let loaded = load_skills(agent, conversation, &mut said, &given.skills)?;
    said.text = attach_files(&said.text, &given.attached.texts);
    said.images.append(&mut given.attached.pictures);
    // A flow's input is data, and the model that answers is told by its own prompt.
    if let Some(schema) = agent.schema.as_ref().filter(|_| agent.orchestration.flows.chosen.is_none()) {
        said.text = format!("{}\n\n{}", said.text, schema.instruction());
    }
    Ok((TurnInput { opening, said }, loaded))
}

impl Agent {
    /// True if the messages of the prompt end with one of the user, so that a run needs no message.
    ///
    /// # Errors
    /// As [`Agent::opening`].
    pub fn is_asked(&self, conversation: &Conversation, run_id: &str) -> anyhow::Result<bool> {
        Ok(matches!(self.opening(conversation, run_id)?.last(), Some(Item::Said(_))))
    }

    /// The ending of a run that did not begin.
    fn refuse(&self, error: &anyhow::Error, signal: Option<exit::Signal>) -> Ending {
        self.mask_reason(exit::refuse_run(error, signal))
    }

    fn ending(&self, stop: &TurnStop, run: &Run, cancel: &Cancel) -> Ending {
        self.mask_reason(exit::name_ending(stop, run.totals.unasked, self.approval, cancel.signal()))
    }

    fn mask_reason(&self, ending: Ending) -> Ending {
        Ending { reason: self.redactor.redact(&ending.reason).into_owned(), ..ending }
    }
}
