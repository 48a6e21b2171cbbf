//! Shared by the tests of tools: a temporary workspace, and a call without observers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;

use crate::base::long_text::FoundText;
use crate::base::output::{ToolError, ToolOutput};
use crate::conversation::knowledge::{Ledger, Loaded};
use crate::conversation::{Archive, message::Handle, spill::Spill};
use crate::files::workspace::Workspace;
use crate::safety::{Approval, Approver, PlanReview, PlanSheet, Question, Reach};
use crate::tools::{AskPerson, CallContext, Clocks, Tool};

pub struct Place {
    pub dir: TempDir,
    pub workspace: Workspace,
    pub timeout: Duration,
    pub clocks: Clocks,
    pub max_tokens: usize,
    pub files: Arc<Ledger>,
    pub skills: Loaded,
    pub spill: Arc<Spill>,
}

/// NobodyAsked answers.
pub struct NobodyAsked;

impl AskPerson for NobodyAsked {
    fn ask(&self, _: String, _: Vec<String>) -> BoxFuture<'_, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

/// An empty archive.
pub struct Empty;

impl Archive for Empty {
    fn read(&self, _: Handle) -> std::io::Result<Option<String>> {
        Ok(None)
    }

    fn search(&self, _: &str, _: usize) -> std::io::Result<Vec<FoundText>> {
        Ok(Vec::new())
    }

    fn numbers(&self) -> Vec<u64> {
        Vec::new()
    }
}

impl Place {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let workspace = Workspace::open(dir.path()).expect("it is a directory");
        let timeout = Duration::from_mins(1);
        let clocks = Clocks { most: timeout, idle: None, run: None };
        let (files, skills, spill) = (Arc::default(), Loaded::default(), Arc::default());
        Self { dir, workspace, timeout, clocks, max_tokens: 8000, files, skills, spill }
    }

    /// A workspace with these files.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let place = Self::new();
        for (name, content) in files {
            place.put(name, content);
        }
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("directories can be made");
        std::fs::write(path, content).expect("a file can be written");
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).expect("the file is text")
    }

    /// The reach of a call that was just judged, with nothing denied.
    pub fn reach(&self, tool: &dyn Tool, arguments: &Value) -> Reach {
        let written = tool.reads(arguments).into_iter().chain(tool.writes(arguments)).map(str::to_owned);
        let written =
            written.chain(tool.shell_line(arguments).and_then(|shell| Some(shell.workdir?.into_owned())));
        let judged = written.map(|path| (path.clone(), self.workspace.resolve(&path).path)).collect();
        Reach::new(&self.workspace, judged, Vec::new())
    }

    pub fn call(&self, tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.watched(tool, arguments, &|_| {})
    }

    pub fn watched(
        &self,
        tool: &dyn Tool,
        arguments: Value,
        live: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<ToolOutput, ToolError> {
        block_on(self.called(tool, arguments, live))
    }

    /// Calls that share what runs in the background.
    #[cfg(unix)]
    pub fn one_after_another(&self, calls: Vec<(&dyn Tool, Value)>) -> Vec<Result<ToolOutput, ToolError>> {
        block_on(async {
            let mut outputs = Vec::new();
            for (tool, arguments) in calls {
                outputs.push(self.called(tool, arguments, &|_| {}).await);
            }
            outputs
        })
    }

    async fn called(
        &self,
        tool: &dyn Tool,
        arguments: Value,
        live: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<ToolOutput, ToolError> {
        let reach = Arc::new(self.reach(tool, &arguments));
        let context = CallContext {
            keep: None,
            workspace: &self.workspace,
            reach: &reach,
            files: &self.files,
            skills: &self.skills,
            spill: &self.spill,
            archive: &Empty,
            timeout: tool.time_asked(&arguments).unwrap_or(self.timeout),
            clocks: self.clocks,
            max_tokens: self.max_tokens,
            whole: false,
            live,
            enclosure: crate::safety::Enclosure::Write,
            variables: &[],
            person: &NobodyAsked,
            refused: &|_| {},
            notify: &|_| {},
            superior: &|| unreachable!("no tool of this room begins a run"),
        };
        tool.call(arguments, context).await
    }

    /// The observation of a call that must succeed.
    pub fn read(&self, tool: &dyn Tool, arguments: Value) -> String {
        self.call(tool, arguments).unwrap_or_else(|error| panic!("{error}")).observation
    }

    /// The message of a call that must fail.
    pub fn fail(&self, tool: &dyn Tool, arguments: Value) -> String {
        self.call(tool, arguments).expect_err("the call fails").message
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be built").block_on(future)
}

/// An approver that always gives the same answer, or none.
pub struct SameAnswer {
    pub present: bool,
    pub answer: Option<String>,
}

impl Approver for SameAnswer {
    fn present(&self) -> bool {
        self.present
    }

    fn approve<'a>(&'a self, _question: Question<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async { Approval::Nobody })
    }

    fn review_plan<'a>(&'a self, _sheet: PlanSheet<'a>) -> BoxFuture<'a, PlanReview> {
        Box::pin(std::future::ready(PlanReview::Refuse(String::new())))
    }

    fn answer<'a>(&'a self, _question: &'a str, _choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        Box::pin(async { self.answer.clone() })
    }
}
