//! `agent skill list / show / check`.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::assembly::{self, RunOptions, Services};
use crate::base::text;
use crate::safety::Nobody;
use crate::skills::{self, Skill, SkillBody, SkillCheck, SkillError};

use super::args::{ReportFormat, SkillCommand};
use super::setup::CliSetup;
use super::{CommandFailure, CommandOutcome, exit, print_text, tables, warn_person};

pub(super) fn run_skill(setup: &CliSetup, command: SkillCommand) -> CommandOutcome {
    match command {
        SkillCommand::List { names, agent, output } => {
            let services = assemble_services(setup, agent)?;
            if names {
                let plain = services.catalogue.iter().filter(|skill| skill.has_plain_name());
                return print_text(plain.map(|skill| skill.name.clone() + "\n").collect::<String>());
            }
            services.catalogue.notes().iter().for_each(|note| warn_person(&text::make_visible(&note.to_string())));
            print_text(match output {
                ReportFormat::Text => format_skills(&services),
                ReportFormat::Json => format_pretty(services.catalogue.iter().map(describe_skill).collect())?,
            })
        }
        SkillCommand::Show { skill: name, agent, output } => {
            let services = assemble_services(setup, agent)?;
            let skill = services.catalogue.get(&name).map_err(CommandFailure::skill)?;
            let body = services.catalogue.load(&name, "").map_err(CommandFailure::skill)?;
            print_text(match output {
                ReportFormat::Text => format_skill(skill, &body),
                ReportFormat::Json => {
                    let mut shown = describe_skill(skill);
                    shown["directory"] = json!(body.directory);
                    shown["files"] = json!(body.files);
                    shown["instructions"] = json!(body.text);
                    format_pretty(shown)?
                }
            })
        }
        SkillCommand::Check { dirs, output } => check_skills(setup, dirs, output),
    }
}

fn assemble_services(setup: &CliSetup, agent: Option<String>) -> Result<Services, CommandFailure> {
    let workspace = setup.workspace()?;
    let config = setup.config(&workspace)?;
    config.warnings.iter().for_each(|warning| warn_person(warning));
    let options = RunOptions { agent, ..RunOptions::default() };
    assembly::assemble_services(&config, &workspace, &options, Arc::new(Nobody))
        .map_err(CommandFailure::from_setup)
}

fn format_pretty(value: Value) -> Result<String, CommandFailure> {
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

/// Formats one skill per line: its name, its scope and its description.
fn format_skills(services: &Services) -> String {
    if services.catalogue.is_empty() {
        return "No skills.\n".to_owned();
    }
    let row = |skill: &Skill| [skill.name.clone(), skill.scope.name().to_owned(), tables::about_skill(skill)];
    let rows: Vec<[String; 3]> = services.catalogue.iter().map(row).collect();
    tables::lay_out_columns(&rows, tables::find_edge())
}

fn describe_skill(skill: &Skill) -> Value {
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

fn format_skill(skill: &Skill, body: &SkillBody) -> String {
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
    let body =
        if tables::find_edge().is_some() { text::make_visible(&body.text) } else { body.text.as_str().into() };
    format!("{out}\n{body}\n")
}

fn check_skills(setup: &CliSetup, dirs: Vec<PathBuf>, output: ReportFormat) -> CommandOutcome {
    let mut checked: Vec<SkillCheck> = Vec::new();
    let bar = setup.bar();
    let tell = &|done: usize, all: usize, skill: &str| bar.set(done, all, &text::make_visible(skill));
    if dirs.is_empty() {
        let workspace = setup.workspace()?;
        let config = setup.config(&workspace)?;
        config.warnings.iter().for_each(|warning| warn_person(warning));
        // A directory that is missing or has no skills is not an error here.
        let found = config.skill_dirs.iter().filter_map(|dir| skills::check_skills(&dir.dir, tell).ok());
        checked.extend(found.flatten());
    }
    for dir in dirs {
        checked.extend(skills::check_skills(&dir, tell).map_err(CommandFailure::usage)?);
    }
    drop(bar);
    let problems: usize = checked.iter().map(|checked| checked.problems.len()).sum();
    match output {
        ReportFormat::Text => print_text(format_report(&checked, problems))?,
        ReportFormat::Json => {
            let each = |checked: &SkillCheck| json!({ "path": checked.path, "valid": checked.problems.is_empty(), "problems": checked.problems });
            print_text(format_pretty(checked.iter().map(each).collect())?)?
        }
    };
    Ok(if problems == 0 { exit::DONE } else { exit::TESTS_FAILED })
}

fn format_report(checked: &[SkillCheck], problems: usize) -> String {
    let mut out = String::new();
    for SkillCheck { path, problems } in checked {
        for problem in problems {
            let line = problem.line.map_or(String::new(), |line| format!(":{line}"));
            let _ = writeln!(out, "{}", text::make_visible(&format!("{path}{line}: {}", problem.message)));
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

impl CommandFailure {
    /// Maps an unknown name to wrong usage.
    pub(super) fn skill(error: SkillError) -> Self {
        Self::new(exit::of_skill(error.kind), error)
    }
}
