//! `agent prompt test`: chooses the versions, models and cases to test, and prints the report.

use std::path::Path;
use std::sync::Arc;

use crate::agent::Cancel;
use crate::agent::assembly::Options;
use crate::agent::assembly::prompt_test::{Bench, Progress, Replies};
use crate::config::Config;
use crate::files::regular::{read_regular, replace};
use crate::prompt::test::{
    Comparison, Foreign, Recordings, Report, Suite, TESTS, Tested, Written, is_promptfoo, parse, parse_promptfoo,
    recordings, recordings_of,
};
use crate::prompt::{Prompt, Registry};
use crate::screen::Bar;

use super::super::args::{PromptTestArgs, TestFormat};
use super::super::setup::Setup;
use super::super::signals::Signals;
use super::super::{Failure, Outcome, exit, print, warn};

/// A version and its cases.
struct Subject {
    prompt: Arc<Prompt>,
    suite: Suite,
    /// The models that its file names, used unless --model names others.
    models: Vec<String>,
}

pub(super) fn run(setup: &Setup, config: &Arc<Config>, registry: &Registry, args: PromptTestArgs) -> Outcome {
    let signals = Signals::listen()?;
    let mut subjects = subjects(registry, &args)?;
    for subject in &mut subjects {
        for note in std::mem::take(&mut subject.suite.notes) {
            warn(&note);
        }
        if let Some(filter) = &args.filter {
            subject.suite.cases.retain(|case| case.name.contains(filter.as_str()));
        }
    }
    if subjects.iter().all(|subject| subject.suite.cases.is_empty()) {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(Failure::usage(format!("no case has `{filter}` in its name (--filter)")));
    }
    // The root future may borrow; a spawned task may not.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cancel = Cancel::default();
    signals.trigger(&cancel);
    let bar = setup.bar();
    let report = runtime.block_on(test_all(config, registry, &args, &subjects, &cancel, &bar))?;
    if let Some(signal) = cancel.signal() {
        return Ok(signal.code());
    }
    print(match args.output {
        TestFormat::Text => report.text(),
        TestFormat::Json => serde_json::to_string_pretty(&report.json())? + "\n",
        TestFormat::Junit => report.junit(),
        TestFormat::Html => report.html(),
    })?;
    Ok(if report.passed() { exit::DONE } else { exit::TESTS_FAILED })
}

async fn test_all(
    config: &Arc<Config>,
    registry: &Registry,
    args: &PromptTestArgs,
    subjects: &[Subject],
    cancel: &Cancel,
    bar: &Bar,
) -> Result<Report, Failure> {
    let replies = match (args.record, args.replay, args.update_recordings) {
        (true, ..) => Replies::Completed,
        (_, true, _) => Replies::Replayed,
        (.., true) => Replies::Renewed,
        _ => Replies::Asked,
    };
    let agent = config.agent(args.agent.as_deref()).map_err(Failure::usage)?;
    let mut report = Report::default();
    for subject in subjects {
        let prompt = &subject.prompt;
        let mut recorded = read_recordings(registry, args, prompt)?;
        let before = recorded.clone();
        for model in models(args, subject, &recorded, replies) {
            let bench = Bench {
                config,
                registry,
                options: Options { agent: args.agent.clone(), model: model.clone(), ..Options::default() },
                replies,
                jobs: args.jobs.unwrap_or(agent.limits.max_parallel),
                runs: args.runs,
                cancel: cancel.clone(),
            };
            let shown = |Progress { done, all }: Progress| match all {
                0 => {}
                all => bar.set(done, all, &prompt.id()),
            };
            let tested = bench.test(prompt, &subject.suite, &mut recorded, model.as_deref(), &shown).await;
            report.tested.push(tested.map_err(Failure::from_setup)?);
        }
        if replies == Replies::Renewed && args.filter.is_none() {
            recorded.retain(|case| subject.suite.cases.iter().any(|of| of.name == case));
        }
        // After an interruption, the recordings stay as they were.
        if recorded != before && !cancel.is_triggered() {
            write_recordings(config, registry, args, prompt, &recorded)?;
        }
    }
    if let ([_, _], [a, b, ..]) = (args.compare.as_slice(), sides(&report.tested, subjects).as_slice()) {
        report.comparison = Some(Comparison::of(a, b));
    }
    Ok(report)
}

/// The tests of each version with its first model.
fn sides<'r>(tested: &'r [Tested], subjects: &[Subject]) -> Vec<&'r Tested> {
    let each = tested.len() / subjects.len().max(1);
    tested.iter().step_by(each.max(1)).collect()
}

/// The models to ask, or whose recordings to replay; `None` means the agent's model, or any model's recordings.
fn models(
    args: &PromptTestArgs,
    subject: &Subject,
    recorded: &Recordings,
    replies: Replies,
) -> Vec<Option<String>> {
    let named = if args.models.is_empty() { &subject.models } else { &args.models };
    let mut models: Vec<Option<String>> = named.iter().cloned().map(Some).collect();
    if models.is_empty() && replies == Replies::Replayed {
        models = recorded.models().into_iter().map(|model| Some(model.to_owned())).collect();
    }
    if models.is_empty() || subject.suite.cases.iter().all(|case| case.render) {
        models = vec![None];
    }
    models
}

fn subjects(registry: &Registry, args: &PromptTestArgs) -> Result<Vec<Subject>, Failure> {
    if let Some(file) = &args.file {
        return of_file(registry, args, file);
    }
    let named = if args.compare.is_empty() { args.references.clone() } else { args.compare.clone() };
    let references = if named.is_empty() { with_tests(registry)? } else { named };
    let mut wrong: Vec<String> = Vec::new();
    let mut subjects = Vec::new();
    for reference in &references {
        let prompt = registry.get(reference).map_err(Failure::prompt)?;
        let Some((text, origin)) = registry.beside(&prompt.name, TESTS).map_err(Failure::prompt)? else {
            return Err(Failure::usage(format!(
                "the prompt `{0}` has no tests: write {0}/{TESTS} beside its versions",
                prompt.name
            )));
        };
        match parse(&origin, &text) {
            Ok(suite) => subjects.push(Subject { prompt, suite, models: Vec::new() }),
            Err(mistakes) => wrong.extend(mistakes.iter().map(ToString::to_string)),
        }
    }
    wrong.dedup();
    if wrong.is_empty() { Ok(subjects) } else { Err(mistaken(&wrong)) }
}

/// Every prompt that has a test file.
fn with_tests(registry: &Registry) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for name in registry.names().map_err(Failure::prompt)? {
        if registry.beside(&name, TESTS).map_err(Failure::prompt)?.is_some() {
            found.push(name);
        }
    }
    if found.is_empty() {
        return Err(Failure::usage(format!("no prompt has tests: write NAME/{TESTS} beside its versions")));
    }
    Ok(found)
}

fn of_file(registry: &Registry, args: &PromptTestArgs, file: &Path) -> Result<Vec<Subject>, Failure> {
    let name = file.display().to_string();
    let text = read_file(file)?;
    let read = || -> Result<Foreign, Failure> {
        let read = if is_promptfoo(&text) {
            parse_promptfoo(&name, &text)
        } else {
            parse(&name, &text).map(|suite| Foreign { suite, ..Foreign::default() })
        };
        read.map_err(|mistakes| mistaken(&mistakes.iter().map(ToString::to_string).collect::<Vec<_>>()))
    };
    let mut prompts: Vec<Arc<Prompt>> = Vec::new();
    for reference in &args.references {
        prompts.push(registry.get(reference).map_err(Failure::prompt)?);
    }
    if prompts.is_empty() {
        for written in read()?.prompts {
            let (text, origin) = match written {
                Written::Text(text) => (text, name.clone()),
                Written::File(path) => {
                    let path = file.parent().unwrap_or(Path::new("")).join(path);
                    (read_file(&path)?, path.display().to_string())
                }
            };
            prompts.push(Arc::new(Prompt::inline(&text, &origin).map_err(Failure::prompt)?));
        }
    }
    if prompts.is_empty() {
        return Err(Failure::usage(format!(
            "{name} names no prompt: name the one to test, agent prompt test NAME"
        )));
    }
    prompts
        .into_iter()
        .map(|prompt| read().map(|Foreign { suite, models, .. }| Subject { prompt, suite, models }))
        .collect()
}

fn read_file(path: &Path) -> Result<String, Failure> {
    let wrong = |why: &str| Failure::usage(format!("{}: {why}", path.display()));
    read_regular(path).map_err(|why| wrong(&why))?.ok_or_else(|| wrong("there is no such file"))
}

fn mistaken(mistakes: &[String]) -> Failure {
    Failure::listed(exit::CONFIGURATION, "mistakes", mistakes)
}

fn read_recordings(registry: &Registry, args: &PromptTestArgs, prompt: &Prompt) -> Result<Recordings, Failure> {
    let wrong = |why: String| Failure::new(exit::CONFIGURATION, anyhow::anyhow!("{why}"));
    let version = version_of(prompt);
    if let Some(dir) = &args.recordings {
        let path = dir.join(&prompt.name).join(recordings_of(&version));
        let text =
            read_regular(&path).map_err(|why| wrong(format!("{}: {why}", path.display())))?.unwrap_or_default();
        return Recordings::parse(&text).map_err(|why| wrong(format!("{}: {why}", path.display())));
    }
    recordings(registry, &prompt.name, &version).map_err(wrong)
}

fn write_recordings(
    config: &Arc<Config>,
    registry: &Registry,
    args: &PromptTestArgs,
    prompt: &Prompt,
    recorded: &Recordings,
) -> Result<(), Failure> {
    let home = registry.home(&prompt.name, prompt.version).map_err(Failure::prompt)?;
    let dir = args.recordings.clone().or(home).ok_or_else(|| {
        Failure::usage(format!("`{}` has no folder to record in: --recordings DIR names one", prompt.name))
    })?;
    let dir = dir.join(&prompt.name);
    let path = dir.join(recordings_of(&version_of(prompt)));
    // Recordings are committed, so secrets in the output of a model or a tool are redacted.
    let text = config.redactor().redact(&recorded.text()).into_owned();
    Ok(replace(&path, text.as_bytes())?)
}

fn version_of(prompt: &Prompt) -> String {
    prompt.version.map_or("inline".to_owned(), |version| version.to_string())
}
