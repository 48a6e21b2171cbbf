//! The questions of a check: short, and chosen so that the answer shows whether a feature works.

use serde_json::{Value, json};

use crate::base::image::Image;
use crate::config::Permission;
use crate::conversation::message::{
    Call, CallAnswer, CallStatus, FinishReason, Item, ReplyPart, Step, ToolCall, UserText,
};
use crate::model::ToolDefinition;

/// The system prompt of all questions except those about the cache.
pub const SYSTEM: &str = "You are being tested. Answer as briefly as you can.";

/// The tool that shows a picture.
pub const PICTURE_TOOL: &str = "view_picture";

/// The tool that the model should call twice at once.
pub const WEATHER_TOOL: &str = "weather";

/// The colour of the picture.
pub const COLOUR: &str = "red";

/// The key that an answer has only if the server enforces the schema.
const KEY: &str = "colour_in_one_word";

/// A red square of 64 by 64 pixels, PNG.
const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAT0lEQVR42u3PQQkAAAgEsAtx/ZMZxgi+hcEKLNO+FgEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQGBywKqxUDxqh7TUQAAAABJRU5ErkJggg==";

/// A message of the person.
pub fn ask_text(text: &str) -> Vec<Item> {
    vec![Item::Said(UserText::by_person(text))]
}

/// The question after which a server should stream a short answer.
pub fn ask_greeting() -> Vec<Item> {
    ask_text("Count from one to five, in words.")
}

/// The question that the model can answer only by a call.
pub fn ask_picture() -> Vec<Item> {
    ask_text("Look at picture.png with view_picture, then say in one word which colour it has.")
}

/// The same question, followed by the call and its answer with the picture. `parts` are those of the model's own call;
/// without them a call is invented.
pub fn picture_shown(parts: Option<Vec<ReplyPart>>) -> Vec<Item> {
    let made_up = || {
        let request = ToolCall {
            id: "call_1".to_owned(),
            name: PICTURE_TOOL.to_owned(),
            arguments: r#"{"path":"picture.png"}"#.to_owned(),
        };
        vec![ReplyPart::Call(Call { request, opaque: None, answer: None })]
    };
    let mut step =
        Step { parts: parts.unwrap_or_else(made_up), finish_reason: FinishReason::ToolCalls, ..Step::default() };
    for call in step.calls_mut() {
        let images = vec![Image { mime: "image/png".to_owned(), data: RED.to_owned(), ..Image::default() }];
        call.answer = Some(CallAnswer { images, ..CallAnswer::of_text("picture.png:", CallStatus::Ok) });
    }
    let mut items = ask_picture();
    items.push(Item::Step(step));
    items
}

/// The question that asks for two calls at once.
pub fn two_calls() -> Vec<Item> {
    ask_text(
        "How is the weather in Paris, and how is it in Oslo? Call weather twice, both calls in this one reply.",
    )
}

/// The question whose answer must match [`answer_schema`].
pub fn ask_structured() -> Vec<Item> {
    ask_text("Which colour is the sky on a fine day? Answer in JSON.")
}

/// The schema of an answer. Nothing in the question names its key.
pub fn answer_schema() -> Value {
    json!({
        "type": "object",
        "properties": { KEY: { "type": "string" } },
        "required": [KEY],
        "additionalProperties": false,
    })
}

/// A system prompt of about this many tokens, the same every time.
pub fn long_system(tokens: u64) -> String {
    const TOKENS_A_LINE: u64 = 12;
    let lines =
        (1..=tokens / TOKENS_A_LINE).map(|line| format!("{line}. A line of a text that stays the same.\n"));
    lines.chain(["Answer with OK.".to_owned()]).collect()
}

/// The tools, sorted by name.
pub fn list_test_tools() -> [ToolDefinition; 2] {
    [
        define_test_tool(PICTURE_TOOL, "Shows a picture. Returns the picture itself.", "path"),
        define_test_tool(WEATHER_TOOL, "Tells the weather of one city.", "city"),
    ]
}

fn define_test_tool(name: &str, description: &str, argument: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": { argument: { "type": "string" } },
            "required": [argument],
            "additionalProperties": false,
        })
        .into(),
        permission: Permission::Read,
        default: true,
        ..ToolDefinition::default()
    }
}
