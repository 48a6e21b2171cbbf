//! Hooks: commands of the configuration that run at events of a run, and may have their say.
//!
//! They only narrow: a hook denies, has a person asked, replaces arguments (which are judged anew) or a result, or adds text.
//! It allows nothing. One that fails, or takes too long, has no say, and a warning names it.

mod program;
mod say;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::base::secrets::Redactor;
use crate::base::text::GlobPattern;
use crate::config::{HookConfig, HookEvent, HookSpeech, peer_tools};
use crate::conversation::HookRun;
use crate::conversation::export::write_for_peer;
use crate::conversation::session::Session;
use crate::safety::sandbox::Sandbox;
use crate::tools::Environment;

pub use say::{HookReport, HookSay};

/// The hooks of an agent.
#[derive(Default)]
pub struct Hooks {
    all: Vec<ReadyHook>,
    ground: Option<HookGround>,
}

/// What all hooks of an agent run with.
pub struct HookGround {
    pub env: Environment,
    /// The walls of commands; `None` if there are none.
    pub sandbox: Option<Arc<Sandbox>>,
    pub workspace: PathBuf,
    /// Masks secrets in what hooks read.
    pub redactor: Arc<Redactor>,
}

/// A hook with its patterns.
struct ReadyHook {
    config: HookConfig,
    /// `None` for every tool.
    tools: Option<Vec<GlobPattern>>,
    path: Option<GlobPattern>,
}

/// The call that an event is about.
#[derive(Debug, Clone, Copy)]
pub struct HookCall<'a> {
    pub tool: &'a str,
    /// The files that it names, as it names them.
    pub paths: &'a [String],
}

impl Hooks {
    /// The enabled ones of these hooks, in the order of their names.
    pub fn new<'c>(hooks: impl Iterator<Item = &'c HookConfig>, ground: impl FnOnce() -> HookGround) -> Self {
        let ready = |hook: &HookConfig| ReadyHook {
            // The patterns were checked when the file was read.
            tools: hook.compile_tools().unwrap_or_default(),
            path: hook.matches.path.as_deref().and_then(|path| GlobPattern::path(path).ok()),
            config: hook.clone(),
        };
        let all: Vec<ReadyHook> = hooks.filter(|hook| hook.enabled).map(ready).collect();
        let ground = (!all.is_empty()).then(ground);
        Self { all, ground }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// True if a hook runs at one of these events of a call.
    pub fn concern(&self, events: &[HookEvent], call: HookCall<'_>) -> bool {
        events.iter().any(|event| self.find(*event, Some(call)).next().is_some())
    }

    /// Runs the hooks of an event of a conversation side by side. `facts` are an object with what it is about. Hooks of Claude
    /// Code get the conversation as a file as well.
    pub async fn run_in(&self, event: HookEvent, session: &Session, mut facts: Value) -> HookSay {
        let is_meant = |hook: &ReadyHook| hook.config.speaks == HookSpeech::Claude;
        facts["session_id"] = session.id().into();
        let transcript = self.find(event, None).any(is_meant).then(|| {
            let items = session.originals().unwrap_or_default();
            let dir = self.ground.as_ref().map(|ground| ground.workspace.to_string_lossy()).unwrap_or_default();
            write_for_peer(session.id(), &dir, &items)
        });
        let transcript = transcript.zip(self.ground.as_ref());
        let transcript = transcript.map(|(text, ground)| ground.redactor.redact(&text).into_owned());
        self.run_all(event, None, facts, transcript.as_deref()).await
    }

    /// Runs the hooks of an event side by side. `facts` are an object with what it is about.
    pub async fn run(&self, event: HookEvent, call: Option<HookCall<'_>>, facts: Value) -> HookSay {
        self.run_all(event, call, facts, None).await
    }

    async fn run_all(
        &self,
        event: HookEvent,
        call: Option<HookCall<'_>>,
        facts: Value,
        transcript: Option<&str>,
    ) -> HookSay {
        let Some(ground) = &self.ground else { return HookSay::default() };
        let meant: Vec<&ReadyHook> = self.find(event, call).collect();
        if meant.is_empty() {
            return HookSay::default();
        }
        let mut input = describe_event(event, ground, facts);
        ground.redactor.redact_value(&mut input);
        let tool = call.map(|call| call.tool);
        let said = join_all(meant.iter().map(|hook| async {
            let input = hook.translate_input(tool, &input);
            let transcript = transcript.filter(|_| hook.config.speaks == HookSpeech::Claude);
            let (began, clock) = (SystemTime::now(), Instant::now());
            let mut ended = program::run_hook(&hook.config, ground, &input, transcript).await;
            if let Ok(ended) = &mut ended {
                // Of a secret that was cut, a part would stay.
                ended.errors = ground.redactor.redact(&ended.errors).into_owned();
            }
            let (name, event) = (hook.config.name.clone(), event.names()[0]);
            (HookRun { name, event, began, duration: clock.elapsed(), error: None }, ended)
        }))
        .await;
        let mut all = HookSay::default();
        for (hook, (run, ended)) in meant.iter().zip(said) {
            all.add(run, event, ended, |own| hook.translate_arguments(tool, own));
        }
        all
    }

    fn find<'h>(&'h self, event: HookEvent, call: Option<HookCall<'h>>) -> impl Iterator<Item = &'h ReadyHook> {
        self.all.iter().filter(move |hook| hook.config.on == event && call.is_none_or(|call| hook.meets(call)))
    }
}

impl ReadyHook {
    /// What it reads, with the names that it knows.
    fn translate_input<'v>(&self, tool: Option<&str>, input: &'v Value) -> Cow<'v, Value> {
        let Some(tool) = tool.filter(|_| self.config.speaks == HookSpeech::Claude) else {
            return Cow::Borrowed(input);
        };
        let mut input = input.clone();
        input["tool_name"] = peer_tools::name_for_peer(tool).into();
        let arguments = input["tool_input"].take();
        input["tool_input"] = peer_tools::arguments_for_peer(tool, arguments);
        Cow::Owned(input)
    }

    /// The arguments that it gave, with our names.
    fn translate_arguments(&self, tool: Option<&str>, arguments: Value) -> Value {
        match tool.filter(|_| self.config.speaks == HookSpeech::Claude) {
            Some(tool) => peer_tools::arguments_from_peer(tool, arguments),
            None => arguments,
        }
    }

    fn meets(&self, call: HookCall<'_>) -> bool {
        let is_tool = self.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool.matches(call.tool)));
        let is_path = |path: &GlobPattern| call.paths.iter().any(|named| path.matches(named));
        is_tool && self.path.as_ref().is_none_or(is_path)
    }
}

/// The object that a hook reads, with the names that hooks of Claude Code know.
fn describe_event(event: HookEvent, ground: &HookGround, facts: Value) -> Value {
    let [name, other] = event.names();
    let mut object = json!({
        "event": name,
        "hook_event_name": other,
        "cwd": ground.workspace.to_string_lossy(),
    });
    if let (Value::Object(object), Value::Object(facts)) = (&mut object, facts) {
        object.extend(facts);
    }
    object
}
