//! Caches the encoded results of the last request. A request extends the one before it, and nearly all of it is
//! results of calls: escaping them again would be most of the cost of a step in a long conversation.

use std::sync::{Arc, Mutex};

use super::result_text::WrittenText;
use super::turns::WireTurn;

/// The shortest text that is worth keeping, in bytes.
const LONG: usize = 256;

/// The long results of the last request to a server, in order.
#[derive(Debug, Default)]
pub struct WrittenResults(Mutex<Vec<Arc<WrittenText>>>);

impl WrittenResults {
    /// Reuses the encoding of the request before for the results of this one, up to the first that differs. The rest is
    /// encoded now and kept for the next.
    pub fn reuse(&self, turns: &mut [WireTurn<'_>]) {
        let mut all = self.0.lock().expect("no holder of the results panics");
        let mut count = 0;
        let results = turns.iter_mut().flat_map(WireTurn::results_mut);
        for result in results.filter(|result| result.text.len() >= LONG) {
            if all.get(count).is_none_or(|known| !known.is(&result.text)) {
                all.truncate(count);
                all.push(Arc::new(WrittenText::write(&result.text)));
            }
            result.text.reuse(&all[count]);
            count += 1;
        }
        all.truncate(count);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{ModelConfig, Wire};
    use crate::conversation::message::{Call, CallAnswer, CallStatus, Item, ReplyPart, Step, ToolCall, UserText};
    use crate::model::ModelRequest;
    use crate::model::plan::{KnownFacts as Facts, RequestPlan};

    fn step(number: usize, content: &str) -> Item {
        let request =
            ToolCall { id: format!("call_{number}"), name: "read".to_owned(), arguments: "{}".to_owned() };
        let answer = Some(CallAnswer::of_text(content, CallStatus::Ok));
        Item::Step(Step {
            parts: vec![ReplyPart::Call(Call { request, opaque: None, answer })],
            ..Step::default()
        })
    }

    #[test]
    fn a_request_is_the_same_whatever_was_written_before() {
        let long = |start: &str| format!("{start} \"{}\\\n\u{1} größer", "x".repeat(LONG));
        let mut items = vec![Item::Said(UserText::by_person("mend it"))];
        let mut requests = vec![items.clone()];
        for number in 0..4 {
            items.push(step(number, &long(&number.to_string())));
            items.push(step(10 + number, "short"));
            requests.push(items.clone());
        }
        // A compression shortens one in the middle, then one of the first goes.
        items[3] = step(1, "digest");
        requests.push(items.clone());
        items.remove(1);
        requests.push(items.clone());
        requests.push(requests[2].clone());
        for wire in [Wire::Chat, Wire::Responses, Wire::Anthropic] {
            let config = json!({"name": "m", "provider": "openai", "model": "m", "wire": wire.name()});
            let config: ModelConfig = serde_json::from_value(config).expect("a model");
            let (plan, _) = RequestPlan::new(&config, "m", "models.example/v1", Facts::default()).expect("a plan");
            let written = WrittenResults::default();
            for items in &requests {
                let request = ModelRequest::from_items(items, "s");
                let (body, fresh) =
                    (plan.encode(&request, &written), plan.encode(&request, &WrittenResults::default()));
                assert_eq!(String::from_utf8(body.0), String::from_utf8(fresh.0));
                let longs = items.iter().flat_map(Item::texts).filter(|text| text.len() >= LONG).count();
                assert_eq!(written.0.lock().expect("nobody panics").len(), longs, "no other text is kept");
            }
        }
    }

    #[test]
    fn what_is_unchanged_is_not_written_again() {
        let items: Vec<Item> = (0..4).map(|number| step(number, &number.to_string().repeat(LONG))).collect();
        let config = json!({"name": "m", "provider": "openai", "model": "m"});
        let config: ModelConfig = serde_json::from_value(config).expect("a model");
        let (plan, _) = RequestPlan::new(&config, "m", "models.example/v1", Facts::default()).expect("a plan");
        let written = WrittenResults::default();
        let kept = |items: &[Item]| {
            let _ = plan.encode(&ModelRequest::from_items(items, "s"), &written);
            written.0.lock().expect("nobody panics").clone()
        };
        let (before, after) = (kept(&items[..3]), kept(&items));
        assert_eq!((before.len(), after.len()), (3, 4));
        assert!(before.iter().zip(&after).all(|(before, after)| Arc::ptr_eq(before, after)));
    }
}
