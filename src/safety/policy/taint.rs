//! Taint: the external sources that results introduce into the conversation.
//!
//! Outside content comes neither from the workspace nor from the user nor from what they installed: it may have been
//! written to direct the model. The files and addresses that a command reads are known only as far as its words show.

use crate::base::text;
use crate::config::ToolEffect;

use super::call::{ParsedLine, ProposedCall};

/// The longest shown source, in characters.
const LONGEST: usize = 80;

/// The external source that the result of this call introduces, if any, as the beginning of a sentence (`content from
/// https://…`). `subject` is what the call is about ([`crate::tools::Tool::subject`]).
pub fn brings_in(call: &ProposedCall<'_>, subject: &str) -> Option<String> {
    let subject = text::one_line(subject, LONGEST);
    if let Some(read) = call.reads.iter().find(|target| !target.is_free_to_read()) {
        return Some(format!("content of `{}`", text::one_line(&read.given, LONGEST)));
    }
    let output = if subject.is_empty() {
        format!("the output of {}", call.tool)
    } else {
        format!("the output of {} `{subject}`", call.tool)
    };
    if call.effects.contains(&ToolEffect::Network) {
        return Some(if subject.contains("://") { format!("content from {subject}") } else { output });
    }
    let line = call.line.as_ref();
    let is_own = line.is_some_and(|line| line.configured.is_none() && line.only_reads());
    if call.has_network && !is_own {
        return Some(format!("{output}, which had network,"));
    }
    let reaches = line.is_some_and(ParsedLine::reaches_outside);
    reaches.then(|| format!("{output}, which reaches outside the workspace,"))
}
