//! Decides whether a version may be released: its cases are rendered, or replayed from recordings. Asks no model.

use crate::prompt::file::Prompt;
use crate::prompt::registry::Registry;
use crate::template;

use super::case::{Case, parse};
use super::outcome::{Outcome, Run, run_rendered};
use super::recording::{Recordings, asked, replay};
use super::rendering::render;

/// The file of cases beside the versions of a prompt.
pub const TESTS: &str = "tests.yaml";

/// The result of a version's tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Cases in its test file; 0 if there is none.
    pub cases: usize,
    /// One sentence for each case that does not pass, and for a test file that cannot be read.
    pub failures: Vec<String>,
}

impl Standing {
    /// True if every case passes. A version without cases has passed nothing, and failed nothing.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Runs the cases of a prompt without a model: those that only render are rendered, the others are replayed. `registry`
/// finds its test file and recordings, `sample` has the variables of the program with fixed values.
#[must_use]
pub fn standing(registry: &Registry, prompt: &Prompt, sample: &template::Value) -> Standing {
    let version = prompt.version.map(|version| version.to_string()).unwrap_or_default();
    let tests = match registry.beside(&prompt.name, TESTS) {
        Ok(Some(tests)) => tests,
        Ok(None) => return Standing::default(),
        Err(why) => return Standing { cases: 0, failures: vec![why.to_string()] },
    };
    let (text, origin) = tests;
    let suite = match parse(&origin, &text) {
        Ok(suite) => suite,
        Err(mistakes) => {
            return Standing { cases: 0, failures: mistakes.iter().map(ToString::to_string).collect() };
        }
    };
    let recordings = match recordings(registry, &prompt.name, &version) {
        Ok(recordings) => recordings,
        Err(why) => return Standing { cases: suite.cases.len(), failures: vec![why] },
    };
    let failures = suite.cases.iter().filter(|case| case.weight > 0.0).filter_map(|case| {
        let outcome = if case.render {
            Ok(run_rendered(prompt, case, sample))
        } else {
            replayed(prompt, case, sample, &recordings, None)
        };
        match outcome {
            Ok(outcome) if outcome.passed() => None,
            Ok(outcome) => Some(format!("`{}` fails: {}", case.name, outcome.why())),
            Err(why) => Some(format!(
                "`{}` asks a model, and {why}; `agent prompt test {}@{version} --record` records it",
                case.name, prompt.name
            )),
        }
    });
    Standing { cases: suite.cases.len(), failures: failures.collect() }
}

/// The recorded runs of a version, from beside the prompt; empty if there are none.
///
/// # Errors
/// They cannot be read; the error gives the reason.
pub fn recordings(registry: &Registry, name: &str, version: &str) -> Result<Recordings, String> {
    match registry.beside(name, &recordings_of(version)).map_err(|error| error.to_string())? {
        Some((text, origin)) => Recordings::parse(&text).map_err(|why| format!("{origin}: {why}")),
        None => Ok(Recordings::default()),
    }
}

/// The file of the recordings of a version, below the folder of its prompt.
#[must_use]
pub fn recordings_of(version: &str) -> String {
    format!("recordings/{version}.jsonl")
}

/// The outcome of a case by its recorded runs, of one model if one is named.
///
/// # Errors
/// It cannot be replayed; the error gives the reason.
pub fn replayed(
    prompt: &Prompt,
    case: &Case,
    sample: &template::Value,
    recordings: &Recordings,
    model: Option<&str>,
) -> Result<Outcome, String> {
    let runs = recordings.of(&case.name, &asked(prompt.fingerprint(), case), model)?;
    // A prompt that does not render on its own is still judged by its recordings.
    let rendered = render(prompt, case, sample).unwrap_or_default();
    let runs: Vec<Run> = runs.into_iter().map(|run| replay(case, run, &rendered)).collect();
    Ok(Outcome::of(case, runs))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::{Standing, standing};
    use crate::config::PromptDir;
    use crate::prompt::test::{Recorded, Recordings, Reply, asked, parse};
    use crate::prompt::{Prompt, Registry};
    use crate::template::value;

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

    fn stands(files: &[(&str, &str)]) -> Standing {
        let (_dir, dirs) = shelf(files);
        let prompt = greeting(&dirs);
        standing(&Registry::new(&dirs), &prompt, &value(&json!({})))
    }

    fn greeting(dirs: &[PromptDir]) -> std::sync::Arc<Prompt> {
        Registry::new(dirs).get("greet@1.0").expect("there")
    }

    #[test]
    fn a_version_stands_by_what_it_renders_and_by_what_was_recorded() {
        let prompt = ("greet/v1.0.md", "Hello {{ who }}.");
        assert_eq!(stands(&[prompt]), Standing::default());

        let unrecorded = stands(&[prompt, ("greet/tests.yaml", TESTS)]);
        assert_eq!((unrecorded.cases, unrecorded.failures.len()), (2, 1));
        let why = &unrecorded.failures[0];
        assert!(why.contains("`it answers` asks a model, and it has no recording"), "{why}");
        assert!(why.contains("agent prompt test greet@v1.0 --record"), "{why}");

        let case = parse("tests.yaml", TESTS).expect("sound").cases.remove(1);
        let recorded = |fingerprint: &str, output: &str| {
            let mut runs = Recordings::default();
            let reply = Reply { output: output.to_owned(), ..Reply::default() };
            let (asked, model) = (asked(fingerprint, &case), "m".to_owned());
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
        assert!(recorded(&fingerprint, "hi, Ann").passed());
        let failed = recorded(&fingerprint, "hello");
        assert!(
            failed.failures[0].starts_with("`it answers` fails: contains: hi: the output lacks"),
            "{failed:?}"
        );
        assert!(recorded("0123", "hi").failures[0].contains("stale"));

        let wrong = stands(&[prompt, ("greet/tests.yaml", "cases: []")]);
        assert!(!wrong.passed() && wrong.failures[0].contains("tests.yaml:1:8"), "{wrong:?}");
    }
}
