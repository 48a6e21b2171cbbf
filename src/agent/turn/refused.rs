//! A way back: a part of the conversation that the provider refuses is left out, and the request is sent again. The
//! part becomes a note with the provider's reason and the handle of the text, which stays in the log.
//!
//! The provider's own pointer says which part it is. Without one, the newest results are left out one after another;
//! the third try leaves out everything that no reply has followed. The person's newest message always stays: they
//! alone change it.
//!
//! Of pictures exactly those that are refused go (`refused_pictures.rs`), also out of the newest message.
//!
//! A try changes only the request. It is recorded, as a compression is, once the provider has accepted it.

use jiff::Timestamp;

use crate::agent::request::purpose::Purpose;
use crate::base::text;
use crate::conversation::event::{Compressed, CompressionReason, EventKind};
use crate::conversation::message::{Call, Handle, Item, Step, Usage};
use crate::conversation::session::{SessionView, ViewEdit};
use crate::model::{ModelError, PointedPart};

use super::refused_parts::{NOTE, RefusedKind, RefusedPart, find_parts};
use super::{Turn, TurnStop};

/// The most tries without a pointer.
const MOST_GUESSES: usize = 3;

/// The most times that a provider may point at a part of one request.
const MOST_POINTED: usize = 12;

/// Shorter arguments say nothing that a provider refuses.
const LONG_ARGUMENTS: usize = 256;

/// What is left out of the running request.
pub(in crate::agent) struct Withheld {
    /// The conversation as it is sent.
    pub view: SessionView,
    pub(super) parts: Vec<RefusedPart>,
    edits: Vec<ViewEdit>,
    /// The provider's words, or what is known of it.
    why: String,
    /// The size of the request that was refused.
    tokens_before: u64,
    /// Notes without the provider's words, which may repeat what it refuses.
    is_bare: bool,
    tries: RefusalTries,
}

/// The tries to get the running request accepted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RefusalTries {
    guessed: usize,
    pointed: usize,
    /// Those that left out a picture.
    pictures: usize,
}

impl Turn<'_> {
    /// Leaves out of the request what the provider refused in it; false if nothing can be left out. An error that is
    /// about the person's newest message then says so.
    pub(super) fn withhold(&mut self, purpose: &Purpose, error: &mut ModelError) -> bool {
        let mut tries = self.withheld.as_ref().map_or(RefusalTries::default(), |tried| tried.tries);
        let newest = self.conversation.session.items().iter().rposition(|item| item.said_by_person().is_some());
        let mut parts = self.name_parts(purpose, error);
        let pictures = self.find_refused_pictures(&parts, error, &mut tries.pictures);
        if !pictures.is_empty() {
            return self.leave_out(&pictures, describe_refusal(error), false, tries);
        }
        if parts.is_empty() {
            if !error.names_content() || tries.guessed >= MOST_GUESSES {
                return false;
            }
            tries.guessed += 1;
            let parts = self.guess_parts(newest, tries.guessed);
            return self.leave_out(&parts, describe_refusal(error), tries.guessed == MOST_GUESSES, tries);
        }
        parts.retain(|part| Some(part.at) != newest || matches!(part.kind, RefusedKind::Picture { .. }));
        tries.pointed += 1;
        if parts.is_empty() {
            self.blame_newest(newest, error);
        }
        let is_known = |part: &RefusedPart| self.withheld.as_ref().is_some_and(|tried| tried.parts.contains(part));
        let is_bare = parts.iter().any(is_known);
        tries.pointed <= MOST_POINTED && self.leave_out(&parts, describe_refusal(error), is_bare, tries)
    }

    /// Records what was left out of a request that the provider has accepted, and tells the person.
    pub(super) fn keep_withheld(&mut self) -> Result<(), TurnStop> {
        let Some(withheld) = self.withheld.take() else { return Ok(()) };
        let session = &mut self.conversation.session;
        let named = withheld.parts.iter().map(|part| part.name(session)).collect::<Vec<_>>().join(", ");
        let mut done = Compressed {
            reason: CompressionReason::Refused,
            strategy: self.agent.context.strategy.name().to_owned(),
            tokens_before: withheld.tokens_before,
            tokens_after: withheld.tokens_before,
            budget: 0,
            masked: withheld.edits.len(),
            summarized: 0,
            unloaded: 0,
            usage: Usage::default(),
            cost_usd: None,
        };
        self.conversation.cached = None;
        session.compress(&done, &withheld.edits, None, Timestamp::now()).map_err(anyhow::Error::from)?;
        done.tokens_after = self.measure().tokens;
        done.budget = self.budget().tokens;
        let message = format!("the provider does not take {named} ({}): left out from now on", withheld.why);
        self.run.emitter.emit(EventKind::Warning { message })?;
        Ok(self.run.emitter.emit(EventKind::ContextCompressed(done))?)
    }

    /// Leaves these parts out of the request too, for the reason `why`; false if that changes nothing.
    pub(super) fn leave_out(
        &mut self,
        parts: &[RefusedPart],
        why: String,
        is_bare: bool,
        tries: RefusalTries,
    ) -> bool {
        let (before, was_bare) =
            self.withheld.as_ref().map_or((&[][..], false), |tried| (tried.parts.as_slice(), tried.is_bare));
        let new: Vec<RefusedPart> = parts.iter().copied().filter(|part| !before.contains(part)).collect();
        if new.is_empty() && (parts.is_empty() || was_bare || !is_bare) {
            return false;
        }
        let (mut parts, is_bare) = ([before, &new].concat(), is_bare || was_bare);
        // Pictures of one text are left out from the last to the first.
        parts.sort_by_key(|part| match part.kind {
            RefusedKind::Picture { picture, .. } => (part.at, usize::MAX - picture),
            _ => (part.at, 0),
        });
        let tokens_before = self.withheld.as_ref().map(|tried| tried.tokens_before);
        let tokens_before = tokens_before.unwrap_or_else(|| self.measure().tokens);
        let why = self.agent.redactor.redact(&why).into_owned();
        let session = &self.conversation.session;
        let words = if is_bare { String::new() } else { format!(" ({why})") };
        let edits: Vec<ViewEdit> = parts.iter().map(|part| part.edit(session, &words)).collect();
        let view = session.preview_edits(&edits);
        self.withheld = Some(Withheld { view, parts, edits, why, tokens_before, is_bare, tries });
        true
    }

    /// The parts at the place that the provider names.
    fn name_parts(&self, purpose: &Purpose, error: &ModelError) -> Vec<RefusedPart> {
        let Some(pointer) = error.find_pointer() else { return Vec::new() };
        let body = self.agent.model.preview(self.request(purpose, purpose.has_tools()));
        let session = &self.conversation.session;
        let sent = self.withheld.as_ref().map_or(session.items(), |tried| &tried.view.items);
        let find = |pointed: &PointedPart| match pointed {
            PointedPart::Picture(_) => find_parts(session.items(), pointed),
            _ => find_parts(sent, pointed),
        };
        pointer.list_parts(&body).iter().flat_map(find).collect()
    }

    /// The parts to leave out without a pointer: the newest ones, in the last try all that no reply has followed.
    fn guess_parts(&self, newest: Option<usize>, guess: usize) -> Vec<RefusedPart> {
        let items = self.conversation.session.items();
        let last_step = items.iter().rposition(|item| matches!(item, Item::Step(_))).unwrap_or(0);
        let mut parts = Vec::new();
        for (at, item) in items.iter().enumerate().rev() {
            match item {
                Item::Said(said) if said.author.is_person() && at > last_step && Some(at) != newest => {
                    parts.push(RefusedPart { at, kind: RefusedKind::Words });
                }
                Item::Step(step) => {
                    let calls: Vec<usize> =
                        (0..).zip(step.calls()).filter(|(_, call)| is_whole(call)).map(|(call, _)| call).collect();
                    parts.extend(
                        calls.iter().rev().map(|call| RefusedPart { at, kind: RefusedKind::Answer(*call) }),
                    );
                }
                Item::Said(_) | Item::Summary(_) => {}
            }
        }
        let unanswered = parts.iter().take_while(|part| part.at >= last_step).count();
        if guess < MOST_GUESSES {
            parts.truncate(guess);
            return parts;
        }
        parts.truncate(unanswered.max(guess));
        // What the model wrote into a file may be what is refused.
        let calls = items.get(last_step).and_then(Item::as_step).into_iter().flat_map(Step::calls);
        let long = calls.enumerate().filter(|(_, call)| call.request.arguments.len() > LONG_ARGUMENTS);
        parts.extend(long.map(|(call, _)| RefusedPart { at: last_step, kind: RefusedKind::Arguments(call) }));
        // A summary may quote what is refused.
        let summaries = (0..items.len()).filter(|at| matches!(items[*at], Item::Summary(_)));
        parts.extend(summaries.map(|at| RefusedPart { at, kind: RefusedKind::Words }));
        parts
    }

    /// Tells the person that the provider refuses their newest message.
    fn blame_newest(&self, newest: Option<usize>, error: &mut ModelError) {
        let Some(at) = newest else { return };
        let session = &self.conversation.session;
        let handle = Handle::item(session.ids()[at].number);
        let said = text::one_line(session.items()[at].said_by_person().unwrap_or_default(), 40);
        let words = format!(" (your message {handle} was refused: \"{said}\"; put it in other words)");
        error.message.push_str(&words);
    }
}

/// True if a call has an answer that was not left out already.
fn is_whole(call: &Call) -> bool {
    call.answer.as_ref().is_some_and(|answer| !answer.content.starts_with(NOTE))
}

/// The refusal in a few words.
fn describe_refusal(error: &ModelError) -> String {
    const COLUMNS: usize = 160;
    let words = text::one_line(&error.message, COLUMNS);
    error.status.map_or_else(|| words.clone(), |status| format!("HTTP {status}: {words}"))
}
