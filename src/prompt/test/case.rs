//! The cases of a prompt and their file, `tests.yaml`, which is read as a whole, with every mistake and its place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::yaml::{Node, YamlTree};
use crate::config::Mistake;

use super::assertion::{self, Assertion, AssertionNeeds};
use super::source::{CaseSource, read_file};

/// The default number of runs of a case.
pub const RUNS: u32 = 5;
/// The default share of runs that must pass.
pub const THRESHOLD: f64 = 0.9;
/// The most runs of a case; more are a mistake.
const MOST_RUNS: u32 = 1000;

/// The cases of one file.
#[derive(Debug, Default)]
pub struct Suite {
    pub description: String,
    pub cases: Vec<Case>,
    /// Parts of the file that are left out, with the reasons.
    pub notes: Vec<String>,
}

/// One case: the input of the prompt, and the assertions about the outcome.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    /// Variables: they replace or extend those of the program, and are available as `vars.NAME` as well.
    pub vars: Map<String, Value>,
    /// True if only the prompt is rendered and no model is asked.
    pub render: bool,
    /// The conversation after the prompt.
    pub messages: Vec<CaseMessage>,
    /// The workspace: text by relative path.
    pub files: BTreeMap<String, String>,
    /// Tools that the model has; `None` for those that are safe in a separate workspace.
    pub tools: Option<Vec<String>>,
    /// Its share in the score of a version; a case of weight 0 is only reported.
    pub weight: f64,
    pub runs: u32,
    /// The share of runs that must pass, from 0 to 1.
    pub threshold: f64,
    /// The weighted share of assertions that must be true for a run to pass, from 0 to 1.
    pub min_score: f64,
    pub assert: Vec<Assertion>,
}

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseMessage {
    pub role: Speaker,
    pub content: String,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    User,
    Assistant,
}

/// Keys of a case that `defaults` may have as well.
const SHARED: &str = "vars profile render messages files tools weight runs threshold min_score assert";
const TOP: &str = "description defaults cases";

/// Reads a `tests.yaml`; `file` is its name in mistakes.
///
/// # Errors
/// The file is wrong; the error has all mistakes, in the order of the file.
pub fn parse_suite(file: &str, text: &str) -> Result<Suite, Vec<Mistake>> {
    read_file(file, text, read_suite)
}

fn read_suite(source: &mut CaseSource<'_>, node: &Node) -> Suite {
    check_keys(source, node, "key of a test file", TOP, &[]);
    let nothing = Node { tree: YamlTree::Map(Vec::new()), place: node.place };
    let defaults = node.get("defaults").unwrap_or(&nothing);
    check_keys(source, defaults, "key of `defaults`", SHARED, &[]);
    let description = node.get("description").and_then(Node::text).unwrap_or_default().to_owned();
    let Some(cases) = node.get("cases").and_then(Node::items).filter(|cases| !cases.is_empty()) else {
        let place = node.get("cases").map_or(node.place, |cases| cases.place);
        source.wrong_with(place, "there are no cases", "write `cases:` and below it `- name: …` with `assert:`");
        return Suite::default();
    };
    check_unique(source, cases);
    let cases = cases.iter().filter_map(|case| read_case(source, case, defaults)).collect();
    Suite { description, cases, notes: Vec::new() }
}

/// Checks that names are unique: recordings and reports identify a case by its name.
fn check_unique(source: &mut CaseSource<'_>, cases: &[Node]) {
    let mut seen = BTreeSet::new();
    for node in cases.iter().filter_map(|case| case.get("name")) {
        if let Some(name) = node.text().filter(|name| !seen.insert(*name)) {
            source.wrong(node.place, format!("two cases have the name `{name}`"));
        }
    }
}

fn read_case(source: &mut CaseSource<'_>, node: &Node, defaults: &Node) -> Option<Case> {
    let before = source.mistakes.len();
    if !matches!(node.tree, YamlTree::Map(_)) {
        source.wrong_with(node.place, "a case is a mapping", "write `- name: …` with `assert:` below it");
        return None;
    }
    check_keys(source, node, "key of a case", SHARED, &["name", "description"]);
    let name = node.get("name").and_then(Node::text).map(str::trim).unwrap_or_default();
    if name.is_empty() {
        source.wrong_with(node.place, "a case has a name", "write `- name: …`, a few words on what must be true");
    }
    let own = |key: &str| node.get(key).filter(|node| !node.is_blank());
    let either = |key: &str| own(key).or_else(|| defaults.get(key));
    let mut vars = Map::new();
    for from in [defaults, node] {
        if let Some(given) = from.get("vars").and_then(|node| source.read::<Map<String, Value>>(node)) {
            vars = merge_maps(vars, given);
        }
        if let Some(profile) = from.get("profile").and_then(Node::text) {
            vars.insert("profile".to_owned(), profile.into());
        }
    }
    let mut files = BTreeMap::new();
    let mut assert = Vec::new();
    let render = either("render").and_then(|node| source.read::<bool>(node));
    let messages = either("messages").map(|node| read_messages(source, node)).unwrap_or_default();
    let tools = either("tools").and_then(|node| source.read::<Vec<String>>(node));
    let runs = read_runs(source, either("runs"), RUNS, "`runs`");
    let threshold = read_number(source, either("threshold"), THRESHOLD, 0.0..=1.0, "`threshold`");
    let min_score = read_number(source, either("min_score"), 1.0, 0.0..=1.0, "`min_score`");
    let weight = assertion::read_weight(source, if own("weight").is_some() { node } else { defaults });
    for from in [defaults, node] {
        if let Some(node) = from.get("files") {
            files.extend(laid_out(source, node));
        }
        assert.extend(read_assertions(source, from.get("assert"), render == Some(true)));
    }
    if let (Some(last), Some(Speaker::Assistant)) = (either("messages"), messages.last().map(|last| last.role)) {
        let hint = "end with one of the user, to be answered";
        source.wrong_with(last.place, "the last message is the assistant's", hint);
    }
    if assert.is_empty() && source.mistakes.len() == before {
        source.wrong_with(node.place, "a case asserts something", "write `assert:` with at least one assertion");
    }
    if source.mistakes.len() > before {
        return None;
    }
    let all_of_rendered = assert.iter().all(|assertion| assertion.of_rendered);
    Some(Case {
        name: name.to_owned(),
        vars,
        render: render.unwrap_or(all_of_rendered),
        messages,
        files,
        tools,
        weight,
        runs,
        threshold,
        min_score,
        assert,
    })
}

/// Reads a list of assertions. Those of a case that only renders may not need a model's run.
pub(super) fn read_assertions(source: &mut CaseSource<'_>, list: Option<&Node>, renders: bool) -> Vec<Assertion> {
    let Some(list) = list.filter(|list| !list.is_blank()) else { return Vec::new() };
    let Some(items) = list.items() else {
        source.wrong_with(list.place, "`assert` is a list", "write each assertion as `- TYPE: VALUE`");
        return Vec::new();
    };
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        let Some(assertion) = assertion::read_assertion(source, item) else { continue };
        if assertion.needs != AssertionNeeds::Text && (renders || assertion.of_rendered) {
            let message = format!("`{}` checks what a model did, and no model is asked here", assertion.label);
            let hint = "leave out `render: true` (or `of: rendered`), or the assertion";
            source.wrong_with(item.place, message, hint);
        } else {
            all.push(assertion);
        }
    }
    all
}

fn read_messages(source: &mut CaseSource<'_>, node: &Node) -> Vec<CaseMessage> {
    let Some(items) = node.items() else {
        source.wrong_with(node.place, "`messages` is a list", "write `- { role: user, content: … }`");
        return Vec::new();
    };
    let read = |item: &Node| match item.entries() {
        // `- user: text` is the short form, as in the head of a prompt.
        [(key, value)] if matches!(&*key.text, "user" | "assistant") => {
            let role = if key.text == "user" { Speaker::User } else { Speaker::Assistant };
            source.read(value).map(|content| CaseMessage { role, content })
        }
        _ => source.read(item),
    };
    items.iter().filter_map(read).collect()
}

fn laid_out(source: &mut CaseSource<'_>, node: &Node) -> BTreeMap<String, String> {
    if !matches!(node.tree, YamlTree::Map(_)) {
        source.wrong_with(node.place, "`files` is a mapping", "write `PATH: TEXT`");
    }
    let mut files = BTreeMap::new();
    for (path, text) in node.entries() {
        let is_inside = Path::new(&*path.text).components().all(|part| matches!(part, Component::Normal(_)));
        match text.text() {
            Some(_) if path.text.is_empty() || !is_inside => {
                source.wrong(path.place, "a path of a case is relative and stays inside its workspace");
            }
            Some(text) => {
                files.insert(path.text.to_string(), text.to_owned());
            }
            None => source.wrong(text.place, "the content of a file is a text"),
        }
    }
    files
}

pub(super) fn read_number(
    source: &mut CaseSource<'_>,
    node: Option<&Node>,
    otherwise: f64,
    range: std::ops::RangeInclusive<f64>,
    what: &str,
) -> f64 {
    let Some((node, number)) = node.and_then(|node| Some((node, source.read::<f64>(node)?))) else {
        return otherwise;
    };
    if !range.contains(&number) {
        source.wrong(node.place, format!("{what} is a number from {} to {}", range.start(), range.end()));
    }
    number
}

/// A number of runs.
pub(super) fn read_runs(source: &mut CaseSource<'_>, node: Option<&Node>, otherwise: u32, what: &str) -> u32 {
    let runs = read_number(source, node, f64::from(otherwise), 1.0..=f64::from(MOST_RUNS), what);
    if let Some(node) = node.filter(|_| runs.fract() != 0.0) {
        source.wrong(node.place, format!("{what} is a whole number"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "else it is a mistake of the file"
    )]
    let runs = runs as u32;
    runs
}

fn check_keys(source: &mut CaseSource<'_>, node: &Node, what: &str, known: &str, further: &[&str]) {
    if !matches!(node.tree, YamlTree::Map(_)) {
        source.wrong(node.place, "a mapping is expected here");
    }
    let all: Vec<&str> = further.iter().copied().chain(known.split(' ')).collect();
    for (key, _) in node.entries().iter().filter(|(key, _)| !all.contains(&&*key.text)) {
        source.report_unknown(key.place, what, &key.text, all.iter().copied());
    }
}

/// Merges `over` into `base`: mappings are merged, everything else is replaced.
pub(super) fn merge_maps(mut base: Map<String, Value>, over: Map<String, Value>) -> Map<String, Value> {
    for (key, value) in over {
        let value = match (base.remove(&key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => Value::Object(merge_maps(base, over)),
            (_, value) => value,
        };
        base.insert(key, value);
    }
    base
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CaseMessage, Speaker, parse_suite};

    const SOUND: &str = "\
description: Routing
defaults: { runs: 3, threshold: 1, vars: { tools: [{ name: calculator }], limits: { steps: 8 } }, assert: [is-json] }
cases:
  - name: math goes to the calculator
    vars: { limits: { turns: 1 }, who: Ann }
    messages:
      - { role: user, content: 'What is 2 * 3?' }
      - assistant: '6'
      - user: And 3 * 4?
    files: { src/a.rs: text }
    weight: 2
    assert:
      - contains: calculator
      - not-contains: sorry
  - { name: only rendered, render: true, runs: 1, assert: [contains: x] }
";

    #[test]
    fn defaults_go_below_what_a_case_says() {
        let suite = parse_suite("tests.yaml", SOUND).expect("sound");
        let [math, rendered] = suite.cases.as_slice() else { panic!("two cases") };
        assert_eq!(
            Value::Object(math.vars.clone()),
            json!({"tools": [{"name": "calculator"}], "limits": {"steps": 8, "turns": 1}, "who": "Ann"})
        );
        let said = |role, content: &str| CaseMessage { role, content: content.to_owned() };
        assert_eq!(
            math.messages,
            [
                said(Speaker::User, "What is 2 * 3?"),
                said(Speaker::Assistant, "6"),
                said(Speaker::User, "And 3 * 4?")
            ]
        );
        assert_eq!((math.runs, math.render, math.assert.len()), (3, false, 3));
        assert_eq!(math.files["src/a.rs"], "text");
        assert_eq!((rendered.runs, rendered.render), (1, true));
        let labels: Vec<&str> = math.assert.iter().map(|assertion| assertion.label.as_str()).collect();
        assert_eq!(labels, ["is-json", "contains: calculator", "not-contains: sorry"]);
    }

    /// The text below `cases:` → the line and column of the mistake, and a part of its message.
    const WRONG: &[(&str, usize, usize, &str)] = &[
        ("- name: a\n  assert: [contians: x]", 3, 12, "there is no assertion `contians`"),
        ("- name: a\n  assert: [not-nothing: x]", 3, 12, "there is no assertion `nothing`"),
        ("- name: a\n  assert: [regex: '(']", 3, 19, "it is not a regular expression"),
        ("- name: a\n  assert: [contains]", 3, 12, "`contains` needs a text"),
        ("- name: a\n  assert: [contains: ]", 3, 12, "`contains` needs a text"),
        ("- name: a\n  assert: [contains: '']", 3, 22, "this is empty"),
        ("- name: a\n  assert: [{ type: field_in, field: x }]", 3, 20, "`field_in` is not complete"),
        ("- name: a\n  assert: [{ type: contains, vaule: x }]", 3, 30, "no key of `contains` `vaule`"),
        ("- name: a\n  assert: [max_tokens: many]", 3, 24, "expected u64"),
        ("- name: a\n  assert: [max_latency: soon]", 3, 25, "`soon` is not a duration"),
        ("- name: a\n  assert: [max_cost: -1]", 3, 22, "at least 0"),
        ("- name: a\n  assert: [json-schema: { type: objct }]", 3, 25, "it is not a JSON Schema"),
        ("- name: a\n  assert: [expr: 'output ==']", 3, 18, "it is not an expression"),
        ("- name: a\n  assert: [expr: 'outptu == 1']", 3, 18, "no name for an expression `outptu`"),
        ("- name: a\n  assert: [exit-code: 300]", 3, 23, "u8"),
        ("- name: a\n  assert: [{ contains: x, weight: -1 }]", 3, 35, "at least 0"),
        ("- name: a\n  assert: [{ contains: x, of: prompt }]", 3, 31, "`of` is `output`"),
        ("- name: a\n  assert: [{ contains: x, regex: y }]", 3, 12, "an assertion has one type"),
        ("- name: a\n  assert: [[contains]]", 3, 12, "an assertion cannot be a list"),
        ("- name: a\n  assert: contains", 3, 11, "`assert` is a list"),
        ("- name: a\n  render: true\n  assert: [tool-called: x]", 4, 12, "no model is asked here"),
        ("- name: a\n  assert: [{ exit-code: 0, of: rendered }]", 3, 12, "no model is asked here"),
        ("- name: a", 2, 3, "a case asserts something"),
        ("- assert: [is-json]", 2, 3, "a case has a name"),
        ("- name: a\n  asert: [is-json]", 3, 3, "no key of a case `asert`"),
        ("- name: a\n  runs: 0\n  assert: [is-json]", 3, 9, "from 1 to 1000"),
        ("- name: a\n  runs: 1.5\n  assert: [is-json]", 3, 9, "whole number"),
        ("- name: a\n  threshold: 90\n  assert: [is-json]", 3, 14, "from 0 to 1"),
        ("- name: a\n  files: { ../x: y }\n  assert: [is-json]", 3, 12, "stays inside"),
        ("- name: a\n  files: { /x: y }\n  assert: [is-json]", 3, 12, "stays inside"),
        ("- name: a\n  messages: [{ role: system, content: x }]\n  assert: [is-json]", 3, 22, "unknown variant"),
        ("- name: a\n  assert: [is-json]\n- name: a\n  assert: [is-json]", 4, 9, "two cases have the name `a`"),
        ("- name: a\n  messages: [assistant: x]\n  assert: [is-json]", 3, 13, "the last message is"),
        ("- just text", 2, 3, "a case is a mapping"),
        ("  []", 2, 3, "there are no cases"),
    ];

    #[test]
    fn every_mistake_has_its_place() {
        for (cases, line, column, words) in WRONG {
            let mistakes = parse_suite("p/tests.yaml", &format!("cases:\n{cases}\n")).expect_err(cases);
            let told = mistakes[0].to_string();
            assert_eq!((mistakes[0].line, mistakes[0].column), (Some(*line), Some(*column)), "{told}");
            assert!(told.contains(words), "{told}");
            assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        }
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let all = "case: []\ncases:\n- name: a\n  name: b\n  assert: [contians: x, regex: '[']\n- {}\n";
        let mistakes = parse_suite("tests.yaml", all).expect_err("wrong");
        let lines: Vec<_> = mistakes.iter().filter_map(|mistake| mistake.line).collect();
        assert_eq!(lines, [1, 4, 5, 5, 6], "{mistakes:#?}");
        assert!(mistakes[0].to_string().contains("  1 | case: []"), "{}", mistakes[0]);
        for broken in ["", "cases: [", "- a", "x", "cases: {}", &"[".repeat(100_000)] {
            assert!(!parse_suite("tests.yaml", broken).expect_err("wrong").is_empty());
        }
    }
}
