//! The messages of a prompt file: the chat template in its head, filled with the same variables as the prompt. Errors
//! have places in the file.

use crate::base::frontmatter;
use crate::base::image::Image;
use crate::base::yaml::{self, Node, ScalarForm, YamlTree};
use crate::conversation::message::Item;
use crate::template::Value;

use super::chat::{
    self, ChatError, ChatMessage, ChatRole, ChatTemplate, FillOptions, MessageProblem, MessageTemplate,
};
use super::error::PromptError;
use super::file::Prompt;
use super::missed::Unfilled;

impl Prompt {
    /// Every message of the prompt in this context. The rendered text, with the leading system messages, is the first,
    /// if there is any.
    ///
    /// # Errors
    /// As [`Prompt::render`].
    pub fn messages(&self, context: &Value) -> Result<Vec<ChatMessage>, PromptError> {
        let system = self.render(context)?;
        let (_, rest) = chat::split_system(self.filled_in(context)?);
        let system = (!system.is_empty()).then(|| ChatMessage::system(system));
        Ok(system.into_iter().chain(rest).collect())
    }

    /// The prompt in this context as one text for people: the rendered text or, if it has messages, each of them below
    /// its role.
    ///
    /// # Errors
    /// As [`Prompt::render`].
    pub fn show(&self, context: &Value) -> Result<String, PromptError> {
        if !self.has_messages() {
            return self.render(context);
        }
        let shown = |message: ChatMessage| {
            let mut lines = vec![message.text()];
            if let ChatMessage::Assistant { calls, .. } = &message {
                lines.retain(|text| !text.is_empty());
                lines.extend(calls.iter().map(|call| format!("{} {}", call.name, call.arguments)));
            }
            format!("{}:\n{}", message.role(), lines.join("\n"))
        };
        Ok(self.messages(context)?.into_iter().map(shown).collect::<Vec<_>>().join("\n\n"))
    }

    /// The texts of the messages that the head describes, by number and role.
    pub(super) fn message_sections(&self, context: &Value) -> Result<Vec<(String, String)>, PromptError> {
        let messages = self.filled_in(context)?;
        let named = |(number, message): (usize, ChatMessage)| {
            (format!("message {number} ({})", message.role()), message.text())
        };
        Ok((1..).zip(messages).map(named).collect())
    }

    /// The messages that the head describes, in a context in which nothing is declared yet.
    fn filled_in(&self, context: &Value) -> Result<Vec<ChatMessage>, PromptError> {
        self.fill(&self.declare(context)).map_err(|unfilled| *unfilled.error)
    }

    /// The opening of a conversation in this context: the messages after those of the system. `picture` reads the
    /// picture at a path or `data:` URL.
    ///
    /// # Errors
    /// Those of [`Prompt::render`], or messages that a conversation cannot contain.
    pub fn items(
        &self,
        context: &Value,
        picture: impl FnMut(&str) -> Result<Image, String>,
    ) -> Result<Vec<Item>, PromptError> {
        let messages = self.messages(context)?;
        let converted = chat::convert_messages(messages, picture);
        let converted = converted.map_err(|error| PromptError::of_file(&self.origin, error.to_string()))?;
        if converted.system.is_some() && !self.has_system() {
            let why = "its messages begin with one of the system that comes from a variable";
            let hint = "Write the system message in the prompt, or leave it out of the variable.";
            return Err(PromptError::of_file(&self.origin, why).hint(hint));
        }
        Ok(converted.items)
    }

    /// True if it has messages.
    pub fn has_messages(&self) -> bool {
        !self.head.messages.is_empty()
    }

    /// True if it is a system prompt: it has text, or its first message is a system message.
    pub fn has_system(&self) -> bool {
        let first = self.head.messages.first();
        let begins =
            matches!(first, Some(MessageTemplate::Message(message)) if message.role() == ChatRole::System);
        !self.has_messages() || begins || self.modules().next().is_some() || !self.body().trim().is_empty()
    }

    /// The messages that the head describes, with these variables.
    pub(super) fn fill(&self, context: &Value) -> Result<Vec<ChatMessage>, Unfilled> {
        let template = self.chat().map_err(|error| Unfilled { missing: Vec::new(), error: error.into() })?;
        let Some(template) = template else { return Ok(Vec::new()) };
        template
            .format(context, &FillOptions::default())
            .map_err(|error| Unfilled { missing: error.list_missing(), error: self.place_error(&error).into() })
    }

    /// The compiled messages; `None` for a prompt without.
    pub(super) fn chat(&self) -> Result<Option<&ChatTemplate>, PromptError> {
        let compile = || {
            let messages = self.head.messages.iter().cloned();
            let compiled = self.has_messages().then(|| ChatTemplate::from_messages(self.head.format, messages));
            compiled.transpose().map_err(|error| self.place_error(&error))
        };
        self.chat.get_or_init(compile).as_ref().map(Option::as_ref).map_err(PromptError::clone)
    }

    /// An error of messages, at the place of its first problem.
    fn place_error(&self, error: &ChatError) -> PromptError {
        let message = error.to_string();
        let place = error.problems.first().and_then(|problem| find_place(self.text(), problem));
        let (line, column) = place.unzip();
        PromptError { line, column, ..PromptError::of_file(&self.origin, message) }
    }
}

/// The place of a problem in the file, if the text is there line by line: line and column, from 1.
fn find_place(file: &str, problem: &MessageProblem) -> Option<(usize, usize)> {
    let head = frontmatter::split_head(file).ok()?.head?;
    // The line break replaces the opening dashes, so places in the head are places in the file.
    let tree = yaml::parse_tree(&format!("\n{head}"), 0).ok()?;
    let item = tree.get("messages")?.items()?.get(problem.number.checked_sub(1)?)?;
    let inside = item.get(&problem.role).and_then(|node| find_text_place(file, node, problem));
    Some(inside.unwrap_or((item.place.line, item.place.column)))
}

fn find_text_place(file: &str, node: &Node, problem: &MessageProblem) -> Option<(usize, usize)> {
    let YamlTree::Scalar(scalar) = &node.tree else { return None };
    let (line, column) = (problem.line?, problem.column.unwrap_or(1));
    let place = node.place;
    match scalar.form {
        ScalarForm::Block => {
            let below = place.line + line - 1;
            let indent = file.lines().nth(place.line.checked_sub(1)?)?.chars().take_while(|c| *c == ' ').count();
            Some((below, indent + column))
        }
        ScalarForm::Quoted if line == 1 => Some((place.line, place.column + column)),
        _ if line == 1 => Some((place.line, place.column + column - 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::template::convert_value;

    fn prompt(text: &str) -> Result<Prompt, PromptError> {
        let version = "v1.0".parse().expect("a version");
        Prompt::parse("chat", version, "chat/v1.0.md", text.to_owned())?.compiled()
    }

    const CHAT: &str = "---\nrequired_vars: [role]\ndefaults: { tone: plain }\nmessages:\n  - system: You are {{ role }}.\n  \
                        - { placeholder: history, optional: true }\n  - user: |\n      Be {{ tone }}.\n      {{ vars.task }}\n---\n";

    #[test]
    fn the_body_and_the_first_system_messages_are_the_system_prompt() {
        let history = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]);
        let context = convert_value(&json!({"vars": {"role": "{{ x }}", "task": "go", "history": history}}));
        let without = prompt(CHAT).expect("sound");
        assert!(without.has_system() && without.has_messages());
        assert_eq!(without.render(&context).expect("given"), "You are {{ x }}.");
        let messages = without.messages(&context).expect("given");
        let texts: Vec<String> =
            messages.iter().map(|message| format!("{}: {}", message.role(), message.text())).collect();
        assert_eq!(texts, ["system: You are {{ x }}.", "user: Hi", "assistant: Hello", "user: Be plain.\ngo"]);

        let shown = without.show(&context).expect("given");
        assert!(shown.starts_with("system:\nYou are {{ x }}.\n\nuser:\nHi\n\nassistant:\nHello\n\n"), "{shown}");

        let with_body = prompt(&format!("{CHAT}Rules of {{{{ role }}}}.\n")).expect("sound");
        assert_eq!(with_body.render(&context).expect("given"), "Rules of {{ x }}.\n\nYou are {{ x }}.");
        assert_eq!(with_body.messages(&context).expect("given").len(), 4);
        let no_system = prompt("---\nmessages: [ { user: x } ]\n---\n").expect("sound");
        assert!(!no_system.has_system());
        assert_eq!(no_system.messages(&context).expect("given"), [ChatMessage::user("x")]);
    }

    #[test]
    fn other_syntaxes_hold_for_body_and_messages() {
        for (format, body, text) in
            [("fstring", "{role} {{", "{tone}"), ("gotemplate", "{{.role}} {", "{{.tone}}")]
        {
            let text = format!(
                "---\nformat: {format}\nrequired_vars: [role, tone]\nmessages: [ {{ user: \"{text}\" }} ]\n---\n{body}"
            );
            let context = convert_value(&json!({"vars": {"role": "{tone}{{.tone}}", "tone": "t"}}));
            let messages = prompt(&text).expect("sound").messages(&context).expect("given");
            assert_eq!(messages, [ChatMessage::system("{tone}{{.tone}} {"), ChatMessage::user("t")], "{format}");
        }
    }

    #[test]
    fn errors_name_the_place_in_the_file_and_all_that_is_missing() {
        let error = prompt(CHAT)
            .expect("sound")
            .render(&convert_value(&json!({"vars": {}})))
            .expect_err("two are missing");
        assert!(error.to_string().contains("`role`, `vars.task`"), "{error}");
        assert_eq!(error.line, Some(5), "{error}");
        for (head, place) in [
            (
                "messages:\n  - system: x\n  - user: |\n      one\n      two {% if %}\n",
                "chat/v1.0.md:6:17: message 2 (user)",
            ),
            ("messages:\n  - user: \"a {{ b\"\n", "chat/v1.0.md:3:"),
            ("messages:\n  - user: x\n  - robot: x\n", "chat/v1.0.md:4:5: unknown field `robot`"),
            ("messages:\n  - user: x\n  - tool: x\n", "chat/v1.0.md:4:"),
            ("format: latex\n", "chat/v1.0.md:2:"),
        ] {
            let error = prompt(&format!("---\n{head}---\n")).expect_err("wrong").to_string();
            assert!(error.starts_with(place), "{error}");
        }
        let history = "---\nmessages:\n  - { placeholder: history }\n  - user: x\n---\n";
        let context = convert_value(&json!({"vars": {"history": "said"}}));
        let error = prompt(history).expect("sound").render(&context).expect_err("no list").to_string();
        assert!(
            error.starts_with("chat/v1.0.md:3:5: message 1 (placeholder): `history` is of type string"),
            "{error}"
        );
    }
}
