//! The parts of a run, one by one: decoding and assembling a stream, the session's log, configuration, prompts,
//! requests, estimates, loop detection, calls, plans, searches compared with `rg`, files found for `@`. `benches/compare.sh` times whole
//! processes.
//!
//! ```text
//! cargo bench --bench inside                 all of it
//! cargo bench --bench inside -- session      what has `session` in its name
//! ```
//!
//! Where a bench takes sizes, ten times the size should cost ten times the time.

mod calls;
mod files;
mod lines;
mod llm;
mod plans;

use std::path::Path;
use std::sync::Arc;

use agent::facade::agent::assembly::{self, RunOptions, Services};
use agent::facade::agent::window::{self, Ruler};
use agent::facade::agent::{Conversation, LoopDetector, LoopVerdict, ObservedCall, ObservedEnd};
use agent::facade::base::tokens;
use agent::facade::config::{self, Config, Env, LoadOptions, SkillDir, SkillScope};
use agent::facade::conversation::event::CallTelemetry;
use agent::facade::conversation::message::{
    Call, CallAnswer, CallStatus, Item, ReplyPart, Step, ToolCall, UserText,
};
use agent::facade::conversation::session::{About, ItemId, Session, Store};
use agent::facade::files::workspace::Workspace;
use agent::facade::model::ToolDefinition;
use agent::facade::safety::Nobody;
use agent::facade::safety::process::{self, ChildPatience, Launch, SHELL};
use agent::facade::safety::sandbox::{Boundary, Protection, Sandbox, SandboxProfile, Walls};
use agent::facade::skills::{RunVariables, SkillCatalogue};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use jiff::Timestamp;
use serde_json::json;

fn main() {
    // The boundary runs this program again, as its own parts.
    if agent::facade::safety::sandbox::serve_part(&std::env::args_os().collect::<Vec<_>>()).is_some() {
        return;
    }
    divan::main();
    calls::remove_tree();
}

const NOON: Timestamp = Timestamp::constant(1_800_000_000, 0);

// ------------------------------------------------------------------------------------------------ a start

#[divan::bench]
fn start_config() -> Arc<Config> {
    let dir = std::env::temp_dir();
    let workspace = Workspace::open(&dir).expect("a directory");
    configuration(&workspace)
}

#[divan::bench]
fn start_services(bencher: Bencher<'_, '_>) {
    let workspace = Workspace::open(&std::env::temp_dir()).expect("a directory");
    let config = configuration(&workspace);
    bencher.bench(|| services(&config, &workspace));
}

#[divan::bench]
fn start_system_prompt(bencher: Bencher<'_, '_>) {
    let workspace = Workspace::open(&std::env::temp_dir()).expect("a directory");
    let services = services(&configuration(&workspace), &workspace);
    let conversation = Conversation::new(Session::ephemeral(about(workspace.root()), NOON), NOON);
    bencher.bench(|| services.agent.briefing.system(&conversation, "run").expect("the built-in prompt renders"));
}

/// A thousand skills of the usual size, in one directory.
#[divan::bench]
fn start_thousand_skills(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().expect("a directory");
    for n in 0..1000 {
        let folder = dir.path().join(format!("skill-{n:04}"));
        std::fs::create_dir(&folder).expect("made");
        let head =
            format!("---\nname: skill-{n:04}\ndescription: {}\nlicense: MIT\n---\n", "Does a thing. ".repeat(15));
        std::fs::write(folder.join("SKILL.md"), head + &"Do it well.\n".repeat(400)).expect("written");
    }
    let dirs = [SkillDir::new(dir.path().to_path_buf(), SkillScope::User)];
    bencher.bench(|| {
        let catalogue = SkillCatalogue::discover(&dirs, dir.path(), RunVariables::default());
        assert!(catalogue.iter().len() > 1000 && catalogue.notes().is_empty());
        catalogue
    });
}

fn configuration(workspace: &Workspace) -> Arc<Config> {
    let nowhere = "/nonexistent/home";
    let env = Env::from_pairs([("HOME", nowhere), ("OPENAI_API_KEY", "sk-bench"), ("AGENT_MODEL", "gpt-5-mini")]);
    let (config_dir, brought) = (None, None);
    let options = LoadOptions {
        env: &env,
        workspace,
        config_dir,
        sets: &[],
        flags: config::SettingFlags::default(),
        brought,
        trust: false,
        tools: &[],
    };
    Arc::new(config::load_config(&options).expect("the built-in configuration is sound"))
}

fn services(config: &Arc<Config>, workspace: &Workspace) -> Services {
    assembly::assemble_services(config, workspace, &RunOptions::default(), Arc::new(Nobody))
        .expect("the built-in agent")
}

fn about(workspace: &Path) -> About<'_> {
    About { workspace, copy: None, is_layer: false, agent: "default", model: "default" }
}

// ------------------------------------------------------------------------------------------------ a request

/// Thousands of tokens in the conversation.
const CONVERSATIONS: [usize; 3] = [2, 20, 200];

#[divan::bench(args = CONVERSATIONS)]
fn request_measured_anew(bencher: Bencher<'_, '_>, thousands: usize) {
    let (items, tools) = (conversation(thousands * 1000), definitions());
    let ids = ids(&items);
    bencher.bench(|| Ruler::default().measure(request(black_box(&items), &ids, &tools), u64::MAX));
}

/// The cost of a step of a loop: only its new part.
#[divan::bench(args = CONVERSATIONS)]
fn request_measured_again(bencher: Bencher<'_, '_>, thousands: usize) {
    let (items, tools) = (conversation(thousands * 1000), definitions());
    let ids = ids(&items);
    let mut ruler = Ruler::default();
    bencher.bench_local(|| ruler.measure(request(black_box(&items), &ids, &tools), u64::MAX));
}

#[divan::bench(args = CONVERSATIONS)]
fn estimate_tokens(bencher: Bencher<'_, '_>, thousands: usize) {
    let text = "fn main() { println!(\"Grüße, 世界\"); }\n".repeat(thousands * 100);
    bencher.counter(BytesCount::of_str(&text)).bench(|| tokens::estimate_tokens(black_box(&text)));
}

fn ids(items: &[Item]) -> Vec<ItemId> {
    (1..=items.len() as u64).map(|number| ItemId { number, pass: 0 }).collect()
}

fn request<'a>(items: &'a [Item], ids: &'a [ItemId], tools: &'a [ToolDefinition]) -> window::MeasuredRequest<'a> {
    window::MeasuredRequest { model: "gpt-5-mini", tools, system: "", items, ids }
}

fn definitions() -> Vec<ToolDefinition> {
    let workspace = Workspace::open(&std::env::temp_dir()).expect("a directory");
    services(&configuration(&workspace), &workspace).agent.tools.definitions().to_vec()
}

/// A loop of reading files, with about so many tokens in all.
fn conversation(tokens: usize) -> Vec<Item> {
    const RESULT_TOKENS: usize = 1000;
    let result = "    let line = reader.read_line(&mut buffer)?; // 42\n".repeat(RESULT_TOKENS * 4 / 52);
    let step = |step: usize| {
        let arguments = format!("{{\"path\":\"src/file_{step}.rs\"}}");
        let request = ToolCall { id: format!("call_{step}"), name: "read_file".to_owned(), arguments };
        let answer = Some(CallAnswer::of_text(result.clone(), CallStatus::Ok));
        let parts = vec![ReplyPart::Call(Call { request, opaque: None, answer })];
        Item::Step(Step { parts, ..Step::default() })
    };
    let said = Item::Said(UserText::by_person("mend the reader"));
    std::iter::once(said).chain((0..tokens / RESULT_TOKENS).map(step)).collect()
}

/// Takes a conversation into a session, as the loop would.
fn record(session: &mut Session, items: Vec<Item>) {
    for item in items {
        match item {
            Item::Said(said) => session.say(said, NOON).expect("written"),
            Item::Step(mut step) => {
                let answers: Vec<CallAnswer> = step.calls_mut().filter_map(|call| call.answer.take()).collect();
                let number = session.reply(step, NOON).expect("written");
                for (call, answer) in answers.into_iter().enumerate() {
                    session.answer((number, call), answer, CallTelemetry::default(), NOON).expect("written");
                }
            }
            Item::Summary(_) => {}
        }
    }
}

// ------------------------------------------------------------------------------------------------ the log

/// Kilobytes of conversation.
const LOGS: [usize; 3] = [100, 1_000, 10_000];

/// Without the waits for the disk, which belong to replies with calls and to the end of a turn.
#[divan::bench(args = LOGS, sample_count = 10)]
fn session_append(bencher: Bencher<'_, '_>, kilobytes: usize) {
    let said = UserText::by_person("a line of a conversation\n".repeat(40));
    bencher.with_inputs(|| tempfile::tempdir().expect("a directory")).bench_values(|dir| {
        let mut session = Store::new(dir.path()).create(about(Path::new("/w")), NOON);
        (0..kilobytes).for_each(|_| session.say(said.clone(), NOON).expect("written"));
        (session, dir)
    });
}

#[divan::bench(args = LOGS, sample_count = 20)]
fn session_load(bencher: Bencher<'_, '_>, kilobytes: usize) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::new(dir.path());
    let mut session = store.create(about(Path::new("/w")), NOON);
    record(&mut session, conversation(kilobytes * 1000 / 4));
    let id = session.id().to_owned();
    drop(session);
    bencher.bench(|| store.read(&id).expect("a sound log"));
}

/// A long reply as it streams into the log.
#[divan::bench(args = [1_000, 10_000, 100_000], sample_count = 20)]
fn session_stream(bencher: Bencher<'_, '_>, deltas: usize) {
    bencher.with_inputs(|| tempfile::tempdir().expect("a directory")).bench_values(|dir| {
        let mut session = Store::new(dir.path()).create(about(Path::new("/w")), NOON);
        for _ in 0..deltas {
            if session.stream_text("a few words of a reply, ") {
                session.log_partial();
            }
        }
        (session, dir)
    });
}

// ------------------------------------------------------------------------------------------------ the loop

/// Calls that all differ: the detector looks at everything and finds nothing.
#[divan::bench(args = [100, 1_000, 10_000])]
fn loop_detection(calls: usize) -> LoopVerdict {
    let mut detector = LoopDetector::new(12, 3);
    let observed = (0..calls).map(|n| {
        let (arguments, result) =
            (json!({ "path": format!("f{n}") }), format!("line {n}\nof a text\n").repeat(20));
        detector.observe(ObservedCall {
            step: n as u64,
            name: "read_file",
            arguments: &arguments,
            result: &result,
            end: ObservedEnd::Succeeded,
            changes: false,
            waited: None,
            files: &[],
        })
    });
    observed.last().expect("there are calls")
}

// ------------------------------------------------------------------------------------------------ a command

/// A command that does nothing, run to its end: what the boundary adds to starting one. A bare `sh -c true` is the
/// floor. In namespaces 1.3 times that is the goal, since a later command makes no process but its own.
#[divan::bench]
fn command_bare(bencher: Bencher<'_, '_>) {
    run_command(bencher, None);
}

/// True if commands get namespaces, or rules alone.
#[divan::bench(args = [true, false])]
fn command_in_the_sandbox(bencher: Bencher<'_, '_>, namespaces: bool) {
    let dir = tempfile::tempdir().expect("a directory");
    let sandbox = Sandbox::new(plan(dir.path(), namespaces));
    run_command(bencher, Some(&sandbox.walls(SandboxProfile::Write).expect("the system has a sandbox")));
}

/// The same with everything around it: the walls looked at, the protected files compared.
#[divan::bench(args = [true, false])]
fn command_protected(bencher: Bencher<'_, '_>, namespaces: bool) {
    let dir = tempfile::tempdir().expect("a directory");
    let sandbox = Sandbox::new(plan(dir.path(), namespaces));
    let runtime = runtime();
    bencher.bench_local(|| {
        let walls = sandbox.walls(SandboxProfile::Write).expect("the system has a sandbox");
        let protection = Protection::begin(&walls, dir.path());
        runtime.block_on(process::run_child(nothing(Some(&walls)), |_| {})).expect("sh can be run");
        protection.end()
    });
}

/// Once a run; rules alone again when a directory beside a credential has changed.
#[divan::bench(args = [true, false])]
fn sandbox_built(bencher: Bencher<'_, '_>, namespaces: bool) {
    let dir = tempfile::tempdir().expect("a directory");
    let built = || Sandbox::new(plan(dir.path(), namespaces)).walls(SandboxProfile::Write).map(|_| ());
    bencher.bench_local(|| built().expect("the system has a sandbox"));
}

/// The first command of a run, with nothing ready for it: what a model that takes no time to write its call waits for.
#[divan::bench(args = [true, false])]
fn command_first(bencher: Bencher<'_, '_>, namespaces: bool) {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = runtime();
    bencher.with_inputs(|| Sandbox::new(plan(dir.path(), namespaces))).bench_local_values(|sandbox| {
        let walls = sandbox.walls(SandboxProfile::Write).expect("the system has a sandbox");
        runtime.block_on(process::run_child(nothing(Some(&walls)), |_| {})).expect("sh can be run");
        (sandbox, walls)
    });
}

fn run_command(bencher: Bencher<'_, '_>, walls: Option<&Walls>) {
    let runtime = runtime();
    bencher.bench_local(|| runtime.block_on(process::run_child(nothing(walls), |_| {})).expect("sh can be run"));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built")
}

fn nothing(walls: Option<&Walls>) -> Launch<'_> {
    let (program, dir) = (SHELL[0], Path::new("/"));
    Launch {
        program,
        arguments: &[SHELL[1], "true"],
        dir,
        env: &[],
        patience: ChildPatience::default(),
        input: None,
        walls,
    }
}

fn plan(workspace: &Path, namespaces: bool) -> Boundary {
    let home = Env::capture().dirs().home;
    let own = vec![home.join(".local/share/agent")];
    let (undone, caches) = (workspace.join("undone"), workspace.join("caches"));
    Boundary { own, undone, caches, namespaces, ..Boundary::around(workspace, &home, Path::new("/tmp")) }
}
