//! The values of one assertion as they are written, and the functions by which each kind reads its own. A mistake has
//! the place of the wrong value, or of the assertion if something is missing.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::base::validator::Validator;
use crate::base::yaml::{Node, YamlPlace};
use crate::config::parse_duration;
use crate::template::Expression;

use super::check::{AssertionCheck, Schema};
use super::pattern::RegexPattern;
use super::reply::EXPRESSION_NAMES;
use super::source::CaseSource;

/// The similarity that two texts must have by default.
const SIMILAR: f64 = 0.75;

/// An assertion that is being read.
pub(super) struct GivenAssertion<'g, 's, 'n> {
    pub source: &'g mut CaseSource<'s>,
    pub name: &'static str,
    /// The value after the type in the short form, or under `value`.
    pub value: Option<&'n Node>,
    /// The mapping of the long form.
    pub form: Option<&'n Node>,
    pub place: YamlPlace,
}

impl<'n> GivenAssertion<'_, '_, 'n> {
    pub fn equals(&mut self) -> Option<AssertionCheck> {
        let node = self.need(&[], "a text or data")?;
        match node.text() {
            Some(text) => Some(AssertionCheck::Equals(text.into())),
            None => self.source.read(node).map(AssertionCheck::Equals),
        }
    }

    pub fn contains(&mut self, any: bool, ignore_case: bool) -> Option<AssertionCheck> {
        let wanted = self.texts(&["values"], "a text")?;
        Some(AssertionCheck::Contains { wanted, any, ignore_case })
    }

    pub fn regex(&mut self) -> Option<AssertionCheck> {
        let (node, pattern) = self.need_text(&["pattern"], "a regular expression")?;
        self.sound(node, RegexPattern::new(&pattern), "it is not a regular expression").map(AssertionCheck::Regex)
    }

    pub fn starts_with(&mut self) -> Option<AssertionCheck> {
        self.need_text(&[], "a text").map(|(_, text)| AssertionCheck::StartsWith(text))
    }

    pub fn json(&mut self, inside: bool, needed: bool) -> Option<AssertionCheck> {
        if needed {
            self.need(&["schema"], "a JSON Schema")?;
        }
        let schema = self.schema(self.find(&["schema"]))?;
        Some(AssertionCheck::Json { schema, inside })
    }

    pub fn has_field(&mut self, wanted: bool) -> Option<AssertionCheck> {
        let fields = self.texts(&["field", "fields"], "the name of a field")?;
        Some(AssertionCheck::HasField { fields, wanted })
    }

    pub fn field_in(&mut self) -> Option<AssertionCheck> {
        let Some((field, values)) = self.key("field").zip(self.key("values")) else {
            return self.report_missing("write `field: NAME, values: [A, B]`");
        };
        let (field, values) = (self.text(field), self.source.read::<Vec<Value>>(values));
        Some(AssertionCheck::FieldIn { field: field?, values: values? })
    }

    pub fn max_tokens(&mut self) -> Option<AssertionCheck> {
        let node = self.need(&["limit", "threshold"], "a number of tokens")?;
        self.source.read(node).map(AssertionCheck::MaxTokens)
    }

    pub fn max_latency(&mut self) -> Option<AssertionCheck> {
        let (node, text) = self.need_text(&["limit", "threshold"], "a duration such as 2s or 500ms")?;
        parse_duration(&text)
            .map_or_else(|why| self.wrong(node, why), |most| Some(AssertionCheck::MaxLatency(most)))
    }

    pub fn max_cost(&mut self) -> Option<AssertionCheck> {
        let node = self.need(&["limit", "threshold"], "an amount in dollars")?;
        match self.source.read::<f64>(node)? {
            cost if cost.is_finite() && cost >= 0.0 => Some(AssertionCheck::MaxCost(cost)),
            _ => self.wrong(node, "a cost is a number of at least 0"),
        }
    }

    pub fn tool_called(&mut self) -> Option<AssertionCheck> {
        let names = self.texts(&["tool", "tools"], "the name of a tool")?;
        let least = self.optional("min")?.unwrap_or(1);
        let most = self.optional("max")?;
        if most.is_some_and(|most| most < least) {
            return self.report_missing("`max` is at least `min`");
        }
        Some(AssertionCheck::ToolCalled { names, least, most })
    }

    pub fn tool_arguments(&mut self) -> Option<AssertionCheck> {
        let Some(tool) = self.key("tool") else {
            let hint = "write `tool: NAME, args: { NAME: VALUE }`, with `schema:` beside or instead of args";
            return self.report_missing(hint);
        };
        let tool = self.text(tool)?;
        let wanted = self.optional::<Map<String, Value>>("args")?;
        let schema = self.schema(self.key("schema"))?;
        if wanted.is_none() && schema.is_none() {
            return self.report_missing("`args` or `schema` says which arguments match");
        }
        Some(AssertionCheck::ToolArguments { tool, wanted: wanted.unwrap_or_default(), schema })
    }

    pub fn tool_sequence(&mut self) -> Option<AssertionCheck> {
        let names = self.texts(&["tools"], "the names of tools")?;
        let exact = self.optional("exact")?.unwrap_or(false);
        Some(AssertionCheck::ToolSequence { names, exact })
    }

    pub fn skill_loaded(&mut self) -> Option<AssertionCheck> {
        self.texts(&["skill", "skills"], "the name of a skill").map(AssertionCheck::SkillLoaded)
    }

    pub fn exit_code(&mut self) -> Option<AssertionCheck> {
        let node = self.need(&["code"], "a number from 0 to 255")?;
        self.source.read(node).map(AssertionCheck::ExitCode)
    }

    pub fn expr(&mut self) -> Option<AssertionCheck> {
        let (node, text) = self.need_text(&[], "an expression")?;
        let compiled = Expression::compile(&text).map_err(|error| error.message);
        let expression = self.sound(node, compiled, "it is not an expression")?;
        let names = expression.variables();
        let Some(unknown) = names.iter().find(|name| !EXPRESSION_NAMES.contains(&name.as_str())) else {
            return Some(AssertionCheck::Expr(expression));
        };
        let known = EXPRESSION_NAMES.iter().copied();
        self.source.report_unknown(node.place, "name for an expression", unknown, known);
        None
    }

    pub fn similar(&mut self) -> Option<AssertionCheck> {
        let texts = self.texts(&[], "the text to be like")?;
        let threshold = self.optional("threshold")?.unwrap_or(SIMILAR);
        if (0.0..=1.0).contains(&threshold) {
            return Some(AssertionCheck::Similar { texts, threshold });
        }
        self.report_missing("`threshold` is a number from 0 to 1")
    }

    pub fn rubric(&mut self) -> Option<AssertionCheck> {
        let (_, rubric) = self.need_text(&[], "the rubric as a text")?;
        Some(AssertionCheck::Rubric { rubric, model: self.optional("model")? })
    }

    /// The value, or the first of these keys.
    fn find(&self, keys: &[&str]) -> Option<&'n Node> {
        self.value.or_else(|| keys.iter().find_map(|key| self.key(key)))
    }

    fn key(&self, key: &str) -> Option<&'n Node> {
        self.form.and_then(|form| form.get(key)).filter(|node| !node.is_blank())
    }

    fn need(&mut self, keys: &[&str], what: &str) -> Option<&'n Node> {
        let found = self.find(keys);
        if found.is_none() {
            let key = keys.first().unwrap_or(&"value");
            let hint = format!("write `- {0}: …` or `- {{ type: {0}, {key}: … }}`", self.name);
            self.source.wrong_with(self.place, format!("`{}` needs {what}", self.name), hint);
        }
        found
    }

    fn need_text(&mut self, keys: &[&str], what: &str) -> Option<(&'n Node, String)> {
        let node = self.need(keys, what)?;
        Some((node, self.text(node)?))
    }

    fn report_missing<T>(&mut self, hint: &str) -> Option<T> {
        self.source.wrong_with(self.place, format!("`{}` is not complete", self.name), hint);
        None
    }

    fn wrong<T>(&mut self, node: &Node, message: impl Into<String>) -> Option<T> {
        self.source.wrong(node.place, message);
        None
    }

    /// A scalar as text: `contains: 42` looks for `42`.
    fn text(&mut self, node: &Node) -> Option<String> {
        let wrong = || self.wrong(node, "a text is expected here, not a list or a mapping");
        node.text().map(str::to_owned).or_else(wrong)
    }

    /// One text or a list of them, none of them empty.
    fn texts(&mut self, keys: &[&str], what: &str) -> Option<Vec<String>> {
        let node = self.need(keys, what)?;
        let texts = match node.items() {
            Some(items) => items.iter().map(|item| self.text(item)).collect::<Option<Vec<_>>>()?,
            None => vec![self.text(node)?],
        };
        if texts.is_empty() || texts.iter().any(String::is_empty) {
            return self.wrong(node, format!("`{}` needs {what}, and this is empty", self.name));
        }
        Some(texts)
    }

    /// The value of a key, if there is one; `None` for a wrong one.
    #[expect(clippy::option_option, reason = "absent is no mistake, and a mistake ends the reading")]
    fn optional<T: DeserializeOwned>(&mut self, key: &str) -> Option<Option<T>> {
        match self.key(key) {
            Some(node) => self.source.read(node).map(Some),
            None => Some(None),
        }
    }

    #[expect(clippy::option_option, reason = "absent is no mistake, and a mistake ends the reading")]
    fn schema(&mut self, node: Option<&Node>) -> Option<Option<Schema>> {
        let Some(node) = node else { return Some(None) };
        let schema = match node.text() {
            // Other tools write a schema as JSON in a string.
            Some(text) => {
                self.sound(node, serde_json::from_str(text).map_err(|e| e.to_string()), "it is not JSON")?
            }
            None => self.source.read::<Value>(node)?,
        };
        self.sound(node, Validator::new(&schema), "it is not a JSON Schema").map(|schema| Some(Schema(schema)))
    }

    fn sound<T>(&mut self, node: &Node, read: Result<T, String>, what: &str) -> Option<T> {
        read.map_or_else(|why| self.wrong(node, format!("{what}: {why}")), Some)
    }
}
