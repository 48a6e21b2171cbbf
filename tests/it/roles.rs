//! The replies of roles and their interpretation: replies and plans, as folders of cases.
//!
//! Each file of `tests/reply_cases/ROLE/` is a reply of a role, as a model writes it: `read` holds parts of what is
//! read (all keys of the reply where it lists them all) and `scratchpad` its notes, or `mistakes` parts of what the
//! model is told. Each file of `tests/graph_cases/` is a plan: `mistakes` holds parts of each thing that is wrong with
//! it, in any order and as many as there are, and `names` the tools of its steps in full.

use std::path::Path;
use std::{fs, io};

use agent::facade::agent::orchestration::graph::{self, Choices};
use agent::facade::agent::orchestration::reply::{
    ExecutorReply, ParsedReply, PlanReply, ReflectorReply, RouteReply, read_reply,
};
use agent::facade::base::Validator;
use agent::facade::conversation::event::plan::PlanStep;
use agent::facade::prompt::Registry;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyCase {
    reply: String,
    #[serde(default)]
    read: Option<Map<String, Value>>,
    #[serde(default)]
    scratchpad: Option<String>,
    #[serde(default)]
    mistakes: Vec<String>,
}

/// The value that was read, and its notes.
type Reading = Result<(Value, Option<String>), String>;

fn reading<T: DeserializeOwned + Serialize>(text: &str, schema: &Validator) -> Reading {
    let ParsedReply { value, scratchpad } = read_reply::<T>(text, schema)?;
    Ok((serde_json::to_value(value).expect("a reply is data"), scratchpad))
}

/// Reads a reply by the schema of its role.
type Reader = fn(&str, &Validator) -> Reading;

/// The functions that read the replies of each role.
const ROLES: [(&str, Reader); 5] = [
    ("router", reading::<RouteReply>),
    ("planner", reading::<PlanReply>),
    ("executor", reading::<ExecutorReply>),
    ("reflector", reading::<ReflectorReply>),
    ("scratchpad", reading::<Value>),
];

/// The cases of a folder, with their names, sorted.
fn cases<T: DeserializeOwned>(folder: &str) -> io::Result<Vec<(String, T)>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder))? {
        let path = entry?.path();
        let name = format!("{folder}/{}", path.file_stem().unwrap_or_default().to_string_lossy());
        let case = agent::facade::base::parse_document(&fs::read_to_string(&path)?)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        cases.push((name, case));
    }
    cases.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(cases)
}

fn validator(role: &str) -> Validator {
    let (schema, _) =
        Registry::new(&[]).read_beside(role, "reply.json").expect("readable").expect("there is a schema");
    Validator::new(&serde_json::from_str(&schema).expect("JSON")).expect("a schema")
}

/// The difference from the case, if there is one.
fn difference(case: &ReplyCase, found: &Reading) -> Option<String> {
    match (found, &case.read) {
        (Ok((value, scratchpad)), Some(expected)) => {
            let has = |(key, wanted): (&String, &Value)| value[key] == *wanted;
            let is_same = expected.iter().all(has) && *scratchpad == case.scratchpad;
            (!is_same).then(|| format!("read {value} with notes {scratchpad:?}"))
        }
        (Err(told), None) => {
            let missing = case.mistakes.iter().find(|part| !told.contains(part.as_str()));
            missing.map(|part| format!("`{part}` is not in: {told}"))
        }
        (Ok((value, _)), None) => Some(format!("read {value}")),
        (Err(told), Some(_)) => Some(format!("refused: {told}")),
    }
}

#[test]
fn every_reply_is_read_as_its_case_says() {
    let mut wrong = Vec::new();
    let mut broken = 0;
    for (role, reading) in ROLES {
        let validator = validator(role);
        for (name, case) in cases::<ReplyCase>(&format!("reply_cases/{role}")).expect("readable") {
            assert_eq!(case.read.is_some(), case.mistakes.is_empty(), "{name}: either `read` or `mistakes`");
            broken += usize::from(!name.ends_with("/as_asked"));
            wrong.extend(difference(&case, &reading(&case.reply, &validator)).map(|why| format!("{name}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "read in another way:\n{}", wrong.join("\n"));
    assert!(broken >= 30, "{broken} broken replies");
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphCase {
    plan: Vec<PlanStep>,
    #[serde(default)]
    mistakes: Vec<String>,
    #[serde(default)]
    names: Vec<String>,
}

/// The tools that the plans of the cases may call.
fn schemas() -> Vec<(&'static str, Validator)> {
    let object = |properties: Value, required: &[&str]| {
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        Validator::new(&schema).expect("a schema")
    };
    vec![
        ("read_file", object(json!({ "path": { "type": "string" }, "limit": { "type": "integer" } }), &["path"])),
        ("list_dir", object(json!({ "path": { "type": "string" } }), &[])),
        ("run_command", object(json!({ "command": { "type": "string" } }), &["command"])),
        (
            "send",
            object(
                json!({
                    "to": { "type": "string", "pattern": "^@" },
                    "copies": { "type": "array", "items": { "type": "string" }, "maxItems": 2 },
                    "count": { "type": "integer", "minimum": 1, "maximum": 5 },
                    "kind": { "enum": ["mail", "note"] },
                    "body": { "anyOf": [
                        { "type": "string" },
                        { "type": "object", "properties": { "html": { "type": "string" } }, "required": ["html"] },
                    ] },
                }),
                &["to", "body"],
            ),
        ),
    ]
}

#[test]
fn every_plan_is_checked_as_its_case_says() {
    let schemas = schemas();
    let choices = Choices {
        tools: schemas.iter().map(|(name, validator)| (*name, validator)).collect(),
        agents: ["explore", "review"].into(),
        flows: ["triage"].into(),
    };
    let mut wrong = Vec::new();
    for (name, case) in cases::<GraphCase>("graph_cases").expect("readable") {
        let reply = PlanReply { plan: case.plan, ..PlanReply::default() };
        match graph::check_plan(&reply, &choices) {
            Ok(steps) => {
                let names: Vec<&str> = steps.iter().map(|step| step.tool_name.as_str()).collect();
                let is_same = case.names.is_empty() || names == case.names;
                if !case.mistakes.is_empty() || !is_same {
                    wrong.push(format!("{name}: stands, with {names:?}"));
                }
            }
            Err(told) => {
                let is_told = |part: &&String| told.iter().any(|one| one.contains(part.as_str()));
                let untold: Vec<&String> = case.mistakes.iter().filter(|part| !is_told(part)).collect();
                if !untold.is_empty() || told.len() != case.mistakes.len() {
                    wrong.push(format!("{name}: lacks {untold:?} of: {told:#?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "checked in another way:\n{}", wrong.join("\n"));
}
