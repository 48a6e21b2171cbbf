//! Chooses the items over which a model writes a summary, and describes items in a few words for a person.

use crate::base::text;
use crate::conversation::message::{Author, Handle, Item, Step, UserText};
use crate::conversation::session::ItemChange;

use super::calls;
use super::digest;
use super::encodings::lines_of;
use super::plan::{CompressionPlan, Material};
use super::ruler::Ruler;

/// Texts up to this many bytes stay whole in a shortened conversation.
const LONG_TEXT: usize = 2048;

/// Counts the leading items that a request for the summary sends unchanged, to use the provider's cache: all that
/// fit into `most` tokens with `prompt` tokens after them. `None` if they do not include all removed items; the
/// summary is then written from [`with_less`].
pub fn summary_prefix(material: Material<'_>, plan: &CompressionPlan, most: u64, prompt: u64) -> Option<usize> {
    let mut tokens = material.fixed + prompt;
    let fits = |weight: &&u64| {
        tokens += **weight;
        tokens <= most
    };
    let prefix = material.weights.iter().take_while(fits).count();
    let needed = plan.removed.last().map_or(0, |last| last + 1);
    (prefix >= needed).then_some(prefix)
}

/// The removed items and those around them, in at most about `most` tokens: results and long texts shortened, and
/// the oldest items left out if that is still too much. A summary among them stays.
pub fn with_less(material: Material<'_>, plan: &CompressionPlan, most: u64) -> Vec<Item> {
    let needed = plan.removed.last().map_or(material.items.len(), |last| last + 1);
    let shown = material.items.iter().zip(material.ids).take(needed);
    let mut items: Vec<Item> = shown.map(|(item, id)| in_digest(item, id.number, material.ruler)).collect();
    let weigh = |item: &Item| item.texts().map(|text| material.ruler.weigh(text)).sum::<u64>();
    let mut tokens: u64 = items.iter().map(weigh).sum();
    let mut at = 0;
    while tokens > most && at < items.len() {
        if matches!(items[at], Item::Summary(_)) && items.len() > at + 1 {
            at += 1;
            continue;
        }
        tokens -= weigh(&items.remove(at));
    }
    items
}

/// An item with its long texts shortened.
fn in_digest(item: &Item, number: u64, ruler: &Ruler) -> Item {
    let mut short = item.clone();
    let handle = Handle::item(number);
    let text = |text: String| ItemChange::Text { text: digest::of_text(&text, LONG_TEXT, &handle.to_string()) };
    match item {
        Item::Summary(_) => {}
        Item::Said(said) => {
            short.apply(&text(said.text.clone()));
            for skill in &said.skills {
                short.apply(&ItemChange::Unload { skill: skill.name.clone() });
            }
        }
        Item::Step(step) => {
            short.apply(&text(step.text()));
            for (call, asked) in step.calls().enumerate() {
                if let Some(arguments) = digest::of_arguments(&asked.request.arguments, handle) {
                    short.apply(&ItemChange::Arguments { call, arguments });
                }
                let Some(answer) = asked.answer.as_ref().filter(|answer| !answer.digested) else { continue };
                let most = digest::choose_room(ruler.weigh(&answer.content));
                let content = digest::of_answer(&asked.request.name, answer, Handle::answer(number, call), most);
                if content.len() < answer.content.len() || !answer.images.is_empty() {
                    short.apply(&ItemChange::Answer { call, content });
                }
            }
        }
    }
    short
}

/// An item in a few words, for a list.
pub fn in_short(item: &Item) -> String {
    const COLUMNS: usize = 100;
    let told = match item {
        Item::Summary(summary) => format!("summary: {}", summary.text),
        Item::Said(UserText { text, author: Author::Person, .. }) => format!("you: {text}"),
        Item::Said(UserText { text, .. }) => format!("note: {text}"),
        Item::Step(step) => format!("the model: {}{}", step.text(), calls_in_short(step)),
    };
    text::one_line(&told, COLUMNS)
}

fn calls_in_short(step: &Step) -> String {
    let calls = step.calls().map(|call| {
        let begins =
            call.answer.as_ref().and_then(|answer| lines_of(&answer.content).first().map(ToString::to_string));
        let subject = calls::name_subject(&call.request);
        format!(" → {} {subject}: {}", call.request.name, begins.unwrap_or_default())
    });
    calls.collect()
}
