//! `/last`, `/copy`, `/cost`, `/stats`, `/clear`, `/exit`: what was said and done in the conversation, and its end.

use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{CommandAnswer, SlashOutcome, tell_text};
use crate::agent::Conversation;
use crate::base::text;
use crate::conversation::message::{Call, Item, Step};
use crate::conversation::telemetry;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::{look, tables};
use crate::screen::terminal;

const NO_ANSWER: &str = "there is no answer yet";
const NO_CALL: &str = "no tool was called yet";

pub(super) fn show_stats(chat: &mut Chat, _: &str) -> CommandAnswer {
    let session = &chat.conversation.session;
    let (costs, model) = (tables::sum_costs(session), session.describe().model);
    tell_text(telemetry::format_report(&costs, model, terminal::measure_width()))
}

/// Shows the figures of `/stats` in one line.
pub(super) fn show_cost(chat: &mut Chat, _: &str) -> CommandAnswer {
    tell_text(telemetry::format_line(&tables::sum_costs(&chat.conversation.session)))
}

pub(super) fn clear_chat<'c>(chat: &'c mut Chat, _: &'c str) -> BoxFuture<'c, CommandAnswer> {
    async move {
        let before = chat.clear().await?;
        // The log is there once something was said.
        if !before.session.path().is_some_and(Path::exists) {
            return tell_text("A new conversation.");
        }
        let id = before.session.id();
        tell_text(format!("A new conversation. The one before is kept: agent chat --session {id}"))
    }
    .boxed()
}

/// `/last` shows the whole output of the last call; `/last 2` of the second to last, `/last #3` of call number 3.
pub(in crate::faces::chat) fn show_last(chat: &mut Chat, which: &str) -> CommandAnswer {
    let items = chat.conversation.session.originals()?;
    Ok(SlashOutcome::Page(match which {
        "answer" => list_answers(&items).next_back().ok_or(NO_ANSWER)?,
        "reasoning" => collect_reasoning(&items)?,
        "calls" => list_numbered_calls(&items)?,
        _ => find_output(&chat.conversation, &list_calls(&items), which)?,
    }))
}

/// `/copy` copies the last answer; `/copy N` its Nth code block.
pub(super) fn copy_answer(chat: &mut Chat, which: &str) -> CommandAnswer {
    let answer = list_answers(chat.conversation.session.items()).next_back().ok_or(NO_ANSWER)?;
    if which.is_empty() {
        return Ok(SlashOutcome::Copy(answer));
    }
    let number: usize = which.parse().map_err(|_| "write /copy, or /copy N for the Nth code block")?;
    let mut blocks = code_blocks(&answer);
    match blocks.len() {
        count if (1..=count).contains(&number) => Ok(SlashOutcome::Copy(blocks.swap_remove(number - 1))),
        0 => Err("the last answer has no code block".into()),
        1 => Err("the last answer has 1 code block".into()),
        count => Err(format!("the last answer has {count} code blocks").into()),
    }
}

/// The texts of the model, oldest first.
fn list_answers(items: &[Item]) -> impl DoubleEndedIterator<Item = String> {
    let texts = items.iter().filter_map(Item::as_step).filter(|step| !step.given).map(Step::text);
    texts.filter(|text| !text.trim().is_empty())
}

/// All calls of the session, oldest first. Their numbers start at 1.
fn list_calls(items: &[Item]) -> Vec<&Call> {
    items.iter().filter_map(Item::as_step).flat_map(Step::calls).collect()
}

/// The reasoning of every step since the person spoke last.
fn collect_reasoning(items: &[Item]) -> Result<String, &'static str> {
    let since = items.iter().rposition(|item| item.said_by_person().is_some()).unwrap_or(0);
    let thoughts = items[since..].iter().filter_map(Item::as_step).map(Step::reasoning);
    let thoughts: Vec<String> = thoughts.filter(|thought| !thought.trim().is_empty()).collect();
    if thoughts.is_empty() {
        return Err("the last turn has no reasoning: the model did none, or its provider does not return it");
    }
    Ok(thoughts.join("\n\n"))
}

fn find_output(conversation: &Conversation, calls: &[&Call], which: &str) -> Result<String, String> {
    let index = choose_call(which, calls.len())?;
    let (call, number) = (calls[index], index + 1);
    let Some(answer) = &call.answer else { return Err(format!("call #{number} has no output yet")) };
    let whole = conversation.whole_text(answer).map_err(|error| format!("the output cannot be read: {error}"))?;
    let whole = if whole.is_empty() { "(no output)" } else { &whole };
    Ok(format!("#{number} {}\n{whole}", format_head(call, 200)))
}

/// Parses the choice of a call to an index: nothing means the last call, `2` the second to last, `#2` number 2.
fn choose_call(which: &str, count: usize) -> Result<usize, String> {
    if count == 0 {
        return Err(NO_CALL.to_owned());
    }
    let wrong = || "write /last, /last N (the Nth last call), /last #N (by number), /last calls, /last reasoning or /last answer";
    let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0).ok_or_else(wrong);
    let index = match (which, which.strip_prefix('#')) {
        ("", _) => Some(count - 1),
        (_, Some(from_first)) => Some(number(from_first)? - 1),
        (from_last, None) => count.checked_sub(number(from_last)?),
    };
    index.filter(|index| *index < count).ok_or_else(|| match count {
        1 => "there was 1 call so far".to_owned(),
        _ => format!("there were {count} calls so far; /last calls lists them"),
    })
}

/// `/last calls` lists every call with its number.
fn list_numbered_calls(items: &[Item]) -> Result<String, &'static str> {
    let calls = list_calls(items);
    if calls.is_empty() {
        return Err(NO_CALL);
    }
    let rows: Vec<[String; 2]> =
        (1..).zip(&calls).map(|(number, call)| [format!("#{number}"), format_head(call, 100)]).collect();
    let table = tables::lay_out_columns(&rows, terminal::measure_width());
    Ok(table + "/last #N shows the whole output of one of them.\n")
}

/// Formats a call in one line: its outcome, its name, its arguments.
fn format_head(call: &Call, width: usize) -> String {
    let status = look::mark_status(call.answer.as_ref().map(|answer| answer.status));
    text::one_line(&format!("{status} {} {}", call.request.name, call.request.arguments), width)
}

/// The contents of the fenced code blocks in a Markdown text. An unclosed block reaches to the end.
fn code_blocks(markdown: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(char, usize, usize, String)> = None;
    for line in markdown.split_inclusive('\n') {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = mark.map_or(0, |mark| trimmed.chars().take_while(|c| *c == mark).count());
        let rest = trimmed[length..].trim();
        match &mut open {
            Some((fence, opened, ..)) if mark == Some(*fence) && length >= *opened && rest.is_empty() => {
                blocks.extend(open.take().map(|(.., block)| block));
            }
            Some((_, _, within, block)) => {
                // A block in a list is indented as much as its fence.
                let spaces = line.len() - line.trim_start_matches(' ').len();
                *block += &line[spaces.min(*within)..];
            }
            None if length >= 3 && !(mark == Some('`') && rest.contains('`')) => {
                open = mark.map(|mark| (mark, length, indent, String::new()));
            }
            None => {}
        }
    }
    blocks.extend(open.map(|(.., block)| block));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_blocks_are_taken_out_of_their_fences() {
        for (markdown, expected) in [
            ("a\n```rust\nlet x = 1;\n\n  y\n```\nb\n~~~\n```\n~~~\n", vec!["let x = 1;\n\n  y\n", "```\n"]),
            ("````\n```\ninner\n```\n````", vec!["```\ninner\n```\n"]),
            ("1. x\n   ```sh\n   ls\n     -l\n   ```\n", vec!["ls\n  -l\n"]),
            ("```\nnever closed", vec!["never closed"]),
            ("``` not ` a fence\nx", vec![]),
            ("```\n```", vec![""]),
            ("none", vec![]),
        ] {
            assert_eq!(code_blocks(markdown), expected, "{markdown:?}");
        }
    }

    #[test]
    fn a_call_is_chosen_from_the_last_or_by_its_number() {
        for (which, count, expected) in [
            ("", 3, Ok(2)),
            ("1", 3, Ok(2)),
            ("3", 3, Ok(0)),
            ("#1", 3, Ok(0)),
            ("#3", 3, Ok(2)),
            ("#4", 3, Err("there were 3 calls so far")),
            ("4", 3, Err("there were 3 calls so far")),
            ("2", 1, Err("there was 1 call so far")),
            ("0", 3, Err("write /last")),
            ("#0", 3, Err("write /last")),
            ("x", 3, Err("write /last")),
            ("", 0, Err("no tool was called yet")),
        ] {
            match (choose_call(which, count), expected) {
                (Ok(index), Ok(expected)) => assert_eq!(index, expected, "{which}"),
                (Err(why), Err(expected)) => assert!(why.starts_with(expected), "{which}: {why}"),
                (found, _) => panic!("{which} of {count}: {found:?}"),
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_answer_can_be_looked_through(markdown in "[`~ a\n日]{0,60}") {
            for block in code_blocks(&markdown) {
                proptest::prop_assert!(block.len() <= markdown.len());
            }
        }
    }
}
