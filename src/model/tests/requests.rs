//! Requests as they are sent, byte for byte. Each file of `tests/request_cases/` is a conversation with a model and the
//! body that is sent: to add a case, add a file.

use std::fmt::Write as _;
use std::path::Path;

use super::super::written::WrittenResults;
use super::conversations::Script;
use crate::base::yaml;

const EXPECTED: &str = "\n=== sends\n";

#[test]
fn every_request_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/request_cases");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let mut failures = String::new();
    for path in &files {
        let case = std::fs::read_to_string(path).expect("a readable case");
        let (script, expected) = case.split_once(EXPECTED).expect("`=== sends`");
        let script: Script =
            yaml::parse_document(script).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let sent = sent(&script);
        if sent != expected.trim_end() {
            let _ = writeln!(failures, "--- {}\n{sent}", path.display());
        }
    }
    assert!(failures.is_empty(), "these requests differ:\n{failures}");
    assert!(files.len() >= 18, "{} cases", files.len());
}

/// The body of a request, or the reason that there is none.
fn sent(script: &Script) -> String {
    let model = script.model().expect("a model");
    let plan = model.plan();
    let (items, tools) = (script.items(&plan.origin()), script.tools());
    if let Some(why) = plan.refuses_tools("m") {
        return format!("refused: {why}");
    }
    let (body, headers) = plan.encode(&script.request(&items, &tools), &WrittenResults::default());
    let mut sent = String::new();
    for (name, value) in &headers {
        let _ = writeln!(sent, "{name}: {value}");
    }
    sent + &String::from_utf8(body).expect("JSON is UTF-8")
}
