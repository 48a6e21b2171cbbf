//! The texts of a step that are evaluated when it begins, each with its place in the step and the names that it may
//! read, and the earlier steps that it therefore needs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::FlowStep;
use crate::template::{Expression, Filling, TemplateError};

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowTextForm {
    /// An expression without braces.
    Expression,
    /// A text with `{{ … }}`.
    Filling,
}

/// One text.
pub(super) struct StepText<'s> {
    /// The keys and indices that lead to it from the step.
    pub path: Vec<String>,
    pub text: &'s str,
    pub form: FlowTextForm,
    /// The names of the step's own loop that it may read.
    pub names: &'static [&'static str],
}

/// The names for a step's rounds over a list.
const EACH: [&str; 3] = ["item", "index", "results"];
/// The names for a repeated step.
const AGAIN: [&str; 2] = ["last", "round"];

impl FlowTextForm {
    /// The names that a text reads, with dotted attributes.
    pub fn paths(self, text: &str) -> Result<BTreeSet<String>, TemplateError> {
        let (mut paths, is_expression) = match self {
            Self::Expression => (Expression::compile(text)?.paths(), true),
            Self::Filling => (Filling::compile(text)?.paths(), false),
        };
        // The engine does not report names in slices, and a step that was missed would run too early.
        paths.extend(find_literal_names(text, is_expression));
        Ok(paths)
    }
}

impl FlowStep {
    /// The names of its loop.
    pub(super) fn loop_names(&self) -> &'static [&'static str] {
        match (&self.for_each, &self.repeat) {
            (Some(_), _) => &EACH,
            (None, Some(_)) => &AGAIN,
            (None, None) => &[],
        }
    }

    /// Its own texts, without those of the steps inside it.
    pub(super) fn texts(&self) -> Vec<StepText<'_>> {
        let mut texts = Vec::new();
        let mut expression = |path: &[&str], text, names| {
            let path = path.iter().map(|&key| key.to_owned()).collect();
            texts.push(StepText { path, text, form: FlowTextForm::Expression, names });
        };
        if let Some(when) = &self.when {
            expression(&["when"], when, &[]);
        }
        if let Some(each) = &self.for_each {
            expression(&["for_each", "in"], &each.list, &[]);
        }
        if let Some(repeat) = &self.repeat {
            expression(&["repeat", "until"], &repeat.until, &AGAIN);
        }
        for (key, value) in &self.with {
            collect_fillings(value, &mut vec!["with".to_owned(), key.clone()], self.loop_names(), &mut texts);
        }
        texts.extend(self.replaces.as_deref().map(|text| StepText {
            path: vec!["replaces".to_owned()],
            text,
            form: FlowTextForm::Filling,
            names: self.loop_names(),
        }));
        texts
    }

    /// The ids of the steps outside it whose results it, or a step inside it, reads.
    pub fn needs(&self) -> BTreeSet<String> {
        let paths = |text: StepText<'_>| text.form.paths(text.text).unwrap_or_default();
        let mut needs: BTreeSet<String> = self
            .texts()
            .into_iter()
            .flat_map(paths)
            .filter_map(|path| step_of(&path).map(str::to_owned))
            .collect();
        for inner in self.steps.iter().flatten() {
            needs.extend(inner.needs());
        }
        for inner in self.steps.iter().flatten() {
            needs.remove(&inner.id);
        }
        needs
    }
}

impl FlowStep {
    /// The ids of the steps outside it that must end before it begins: those that it needs, and those that it or a step
    /// inside it names in `depends_on`.
    pub fn waits(&self) -> BTreeSet<String> {
        let mut waits: BTreeSet<String> =
            self.needs().into_iter().chain(self.depends_on.iter().cloned()).collect();
        for inner in self.steps.iter().flatten() {
            waits.extend(inner.waits());
        }
        for inner in self.steps.iter().flatten() {
            waits.remove(&inner.id);
        }
        waits
    }

    /// True if a text of it, or of a step inside it, reads this name.
    pub fn reads(&self, name: &str) -> bool {
        let is_read = |text: StepText<'_>| {
            let words = split_words(text.text, text.form == FlowTextForm::Expression);
            words.into_iter().any(|word| word.split('.').next() == Some(name))
        };
        self.texts().into_iter().any(is_read) || self.steps.iter().flatten().any(|inner| inner.reads(name))
    }
}

/// The texts in a value, at any depth.
pub(super) fn collect_fillings<'s>(
    value: &'s Value,
    path: &mut Vec<String>,
    names: &'static [&'static str],
    texts: &mut Vec<StepText<'s>>,
) {
    let mut below = |key: String, value: &'s Value| {
        path.push(key);
        collect_fillings(value, path, names, texts);
        path.pop();
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| below(at.to_string(), item)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key.clone(), value)),
        Value::String(text) => {
            texts.push(StepText { path: path.clone(), text, form: FlowTextForm::Filling, names });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The steps and inputs that are written literally in a text.
fn find_literal_names(text: &str, is_expression: bool) -> impl Iterator<Item = String> {
    split_words(text, is_expression).into_iter().filter_map(|word| {
        let (root, rest) = word.split_once('.')?;
        let name = rest.split('.').next().filter(|name| !name.is_empty())?;
        ["steps", "inputs"].contains(&root).then(|| format!("{root}.{name}"))
    })
}

/// The words of a text outside quotes, including dots; only those inside braces if it is not one expression.
fn split_words(text: &str, is_expression: bool) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let (mut words, mut inside, mut quote, mut before) = (Vec::new(), is_expression, None, ' ');
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        match (quote, c) {
            (Some(open), c) if c == open && before != '\\' => quote = None,
            (None, '\'' | '"') if inside => quote = Some(c),
            (None, _) if rest.starts_with("{{") || rest.starts_with("{%") => inside = true,
            (None, _) if !is_expression && (rest.starts_with("}}") || rest.starts_with("%}")) => inside = false,
            (None, c) if inside && is_part(c) && !is_part(before) => {
                words.push(&rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]);
            }
            _ => {}
        }
        before = c;
    }
    words
}

/// The step that a path reads: `list` of `steps.list.entries`.
pub(super) fn step_of(path: &str) -> Option<&str> {
    let mut parts = path.split('.');
    (parts.next() == Some("steps")).then(|| parts.next()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::FlowStep;
    use super::FlowTextForm;

    #[test]
    fn every_name_that_is_written_is_seen() {
        let table = [
            (FlowTextForm::Expression, "(steps.a.list | list)[:inputs.n]", "inputs.n steps.a"),
            (FlowTextForm::Expression, "item.steps.x + mysteps.y", "item.steps.x mysteps.y"),
            (FlowTextForm::Expression, "'steps.x' ~ \"it's steps.y\" ~ steps.z", "steps.z"),
            (
                FlowTextForm::Filling,
                "steps.x {{ steps.a[1:2] }} steps.y {% if steps.b %}steps.z{% endif %}",
                "steps.a steps.b",
            ),
            (FlowTextForm::Filling, "{{ '}}' ~ steps.a[:1] }}", "steps.a"),
        ];
        for (form, text, expected) in table {
            let paths = form.paths(text).expect(text);
            // The engine may or may not look into a slice by itself.
            let read: Vec<&str> = paths.iter().map(String::as_str).filter(|path| *path != "steps").collect();
            assert_eq!(read.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_step_needs_what_it_and_the_steps_inside_of_it_read() {
        let step: FlowStep = serde_json::from_value(json!({
            "id": "work",
            "when": "steps.route.tool_name == 'plan' and inputs.deep",
            "repeat": { "until": "last.judge.ok", "most": 3 },
            "depends_on": ["clean"],
            "steps": [
                { "id": "plan", "role": "planner", "with": { "request": "{{ inputs.task }}" } },
                { "id": "do", "tool": "t", "with": { "a": ["{{ steps.plan.plan }}", { "b": "x {{ steps.list[0] }}" }] } },
                { "id": "judge", "prompt": "{{ x }}", "with": { "x": "{% for s in steps.more.all %}{{ s }}{% endfor %}" } },
            ],
        }))
        .expect("a step");
        assert_eq!(step.needs().into_iter().collect::<Vec<_>>(), ["list", "more", "route"]);
        assert_eq!(step.waits().into_iter().collect::<Vec<_>>(), ["clean", "list", "more", "route"]);
        assert!(step.reads("inputs") && step.reads("last") && !step.reads("results") && !step.reads("clean"));
    }
}
