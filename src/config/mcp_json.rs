//! Reads the servers of an `.mcp.json`, in the forms that other agents and editors write, as documents of the project.
//!
//! `${VAR}` and `${VAR:-word}` stand for variables, but for none that looks like a secret: a workspace gets no key of
//! the user, whatever it was trusted with.

use std::borrow::Cow;

use super::document::ConfigReading;
use super::manifest::Manifest;
use super::mcp::{is_address, refuse_server_name};
use super::mistake::Mistake;
use super::source::{ConfigDocument, ConfigLayer, ConfigSource, SubjectKind};
use crate::base::secrets::looks_secret;
use crate::base::yaml::{self, Node, Scalar, ScalarForm, YamlKey, YamlPlace, YamlTree};
use crate::files::regular::LONGEST_FILE;

/// The keys under which such a file lists its servers.
pub(super) const LISTS: [&str; 2] = ["mcpServers", "servers"];

impl ConfigReading<'_> {
    /// Reads every `.mcp.json` that the workspace brings along.
    pub fn read_shared_servers(&mut self, brought: &Manifest) {
        for path in brought.server_files() {
            let name = path.display().to_string();
            match brought.read(&path, LONGEST_FILE) {
                Ok(Some(bytes)) => self.read_server_file(name, String::from_utf8_lossy(&bytes).into_owned()),
                Ok(None) => {}
                Err(why) => self.warnings.push(format!("{name} {why}")),
            }
        }
    }

    fn read_server_file(&mut self, name: String, text: String) {
        let layer = ConfigLayer::Project;
        let source = self.sources.add(ConfigSource { layer, name, text: text.clone().into(), rendered: false });
        let node = match yaml::tree_of_firsts(&text, source) {
            Ok((node, _)) => node,
            Err(error) => return self.mistakes.push(Mistake::yaml(&self.sources, source, error)),
        };
        let servers = LISTS.iter().filter_map(|list| node.get(list)).flat_map(Node::entries);
        for (key, server) in servers {
            if let Some(why) = refuse_server_name(&key.text) {
                self.warnings.push(format!("{}: {why}; it is left out", self.sources.describe(key.place)));
                continue;
            }
            let mut unset = Vec::new();
            let node = self.convert_server(server, &mut unset);
            // Others wrote the file: a mistake in it stops nothing.
            if let Some(why) = refuse_server(&node) {
                let (place, server) = (self.sources.describe(key.place), &key.text);
                let unset =
                    if unset.is_empty() { String::new() } else { format!(" ({} is not set)", unset.join(", ")) };
                self.warnings.push(format!("{place}: the server `{server}` is left out: {why}{unset}"));
                continue;
            }
            self.documents.push(ConfigDocument {
                layer,
                kind: SubjectKind::Mcp,
                name: key.text.to_string(),
                node,
            });
        }
    }

    /// The same server in the words of `mcp/NAME.yaml`.
    fn convert_server(&mut self, server: &Node, unset: &mut Vec<String>) -> Node {
        let mut entries: Vec<(YamlKey, Node)> = Vec::new();
        let mut line: Vec<Node> = server.get("command").into_iter().cloned().collect();
        line.extend(server.get("args").and_then(Node::items).unwrap_or_default().iter().cloned());
        if let Some(first) = line.first() {
            let place = first.place;
            let key = YamlKey { text: "command".into(), place };
            entries.push((key, Node { place, tree: YamlTree::List(line) }));
        }
        for (key, value) in server.entries() {
            match key.text.as_ref() {
                "command" | "args" => {}
                "env" | "url" | "headers" => entries.push((key.clone(), value.clone())),
                "oauth" => entries.push((key.clone(), convert_login(value))),
                "type" if !matches!(value.text(), Some("sse")) => {}
                other => {
                    let place = self.sources.describe(key.place);
                    self.warnings.push(match value.text() {
                        Some("sse") => {
                            format!("{place}: the transport `sse` was replaced by `http`, which is used")
                        }
                        _ => format!("{place}: `{other}` is left out: it is unknown here"),
                    });
                }
            }
        }
        for (_, value) in &mut entries {
            self.expand_variables(value, unset);
        }
        Node { tree: YamlTree::Map(entries), place: server.place }
    }

    fn expand_variables(&mut self, node: &mut Node, unset: &mut Vec<String>) {
        match &mut node.tree {
            YamlTree::Map(entries) => {
                for (_, value) in entries {
                    self.expand_variables(value, unset);
                }
            }
            YamlTree::List(items) => {
                for item in items {
                    self.expand_variables(item, unset);
                }
            }
            YamlTree::Scalar(scalar) if !scalar.text.contains("${") => {}
            YamlTree::Scalar(scalar) => {
                let text = self.expand_text(&scalar.text, node.place, unset);
                *scalar = Scalar { text: Cow::Owned(text), form: ScalarForm::Quoted };
            }
        }
    }

    fn expand_text(&mut self, text: &str, place: YamlPlace, unset: &mut Vec<String>) -> String {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, (written, after))) =
            rest.split_once("${").and_then(|(before, from)| Some((before, from.split_once('}')?)))
        {
            let (name, default) = written.split_once(":-").unwrap_or((written, ""));
            let value = self.env.get(name).filter(|value| !value.is_empty());
            if value.is_none() && default.is_empty() {
                unset.push(name.to_owned());
            }
            if value.is_some() && looks_secret(name) {
                let place = self.sources.describe(place);
                let advice = "put the server into your own mcp/NAME.yaml (agent mcp add)";
                self.warnings.push(format!(
                    "{place}: `{name}` looks like a secret, which a workspace never gets: {advice}"
                ));
            }
            expanded.push_str(before);
            expanded.push_str(value.filter(|_| !looks_secret(name)).unwrap_or(default));
            rest = after;
        }
        expanded + rest
    }
}

/// Why a server can be neither started nor reached, if so.
fn refuse_server(server: &Node) -> Option<&'static str> {
    let program = server.get("command").and_then(Node::items).map(|line| line.first().and_then(Node::text));
    match (program, server.get("url").and_then(Node::text)) {
        (Some(program), _) if program.is_none_or(|program| program.trim().is_empty()) => {
            Some("its command names no program")
        }
        (None, Some(url)) if !is_address(url) => Some("its `url` is no http:// or https:// address"),
        _ => None,
    }
}

/// The client of a login in our words.
fn convert_login(oauth: &Node) -> Node {
    let rename = |key: &YamlKey| match key.text.as_ref() {
        "clientId" => "client_id".into(),
        "callbackPort" => "callback_port".into(),
        _ => key.text.clone(),
    };
    let entries =
        oauth.entries().iter().map(|(key, value)| (YamlKey { text: rename(key), ..key.clone() }, value.clone()));
    Node { tree: YamlTree::Map(entries.collect()), place: oauth.place }
}
