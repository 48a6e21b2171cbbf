//! Opens a conversation: records the messages of a prompt before the first input, and never again.

use std::path::Path;

use crate::agent::turn::{Turn, TurnStop};
use crate::agent::{Agent, Conversation};
use crate::base::image::{self, Image};
use crate::base::secrets::Redactor;
use crate::base::text;
use crate::conversation::event::CallTelemetry;
use crate::conversation::message::{Item, ReplyPart, Step};
use crate::files::regular::{Links, read_bytes};
use crate::files::workspace::Workspace;
use crate::prompt::{Prompt, PromptError};
use crate::template::Value;

impl Agent {
    /// The messages of its prompt for a conversation, without those of the system prompt. Empty once the conversation
    /// has begun.
    ///
    /// # Errors
    /// A variable is missing, or the messages are not valid in a conversation.
    pub fn opening(&self, conversation: &Conversation, run_id: &str) -> anyhow::Result<Vec<Item>> {
        if !conversation.session.items().is_empty() {
            return Ok(Vec::new());
        }
        let prompt = self.briefing.choose_prompt(conversation);
        if !prompt.has_messages() {
            return Ok(Vec::new());
        }
        Ok(self.items_of(prompt, &self.briefing.context_of(prompt, conversation, run_id))?)
    }

    /// Renders the messages of a prompt in this context, without those of the system prompt. Their pictures are files
    /// of the workspace.
    ///
    /// # Errors
    /// As [`Agent::opening`].
    pub fn items_of(&self, prompt: &Prompt, context: &Value) -> Result<Vec<Item>, PromptError> {
        let mut items = prompt.items(context, |source| read_picture(&self.workspace, source))?;
        for item in &mut items {
            redact_value(item, &self.redactor);
        }
        Ok(items)
    }
}

impl Turn<'_> {
    /// Records the opening messages: on disk, then in memory, then as events.
    pub(in crate::agent) fn open_with(&mut self, items: Vec<Item>) -> Result<(), TurnStop> {
        for item in items {
            match item {
                Item::Said(said) => self.say(said)?,
                Item::Step(step) => self.give(step)?,
                Item::Summary(_) => {}
            }
        }
        Ok(())
    }

    /// Records a reply that no model wrote, and the answers to its calls.
    fn give(&mut self, mut step: Step) -> Result<(), TurnStop> {
        let calls: Vec<_> = step.calls_mut().map(|call| (call.request.clone(), call.answer.take())).collect();
        let number = self.keep_reply(step)?;
        for (call, (request, answer)) in calls.into_iter().enumerate() {
            let Some(answer) = answer else { continue };
            let telemetry = CallTelemetry::unmeasured(&request.name, answer.status);
            self.keep_answer((number, call), &request, answer, telemetry)?;
        }
        Ok(())
    }
}

/// Removes known secrets, as from all input of a person.
fn redact_value(item: &mut Item, redactor: &Redactor) {
    let clean = |text: &mut String| *text = redactor.redact_known(text).into_owned();
    match item {
        Item::Said(said) => clean(&mut said.text),
        Item::Step(step) => {
            for part in &mut step.parts {
                match part {
                    ReplyPart::Text { text, .. } | ReplyPart::Reasoning { text, .. } => clean(text),
                    ReplyPart::Call(call) => {
                        clean(&mut call.request.arguments);
                        call.answer.iter_mut().for_each(|answer| clean(&mut answer.content));
                    }
                }
            }
        }
        Item::Summary(_) => {}
    }
}

/// Reads the picture that a prompt names: a file of the workspace, or a `data:` URL.
///
/// # Errors
/// A sentence with the reason.
pub fn read_picture(workspace: &Workspace, source: &str) -> Result<Image, String> {
    let name = text::one_line(source, 80);
    let wrong = |why: &str| format!("the picture {name} {why}");
    let bytes = if source.starts_with("data:") {
        image::decode_data_url(source).ok_or_else(|| wrong("is not written as data:image/TYPE;base64,DATA"))?
    } else if source.contains("://") {
        return Err(wrong("is a URL, and prompts fetch nothing: save the picture and name its path"));
    } else {
        let found = workspace.resolve_path(Path::new(source));
        if !found.inside || workspace.is_secret(&found.path) {
            return Err(wrong("is outside the workspace; only files in it are sent"));
        }
        let read = read_bytes(&found.path, Links::Refuse, image::MOST_FILE_BYTES).map_err(|why| wrong(&why))?;
        read.ok_or_else(|| wrong("does not exist"))?
    };
    Image::read(&bytes).map_err(|why| wrong(&why))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_files_of_the_workspace_or_written_out() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("w");
        std::fs::create_dir(&root).expect("created");
        for (name, bytes) in [("a.gif", &b"GIF89a"[..]), ("a.txt", b"text"), ("../out.gif", b"GIF89a")] {
            std::fs::write(root.join(name), bytes).expect("written");
        }
        std::fs::write(root.join("big.gif"), vec![b'G'; 5 * 1024 * 1024 + 1]).expect("written");
        std::os::unix::fs::symlink("../out.gif", root.join("link.gif")).expect("linked");
        let workspace = Workspace::open(&root).expect("it exists");
        for source in ["a.gif", "./a.gif", "data:image/gif;base64,R0lGODlh"] {
            assert_eq!(read_picture(&workspace, source).expect("a picture").mime, "image/gif");
        }
        for (source, why) in [
            ("a.txt", "the picture a.txt is not a PNG, JPEG, WebP or GIF picture"),
            ("no.gif", "does not exist"),
            ("big.gif", "is larger than 3.75 MiB"),
            ("../out.gif", "is outside the workspace"),
            ("link.gif", "is outside the workspace"),
            ("https://example.org/a.png", "is a URL"),
            ("data:image/gif,GIF89a", "is not written as data:"),
            ("data:image/gif;base64,!", "is not written as data:"),
        ] {
            let error = read_picture(&workspace, source).expect_err("none");
            assert!(error.contains(why), "{error}");
        }
    }
}
