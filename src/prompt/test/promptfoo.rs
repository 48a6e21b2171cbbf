//! Reads configuration files of promptfoo: prompts, providers, and tests with the assertions that have an equivalent
//! here. Anything else is left out and named.

use serde_json::{Map, Value};

use crate::base::text;
use crate::base::yaml::{self, Node, Scalar, ScalarForm, YamlKey, YamlTree};
use crate::config::Mistake;
use crate::template::{self, Template, Undefined, is_template};

use super::assertion;
use super::case::{Case, Suite, THRESHOLD, merge_maps, read_number, read_runs};
use super::pattern::RegexPattern;
use super::source::{CaseSource, read_file};

/// The content of such a file.
#[derive(Debug, Default)]
pub struct Foreign {
    pub suite: Suite,
    pub prompts: Vec<ImportedPrompt>,
    /// Models as `--model` takes them.
    pub models: Vec<String>,
}

/// A prompt that the file has or names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportedPrompt {
    Text(String),
    /// A path, relative to the file.
    File(String),
}

/// Assertions with the same name here.
const SAME: &str = "\
    equals contains icontains contains-all contains-any icontains-all icontains-any regex starts-with is-json \
    contains-json similar llm-rubric";
/// Assertions with another name here, and the unit that their threshold needs.
const RENAMED: &[(&str, &str, &str)] = &[("latency", "max_latency", "ms"), ("cost", "max_cost", "")];
/// Keys of an assertion that change what is asserted.
const CHANGING: &[&str] = &["transform", "contextTransform", "rubricPrompt", "provider", "config"];
/// Keys of a test that change what is tested.
const TEST_CHANGING: &[&str] = &["assertScoringFunction", "provider", "providerOutput", "scenarios"];
/// The most tests that lists of variables may make of one.
const MOST_EXPANDED: usize = 1000;

/// True if a file is one of promptfoo's, by its keys.
pub fn is_promptfoo(text: &str) -> bool {
    yaml::tree_of_firsts(text, 0).is_ok_and(|(node, _)| {
        node.get("cases").is_none() && ["tests", "prompts", "providers"].iter().any(|key| node.get(key).is_some())
    })
}

/// Reads such a file; `file` is its name in mistakes.
///
/// # Errors
/// The supported parts are wrong; the error has all mistakes. Unsupported parts are in the notes of the suite.
pub fn parse_promptfoo(file: &str, text: &str) -> Result<Foreign, Vec<Mistake>> {
    read_file(file, text, |source, node| PromptfooReading { source, notes: Vec::new() }.file(node))
}

struct PromptfooReading<'r, 't> {
    source: &'r mut CaseSource<'t>,
    notes: Vec<String>,
}

impl PromptfooReading<'_, '_> {
    fn file(mut self, node: &Node) -> Foreign {
        const READ: &[&str] =
            &["prompts", "providers", "targets", "tests", "defaultTest", "description", "evaluateOptions"];
        for (key, _) in node.entries().iter().filter(|(key, _)| !READ.contains(&&*key.text)) {
            self.note(key.place.line, &format!("`{}`", key.text));
        }
        let listed = |key: &str| {
            node.get(key).map_or(&[][..], |node| node.items().unwrap_or_else(|| std::slice::from_ref(node)))
        };
        let prompts = listed("prompts").iter().filter_map(|prompt| self.prompt(prompt)).collect();
        let providers = if node.get("providers").is_some() { "providers" } else { "targets" };
        let models = listed(providers).iter().filter_map(|provider| self.model(provider)).collect();
        let repeat = node.get("evaluateOptions").and_then(|options| options.get("repeat"));
        let runs = read_runs(self.source, repeat, 1, "`repeat`");
        let nothing = Node { tree: YamlTree::Map(Vec::new()), place: node.place };
        let default = node.get("defaultTest").unwrap_or(&nothing);
        let mut cases: Vec<Case> = Vec::new();
        for test in listed("tests") {
            self.test(test, default, runs, &mut cases);
        }
        if cases.is_empty() && self.source.mistakes.is_empty() {
            self.source.wrong_with(node.place, "no test of this file can be run", self.notes.join("\n"));
        }
        let description = node.get("description").and_then(Node::text).unwrap_or_default().to_owned();
        Foreign { suite: Suite { description, cases, notes: self.notes }, prompts, models }
    }

    fn note(&mut self, line: usize, what: &str) {
        self.notes.push(format!("{}:{line}: {what} is left out: it has no equal here", self.source.file));
    }

    fn prompt(&mut self, node: &Node) -> Option<ImportedPrompt> {
        let named = node.get("id").or_else(|| node.get("raw"));
        let Some(text) = named.unwrap_or(node).text() else {
            self.note(node.place.line, "this prompt");
            return None;
        };
        let path = text.strip_prefix("file://");
        let is_file = [".txt", ".md", ".j2"].iter().any(|end| text.ends_with(end));
        if is_file && (path.is_some() || !text.contains(char::is_whitespace)) {
            return Some(ImportedPrompt::File(path.unwrap_or(text).to_owned()));
        }
        if path.is_none() && !text.trim_start().starts_with('[') {
            return Some(ImportedPrompt::Text(text.to_owned()));
        }
        self.note(node.place.line, &format!("the prompt `{}`", text::one_line(text, 60)));
        None
    }

    /// `openai:chat:gpt-4o` → `openai/gpt-4o`.
    fn model(&mut self, node: &Node) -> Option<String> {
        const WIRES: &[&str] = &["chat", "messages", "responses"];
        const PROGRAMS: &[&str] = &["python", "exec", "http", "https", "file", "package", "golang", "webhook"];
        let id = node.get("id").unwrap_or(node).text().unwrap_or_default();
        match id.split_once(':') {
            Some((provider, rest)) if !PROGRAMS.contains(&provider) => {
                let model =
                    rest.split_once(':').filter(|(wire, _)| WIRES.contains(wire)).map_or(rest, |(_, id)| id);
                Some(format!("{provider}/{model}"))
            }
            _ => {
                self.note(node.place.line, &format!("the provider `{}`", text::one_line(id, 60)));
                None
            }
        }
    }

    fn test(&mut self, test: &Node, default: &Node, runs: u32, cases: &mut Vec<Case>) {
        let line = test.place.line;
        let own = test.entries().iter().chain(default.entries());
        let changing = own.map(|(key, _)| &key.text).filter(|key| TEST_CHANGING.contains(&&***key));
        let options = [test, default].into_iter().filter_map(|node| node.get("options")).flat_map(Node::entries);
        let mut changing = changing.chain(options.map(|(key, _)| &key.text));
        if !matches!(test.tree, YamlTree::Map(_)) {
            return self.note(line, &format!("`{}`", text::one_line(test.text().unwrap_or("this test"), 60)));
        }
        if let Some(key) = changing.next() {
            return self.note(line, &format!("a test with `{key}`"));
        }
        let mut vars = Map::new();
        for from in [default, test] {
            if let Some(given) = from.get("vars").and_then(|node| self.source.read::<Map<String, Value>>(node)) {
                vars = merge_maps(vars, given);
            }
        }
        if let Some((name, _)) = vars.iter().find(|(_, v)| v.as_str().is_some_and(|v| v.starts_with("file://"))) {
            return self.note(line, &format!("a test whose variable `{name}` is a file"));
        }
        let threshold = test.get("threshold").or_else(|| default.get("threshold"));
        let min_score = read_number(self.source, threshold, 1.0, 0.0..=1.0, "`threshold`");
        let named = test.get("description").and_then(Node::text).map(str::to_owned);
        let every = expand_vars(&vars);
        if every.len() > MOST_EXPANDED {
            let why = format!("its lists of variables make more than {MOST_EXPANDED} tests");
            return self.source.wrong(test.place, why);
        }
        for (at, vars) in every.iter().enumerate() {
            let before = self.notes.len();
            let mut assert = Vec::new();
            for item in [default, test].iter().filter_map(|from| from.get("assert")?.items()).flatten() {
                if let Some(item) = self.assertion(item, vars) {
                    assert.extend(assertion::read_assertion(self.source, &item));
                }
            }
            if at > 0 {
                self.notes.truncate(before);
            }
            if assert.is_empty() {
                continue;
            }
            let name = named.clone().unwrap_or_else(|| format!("test in line {line}"));
            let name = if every.len() > 1 { format!("{name} ({})", at + 1) } else { name };
            let twin = cases.iter().any(|case| case.name == name);
            cases.push(Case {
                name: if twin { format!("{name} (line {line})") } else { name },
                vars: vars.clone(),
                render: false,
                messages: Vec::new(),
                files: std::collections::BTreeMap::new(),
                tools: Some(Vec::new()),
                weight: 1.0,
                runs,
                threshold: THRESHOLD,
                min_score,
                assert,
            });
        }
    }

    /// Converts an assertion to the form here; `None`, with a note, if it has no equivalent.
    fn assertion(&mut self, item: &Node, vars: &Map<String, Value>) -> Option<Node> {
        let kind = item.get("type").and_then(Node::text).unwrap_or_default().to_owned();
        let (not, plain) = kind.strip_prefix("not-").map_or(("", kind.as_str()), |plain| ("not-", plain));
        let renamed = RENAMED.iter().find(|(name, ..)| *name == plain);
        let value = item.get("value").and_then(Node::text).unwrap_or_default();
        let left_out = if renamed.is_none() && SAME.split(' ').all(|same| same != plain) {
            Some(format!("the assertion `{}`", text::one_line(&kind, 60)))
        } else if let Some(key) = CHANGING.iter().find(|key| item.get(key).is_some()) {
            Some(format!("an assertion `{kind}` with `{key}`"))
        } else if plain == "regex" && RegexPattern::new(value).is_err() {
            Some(format!("an expression that is not read here, `{}`", text::one_line(value, 60)))
        } else {
            value.starts_with("file://").then(|| format!("an assertion `{kind}` whose value is a file"))
        };
        if let Some(what) = left_out {
            self.note(item.place.line, &what);
            return None;
        }
        let mut entries: Vec<(YamlKey, Node)> = Vec::new();
        for (key, node) in item.entries() {
            let node = match (&*key.text, renamed) {
                ("type", Some((_, name, _))) => write_scalar(node, format!("{not}{name}"), ScalarForm::Given),
                ("threshold", Some((.., unit))) => {
                    let threshold = format!("{}{unit}", node.text().unwrap_or_default());
                    write_scalar(node, threshold, ScalarForm::Given)
                }
                ("value", _) if plain.ends_with("-all") || plain.ends_with("-any") => split_list(node),
                ("type" | "value" | "weight", _) => node.clone(),
                ("threshold", None) if plain == "similar" => node.clone(),
                _ => continue,
            };
            entries.push((key.clone(), self.fill_assertion(&node, vars)));
        }
        Some(Node { tree: YamlTree::Map(entries), place: item.place })
    }

    /// The values of an assertion with the variables of its test in them.
    fn fill_assertion(&mut self, node: &Node, vars: &Map<String, Value>) -> Node {
        match &node.tree {
            YamlTree::Scalar(scalar) if is_template(&scalar.text) => {
                let rendered = Template::compile(self.source.file, &scalar.text, Undefined::Error)
                    .and_then(|template| template.render(&template::convert_value(vars)));
                match rendered {
                    Ok(text) => return write_scalar(node, text, ScalarForm::Quoted),
                    Err(error) => self.source.wrong(node.place, error.message),
                }
            }
            YamlTree::List(items) => {
                let items = items.iter().map(|item| self.fill_assertion(item, vars)).collect();
                return Node { tree: YamlTree::List(items), place: node.place };
            }
            _ => {}
        }
        node.clone()
    }
}

/// A text in the place of another node.
fn write_scalar(like: &Node, text: String, form: ScalarForm) -> Node {
    Node { tree: YamlTree::Scalar(Scalar { text: text.into(), form }), place: like.place }
}

/// `a, b` as a list.
fn split_list(node: &Node) -> Node {
    let Some(text) = node.text() else { return node.clone() };
    let item = |part: &str| write_scalar(node, part.trim().to_owned(), ScalarForm::Quoted);
    Node { tree: YamlTree::List(text.split(',').map(item).collect()), place: node.place }
}

/// One set of variables for each choice of items from those that are lists.
fn expand_vars(vars: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let mut all = vec![Map::new()];
    for (name, value) in vars {
        let choices = match value {
            Value::Array(items) if !items.is_empty() => items.clone(),
            value => vec![value.clone()],
        };
        let with = |mut vars: Map<String, Value>, choice: &Value| {
            vars.insert(name.clone(), choice.clone());
            vars
        };
        all = all.iter().flat_map(|vars| choices.iter().map(|choice| with(vars.clone(), choice))).collect();
        if all.len() > MOST_EXPANDED {
            break;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ImportedPrompt, is_promptfoo, parse_promptfoo};

    const FILE: &str = r"
description: Translations
prompts:
  - 'Translate to {{language}}: {{input}}'
  - file://prompts/other.txt
  - file://prompts/chat.json
providers:
  - openai:chat:gpt-4o-mini
  - id: anthropic:messages:claude-sonnet-4
  - python:model.py
defaultTest:
  assert:
    - { type: latency, threshold: 2000 }
tests:
  - description: greets
    vars: { language: [French, German], input: Hello }
    threshold: 0.5
    assert:
      - { type: icontains, value: '{{language}}', weight: 2, metric: tone }
      - { type: not-contains-any, value: 'sorry, unable' }
      - { type: javascript, value: 'output.length < 9' }
      - { type: cost, threshold: 0.01 }
      - { type: is-json, value: { type: object } }
  - vars: { language: fr, input: x }
    assert: [{ type: similar, value: bonjour, threshold: 0.9 }, { type: llm-rubric, value: is French }]
  - { vars: { input: file://a.txt }, assert: [{ type: equals, value: x }] }
  - { options: { transform: output.x }, assert: [{ type: equals, value: x }] }
  - file://more.yaml
";

    #[test]
    fn a_file_is_read_as_it_is() {
        assert!(is_promptfoo(FILE) && !is_promptfoo("cases: []") && !is_promptfoo("["));
        let foreign = parse_promptfoo("p.yaml", FILE).unwrap_or_else(|wrong| panic!("{}", wrong[0]));
        let text = "Translate to {{language}}: {{input}}".to_owned();
        assert_eq!(
            foreign.prompts,
            [ImportedPrompt::Text(text), ImportedPrompt::File("prompts/other.txt".to_owned())]
        );
        assert_eq!(foreign.models, ["openai/gpt-4o-mini", "anthropic/claude-sonnet-4"]);
        let cases = &foreign.suite.cases;
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["greets (1)", "greets (2)", "test in line 24"]);
        assert_eq!(cases[1].vars["language"], json!("German"));
        assert!((cases[1].min_score - 0.5).abs() < 1e-9 && cases[1].runs == 1 && !cases[1].render);
        let labels = |at: usize| cases[at].assert.iter().map(|a| a.label.as_str()).collect::<Vec<_>>();
        assert_eq!(
            labels(1),
            [
                "max_latency: {\"threshold\":\"2000ms\"}",
                "icontains: German",
                "not-contains-any: [\"sorry\",\"unable\"]",
                "max_cost: {\"threshold\":0.01}",
                "is-json: {\"type\":\"object\"}",
            ]
        );
        assert_eq!(
            labels(2)[1..],
            ["similar: {\"value\":\"bonjour\",\"threshold\":0.9}", "llm-rubric: is French"]
        );
        let left_out: Vec<&str> = foreign
            .suite
            .notes
            .iter()
            .filter_map(|note| note.strip_prefix("p.yaml:")?.split(" is left").next())
            .collect();
        assert_eq!(
            left_out,
            [
                "6: the prompt `file://prompts/chat.json`",
                "10: the provider `python:model.py`",
                "21: the assertion `javascript`",
                "26: a test whose variable `input` is a file",
                "27: a test with `transform`",
                "28: `file://more.yaml`",
            ]
        );
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let wrong = "prompts: [x]\ntests:\n- assert: [{ type: starts-with }]\n- assert: [{ type: equals }]\n";
        let mistakes = parse_promptfoo("p.yaml", wrong).expect_err("wrong");
        let lines: Vec<_> = mistakes.iter().filter_map(|mistake| mistake.line).collect();
        assert_eq!(lines, [3, 4]);
        let none =
            parse_promptfoo("p.yaml", "tests:\n- assert: [{ type: python, value: x }]\n").expect_err("none");
        assert!(none[0].to_string().contains("`python` is left out"), "{}", none[0]);
        assert!(parse_promptfoo("p.yaml", "tests: [").is_err());
    }
}
