//! Conversations in the forms of others: Markdown and HTML for people, JSON for programs, OpenAI's messages, and ATIF,
//! the trajectories of benchmarks. Pure. What a log keeps is redacted, and so is what is made of it.

mod atif;
mod html;
mod markdown;
mod messages;
mod peer;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};

use super::message::{Call, Handle, Item, ReplyPart, ToolCall};
use super::session::{Session, SessionError};

pub use peer::write_for_peer;

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportForm {
    Markdown,
    Html,
    Json,
    /// One line with OpenAI's messages.
    Openai,
    Atif,
}

/// A conversation to be exported.
pub struct Exported {
    pub id: String,
    /// The first words of the person.
    pub title: String,
    pub agent: String,
    pub model: String,
    pub created_at: String,
    pub system: String,
    /// The messages as they were recorded.
    pub items: Vec<Item>,
    /// Their numbers, by which undos and forks name them.
    pub numbers: Vec<u64>,
    pub usage: super::message::Usage,
    pub cost_usd: Option<f64>,
    /// The conversations of its helpers.
    pub helpers: Vec<Exported>,
}

impl Exported {
    /// Takes a session.
    ///
    /// # Errors
    /// Its log cannot be read.
    pub fn read(session: &Session, helpers: Vec<Self>) -> Result<Self, SessionError> {
        let about = session.describe();
        let (numbers, items) = session.originals_with_numbers()?;
        Ok(Self {
            id: session.id().to_owned(),
            title: session.title().to_owned(),
            agent: about.agent.to_owned(),
            model: about.model.to_owned(),
            created_at: session.started_at().to_string(),
            system: session.system().map(|prompt| prompt.text.clone()).unwrap_or_default(),
            items,
            numbers,
            usage: session.usage(),
            cost_usd: session.cost_usd(),
            helpers,
        })
    }

    /// Writes it in a form.
    pub fn write(&self, form: ExportForm) -> String {
        match form {
            ExportForm::Markdown => markdown::write_markdown(self),
            ExportForm::Html => html::write_html(self),
            ExportForm::Json => format!("{:#}\n", messages::write_json(self)),
            ExportForm::Openai => format!("{}\n", json!({ "messages": messages::write_openai(self) })),
            ExportForm::Atif => format!("{:#}\n", atif::write_trajectory(self)),
        }
    }
}

/// A piece of a conversation as a person reads it.
enum ExportedPiece<'a> {
    /// Who speaks from here on.
    Heading(Cow<'static, str>),
    Text(Cow<'a, str>),
    /// A call with its result.
    Call(&'a Call),
}

impl Exported {
    /// What a person reads of it, in order: all but thoughts and empty texts.
    fn list_passages(&self) -> Vec<ExportedPiece<'_>> {
        let mut all = Vec::new();
        for (item, number) in self.items.iter().zip(&self.numbers) {
            match item {
                Item::Said(said) => {
                    let who = if said.author.is_person() {
                        format!("You ({})", Handle::item(*number)).into()
                    } else {
                        "The program".into()
                    };
                    all.push(ExportedPiece::Heading(who));
                    all.extend(said.texts().map(|text| ExportedPiece::Text(text.trim().into())));
                }
                Item::Summary(summary) => {
                    all.extend([
                        ExportedPiece::Heading("Summary".into()),
                        ExportedPiece::Text(summary.text.trim().into()),
                    ]);
                }
                Item::Step(step) => {
                    all.push(ExportedPiece::Heading("Agent".into()));
                    all.extend(step.parts.iter().filter_map(|part| match part {
                        ReplyPart::Text { text, .. } => Some(ExportedPiece::Text(text.trim().into())),
                        ReplyPart::Call(call) => Some(ExportedPiece::Call(call)),
                        ReplyPart::Reasoning { .. } => None,
                    }));
                }
            }
        }
        all.retain(|passage| !matches!(passage, ExportedPiece::Text(text) if text.is_empty()));
        all
    }

    /// The line below its title.
    fn describe(&self) -> String {
        format!("Session {}, {}, agent {}, model {}", self.id, self.created_at, self.agent, self.model)
    }
}

/// The arguments of a call as data; an object with their text where they are none.
fn read_arguments(call: &ToolCall) -> Value {
    crate::base::json::object_or_unparsed(&call.arguments)
}

#[cfg(test)]
mod tests;
