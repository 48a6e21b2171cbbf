//! What hooks say: by their exit code, their stderr and a JSON object on stdout, in our words or in those of Claude Code.

use serde::Deserialize;
use serde_json::Value;

use crate::base::text;
use crate::config::HookEvent;
use crate::conversation::HookRun;
use crate::safety::process::Exit;

use super::program::EndedHook;

/// The exit code that denies.
const DENIES: i32 = 2;

/// What the hooks of an event say together.
#[derive(Debug, Default, PartialEq)]
pub struct HookSay {
    /// Why it may not go on.
    pub deny: Option<String>,
    /// Why a person has to be asked.
    pub ask: Option<String>,
    /// The arguments in place of those of the call.
    pub arguments: Option<Value>,
    /// The result in place of that of the call.
    pub result: Option<String>,
    /// Texts for the model.
    pub context: Vec<String>,
    pub report: HookReport,
}

/// The hooks that ran, for those who watch.
#[derive(Debug, Default, PartialEq)]
pub struct HookReport {
    pub runs: Vec<HookRun>,
    /// Those that failed.
    pub warnings: Vec<String>,
}

/// The object that a hook may print.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HookOutput {
    decision: Option<String>,
    reason: Option<String>,
    arguments: Option<Value>,
    result: Option<Value>,
    context: Option<String>,
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    #[serde(rename = "stopReason")]
    stop_reason: Option<String>,
    #[serde(rename = "hookSpecificOutput")]
    specific: SpecificOutput,
}

/// The part that Claude Code has for one event.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecificOutput {
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
    decision: BehaviourOutput,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BehaviourOutput {
    behavior: Option<String>,
    message: Option<String>,
}

impl HookSay {
    /// Adds what one hook did; `translate` puts its arguments into our words. A denial stays, whatever others say.
    pub(super) fn add(
        &mut self,
        mut run: HookRun,
        event: HookEvent,
        ended: Result<EndedHook, String>,
        translate: impl FnOnce(Value) -> Value,
    ) {
        let name = &run.name;
        match ended.and_then(|ended| read_ended(event, &ended)) {
            Err(why) => {
                self.report.warnings.push(format!("the hook `{name}` had no say: {why}"));
                run.error = Some("failed");
            }
            Ok(said) => {
                run.error = said.deny.as_ref().map(|_| "denied");
                let named = |why: String| format!("the hook `{name}` says: {}", why.trim());
                self.deny = self.deny.take().or(said.deny.map(named));
                let asks = self.ask.take().into_iter().chain(said.ask.map(named));
                self.ask = asks.reduce(|first, then| first + "; " + &then);
                self.arguments = said.arguments.map(translate).or(self.arguments.take());
                self.result = said.result.or(self.result.take());
                self.context.extend(said.context);
            }
        }
        self.report.runs.push(run);
    }
}

fn read_ended(event: HookEvent, ended: &EndedHook) -> Result<HookSay, String> {
    let EndedHook { exit, output, errors } = ended;
    match exit {
        Exit::Code(0) => read_output(event, output.trim()),
        Exit::Code(DENIES) => {
            let why = if errors.trim().is_empty() { "no" } else { errors.trim() };
            Ok(HookSay { deny: Some(why.to_owned()), ..HookSay::default() })
        }
        Exit::Code(code) => Err(format!("it ended with {code}: {}", text::one_line(errors.trim(), 200))),
        Exit::Signal(name) => Err(format!("it was ended by {name}")),
    }
}

fn read_output(event: HookEvent, output: &str) -> Result<HookSay, String> {
    if !output.starts_with('{') {
        // Claude Code takes the words of these as context, and shows those of others.
        let is_context = matches!(event, HookEvent::Prompt | HookEvent::SessionStart) && !output.is_empty();
        let context = is_context.then(|| output.to_owned()).into_iter().collect();
        return Ok(HookSay { context, ..HookSay::default() });
    }
    let output: HookOutput =
        serde_json::from_str(output).map_err(|error| format!("what it printed is no JSON object: {error}"))?;
    let SpecificOutput {
        permission_decision,
        permission_decision_reason,
        updated_input,
        additional_context,
        decision,
    } = output.specific;
    let word = permission_decision.or(decision.behavior).or(output.decision).unwrap_or_default();
    let reason = permission_decision_reason.or(decision.message).or(output.reason);
    let stops = output.goes_on == Some(false);
    let reason = reason.or(output.stop_reason.filter(|_| stops)).unwrap_or_else(|| "no".to_owned());
    let arguments = updated_input.or(output.arguments).filter(Value::is_object);
    let is_denied = stops || matches!(word.as_str(), "deny" | "block");
    Ok(HookSay {
        ask: (word == "ask").then(|| reason.clone()),
        deny: is_denied.then_some(reason),
        arguments,
        result: output.result.map(|result| match result {
            Value::String(text) => text,
            other => other.to_string(),
        }),
        context: additional_context.or(output.context).into_iter().collect(),
        report: HookReport::default(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn said(event: HookEvent, code: i32, output: &str, errors: &str) -> HookSay {
        let mut say = HookSay::default();
        let (output, errors) = (output.to_owned(), errors.to_owned());
        let (name, began) = ("h".to_owned(), std::time::SystemTime::UNIX_EPOCH);
        let run = HookRun { name, event: event.names()[0], began, duration: Duration::ZERO, error: None };
        say.add(run, event, Ok(EndedHook { exit: Exit::Code(code), output, errors }), |own| own);
        let [HookRun { error, .. }] = &std::mem::take(&mut say.report.runs)[..] else { panic!("one ran") };
        let expected =
            say.deny.as_ref().map(|_| "denied").or((!say.report.warnings.is_empty()).then_some("failed"));
        assert_eq!(*error, expected);
        say
    }

    #[test]
    fn exit_codes_and_words_of_both_kinds_are_understood() {
        let event = HookEvent::BeforeTool;
        let denied = Some("the hook `h` says: not here".to_owned());
        assert_eq!(said(event, 2, "ignored", "not here\n").deny, denied);
        for output in [
            json!({ "decision": "deny", "reason": "not here" }),
            json!({ "decision": "block", "reason": "not here" }),
            json!({ "continue": false, "stopReason": "not here" }),
            json!({ "hookSpecificOutput": { "permissionDecision": "deny", "permissionDecisionReason": "not here" } }),
            json!({ "hookSpecificOutput": { "decision": { "behavior": "deny", "message": "not here" } } }),
        ] {
            assert_eq!(said(event, 0, &output.to_string(), "").deny, denied, "{output}");
        }
        let asked = said(event, 0, r#"{"decision": "ask", "reason": "sure?"}"#, "");
        assert_eq!((asked.deny, asked.ask), (None, Some("the hook `h` says: sure?".to_owned())));
        let allowed =
            json!({ "hookSpecificOutput": { "permissionDecision": "allow", "updatedInput": { "a": 1 } } });
        let allowed = said(event, 0, &allowed.to_string(), "");
        assert_eq!(
            allowed,
            HookSay { arguments: Some(json!({ "a": 1 })), ..HookSay::default() },
            "it widens nothing"
        );
    }

    #[test]
    fn what_fails_has_no_say() {
        for (code, output) in [(1, ""), (0, "{broken"), (127, "{}")] {
            let say = said(HookEvent::BeforeTool, code, output, "oh");
            assert_eq!((say.deny, say.report.warnings.len()), (None, 1), "{code} {output}");
        }
        assert_eq!(said(HookEvent::Prompt, 0, "remember the milk\n", "").context, ["remember the milk"]);
        assert_eq!(said(HookEvent::AfterTool, 0, "formatted 3 files\n", ""), HookSay::default());
    }
}
