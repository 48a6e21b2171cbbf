//! Invalid events: those of the wire cases with values replaced, left out, repeated and moved.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::sse;
use super::cases::{CASES, USED};
use crate::config::Wire;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Whatever events contain, of this wire or another, reading them ends: no panic, and no two calls with one id.
    #[test]
    fn mutated_events_end(
        case in any::<prop::sample::Index>(),
        wire in prop::option::weighted(0.2, prop::sample::select(&Wire::ALL[..])),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), mutation()), 1..6),
    ) {
        let case = case.get(&CASES);
        let mut events = events(&case.body);
        for (event, place, mutation) in mutations {
            if events.is_empty() {
                break;
            }
            let at = event.index(events.len());
            mutation.apply(at, &mut events, place);
        }
        let mut reading = case.reading(wire.unwrap_or(case.wire));
        // Reading continues after an error: a decoder that has failed once must cope with whatever follows.
        for (name, event) in &events {
            let _ = reading.event(name, event.to_string().as_bytes());
        }
        let mut whole = case.reading(wire.unwrap_or(case.wire));
        if let Some((_, event)) = events.first() {
            let is_reply = whole.whole(event.to_string().as_bytes());
            prop_assert!(is_reply != Ok(true) || whole.reply.is_finished());
        }
        for mut reading in [reading, whole] {
            let end = reading.reply.end(|| 0);
            let ids: HashSet<&str> = end.calls().map(|call| call.id.as_str()).collect();
            prop_assert_eq!(ids.len(), end.calls().count());
            prop_assert!(!ids.contains("") && !ids.contains(USED));
        }
    }
}

/// A change to the events of a stream.
#[derive(Debug, Clone)]
enum Mutation {
    /// The value at a place is replaced.
    Set(Value),
    /// The field, or the element, at a place is missing.
    Remove,
    /// The event comes twice.
    Repeat,
    /// The event comes first.
    First,
    Unnamed,
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(7),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("x"),
        json!("{}"),
        json!([]),
        json!({}),
        json!([null, "x", {"type": "text", "text": "x"}]),
        json!({"type": "function_call", "name": "f", "arguments": {"x": 1}}),
    ];
    prop_oneof![
        6 => prop::sample::select(values.to_vec()).prop_map(Mutation::Set),
        3 => Just(Mutation::Remove),
        1 => Just(Mutation::Repeat),
        1 => Just(Mutation::First),
        1 => Just(Mutation::Unnamed),
    ]
}

type Events = Vec<(Vec<u8>, Value)>;

impl Mutation {
    /// Changes the event at `at`, which exists, perhaps at a place in it.
    fn apply(&self, at: usize, events: &mut Events, place: prop::sample::Index) {
        match self {
            Self::Set(_) | Self::Remove => {
                let event = &mut events[at].1;
                let mut place = place.index(count(event));
                self.change(event, &mut place);
            }
            Self::Repeat => events.push(events[at].clone()),
            Self::First => events.swap(0, at),
            Self::Unnamed => events[at].0.clear(),
        }
    }

    /// Walks to the value at this place, in the order of the text; returns false if it is further on.
    fn change(&self, value: &mut Value, place: &mut usize) -> bool {
        if *place == 0 {
            *value = if let Self::Set(other) = self { other.clone() } else { Value::Null };
            return true;
        }
        *place -= 1;
        let removes = matches!(self, Self::Remove);
        match value {
            Value::Array(values) if removes && *place < values.len() => {
                values.remove(*place);
                true
            }
            Value::Object(fields) if removes && *place < fields.len() => {
                let key = fields.keys().nth(*place).cloned();
                key.and_then(|key| fields.shift_remove(&key)).is_some()
            }
            Value::Array(values) => values.iter_mut().any(|value| self.change(value, place)),
            Value::Object(fields) => fields.values_mut().any(|value| self.change(value, place)),
            _ => false,
        }
    }
}

/// Counts the values in a value, itself included.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// The events of a body that are JSON, with their names; of a body without events, its lines or all of it.
fn events(body: &str) -> Events {
    let mut events = Vec::new();
    let mut take = |event: sse::SseEvent<'_>| {
        events.extend(serde_json::from_slice(event.data).ok().map(|json| (event.name.to_vec(), json)));
        true
    };
    let mut decoder = sse::SseDecoder::default();
    decoder.feed(body.as_bytes(), &mut take).expect("short enough");
    decoder.finish(&mut take);
    let bodies = std::iter::once(body).chain(body.lines());
    events.extend(bodies.filter_map(|body| serde_json::from_str(body).ok()).map(|json| (Vec::new(), json)));
    events
}
