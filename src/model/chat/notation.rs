//! The notations in which models write calls, as a table: the pieces of each, and the function that reads its captures
//! as calls.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::ToolDefinition;

/// A call as a model wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotatedCall {
    pub name: String,
    /// A JSON object.
    pub arguments: String,
}

/// One notation.
pub(super) struct Notation {
    pub pieces: &'static [NotationPiece],
    pub means: NotationMeaning,
}

/// A piece of a notation.
pub(super) enum NotationPiece {
    /// These characters.
    Literal(&'static str),
    /// White space, or none.
    Space,
    /// A name and its closing characters. The name is captured.
    Name(&'static str),
    /// A JSON object or list, which is captured.
    Json,
    /// Anything up to the first `close` that follows `after`. It is captured, with `after`.
    Until { after: &'static str, close: &'static str },
}

/// The meaning of a notation.
#[derive(Clone, Copy)]
pub(super) enum NotationMeaning {
    /// Calls, read from the captures; `None` if they are none after all.
    Calls(fn(&[&str], &Texts) -> Option<Vec<NotatedCall>>),
    /// The fence of a code block, in which nothing is a call.
    Fence,
}

use NotationPiece::{Json, Literal, Name, Space, Until};

/// All notations. If two begin alike and both match, the first counts.
pub(super) const NOTATIONS: &[Notation] = &[
    // Hermes, Qwen
    find_calls(&[Literal("<tool_call>"), Space, Json, Space, Literal("</tool_call>")], read_objects),
    // Qwen Coder, whose models sometimes leave out the outer tags
    find_calls(
        &[Literal("<tool_call>"), Space, FUNCTION, Name(">"), Space, PARAMETER, PARAMETERS, Space, END],
        read_function,
    ),
    find_calls(
        &[Literal("<tool_call>"), Space, FUNCTION, Name(">"), Space, FUNCTION_END, Space, END],
        read_function,
    ),
    find_calls(&[FUNCTION, Name(">"), Space, PARAMETER, PARAMETERS], read_function),
    find_calls(&[FUNCTION, Name(">"), Space, FUNCTION_END], read_function),
    // Llama
    find_calls(&[FUNCTION, Name(">"), Space, Json, Space, FUNCTION_END], read_named),
    find_calls(&[Literal("<|python_tag|>"), Space, Json], read_objects),
    // Mistral, older and newer
    find_calls(&[Literal("[TOOL_CALLS]"), Space, Json], read_objects),
    find_calls(&[Literal("[TOOL_CALLS]"), Name("[ARGS]"), Space, Json], read_named),
    // DeepSeek
    find_calls(
        &[
            Literal("<｜DSML｜function_calls>"),
            Space,
            Literal(INVOKE),
            Until { after: INVOKE_END, close: "</｜DSML｜function_calls>" },
        ],
        read_invokes,
    ),
    Notation { pieces: &[Literal("```")], means: NotationMeaning::Fence },
    Notation { pieces: &[Literal("~~~")], means: NotationMeaning::Fence },
];

const END: NotationPiece = Literal("</tool_call>");
const FUNCTION: NotationPiece = Literal("<function=");
const FUNCTION_END: NotationPiece = Literal("</function>");
const PARAMETER: NotationPiece = Literal("<parameter=");
const PARAMETERS: NotationPiece = Until { after: "</parameter>", close: "</function>" };
const INVOKE: &str = "<｜DSML｜invoke name=\"";
const INVOKE_END: &str = "</｜DSML｜invoke>";

const fn find_calls(
    pieces: &'static [NotationPiece],
    read: fn(&[&str], &Texts) -> Option<Vec<NotatedCall>>,
) -> Notation {
    Notation { pieces, means: NotationMeaning::Calls(read) }
}

/// The parameters of tools that are texts: a notation without types cannot distinguish the text `1` from the number.
#[derive(Debug, Default)]
pub(super) struct Texts(Vec<(String, String)>);

impl Texts {
    pub fn from_tools(tools: &[ToolDefinition]) -> Self {
        let texts = tools.iter().flat_map(|tool| {
            let properties = tool.parameters.get("properties").and_then(Value::as_object).into_iter().flatten();
            let texts = properties.filter(|(_, schema)| is_text(schema));
            texts.map(|(parameter, _)| (tool.name.clone(), parameter.clone()))
        });
        Self(texts.collect())
    }

    /// A value as its tool expects it: a text, or else the JSON that it is.
    fn value(&self, tool: &str, parameter: &str, value: &str) -> Value {
        let is_text = self.0.iter().any(|(name, key)| name == tool && key == parameter);
        let json = if is_text { None } else { serde_json::from_str(value).ok() };
        json.unwrap_or_else(|| value.into())
    }
}

fn is_text(schema: &Value) -> bool {
    let any = |schemas: &Value| schemas.as_array().is_some_and(|schemas| schemas.iter().any(is_text));
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)).any(any),
    }
}

/// An object with the name and the arguments of a call.
#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default, alias = "parameters")]
    arguments: Option<&'a RawValue>,
}

/// One object or a list of them.
fn read_objects(captures: &[&str], _: &Texts) -> Option<Vec<NotatedCall>> {
    let &[json] = captures else { return None };
    let objects: Vec<Object<'_>> = if json.starts_with('[') {
        serde_json::from_str(json).ok()?
    } else {
        vec![serde_json::from_str(json).ok()?]
    };
    let call = |object: Object<'_>| {
        let arguments = match object.arguments.map(RawValue::get) {
            None | Some("null") => "{}".to_owned(),
            // Encoded a second time.
            Some(text) if text.starts_with('"') => serde_json::from_str(text).ok()?,
            Some(json) => json.to_owned(),
        };
        let is_call = !object.name.is_empty() && is_object(&arguments);
        is_call.then(|| NotatedCall { name: object.name.into_owned(), arguments })
    };
    objects.into_iter().map(call).collect::<Option<Vec<_>>>().filter(|calls| !calls.is_empty())
}

/// A name, and an object of arguments.
fn read_named(captures: &[&str], _: &Texts) -> Option<Vec<NotatedCall>> {
    let &[name, arguments] = captures else { return None };
    is_object(arguments).then(|| vec![NotatedCall { name: name.to_owned(), arguments: arguments.to_owned() }])
}

/// A name, and parameters if there are any: `K>V</parameter> <parameter=K>V</parameter>`.
fn read_function(captures: &[&str], texts: &Texts) -> Option<Vec<NotatedCall>> {
    let (name, mut rest) = match *captures {
        [name] => (name, None),
        [name, parameters] => (name, Some(parameters)),
        _ => return None,
    };
    let mut arguments = Map::new();
    while let Some(parameter) = rest {
        let (key, value) = parameter.split_once('>')?;
        // A value may contain a closing tag: the one that counts is followed by another parameter or the end.
        let (value, next) = value.match_indices("</parameter>").find_map(|(at, tag)| {
            let after = value[at + tag.len()..].trim_start();
            let next = after.strip_prefix("<parameter=");
            (after.is_empty() || next.is_some()).then(|| (&value[..at], next))
        })?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(key.to_owned(), texts.value(name, key, value));
        rest = next;
    }
    Some(vec![NotatedCall { name: name.to_owned(), arguments: Value::Object(arguments).to_string() }])
}

/// Calls in DSML, the first without its opening: `NAME"> … </invoke> <invoke name="NAME"> … </invoke>`.
fn read_invokes(captures: &[&str], _: &Texts) -> Option<Vec<NotatedCall>> {
    let &[text] = captures else { return None };
    let mut calls = Vec::new();
    let mut rest = Some(text);
    while let Some(invoke) = rest {
        let (name, parameters) = invoke.split_once("\">").filter(|(name, _)| !name.is_empty())?;
        let mut arguments = Map::new();
        let mut parameters = parameters.trim_start();
        while let Some(parameter) = parameters.strip_prefix("<｜DSML｜parameter name=\"") {
            let (key, typed) = parameter.split_once("\" string=\"")?;
            let (is_text, value) = typed.split_once("\">")?;
            let (value, after) = value.split_once("</｜DSML｜parameter>")?;
            let value = match is_text {
                "true" => value.into(),
                "false" => serde_json::from_str(value).ok()?,
                _ => return None,
            };
            arguments.insert(key.to_owned(), value);
            parameters = after.trim_start();
        }
        let after = parameters.strip_prefix(INVOKE_END)?.trim_start();
        calls.push(NotatedCall { name: name.to_owned(), arguments: Value::Object(arguments).to_string() });
        rest = if after.is_empty() { None } else { Some(after.strip_prefix(INVOKE)?) };
    }
    Some(calls)
}

fn is_object(json: &str) -> bool {
    json.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok()
}
