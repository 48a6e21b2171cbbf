//! From the text of a file to a located tree with its templates rendered.
//!
//! A `.yaml` file is parsed first and its strings are rendered one by one; a `.yaml.j2` file is rendered as a whole
//! and parsed then. What is a template of run time (prompts, scripts) is left as it was written. A project's
//! templates see no secrets, and its files cannot set what would redirect or loosen.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::env::Env;
use super::layer::{ConfigFile, read_inside};
use super::mistake::{Mistake, template_place};
use super::settings::PROMPT_KEYS;
use super::source::{Document, Kind, Layer, Source, Sources};
use crate::template::{self, Template, TemplateError, Undefined, is_template};
use crate::yaml::{self, Form, Node, Place, Scalar, Tree};

/// The documents, mistakes and warnings gathered while files are read.
pub(super) struct Reading<'e> {
    pub env: &'e Env,
    pub sources: Sources,
    pub documents: Vec<Document>,
    pub mistakes: Vec<Mistake>,
    pub warnings: Vec<String>,
    /// Files that templates included, by directory and name.
    pub included: Arc<Mutex<HashSet<(PathBuf, String)>>>,
}

impl Reading<'_> {
    /// Reads one file; what is wrong with it is added to the mistakes.
    pub fn read(&mut self, file: ConfigFile) {
        let file_name = file.display.clone();
        let text = if file.whole_template {
            match self.render_whole(&file) {
                Ok(text) => text,
                Err(error) => {
                    return self.mistakes.push(Mistake::whole_template(&file.display, &file.text, &error));
                }
            }
        } else {
            file.text.clone()
        };
        let source =
            self.sources.add(Source { layer: file.layer, name: file_name, text, rendered: file.whole_template });
        let text = &self.sources.of(Place { source, ..Place::default() }).text;
        let (mut node, duplicates) = match yaml::tree_of_firsts(text, source) {
            Ok(read) => read,
            Err(error) => {
                let mut mistake = Mistake::yaml(&self.sources, source, error);
                mistake.hint = hint_for(&file);
                return self.mistakes.push(mistake);
            }
        };
        let duplicates = duplicates.into_iter().map(|error| Mistake::yaml(&self.sources, source, error));
        self.mistakes.extend(duplicates);
        if !matches!(node.tree, Tree::Map(_)) && !node.is_blank() {
            let message = "a file holds a mapping: `key: value` lines";
            return self.mistakes.push(Mistake::at(&self.sources, node.place, message));
        }
        if !file.whole_template {
            let mut context = None;
            self.render(&file, &mut node, &mut Vec::new(), &mut context);
        }
        self.check_name(&file, &node);
        let name = self.name_of(&file, &node);
        if file.layer == Layer::Project {
            self.refuse_widening(&file, &name, &node);
        }
        self.documents.push(Document { layer: file.layer, kind: file.kind, name, node });
    }

    fn render_whole(&self, file: &ConfigFile) -> Result<String, TemplateError> {
        let (dir, included) = (file.dir.clone(), Arc::clone(&self.included));
        let loader = move |name: &str| {
            let dir = dir.as_ref()?;
            let text = read_inside(dir, name).ok()?;
            included.lock().expect("no holder panics").insert((dir.clone(), name.to_owned()));
            Some(text)
        };
        Template::compile_with(&file.display, &file.text, Undefined::Empty, loader)
            .and_then(|template| template.render(&self.context(file)))
    }

    /// `env` and `config.dir`.
    fn context(&self, file: &ConfigFile) -> template::Value {
        let sees_secrets = file.layer != Layer::Project;
        let env = self.env.for_configuration(sees_secrets);
        let dir = file.dir.as_ref().map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
        template::object([("env", env), ("config", template::object([("dir", dir.into())]))])
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
            Tree::Map(entries) => {
                for (key, value) in entries {
                    path.push(key.text.clone());
                    self.render(file, value, path, context);
                    path.pop();
                }
                return;
            }
            Tree::List(items) => return items.iter_mut().for_each(|item| self.render(file, item, path, context)),
            Tree::Scalar(scalar) if is_template(&scalar.text) => {
                match Template::compile(&file.display, &scalar.text, Undefined::Empty) {
                    Ok(template) => template.render(context.get_or_insert_with(|| self.context(file))),
                    Err(error) => {
                        return self.mistakes.push(Mistake::template(&self.sources, node, &error));
                    }
                }
            }
            Tree::Scalar(_) => return,
        };
        match rendered {
            Ok(text) => node.tree = Tree::Scalar(Scalar { text, form: Form::Rendered }),
            Err(error) => {
                let place = self.sources.describe(template_place(&self.sources, node, &error));
                let message = format!("{place}: template: {}; the text is kept as it is", error.message);
                self.warnings.push(self.env.redactor().redact(&message).into_owned());
            }
        }
    }

    fn check_name(&mut self, file: &ConfigFile, node: &Node) {
        // A tool may be called otherwise than its file.
        let is_free = matches!(file.kind, Kind::Settings | Kind::Tools);
        let Some(named) = node.get("name").filter(|_| !is_free) else { return };
        if named.text().is_some_and(|name| name != file.name) && !named.is_blank() {
            let message = format!("the name must be that of the file, `{}`", file.name);
            self.mistakes.push(Mistake::at(&self.sources, named.place, message).hint("or leave the key out"));
        }
    }

    /// The name of the thing that the file describes: the one it gives itself where it may, else the file's own.
    fn name_of(&mut self, file: &ConfigFile, node: &Node) -> String {
        /// The longest that servers take.
        const LONGEST: usize = 64;
        if file.kind != Kind::Tools {
            return file.name.clone();
        }
        let named = node.get("name").filter(|named| !named.is_blank());
        let name = named.and_then(Node::text).unwrap_or(&file.name);
        let place = named.unwrap_or(node).place;
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(good) {
            let message =
                format!("`{name}` is no name for a tool: letters, digits, `_` and `-`, {LONGEST} at most");
            self.mistakes.push(Mistake::at(&self.sources, place, message));
        }
        let same = |document: &&Document| document.kind == Kind::Tools && document.name == name;
        let dir = |name: &str| name.rsplit_once('/').map(|(dir, _)| dir.to_owned());
        let twin = self.documents.iter().filter(same).map(|document| &self.sources.of(document.node.place).name);
        if let Some(twin) = twin.into_iter().find(|twin| dir(twin) == dir(&file.display)) {
            let message = format!("{twin} describes `{name}` already; keep one of them");
            self.mistakes.push(Mistake::at(&self.sources, place, message));
        }
        name.to_owned()
    }

    /// A project narrows and never widens.
    fn refuse_widening(&mut self, file: &ConfigFile, name: &str, node: &Node) {
        const REFUSED: [(Kind, &[&str], &str); 11] = [
            (Kind::Models, &["base_url"], "where requests go"),
            (Kind::Models, &["api_key"], "whose key is sent"),
            (Kind::Models, &["headers"], "what is sent along with requests"),
            (Kind::Agents, &["approval"], "what runs without asking"),
            (Kind::Agents, &["sandbox"], "what commands may do"),
            (Kind::Settings, &["sandbox"], "what commands may do"),
            (Kind::Settings, &["prompts", "allow_env"], "which secrets prompts may read"),
            (Kind::Settings, &["skills"], "where skills are read from"),
            (Kind::Settings, &["telemetry"], "where figures are sent"),
            (Kind::Settings, &["fetch", "allow"], "which hosts of your network pages are fetched from"),
            (Kind::SessionStores, &["dir"], "where sessions are written"),
        ];
        if file.kind == Kind::Tools {
            self.refuse_freer_tools(name, node);
        }
        for (kind, path, what) in REFUSED {
            let found = node.at(path.iter().copied()).filter(|_| kind == file.kind);
            if let Some(value) = found {
                let message =
                    format!("a project's configuration cannot set `{}`: {what} is yours alone", path.join("."));
                let mistake = Mistake::at(&self.sources, value.place, message);
                self.mistakes.push(mistake.hint("set it in your user configuration, or with --set"));
            }
        }
        self.refuse_permissions(node);
    }

    /// Its rules may deny and ask, and it may show less.
    fn refuse_permissions(&mut self, node: &Node) {
        let rules = node.at(RULES).and_then(Node::items).into_iter().flatten();
        let mut refused: Vec<(Place, &str)> =
            rules.filter_map(|rule| rule.get("allow")).map(|allow| (allow.place, "allow")).collect();
        let max = node.at(["permissions", "max"]).filter(|max| max.text() != Some("read"));
        refused.extend(max.map(|max| (max.place, "set `permissions.max` to anything but read")));
        for (place, what) in refused {
            let message = format!("a project's configuration cannot {what}: what may run is yours alone");
            let mistake = Mistake::at(&self.sources, place, message);
            self.mistakes.push(mistake.hint("set it in your user configuration, or with --set"));
        }
    }

    /// Refuses to let a project say of a tool that it runs unasked, or, where the tool is the person's own, what it
    /// does.
    fn refuse_freer_tools(&mut self, name: &str, node: &Node) {
        let is_persons = self.documents.iter().any(|document| {
            document.kind == Kind::Tools && document.name == name && document.node.get("command").is_some()
        });
        for (key, value) in node.entries() {
            let switched = |to: bool| value.read() == Ok(to);
            let why = match key.text.as_str() {
                "permission" if value.text().is_some_and(|level| level.trim() == "read") => {
                    "what runs without asking is yours alone"
                }
                "requires_confirmation" if switched(false) => "what is asked is yours alone",
                "enabled" if switched(true) => "what is switched off stays off",
                "command" | "shell" | "env" | "workdir" | "permission" | "effects" if is_persons => {
                    "the tool is your own"
                }
                _ => continue,
            };
            let message = format!("a project's configuration cannot set `{}` so: {why}", key.text);
            let mistake = Mistake::at(&self.sources, value.place, message);
            self.mistakes.push(mistake.hint("leave it out, or set it in your user configuration"));
        }
    }
}

/// Where the rules stand, in the settings and in agents.
pub(super) const RULES: [&str; 2] = ["permissions", "rules"];

/// Texts that are templates of the run: prompts written out, everything in a script, and what a tool runs.
pub(super) fn is_run_time_text(kind: Kind, path: &[String], node: &Node) -> bool {
    match (kind, path) {
        (Kind::Agents, [key]) => PROMPT_KEYS.contains(&key.as_str()) && matches!(node.tree, Tree::Scalar(_)),
        (Kind::Models, [key, ..]) => key == "script",
        (Kind::Tools, [key, ..]) => matches!(key.as_str(), "command" | "workdir" | "env"),
        _ => false,
    }
}

fn hint_for(file: &ConfigFile) -> Option<String> {
    let blocks = file.text.lines().any(|line| line.trim_start().starts_with("{%"));
    let hint = "a file with {% … %} lines is a template as a whole: let its name end in .yaml.j2";
    (blocks && !file.whole_template).then(|| hint.to_owned())
}
