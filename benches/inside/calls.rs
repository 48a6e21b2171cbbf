//! The cost of a call besides its tool, and searches compared with `rg`.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use agent::facade::agent::{Agent, Cancel, Conversation, Emitter, Run, ToolTerms, call_by_hand};
use agent::facade::base::{ToolError, ToolOutput};
use agent::facade::config::Permission;
use agent::facade::conversation::EventSink;
use agent::facade::conversation::event::Event;
use agent::facade::conversation::session::Session;
use agent::facade::files::workspace::Workspace;
use agent::facade::model::ToolDefinition;
use agent::facade::tools::{CallContext, Tool};
use divan::{Bencher, black_box};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{NOON, about, configuration, runtime, services};

/// The cost of a call besides its tool: read, checked, judged, run, measured, presented, recorded. Bar: 100 µs.
#[divan::bench]
fn call_overhead(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().expect("a directory");
    let workspace = Workspace::open(dir.path()).expect("a directory");
    let mut agent = services(&configuration(&workspace), &workspace).agent;
    agent.tools.register(Arc::new(Nothing::new()), ToolTerms::default());
    call(bencher, &agent, "nothing", json!({ "text": "a few words" }));
}

/// Calls a tool as a turn does, in a conversation that is kept in memory alone.
fn call(bencher: Bencher<'_, '_>, agent: &Agent, name: &str, arguments: Value) {
    let (runtime, cancel) = (runtime(), Cancel::default());
    let mut run = Run::new(Emitter::new("session".to_owned(), "run".to_owned(), Box::new(Unseen)));
    let conversation = || Conversation::new(Session::ephemeral(about(agent.workspace.root()), NOON), NOON);
    bencher.with_inputs(conversation).bench_local_values(|mut conversation| {
        let called = call_by_hand(agent, &mut conversation, &mut run, name, &arguments, &cancel);
        let called = runtime.block_on(called).expect("nothing ends the call");
        assert!(called.end.is_done(), "{}", called.content);
        conversation
    });
}

/// A tool that does nothing.
struct Nothing(ToolDefinition);

impl Nothing {
    fn new() -> Self {
        let properties = json!({ "text": { "type": "string" } });
        Self(ToolDefinition {
            name: "nothing".to_owned(),
            description: "Does nothing. Returns as much.".to_owned(),
            parameters: json!({ "type": "object", "properties": properties, "additionalProperties": false })
                .into(),
            permission: Permission::Read,
            default: true,
            ..ToolDefinition::default()
        })
    }
}

impl Tool for Nothing {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn subject(&self, _: &Value) -> String {
        String::new()
    }

    fn call<'a>(&'a self, _: Value, _: CallContext<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput { observation: "nothing".to_owned(), ..ToolOutput::default() }) })
    }
}

/// A sink that nobody watches.
struct Unseen;

impl EventSink for Unseen {
    fn emit(&mut self, event: &Event) -> std::io::Result<()> {
        black_box(event);
        Ok(())
    }
}

// ------------------------------------------------------------------------------------------------ a search

/// 50,000 files of 2 KB in 500 directories; one in a thousand holds the needle. Bar: 1.2 times what `rg` takes, as a
/// whole process; medians were 0.8 of it on two quiet cores, and up to 1.2 on busy ones.
static TREE: OnceLock<TempDir> = OnceLock::new();

#[divan::bench(sample_count = 10, sample_size = 1)]
fn search_grep(bencher: Bencher<'_, '_>) {
    search(bencher, "grep", json!({ "pattern": "needle_[0-9]+" }));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn search_grep_by_rg(bencher: Bencher<'_, '_>) {
    ripgrep(bencher, &["--line-number", "needle_[0-9]+"]);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn search_glob(bencher: Bencher<'_, '_>) {
    search(bencher, "glob", json!({ "pattern": "*7.rs" }));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn search_glob_by_rg(bencher: Bencher<'_, '_>) {
    ripgrep(bencher, &["--files", "-g", "*7.rs"]);
}

/// Statics are not dropped.
pub fn remove_tree() {
    if let Some(tree) = TREE.get() {
        std::fs::remove_dir_all(tree.path()).expect("a directory of ours");
    }
}

fn search(bencher: Bencher<'_, '_>, tool: &str, arguments: Value) {
    let workspace = Workspace::open(tree()).expect("a directory");
    call(bencher, &services(&configuration(&workspace), &workspace).agent, tool, arguments);
}

/// The whole process, where it is installed.
fn ripgrep(bencher: Bencher<'_, '_>, arguments: &[&str]) {
    let dir = tree();
    let run =
        || Command::new("rg").args(arguments).args(["--hidden", "--no-require-git"]).current_dir(dir).output();
    if run().is_ok() {
        bencher.bench_local(|| run().expect("rg was there before"));
    }
}

fn tree() -> &'static Path {
    let tree = TREE.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let text = "fn ordinary(line: usize) -> usize { line + 1 } // nothing here\n".repeat(32);
        for directory in 0..500 {
            let below = dir.path().join(format!("group_{}/part_{directory}", directory % 20));
            std::fs::create_dir_all(&below).expect("a directory of ours");
            for file in 0..100 {
                let needle = if (directory * 100 + file) % 1000 == 0 { "needle_42\n" } else { "" };
                std::fs::write(below.join(format!("file_{file}.rs")), format!("{text}{needle}")).expect("written");
            }
        }
        dir
    });
    tree.path()
}
