//! A compiled list of messages, and the code that fills it.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::Value as Json;

use crate::template::{Syntax, Template, TemplateError, Undefined, Value};

use super::entry::MessageTemplate;
use super::error::{ChatError, MessageProblem};
use super::message::ChatMessage;
use super::options::FillOptions;

/// Messages with variables.
#[derive(Debug)]
pub struct ChatTemplate {
    syntax: Syntax,
    entries: Vec<MessageTemplate>,
    strict: CompiledTexts,
    /// Compiled when it is first needed.
    lenient: OnceLock<Result<CompiledTexts, ChatError>>,
}

/// The templates of the texts of each entry, in the order of [`ChatMessage::map`]. A text without marks has none.
type CompiledTexts = Vec<Vec<Option<Template>>>;

impl ChatTemplate {
    /// Compiles messages.
    ///
    /// # Errors
    /// Texts are not templates; the error has the message, line and column of each.
    pub fn from_messages(
        syntax: Syntax,
        messages: impl IntoIterator<Item = MessageTemplate>,
    ) -> Result<Self, ChatError> {
        let entries: Vec<MessageTemplate> = messages.into_iter().collect();
        let strict = compile_entries(&entries, syntax, Undefined::Error)?;
        Ok(Self { syntax, entries, strict, lenient: OnceLock::new() })
    }

    /// The entries.
    pub fn entries(&self) -> &[MessageTemplate] {
        &self.entries
    }

    /// The names that it reads, those of placeholders included.
    pub fn variables(&self) -> BTreeSet<String> {
        let keys = self.entries.iter().filter_map(|entry| match entry {
            MessageTemplate::Placeholder { key, .. } => Some(key.clone()),
            MessageTemplate::Message(_) => None,
        });
        self.strict.iter().flatten().flatten().flat_map(Template::variables).chain(keys).collect()
    }

    /// The messages with these variables. A value is never rendered itself.
    ///
    /// # Errors
    /// Variables are missing, and the error names those of all messages; or there are other problems, each with its
    /// message.
    pub fn format(&self, variables: &Value, options: &FillOptions) -> Result<Vec<ChatMessage>, ChatError> {
        let variables = &options.variables(variables);
        let in_another;
        let compiled = match (options.syntax.filter(|syntax| *syntax != self.syntax), options.undefined) {
            (Some(syntax), undefined) => {
                in_another = compile_entries(&self.entries, syntax, undefined)?;
                &in_another
            }
            (None, Undefined::Error) => &self.strict,
            (None, Undefined::Empty) => {
                let compile = || compile_entries(&self.entries, self.syntax, Undefined::Empty);
                self.lenient.get_or_init(compile).as_ref().map_err(ChatError::clone)?
            }
        };
        let (mut messages, mut problems) = (Vec::new(), Vec::new());
        for (number, (entry, texts)) in (1..).zip(self.entries.iter().zip(compiled)) {
            match entry {
                MessageTemplate::Message(message) => {
                    let mut texts = texts.iter();
                    let rendered = message.map(|text| match texts.next() {
                        Some(Some(template)) => template.render(variables).unwrap_or_else(|error| {
                            problems.push(MessageProblem::of_template(number, message.role(), error));
                            String::new()
                        }),
                        _ => text.to_owned(),
                    });
                    messages.push(rendered);
                }
                MessageTemplate::Placeholder { key, optional } => match find_messages(variables, key) {
                    Ok(Some(held)) => messages.extend(held),
                    Ok(None) if *optional => {}
                    Ok(None) => problems.push(MessageProblem::of_placeholder(number, key)),
                    Err(why) => problems.push(MessageProblem::new(number, "placeholder", why)),
                },
            }
        }
        if problems.is_empty() { Ok(messages) } else { Err(ChatError { problems }) }
    }
}

impl ChatMessage {
    /// The message with these variables: a single message is a template too.
    ///
    /// # Errors
    /// As [`ChatTemplate::format`].
    pub fn format(&self, variables: &Value, options: &FillOptions) -> Result<Self, ChatError> {
        let syntax = options.syntax.unwrap_or_default();
        let alone = ChatTemplate::from_messages(syntax, [MessageTemplate::Message(self.clone())])?;
        let mut messages = alone.format(variables, options)?;
        Ok(messages.pop().unwrap_or_else(|| self.clone()))
    }
}

/// Compiles every text.
fn compile_entries(
    entries: &[MessageTemplate],
    syntax: Syntax,
    undefined: Undefined,
) -> Result<CompiledTexts, ChatError> {
    let mut problems = Vec::new();
    let mut of_entry = |(number, entry): (usize, &MessageTemplate)| {
        let mut texts = Vec::new();
        if let MessageTemplate::Message(message) = entry {
            message.map(|text| {
                match compile_text(text, syntax, undefined) {
                    Ok(template) => texts.push(template),
                    Err(error) => problems.push(MessageProblem::of_template(number, message.role(), error)),
                }
                String::new()
            });
        }
        texts
    };
    let compiled = (1..).zip(entries).map(&mut of_entry).collect();
    if problems.is_empty() { Ok(compiled) } else { Err(ChatError { problems }) }
}

fn compile_text(text: &str, syntax: Syntax, undefined: Undefined) -> Result<Option<Template>, TemplateError> {
    let has_marks = text.contains(['{', '}']);
    has_marks.then(|| Template::compile_as(syntax, "message", text, undefined)).transpose()
}

/// The messages in a variable; `None` if nothing defines it.
fn find_messages(variables: &Value, key: &str) -> Result<Option<Vec<ChatMessage>>, String> {
    let value = key.split('.').try_fold(variables.clone(), |value, part| value.get_attr(part));
    let Some(value) = value.ok().filter(|value| !value.is_undefined() && !value.is_none()) else {
        return Ok(None);
    };
    let Ok(Json::Array(list)) = serde_json::to_value(&value) else {
        let (kind, form) = (value.kind(), r#"[{"role": …, "content": …}]"#);
        return Err(format!("`{key}` is of type {kind}, but has to be a list of messages: {form}"));
    };
    let message = |(number, item): (usize, Json)| {
        serde_json::from_value(item).map_err(|error| format!("item {number} of `{key}` is not a message: {error}"))
    };
    (1..).zip(list).map(message).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::super::entry::{assistant, calling, parts, placeholder, system, tool, user};
    use super::super::message::ChatPart;
    use super::*;
    use crate::base::yaml;
    use crate::conversation::message::ToolCall;
    use crate::template::convert_value;

    fn formatted(template: &ChatTemplate, vars: &Json) -> Result<Json, ChatError> {
        let messages = template.format(&convert_value(vars), &FillOptions::default())?;
        Ok(serde_json::to_value(messages).expect("plain data"))
    }

    fn template(entries: impl IntoIterator<Item = MessageTemplate>) -> ChatTemplate {
        ChatTemplate::from_messages(Syntax::Jinja, entries).expect("sound")
    }

    #[test]
    fn every_role_is_filled_and_a_history_is_put_in() {
        let call = ToolCall {
            id: "c1".to_owned(),
            name: "read_file".to_owned(),
            arguments: r#"{"path":"{{ path }}","lines":[1,"{{ n }}"]}"#.to_owned(),
        };
        let template = template([
            system("You are {{ role }}."),
            placeholder("history", false),
            calling("", [call]),
            tool("c1", "{{ content }}"),
            assistant("I read {{ path }}."),
            parts([ChatPart::Text("Now {{ task }}".to_owned()), ChatPart::Image("{{ path }}.png".to_owned())]),
        ]);
        let history = json!([
            {"role": "user", "content": "What is {{ role }}?"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "h", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "content": "{% if %}", "tool_call_id": "h"},
        ]);
        let vars = json!({
            "role": "{{ task }}", "history": history, "path": "a\"b", "n": 2, "content": "{{{{", "task": "sum up",
        });
        let expected = json!([
            {"role": "system", "content": "You are {{ task }}."},
            {"role": "user", "content": "What is {{ role }}?"},
            {"role": "assistant", "content": "", "calls": [{"id": "h", "name": "f", "arguments": "{}"}]},
            {"role": "tool", "content": "{% if %}", "call_id": "h"},
            {"role": "assistant", "content": "", "calls": [
                {"id": "c1", "name": "read_file", "arguments": r#"{"path":"a\"b","lines":[1,"2"]}"#}]},
            {"role": "tool", "content": "{{{{", "call_id": "c1"},
            {"role": "assistant", "content": "I read a\"b."},
            {"role": "user", "content": [{"text": "Now sum up"}, {"image": "a\"b.png"}]},
        ]);
        let filled = formatted(&template, &vars).expect("all is given");
        let arguments = |messages: &Json| -> Json {
            let text = messages[4]["calls"][0]["arguments"].as_str().expect("text").to_owned();
            serde_json::from_str(&text).expect("still JSON")
        };
        assert_eq!(arguments(&filled), arguments(&expected), "a quote in a value breaks no arguments");
        for number in [0, 1, 2, 3, 5, 6, 7] {
            assert_eq!(filled[number], expected[number]);
        }
        // What comes out goes in again.
        let again: Vec<ChatMessage> = serde_json::from_value(filled.clone()).expect("messages");
        assert_eq!(serde_json::to_value(again).expect("plain data"), filled);
        let names: Vec<String> = template.variables().into_iter().collect();
        assert_eq!(names, ["content", "history", "n", "path", "role", "task"]);
    }

    #[test]
    fn one_error_names_all_that_is_missing_in_all_messages() {
        let template = template([
            system("You are\n a {{ role }}."),
            placeholder("history", false),
            placeholder("more", true),
            user("{{ task }} {{ role }} {{ tone | default('') }}{{ place.name + 1 }}"),
        ]);
        let error = formatted(&template, &json!({"place": {}})).expect_err("four are missing");
        assert_eq!(error.list_missing(), ["history", "place.name", "role", "task"]);
        assert_eq!(
            error.to_string(),
            "nothing defines `history`, `place.name`, `role`, `task`, which these messages read: \
             message 1 (system), line 2, column 7; message 2 (placeholder); message 4 (user), line 1, column 4"
        );
        let lenient = template
            .format(&convert_value(&json!({"history": [], "place": {"name": 1}})), &FillOptions::lenient());
        assert_eq!(lenient.expect("blank")[0], ChatMessage::system("You are\n a ."));
    }

    #[test]
    fn what_is_no_list_of_messages_is_told_with_its_item() {
        let template = template([placeholder("history", true), user("x")]);
        for (history, why) in [
            (json!("said before"), "`history` is of type string, but has to be a list of messages"),
            (json!({"role": "user"}), "`history` is of type map, but has to be a list of messages"),
            (
                json!([{"role": "user", "content": "x"}, {"role": "robot", "content": "x"}]),
                "item 2 of `history` is not a message: unknown variant `robot`",
            ),
            (json!([{"content": "x"}]), "missing field `role`"),
            (json!([{"role": "tool", "content": "x"}]), "a tool message needs a `call_id`"),
            (
                json!([{"role": "user", "content": "x", "call_id": "c"}]),
                "a `call_id` belongs to a tool message; the role is user",
            ),
            (json!([{"role": "system", "content": [{"image": "a.png"}]}]), "(system) can contain only text"),
            (json!([{"role": "user", "content": [{"type": "audio", "audio": "x"}]}]), "a part of type `audio`"),
            (json!([7]), "item 1 of `history`"),
        ] {
            let error = formatted(&template, &json!({ "history": history })).expect_err("no messages").to_string();
            assert!(error.starts_with("message 1 (placeholder): ") && error.contains(why), "{error}");
        }
        for nothing in [json!({}), json!({"history": null}), json!({"history": []})] {
            assert_eq!(
                formatted(&template, &nothing).expect("optional"),
                json!([{"role": "user", "content": "x"}])
            );
        }
    }

    #[test]
    fn texts_that_are_no_templates_are_all_told() {
        let error =
            ChatTemplate::from_messages(Syntax::Jinja, [system("fine"), user("a\n{{ b"), assistant("{% if %}")])
                .expect_err("two are wrong");
        let places: Vec<_> = error.problems.iter().map(|p| (p.number, p.role.as_str(), p.line)).collect();
        assert_eq!(places, [(2, "user", Some(2)), (3, "assistant", Some(1))]);
        assert!(error.to_string().starts_with("message 2 (user), line 2, column "), "{error}");
    }

    #[test]
    fn a_huge_value_is_refused_where_it_is_rendered_and_passes_where_it_is_data() {
        let huge = "{{".repeat(5 << 20);
        let rendered = template([user("{{ huge }}")]);
        let error = formatted(&rendered, &json!({ "huge": huge })).expect_err("too long").to_string();
        assert!(error.starts_with("message 1 (user)") && error.contains("longer than 1024 KiB"), "{error}");
        assert!(!error.contains("{{{{"), "an error never holds a value");
        let held = template([placeholder("history", false)]);
        let vars = json!({"history": [{"role": "user", "content": huge}]});
        let messages = held.format(&convert_value(&vars), &FillOptions::default()).expect("data");
        assert_eq!(messages, [ChatMessage::user(huge)]);
    }

    #[test]
    fn defaults_fill_what_is_not_given_at_every_depth() {
        let template = template([user("{{ tone }} {{ limits.steps }} {{ limits.time }} {{ given }}")]);
        let defaults = json!({"tone": "plain", "limits": {"steps": 8, "time": 1}, "given": "no"});
        let options = FillOptions::with_defaults(defaults.as_object().expect("a map").clone());
        let vars = convert_value(&json!({"limits": {"steps": 3}, "given": "yes"}));
        assert_eq!(template.format(&vars, &options).expect("defined"), [ChatMessage::user("plain 3 1 yes")]);
    }

    #[test]
    fn the_syntaxes_give_the_same_and_none_renders_a_value() {
        let vars = json!({"role": "{{ task }}{task}{{.task}}", "place": {"name": "x"}, "task": "no"});
        for (syntax, text) in [
            (Syntax::Jinja, "{{ role }} in {{ place.name }}"),
            (Syntax::FString, "{role} in {place.name}"),
            (Syntax::GoTemplate, "{{.role}} in {{.place.name}}"),
        ] {
            let template = ChatTemplate::from_messages(syntax, [system("plain"), user(text)]).expect("sound");
            let expected = ChatMessage::user("{{ task }}{task}{{.task}} in x");
            let messages = template.format(&convert_value(&vars), &FillOptions::default()).expect("given");
            assert_eq!(messages[1], expected, "{syntax}");
            let in_syntax = FillOptions { syntax: Some(syntax), ..FillOptions::default() };
            assert_eq!(
                ChatMessage::user(text).format(&convert_value(&vars), &in_syntax).expect("given"),
                expected
            );
            let jinja = ChatTemplate::from_messages(Syntax::Jinja, [system("plain"), user("{{ role }}")]);
            let other = jinja
                .expect("sound")
                .format(&convert_value(&vars), &in_syntax)
                .map(|messages| messages[1].clone());
            assert_eq!(other.is_ok_and(|message| message.text().ends_with("{{.task}}")), syntax == Syntax::Jinja);
            let missing =
                template.format(&convert_value(&json!({})), &FillOptions::default()).expect_err("two are missing");
            assert_eq!(missing.list_missing().len(), 2, "{syntax}: {missing}");
        }
    }

    #[test]
    fn entries_are_read_from_data_with_places_in_errors() {
        let text = "- system: You are {{ role }}.\n- { placeholder: history, optional: true }\n- user: 5\n\
                    - user: [ { text: a }, { image: b.png } ]\n\
                    - { assistant: \"\", calls: [ { id: c1, name: f, arguments: { a: 1 } } ] }\n\
                    - { tool: result, call_id: c1 }\n";
        let read: Vec<MessageTemplate> = yaml::parse_document(text).expect("sound");
        let call = ToolCall { id: "c1".to_owned(), name: "f".to_owned(), arguments: "{\"a\":1}".to_owned() };
        let image = [ChatPart::Text("a".to_owned()), ChatPart::Image("b.png".to_owned())];
        let expected = [
            system("You are {{ role }}."),
            placeholder("history", true),
            user("5"),
            parts(image),
            calling("", [call]),
            tool("c1", "result"),
        ];
        assert_eq!(read, expected);
        for (text, line, why) in [
            ("- robot: x\n", 1, "unknown field `robot`"),
            ("- system: x\n- {system: x, user: y}\n", 2, "exactly one of"),
            ("- system: x\n- {}\n", 2, "exactly one of"),
            ("- {tool: x}\n", 1, "needs a `call_id`"),
            ("- {user: x, call_id: c}\n", 1, "`call_id` belongs beside `tool`"),
            ("- {user: x, optional: true}\n", 1, "`optional` belongs beside `placeholder`"),
            ("- user: [ { sound: x } ]\n", 1, "a part is either"),
            ("- user: { text: x }\n", 1, "expected a text, or a list of parts"),
            ("- assistant: [ { image: x } ]\n", 1, "(assistant) can contain only text"),
        ] {
            let error = yaml::parse_document::<Vec<MessageTemplate>>(text).expect_err("wrong");
            assert!(error.line == Some(line) && error.message.contains(why), "{text}: {error:?}");
        }
    }
}
