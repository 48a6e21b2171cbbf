//! Requests of any conversation.

use proptest::prelude::*;

use super::super::super::effort::Effort;
use super::super::flags::AnthropicFlags;
use super::make::{
    MARK, adaptive, by_budget, called, closed, failed, make, ok, replied, said, text, thought, tool, with_picture,
};
use crate::conversation::message::{CallAnswer, FinishReason, Item, Step};

/// A conversation, from a list of numbers.
fn conversation(kinds: &[u8]) -> Vec<Item> {
    let mut items = vec![said("Begin.")];
    for (at, kind) in kinds.iter().enumerate() {
        let id = |call: u8| format!("toolu_{at}_{call}");
        items.push(match kind % 8 {
            0 => said("And then?"),
            1 => said(" \n"),
            2 => replied(vec![thought("sig"), text("I see."), called(&id(0), ok("x"))]),
            3 => replied(vec![called(&id(0), with_picture(failed(" "))), called(&id(1), with_picture(ok("y")))]),
            4 => replied(vec![text("Well, ")]),
            5 => replied(vec![thought("")]),
            6 => replied(vec![thought("sig"), called(&id(0), None::<CallAnswer>), thought("sig")]),
            _ => Item::Step(Step::of_text("Cut", FinishReason::Length)),
        });
    }
    items
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Every request follows the rules of the API and extends the one before it, except for the marks, which are few.
    #[test]
    fn requests_are_valid_and_only_grow(kinds in prop::collection::vec(any::<u8>(), 0..12), style in 0..4_u8) {
        let flags = match style {
            0 => AnthropicFlags::default(),
            1 => by_budget(),
            2 => adaptive(),
            _ => AnthropicFlags { images_in_error_ok: false, cache_on_tools: false, ..adaptive() },
        };
        let items = conversation(&kinds);
        let mut before: Option<String> = None;
        for end in 1..=items.len() {
            let request = make(items[..end].to_vec()).with(|make| {
                make.flags = flags.clone();
                make.settings.effort = Some(Effort::Medium);
                make.tools = vec![tool("ls", closed())];
            });
            request.body();
            let sent = request.text();
            prop_assert!(sent.matches(MARK).count() <= 4);
            // The stand-in for the user is not part of the conversation.
            if sent.contains("[Go on.]") {
                continue;
            }
            let sent = sent.replace(MARK, "");
            let messages = sent.rfind("}],\"thinking\"").or_else(|| sent.rfind("}]}"));
            let end = sent[..messages.expect("messages")].trim_end_matches([']', '}']).len();
            if let Some(before) = before.replace(sent[..end].to_owned()) {
                prop_assert!(sent.starts_with(&before), "{before}\n{sent}");
            }
        }
    }
}
