//! `agent prompt test`: chooses the versions, models and cases to test, and prints the report.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::Cancel;
use crate::agent::assembly::RunOptions;
use crate::agent::assembly::prompt_test::{Bench, Replies, TestProgress};
use crate::config::Config;
use crate::files::regular::{read_regular, replace_file};
use crate::prompt::test::{
    Comparison, Foreign, ImportedPrompt, Recordings, Suite, TESTS, TestReport, Tested, is_promptfoo,
    load_recordings, parse_promptfoo, parse_suite, recordings_of,
};
use crate::prompt::{Prompt, Registry};
use crate::screen::Bar;

use super::super::args::{PromptTestArgs, TestFormat};
use super::super::setup::{CliSetup, build_runtime};
use super::super::signals::Signals;
use super::super::{CommandFailure, CommandOutcome, exit, print_json, print_text, warn_person};

/// A version and its cases.
struct TestedVersion {
    prompt: Arc<Prompt>,
    suite: Suite,
    /// The models that its file names, used unless --model names others.
    models: Vec<String>,
}

pub(super) fn run_tests(
    setup: &CliSetup,
    config: &Arc<Config>,
    registry: &Registry,
    args: PromptTestArgs,
) -> CommandOutcome {
    let signals = Signals::listen()?;
    let mut subjects = choose_subjects(registry, &args)?;
    for subject in &mut subjects {
        for note in std::mem::take(&mut subject.suite.notes) {
            warn_person(&note);
        }
        if let Some(filter) = &args.filter {
            subject.suite.cases.retain(|case| case.name.contains(filter.as_str()));
        }
    }
    if subjects.iter().all(|subject| subject.suite.cases.is_empty()) {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(CommandFailure::usage(format!("no case has `{filter}` in its name (--filter)")));
    }
    // The root future may borrow; a spawned task may not.
    let cancel = Cancel::default();
    signals.trigger(&cancel);
    let bar = setup.bar();
    let report = build_runtime()?.block_on(test_all(config, registry, &args, &subjects, &cancel, &bar))?;
    if let Some(signal) = cancel.signal() {
        return Ok(signal.code());
    }
    match args.output {
        TestFormat::Text => print_text(report.text()),
        TestFormat::Json => print_json(&report.json()),
        TestFormat::Junit => print_text(report.junit()),
        TestFormat::Html => print_text(report.html()),
    }?;
    Ok(if report.has_passed() { exit::DONE } else { exit::TESTS_FAILED })
}

async fn test_all(
    config: &Arc<Config>,
    registry: &Registry,
    args: &PromptTestArgs,
    subjects: &[TestedVersion],
    cancel: &Cancel,
    bar: &Bar,
) -> Result<TestReport, CommandFailure> {
    let replies = match (args.record, args.replay, args.update_recordings) {
        (true, ..) => Replies::Completed,
        (_, true, _) => Replies::Replayed,
        (.., true) => Replies::Renewed,
        _ => Replies::Asked,
    };
    let agent = config.agent(args.agent.as_deref()).map_err(CommandFailure::usage)?;
    let mut report = TestReport::default();
    for subject in subjects {
        let prompt = &subject.prompt;
        let mut recorded = read_recordings(registry, args, prompt)?;
        let before = recorded.clone();
        for model in choose_models(args, subject, &recorded, replies) {
            let bench = Bench {
                config,
                registry,
                options: RunOptions { agent: args.agent.clone(), model: model.clone(), ..RunOptions::default() },
                replies,
                jobs: args.jobs.unwrap_or(agent.limits.max_parallel),
                runs: args.runs,
                cancel: cancel.clone(),
            };
            let shown = |TestProgress { done, all }: TestProgress| match all {
                0 => {}
                all => bar.set(done, all, &prompt.id()),
            };
            let tested = bench.test(prompt, &subject.suite, &mut recorded, model.as_deref(), &shown).await;
            report.tested.push(tested?);
        }
        // Another file has some of the cases alone.
        if replies == Replies::Renewed && args.filter.is_none() && args.file.is_none() {
            recorded.retain(|case| subject.suite.cases.iter().any(|of| of.name == case));
        }
        // After an interruption, those that were to be renewed stay as they were.
        if recorded != before && (replies == Replies::Completed || !cancel.is_triggered()) {
            write_recordings(config, registry, args, prompt, &recorded)?;
            if cancel.is_triggered() {
                warn_person("interrupted: what was answered is recorded, and --record asks only for the rest");
            }
        }
        if cancel.is_triggered() {
            break;
        }
    }
    if let ([_, _], [a, b, ..]) = (args.compare.as_slice(), pick_sides(&report.tested, subjects).as_slice()) {
        report.comparison = Some(Comparison::compare(a, b));
    }
    Ok(report)
}

/// The tests of each version with its first model.
fn pick_sides<'r>(tested: &'r [Tested], subjects: &[TestedVersion]) -> Vec<&'r Tested> {
    let each = tested.len() / subjects.len().max(1);
    tested.iter().step_by(each.max(1)).collect()
}

/// The models to ask, or whose recordings to replay; `None` means the agent's model, or any model's recordings.
fn choose_models(
    args: &PromptTestArgs,
    subject: &TestedVersion,
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

fn choose_subjects(registry: &Registry, args: &PromptTestArgs) -> Result<Vec<TestedVersion>, CommandFailure> {
    if let Some(file) = &args.file {
        return of_file(registry, args, file);
    }
    let named = if args.compare.is_empty() { args.references.clone() } else { args.compare.clone() };
    let references = if named.is_empty() { with_tests(registry)? } else { named };
    let mut wrong: Vec<String> = Vec::new();
    let mut subjects = Vec::new();
    for reference in &references {
        let prompt = registry.get(reference)?;
        let Some((text, origin)) = registry.read_beside(&prompt.name, TESTS)? else {
            return Err(CommandFailure::usage(format!(
                "the prompt `{0}` has no tests: write {0}/{TESTS} beside its versions",
                prompt.name
            )));
        };
        match parse_suite(&origin, &text) {
            Ok(suite) => subjects.push(TestedVersion { prompt, suite, models: Vec::new() }),
            Err(mistakes) => wrong.extend(mistakes.iter().map(ToString::to_string)),
        }
    }
    wrong.dedup();
    if wrong.is_empty() { Ok(subjects) } else { Err(report_mistakes(&wrong)) }
}

/// Every prompt that has a test file.
fn with_tests(registry: &Registry) -> Result<Vec<String>, CommandFailure> {
    let mut found = Vec::new();
    for name in registry.names()? {
        if registry.read_beside(&name, TESTS)?.is_some() {
            found.push(name);
        }
    }
    if found.is_empty() {
        return Err(CommandFailure::usage(format!("no prompt has tests: write NAME/{TESTS} beside its versions")));
    }
    Ok(found)
}

fn of_file(registry: &Registry, args: &PromptTestArgs, file: &Path) -> Result<Vec<TestedVersion>, CommandFailure> {
    let name = file.display().to_string();
    let text = read_file(file)?;
    let read = || -> Result<Foreign, CommandFailure> {
        let read = if is_promptfoo(&text) {
            parse_promptfoo(&name, &text)
        } else {
            parse_suite(&name, &text).map(|suite| Foreign { suite, ..Foreign::default() })
        };
        read.map_err(|mistakes| report_mistakes(&mistakes.iter().map(ToString::to_string).collect::<Vec<_>>()))
    };
    let named = args.references.iter().map(|reference| registry.get(reference));
    let mut prompts: Vec<Arc<Prompt>> = named.collect::<Result<_, _>>()?;
    if prompts.is_empty() {
        for written in read()?.prompts {
            let (text, origin) = match written {
                ImportedPrompt::Text(text) => (text, name.clone()),
                ImportedPrompt::File(path) => {
                    let path = file.parent().unwrap_or(Path::new("")).join(path);
                    (read_file(&path)?, path.display().to_string())
                }
            };
            prompts.push(Arc::new(Prompt::inline(&text, &origin)?));
        }
    }
    if prompts.is_empty() {
        return Err(CommandFailure::usage(format!(
            "{name} names no prompt: name the one to test, agent prompt test NAME"
        )));
    }
    prompts
        .into_iter()
        .map(|prompt| read().map(|Foreign { suite, models, .. }| TestedVersion { prompt, suite, models }))
        .collect()
}

fn read_file(path: &Path) -> Result<String, CommandFailure> {
    let wrong = |why: &str| CommandFailure::usage(format!("{}: {why}", path.display()));
    read_regular(path).map_err(|why| wrong(&why))?.ok_or_else(|| wrong("there is no such file"))
}

fn report_mistakes(mistakes: &[String]) -> CommandFailure {
    CommandFailure::listed(exit::CONFIGURATION, "mistakes", mistakes)
}

fn read_recordings(
    registry: &Registry,
    args: &PromptTestArgs,
    prompt: &Prompt,
) -> Result<Recordings, CommandFailure> {
    let wrong = |why: String| CommandFailure::word(exit::CONFIGURATION, why);
    let Some(dir) = &args.recordings else {
        return load_recordings(registry, &prompt.name, &version_of(prompt)).map_err(wrong);
    };
    let path = locate_recordings(dir, prompt);
    let read = read_regular(&path).and_then(|text| Recordings::parse(&text.unwrap_or_default()));
    read.map_err(|why| wrong(format!("{}: {why}", path.display())))
}

fn locate_recordings(dir: &Path, prompt: &Prompt) -> PathBuf {
    dir.join(&prompt.name).join(recordings_of(&version_of(prompt)))
}

fn write_recordings(
    config: &Arc<Config>,
    registry: &Registry,
    args: &PromptTestArgs,
    prompt: &Prompt,
    recorded: &Recordings,
) -> Result<(), CommandFailure> {
    let home = registry.home(&prompt.name, prompt.version)?;
    let dir = args.recordings.clone().or(home).ok_or_else(|| {
        CommandFailure::usage(format!("`{}` has no folder to record in: --recordings DIR names one", prompt.name))
    })?;
    // Recordings are committed, so secrets in the output of a model or a tool are redacted.
    let text = config.redactor().redact(&recorded.text()).into_owned();
    Ok(replace_file(&locate_recordings(&dir, prompt), text.as_bytes())?)
}

fn version_of(prompt: &Prompt) -> String {
    prompt.version.map_or("inline".to_owned(), |version| version.to_string())
}
