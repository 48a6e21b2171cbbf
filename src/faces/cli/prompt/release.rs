//! `agent prompt promote / rollback / new`: the only commands that change the files of prompts.

use std::fmt::Write;
use std::path::PathBuf;

use jiff::Zoned;

use crate::config::PromptDir;
use crate::prompt::test::{VersionStanding, judge_standing};
use crate::prompt::{
    LATEST, PRODUCTION, Promotion, Prompt, PromptContext, PromptDesk, PromptError, Registry, Version,
};

use super::super::setup::CliSetup;
use super::super::{CommandFailure, CommandOutcome, exit, print_text, warn_person};

/// The number of cases that a version must have, and pass, before it is released.
const FEWEST_CASES: usize = 10;

pub(super) fn promote_version(
    setup: &CliSetup,
    registry: &Registry,
    dirs: &[PromptDir],
    name: &str,
    promotion: &Promotion<'_>,
    force: bool,
) -> CommandOutcome {
    let Promotion { version, label, canary, .. } = *promotion;
    if label == LATEST || label.parse::<Version>().is_ok() {
        return Err(CommandFailure::usage(format!("`{label}` cannot be a label: it always means a version")));
    }
    let prompt = registry.get(&format!("{name}@{version}"))?;
    let found = judge_standing(registry, &prompt, &PromptContext::sample().value());
    match (find_objection(&prompt, &found), force) {
        (Some(why), false) => {
            let why = format!("{why}\nNothing was released. --force releases it anyway.");
            return Err(CommandFailure::word(exit::TESTS_FAILED, why));
        }
        (Some(why), true) => warn_person(&why),
        (None, _) => {}
    }
    let home = find_home(setup, registry, name, Some(version))?;
    let desk = PromptDesk::open(&home, name)?;
    let before = registry.get(name)?.version.unwrap_or(version);
    let Some(said) = desk.promote(promotion, &prompt, before)? else {
        return print_text(format!("{name}: {version} is `{label}` already\n"));
    };
    if canary.is_none() && is_hidden(dirs, home, name, label, version) {
        warn_person(&format!(
            "here `{name}@{label}` still means another version: a nearer directory of prompts overrides it"
        ));
    }
    print_text(format!("{name}: {said}\n"))
}

/// True if a nearer directory gives the label another meaning.
fn is_hidden(dirs: &[PromptDir], home: PathBuf, name: &str, label: &str, version: Version) -> bool {
    let mut dirs = dirs.to_vec();
    match dirs.iter().find(|dir| dir.dir == home) {
        // A workspace's files are read as they were when the person trusted them, so the change is not visible yet.
        Some(own) if own.through.list_files(&home).is_some() => return false,
        Some(_) => {}
        None => dirs.insert(0, PromptDir::new(home)),
    }
    Registry::new(&dirs).get(&format!("{name}@{label}")).is_ok_and(|prompt| prompt.version != Some(version))
}

pub(super) fn roll_back(setup: &CliSetup, registry: &Registry, name: &str) -> CommandOutcome {
    let now = registry.get(name)?;
    let home = find_home(setup, registry, name, None)?;
    if !home.join(name).is_dir() {
        return Err(CommandFailure::usage(format!(
            "no version of `{name}` was promoted: there is nothing to roll back"
        )));
    }
    let desk = PromptDesk::open(&home, name)?;
    match desk.roll_back(Zoned::now().date())? {
        Some(said) => print_text(format!("{name}: {said}\n")),
        None => Err(CommandFailure::usage(format!(
            "`{name}` is at {} and nothing was in {PRODUCTION} before it: there is nothing to roll back",
            now.version.unwrap_or(Version { major: 0, minor: 0 })
        ))),
    }
}

pub(super) fn begin_version(setup: &CliSetup, registry: &Registry, name: &str) -> CommandOutcome {
    let latest = registry.get(&format!("{name}@{LATEST}"));
    let (version, text) = match &latest {
        Ok(prompt) => (prompt.version.map_or(FIRST, Version::next_minor), prompt.text().to_owned()),
        Err(error) if error.file.is_some() => return Err(error.clone().into()),
        Err(_) if !Prompt::may_be_named(name) => {
            return Err(CommandFailure::usage(format!(
                "`{name}` cannot name a prompt: write letters, digits, `-`, `_`, or modules/NAME"
            )));
        }
        Err(_) => (FIRST, SCAFFOLD.to_owned()),
    };
    let home = find_home(setup, registry, name, None)?;
    let desk = PromptDesk::open(&home, name)?;
    let path = desk.begin(version, &text)?;
    let mut written = format!("{}\n", path.display());
    if latest.is_err() {
        for (file, text) in
            [("tests.yaml", TESTS.to_owned()), ("changelog.md", format!("# Changelog of `{name}`\n"))]
        {
            if let Some(path) = desk.add(file, &text)? {
                let _ = writeln!(written, "{}", path.display());
            }
        }
    }
    print_text(written)
}

const FIRST: Version = Version { major: 1, minor: 0 };

/// The text of a new prompt: enough to render it and to show what a head may contain.
const SCAFFOLD: &str = "---\ndescription: In one sentence, what this prompt is for.\nrequired_vars: [request]\n\
                        untrusted: [request]\n---\nDo what the request asks, and say so where it is unclear.\n\n\
                        <request>\n{{ request }}\n</request>\n";
const TESTS: &str = "cases:\n  - name: the request stands between its marks\n    render: true\n    vars: { request: hello }\n    \
                     assert:\n      - contains: \"<request>\\nhello\\n</request>\"\n";

/// Returns the reason not to release a version, if there is one.
fn find_objection(prompt: &Prompt, found: &VersionStanding) -> Option<String> {
    let id = prompt.id();
    if !found.failures.is_empty() {
        return Some(format!("the tests of {id} fail:\n{}", found.failures.join("\n")));
    }
    (found.cases < FEWEST_CASES)
        .then(|| format!("{id} has too few test cases to be released: {} of {FEWEST_CASES}", found.cases))
}

/// The directory of prompts that a version lies in, else that of the person's own prompts.
fn find_home(
    setup: &CliSetup,
    registry: &Registry,
    name: &str,
    version: Option<Version>,
) -> Result<PathBuf, PromptError> {
    let own = || setup.given_dir().unwrap_or_else(|| setup.env.dirs().config).join("prompts");
    Ok(registry.home(name, version)?.unwrap_or_else(own))
}
