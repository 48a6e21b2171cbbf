//! The values of an assertion, and the check of a run against them. Pure: the answers that two kinds need from a model
//! (the similarity of two texts, a judge's verdict) come in as [`JudgeAnswer`].

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::text;
use crate::base::validator::Validator;
use crate::template::Expression;

use super::lines::{self, ComparedLine};
use super::pattern::RegexPattern;
use super::reply::{AssertionData, RunCall};

/// One kind of assertion with its values.
#[derive(Debug)]
pub(super) enum AssertionCheck {
    Equals(Value),
    Contains { wanted: Vec<String>, any: bool, ignore_case: bool },
    Regex(RegexPattern),
    StartsWith(String),
    Json { schema: Option<Schema>, inside: bool },
    HasField { fields: Vec<String>, wanted: bool },
    FieldIn { field: String, values: Vec<Value> },
    MaxTokens(u64),
    MaxLatency(Duration),
    MaxCost(f64),
    ToolCalled { names: Vec<String>, least: u64, most: Option<u64> },
    ToolArguments { tool: String, wanted: Map<String, Value>, schema: Option<Schema> },
    ToolSequence { names: Vec<String>, exact: bool },
    SkillLoaded(Vec<String>),
    ExitCode(u8),
    Expr(Expression),
    Similar { texts: Vec<String>, threshold: f64 },
    Rubric { rubric: String, model: Option<String> },
}

/// A compiled JSON Schema.
pub(super) struct Schema(pub Validator);

/// The answer of a model to an assertion's question. A recording keeps it in its serde form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeAnswer {
    /// The greatest similarity to one of the wanted texts, from -1 to 1.
    Likeness(f64),
    /// A judge's answer.
    Verdict { pass: bool, reason: String },
    /// There is no answer, for this reason.
    Failed(String),
}

/// A question that a [`JudgeAnswer`] answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JudgeQuestion<'a> {
    /// The similarity of the output to each of these texts.
    Likeness { texts: &'a [String] },
    /// The verdict on the output by the rubric. `model` names the judge if the assertion does.
    Rubric { rubric: &'a str, model: Option<&'a str> },
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CheckResult {
    pub holds: bool,
    /// The fact, as a sentence without a full stop: `the output lacks "x"`.
    pub fact: String,
    /// If two texts were compared, their lines.
    pub diff: Vec<ComparedLine>,
}

impl AssertionCheck {
    /// The question that it asks a model.
    pub fn question(&self) -> Option<JudgeQuestion<'_>> {
        match self {
            Self::Similar { texts, .. } => Some(JudgeQuestion::Likeness { texts }),
            Self::Rubric { rubric, model } => Some(JudgeQuestion::Rubric { rubric, model: model.as_deref() }),
            _ => None,
        }
    }

    /// Checks a run.
    ///
    /// # Errors
    /// The result is unknown: then neither the assertion nor its negation has passed.
    pub fn check_run(
        &self,
        seen: &AssertionData<'_>,
        judged: Option<&JudgeAnswer>,
    ) -> Result<CheckResult, String> {
        let output = seen.output;
        Ok(match self {
            Self::Equals(wanted) => return check_equals(seen, wanted),
            Self::Contains { wanted, any, ignore_case } => check_contains(output, wanted, *any, *ignore_case),
            Self::Regex(pattern) => {
                let holds = pattern.is_in(output);
                let matches = if holds { "matches" } else { "does not match" };
                report_check(holds, format!("the output {matches} the expression: {}", quote_text(output)))
            }
            Self::StartsWith(wanted) => {
                let holds = output.trim_start().starts_with(wanted.as_str());
                report_check(holds, format!("the output starts with {}", quote_text(output)))
            }
            Self::Json { schema, inside: false } => check_json(seen.json(), schema.as_ref()),
            Self::Json { schema, inside: true } => json_inside(output, schema.as_ref()),
            Self::HasField { fields, wanted } => {
                let value = seen.json().map_err(no_json)?;
                let (there, lacking): (Vec<_>, Vec<_>) =
                    fields.iter().map(String::as_str).partition(|name| find_field(value, name).is_some());
                let holds = if *wanted { lacking.is_empty() } else { there.is_empty() };
                let (there, lacking) = (list_names(there), list_names(lacking));
                report_check(holds, format!("fields that are there: {there}; missing: {lacking}"))
            }
            Self::FieldIn { field: name, values } => {
                let value = find_field(seen.json().map_err(no_json)?, name)
                    .ok_or_else(|| format!("the output has no field `{name}`"))?;
                report_check(values.contains(value), format!("`{name}` is {}", show_value(value)))
            }
            Self::MaxTokens(limit) => {
                let tokens = seen.tokens();
                report_check(tokens <= *limit, format!("the text has {tokens} tokens, with a limit of {limit}"))
            }
            Self::MaxLatency(limit) => {
                let took = Duration::from_millis(seen.reply.latency_ms);
                report_check(took <= *limit, format!("the run took {took:?}, with a limit of {limit:?}"))
            }
            Self::MaxCost(limit) => {
                let cost = seen.reply.cost.ok_or("the cost is unknown: the model has no `prices`")?;
                report_check(cost <= *limit, format!("the run cost ${cost:.6}, with a limit of ${limit}"))
            }
            Self::ToolCalled { names, least, most } => tool_called(&seen.reply.calls, names, *least, *most),
            Self::ToolArguments { tool, wanted, schema } => {
                tool_arguments(&seen.reply.calls, tool, wanted, schema.as_ref())
            }
            Self::ToolSequence { names, exact } => tool_sequence(&seen.reply.calls, names, *exact),
            Self::SkillLoaded(names) => {
                let holds = names.iter().all(|name| seen.reply.skills.contains(name));
                let loaded = list_names(seen.reply.skills.iter().map(String::as_str));
                report_check(holds, format!("skills that were loaded: {loaded}"))
            }
            Self::ExitCode(code) => {
                report_check(seen.reply.code == *code, format!("the exit code is {}", seen.reply.code))
            }
            Self::Expr(expression) => {
                let holds = expression.holds(&seen.names())?;
                let source = expression.source();
                report_check(holds, format!("`{source}` is {holds}; the output is {}", quote_text(output)))
            }
            Self::Similar { threshold, .. } => {
                let likeness = match judged {
                    Some(JudgeAnswer::Likeness(likeness)) => likeness,
                    other => return Err(tell_unjudged(other)),
                };
                let fact = format!("the likeness is {likeness:.3}, and {threshold} is asked for");
                report_check(likeness >= threshold, fact)
            }
            Self::Rubric { .. } => match judged {
                Some(JudgeAnswer::Verdict { pass, reason }) => {
                    report_check(*pass, format!("the judge says: {}", text::one_line(reason, LONGEST_SHOWN)))
                }
                other => return Err(tell_unjudged(other)),
            },
        })
    }
}

/// Characters of a text that a sentence quotes.
const LONGEST_SHOWN: usize = 300;

fn report_check(holds: bool, fact: String) -> CheckResult {
    CheckResult { holds, fact, diff: Vec::new() }
}

/// The reason that a question has no answer.
fn tell_unjudged(judged: Option<&JudgeAnswer>) -> String {
    match judged {
        Some(JudgeAnswer::Failed(why)) => why.clone(),
        _ => "nobody has judged this run".to_owned(),
    }
}

fn no_json(why: String) -> String {
    format!("the output is not JSON: {why}")
}

fn check_equals(seen: &AssertionData<'_>, wanted: &Value) -> Result<CheckResult, String> {
    let (expected, actual, holds) = match wanted {
        Value::String(wanted) => {
            let (wanted, output) = (wanted.trim(), seen.output.trim());
            (wanted.to_owned(), output.to_owned(), wanted == output)
        }
        wanted => {
            let value = seen.json().map_err(no_json)?;
            (format_pretty(wanted), format_pretty(value), equals_value(wanted, value))
        }
    };
    let fact = if holds { "the output is just that" } else { "the output differs" };
    let diff = if holds { Vec::new() } else { lines::compare_texts(&expected, &actual) };
    Ok(CheckResult { holds, fact: fact.to_owned(), diff })
}

fn check_contains(output: &str, wanted: &[String], any: bool, ignore_case: bool) -> CheckResult {
    let fold = |text: &str| if ignore_case { text.to_lowercase() } else { text.to_owned() };
    let within = fold(output);
    let (there, lacking): (Vec<&String>, Vec<_>) = wanted.iter().partition(|text| within.contains(&fold(text)));
    let holds = if any { !there.is_empty() } else { lacking.is_empty() };
    let (verb, named) = if holds { ("contains", there) } else { ("lacks", lacking) };
    let named = named.into_iter().map(|text| quote_text(text)).collect::<Vec<_>>().join(", ");
    report_check(holds, format!("the output {verb} {named}; it is {}", quote_text(output)))
}

fn check_json(read: Result<&Value, String>, schema: Option<&Schema>) -> CheckResult {
    match (read, schema) {
        (Err(why), _) => report_check(false, no_json(why)),
        (Ok(_), None) => report_check(true, "the output is JSON".to_owned()),
        (Ok(value), Some(Schema(validator))) => match validator.check("The output does", value) {
            Ok(()) => report_check(true, "the output matches the schema".to_owned()),
            Err(why) => report_check(false, why),
        },
    }
}

/// Finds JSON anywhere in a text, trying one value after another until one fits, at a limited number of places.
fn json_inside(output: &str, schema: Option<&Schema>) -> CheckResult {
    const MOST_TRIED: usize = 100;
    let mut last = report_check(false, "the output contains no JSON".to_owned());
    let (mut rest, mut tried) = (output, 0);
    while let Some(at) = rest.find(['{', '[']).filter(|_| tried < MOST_TRIED) {
        tried += 1;
        let mut values = serde_json::Deserializer::from_str(&rest[at..]).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else {
            rest = &rest[at + 1..];
            continue;
        };
        last = check_json(Ok(&value), schema);
        if last.holds {
            break;
        }
        rest = &rest[at + values.byte_offset()..];
    }
    last
}

/// The value at `a.b[0].c`, or under a key of exactly that name.
fn find_field<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if let Some(found) = value.get(path) {
        return Some(found);
    }
    let path = path.replace('[', ".").replace(']', "");
    path.split('.').try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

fn tool_called(calls: &[RunCall], names: &[String], least: u64, most: Option<u64>) -> CheckResult {
    let count = |name: &str| calls.iter().filter(|call| call.name == name).count() as u64;
    let holds = names.iter().map(|name| count(name)).all(|n| n >= least && most.is_none_or(|most| n <= most));
    report_check(holds, list_calls(calls))
}

fn tool_arguments(
    calls: &[RunCall],
    tool: &str,
    wanted: &Map<String, Value>,
    schema: Option<&Schema>,
) -> CheckResult {
    let mut why = format!("{}; none of `{tool}`", list_calls(calls));
    for call in calls.iter().filter(|call| call.name == tool) {
        let other = wanted
            .iter()
            .find(|(name, value)| !call.arguments.get(*name).is_some_and(|v| includes_value(value, v)));
        let mistake = schema.and_then(|Schema(schema)| schema.check("The arguments do", &call.arguments).err());
        why = match (other, mistake) {
            (None, None) => {
                return report_check(true, format!("`{tool}` was called with {}", show_value(&call.arguments)));
            }
            (Some((name, _)), _) => {
                let given = call.arguments.get(name).map_or("missing".to_owned(), show_value);
                format!("`{tool}` was called, but `{name}` is {given}")
            }
            (None, Some(mistake)) => mistake,
        };
    }
    report_check(false, why)
}

fn tool_sequence(calls: &[RunCall], names: &[String], exact: bool) -> CheckResult {
    let mut made = calls.iter().map(|call| &call.name);
    let holds = if exact { made.eq(names) } else { names.iter().all(|name| made.any(|call| call == name)) };
    report_check(holds, list_calls(calls))
}

fn list_calls(calls: &[RunCall]) -> String {
    let names = list_names(calls.iter().map(|call| call.name.as_str()));
    format!("tools that were called: {}", text::one_line(&names, LONGEST_SHOWN))
}

fn list_names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    if names.is_empty() { "none".to_owned() } else { names }
}

/// True if two values are the same, `1` and `1.0` included.
fn equals_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equals_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equals_value(a, b)))
        }
        (a, b) => a == b,
    }
}

/// True if a value includes the wanted one: an object may have further keys.
fn includes_value(wanted: &Value, value: &Value) -> bool {
    match (wanted, value) {
        (Value::Object(wanted), Value::Object(value)) => {
            wanted.iter().all(|(key, wanted)| value.get(key).is_some_and(|value| includes_value(wanted, value)))
        }
        (wanted, value) => equals_value(wanted, value),
    }
}

fn format_pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn show_value(value: &Value) -> String {
    text::one_line(&value.to_string(), LONGEST_SHOWN)
}

fn quote_text(text: &str) -> String {
    // Only the beginning is read: an output may have megabytes.
    format!("\"{}\"", text::one_line(text::take_head(text, 4 * LONGEST_SHOWN), LONGEST_SHOWN))
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schema")
    }
}
