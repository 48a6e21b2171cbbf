//! Each file of `tests/attack_cases/` is an attack on one call: what the model asks for or what the world answers, and
//! what comes of it. Adding a case is adding a file.
//!
//! `files` (below `../` outside the workspace), `links` and `setup` (a line for the shell) make the place; `page` is
//! what a web server answers to the address `{page}`. `status` is how the call ends, `reads` are parts of what the
//! model reads between the tags (`exactly`: all of it), `lacks` what stands nowhere in it; `after` are files as they
//! are then, null for none. Whatever the case: the result ends with the one closing tag that it has, and the person's
//! screen gets nothing that moves a cursor or turns a line around.
//!
//! Commands that are only judged, not run, have their own folder: `tests/policy_cases/`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::reply::Reply;
use crate::run::{KEY, Run};
use crate::server::{Server, between_tags};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    #[serde(default)]
    setup: Option<String>,
    #[serde(default)]
    page: Option<String>,
    /// Settings on top of those that every case has.
    #[serde(default)]
    settings: serde_json::Map<String, Value>,
    #[serde(default)]
    agent: serde_json::Map<String, Value>,
    #[serde(default)]
    approve: Option<String>,
    tool: String,
    #[serde(default)]
    arguments: Value,
    status: String,
    #[serde(default)]
    reads: Vec<String>,
    #[serde(default)]
    exactly: Option<String>,
    #[serde(default)]
    lacks: Vec<String>,
    #[serde(default)]
    after: BTreeMap<String, Option<String>>,
}

#[test]
fn paths() {
    all_hold("paths");
}

#[test]
fn injection() {
    all_hold("injection");
}

#[test]
fn commands() {
    all_hold("commands");
}

fn all_hold(folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attack_cases").join(folder);
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("cases").map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let wrong: Vec<String> = files.iter().filter_map(|file| failure(file)).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), files.len(), wrong.join("\n\n"));
}

/// The unexpected effects of a case; `None` if there are none.
fn failure(file: &Path) -> Option<String> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let text = fs::read_to_string(file).expect("readable");
    let case: Case = agent::facade::base::parse_document(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let web = Server::answering({
        let page = case.page.clone().unwrap_or_default();
        move |_, _| Reply::body(200, "text/plain; charset=utf-8", page.clone())
    });
    let run = Run::new();
    let workspace = run.place().workspace().canonicalize().expect("a workspace");
    let place = json!({ "workspace": workspace, "page": format!("{}/page", web.url()) });
    let given = filled(&case.arguments, &place);
    let server = Server::start([Reply::call(&case.tool, &given), Reply::text("done")]);
    let output = prepared(run, &case).server(&server).run();
    let mut wrong = Vec::new();
    let events = output.events();
    let finished: Vec<&Value> =
        events.of("tool.finished").iter().filter_map(|event| event.get("status")).collect();
    if finished != [&json!(case.status)] {
        wrong.push(format!("ended as {finished:?}"));
    }
    let requests = server.requests();
    let Some(read) = requests.get(1).map(|request| request.last_result()) else {
        return Some(format!("{name}: the model was not asked again\n{}", output.shown()));
    };
    let is_framed = read.starts_with("<result");
    if is_framed && (read.matches("</result>").count() != 1 || !read.ends_with("</result>")) {
        wrong.push("the closing tag is not the one at the end".to_owned());
    }
    let said = if read.starts_with("<result tool=\"") && read.contains(">\n") { between_tags(read) } else { read };
    wrong.extend(case.reads.iter().filter(|part| !said.contains(*part)).map(|part| format!("not read: {part:?}")));
    wrong.extend(case.lacks.iter().filter(|part| read.contains(*part)).map(|part| format!("read: {part:?}")));
    if case.exactly.as_ref().is_some_and(|whole| whole != said) {
        wrong.push("it does not read exactly that".to_owned());
    }
    let is_loose = |c: &char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
    };
    if let Some(loose) = output.stderr.chars().find(is_loose) {
        wrong.push(format!("the screen got {loose:?}"));
    }
    if output.stdout.contains(KEY) || read.contains(KEY) {
        wrong.push("the key was shown".to_owned());
    }
    for (path, content) in &case.after {
        let now = fs::read_to_string(workspace.join(path)).ok();
        if now != *content {
            wrong.push(format!("{path} holds {now:?}"));
        }
    }
    (!wrong.is_empty()).then(|| {
        format!("{name}: {}\n--- the model reads\n{read}\n--- stderr\n{}", wrong.join("; "), output.stderr)
    })
}

fn prepared(mut run: Run, case: &Case) -> Run {
    let place = run.place();
    for (path, content) in &case.files {
        run = run.file(path, content);
    }
    for (link, target) in &case.links {
        std::os::unix::fs::symlink(target, place.workspace().join(link)).expect("linked");
    }
    if let Some(line) = &case.setup {
        let made = Command::new("/bin/sh").args(["-c", line]).current_dir(place.workspace()).status();
        assert!(made.expect("a shell").success(), "{line}");
    }
    let mut settings = case.settings.clone();
    settings.insert("fetch".to_owned(), json!({"allow": ["127.0.0.1"]}));
    // The sandbox is tested elsewhere; here it would hide what the policy lets through.
    settings.insert("sandbox".to_owned(), json!({"mode": "off"}));
    let mut agent = case.agent.clone();
    agent.insert("tools".to_owned(), json!(["*", "fetch_url", "apply_patch"]));
    run = run.config("agent.yaml", &Value::from(settings).to_string());
    run = run.config("agents/default.yaml", &Value::from(agent).to_string());
    run.args(["run", "task", "-o", "jsonl", "--approve", case.approve.as_deref().unwrap_or("ask")])
}

/// `{workspace}` and `{page}` filled in.
fn filled(value: &Value, place: &Value) -> Value {
    match value {
        Value::String(text) => ["workspace", "page"]
            .iter()
            .fold(text.clone(), |text, name| {
                text.replace(&format!("{{{name}}}"), place[name].as_str().unwrap_or_default())
            })
            .into(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), filled(value, place))).collect(),
        other => other.clone(),
    }
}
