//! Learns from the refusals of a server: a part of the request that it does not know is left out or replaced by the
//! nearest one, and the plan is changed for all later requests. Pure: a table of words and changes.

use super::anthropic::Thinking;
use super::chat::{AnswerFormat, Echo, EffortField, OutputField};
use super::dialect::Dialect;
use super::effort::Effort;
use super::gemini::GeminiThinking;
use super::plan::RequestPlan;
use super::responses::SystemIn;
use crate::config::Wire;
use crate::model::{ModelError, ModelErrorKind};

/// A better plan.
#[derive(Debug)]
pub struct Lesson {
    pub plan: RequestPlan,
    /// One line for a person.
    pub notice: String,
}

/// Returns the lesson of the refusal of a request by `plan`; `None` if nothing can be left out.
pub fn learn_lesson(plan: &RequestPlan, error: &ModelError) -> Option<Lesson> {
    if error.kind != ModelErrorKind::BadRequest || !matches!(error.status, None | Some(400..=422 | 500)) {
        return None;
    }
    let words = error.message.to_ascii_lowercase();
    let is_no_path = matches!(error.status, Some(404 | 405)) && !words.contains("has no model `");
    if is_no_path && matches!(plan.wire, Wire::Responses | Wire::Ollama) && !plan.wire_is_declared {
        let wire = plan.wire.name();
        let notice = format!("{} is not served over the wire `{wire}`: chat completions are used", error.model);
        return Some(Lesson { plan: RequestPlan { wire: Wire::Chat, ..plan.clone() }, notice });
    }
    let by_rule = || {
        RULES.iter().filter(|rule| rule.applies(&words)).find_map(|rule| {
            let mut plan = plan.clone();
            let done = (rule.change)(&mut plan, &words)?;
            let notice = format!("{} {}: {done}", error.model, rule.about);
            Some(Lesson { plan, notice })
        })
    };
    // A rule knows its field better; one for `reasoning` must not answer for `reasoning_split`.
    let leave_out = |has_rule| leave_out_addition(plan, error, &words, has_rule);
    leave_out(false).or_else(by_rule).or_else(|| leave_out(true))
}

/// Leaves out a field that the dialect or the model file added itself and the refusal names: one that a rule is about, or
/// one that no rule knows.
fn leave_out_addition(plan: &RequestPlan, error: &ModelError, words: &str, has_rule: bool) -> Option<Lesson> {
    let of_rule =
        |name: &str| RULES.iter().any(|rule| rule.words.iter().any(|word| word.split('|').any(|w| w == name)));
    let mut added =
        plan.settings.extra.iter().filter(|(name, value)| !value.is_null() && of_rule(name) == has_rule);
    let (name, _) = added.find(|(name, _)| refuses(words) && names(words, name))?;
    let mut left = plan.clone();
    left.settings.extra.shift_remove(name);
    Some(Lesson { plan: left, notice: format!("{} does not take {name}: it is not sent", error.model) })
}

/// Words of a refusal, and the change that answers it.
struct RefusalLesson {
    /// All must occur; one is enough of alternatives separated by `|`.
    words: &'static [&'static str],
    /// True if words that refuse a parameter must occur too.
    names_parameter: bool,
    /// The problem, after the name of the model.
    about: &'static str,
    /// Makes the change and returns it in words; `None` if the plan already has it.
    change: fn(&mut RequestPlan, &str) -> Option<String>,
}

/// The words in which servers refuse a parameter that they name.
const REFUSING: &[&str] = &[
    "unsupported",
    "not supported",
    "does not support",
    "doesn't support",
    "unknown name",
    "unknown field",
    "unknown parameter",
    "unrecognized",
    "not permitted",
    "extra_forbidden",
    "unexpected keyword",
    "unexpected field",
    "not allowed",
    "invalid",
    "only the default",
    "deprecated",
    "must be",
    "cannot",
    "should",
];

/// The words in which servers say that a model takes no pictures at all: where one picture is at fault, it alone is
/// left out (`agent/turn/refused_pictures.rs`).
const BLIND: &[&str] =
    &["unknown variant `image_url`|image input is not supported|image inputs are not supported|\
    images are not supported|image_url is not supported|not support image|n't support image|support image input|\
    accept image|only supported by certain models|content must be a string|value must be a string|\
    not a multimodal model|not multimodal|not a vision model|not support vision|vision is not supported|\
    not support multimodal|data required for image input"];

fn refuses(words: &str) -> bool {
    REFUSING.iter().any(|word| words.contains(word))
}

/// True if a field's name is a whole word of a refusal.
fn names(words: &str, field: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    words.split(|c| !is_part(c)).any(|word| word == field)
}

impl RefusalLesson {
    fn applies(&self, words: &str) -> bool {
        let all = self.words.iter().all(|word| word.split('|').any(|word| words.contains(word)));
        all && (!self.names_parameter || refuses(words))
    }
}

/// A rule that replaces another field, or leaves one out.
const fn learn_parameter(
    words: &'static [&'static str],
    about: &'static str,
    change: fn(&mut RequestPlan, &str) -> Option<String>,
) -> RefusalLesson {
    RefusalLesson { words, names_parameter: true, about, change }
}

const fn learn_trouble(
    words: &'static [&'static str],
    about: &'static str,
    change: fn(&mut RequestPlan, &str) -> Option<String>,
) -> RefusalLesson {
    RefusalLesson { words, names_parameter: false, about, change }
}

/// The rules, the most specific first: some refusals also name a parameter that is not their subject.
const RULES: &[RefusalLesson] = &[
    learn_trouble(&["bound to a different conversation"], "refuses earlier reasoning", |plan, _| stop_echo(plan)),
    learn_trouble(
        &[
            "signature|encrypted_content|encrypted content",
            "thinking|thought|reasoning|verif|decrypt|organization",
        ],
        "refuses earlier reasoning",
        |plan, words| {
            if words.contains("not supported") && plan.wire == Wire::Responses {
                let include = &mut plan.dialect.responses.encrypted_include;
                return change_field(include, false, "none is asked for");
            }
            if words.contains("missing") && !plan.dialect.chat.stand_in_signature && plan.wire == Wire::Chat {
                plan.dialect.chat.stand_in_signature = true;
                return Some("calls of other models get a stand-in for a signature".to_owned());
            }
            stop_echo(plan)
        },
    ),
    learn_trouble(
        &["without its required following item|items are not persisted|duplicate item found"],
        "refuses earlier reasoning",
        |plan, _| stop_echo(plan),
    ),
    learn_parameter(&["instructions"], "takes no instructions", |plan, _| {
        let place = &mut plan.dialect.responses.system_in;
        (plan.wire == Wire::Responses).then_some(())?;
        let next = match *place {
            SystemIn::Instructions => SystemIn::Developer,
            SystemIn::Developer | SystemIn::System => SystemIn::System,
        };
        change_field(place, next, "the prompt is sent as a message")
    }),
    learn_trouble(
        &[
            "function tools with reasoning_effort|use /v1/responses|not a chat model|only supported in v1/responses",
        ],
        "calls tools over Responses",
        to_responses,
    ),
    learn_trouble(
        &["must be passed back|reasoning_content is missing|reasoning_content in the thinking"],
        "wants its reasoning back",
        |plan, _| match plan.wire {
            Wire::Anthropic => {
                change_field(&mut plan.dialect.anthropic.empty_signature_ok, true, "it is sent back unsigned too")
            }
            _ => change_field(&mut plan.dialect.chat.echo, Echo::Always, "it is sent with every call"),
        },
    ),
    learn_trouble(&["anthropic-beta"], "does not know a beta", |plan, _| {
        let flags = &mut plan.dialect.anthropic;
        turn_off([&mut flags.interleaved_beta, &mut flags.binding_controls], "none is asked for")
    }),
    learn_trouble(
        &["max_tokens: ", "maximum allowed number of output tokens"],
        "writes no reply as long",
        |plan, words| {
            let most =
                words.split_once('>')?.1.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty())?;
            let most: u64 = most.parse().ok()?;
            let settings = &mut plan.settings;
            settings.max_output_tokens = settings.max_output_tokens.map(|asked| asked.min(most));
            settings.accepted_output_tokens = Some(most);
            change_field(
                &mut settings.most_output_tokens,
                Some(most),
                &format!("{most} tokens at most are asked for"),
            )
        },
    ),
    learn_trouble(&["thinking.type|thinking type", "enabled"], "thinks in another way", |plan, words| {
        let thinking = &mut plan.dialect.anthropic.thinking;
        (plan.wire == Wire::Anthropic).then_some(())?;
        let to = match *thinking {
            Thinking::Budget => Thinking::Adaptive,
            _ if words.contains("adaptive") && words.contains("support") => Thinking::Budget,
            _ => Thinking::Off,
        };
        change_field(thinking, to, "it is asked for so")
    }),
    learn_parameter(&["output_config.effort|output_config: effort"], "knows no levels of effort", |plan, _| {
        change_field(&mut plan.dialect.anthropic.effort_field, false, "none is sent")
    }),
    learn_parameter(&["eager_input_streaming"], "does not stream arguments early", |plan, _| {
        change_field(&mut plan.dialect.anthropic.eager_stream, false, "it is not asked to")
    }),
    learn_parameter(&["thinking.display|display:"], "does not know thinking.display", |plan, _| {
        change_field(&mut plan.dialect.anthropic.thinking_display, false, "it is not sent")
    }),
    learn_parameter(&["disable_parallel_tool_use"], "does not know disable_parallel_tool_use", |plan, _| {
        change_field(&mut plan.dialect.anthropic.parallel_switch, false, "it is not sent")
    }),
    learn_trouble(&["tool_choice|tool choice"], "does not know this tool_choice", |plan, _| {
        let Dialect { chat, responses, anthropic, gemini, .. } = &mut plan.dialect;
        let known = match plan.wire {
            Wire::Chat => &mut chat.choice_none,
            Wire::Responses => &mut responses.choice_none,
            Wire::Anthropic => &mut anthropic.choice_none,
            Wire::Gemini => &mut gemini.choice_none,
            Wire::Ollama => return None,
        };
        change_field(known, false, "the choice is left open")
    }),
    learn_trouble(
        &["unexpected role 'user' after role 'tool'|role 'tool' must be followed|after tool"],
        "refuses a user's words after results",
        |plan, _| {
            change_field(&mut plan.dialect.chat.user_after_results, false, "they are added to the last result")
        },
    ),
    learn_trouble(BLIND, "does not see", |plan, _| change_field(&mut plan.sees, false, "pictures become notes")),
    learn_parameter(&["stream_options|stream options"], "does not know stream_options", |plan, _| {
        let Dialect { chat, responses, .. } = &mut plan.dialect;
        turn_off([&mut chat.stream_options, &mut responses.padding_off], "it is not sent")
    }),
    learn_parameter(
        &["max_tokens", "max_completion_tokens|unsupported|unrecognized|unknown|not permitted"],
        "takes no max_tokens",
        |plan, _| swap_output(plan, OutputField::MaxTokens, OutputField::MaxCompletionTokens),
    ),
    learn_parameter(&["max_completion_tokens"], "takes no max_completion_tokens", |plan, _| {
        swap_output(plan, OutputField::MaxCompletionTokens, OutputField::MaxTokens)
    }),
    learn_parameter(&["parallel_tool_calls|parallel tool"], "does not know parallel_tool_calls", |plan, _| {
        let Dialect { chat, responses, .. } = &mut plan.dialect;
        turn_off([&mut chat.parallel_field, &mut responses.parallel_field], "it is not sent")
    }),
    learn_parameter(&["temperature"], "takes no temperature", |plan, _| {
        plan.settings.temperature.take().map(|_| "the provider's own is used".to_owned())
    }),
    learn_parameter(
        &["reasoning.summary|reasoning summar|generate reasoning summaries"],
        "gives no summaries of its reasoning",
        |plan, _| change_field(&mut plan.dialect.responses.summary, false, "none are asked for"),
    ),
    learn_parameter(&["reasoning.encrypted_content|include"], "does not hand out its reasoning", |plan, _| {
        (plan.wire == Wire::Responses).then_some(())?;
        change_field(&mut plan.dialect.responses.encrypted_include, false, "none is asked for")
    }),
    learn_parameter(&["reasoning|effort|thinking"], "does not know this reasoning_effort", |plan, words| {
        lower_effort(plan, words)
    }),
    learn_parameter(
        &["response_format|json_schema|output_format|output_config.format|text.format|structured output|\
            response mime type|response_mime_type|response_json_schema"],
        "does not enforce this schema",
        |plan, _| {
            let Dialect { chat, responses, anthropic, gemini, .. } = &mut plan.dialect;
            let field = match plan.wire {
                Wire::Ollama => return None,
                Wire::Gemini => &mut gemini.answer_format,
                Wire::Chat => {
                    let weaker = match chat.answer_format {
                        AnswerFormat::JsonSchema => AnswerFormat::JsonObject,
                        AnswerFormat::JsonObject | AnswerFormat::Absent => AnswerFormat::Absent,
                    };
                    return change_field(&mut chat.answer_format, weaker, "the answer is checked here");
                }
                Wire::Responses => &mut responses.answer_format,
                Wire::Anthropic => &mut anthropic.answer_format,
            };
            change_field(field, false, "the answer is checked here alone")
        },
    ),
    learn_parameter(&["strict"], "knows no strict tools", |plan, _| {
        let responses = &mut plan.dialect.responses.strict;
        *responses &= plan.wire == Wire::Responses;
        turn_off([&mut plan.settings.strict_tools, responses], "tools are declared without it")
    }),
    learn_trouble(
        &["schema is too complex|too many optional parameters|too many strict tools"],
        "does not compile these schemas",
        |plan, _| {
            let strict = turn_off([&mut plan.settings.strict_tools], "tools are declared without strict");
            strict.or_else(|| {
                turn_off([&mut plan.dialect.anthropic.answer_format], "the answer is checked here alone")
            })
        },
    ),
    learn_parameter(&["prompt_cache_key"], "does not know prompt_cache_key", |plan, _| {
        let Dialect { chat, responses, .. } = &mut plan.dialect;
        turn_off([&mut chat.cache_key, &mut responses.cache_key], "it is not sent")
    }),
    learn_parameter(&["cache_control"], "knows no marks for its cache", |plan, _| {
        let Dialect { chat, anthropic, .. } = &mut plan.dialect;
        turn_off([&mut chat.cache_marks, &mut anthropic.cache_marks], "none are set")
    }),
];

fn change_field<T: PartialEq>(field: &mut T, to: T, done: &str) -> Option<String> {
    (*field != to).then(|| {
        *field = to;
        done.to_owned()
    })
}

/// Turns fields off that belong together.
fn turn_off<const N: usize>(fields: [&mut bool; N], done: &str) -> Option<String> {
    let had = fields.map(std::mem::take);
    had.contains(&true).then(|| done.to_owned())
}

fn stop_echo(plan: &mut RequestPlan) -> Option<String> {
    change_field(&mut plan.echoes_reasoning, false, "it is not sent back any more")
}

fn to_responses(plan: &mut RequestPlan, words: &str) -> Option<String> {
    let is_offered = words.contains("v1/responses") && !plan.wire_is_declared;
    if plan.wire == Wire::Chat && (is_offered || plan.dialect.wire == Some(Wire::Responses)) {
        plan.wire = Wire::Responses;
        return Some("they are called there from now on".to_owned());
    }
    let can_pause = plan.levels.as_ref().is_none_or(|levels| levels.contains(&Effort::None));
    (plan.wire == Wire::Chat && can_pause).then_some(())?;
    change_field(
        &mut plan.dialect.chat.tools_forbid_reasoning,
        true,
        "here they are called without reasoning; `wire: responses` in the model's file keeps both",
    )
}

fn swap_output(plan: &mut RequestPlan, from: OutputField, to: OutputField) -> Option<String> {
    let field = &mut plan.dialect.chat.output_field;
    (*field == from && plan.settings.output_limit().is_some()).then_some(())?;
    change_field(field, to, "the other field is used")
}

/// Asks for the nearest level that a refusal names, or for none if it names none.
fn lower_effort(plan: &mut RequestPlan, words: &str) -> Option<String> {
    if plan.wire == Wire::Gemini && plan.settings.effort.is_none() {
        let thinking = &mut plan.dialect.gemini.thinking;
        return change_field(thinking, GeminiThinking::Absent, "its thoughts are not asked for");
    }
    let asked = plan.settings.effort?;
    let named: Vec<Effort> = words
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter_map(Effort::read)
        .filter(|level| *level != asked)
        .collect();
    plan.settings.effort = asked.nearest(&named);
    if plan.settings.effort.is_none() && plan.wire == Wire::Chat {
        plan.dialect.chat.effort = EffortField::Absent;
    }
    Some(match plan.settings.effort {
        Some(level) => format!("`{}` is asked for", level.word()),
        None => "it is not sent".to_owned(),
    })
}
