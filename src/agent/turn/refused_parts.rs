//! The parts of a conversation that a provider can refuse: where a request shows them, their names, and the notes in
//! their place.

use serde_json::json;

use crate::base::image::Image;
use crate::conversation::message::{Handle, Item, Step};
use crate::conversation::session::{ItemChange, Session, ViewEdit};
use crate::model::PointedPart;
use crate::model::history::is_sent_as;

/// The beginning of every note in the place of a part.
pub(super) const NOTE: &str = "[The provider does not take this";

/// A part of the conversation that the provider refused, or may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RefusedPart {
    /// The position of its item in the conversation.
    pub at: usize,
    pub kind: RefusedKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusedKind {
    /// The text of a message or of a reply.
    Words,
    /// A picture of a message, or of the answer to a call.
    Picture { call: Option<usize>, picture: usize },
    /// The arguments of a call, by its position in the step.
    Arguments(usize),
    /// The answer to a call.
    Answer(usize),
}

impl RefusedPart {
    /// The edit that puts a note in its place; `words` are the provider's.
    pub fn edit(self, session: &Session, words: &str) -> ViewEdit {
        let number = session.ids()[self.at].number;
        let note = |what: &str, handle: Handle| {
            format!("{NOTE} {what}{words}, so it is left out; recall id={handle} reads it]")
        };
        let is_summary = matches!(session.items()[self.at], Item::Summary(_));
        let change = match self.kind {
            RefusedKind::Words if is_summary => ItemChange::Text {
                text: format!("{NOTE} summary{words}, so it is left out; recall finds what was said]"),
            },
            RefusedKind::Words => ItemChange::Text { text: note("text", Handle::item(number)) },
            RefusedKind::Picture { call, picture } => {
                ItemChange::Picture { call, picture, note: format!("{NOTE} picture{words}, so it is left out]") }
            }
            RefusedKind::Arguments(call) => {
                let arguments = json!({ "left_out": note("call", Handle::item(number)) }).to_string();
                ItemChange::Arguments { call, arguments }
            }
            RefusedKind::Answer(call) => {
                ItemChange::Answer { call, content: note("result", Handle::answer(number, call)) }
            }
        };
        ViewEdit { number, change }
    }

    /// Its name for a person.
    pub fn name(self, session: &Session) -> String {
        let number = session.ids()[self.at].number;
        let item = &session.items()[self.at];
        let tool = |call: usize| {
            let call = item.as_step().and_then(|step| step.calls().nth(call));
            call.map_or("a call", |call| call.request.name.as_str())
        };
        match self.kind {
            RefusedKind::Words if item.said_by_person().is_some() => format!("your message m{number}"),
            RefusedKind::Words => format!("the text m{number}"),
            RefusedKind::Picture { picture, .. } => format!("picture {} of m{number}", picture + 1),
            RefusedKind::Arguments(call) => format!("the arguments of {} in m{number}", tool(call)),
            RefusedKind::Answer(call) => format!("the result {} of {}", Handle::answer(number, call), tool(call)),
        }
    }
}

/// Every picture of a conversation, the oldest first.
pub(super) fn list_pictures(items: &[Item]) -> impl Iterator<Item = (RefusedPart, &Image)> {
    items.iter().enumerate().flat_map(|(at, item)| {
        let part = move |call, picture| RefusedPart { at, kind: RefusedKind::Picture { call, picture } };
        let said = if let Item::Said(said) = item { said.images.as_slice() } else { &[] };
        let said = said.iter().enumerate().map(move |(picture, image)| (part(None, picture), image));
        let calls = item.as_step().into_iter().flat_map(Step::calls).enumerate();
        let answers = calls.filter_map(|(call, made)| Some((call, made.answer.as_ref()?)));
        said.chain(answers.flat_map(move |(call, answer)| {
            answer.images.iter().enumerate().map(move |(picture, image)| (part(Some(call), picture), image))
        }))
    })
}

/// The parts of a conversation that a part of its request shows.
pub(super) fn find_parts(items: &[Item], pointed: &PointedPart) -> Vec<RefusedPart> {
    let calls = |at: usize| items[at].as_step().into_iter().flat_map(Step::calls).enumerate();
    let of_call = |id: &str, kind: fn(usize) -> RefusedKind| {
        let find =
            |at: usize| calls(at).find(|(_, call)| is_sent_as(&call.request.id, id)).map(|(call, _)| (at, call));
        let found = (0..items.len()).rev().find_map(find);
        found.map(|(at, call)| RefusedPart { at, kind: kind(call) }).into_iter().collect()
    };
    match pointed {
        PointedPart::Result(id) => of_call(id, RefusedKind::Answer),
        PointedPart::Arguments(id) => of_call(id, RefusedKind::Arguments),
        PointedPart::Picture(data) => {
            list_pictures(items).filter(|(_, image)| data.ends_with(&image.data)).map(|(part, _)| part).collect()
        }
        PointedPart::Text(text) => {
            let shows = |at: &usize| shows_text(&items[*at], text);
            (0..items.len()).filter(shows).map(|at| RefusedPart { at, kind: RefusedKind::Words }).collect()
        }
    }
}

/// True if an item shows this text of a request, alone or joined with others.
fn shows_text(item: &Item, sent: &str) -> bool {
    let shows = |text: &str| {
        let text = text.trim();
        !text.is_empty()
            && sent.match_indices(text).any(|(at, _)| {
                let (before, after) =
                    (sent[..at].trim_end_matches(' '), sent[at + text.len()..].trim_start_matches(' '));
                (before.is_empty() || before.ends_with('\n')) && (after.is_empty() || after.starts_with('\n'))
            })
    };
    match item {
        Item::Said(said) => said.texts().any(shows),
        Item::Summary(summary) => shows(&summary.text),
        Item::Step(step) => shows(&step.text()),
    }
}
