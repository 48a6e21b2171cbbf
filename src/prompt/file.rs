//! One prompt: a small YAML head (what it is for, which variables it needs) and a template.
//!
//! It is compiled once: when it is read, or, where it comes with the program, when it is first rendered. In what is
//! compiled a comment stands for the head, so that the template's places are the file's.

use std::borrow::Cow;
use std::sync::OnceLock;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::event::PromptUsed;
use crate::frontmatter::{self, Document, Parts};
use crate::template::{Template, TemplateError, Undefined, Value};
use crate::yaml;

use super::error::PromptError;
use super::version::Version;

/// A prompt, ready to be rendered.
#[derive(Debug)]
pub struct Prompt {
    /// `system`; `inline` for text that stands in a configuration file.
    pub name: String,
    /// `None` for an inline prompt.
    pub version: Option<Version>,
    pub description: String,
    /// Names that must be defined, dotted ones (`vars.team`) included.
    pub required_vars: Vec<String>,
    /// Actions that its head forbids, as the names of tools or words of what they do, each with its line.
    pub(super) forbidden: Vec<(String, usize)>,
    /// The line of the file, 1-based, on which the body begins.
    pub(super) body_line: usize,
    /// The first 12 hexadecimal digits of the SHA-256 of the file as it is.
    pub fingerprint: String,
    /// Where it comes from, for people: a path, or `built-in prompts/…`.
    pub origin: String,
    /// The template as written, without the head.
    pub body: String,
    owner: Owner,
    /// Compiled when it is first needed; that of a person or a project when it is read.
    template: OnceLock<Result<Template, PromptError>>,
}

/// Whose prompt it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// It comes with the program: a test has found it sound.
    Program,
    Person,
    /// A workspace brings it along: it sees no variable that looks like a secret.
    Project,
}

/// The head of a prompt.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Head {
    description: String,
    required_vars: Vec<String>,
    forbidden: Vec<String>,
}

impl Prompt {
    /// Compiles a file's text.
    pub(super) fn parse(name: &str, version: Version, origin: &str, text: &str) -> Result<Self, PromptError> {
        let document = frontmatter::parse(text).map_err(|error| PromptError::of_head(origin, error))?;
        Self::of((name, version, origin), text, document, fingerprint(text)).compiled()
    }

    /// A built-in file, whose head and fingerprint the build has read. Nothing is compiled yet.
    pub(super) fn built_in(
        named: (&str, Version, &str),
        text: &str,
        head: &'static [u8],
        fingerprint: &str,
    ) -> Result<Self, PromptError> {
        let wrong = |error| PromptError::of_head(named.2, error);
        let Parts { body, body_line, .. } = frontmatter::split(text).map_err(wrong)?;
        let head = yaml::packed(head, 0).read().map_err(|error| PromptError::of_file(named.2, error.message))?;
        let prompt = Self::of(named, text, Document { head, body, body_line }, fingerprint.to_owned());
        Ok(Self { owner: Owner::Program, ..prompt })
    }

    fn of(
        (name, version, origin): (&str, Version, &str),
        text: &str,
        Document { head, body, body_line }: Document<'_, Head>,
        fingerprint: String,
    ) -> Self {
        Self {
            name: name.to_owned(),
            version: Some(version),
            description: head.description,
            required_vars: head.required_vars,
            forbidden: placed(head.forbidden, text),
            body_line,
            fingerprint,
            origin: origin.to_owned(),
            body: body.to_owned(),
            owner: Owner::Person,
            template: OnceLock::new(),
        }
    }

    /// A prompt that is written out in a configuration file: no head, no version. `origin` is what errors call it.
    ///
    /// # Errors
    /// When it is not a template.
    pub fn inline(text: &str, origin: &str) -> Result<Self, PromptError> {
        let prompt = Self {
            name: "inline".to_owned(),
            version: None,
            description: String::new(),
            required_vars: Vec::new(),
            forbidden: Vec::new(),
            body_line: 1,
            fingerprint: fingerprint(text),
            origin: origin.to_owned(),
            body: text.to_owned(),
            owner: Owner::Person,
            template: OnceLock::new(),
        };
        prompt.compiled()
    }

    /// The same, if it is a template.
    fn compiled(self) -> Result<Self, PromptError> {
        self.template()?;
        Ok(self)
    }

    fn template(&self) -> Result<&Template, PromptError> {
        let compile = || {
            let source = match self.body_line {
                1 => Cow::Borrowed(self.body.as_str()),
                // One line break less than lines before the body: the last one follows the comment, which eats it.
                line => format!("{{#{}-#}}\n{}", "\n".repeat(line - 2), self.body).into(),
            };
            let compiled = Template::compile(&self.origin, &source, Undefined::Error);
            compiled.map_err(|error| PromptError::of_template(&self.origin, &error))
        };
        self.template.get_or_init(compile).as_ref().map_err(PromptError::clone)
    }

    /// The same as one that a workspace brings along.
    #[must_use]
    pub(super) fn of_project(self) -> Self {
        Self { owner: Owner::Project, ..self }
    }

    /// Whether a workspace brings it along.
    #[must_use]
    pub fn is_of_project(&self) -> bool {
        self.owner == Owner::Project
    }

    /// Whether it comes with the program, and is not a person's or a project's.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.owner == Owner::Program
    }

    /// The text of the prompt in this context, without blank lines around it.
    ///
    /// # Errors
    /// One that names every variable that is missing; else what the template says.
    pub fn render(&self, context: &Value) -> Result<String, PromptError> {
        let rendered = self.template()?.render(context);
        let missing = self.missing(context, rendered.as_ref().err());
        match rendered {
            Ok(text) if missing.is_empty() => Ok(text.trim().to_owned()),
            Err(error) if missing.is_empty() => Err(PromptError::of_template(&self.origin, &error)),
            rendered => {
                let place = rendered.err().filter(|error| !error.missing.is_empty());
                let (line, column) = place.map_or((None, None), |error| (error.line, error.column));
                Err(PromptError { line, column, ..PromptError::of_missing(&self.origin, &missing) })
            }
        }
    }

    /// The names that rendering in this context would miss.
    #[must_use]
    pub fn undefined_in(&self, context: &Value) -> Vec<String> {
        let Ok(template) = self.template() else { return Vec::new() };
        self.missing(context, template.render(context).err().as_ref())
    }

    /// The names that the head requires and nothing defines, then those that rendering missed.
    fn missing(&self, context: &Value, error: Option<&TemplateError>) -> Vec<String> {
        let mut missing: Vec<String> = undefined(&self.required_vars, context).map(str::to_owned).collect();
        let read = error.into_iter().flat_map(|error| &error.missing);
        missing.extend(read.filter(|name| !self.required_vars.contains(name)).cloned());
        missing
    }

    /// How `run.started` names it.
    #[must_use]
    pub fn used(&self) -> PromptUsed {
        PromptUsed {
            name: self.name.clone(),
            version: self.version.map(|version| version.to_string()).unwrap_or_default(),
            fingerprint: self.fingerprint.clone(),
        }
    }
}

/// Each word with its line, looked for below the key.
fn placed(words: Vec<String>, text: &str) -> Vec<(String, usize)> {
    let key = text.lines().position(|line| line.starts_with("forbidden")).unwrap_or_default();
    let line =
        |word: &str| text.lines().skip(key).position(|line| line.contains(word)).unwrap_or_default() + key + 1;
    words
        .into_iter()
        .map(|word| (word.trim().to_lowercase(), line(word.trim())))
        .filter(|(word, _)| !word.is_empty())
        .collect()
}

fn fingerprint(text: &str) -> String {
    use std::fmt::Write;
    Sha256::digest(text.as_bytes()).iter().take(6).fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Those of the dotted `names` that the context does not define.
fn undefined<'a>(names: &'a [String], context: &Value) -> impl Iterator<Item = &'a str> {
    names.iter().map(String::as_str).filter(|name| {
        let found = name.split('.').try_fold(context.clone(), |value, part| value.get_attr(part));
        found.map_or(true, |value| value.is_undefined())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Prompt;
    use crate::template::value;

    fn prompt(text: &str) -> Result<Prompt, super::PromptError> {
        Prompt::parse("greet", "v1.0".parse().expect("a version"), "prompts/greet/v1.0.md", text)
    }

    const GREETING: &str =
        "---\ndescription: Says hello\nrequired_vars: [vars.who, vars.team]\n---\n\nHello {{ vars.who }}!\n";

    #[test]
    fn a_prompt_renders_without_its_head() {
        let prompt = prompt(GREETING).expect("sound");
        let context = value(&json!({"vars": {"who": "{{ x }}", "team": "t"}}));
        assert_eq!(prompt.render(&context).expect("all is defined"), "Hello {{ x }}!");
        assert_eq!(prompt.fingerprint.len(), 12);
        assert_eq!(prompt.used().version, "v1.0");
    }

    #[test]
    fn one_error_names_everything_that_is_missing() {
        let message = prompt(GREETING).expect("sound").render(&value(&json!({}))).expect_err("two are missing");
        assert!(message.to_string().contains("`vars.who`, `vars.team`"), "{message}");

        let both =
            "---\ndescription: d\nrequired_vars: [vars.who]\n---\n{{ vars.who }}{{ vars.team + 1 }}{{ name }}\n";
        let error =
            prompt(both).expect("sound").render(&value(&json!({"vars": {}}))).expect_err("three are missing");
        assert!(error.to_string().contains("`vars.who`, `name`, `vars.team`"), "{error}");
        let optional = "{% if vars.a %}x{% endif %}{{ b }}{% for i in range(2) %}{{ i }}{{ c.d }}{% endfor %}";
        let error = prompt(optional).expect("sound").render(&value(&json!({"c": {}}))).expect_err("undefined");
        assert!(error.to_string().contains("`b`, `c.d`"), "{error}");
        assert_eq!((error.line, error.column), (Some(1), Some(7)));
        let fine = prompt("{% if vars.a %}x{% endif %}ok").expect("sound");
        assert_eq!(fine.render(&value(&json!({"vars": {}}))).expect("an `if` may ask for anything"), "ok");
    }

    #[test]
    fn errors_name_file_and_line() {
        for (text, place) in [
            ("---\ndescription: d\n---\nfine\n{% if %}\n", "prompts/greet/v1.0.md:5:7: "),
            ("{% endif %}", "prompts/greet/v1.0.md:1:4: "),
            ("---\ndescription: d\nrequired: []\n---\n", "prompts/greet/v1.0.md:3:1: "),
            ("---\ndescription: d\n", "prompts/greet/v1.0.md:1: "),
        ] {
            let error = prompt(text).expect_err("wrong").to_string();
            assert!(error.starts_with(place), "{error}");
        }
    }

    #[test]
    fn an_inline_prompt_has_no_head() {
        let prompt = Prompt::inline("---\n{{ name }}", "agents/a.yaml").expect("a template");
        assert_eq!(prompt.render(&value(&json!({"name": "n"}))).expect("defined"), "---\nn");
        assert_eq!(prompt.name, "inline");
    }
}
