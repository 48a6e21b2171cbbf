//! An assertion, and the list of all kinds ([`KINDS`]): the names and the form of each.

use serde_json::Value;

use crate::base::text;
use crate::base::yaml::{Node, YamlTree};

use super::check::AssertionCheck;
use super::given::GivenAssertion;
use super::source::CaseSource;

/// A statement about a run, which is true or false.
#[derive(Debug)]
pub struct Assertion {
    /// As reports show it: `not-contains: sorry`.
    pub label: String,
    /// True if the statement must be false.
    pub negated: bool,
    /// Its share in the score of a run; with 0 it is only reported.
    pub weight: f64,
    /// True if it checks the rendered prompt instead of the answer.
    pub of_rendered: bool,
    pub(super) needs: AssertionNeeds,
    pub(super) check: AssertionCheck,
}

/// The inputs that an assertion needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AssertionNeeds {
    /// A text.
    Text,
    /// A run of a model.
    Run,
    /// Another request to a model.
    Judge,
}

/// A kind of assertion.
pub(super) struct AssertionKind {
    /// Its names, the first one as in the documentation. `-` and `_` are the same.
    pub names: &'static [&'static str],
    /// The keys of the long form, besides `type`, `value`, `weight` and `of`.
    pub keys: &'static [&'static str],
    pub needs: AssertionNeeds,
    read: fn(&mut GivenAssertion<'_, '_, '_>) -> Option<AssertionCheck>,
}

/// Every kind of assertion. Each has a negation, with `not-` before its name.
pub(super) const KINDS: &[AssertionKind] = &[
    AssertionKind { names: &["equals"], keys: &[], needs: AssertionNeeds::Text, read: |given| given.equals() },
    AssertionKind {
        names: &["contains"],
        keys: &[],
        needs: AssertionNeeds::Text,
        read: |given| given.contains(false, false),
    },
    AssertionKind {
        names: &["icontains"],
        keys: &[],
        needs: AssertionNeeds::Text,
        read: |given| given.contains(false, true),
    },
    AssertionKind {
        names: &["contains-all"],
        keys: &["values"],
        needs: AssertionNeeds::Text,
        read: |given| given.contains(false, false),
    },
    AssertionKind {
        names: &["contains-any"],
        keys: &["values"],
        needs: AssertionNeeds::Text,
        read: |given| given.contains(true, false),
    },
    AssertionKind {
        names: &["icontains-all"],
        keys: &["values"],
        needs: AssertionNeeds::Text,
        read: |given| given.contains(false, true),
    },
    AssertionKind {
        names: &["icontains-any"],
        keys: &["values"],
        needs: AssertionNeeds::Text,
        read: |given| given.contains(true, true),
    },
    AssertionKind {
        names: &["regex"],
        keys: &["pattern"],
        needs: AssertionNeeds::Text,
        read: |given| given.regex(),
    },
    AssertionKind {
        names: &["starts-with"],
        keys: &[],
        needs: AssertionNeeds::Text,
        read: |given| given.starts_with(),
    },
    AssertionKind {
        names: &["is-json", "json_valid"],
        keys: &["schema"],
        needs: AssertionNeeds::Text,
        read: |given| given.json(false, false),
    },
    AssertionKind {
        names: &["contains-json"],
        keys: &["schema"],
        needs: AssertionNeeds::Text,
        read: |given| given.json(true, false),
    },
    AssertionKind {
        names: &["json-schema"],
        keys: &["schema"],
        needs: AssertionNeeds::Text,
        read: |given| given.json(false, true),
    },
    AssertionKind {
        names: &["has_field"],
        keys: &["field", "fields"],
        needs: AssertionNeeds::Text,
        read: |given| given.has_field(true),
    },
    AssertionKind {
        names: &["no_field"],
        keys: &["field", "fields"],
        needs: AssertionNeeds::Text,
        read: |given| given.has_field(false),
    },
    AssertionKind {
        names: &["field_in"],
        keys: &["field", "values"],
        needs: AssertionNeeds::Text,
        read: |given| given.field_in(),
    },
    AssertionKind {
        names: &["max_tokens"],
        keys: &["limit", "threshold"],
        needs: AssertionNeeds::Text,
        read: |given| given.max_tokens(),
    },
    AssertionKind {
        names: &["max_latency"],
        keys: &["limit", "threshold"],
        needs: AssertionNeeds::Run,
        read: |given| given.max_latency(),
    },
    AssertionKind {
        names: &["max_cost"],
        keys: &["limit", "threshold"],
        needs: AssertionNeeds::Run,
        read: |given| given.max_cost(),
    },
    AssertionKind {
        names: &["tool-called"],
        keys: &["tool", "tools", "min", "max"],
        needs: AssertionNeeds::Run,
        read: |given| given.tool_called(),
    },
    AssertionKind {
        names: &["tool-args-match"],
        keys: &["tool", "args", "schema"],
        needs: AssertionNeeds::Run,
        read: |given| given.tool_arguments(),
    },
    AssertionKind {
        names: &["tool-sequence"],
        keys: &["tools", "exact"],
        needs: AssertionNeeds::Run,
        read: |given| given.tool_sequence(),
    },
    AssertionKind {
        names: &["skill-loaded"],
        keys: &["skill", "skills"],
        needs: AssertionNeeds::Run,
        read: |given| given.skill_loaded(),
    },
    AssertionKind {
        names: &["exit-code"],
        keys: &["code"],
        needs: AssertionNeeds::Run,
        read: |given| given.exit_code(),
    },
    AssertionKind { names: &["expr"], keys: &[], needs: AssertionNeeds::Text, read: |given| given.expr() },
    AssertionKind {
        names: &["similar"],
        keys: &["threshold"],
        needs: AssertionNeeds::Judge,
        read: |given| given.similar(),
    },
    AssertionKind {
        names: &["llm-rubric"],
        keys: &["model"],
        needs: AssertionNeeds::Judge,
        read: |given| given.rubric(),
    },
];

/// Keys that every long form may have.
const EVERYWHERE: &[&str] = &["type", "value", "weight", "of"];

/// Reads one item of `assert`: `- TYPE: VALUE`, `- { type: TYPE, … }`, or `- TYPE` if a kind needs no value. Every
/// mistake is added to those of the file.
pub(super) fn read_assertion(source: &mut CaseSource<'_>, item: &Node) -> Option<Assertion> {
    let long = item.get("type").is_some();
    let (written, place, value) = match &item.tree {
        YamlTree::Scalar(scalar) => (scalar.text.to_string(), item.place, None),
        YamlTree::Map(_) if long => {
            let kind = item.get("type").expect("just found");
            (kind.text().unwrap_or_default().to_owned(), kind.place, item.get("value"))
        }
        YamlTree::Map(entries) => {
            let mut kinds = entries.iter().filter(|(key, _)| !["weight", "of"].contains(&&*key.text));
            let (Some((key, value)), None) = (kinds.next(), kinds.next()) else {
                source.wrong_with(
                    item.place,
                    "an assertion has one type",
                    "write `- TYPE: VALUE` or `- { type: TYPE, … }`",
                );
                return None;
            };
            (key.text.to_string(), key.place, Some(value).filter(|value| !value.is_blank()))
        }
        YamlTree::List(_) => {
            source.wrong_with(item.place, "an assertion cannot be a list", "write `- TYPE: VALUE`");
            return None;
        }
    };
    let Some((kind, negated)) = find_kind(&written) else {
        let names = KINDS.iter().flat_map(|kind| kind.names).copied();
        source.report_unknown(place, "assertion", written.strip_prefix("not-").unwrap_or(&written), names);
        return None;
    };
    // `- field_in: { field: f, values: [a] }` is the long form without `type`.
    let is_form = |node: &&Node| {
        let known = |key: &str| key == "value" || kind.keys.contains(&key);
        let entries = node.entries();
        !entries.is_empty() && !kind.keys.is_empty() && entries.iter().all(|(key, _)| known(&key.text))
    };
    let form = if long { Some(item) } else { value.filter(is_form) };
    let value = if long { value } else { form.map_or(value, |form| form.get("value")) };
    let before = source.mistakes.len();
    let weight = read_weight(source, item);
    let of_rendered = of_rendered(source, item);
    if long {
        check_keys(source, item, kind);
    }
    if source.mistakes.len() > before {
        return None;
    }
    let check = (kind.read)(&mut GivenAssertion { source, name: kind.names[0], value, form, place })?;
    (source.mistakes.len() == before).then(|| Assertion {
        label: write_label(&written, form.or(value)),
        negated,
        weight,
        of_rendered,
        needs: kind.needs,
        check,
    })
}

/// The kind that a name means, and true if it is negated.
fn find_kind(written: &str) -> Option<(&'static AssertionKind, bool)> {
    let name = written.trim().replace('_', "-");
    let named = |name: &str| KINDS.iter().find(|kind| kind.names.iter().any(|n| n.replace('_', "-") == name));
    let plain = named(&name).map(|kind| (kind, false));
    plain.or_else(|| name.strip_prefix("not-").and_then(named).map(|kind| (kind, true)))
}

fn check_keys(source: &mut CaseSource<'_>, item: &Node, kind: &AssertionKind) {
    let known = || EVERYWHERE.iter().chain(kind.keys).copied();
    for (key, _) in item.entries() {
        if !known().any(|known| known == key.text) {
            source.report_unknown(
                key.place,
                &format!("key of `{}`", kind.names[0]),
                &key.text,
                known().collect::<Vec<_>>(),
            );
        }
    }
}

/// A weight: a number of at least 0.
pub(super) fn read_weight(source: &mut CaseSource<'_>, item: &Node) -> f64 {
    let Some(node) = item.get("weight") else { return 1.0 };
    match source.read::<f64>(node) {
        Some(weight) if weight.is_finite() && weight >= 0.0 => weight,
        Some(_) => {
            source.wrong(node.place, "a weight is a number of at least 0");
            1.0
        }
        None => 1.0,
    }
}

fn of_rendered(source: &mut CaseSource<'_>, item: &Node) -> bool {
    let Some(node) = item.get("of") else { return false };
    match node.text() {
        Some("rendered") => true,
        Some("output") => false,
        _ => {
            source.wrong(node.place, "`of` is `output` (the answer) or `rendered` (the prompt)");
            false
        }
    }
}

fn write_label(written: &str, value: Option<&Node>) -> String {
    const WIDTH: usize = 100;
    let shown = match value.map(|value| (value.text(), value.read::<Value>())) {
        None | Some((None, Err(_))) => return written.to_owned(),
        Some((Some(text), _)) => text.to_owned(),
        Some((None, Ok(Value::Object(mut map)))) => {
            map.retain(|key, _| !["type", "weight", "of"].contains(&key.as_str()));
            match (map.len(), map.get("value")) {
                (0, _) => return written.to_owned(),
                (1, Some(Value::String(text))) => text.clone(),
                (1, Some(value)) => value.to_string(),
                _ => Value::Object(map).to_string(),
            }
        }
        Some((None, Ok(value))) => value.to_string(),
    };
    text::one_line(&format!("{written}: {shown}"), WIDTH)
}
