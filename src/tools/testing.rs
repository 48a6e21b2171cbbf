//! What the tests of tools share: a workspace that is thrown away, and a call with nobody watching.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;

use crate::contract::{Approval, Approver, CallContext, Clocks, Question, Tool};
use crate::output::{ToolError, ToolOutput};
use crate::workspace::Workspace;

pub struct Place {
    pub dir: TempDir,
    pub workspace: Workspace,
    pub timeout: Duration,
    pub clocks: Clocks,
    pub max_tokens: usize,
}

impl Place {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let workspace = Workspace::open(dir.path()).expect("it is a directory");
        let timeout = Duration::from_mins(1);
        let clocks = Clocks { most: timeout, idle: None, run: None };
        Self { dir, workspace, timeout, clocks, max_tokens: 8000 }
    }

    /// A workspace that holds these files.
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

    pub fn call(&self, tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.watched(tool, arguments, &|_| {})
    }

    pub fn watched(
        &self,
        tool: &dyn Tool,
        arguments: Value,
        live: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<ToolOutput, ToolError> {
        let context = CallContext {
            keep: None,
            workspace: &self.workspace,
            timeout: tool.time_asked(&arguments).unwrap_or(self.timeout),
            clocks: self.clocks,
            max_tokens: self.max_tokens,
            live,
            unconfined: false,
            refused: &|| {},
            spent: &|_| {},
            notify: &|_| {},
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be built").block_on(tool.call(arguments, context))
    }

    /// What the model reads of a call that has to succeed.
    pub fn read(&self, tool: &dyn Tool, arguments: Value) -> String {
        self.call(tool, arguments).unwrap_or_else(|error| panic!("{error}")).observation
    }

    /// What the model reads of a call that has to fail.
    pub fn fail(&self, tool: &dyn Tool, arguments: Value) -> String {
        self.call(tool, arguments).expect_err("the call fails").message
    }
}

/// Somebody who always says the same, or nobody.
pub struct Nobody {
    pub present: bool,
    pub answer: Option<String>,
}

impl Approver for Nobody {
    fn present(&self) -> bool {
        self.present
    }

    fn approve<'a>(&'a self, _question: Question<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async { Approval::Nobody })
    }

    fn answer<'a>(&'a self, _question: &'a str, _choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        Box::pin(async { self.answer.clone() })
    }
}
