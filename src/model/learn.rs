//! Learns from the refusals of a server: a part of the request that it does not know is left out or replaced by the
//! nearest one, and the plan is changed for all later requests. Pure; which words mean what is in `errors/table.rs`.

use serde_json::Value;

use super::anthropic::Thinking;
use super::chat::{AnswerFormat, Echo, EffortField, OutputField};
use super::dialect::Dialect;
use super::effort::Effort;
use super::errors::{self, RefusalSubject, Remedy};
use super::gemini::GeminiThinking;
use super::plan::RequestPlan;
use super::responses::SystemIn;
use crate::config::Wire;
use crate::model::{ModelError, ModelErrorKind, ToolDefinition};

/// A better plan.
#[derive(Debug)]
pub struct Lesson {
    pub plan: RequestPlan,
    /// One line for a person.
    pub notice: String,
}

/// Returns the lesson of the refusal of a request by `plan` with these tools; `None` if nothing can be left out.
pub fn learn_lesson(plan: &RequestPlan, error: &ModelError, tools: &[ToolDefinition]) -> Option<Lesson> {
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
    let by_remedy = || {
        errors::list_subjects(error.status, &words).find_map(|subject| {
            let RefusalSubject::Request(remedy, about) = subject else { return None };
            let mut plan = plan.clone();
            let done = apply_remedy(remedy, &mut plan, &words, tools)?;
            Some(Lesson { plan, notice: format!("{} {about}: {done}", error.model) })
        })
    };
    // A remedy knows its field better; one for `reasoning` must not answer for `reasoning_split`.
    let leave_out = |is_known| leave_out_field(plan, error, &words, is_known);
    leave_out(false).or_else(by_remedy).or_else(|| leave_out(true))
}

/// The fields that a wire adds itself, and without which a request means the same.
const OPTIONAL: [&str; 2] = ["truncate", "shift"];

/// Leaves out a field that the dialect, the model file or the wire added and the refusal names: one that a remedy is
/// about, or one that none knows.
fn leave_out_field(plan: &RequestPlan, error: &ModelError, words: &str, is_known: bool) -> Option<Lesson> {
    let is_left_out = |name: &str| plan.settings.extra.get(name).is_some_and(Value::is_null);
    let added = plan.settings.extra.keys().map(String::as_str).chain(OPTIONAL);
    let mut fields = added.filter(|name| !is_left_out(name) && errors::knows_field(name) == is_known);
    let name = fields.find(|name| errors::refuses(words) && names(words, name))?.to_owned();
    let mut left = plan.clone();
    let was_added = left.settings.extra.shift_remove(&name).is_some();
    if !was_added {
        left.settings.extra.insert(name.clone(), Value::Null);
    }
    Some(Lesson { plan: left, notice: format!("{} does not take {name}: it is not sent", error.model) })
}

/// True if a field's name is a whole word of a refusal.
fn names(words: &str, field: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // Some servers name a field in the spelling of their own language.
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    words.split(|c| !is_part(c)).any(|word| word == field || plain(word) == plain(field))
}

/// Makes a change and returns it in words; `None` if the plan already has it.
fn apply_remedy(remedy: Remedy, plan: &mut RequestPlan, words: &str, tools: &[ToolDefinition]) -> Option<String> {
    let wire = plan.wire;
    let Dialect { chat, responses, anthropic, gemini, .. } = &mut plan.dialect;
    match remedy {
        Remedy::Signatures if words.contains("not supported") && wire == Wire::Responses => {
            change_field(&mut responses.encrypted_include, false, "none is asked for")
        }
        Remedy::Signatures if words.contains("missing") && !chat.stand_in_signature && wire == Wire::Chat => {
            change_field(
                &mut chat.stand_in_signature,
                true,
                "calls of other models get a stand-in for a signature",
            )
        }
        Remedy::Signatures if words.contains("missing") && !gemini.stand_in_signature && wire == Wire::Gemini => {
            change_field(
                &mut gemini.stand_in_signature,
                true,
                "calls of other models get a stand-in for a signature",
            )
        }
        Remedy::Signatures | Remedy::StopEcho => {
            change_field(&mut plan.echoes_reasoning, false, "it is not sent back any more")
        }
        Remedy::Instructions => {
            let next = match responses.system_in {
                SystemIn::Instructions => SystemIn::Developer,
                SystemIn::Developer | SystemIn::System => SystemIn::System,
            };
            (wire == Wire::Responses).then_some(())?;
            change_field(&mut responses.system_in, next, "the prompt is sent as a message")
        }
        Remedy::ToResponses => to_responses(plan, words),
        Remedy::EchoAlways if wire == Wire::Anthropic => {
            change_field(&mut anthropic.empty_signature_ok, true, "it is sent back unsigned too")
        }
        Remedy::EchoAlways => change_field(&mut chat.echo, Echo::Always, "it is sent with every call"),
        Remedy::Betas => {
            turn_off([&mut anthropic.interleaved_beta, &mut anthropic.binding_controls], "none is asked for")
        }
        Remedy::OutputLimit => lower_output(plan, words),
        Remedy::ThinkingType => {
            (wire == Wire::Anthropic).then_some(())?;
            let to = match anthropic.thinking {
                Thinking::Budget => Thinking::Adaptive,
                _ if words.contains("adaptive") && words.contains("support") => Thinking::Budget,
                _ => Thinking::Off,
            };
            change_field(&mut anthropic.thinking, to, "it is asked for so")
        }
        Remedy::EffortField => change_field(&mut anthropic.effort_field, false, "none is sent"),
        Remedy::EagerStream => change_field(&mut anthropic.eager_stream, false, "it is not asked to"),
        Remedy::ThinkingDisplay => change_field(&mut anthropic.thinking_display, false, "it is not sent"),
        Remedy::ParallelSwitch => change_field(&mut anthropic.parallel_switch, false, "it is not sent"),
        Remedy::ToolChoice => {
            let known = match wire {
                Wire::Chat => &mut chat.choice_none,
                Wire::Responses => &mut responses.choice_none,
                Wire::Anthropic => &mut anthropic.choice_none,
                Wire::Gemini => &mut gemini.choice_none,
                Wire::Ollama => return None,
            };
            change_field(known, false, "the choice is left open")
        }
        Remedy::UserAfterResults => {
            change_field(&mut chat.user_after_results, false, "they are added to the last result")
        }
        Remedy::Blind => change_field(&mut plan.sees, false, "pictures become notes"),
        Remedy::StreamOptions => {
            turn_off([&mut chat.stream_options, &mut responses.padding_off], "it is not sent")
        }
        Remedy::NotMaxTokens => swap_output(plan, OutputField::MaxTokens, OutputField::MaxCompletionTokens),
        Remedy::NotMaxCompletionTokens => {
            swap_output(plan, OutputField::MaxCompletionTokens, OutputField::MaxTokens)
        }
        Remedy::ParallelField => {
            turn_off([&mut chat.parallel_field, &mut responses.parallel_field], "it is not sent")
        }
        Remedy::Temperature => plan.settings.temperature.take().map(|_| "the provider's own is used".to_owned()),
        Remedy::Summaries => change_field(&mut responses.summary, false, "none are asked for"),
        Remedy::EncryptedReasoning => {
            (wire == Wire::Responses).then_some(())?;
            change_field(&mut responses.encrypted_include, false, "none is asked for")
        }
        Remedy::Effort => lower_effort(plan, words),
        Remedy::AnswerFormat => loosen_answer(plan),
        Remedy::StrictTools => {
            responses.strict &= wire == Wire::Responses;
            turn_off([&mut plan.settings.strict_tools, &mut responses.strict], "tools are declared without it")
        }
        Remedy::LooserSchemas => turn_off([&mut plan.settings.strict_tools], "tools are declared without strict")
            .or_else(|| turn_off([&mut anthropic.answer_format], "the answer is checked here alone")),
        Remedy::RefusedTool => leave_out_tool(plan, words, tools),
        Remedy::CacheKey => turn_off([&mut chat.cache_key, &mut responses.cache_key], "it is not sent"),
        Remedy::CacheMarks => turn_off([&mut chat.cache_marks, &mut anthropic.cache_marks], "none are set"),
    }
}

/// Leaves out the tool that a refusal names, or at whose place it points: the others must not suffer for its schema.
fn leave_out_tool(plan: &mut RequestPlan, words: &str, tools: &[ToolDefinition]) -> Option<String> {
    let sent: Vec<&str> = tools.iter().map(|tool| &*tool.name).filter(|name| !plan.leaves_out(name)).collect();
    let is_named = |name: &&&str| {
        let name = name.to_ascii_lowercase();
        ['\'', '"', '`'].iter().any(|quote| words.contains(&format!("{quote}{name}{quote}")))
    };
    let by_place = || {
        let places = ["function_declarations[", "tools.", "tools["];
        let after = places.iter().find_map(|place| words.split_once(place))?.1;
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        sent.get(after[..digits].parse::<usize>().ok()?)
    };
    let name = (*sent.iter().find(is_named).or_else(by_place)?).to_owned();
    let done = format!("{name} is not offered to it");
    plan.refused_tools.insert(name);
    Some(done)
}

/// Asks for no reply that is longer than the most that a refusal names.
fn lower_output(plan: &mut RequestPlan, words: &str) -> Option<String> {
    let (_, after) = words.split_once('>').or_else(|| words.split_once("at most"))?;
    let most = after.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty())?;
    let most: u64 = most.parse().ok()?;
    let settings = &mut plan.settings;
    settings.max_output_tokens = settings.max_output_tokens.map(|asked| asked.min(most));
    settings.accepted_output_tokens = Some(most);
    change_field(&mut settings.most_output_tokens, Some(most), &format!("{most} tokens at most are asked for"))
}

/// Asks for an answer in a weaker form, or leaves the check to this program.
fn loosen_answer(plan: &mut RequestPlan) -> Option<String> {
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
}

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
