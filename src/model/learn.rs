//! Learns from the refusals of a server: a part of the request that it does not know is left out or replaced by the
//! nearest one, and the plan is changed for all later requests. Pure: a table of words and changes.

use serde_json::{Map, Value, json};

use super::anthropic::Thinking;
use super::chat::{AnswerFormat, Echo, EffortField, OutputField};
use super::dialect::Dialect;
use super::effort::Effort;
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
    if is_no_path && plan.wire == Wire::Responses && !plan.wire_is_declared {
        let notice = format!("{} is not served over Responses: chat completions are used", error.model);
        return Some(Lesson { plan: RequestPlan { wire: Wire::Chat, ..plan.clone() }, notice });
    }
    RULES.iter().filter(|rule| rule.applies(&words)).find_map(|rule| {
        let mut plan = plan.clone();
        let done = (rule.change)(&mut plan, &words)?;
        let notice = format!("{} {}: {done}", error.model, rule.about);
        Some(Lesson { plan, notice })
    })
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

impl RefusalLesson {
    fn applies(&self, words: &str) -> bool {
        let all = self.words.iter().all(|word| word.split('|').any(|word| words.contains(word)));
        all && (!self.names_parameter || REFUSING.iter().any(|word| words.contains(word)))
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
        |plan, _| to_responses(plan),
    ),
    learn_trouble(
        &["must be passed back|reasoning_content is missing|reasoning_content in the thinking"],
        "wants its reasoning back",
        |plan, _| match plan.wire {
            Wire::Anthropic => {
                change_field(&mut plan.dialect.anthropic.empty_signature_ok, true, "it is sent back unsigned too")
            }
            Wire::Chat | Wire::Responses => {
                change_field(&mut plan.dialect.chat.echo, Echo::Always, "it is sent with every call")
            }
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
        let Dialect { chat, responses, anthropic, .. } = &mut plan.dialect;
        let known = match plan.wire {
            Wire::Chat => &mut chat.choice_none,
            Wire::Responses => &mut responses.choice_none,
            Wire::Anthropic => &mut anthropic.choice_none,
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
    learn_trouble(
        &["image|vision|multimodal", "not support|unsupported|does not accept|no endpoints|invalid"],
        "does not see",
        |plan, _| change_field(&mut plan.sees, false, "pictures become notes"),
    ),
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
        &["response_format|json_schema|output_format|output_config.format|text.format|structured output"],
        "does not enforce this schema",
        |plan, _| {
            let Dialect { chat, responses, anthropic, .. } = &mut plan.dialect;
            let field = match plan.wire {
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
    learn_parameter(&["prompt_cache_key"], "does not know prompt_cache_key", |plan, _| {
        let Dialect { chat, responses, .. } = &mut plan.dialect;
        turn_off([&mut chat.cache_key, &mut responses.cache_key], "it is not sent")
    }),
    learn_parameter(&["cache_control"], "knows no marks for its cache", |plan, _| {
        let Dialect { chat, anthropic, .. } = &mut plan.dialect;
        turn_off([&mut chat.cache_marks, &mut anthropic.cache_marks], "none are set")
    }),
];

/// The keys of a model file that turn the first plan into the later one, as far as there are such keys.
pub fn list_changed_keys(first: &RequestPlan, now: &RequestPlan) -> Map<String, Value> {
    let mut keys = Map::new();
    let mut capabilities = Map::new();
    if first.wire != now.wire {
        keys.insert("wire".to_owned(), now.wire.name().into());
    }
    if first.settings.temperature != now.settings.temperature {
        keys.insert("temperature".to_owned(), json!(now.settings.temperature));
    }
    if first.settings.effort != now.settings.effort {
        keys.insert("reasoning_effort".to_owned(), json!(now.settings.effort.map(Effort::word)));
    }
    let enforces = |plan: &RequestPlan| match plan.wire {
        Wire::Chat => plan.dialect.chat.answer_format != AnswerFormat::Absent,
        Wire::Responses => plan.dialect.responses.answer_format,
        Wire::Anthropic => plan.dialect.anthropic.answer_format,
    };
    let has_cache_key = |plan: &RequestPlan| plan.dialect.chat.cache_key || plan.dialect.responses.cache_key;
    let has_cache_marks = |plan: &RequestPlan| plan.dialect.chat.cache_marks || plan.dialect.anthropic.cache_marks;
    for (name, had, has) in [
        ("stream_usage", first.dialect.chat.stream_options, now.dialect.chat.stream_options),
        ("structured_output", enforces(first), enforces(now)),
        ("strict_tools", first.settings.strict_tools, now.settings.strict_tools),
        ("vision", first.sees, now.sees),
        ("prompt_cache_key", has_cache_key(first), has_cache_key(now)),
        ("cache_breakpoints", has_cache_marks(first), has_cache_marks(now)),
    ] {
        if had != has {
            capabilities.insert(name.to_owned(), has.into());
        }
    }
    if !capabilities.is_empty() {
        keys.insert("capabilities".to_owned(), capabilities.into());
    }
    keys
}

fn change_field<T: PartialEq>(field: &mut T, to: T, done: &str) -> Option<String> {
    (*field != to).then(|| {
        *field = to;
        done.to_owned()
    })
}

/// Turns fields off that belong together.
fn turn_off<const N: usize>(fields: [&mut bool; N], done: &str) -> Option<String> {
    let had = fields.iter().any(|field| **field);
    for field in fields {
        *field = false;
    }
    had.then(|| done.to_owned())
}

fn stop_echo(plan: &mut RequestPlan) -> Option<String> {
    change_field(&mut plan.echoes_reasoning, false, "it is not sent back any more")
}

fn to_responses(plan: &mut RequestPlan) -> Option<String> {
    if plan.wire == Wire::Chat && plan.dialect.wire == Some(Wire::Responses) {
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
