//! An assertion, and the list of all kinds ([`KINDS`]): the names and the form of each.

use serde_json::Value;

use crate::base::text;
use crate::base::yaml::{Node, YamlTree};

use super::check::AssertionCheck;
use super::given::GivenAssertion;
use super::source::CaseSource;
use AssertionNeeds::{Judge, Run, Text};

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
    read: ReadAssertion,
}

type ReadAssertion = fn(&mut GivenAssertion<'_, '_, '_>) -> Option<AssertionCheck>;

const fn define_kind(
    names: &'static [&'static str],
    keys: &'static [&'static str],
    needs: AssertionNeeds,
    read: ReadAssertion,
) -> AssertionKind {
    AssertionKind { names, keys, needs, read }
}

/// Every kind of assertion. Each has a negation, with `not-` before its name.
#[expect(clippy::redundant_closure_for_method_calls, reason = "a path to a method is not for every lifetime")]
pub(super) const KINDS: &[AssertionKind] = &[
    define_kind(&["equals"], &[], Text, |given| given.equals()),
    define_kind(&["contains"], &[], Text, |given| given.contains(false, false)),
    define_kind(&["icontains"], &[], Text, |given| given.contains(false, true)),
    define_kind(&["contains-all"], &["values"], Text, |given| given.contains(false, false)),
    define_kind(&["contains-any"], &["values"], Text, |given| given.contains(true, false)),
    define_kind(&["icontains-all"], &["values"], Text, |given| given.contains(false, true)),
    define_kind(&["icontains-any"], &["values"], Text, |given| given.contains(true, true)),
    define_kind(&["regex"], &["pattern"], Text, |given| given.regex()),
    define_kind(&["starts-with"], &[], Text, |given| given.starts_with()),
    define_kind(&["is-json", "json_valid"], &["schema"], Text, |given| given.json(false, false)),
    define_kind(&["contains-json"], &["schema"], Text, |given| given.json(true, false)),
    define_kind(&["json-schema"], &["schema"], Text, |given| given.json(false, true)),
    define_kind(&["has_field"], &["field", "fields"], Text, |given| given.has_field(true)),
    define_kind(&["no_field"], &["field", "fields"], Text, |given| given.has_field(false)),
    define_kind(&["field_in"], &["field", "values"], Text, |given| given.field_in()),
    define_kind(&["max_tokens"], &["limit", "threshold"], Text, |given| given.max_tokens()),
    define_kind(&["max_latency"], &["limit", "threshold"], Run, |given| given.max_latency()),
    define_kind(&["max_cost"], &["limit", "threshold"], Run, |given| given.max_cost()),
    define_kind(&["tool-called"], &["tool", "tools", "min", "max"], Run, |given| given.tool_called()),
    define_kind(&["tool-args-match"], &["tool", "args", "schema"], Run, |given| given.tool_arguments()),
    define_kind(&["tool-sequence"], &["tools", "exact"], Run, |given| given.tool_sequence()),
    define_kind(&["skill-loaded"], &["skill", "skills"], Run, |given| given.skill_loaded()),
    define_kind(&["exit-code"], &["code"], Run, |given| given.exit_code()),
    define_kind(&["expr"], &[], Text, |given| given.expr()),
    define_kind(&["similar"], &["threshold"], Judge, |given| given.similar()),
    define_kind(&["llm-rubric"], &["model"], Judge, |given| given.rubric()),
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
                let hint = "write `- TYPE: VALUE` or `- { type: TYPE, … }`";
                source.wrong_with(item.place, "an assertion has one type", hint);
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
            source.report_unknown(key.place, &format!("key of `{}`", kind.names[0]), &key.text, known());
        }
    }
}

/// A weight: a number of at least 0.
pub(super) fn read_weight(source: &mut CaseSource<'_>, item: &Node) -> f64 {
    let Some((node, weight)) = item.get("weight").and_then(|node| Some((node, source.read::<f64>(node)?))) else {
        return 1.0;
    };
    if !weight.is_finite() || weight < 0.0 {
        source.wrong(node.place, "a weight is a number of at least 0");
    }
    weight
}

fn of_rendered(source: &mut CaseSource<'_>, item: &Node) -> bool {
    let Some(node) = item.get("of") else { return false };
    if !matches!(node.text(), Some("rendered" | "output")) {
        source.wrong(node.place, "`of` is `output` (the answer) or `rendered` (the prompt)");
    }
    node.text() == Some("rendered")
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
