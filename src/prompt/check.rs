//! Finds doubtful points in a prompt that renders: unset or unused variables, a missing reminder at the end, input from
//! outside without delimiters.

use std::collections::BTreeSet;

use crate::base::tokens;
use crate::template::{Template, Undefined, Value};

use super::chat::{ChatTemplate, MessageTemplate};
use super::context::PromptContext;
use super::error::PromptError;
use super::file::Prompt;
use super::{untrusted, variables};

/// The tokens of a section of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSize {
    pub name: String,
    pub tokens: u64,
}

impl Prompt {
    /// Everything doubtful about it, with its place. `sample` is a context that defines everything that can be defined.
    pub fn doubts(&self, sample: &Value) -> Vec<PromptError> {
        let parts = std::iter::once(self).chain(self.modules().map(|(_, module)| module.as_ref()));
        let mut doubts: Vec<PromptError> =
            parts.flat_map(|part| part.unread_and_ungiven().into_iter().chain(part.find_undelimited())).collect();
        let context = self.filled_up(sample);
        match self.render(&context).and_then(|text| Ok((text, self.show(&context)?))) {
            Ok((text, whole)) => doubts.extend(self.doubt_reminder(&text, &whole)),
            // Missing variables were reported above, at their places.
            Err(error) if doubts.is_empty() => doubts.push(error),
            Err(_) => {}
        }
        doubts
    }

    /// The tokens of its sections, as they are rendered with a sample of the variables.
    ///
    /// # Errors
    /// As [`Prompt::render`].
    pub fn sizes(&self, sample: &Value) -> Result<Vec<PartSize>, PromptError> {
        let context = self.filled_up(sample);
        let sections = self.sections(&context)?.into_iter().chain(self.message_sections(&context)?);
        let count = |text: &str| tokens::count_tokens(text);
        Ok(sections.map(|(name, text)| PartSize { name, tokens: count(&text) }).collect())
    }

    /// A context that includes everything that the user must give.
    fn filled_up(&self, sample: &Value) -> Value {
        let placeholders: Vec<&str> = self.head.placeholders().collect();
        let mut asked: BTreeSet<String> =
            self.undefined_in(sample).into_iter().filter(|name| self.asks_for(name, sample)).collect();
        asked.retain(|name| !placeholders.contains(&name.as_str()));
        let nothing_said = placeholders.into_iter().map(|key| (key.to_owned(), serde_json::json!([])));
        variables::with_given(&variables::with_fillers(sample, &asked), &nothing_said.collect())
    }

    /// The names that its own templates read, including those of messages and included files.
    fn reads(&self) -> Result<BTreeSet<String>, PromptError> {
        let mut names = self.template()?.variables();
        for (file, text) in self.included.iter() {
            let compiled = Template::compile_with(file, text, Undefined::Empty, |_| None);
            names.extend(compiled.map_err(|error| PromptError::of_template(file, &error))?.variables());
        }
        names.extend(self.chat()?.into_iter().flat_map(ChatTemplate::variables));
        Ok(names)
    }

    /// The sources of its own templates.
    pub(super) fn sources(&self) -> Vec<&str> {
        let messages = self.head.messages.iter().flat_map(MessageTemplate::texts);
        std::iter::once(self.body()).chain(self.included.values().map(String::as_str)).chain(messages).collect()
    }

    /// Names that the template reads and nothing gives, and names that the head declares and nobody reads.
    fn unread_and_ungiven(&self) -> Vec<PromptError> {
        let Ok(own) = self.reads() else { return Vec::new() };
        let of_modules: Vec<&str> = self.modules().flat_map(|(_, module)| module.head.list_declared()).collect();
        let declared: Vec<&str> = self.head.list_declared().collect();
        let program = PromptContext::anything(Some(serde_json::Value::Null), true);
        let is_module = self.name.starts_with(super::layer::MODULES);
        let covers = |wide: &str, name: &str| {
            name == wide || name.strip_prefix(wide).is_some_and(|rest| rest.starts_with('.'))
        };
        let mut doubts = Vec::new();
        for name in &own {
            let is_declared = declared.iter().any(|wide| covers(wide, name) || covers(name, wide));
            let is_of_program = !is_module
                && variables::find_undefined(std::iter::once(variables::take_root(name)), &program).is_empty();
            if !is_declared && !is_of_program {
                let why = format!("reads `{name}`, which nothing gives: name it in `required_vars` or `defaults`");
                doubts.push(PromptError {
                    line: self.line_in_body(name),
                    ..PromptError::of_file(&self.origin, why)
                });
            }
        }
        for name in &declared {
            // What is given stands under `vars` too.
            let by_name = own.iter().map(|name| name.strip_prefix("vars.").unwrap_or(name));
            let mut read = by_name.chain(of_modules.iter().copied());
            if !read.any(|read| covers(name, read) || covers(read, name)) && self.version.is_some() {
                let why = format!("declares `{name}`, which nothing in it reads: remove it");
                let is_required = self.head.required_vars.iter().any(|own| own == name);
                let key = if is_required { "required_vars" } else { "defaults" };
                let line = Some(self.line_of(key, name));
                doubts.push(PromptError { line, ..PromptError::of_file(&self.origin, why) });
            }
        }
        doubts
    }

    /// Variables from outside that are in the text without marks around them.
    fn find_undelimited(&self) -> Vec<PromptError> {
        let texts = self.sources();
        let bare = self.head.untrusted.iter().filter(|name| untrusted::is_bare(name, &texts));
        let undeclared = self.reads().unwrap_or_default().into_iter().filter(|name| {
            let declared = self.head.untrusted.iter().any(|own| variables::take_root(own) == name);
            untrusted::FROM_OUTSIDE.contains(&name.as_str()) && !declared
        });
        let undeclared = undeclared.map(|name| {
            let why = format!(
                "`{name}` comes from outside: name it in `untrusted`, so that it cannot close the marks around it"
            );
            PromptError { line: self.line_in_body(&name), ..PromptError::of_file(&self.origin, why) }
        });
        let bare = bare.map(|name| {
            let why = format!(
                "`{name}` comes from outside, and nothing delimits it: put it between marks like <{name}> and \
                 </{name}>, or write it with `json`"
            );
            PromptError { line: self.line_in_body(name), ..PromptError::of_file(&self.origin, why) }
        });
        undeclared.chain(bare).collect()
    }

    /// The doubt whether it ends with its reminder. `whole` is the text together with the messages after it, as the user's
    /// input may come last.
    fn doubt_reminder(&self, text: &str, whole: &str) -> Option<PromptError> {
        let reminder = self.head.reminder.trim();
        let ends_with_it =
            reminder.is_empty() || [text, whole].iter().any(|text| take_end(text).contains(reminder));
        let why = || format!("does not end with its reminder, \"{reminder}\"");
        (!ends_with_it).then(|| PromptError::of_file(&self.origin, why()))
    }

    /// The line of the file on which the body first names a variable, or else a message does.
    fn line_in_body(&self, name: &str) -> Option<usize> {
        let names = |line: &str| line.contains(name);
        let in_body = self.body().lines().position(names).map(|at| self.body_line + at);
        let in_messages = || {
            let start = self.text().lines().position(|line| line.starts_with("messages"))?;
            self.text().lines().skip(start).position(names).map(|at| start + at + 1)
        };
        in_body.or_else(in_messages)
    }
}

/// The last fifth of a text, three lines at least.
fn take_end(text: &str) -> &str {
    let lines = text.lines().count();
    let kept = (lines / 5).max(3);
    let start = text.lines().take(lines.saturating_sub(kept)).map(|line| line.len() + 1).sum::<usize>();
    text.get(start..).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::super::Registry;
    use super::*;
    use crate::config::PromptDir;

    fn doubts(text: &str) -> Vec<String> {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("p")).expect("a directory");
        std::fs::write(dir.path().join("p/v1.0.md"), text).expect("a file");
        let prompt = Registry::new(&[PromptDir::new(dir.path().to_path_buf())]).get("p").expect("sound");
        let sample = PromptContext::sample().value();
        prompt.doubts(&sample).iter().map(|doubt| format!("{:?} {}", doubt.line, doubt.message)).collect()
    }

    #[test]
    fn what_is_doubtful_is_named_with_its_line() {
        for (text, said) in [
            ("---\nrequired_vars: [a]\n---\n{{ a }}\n{{ b.c }}\n", "Some(5) reads `b.c`, which nothing gives"),
            ("---\nrequired_vars: [a, b]\n---\n{{ a }}\n", "Some(2) declares `b`, which nothing in it reads"),
            ("---\ndefaults:\n  tone: x\n---\nNo.\n", "Some(3) declares `tone`"),
            ("---\nreminder: Be brief.\n---\nBe brief.\n1\n2\n3\n4\n5\n", "does not end with its reminder"),
            ("---\nrequired_vars: [q]\nuntrusted: [q]\n---\nDo {{ q }}.\n", "Some(5) `q` comes from outside"),
            ("---\nmessages:\n  - user: \"{{ b.c }}\"\n---\n", "Some(3) reads `b.c`, which nothing gives"),
            (
                "---\nrequired_vars: [q]\nuntrusted: [q]\n---\nDo {{ vars.q }}.\n",
                "`q` comes from outside, and nothing delimits it",
            ),
            (
                "---\nrequired_vars: [q]\nuntrusted: [q]\nmessages:\n  - user: Do {{ q }}.\n---\n",
                "Some(5) `q` comes from outside",
            ),
        ] {
            let doubts = doubts(text);
            assert!(doubts.len() == 1 && doubts[0].contains(said), "{text}: {doubts:?}");
        }
    }

    #[test]
    fn what_is_in_order_is_left_alone() {
        for text in [
            "{{ agent.name }} {{ tools | length }} {% for t in tools %}{{ t.name }}{% endfor %}{{ vars.x | default('') }}",
            "---\nrequired_vars: [q]\nuntrusted: [q]\n---\n<request>\n{{ q }}\n</request>\n{{ q | tojson }}\n```\n{{- q }}\n```\n",
            "---\nrequired_vars: [q]\nuntrusted: [q]\n---\n<request>\n{{ vars.q }}\n</request>\n",
            "---\nreminder: JSON alone.\n---\nReply {\"tool\": \"none\"} where none fits.\nJSON alone.\n",
            "---\nrequired_vars: [q]\nreminder: x\nmessages:\n  - { placeholder: history }\n  - user: \"{{ q }} x\"\n---\n",
            "{% set x = 1 %}{{ x }}{{ datetime.now().year }}{{ termination_reason }}{{ parts | length }}",
        ] {
            assert_eq!(doubts(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_comes_with_the_program_is_beyond_doubt() {
        let registry = Registry::new(&[]);
        let names = registry.names().expect("listed");
        let sample = PromptContext::sample().value();
        for listed in registry.list(names.iter().map(String::as_str)).expect("listed") {
            let prompt = listed.prompt.expect("sound");
            let doubts: Vec<String> = prompt.doubts(&sample).iter().map(ToString::to_string).collect();
            assert_eq!(doubts, [""; 0], "{}@{}", listed.name, listed.version);
        }
    }
}
