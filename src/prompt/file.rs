//! One prompt: a YAML head and the text below it, composed with its modules and rendered when the agent runs.
//!
//! A template is compiled once: when the prompt is read, or, for a built-in one, when it is first rendered. Each part
//! is rendered with the variables that its own head declares or, for the prompt itself, with all.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;

use crate::base::digest::{hash_sha256, shorten_digest};
use crate::base::frontmatter::{self, FrontmatterParts};
use crate::base::yaml::{self, YamlError};
use crate::conversation::event::PromptUsed;
use crate::template::{Syntax, Template, TemplateError, Undefined, Value};

use super::chat::{ChatTemplate, split_system};
use super::error::PromptError;
use super::head::PromptHead;
use super::missed::{Missed, Unfilled};
use super::owner::Owner;
use super::variables;
use super::version::Version;

/// The variable with the examples of a prompt.
const EXAMPLES: &str = "examples";

/// A prompt, ready to be rendered.
#[derive(Debug)]
pub struct Prompt {
    /// `system`; `modules/rules` for a module; `inline` for text in a configuration file.
    pub name: String,
    /// `None` for an inline prompt.
    pub version: Option<Version>,
    pub head: PromptHead,
    /// Its origin, for people: a path, or `built-in prompts/…`.
    pub origin: String,
    /// The file as it is.
    text: Cow<'static, str>,
    body: Range<usize>,
    /// The line of the file, 1-based, on which the body begins.
    pub(super) body_line: usize,
    /// The sections of the rendered text.
    parts: Vec<PromptSection>,
    /// The files that the body includes, by the name that it gives them.
    pub(super) included: Arc<BTreeMap<String, String>>,
    /// The file of its examples, as it is.
    pub(super) examples: Option<Cow<'static, str>>,
    /// The SHA-256 of the composed template, in 64 hexadecimal digits.
    digest: String,
    owner: Owner,
    template: OnceLock<Result<Template, PromptError>>,
    pub(super) chat: OnceLock<Result<Option<ChatTemplate>, PromptError>>,
}

/// A section of a prompt.
#[derive(Debug)]
pub(super) struct PromptSection {
    pub heading: Option<String>,
    /// `None` for the prompt's own body.
    pub module: Option<Arc<Prompt>>,
}

impl Prompt {
    /// Reads a file's head. Nothing is composed or compiled yet.
    pub(super) fn parse(
        name: &str,
        version: Version,
        origin: &str,
        text: impl Into<Cow<'static, str>>,
    ) -> Result<Self, PromptError> {
        let text = text.into();
        let wrong = |error| PromptError::of_yaml(origin, error);
        let head = frontmatter::parse_frontmatter(&text).map_err(wrong)?.head;
        let digest = hash_sha256([text.as_bytes()]);
        Self::new(name, Some(version), origin, text, head, digest).map_err(wrong)
    }

    /// A built-in file, whose head and digest the build has read.
    pub(super) fn built_in(
        name: &str,
        version: Version,
        origin: &str,
        text: &'static str,
        head: &'static [u8],
        digest: &str,
    ) -> Result<Self, PromptError> {
        let head =
            yaml::unpack_tree(head, 0).read().map_err(|error| PromptError::of_file(origin, error.message))?;
        let prompt = Self::new(name, Some(version), origin, text.into(), head, digest.to_owned());
        prompt.map_err(|error| PromptError::of_yaml(origin, error)).map(|prompt| prompt.owned_by(Owner::Program))
    }

    fn new(
        name: &str,
        version: Option<Version>,
        origin: &str,
        text: Cow<'static, str>,
        head: PromptHead,
        digest: String,
    ) -> Result<Self, YamlError> {
        let FrontmatterParts { body, body_line, .. } = match version {
            Some(_) => frontmatter::split_head(&text)?,
            None => FrontmatterParts { head: None, body: &text, body_line: 1 },
        };
        let body = text.len() - body.len()..text.len();
        Ok(Self {
            name: name.to_owned(),
            version,
            head,
            origin: origin.to_owned(),
            text,
            body,
            body_line,
            parts: vec![PromptSection { heading: None, module: None }],
            included: Arc::default(),
            examples: None,
            digest,
            owner: Owner::Person,
            template: OnceLock::new(),
            chat: OnceLock::new(),
        })
    }

    /// A prompt in a configuration file, without head and version. `origin` is its name in errors.
    ///
    /// # Errors
    /// It is not a template.
    pub fn inline(text: &str, origin: &str) -> Result<Self, PromptError> {
        let digest = hash_sha256([text.as_bytes()]);
        let prompt = Self::new("inline", None, origin, text.to_owned().into(), PromptHead::default(), digest);
        prompt.map_err(|error| PromptError::of_yaml(origin, error))?.compiled()
    }

    /// Compiles the prompt, to check that it is a template.
    pub(super) fn compiled(self) -> Result<Self, PromptError> {
        self.template()?;
        self.chat()?;
        Ok(self)
    }

    /// Adds these sections and included files. `digest` is that of the composed template, if it is known.
    pub(super) fn compose(
        self,
        parts: Vec<PromptSection>,
        included: BTreeMap<String, String>,
        digest: Option<&str>,
    ) -> Self {
        let modules = parts.iter().filter_map(|part| part.module.as_ref());
        let owner = modules.clone().map(|module| module.owner).fold(self.owner, Owner::max);
        let digest = match digest {
            // The digest of the build is not valid if a user's module replaces a built-in one.
            Some(digest) if owner == Owner::Program => digest.to_owned(),
            _ => {
                let included = included.values().map(String::as_bytes);
                hash_sha256(self.texts().chain(modules.flat_map(|module| module.texts())).chain(included))
            }
        };
        Self { parts, digest, owner, included: Arc::new(included), ..self }
    }

    /// Every text that the prompt is made of.
    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let included = self.included.values().map(String::as_bytes);
        let examples = self.examples.iter().map(|text| text.as_bytes());
        std::iter::once(self.text.as_bytes()).chain(included).chain(examples)
    }

    /// Adds its examples: `text` is their file as it is, `owner` its owner.
    pub(super) fn with_examples(
        mut self,
        text: Cow<'static, str>,
        origin: &str,
        owner: Owner,
    ) -> Result<Self, PromptError> {
        let examples: Json = yaml::parse_document(&text).map_err(|error| PromptError::of_yaml(origin, error))?;
        self.head.defaults.insert(EXAMPLES.to_owned(), examples);
        Ok(Self { examples: Some(text), owner: self.owner.max(owner), ..self })
    }

    pub(super) fn owned_by(self, owner: Owner) -> Self {
        Self { owner, ..self }
    }

    /// The template as written, without the head and without modules.
    pub fn body(&self) -> &str {
        &self.text[self.body.clone()]
    }

    /// The file as it is, head included.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file as it is, and below it those of its modules, each under a line that names it.
    pub fn whole_text(&self) -> String {
        let modules = self.modules().map(|(_, module)| {
            let version = module.version.map(|version| format!("@{version}")).unwrap_or_default();
            format!("\n=== {}{version} ===\n{}", module.name, module.text)
        });
        std::iter::once(self.text.to_string()).chain(modules).collect()
    }

    /// The modules that it is composed of, in the order of the text, each with its heading.
    pub fn modules(&self) -> impl Iterator<Item = (Option<&str>, &Arc<Prompt>)> {
        self.parts.iter().filter_map(|part| Some((part.heading.as_deref(), part.module.as_ref()?)))
    }

    /// The bytes of its templates: its own and those of its modules.
    pub fn template_bytes(&self) -> usize {
        // Messages are in the head.
        let own = if self.has_messages() { self.text.len() } else { self.body.len() };
        own + self.modules().map(|(_, module)| module.body.len()).sum::<usize>()
    }

    /// The first 12 hexadecimal digits of the digest.
    pub fn fingerprint(&self) -> &str {
        shorten_digest(&self.digest)
    }

    /// The SHA-256 of the composed template, in hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// True if a prompt may have this name: a folder, or one below `modules/`.
    pub fn may_be_named(name: &str) -> bool {
        super::layer::is_name(name)
    }

    /// True if a workspace brings it, or a part of it, along.
    pub fn is_of_project(&self) -> bool {
        self.owner == Owner::Project
    }

    /// True if it comes with the program, not from the user or a project.
    pub fn is_built_in(&self) -> bool {
        self.owner == Owner::Program
    }

    /// `system@v1.0#0123456789ab`.
    pub fn id(&self) -> String {
        self.describe_use().to_string()
    }

    /// Its name in `run.started`.
    pub fn describe_use(&self) -> PromptUsed {
        PromptUsed {
            name: self.name.clone(),
            version: self.version.map(|version| version.to_string()).unwrap_or_default(),
            fingerprint: self.fingerprint().to_owned(),
        }
    }

    /// The text of the prompt in this context: its sections, each under its heading, without those that are empty.
    ///
    /// # Errors
    /// Variables are missing, and the error names all of them; or the template is wrong.
    pub fn render(&self, context: &Value) -> Result<String, PromptError> {
        let (rendered, missed) = self.attempt(context);
        if missed.names.is_empty() {
            return rendered;
        }
        let told = PromptError::of_missing(&self.origin, &missed.names, self.head.format);
        Err(match missed.place {
            Some(place) => PromptError { message: told.message, hint: told.hint, ..*place },
            None => told,
        })
    }

    /// The names that rendering in this context would miss.
    pub fn undefined_in(&self, context: &Value) -> Vec<String> {
        self.attempt(context).1.names
    }

    /// True if it asks for a variable that the program does not know, so that a person has to give it.
    pub fn asks_for(&self, name: &str, context: &Value) -> bool {
        let modules = self.modules().map(|(_, module)| module.as_ref());
        let mut declared = std::iter::once(self).chain(modules).flat_map(|prompt| prompt.head.list_declared());
        let root = variables::take_root(name);
        declared.any(|declared| variables::take_root(declared) == root)
            && !variables::find_undefined(std::iter::once(root), context).is_empty()
    }

    /// Each section of the rendered text, by its heading or the name of its module; the body is named `body`.
    ///
    /// # Errors
    /// As [`Prompt::render`].
    pub fn sections(&self, context: &Value) -> Result<Vec<(String, String)>, PromptError> {
        self.render(context)?;
        let context = self.declare(context);
        let of_part = |part: &PromptSection| {
            let name = match (&part.heading, &part.module) {
                (Some(heading), _) => heading.clone(),
                (None, Some(module)) => module.name.clone(),
                (None, None) => "body".to_owned(),
            };
            Ok((name, self.part(part, &context, &mut Missed::default())?))
        };
        self.parts.iter().map(of_part).collect()
    }

    fn attempt(&self, context: &Value) -> (Result<String, PromptError>, Missed) {
        let context = self.declare(context);
        let mut missed =
            Missed { names: variables::find_undefined(self.list_required(), &context), ..Missed::default() };
        let mut text = String::new();
        let mut add = |heading: Option<&str>, section: &str| {
            let gap = if text.is_empty() { "" } else { "\n\n" };
            let _ = match heading {
                _ if section.is_empty() => Ok(()),
                Some(heading) => write!(text, "{gap}# {heading}\n{section}"),
                None => write!(text, "{gap}{section}"),
            };
        };
        let mut failed = None;
        for part in &self.parts {
            match self.part(part, &context, &mut missed) {
                Ok(section) => add(part.heading.as_deref(), &section),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match self.fill(&context) {
            Ok(messages) => split_system(messages).0.iter().for_each(|system| add(None, system)),
            Err(Unfilled { missing, error }) if missing.is_empty() => failed = failed.or(Some(*error)),
            Err(Unfilled { missing, error }) => missed.add(missing, Some(*error)),
        }
        (failed.map_or(Ok(text), Err), missed)
    }

    /// The text of a section without surrounding blank lines; a missing variable is recorded instead of being an error.
    fn part(&self, part: &PromptSection, context: &Value, missed: &mut Missed) -> Result<String, PromptError> {
        let Some(module) = &part.module else { return self.own(context, missed) };
        let declared = variables::with_declared(context, &module.head);
        let seen = variables::restrict_context(&declared, module.head.list_declared());
        missed.add(variables::find_undefined(module.list_required(), &seen), None);
        module.own(&seen, missed)
    }

    /// Renders only the body.
    fn own(&self, context: &Value, missed: &mut Missed) -> Result<String, PromptError> {
        match self.template()?.render(context) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) if error.missing.is_empty() => Err(self.error(&error)),
            Err(error) => {
                let place = self.error(&error);
                missed.add(error.missing, Some(place));
                Ok(String::new())
            }
        }
    }

    fn list_required(&self) -> impl Iterator<Item = &str> {
        self.head.required_vars.iter().map(String::as_str)
    }

    pub(super) fn template(&self) -> Result<&Template, PromptError> {
        let compile = || {
            let included = Arc::clone(&self.included);
            let load = move |name: &str| included.get(name).cloned();
            let compiled = match self.head.format {
                Syntax::Jinja if self.is_built_in() => Template::compile_trusted(&self.origin, self.body()),
                Syntax::Jinja => Template::compile_with(&self.origin, self.body(), Undefined::Error, load),
                syntax => Template::compile_as(syntax, &self.origin, self.body(), Undefined::Error),
            };
            compiled.map_err(|error| self.error(&error))
        };
        self.template.get_or_init(compile).as_ref().map_err(PromptError::clone)
    }

    /// An error of the body, at its place in the file.
    fn error(&self, error: &TemplateError) -> PromptError {
        let found = PromptError::of_template(&self.origin, error);
        PromptError { line: found.line.map(|line| line + self.body_line - 1), ..found }
    }

    /// The line of the file, 1-based, with a word of the head's list `key`.
    pub(super) fn line_of(&self, key: &str, word: &str) -> usize {
        let start = self.text.lines().position(|line| line.starts_with(key)).unwrap_or_default();
        let below = self.text.lines().skip(start).position(|line| line.contains(word));
        start + below.unwrap_or_default() + 1
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Prompt;
    use crate::template::convert_value;

    fn prompt(text: &str) -> Result<Prompt, super::PromptError> {
        let version = "v1.0".parse().expect("a version");
        Prompt::parse("greet", version, "prompts/greet/v1.0.md", text.to_owned())?.compiled()
    }

    const GREETING: &str =
        "---\ndescription: Says hello\nrequired_vars: [vars.who, vars.team]\n---\n\nHello {{ vars.who }}!\n";

    #[test]
    fn a_prompt_renders_without_its_head() {
        let prompt = prompt(GREETING).expect("sound");
        let context = convert_value(&json!({"vars": {"who": "{{ x }}", "team": "t"}}));
        assert_eq!(prompt.render(&context).expect("all is defined"), "Hello {{ x }}!");
        assert_eq!(prompt.fingerprint().len(), 12);
        assert_eq!(prompt.describe_use().version, "v1.0");
    }

    #[test]
    fn one_error_names_everything_that_is_missing() {
        let message =
            prompt(GREETING).expect("sound").render(&convert_value(&json!({}))).expect_err("two are missing");
        assert!(message.to_string().contains("`vars.who`, `vars.team`"), "{message}");

        let both =
            "---\ndescription: d\nrequired_vars: [vars.who]\n---\n{{ vars.who }}{{ vars.team + 1 }}{{ name }}\n";
        let error = prompt(both)
            .expect("sound")
            .render(&convert_value(&json!({"vars": {}})))
            .expect_err("three are missing");
        assert!(error.to_string().contains("`vars.who`, `name`, `vars.team`"), "{error}");
        let optional = "{% if vars.a %}x{% endif %}{{ b }}{% for i in range(2) %}{{ i }}{{ c.d }}{% endfor %}";
        let error =
            prompt(optional).expect("sound").render(&convert_value(&json!({"c": {}}))).expect_err("undefined");
        assert!(error.to_string().contains("`b`, `c.d`"), "{error}");
        assert_eq!((error.line, error.column), (Some(1), Some(7)));
        assert!(error.to_string().contains(&format!("\n     1 | {optional}")), "{error}");
        let fine = prompt("{% if vars.a %}x{% endif %}ok").expect("sound");
        assert_eq!(fine.render(&convert_value(&json!({"vars": {}}))).expect("an `if` may ask for anything"), "ok");
    }

    #[test]
    fn errors_name_file_and_line() {
        for (text, place) in [
            ("---\ndescription: d\n---\nfine\n{% if %}\n", "prompts/greet/v1.0.md:5:7: "),
            ("{% endif %}", "prompts/greet/v1.0.md:1:4: "),
            ("---\ndescription: d\nrequired: []\n---\n", "prompts/greet/v1.0.md:3:1: "),
            ("---\ndescription: d\n", "prompts/greet/v1.0.md:1: "),
            ("---\nmodules: [ { A: x, B: y } ]\n---\n", "prompts/greet/v1.0.md:2:"),
        ] {
            let error = prompt(text).expect_err("wrong").to_string();
            assert!(error.starts_with(place), "{error}");
        }
    }

    #[test]
    fn an_inline_prompt_has_no_head() {
        let prompt = Prompt::inline("---\n{{ name }}", "agents/a.yaml").expect("a template");
        assert_eq!(prompt.render(&convert_value(&json!({"name": "n"}))).expect("defined"), "---\nn");
        assert_eq!(prompt.name, "inline");
    }

    #[test]
    fn the_fingerprint_of_a_prompt_alone_is_the_hash_of_its_file() {
        let abc = prompt("abc").expect("sound");
        assert!(abc.digest().starts_with("ba7816bf8f01cfea") && abc.digest().len() == 64, "{}", abc.digest());
        assert_eq!(abc.id(), "greet@v1.0#ba7816bf8f01");
    }
}
