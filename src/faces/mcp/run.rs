//! One run that a client asks for: its arguments, what it tells of its progress, and its result.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::person::ClientPerson;
use crate::agent::assembly::{self, RunOptions, SessionChoice};
use crate::agent::{Cancel, Emitter, Run, RunInput, end_session, run_input};
use crate::base::text;
use crate::config::{ApprovalMode, Config, SettingFlag};
use crate::conversation::EventSink;
use crate::conversation::event::{Event, EventKind};
use crate::conversation::message::UserText;
use crate::faces::collector::CollectorExport;
use crate::faces::serving::{ClientAdditions, ServingError, ServingSetup};
use crate::files::workspace::Workspace;
use crate::tools::{McpCallNews, McpResult};

/// The longest line about progress, in columns.
const LINE: usize = 200;
const MODEL_ADVICE: &str = "`agent init` asks for one, `agent key set` keeps a key";

/// What a client asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// The message.
    pub task: String,
    /// The session that goes on.
    pub session: Option<String>,
    pub workspace: Option<PathBuf>,
    pub approve: Option<String>,
    pub agent: Option<String>,
    pub model: Option<String>,
}

impl RunRequest {
    /// Reads the arguments of the tool `run`, or of `continue`.
    ///
    /// # Errors
    /// A sentence.
    pub fn read(name: &str, mut arguments: Map<String, Value>) -> Result<Self, String> {
        let goes_on = match name {
            "run" => false,
            "continue" => true,
            other => return Err(format!("there is no tool `{}`: run, continue", text::one_line(other, 60))),
        };
        if goes_on && let Some(message) = arguments.remove("message") {
            arguments.insert("task".to_owned(), message);
        }
        let request: Self =
            serde_json::from_value(Value::Object(arguments)).map_err(|error| format!("{name}: {error}"))?;
        if request.session.is_some() != goes_on {
            return Err(format!("{name}: `session` is the session that `continue` goes on with"));
        }
        if request.task.trim().is_empty() {
            return Err(format!("{name}: the task is empty"));
        }
        Ok(request)
    }
}

/// Carries out a run in a directory at or below `root`, and tells what happens in it. It ends when nobody listens any more, or when
/// `end` is triggered.
pub async fn carry_out(
    setup: Arc<ServingSetup>,
    root: PathBuf,
    request: RunRequest,
    can_ask: bool,
    news: UnboundedSender<McpCallNews>,
    end: Cancel,
) {
    let cancel = Cancel::default();
    let done = {
        let mut running = std::pin::pin!(try_run(&setup, root, request, can_ask, &news, &cancel));
        let ended = async {
            tokio::select! { () = news.closed() => {} () = end.triggered() => {} }
        };
        tokio::select! {
            done = &mut running => done,
            () = ended => {
                cancel.trigger();
                running.await
            }
        }
    };
    let result = done.unwrap_or_else(|why| McpResult { text: why, data: Value::Null, has_failed: true });
    // The client may have gone meanwhile.
    let _ = news.send(McpCallNews::Ended(result));
}

async fn try_run(
    setup: &ServingSetup,
    root: PathBuf,
    request: RunRequest,
    can_ask: bool,
    news: &UnboundedSender<McpCallNews>,
    cancel: &Cancel,
) -> Result<McpResult, String> {
    let dir = choose_dir(&root, request.workspace.as_deref())?;
    for (option, given, asked) in
        [("-a", &setup.options.agent, &request.agent), ("-m", &setup.options.model, &request.model)]
    {
        if let (Some(given), Some(asked)) = (given, asked)
            && given != asked
        {
            let asked = text::one_line(asked, 60);
            return Err(format!("the server was started with {option} {given}: a client does not choose {asked}"));
        }
    }
    let options = RunOptions {
        agent: request.agent.clone().or_else(|| setup.options.agent.clone()),
        model: request.model.clone().or_else(|| setup.options.model.clone()),
        ..setup.options.clone()
    };
    let (workspace, config) = load_narrowed(setup, &dir, &request)?;
    setup.check_model(&config, MODEL_ADVICE).map_err(ServingError::into_message)?;
    let person = ClientPerson { news: news.clone(), can_ask };
    let services = assembly::assemble_services(&config, &workspace, &options, Arc::new(person));
    let services = services.map_err(|error| error.message)?;
    let choice = request.session.map_or(SessionChoice::New, SessionChoice::Id);
    let store = assembly::open_store(&config);
    if let SessionChoice::Id(id) = &choice {
        let summary = store.summarize(id).map_err(|error| error.to_string())?;
        // What belongs to another workspace is none of the client's business.
        if !Path::new(&summary.workspace).starts_with(&root) {
            return Err(format!("no session `{}` is of {}", text::one_line(id, 60), root.display()));
        }
    }
    let opened = assembly::open_conversation(&store, &workspace, &choice, &services.agent);
    let opened = opened.map_err(|error| error.message)?;
    let mut conversation = opened.conversation;
    if conversation.session.find_copy().is_some() {
        return Err("this session is a trial in a copy of the workspace: `agent session apply` or `discard` \
                    ends it"
            .to_owned());
    }
    let completed = Arc::new(Mutex::new(Value::Null));
    let sink = NewsSink { news: news.clone(), completed: Arc::clone(&completed) };
    let id = conversation.session.id().to_owned();
    let export = CollectorExport::open(&config).map_err(|error| error.message)?;
    let mut run = Run::new(Emitter::new(id, assembly::new_run_id(), export.attach(Box::new(sink))));
    let input = RunInput {
        said: Some(UserText::by_person(request.task)),
        warnings: services.warnings.into_iter().chain(opened.warnings).collect(),
        ..RunInput::default()
    };
    let end = run_input(&services.agent, &mut conversation, &mut run, input, cancel).await;
    let end = end.map_err(|ending| ending.reason)?;
    run.emitter.note_hooks(&end_session(&services.agent, &conversation, "exit").await.runs);
    // Nobody reads what was not exported.
    let _ = tokio::task::spawn_blocking(|| export.close()).await;
    let data = completed.lock().expect("no holder of the event panics").take();
    let has_failed = end.ending.code != 0;
    let text = match (has_failed, end.answer.is_empty()) {
        (false, _) => end.answer,
        (true, true) => end.ending.reason,
        (true, false) => format!("{}\n\n{}", end.answer, end.ending.reason),
    };
    Ok(McpResult { text, data, has_failed })
}

/// The directory of a run: at or below the one that is served.
fn choose_dir(root: &Path, asked: Option<&Path>) -> Result<PathBuf, String> {
    let Some(asked) = asked else { return Ok(root.to_path_buf()) };
    let dir = root.join(asked);
    let dir =
        crate::files::canonicalize(&dir).map_err(|error| format!("cannot work in {}: {error}", dir.display()))?;
    if dir.starts_with(root) {
        Ok(dir)
    } else {
        Err(format!("{} is outside of {}, which alone is served", dir.display(), root.display()))
    }
}

/// The configuration of a directory, with an approval that is at most that of who started the server.
fn load_narrowed(
    setup: &ServingSetup,
    dir: &Path,
    request: &RunRequest,
) -> Result<(Workspace, Arc<Config>), String> {
    let agent = request.agent.clone().or_else(|| setup.options.agent.clone());
    let flags = setup.flags.clone().of_agent(agent.clone());
    let (workspace, config) =
        setup.load_with(dir, &ClientAdditions::default(), flags.clone()).map_err(ServingError::into_message)?;
    let approval_of = |name: Option<&String>| {
        let name = name.unwrap_or(&config.settings.default_agent);
        config.agents.get(name).map_or(ApprovalMode::Ask, |agent| agent.approval)
    };
    let (most, its) = (approval_of(setup.options.agent.as_ref()), approval_of(agent.as_ref()));
    let asked = request.approve.as_ref().map(|asked| {
        ApprovalMode::find(asked).ok_or_else(|| {
            let known = ApprovalMode::STRICTEST_FIRST.join(", ");
            format!("`{}` is no way of approving: {known}", text::one_line(asked, 60))
        })
    });
    // Another agent approves no more than that of who started the server.
    let mode = match asked.transpose()? {
        Some(mode) if !mode.is_within(most) => {
            return Err(format!("`approve` may only narrow what the server was started with: {}", most.name()));
        }
        Some(mode) if mode.is_within(its) => mode,
        None if its.is_within(most) => return Ok((workspace, config)),
        Some(_) => its,
        None => most,
    };
    let flags = flags.with(SettingFlag::Approve, Some(mode.name().to_owned()));
    setup.load_with(dir, &ClientAdditions::default(), flags).map_err(ServingError::into_message)
}

/// Tells a client how far a run is, and keeps its last event, which is its result as data.
struct NewsSink {
    news: UnboundedSender<McpCallNews>,
    completed: Arc<Mutex<Value>>,
}

impl EventSink for NewsSink {
    fn emit(&mut self, event: &Event) -> io::Result<()> {
        let message = match &event.kind {
            EventKind::ToolStarted { name, subject, .. } => format!("{name} {subject}"),
            EventKind::Warning { message } => format!("Warning: {message}"),
            EventKind::StepStarted(step) => format!("step {}: {}", step.step_id, step.description),
            EventKind::RunCompleted(_) if event.path.is_empty() => {
                *self.completed.lock().expect("no holder of the event panics") = json!(event);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let told = text::one_line(&text::make_visible(&message), LINE);
        // Without a client the run is ending already.
        let _ = self.news.send(McpCallNews::Progress(told));
        Ok(())
    }
}
