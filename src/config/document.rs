//! Turns the text of a file into a located tree with its templates rendered.
//!
//! A `.yaml` file is parsed first and its strings are rendered one by one; a `.yaml.j2` file is rendered as a whole and
//! then parsed. Templates for run time (prompts, scripts) are left as they are. A project's templates see no secrets.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::env::Env;
use super::layer::{ConfigFile, read_inside};
use super::mistake::{Mistake, template_place};
use super::settings::PROMPT_KEYS;
use super::source::{ConfigDocument, ConfigLayer, ConfigSource, Sources, SubjectKind};
use crate::base::yaml::{self, Node, Scalar, ScalarForm, YamlPlace, YamlTree};
use crate::template::{self, Template, TemplateError, Undefined, escape_text, is_template};

/// The documents, mistakes and warnings gathered while files are read.
pub(super) struct ConfigReading<'e> {
    pub env: &'e Env,
    pub sources: Sources,
    pub documents: Vec<ConfigDocument>,
    pub mistakes: Vec<Mistake>,
    pub warnings: Vec<String>,
    /// Files that templates included, by directory and name.
    pub included: Arc<Mutex<HashSet<(PathBuf, String)>>>,
}

impl ConfigReading<'_> {
    /// Reads one file, and adds its mistakes to the others.
    pub fn read(&mut self, file: ConfigFile) {
        let file_name = file.display.clone();
        let text = if file.whole_template {
            match self.render_whole(&file) {
                Ok(text) => text.into(),
                Err(error) => {
                    return self.mistakes.push(Mistake::whole_template(&file.display, &file.text, &error));
                }
            }
        } else {
            file.text.clone()
        };
        let source = self.sources.add(ConfigSource {
            layer: file.of.layer,
            name: file_name,
            text,
            rendered: file.whole_template,
        });
        let text = &self.sources.get(YamlPlace { source, ..YamlPlace::default() }).text;
        let read = match file.packed {
            Some(packed) => Ok((yaml::unpack_tree(packed, source), Vec::new())),
            None => yaml::tree_of_firsts(text, source),
        };
        let (mut node, duplicates) = match read {
            Ok(read) => read,
            Err(error) => {
                let mut mistake = Mistake::yaml(&self.sources, source, error);
                mistake.hint = hint_for(&file);
                return self.mistakes.push(mistake);
            }
        };
        let duplicates = duplicates.into_iter().map(|error| Mistake::yaml(&self.sources, source, error));
        self.mistakes.extend(duplicates);
        if !matches!(node.tree, YamlTree::Map(_)) && !node.is_blank() {
            let message = "a file must be a mapping: `key: value` lines";
            return self.mistakes.push(Mistake::place_at(&self.sources, node.place, message));
        }
        if !file.whole_template {
            let mut context = None;
            self.render(&file, &mut node, &mut Vec::new(), &mut context);
        }
        self.check_name(&file, &node);
        let name = self.name_of(&file, &node);
        self.documents.push(ConfigDocument { layer: file.of.layer, kind: file.kind, name, node });
    }

    fn render_whole(&self, file: &ConfigFile) -> Result<String, TemplateError> {
        let (of, included) = (Arc::clone(&file.of), Arc::clone(&self.included));
        let loader = move |name: &str| {
            let dir = of.dir.as_ref()?;
            let text = match of.layer {
                ConfigLayer::Project => of.through.read_text(&dir.join(name)).ok()??,
                _ => read_inside(dir, name).ok()?,
            };
            included.lock().expect("no holder panics").insert((dir.clone(), name.to_owned()));
            Some(text)
        };
        Template::compile_with(&file.display, &file.text, Undefined::Empty, loader)
            .and_then(|template| template.render(&self.context(file)))
    }

    /// `env` and `config.dir`.
    fn context(&self, file: &ConfigFile) -> template::Value {
        let sees_secrets = file.of.layer != ConfigLayer::Project;
        let env = self.env.for_configuration(sees_secrets);
        let dir = file.of.dir.as_ref().map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
        template::make_object([("env", env), ("config", template::make_object([("dir", dir.into())]))])
    }

    fn render(
        &mut self,
        file: &ConfigFile,
        node: &mut Node,
        path: &mut Vec<String>,
        context: &mut Option<template::Value>,
    ) {
        if is_run_time_text(file.kind, path, node) {
            return;
        }
        let rendered = match &mut node.tree {
            YamlTree::Map(entries) => {
                for (key, value) in entries {
                    path.push(key.text.to_string());
                    self.render(file, value, path, context);
                    path.pop();
                }
                return;
            }
            YamlTree::List(items) => {
                return items.iter_mut().for_each(|item| self.render(file, item, path, context));
            }
            YamlTree::Scalar(scalar) if is_template(&scalar.text) => {
                match Template::compile(&file.display, &scalar.text, Undefined::Empty) {
                    Ok(template) => template.render(context.get_or_insert_with(|| self.context(file))),
                    Err(error) => {
                        return self.mistakes.push(Mistake::template(&self.sources, node, &error));
                    }
                }
            }
            YamlTree::Scalar(_) => return,
        };
        match rendered {
            Ok(mut text) => {
                // Each call renders the variables of a tool once more, with its arguments.
                if file.kind == SubjectKind::Tools && path.first().is_some_and(|key| key == "env") {
                    text = escape_text(&text);
                }
                node.tree = YamlTree::Scalar(Scalar { text: text.into(), form: ScalarForm::Rendered });
            }
            Err(error) => {
                let place = self.sources.describe(template_place(&self.sources, node, &error));
                let message = format!("{place}: template: {}; the text is kept as it is", error.message);
                self.warnings.push(self.env.redactor().redact(&message).into_owned());
            }
        }
    }

    fn check_name(&mut self, file: &ConfigFile, node: &Node) {
        // A tool may have a name other than its file's.
        let is_free = matches!(file.kind, SubjectKind::Settings | SubjectKind::Tools);
        let Some(named) = node.get("name").filter(|_| !is_free) else { return };
        if named.text().is_some_and(|name| name != file.name) && !named.is_blank() {
            let message = format!("the name must be that of the file, `{}`", file.name);
            self.mistakes
                .push(Mistake::place_at(&self.sources, named.place, message).hint("or leave the key out"));
        }
    }

    /// The name of the thing that the file describes: the one in the file if it may state one, else the file's own.
    fn name_of(&mut self, file: &ConfigFile, node: &Node) -> String {
        /// The longest that servers take.
        const LONGEST: usize = 64;
        if file.kind != SubjectKind::Tools {
            return file.name.clone();
        }
        let named = node.get("name").filter(|named| !named.is_blank());
        let name = named.and_then(Node::text).unwrap_or(&file.name);
        let place = named.unwrap_or(node).place;
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(good) {
            let message =
                format!("`{name}` is not a name for a tool: letters, digits, `_` and `-`, {LONGEST} at most");
            self.mistakes.push(Mistake::place_at(&self.sources, place, message));
        }
        let same = |document: &&ConfigDocument| document.kind == SubjectKind::Tools && document.name == name;
        let dir = |name: &str| name.rsplit_once('/').map(|(dir, _)| dir.to_owned());
        let twin = self.documents.iter().filter(same).map(|document| &self.sources.get(document.node.place).name);
        if let Some(twin) = twin.into_iter().find(|twin| dir(twin) == dir(&file.display)) {
            let message = format!("{twin} describes `{name}` already; keep one of them");
            self.mistakes.push(Mistake::place_at(&self.sources, place, message));
        }
        name.to_owned()
    }
}

/// The path of the rules, in the settings and in agents.
pub(super) const RULES: [&str; 2] = ["permissions", "rules"];

/// True for texts that are templates of the run: inline prompts, everything in a script or in the steps of a flow, and
/// the command of a tool.
pub(super) fn is_run_time_text(kind: SubjectKind, path: &[String], node: &Node) -> bool {
    match (kind, path) {
        (SubjectKind::Agents, [key]) => {
            PROMPT_KEYS.contains(&key.as_str()) && matches!(node.tree, YamlTree::Scalar(_))
        }
        (SubjectKind::Agents, [roles, _, prompt]) => {
            roles == "roles" && prompt == "prompt" && matches!(node.tree, YamlTree::Scalar(_))
        }
        (SubjectKind::Models, [key, ..]) => key == "script",
        (SubjectKind::Tools, [key, ..]) => match key.as_str() {
            "command" | "workdir" => true,
            "env" => matches!(node.tree, YamlTree::Scalar(_)) && !reads_environment(node),
            _ => false,
        },
        (SubjectKind::Flows, [key, ..]) => matches!(key.as_str(), "steps" | "outputs" | "answer"),
        _ => false,
    }
}

/// True for a template that reads variables of the environment and nothing else.
fn reads_environment(node: &Node) -> bool {
    let text = node.text().filter(|text| is_template(text));
    let variables = text.and_then(|text| Template::compile("template", text, Undefined::Empty).ok());
    let variables = variables.map(|template| template.variables()).unwrap_or_default();
    !variables.is_empty() && variables.iter().all(|name| name.starts_with("env."))
}

fn hint_for(file: &ConfigFile) -> Option<String> {
    let blocks = file.text.lines().any(|line| line.trim_start().starts_with("{%"));
    let hint = "a file with {% … %} lines is a template as a whole: let its name end in .yaml.j2";
    (blocks && !file.whole_template).then(|| hint.to_owned())
}
