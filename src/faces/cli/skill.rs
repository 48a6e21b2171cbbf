//! `agent skill list / show / check`.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::agent::assembly::{RunOptions, Services};
use crate::base::text;
use crate::skills::{self, Skill, SkillBody, SkillCatalogue, SkillCheck};

use super::args::{ReportFormat, SkillCommand};
use super::setup::{CliSetup, assemble_unasked, build_runtime};
use super::{CommandFailure, CommandOutcome, exit, print_json, print_table, print_text, tables, warn_person};

pub(super) fn run_skill(setup: &CliSetup, command: SkillCommand) -> CommandOutcome {
    match command {
        SkillCommand::List { agent, output } => {
            let services = find_skills(setup, agent)?;
            let skills = &services.catalogue;
            skills.notes().iter().for_each(|note| warn_person(&text::make_visible(&note.to_string())));
            match output {
                ReportFormat::Text => print_skills(skills),
                ReportFormat::Json => print_json(&skills.iter().map(describe_skill).collect::<Vec<_>>()),
            }
        }
        SkillCommand::Show { skill: name, agent, output } => {
            let services = find_skills(setup, agent)?;
            let skills = &services.catalogue;
            build_runtime()?.block_on(skills.fetch(&name, None))?;
            let (skill, body) = (skills.get(&name)?, skills.load(&name, "")?);
            match output {
                ReportFormat::Text => print_text(format_skill(skill, &body)),
                ReportFormat::Json => {
                    let mut shown = describe_skill(skill);
                    shown["directory"] = json!(body.directory);
                    shown["files"] = json!(body.files);
                    shown["instructions"] = json!(body.text);
                    print_json(&shown)
                }
            }
        }
        SkillCommand::Check { dirs, output } => check_skills(setup, dirs, output),
    }
}

/// The services of an agent: its skills, and the servers that have some of them.
fn find_skills(setup: &CliSetup, agent: Option<String>) -> Result<Services, CommandFailure> {
    let (workspace, config) = setup.load()?;
    config.warnings.iter().for_each(|warning| warn_person(warning));
    let options = RunOptions { agent, ..RunOptions::default() };
    Ok(assemble_unasked(&config, &workspace, &options)?)
}

/// Prints one skill per line: its name, its scope and its description.
fn print_skills(skills: &SkillCatalogue) -> CommandOutcome {
    if skills.is_empty() {
        return print_text("No skills.\n");
    }
    let row = |skill: &Skill| [skill.name.clone(), skill.scope.name().to_owned(), tables::about_skill(skill)];
    print_table(&skills.iter().map(row).collect::<Vec<_>>())
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
        let (_, config) = setup.load()?;
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
            let each = |SkillCheck { path, problems }: &SkillCheck| json!({ "path": path, "valid": problems.is_empty(), "problems": problems });
            print_json(&checked.iter().map(each).collect::<Vec<_>>())?
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
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let found = if problems == 0 { "no".to_owned() } else { problems.to_string() };
    let (skills, many) = (checked.len(), plural(problems));
    out + &format!("{skills} skill{} checked, {found} problem{many}\n", plural(skills))
}
