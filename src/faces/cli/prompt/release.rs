//! `agent prompt promote / rollback / repair / new`: the only commands that change the files of prompts.

use std::fmt::Write;
use std::path::PathBuf;

use jiff::Zoned;

use crate::config::PromptDir;
use crate::prompt::test::{VersionStanding, judge_standing};
use crate::prompt::{
    LATEST, PRODUCTION, Promotion, Prompt, PromptContext, PromptDesk, PromptError, Registry, Version, is_label,
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
    if !is_label(label) {
        return Err(CommandFailure::usage(format!(
            "`{label}` cannot be a label: write a word of letters, digits, `-` and `_` that means nothing else"
        )));
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
    // Before the first release the name means the latest version, which may be a draft: nothing to go back to.
    let is_first = label == PRODUCTION && canary.is_none() && !registry.is_released(name)?;
    let before = if is_first { version } else { registry.find_meant(name).unwrap_or(version) };
    if canary.is_some() && before == version {
        return Err(CommandFailure::usage(format!(
            "{version} is in production already, so all sessions get it: promote another version to production first"
        )));
    }
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
    Registry::new(&dirs).find_meant(&format!("{name}@{label}")).is_ok_and(|meant| meant != version)
}

pub(super) fn roll_back(setup: &CliSetup, registry: &Registry, name: &str) -> CommandOutcome {
    let home = find_home(setup, registry, name, None)?;
    if !home.join(name).is_dir() {
        return Err(CommandFailure::usage(format!(
            "no version of `{name}` was promoted: there is nothing to roll back"
        )));
    }
    let desk = PromptDesk::open(&home, name)?;
    match desk.roll_back(Zoned::now().date(), &registry.versions(name)?)? {
        Some(said) => print_text(format!("{name}: {said}\n")),
        None => Err(CommandFailure::usage(format!(
            "`{name}` is at {} and nothing was in {PRODUCTION} before it: there is nothing to roll back",
            registry.find_meant(name)?
        ))),
    }
}

pub(super) fn repair_releases(setup: &CliSetup, registry: &Registry, name: &str) -> CommandOutcome {
    let home = find_home(setup, registry, name, None)?;
    if !home.join(name).is_dir() {
        return Err(CommandFailure::usage(format!("no directory of prompts has a `{name}` to repair")));
    }
    let said = PromptDesk::open(&home, name)?.repair(&registry.versions(name)?)?;
    let lines = if said.is_empty() { "nothing to repair".to_owned() } else { said.join(&format!("\n{name}: ")) };
    print_text(format!("{name}: {lines}\n"))
}

pub(super) fn begin_version(setup: &CliSetup, registry: &Registry, name: &str) -> CommandOutcome {
    let latest = registry.get(&format!("{name}@{LATEST}"));
    let (version, text) = match &latest {
        Ok(prompt) => {
            // The file as it is now: a released version is read as it was then.
            let file = prompt.version.map_or_else(String::new, |version| format!("{version}.md"));
            let now = registry.read_beside(&prompt.name, &file)?.map(|(text, _)| text);
            let text = now.unwrap_or_else(|| prompt.text().to_owned());
            (prompt.version.map_or(FIRST, |last| Version { minor: last.minor.saturating_add(1), ..last }), text)
        }
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
    let own = || setup.own_dir().join("prompts");
    Ok(registry.home(name, version)?.unwrap_or_else(own))
}
