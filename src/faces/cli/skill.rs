//! `agent skill list / show / check`.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::assembly::{self, Options, Services};
use crate::base::text;
use crate::safety::Nobody;
use crate::skills::{self, Body, Checked, Skill, SkillError};

use super::args::{ReportFormat, SkillCommand};
use super::setup::Setup;
use super::{Failure, Outcome, exit, print, tables, warn};

pub(super) fn run(setup: &Setup, command: SkillCommand) -> Outcome {
    match command {
        SkillCommand::List { names, agent, output } => {
            let services = services(setup, agent)?;
            if names {
                let plain = services.catalogue.iter().filter(|skill| skill.has_plain_name());
                return print(plain.map(|skill| skill.name.clone() + "\n").collect::<String>());
            }
            services.catalogue.notes().iter().for_each(|note| warn(&text::visible(&note.to_string())));
            print(match output {
                ReportFormat::Text => list(&services),
                ReportFormat::Json => pretty(services.catalogue.iter().map(described).collect())?,
            })
        }
        SkillCommand::Show { skill: name, agent, output } => {
            let services = services(setup, agent)?;
            let skill = services.catalogue.get(&name).map_err(Failure::skill)?;
            let body = services.catalogue.load(&name, "").map_err(Failure::skill)?;
            print(match output {
                ReportFormat::Text => show(skill, &body),
                ReportFormat::Json => {
                    let mut shown = described(skill);
                    shown["directory"] = json!(body.directory);
                    shown["files"] = json!(body.files);
                    shown["instructions"] = json!(body.text);
                    pretty(shown)?
                }
            })
        }
        SkillCommand::Check { dirs, output } => check(setup, dirs, output),
    }
}

fn services(setup: &Setup, agent: Option<String>) -> Result<Services, Failure> {
    let workspace = setup.workspace()?;
    let config = setup.config(&workspace)?;
    config.warnings.iter().for_each(|warning| warn(warning));
    let options = Options { agent, ..Options::default() };
    assembly::assemble(&config, &workspace, &options, Arc::new(Nobody)).map_err(Failure::from_setup)
}

fn pretty(value: Value) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

/// Formats one skill per line: its name, its scope and its description.
fn list(services: &Services) -> String {
    if services.catalogue.is_empty() {
        return "No skills.\n".to_owned();
    }
    let row = |skill: &Skill| [skill.name.clone(), skill.scope.name().to_owned(), tables::about_skill(skill)];
    let rows: Vec<[String; 3]> = services.catalogue.iter().map(row).collect();
    tables::columns(&rows, tables::edge())
}

fn described(skill: &Skill) -> Value {
    json!({
        "name": skill.name,
        "description": skill.description,
        "scope": skill.scope.name(),
        "path": skill.path(),
        "hidden": skill.is_hidden,
        "template": skill.is_template,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "allowed_tools": skill.allowed_tools.iter().map(|allowed| &allowed.entry).collect::<Vec<_>>(),
        "hides": skill.hides,
    })
}

fn show(skill: &Skill, body: &Body) -> String {
    let mut out = String::new();
    let mut line = |what: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(out, "{:<14}{}", format!("{what}:"), text::one_line(value, 2000));
        }
    };
    line("name", &skill.name);
    line("description", &skill.description);
    line("from", &format!("{}, {}", skill.scope.name(), body.path));
    line("license", skill.license.as_deref().unwrap_or_default());
    line("needs", skill.compatibility.as_deref().unwrap_or_default());
    line("hides", &skill.hides.join(", "));
    if skill.is_hidden {
        line("model", "does not see it; /skill and --skill load it");
    }
    if skill.is_template {
        line("body", "a template, rendered when it is loaded");
    }
    line("files", &body.listing());
    if !skill.allowed_tools.is_empty() {
        out += "It asks to use tools without questions. That takes rules of yours (permissions.rules in agent.yaml):\n";
        for allowed in &skill.allowed_tools {
            let _ = writeln!(out, "  {}", text::one_line(&allowed.to_string(), 200));
        }
    }
    let body = if tables::edge().is_some() { text::visible(&body.text) } else { body.text.as_str().into() };
    format!("{out}\n{body}\n")
}

fn check(setup: &Setup, dirs: Vec<PathBuf>, output: ReportFormat) -> Outcome {
    let mut checked: Vec<Checked> = Vec::new();
    let bar = setup.bar();
    let tell = &|done: usize, all: usize, skill: &str| bar.set(done, all, &text::visible(skill));
    if dirs.is_empty() {
        let workspace = setup.workspace()?;
        let config = setup.config(&workspace)?;
        config.warnings.iter().for_each(|warning| warn(warning));
        // A directory that is missing or has no skills is not an error here.
        let found = config.skill_dirs.iter().filter_map(|dir| skills::check(&dir.dir, tell).ok());
        checked.extend(found.flatten());
    }
    for dir in dirs {
        checked.extend(skills::check(&dir, tell).map_err(Failure::usage)?);
    }
    drop(bar);
    let problems: usize = checked.iter().map(|checked| checked.problems.len()).sum();
    match output {
        ReportFormat::Text => print(report(&checked, problems))?,
        ReportFormat::Json => {
            let each = |checked: &Checked| json!({ "path": checked.path, "valid": checked.problems.is_empty(), "problems": checked.problems });
            print(pretty(checked.iter().map(each).collect())?)?
        }
    };
    Ok(if problems == 0 { exit::DONE } else { exit::TESTS_FAILED })
}

fn report(checked: &[Checked], problems: usize) -> String {
    let mut out = String::new();
    for Checked { path, problems } in checked {
        for problem in problems {
            let line = problem.line.map_or(String::new(), |line| format!(":{line}"));
            let _ = writeln!(out, "{}", text::visible(&format!("{path}{line}: {}", problem.message)));
        }
    }
    let skills = if checked.len() == 1 { "1 skill".to_owned() } else { format!("{} skills", checked.len()) };
    let found = match problems {
        0 => "no problems".to_owned(),
        1 => "1 problem".to_owned(),
        problems => format!("{problems} problems"),
    };
    out + &format!("{skills} checked, {found}\n")
}

impl Failure {
    /// Maps an unknown name to wrong usage.
    pub(super) fn skill(error: SkillError) -> Self {
        Self::new(exit::of_skill(error.kind), error)
    }
}
