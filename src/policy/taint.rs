//! What of the outside world a call brings into the conversation.
//!
//! Outside is what neither the workspace nor the person nor what they installed says: it may have been written to
//! direct the model. What a command reads by itself is only known as far as its words tell.

use crate::contract::{Effect, Permission};
use crate::text;

use super::call::Call;
use super::target::Place;

/// The longest that a source is told, in characters.
const LONGEST: usize = 80;

/// What comes in with the result of this call, as the beginning of a sentence (`content from https://…`); `None` where
/// nothing does. `subject` is what the call is about ([`crate::contract::Tool::subject`]).
#[must_use]
pub fn brings_in(call: &Call<'_>, subject: &str) -> Option<String> {
    let subject = text::one_line(subject, LONGEST);
    if let Some(read) = call.reads.iter().find(|target| target.place == Place::Outside) {
        return Some(format!("content of `{}`", text::one_line(&read.given, LONGEST)));
    }
    if call.effects.contains(&Effect::Network) {
        let is_address = subject.contains("://");
        return Some(if is_address { format!("content from {subject}") } else { output(call.tool, &subject) });
    }
    let line = call.line.as_ref();
    let is_proven = call.permission == Permission::Read && line.is_some_and(|line| line.configured.is_none());
    if call.has_network && !is_proven {
        return Some(format!("{}, which had network,", output(call.tool, &subject)));
    }
    let reaches = line.is_some_and(|line| !is_proven && line.reaches_outside());
    reaches.then(|| format!("{}, which reaches outside the workspace,", output(call.tool, &subject)))
}

fn output(tool: &str, subject: &str) -> String {
    if subject.is_empty() { format!("the output of {tool}") } else { format!("the output of {tool} `{subject}`") }
}
