//! The variables of one prompt: the names of the program, the defaults of its head and the user's values; a module gets
//! only those that it declares.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use crate::template::{self, Value};

use super::head::PromptHead;

/// The name of the user's variables.
pub(super) const VARS: &str = "vars";

/// The context, completed by the defaults of a head and overridden by the user's variables that the head declares.
///
/// An undeclared variable stays only under `vars`, so that it does not affect prompts that do not know it.
pub(super) fn with_declared(context: &Value, head: &PromptHead) -> Value {
    let is_declared =
        |name: &str| name != VARS && head.list_declared().any(|declared| take_root(declared) == name);
    let given: Vec<(String, Value)> =
        list_entries(&get_attribute(context, VARS)).into_iter().filter(|(name, _)| is_declared(name)).collect();
    let filled = if head.defaults.is_empty() {
        context.clone()
    } else {
        template::layer_values(context.clone(), template::convert_value(&head.defaults))
    };
    if given.is_empty() { filled } else { template::layer_values(template::make_object(given), filled) }
}

/// The context with every value of `given` over it, at the top level and under `vars`; mappings are layered.
pub fn with_given(context: &Value, given: &Map<String, Json>) -> Value {
    let given = template::convert_value(given);
    let vars = [(VARS.to_owned(), given.clone())];
    template::layer_values(template::make_object(list_entries(&given).into_iter().chain(vars)), context.clone())
}

/// The context with a text for each of these names: its own name in angle brackets.
pub(super) fn with_fillers(context: &Value, names: &BTreeSet<String>) -> Value {
    let mut given = Map::new();
    for name in names {
        let filler = Json::String(format!("<{name}>"));
        let inside = |value, part: &str| Json::Object(Map::from_iter([(part.to_owned(), value)]));
        if let Json::Object(whole) = name.rsplit('.').fold(filler, inside) {
            given.extend(whole);
        }
    }
    with_given(context, &given)
}

/// A context with only these names; a dotted one keeps only that path.
pub(super) fn restrict_context<'a>(context: &Value, names: impl Iterator<Item = &'a str>) -> Value {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    restrict_value(context, &names)
}

/// Restricts a value to `names`, which are sorted, so that those of one root are together, the root itself first.
fn restrict_value(value: &Value, names: &[&str]) -> Value {
    let mut pairs: Vec<(&str, Value)> = Vec::new();
    let mut at = 0;
    while let Some(first) = names.get(at) {
        let name = take_root(first);
        let of_root = names[at..].iter().take_while(|other| take_root(other) == name).count();
        let here = get_attribute(value, name);
        let inside: Vec<&str> = names[at..at + of_root]
            .iter()
            .filter_map(|dotted| dotted.strip_prefix(name)?.strip_prefix('.'))
            .collect();
        at += of_root;
        if !here.is_undefined() {
            pairs.push((name, if inside.len() == of_root { restrict_value(&here, &inside) } else { here }));
        }
    }
    template::make_object(pairs)
}

/// The dotted `names` that the context does not define.
pub(super) fn find_undefined<'a>(names: impl Iterator<Item = &'a str>, context: &Value) -> Vec<String> {
    let is_undefined = |name: &&str| {
        name.split('.').fold(context.clone(), |value, part| get_attribute(&value, part)).is_undefined()
    };
    names.filter(is_undefined).map(str::to_owned).collect()
}

pub(super) fn list_entries(value: &Value) -> Vec<(String, Value)> {
    let names = value.try_iter().into_iter().flatten();
    names.filter_map(|name| Some((name.as_str()?.to_owned(), value.get_item(&name).ok()?))).collect()
}

fn get_attribute(value: &Value, name: &str) -> Value {
    value.get_attr(name).unwrap_or_default()
}

pub(super) fn take_root(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn head(head: Json) -> PromptHead {
        serde_json::from_value(head).expect("a head")
    }

    fn shown(value: &Value, template: &str) -> String {
        let template = template::Template::compile("t", template, template::Undefined::Empty).expect("a template");
        template.render(value).expect("it renders")
    }

    #[test]
    fn a_declared_variable_stands_at_the_top_and_wins_there() {
        let context = template::convert_value(&json!({
            "agent": { "name": "default", "model": "m" }, "tools": ["a"],
            "vars": { "tone": "dry", "tools": ["b"], "agent": { "name": "given" }, "other": "x" },
        }));
        let head = head(json!({
            "required_vars": ["tone", "tools", "agent.name"],
            "defaults": { "tone": "plain", "size": "small", "agent": { "name": "none", "age": 3 } },
        }));
        let value = with_declared(&context, &head);
        let text = "{{ tone }} {{ tools[0] }} {{ size }} {{ agent.name }} {{ agent.model }} {{ agent.age }} \
                    {{ other is defined }} {{ vars.other }}";
        assert_eq!(shown(&value, text), "dry b small given m 3 False x");
    }

    #[test]
    fn a_module_sees_what_it_declares_and_nothing_else() {
        let context = template::convert_value(&json!({
            "agent": { "name": "default", "model": "m" }, "tools": ["a"], "secret": "s", "session": { "id": "1" },
        }));
        let value =
            restrict_context(&context, ["agent.name", "tools", "session", "session.id", "absent.x"].into_iter());
        let text = "{{ agent.name }} {{ agent.model is defined }} {{ tools[0] }} {{ secret is defined }} \
                    {{ session.id }} {{ absent is defined }}";
        assert_eq!(shown(&value, text), "default False a False 1 False");
    }

    #[test]
    fn given_values_deepen_what_is_there() {
        let context =
            template::convert_value(&json!({ "agent": { "name": "default", "model": "m" }, "vars": {} }));
        let given = json!({ "agent": { "name": "x" }, "task": "{{ t }}" });
        let value = with_given(&context, given.as_object().expect("an object"));
        assert_eq!(
            shown(&value, "{{ agent.name }} {{ agent.model }} {{ task }} {{ vars.task }}"),
            "x m {{ t }} {{ t }}"
        );
    }
}
