//! Chooses the next reply of a script and renders it. Pure: the position in a script is found by replaying the
//! conversation, so a resumed session, an undone turn or a second process continues where the conversation is.
//!
//! Replies are given in order, each once. One whose `when` is not met is skipped and stays available. An error leaves
//! no message behind, so the caller remembers which errors were given since the last message.

use serde::Serialize;
use serde_json::{Map, Value};

use super::ConnectError;
use crate::base::tokens;
use crate::config::{ScriptCondition, ScriptReply};
use crate::conversation::message::Item;
use crate::model::{CallRecord, ModelRequest};
use crate::template::{self, Template, TemplateError, Undefined};

/// A script whose templates are compiled.
pub(super) struct ModelScript {
    replies: Vec<CompiledReply>,
}

/// One reply of a script.
pub(super) struct CompiledReply {
    /// Counts from 1, for errors.
    number: usize,
    pub config: ScriptReply,
    text: TemplateTree,
    reasoning: TemplateTree,
    calls: Vec<(String, TemplateTree)>,
}

/// The words of a reply, rendered.
#[derive(Debug, PartialEq)]
pub(super) struct ScriptWords {
    pub text: String,
    pub reasoning: String,
    /// Name and arguments.
    pub calls: Vec<(String, String)>,
}

impl ScriptWords {
    /// The tokens of the reply, as they are estimated.
    pub fn tokens(&self) -> u64 {
        let calls = self
            .calls
            .iter()
            .map(|(name, arguments)| tokens::estimate_tokens(name) + tokens::estimate_tokens(arguments));
        tokens::estimate_tokens(&self.reasoning) + tokens::estimate_tokens(&self.text) + calls.sum::<u64>()
    }

    /// Cuts the reply where a server would that was asked for at most `most` tokens. Returns true if it did.
    pub fn cut_to(&mut self, most: u64) -> bool {
        if self.tokens() <= most {
            return false;
        }
        self.calls.clear();
        cut(&mut self.reasoning, most);
        cut(&mut self.text, most - tokens::estimate_tokens(&self.reasoning));
        true
    }
}

/// Cuts a text to at most so many tokens.
fn cut(text: &mut String, most: u64) {
    let mut quarters = 0;
    let beyond = text.char_indices().find(|(_, c)| {
        quarters += tokens::count_quarters(c.encode_utf8(&mut [0; 4]).as_bytes());
        quarters > most * 4
    });
    if let Some((at, _)) = beyond {
        text.truncate(at);
    }
}

/// A value whose strings may be templates.
enum TemplateTree {
    Template(Box<Template>),
    Plain(Value),
    List(Vec<TemplateTree>),
    Map(Vec<(String, TemplateTree)>),
}

/// The variables of the templates of a script.
#[derive(Serialize)]
struct ScriptContext<'a> {
    task: &'a str,
    results: &'a [CallRecord],
    session: ScriptSession<'a>,
}

#[derive(Serialize)]
struct ScriptSession<'a> {
    id: &'a str,
    user_id: &'a str,
}

impl ModelScript {
    /// # Errors
    /// A template is wrong; the error names the first one by the number of its reply.
    pub fn compile(model: &str, replies: &[ScriptReply]) -> Result<Self, ConnectError> {
        let compile_reply = |(at, config): (usize, &ScriptReply)| {
            let wrong = |field: &str, error: &TemplateError| {
                let line = error.line.map(|line| format!(", line {line} of the text")).unwrap_or_default();
                ConnectError::wrong(model, &format!("script[{at}].{field}"), format!("{error}{line}"))
            };
            let text = |field: &str, text: &Option<String>| {
                TemplateTree::of_text(text.as_deref().unwrap_or_default()).map_err(|error| wrong(field, &error))
            };
            let call = |(nth, call): (usize, &crate::config::ScriptCall)| {
                let arguments = TemplateTree::of_value(&call.arguments);
                let arguments =
                    arguments.map_err(|error| wrong(&format!("tool_calls[{nth}].arguments"), &error))?;
                Ok((call.name.clone(), arguments))
            };
            Ok(CompiledReply {
                number: at + 1,
                config: config.clone(),
                text: text("text", &config.text)?,
                reasoning: text("reasoning", &config.reasoning)?,
                calls: config.tool_calls.iter().enumerate().map(call).collect::<Result<_, _>>()?,
            })
        };
        let replies = replies.iter().enumerate().map(compile_reply).collect::<Result<_, _>>()?;
        Ok(Self { replies })
    }

    /// The reply that the conversation has reached, with its position in the script. `errors` are the positions of the
    /// errors that were given since the last message of the model.
    pub fn next(&self, request: &ModelRequest<'_>, errors: &[usize]) -> Option<(usize, &CompiledReply)> {
        let calls = |item: &Item| item.as_step().map_or(0, |step| step.calls().count());
        let answers: usize = request.items.iter().map(calls).sum();
        let results = request.results;
        // The records are those of this run: the last of the conversation.
        let mut records =
            std::iter::repeat_n(None, answers.saturating_sub(results.len())).chain(results.iter().map(Some));
        let mut scene = Scene::default();
        let mut used = vec![false; self.replies.len()];
        for item in request.items {
            match item {
                // A turn begins: none of its calls has returned.
                Item::Said(said) => scene = Scene { user: &said.text, ..Scene::default() },
                Item::Summary(summary) => scene = Scene { user: &summary.text, ..Scene::default() },
                Item::Step(step) => {
                    // A step that no model wrote is not a reply of the script.
                    if !step.given {
                        self.pass(&mut used, &scene);
                    }
                    for call in step.calls() {
                        scene.tool = &call.request.name;
                        scene.observation = call.answer.as_ref().map_or("", |answer| &answer.content);
                        scene.record = records.next().flatten();
                    }
                }
            }
        }
        if let Some(user) = request.aside {
            scene = Scene { user, ..Scene::default() };
        }
        for &given in errors {
            used[given] = !self.replies[given].config.repeat;
        }
        let at = self.first(&used, &scene)?;
        Some((at, &self.replies[at]))
    }

    /// Marks as used what led to one message of the model: the errors that were retried, and the reply itself.
    fn pass(&self, used: &mut [bool], scene: &Scene<'_>) {
        while let Some(at) = self.first(used, scene) {
            let config = &self.replies[at].config;
            used[at] = !config.repeat;
            if config.error.is_none() || config.repeat {
                return;
            }
        }
    }

    fn first(&self, used: &[bool], scene: &Scene<'_>) -> Option<usize> {
        let applies = |reply: &CompiledReply| reply.config.when.as_ref().is_none_or(|when| scene.satisfies(when));
        self.replies.iter().zip(used).position(|(reply, used)| !used && applies(reply))
    }
}

impl CompiledReply {
    /// # Errors
    /// A template is wrong; the error is a sentence that names the reply and the mistake.
    pub fn render(&self, request: &ModelRequest<'_>, user_id: &str) -> Result<ScriptWords, String> {
        let context = template::convert_value(&ScriptContext {
            task: last_user_text(request),
            results: request.results,
            session: ScriptSession { id: request.session_id, user_id },
        });
        let wrong = |error: TemplateError| format!("reply {} of the script: {error}", self.number);
        let call = |(name, arguments): &(String, TemplateTree)| {
            let arguments = match arguments.render(&context)? {
                // Raw text, as if the model had written it.
                Value::String(text) => text,
                data => data.to_string(),
            };
            Ok((name.clone(), arguments))
        };
        Ok(ScriptWords {
            text: self.text.render_text(&context).map_err(wrong)?,
            reasoning: self.reasoning.render_text(&context).map_err(wrong)?,
            calls: self.calls.iter().map(call).collect::<Result<_, _>>().map_err(wrong)?,
        })
    }
}

impl TemplateTree {
    fn of_value(value: &Value) -> Result<Self, TemplateError> {
        Ok(match value {
            Value::String(text) => Self::of_text(text)?,
            Value::Array(list) => Self::List(list.iter().map(Self::of_value).collect::<Result<_, _>>()?),
            Value::Object(object) => {
                let entry =
                    |(key, value): (&String, &Value)| Self::of_value(value).map(|tree| (key.clone(), tree));
                Self::Map(object.iter().map(entry).collect::<Result<_, _>>()?)
            }
            plain => Self::Plain(plain.clone()),
        })
    }

    fn of_text(text: &str) -> Result<Self, TemplateError> {
        if ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) {
            Template::compile("script", text, Undefined::Error).map(|template| Self::Template(Box::new(template)))
        } else {
            Ok(Self::Plain(Value::String(text.to_owned())))
        }
    }

    fn render(&self, context: &template::Value) -> Result<Value, TemplateError> {
        Ok(match self {
            Self::Template(template) => Value::String(template.render(context)?),
            Self::Plain(value) => value.clone(),
            Self::List(list) => {
                Value::Array(list.iter().map(|item| item.render(context)).collect::<Result<_, _>>()?)
            }
            Self::Map(map) => {
                let entry =
                    |(key, tree): &(String, TemplateTree)| tree.render(context).map(|value| (key.clone(), value));
                Value::Object(map.iter().map(entry).collect::<Result<Map<_, _>, _>>()?)
            }
        })
    }

    fn render_text(&self, context: &template::Value) -> Result<String, TemplateError> {
        Ok(match self.render(context)? {
            Value::String(text) => text,
            other => other.to_string(),
        })
    }
}

/// The values that conditions check.
#[derive(Default)]
struct Scene<'a> {
    user: &'a str,
    tool: &'a str,
    observation: &'a str,
    record: Option<&'a CallRecord>,
}

impl Scene<'_> {
    fn satisfies(&self, when: &ScriptCondition) -> bool {
        let ScriptCondition { user_contains, result_contains, last_tool } = when;
        user_contains.as_ref().is_none_or(|text| self.user.contains(text))
            && last_tool.as_ref().is_none_or(|name| self.tool == name)
            && result_contains.as_ref().is_none_or(|text| self.result_contains(text))
    }

    /// True if a text occurs in what the model read or in the data behind it, as compact JSON.
    fn result_contains(&self, text: &str) -> bool {
        self.observation.contains(text)
            || self.record.is_some_and(|record| record.result.to_string().contains(text))
    }
}

fn last_user_text<'a>(request: &ModelRequest<'a>) -> &'a str {
    let said = |item: &'a Item| match item {
        Item::Said(said) => Some(said.text.as_str()),
        Item::Summary(summary) => Some(summary.text.as_str()),
        Item::Step(_) => None,
    };
    request.aside.or_else(|| request.items.iter().rev().find_map(said)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::yaml;
    use crate::conversation::message::{Call, CallAnswer, CallStatus, ReplyPart, Step, ToolCall, UserText};

    fn script(text: &str) -> ModelScript {
        let replies: Vec<ScriptReply> = yaml::parse_document(text).expect("a script");
        ModelScript::compile("m", &replies).expect("templates")
    }

    /// `u:text`, `a` (the model answered), `t:tool=observation` (with a call, which returned).
    fn conversation(lines: &[&str]) -> Vec<Item> {
        let item = |line: &&str| match line.split_once(':') {
            Some(("u", text)) => Item::Said(UserText::by_person(text)),
            Some((_, answer)) => {
                let (name, content) = answer.split_once('=').expect("tool=observation");
                let request = ToolCall { id: "c".to_owned(), name: name.to_owned(), arguments: String::new() };
                let answer = Some(CallAnswer::of_text(content, CallStatus::Ok));
                let parts = vec![ReplyPart::Call(Call { request, opaque: None, answer })];
                Item::Step(Step { parts, ..Step::default() })
            }
            None => Item::Step(Step::default()),
        };
        lines.iter().map(item).collect()
    }

    #[test]
    fn the_place_is_where_the_conversation_stands() {
        let script = script(
            "
- { when: { user_contains: hello }, text: greeting }
- { error: { status: 429, message: busy } }
- { tool_calls: [ { name: list_dir, arguments: {} } ] }
- { when: { result_contains: empty }, text: nothing }
- { when: { last_tool: list_dir }, text: listed }
- { when: { user_contains: again }, text: again, repeat: true }
- { text: last }
",
        );
        for (conversation_so_far, errors, next) in [
            (&["u:x"][..], &[][..], Some(1)),
            (&["u:x"], &[1], Some(2)),
            (&["u:hello"], &[], Some(0)),
            (&["u:x", "t:list_dir=empty"], &[], Some(3)),
            (&["u:x", "t:list_dir=a b"], &[], Some(4)),
            // Skipped entries stay available.
            (&["u:x", "t:list_dir=a b", "a", "u:hello"], &[], Some(0)),
            (&["u:x", "t:list_dir=a b", "a", "u:again"], &[], Some(5)),
            (&["u:x", "t:list_dir=a b", "a", "u:again", "a", "u:again"], &[], Some(5)),
            (&["u:x", "t:list_dir=a b", "a", "u:y"], &[], Some(6)),
            (&["u:x", "t:list_dir=a b", "a", "u:y", "a", "u:z"], &[], None),
            // An interrupted turn: conditions on results hold within a turn.
            (&["u:x", "t:list_dir=a b", "u:y"], &[], Some(6)),
        ] {
            let items = conversation(conversation_so_far);
            let at = script.next(&ModelRequest::from_items(&items, "s"), errors).map(|(at, _)| at);
            assert_eq!(at, next, "{conversation_so_far:?}");
        }
    }

    #[test]
    fn words_come_from_the_task_and_the_real_results() {
        let script = script(
            r#"
- text: "{{ session.user_id }}: {{ task }}: {{ results[-1].result.entries | length }} in {{ results[-1].name }}"
  tool_calls:
    - { name: f, arguments: { path: "{{ results[-1].result.entries[0].name }}", deep: [ 1, "{{ task }}" ] } }
    - { name: g, arguments: "{ not json {{ task }}" }
"#,
        );
        let messages = conversation(&["u:{{ 7 * 7 }}"]);
        let results = [CallRecord {
            name: "list_dir".to_owned(),
            arguments: json!({}),
            status: CallStatus::Ok,
            result: json!({"entries": [{"name": "a"}, {"name": "b"}]}),
            observation: String::new(),
        }];
        let request = ModelRequest { results: &results, ..ModelRequest::from_items(&messages, "s") };
        let (_, reply) = script.next(&request, &[]).expect("a reply");
        let words = reply.render(&request, "ann").expect("templates");
        assert_eq!(words.text, "ann: {{ 7 * 7 }}: 2 in list_dir");
        assert_eq!(
            words.calls,
            [
                ("f".to_owned(), r#"{"path":"a","deep":[1,"{{ 7 * 7 }}"]}"#.to_owned()),
                ("g".to_owned(), "{ not json {{ 7 * 7 }}".to_owned()),
            ]
        );
    }

    #[test]
    fn a_wrong_template_is_named() {
        let replies: Vec<ScriptReply> =
            yaml::parse_document("- { text: fine }\n- { text: '{{ oops' }").expect("a script");
        let error = ModelScript::compile("offline", &replies).map(|_| ()).expect_err("no end");
        assert!(error.to_string().starts_with("models.offline.script[1].text: "), "{error}");
    }
}
