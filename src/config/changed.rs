//! The differences between two configurations, key by key, without secrets.

use std::collections::BTreeMap;

use serde_json::Value;

use super::loaded::Config;
use super::merge::INHERITED;
use crate::base::text;

/// A key whose value differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The dotted key, `limits.max_turns`.
    pub key: String,
    /// The value in one line, secrets as `***`.
    pub before: String,
    pub after: String,
    /// The place that sets it now: `file:line`, a variable or a flag.
    pub place: String,
}

impl Config {
    /// The keys whose values differ from those in `before`. A changed setting that agents inherit is not reported again
    /// for each of them.
    pub fn changed_since(&self, before: &Self) -> Vec<Changed> {
        let (old, new) = (before.values(), self.values());
        let keys = new.keys().chain(old.keys().filter(|key| !new.contains_key(*key)));
        let mut changed: Vec<Changed> = keys
            .filter(|key| old.get(*key) != new.get(*key))
            .map(|key| {
                let [before, after] =
                    [&old, &new].map(|values| values.get(key).map(show_value).unwrap_or_default());
                Changed { key: key.clone(), before, after, place: self.place(key) }
            })
            .collect();
        let of_settings: Vec<Changed> =
            changed.iter().filter(|change| !change.key.starts_with("agents.")).cloned().collect();
        changed.retain(|change| {
            let inherited = change.key.strip_prefix("agents.").and_then(|rest| {
                INHERITED.iter().find_map(|section| {
                    let at = rest.find(&format!(".{section}"))?;
                    Some(&rest[at + 1..])
                })
            });
            !of_settings.iter().any(|other| Some(other.key.as_str()) == inherited && other.after == change.after)
        });
        changed
    }

    /// The value of a dotted key in one line, secrets as `***`; `None` if there is no such key.
    pub fn value_of(&self, key: &str) -> Option<String> {
        self.values().get(key).map(show_value)
    }

    /// All dotted keys that have a value.
    pub fn keys(&self) -> Vec<String> {
        self.values().into_keys().collect()
    }

    /// All values by their dotted keys. A list is one value.
    fn values(&self) -> BTreeMap<String, Value> {
        let mut values = BTreeMap::new();
        flatten_value(self.mask_secrets(), &mut String::new(), &mut values);
        values
    }
}

fn show_value(value: &Value) -> String {
    const WIDEST: usize = 60;
    match value {
        Value::String(text) => text::one_line(text, WIDEST),
        other => text::one_line(&other.to_string(), WIDEST),
    }
}

fn flatten_value(value: Value, key: &mut String, into: &mut BTreeMap<String, Value>) {
    let entries = match value {
        Value::Object(entries) => entries,
        leaf => {
            into.insert(key.clone(), leaf);
            return;
        }
    };
    for (step, value) in entries {
        let length = key.len();
        if !key.is_empty() {
            key.push('.');
        }
        key.push_str(&step);
        flatten_value(value, key, into);
        key.truncate(length);
    }
}
