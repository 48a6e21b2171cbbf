//! Decides whether a version may be released: its cases are rendered, or replayed from recordings. Asks no model.

use crate::prompt::file::Prompt;
use crate::prompt::registry::Registry;
use crate::template;

use super::case::{Case, parse_suite};
use super::outcome::{CaseOutcome, CaseRun, run_rendered};
use super::recording::{Recordings, fingerprint_request, replay_run};
use super::rendering::render_case;

/// The file of cases beside the versions of a prompt.
pub const TESTS: &str = "tests.yaml";

/// The result of a version's tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionStanding {
    /// Cases in its test file that count; 0 if there is none.
    pub cases: usize,
    /// One sentence for each case that does not pass, and for a test file that cannot be read.
    pub failures: Vec<String>,
}

/// Runs the cases of a prompt without a model: those that only render are rendered, the others are replayed. `registry`
/// finds its test file and recordings, `sample` has the variables of the program with fixed values.
pub fn judge_standing(registry: &Registry, prompt: &Prompt, sample: &template::Value) -> VersionStanding {
    let version = prompt.version.map(|version| version.to_string()).unwrap_or_default();
    let refuse = |cases, failures| VersionStanding { cases, failures };
    let (text, origin) = match registry.read_beside(&prompt.name, TESTS) {
        Ok(Some(tests)) => tests,
        Ok(None) => return VersionStanding::default(),
        Err(why) => return refuse(0, vec![why.to_string()]),
    };
    let suite = match parse_suite(&origin, &text) {
        Ok(suite) => suite,
        Err(mistakes) => return refuse(0, mistakes.iter().map(ToString::to_string).collect()),
    };
    let recordings = match load_recordings(registry, &prompt.name, &version) {
        Ok(recordings) => recordings,
        Err(why) => return refuse(suite.cases.len(), vec![why]),
    };
    let counted: Vec<_> = suite.cases.iter().filter(|case| case.weight > 0.0).collect();
    let failures = counted.iter().filter_map(|case| {
        let outcome = if case.render {
            Ok(run_rendered(prompt, case, sample))
        } else {
            replay_case(prompt, case, sample, &recordings, None)
        };
        match outcome {
            Ok(outcome) if outcome.has_passed() => None,
            Ok(outcome) => Some(format!("`{}` fails: {}", case.name, outcome.why())),
            Err(why) => Some(format!(
                "`{}` asks a model, and {why}; `agent prompt test {}@{version} --record` records it",
                case.name, prompt.name
            )),
        }
    });
    VersionStanding { cases: counted.len(), failures: failures.collect() }
}

/// The recorded runs of a version, from beside the prompt; empty if there are none.
///
/// # Errors
/// They cannot be read; the error gives the reason.
pub fn load_recordings(registry: &Registry, name: &str, version: &str) -> Result<Recordings, String> {
    match registry.read_beside(name, &recordings_of(version)).map_err(|error| error.to_string())? {
        Some((text, origin)) => Recordings::parse(&text).map_err(|why| format!("{origin}: {why}")),
        None => Ok(Recordings::default()),
    }
}

/// The file of the recordings of a version, below the folder of its prompt.
pub fn recordings_of(version: &str) -> String {
    format!("recordings/{version}.jsonl")
}

/// The outcome of a case by its recorded runs, of one model if one is named.
///
/// # Errors
/// It cannot be replayed; the error gives the reason.
pub fn replay_case(
    prompt: &Prompt,
    case: &Case,
    sample: &template::Value,
    recordings: &Recordings,
    model: Option<&str>,
) -> Result<CaseOutcome, String> {
    let runs = recordings.find_runs(&case.name, &fingerprint_request(prompt.fingerprint(), case), model)?;
    // A prompt that does not render on its own is still judged by its recordings.
    let rendered = render_case(prompt, case, sample).unwrap_or_default();
    let runs: Vec<CaseRun> = runs.into_iter().map(|run| replay_run(case, run, &rendered)).collect();
    Ok(CaseOutcome::from_runs(case, runs))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::{VersionStanding, judge_standing};
    use crate::config::PromptDir;
    use crate::prompt::test::{Recorded, Recordings, RunReply, fingerprint_request, parse_suite};
    use crate::prompt::{Prompt, Registry};
    use crate::template::convert_value;

    const TESTS: &str = "cases:\n\
        - { name: it greets, render: true, vars: { who: Ann }, assert: [contains: Hello Ann] }\n\
        - { name: it answers, vars: { who: Ann }, messages: [user: hi], assert: [contains: hi] }\n";

    fn shelf(files: &[(&str, &str)]) -> (tempfile::TempDir, [PromptDir; 1]) {
        let dir = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        let dirs = [PromptDir::new(dir.path().to_owned())];
        (dir, dirs)
    }

    fn stands(files: &[(&str, &str)]) -> VersionStanding {
        let (_dir, dirs) = shelf(files);
        let prompt = greeting(&dirs);
        judge_standing(&Registry::new(&dirs), &prompt, &convert_value(&json!({})))
    }

    fn greeting(dirs: &[PromptDir]) -> std::sync::Arc<Prompt> {
        Registry::new(dirs).get("greet@1.0").expect("there")
    }

    #[test]
    fn a_version_stands_by_what_it_renders_and_by_what_was_recorded() {
        let prompt = ("greet/v1.0.md", "Hello {{ who }}.");
        assert_eq!(stands(&[prompt]), VersionStanding::default());

        let unrecorded = stands(&[prompt, ("greet/tests.yaml", TESTS)]);
        assert_eq!((unrecorded.cases, unrecorded.failures.len()), (2, 1));
        let why = &unrecorded.failures[0];
        assert!(why.contains("`it answers` asks a model, and it has no recording"), "{why}");
        assert!(why.contains("agent prompt test greet@v1.0 --record"), "{why}");

        let case = parse_suite("tests.yaml", TESTS).expect("sound").cases.remove(1);
        let recorded = |fingerprint: &str, output: &str| {
            let mut runs = Recordings::default();
            let reply = RunReply { output: output.to_owned(), ..RunReply::default() };
            let (asked, model) = (fingerprint_request(fingerprint, &case), "m".to_owned());
            runs.put(vec![Recorded {
                case: case.name.clone(),
                run: 1,
                asked,
                model,
                reply,
                judged: std::collections::BTreeMap::new(),
            }]);
            stands(&[prompt, ("greet/tests.yaml", TESTS), ("greet/recordings/v1.0.jsonl", &runs.text())])
        };
        let (_dir, dirs) = shelf(&[prompt]);
        let fingerprint = greeting(&dirs).fingerprint().to_owned();
        assert!(recorded(&fingerprint, "hi, Ann").failures.is_empty());
        let failed = recorded(&fingerprint, "hello");
        assert!(
            failed.failures[0].starts_with("`it answers` fails: contains: hi: the output lacks"),
            "{failed:?}"
        );
        assert!(recorded("0123", "hi").failures[0].contains("stale"));

        let reported = "cases:\n- { name: r, render: true, weight: 0, assert: [contains: x] }\n";
        assert_eq!(stands(&[prompt, ("greet/tests.yaml", reported)]), VersionStanding::default());

        let wrong = stands(&[prompt, ("greet/tests.yaml", "cases: []")]);
        assert!(wrong.failures[0].contains("tests.yaml:1:8"), "{wrong:?}");
    }
}
