//! Restricts the keys that a project may set, by a table of keys, each with the rule by which its value may only narrow
//! the user's.
//!
//! A key that is not in the table, or a value that would widen, is left out with one warning. It is not a mistake: the
//! file is somebody else's, and the run continues as the user wants it. Everything else that was read counts as the
//! user's, including variables and flags.

mod table;

use std::collections::BTreeMap;

use super::duration;
use super::limits::usual_requests;
use super::merge::{Merged, lay_over};
use super::narrowed::Narrowed;
use super::permissions::{PermissionRule, RuleEffect};
use super::source::{ConfigDocument, ConfigLayer, Sources, SubjectKind};
use crate::base::text;
use crate::base::yaml::{Node, Scalar, ScalarForm, YamlKey, YamlPlace, YamlTree};

use table::{NarrowRule, STANDS_ON, list_keys};
pub(super) use table::{RuleOfPath, find_rule};

/// The lists of a project by agent, and the warnings.
#[derive(Debug, Default)]
pub(super) struct NarrowedLists {
    pub agents: BTreeMap<String, Narrowed>,
    pub warnings: Vec<String>,
}

/// Removes from the project's documents what does not narrow.
pub(super) fn narrow_documents(documents: &mut Vec<ConfigDocument>, sources: &Sources) -> NarrowedLists {
    if !documents.iter().any(is_project) {
        return NarrowedLists::default();
    }
    let persons = Merged::merge_all(documents.iter().filter(|document| !is_project(document)));
    let written = Merged::merge_all(documents.iter().filter(|document| document.layer < ConfigLayer::Project));
    let agents = documents.iter().filter(|document| document.kind == SubjectKind::Agents);
    let agents = agents.map(|document| document.name.clone()).collect();
    let commands = documents.iter().filter(|document| document.node.get("command").is_some());
    let commands = commands.map(|document| document.name.clone()).collect();
    let default = default_agent(&persons, &written);
    let ground = ground_of_new_agents(documents, &default);
    let outcome = NarrowedLists::default();
    let mut pass = Pass { sources, persons, written, default, agents, commands, outcome, left_out: 0 };
    let mut kept: Vec<ConfigDocument> = Vec::with_capacity(documents.len());
    for mut document in std::mem::take(documents) {
        if !is_project(&document) {
            kept.push(document);
            continue;
        }
        let same = |other: &ConfigDocument| (other.kind, &other.name) == (document.kind, &document.name);
        if pass.is_new(&document) && document.kind == SubjectKind::Agents && !kept.iter().any(same) {
            let (layer, kind, name) = (ConfigLayer::Project, SubjectKind::Agents, document.name.clone());
            kept.push(ConfigDocument { layer, kind, name, node: ground.clone() });
        }
        if pass.document(&mut document) {
            kept.push(document);
        }
    }
    *documents = kept;
    pass.finish()
}

fn is_project(document: &ConfigDocument) -> bool {
    document.layer == ConfigLayer::Project
}

/// The user's agent that limits one of the project's: the default one. If a flag names one that only the project has,
/// it is the one that files name.
fn default_agent(persons: &Merged, written: &Merged) -> String {
    let named =
        |from: &Merged| Some(from.get(SubjectKind::Settings, "")?.get("default_agent")?.text()?.to_owned());
    let is_persons = |name: &String| written.get(SubjectKind::Agents, name).is_some();
    named(persons).filter(is_persons).or_else(|| named(written)).unwrap_or_default()
}

/// The user's settings of the default agent, as the basis of a project's agent.
fn ground_of_new_agents(documents: &[ConfigDocument], default: &str) -> Node {
    let mut ground = Node { tree: YamlTree::Map(Vec::new()), place: YamlPlace::default() };
    let is_said = |document: &&ConfigDocument| {
        document.kind == SubjectKind::Agents && document.name == default && !is_project(document)
    };
    documents.iter().filter(is_said).for_each(|document| lay_over(&mut ground, &document.node));
    if let YamlTree::Map(entries) = &mut ground.tree {
        entries.retain(|(key, _)| STANDS_ON.split(' ').any(|other| other == key.text));
    }
    ground
}

/// Puts the walls of commands around a server of the project: it reaches the network, and writes in the workspace alone.
fn add_walls(server: &mut Node) {
    let place = server.place;
    let node = |tree| Node { tree, place };
    let text = |text: &'static str| node(YamlTree::Scalar(Scalar { text: text.into(), form: ScalarForm::Quoted }));
    let key = |text: &'static str| YamlKey { text: text.into(), place };
    let walls = YamlTree::Map(vec![(key("network"), node(YamlTree::List(vec![text("*")])))]);
    if let YamlTree::Map(entries) = &mut server.tree {
        entries.push((key("sandbox"), node(walls)));
    }
}

struct Pass<'p> {
    sources: &'p Sources,
    /// Everything but the project.
    persons: Merged,
    /// Only the user's files: variables and flags override the project's settings anyway.
    written: Merged,
    /// The agent that limits new ones.
    default: String,
    /// The names of all agents.
    agents: Vec<String>,
    /// The names of tools that some document gives a command.
    commands: Vec<String>,
    outcome: NarrowedLists,
    left_out: usize,
}

impl Pass<'_> {
    /// The most warnings about single keys.
    const TOLD: usize = 40;

    fn is_new(&self, document: &ConfigDocument) -> bool {
        self.written.get(document.kind, &document.name).is_none()
    }

    /// Narrows a document; returns false if nothing of it may stay.
    fn document(&mut self, document: &mut ConfigDocument) -> bool {
        let of = if document.kind == SubjectKind::Settings { &self.written } else { &self.persons };
        let persons = of.get(document.kind, &document.name);
        let is_own = match document.kind {
            SubjectKind::Tools => {
                persons.is_none_or(|node| node.get("command").is_none()) && self.commands.contains(&document.name)
            }
            _ => persons.is_none(),
        };
        if list_keys(document.kind, is_own).next().is_none() {
            let why = match document.kind {
                SubjectKind::Flows => "there is a flow of this name already, and a project changes none",
                SubjectKind::Mcp => "there is a server of this name already, and a project changes none",
                SubjectKind::Hooks => "there is a hook of this name already, and a project changes none",
                _ => "a project brings no models and no session stores",
            };
            self.leave_out(document.node.place, "the file", why);
            return false;
        }
        let nothing = Node { tree: YamlTree::Map(Vec::new()), place: document.node.place };
        let base = match document.kind {
            SubjectKind::Agents if self.is_new(document) => self.persons.get(SubjectKind::Agents, &self.default),
            _ => persons,
        };
        // The settings have the limits of an agent at the same paths.
        let base = base.or(self.persons.get(SubjectKind::Settings, "")).unwrap_or(&nothing).clone();
        let mut node = std::mem::replace(&mut document.node, nothing);
        self.section(document.kind, is_own, &mut Vec::new(), &mut node, &base, &document.name);
        if document.kind == SubjectKind::Mcp && node.get("command").is_some() {
            add_walls(&mut node);
        }
        document.node = node;
        true
    }

    fn section(
        &mut self,
        kind: SubjectKind,
        is_own: bool,
        path: &mut Vec<String>,
        node: &mut Node,
        base: &Node,
        name: &str,
    ) {
        let YamlTree::Map(entries) = &mut node.tree else { return };
        for (key, mut value) in std::mem::take(entries) {
            path.push(key.text.to_string());
            let steps: Vec<&str> = path.iter().map(String::as_str).collect();
            let verdict = match find_rule(kind, is_own, &steps) {
                RuleOfPath::Rule(rule) => self.judge(rule, &mut value, base.find(steps.iter().copied()), name),
                RuleOfPath::Unknown => Err("it is not among the keys that a project may set"),
                // The section has no content.
                RuleOfPath::Section if value.is_blank() => Ok(false),
                RuleOfPath::Section if matches!(value.tree, YamlTree::Map(_)) => {
                    self.section(kind, is_own, path, &mut value, base, name);
                    Ok(true)
                }
                RuleOfPath::Section => Err("it is not a mapping"),
            };
            match verdict {
                Ok(true) => entries.push((key, value)),
                Ok(false) => {}
                Err(why) => {
                    let place = if key.place.line > 0 { key.place } else { value.place };
                    self.leave_out(place, &format!("`{}`", path.join(".")), why);
                }
            }
            path.pop();
        }
    }

    /// Returns true if the value stays in the tree, or the reason that it is left out.
    fn judge(
        &mut self,
        rule: NarrowRule,
        value: &mut Node,
        base: Option<&Node>,
        name: &str,
    ) -> Result<bool, &'static str> {
        let number = |node: &Node| node.read::<f64>().ok();
        let time = |node: &Node| duration::parse_duration(node.text()?).ok().map(|time| time.as_secs_f64());
        let settings = |path: &[&str]| {
            self.persons.get(SubjectKind::Settings, "").and_then(|node| node.find(path.iter().copied()))
        };
        let (kept, why) = match rule {
            NarrowRule::Own => (true, ""),
            NarrowRule::Lower => (at_most(value, base, number), LOWER),
            NarrowRule::LowerThan(path) => (at_most(value, find_given(base).or(settings(path)), number), LOWER),
            NarrowRule::FewerRequests => {
                let count = |node: &Node| node.read::<u64>().ok();
                let turns = || settings(&["limits", "max_turns"]).and_then(count);
                let most = find_given(base).and_then(count).or_else(|| turns().map(usual_requests));
                let asked = count(value).filter(|_| !value.fits("null"));
                (asked.is_some_and(|asked| most.is_none_or(|most| asked <= most)), LOWER)
            }
            NarrowRule::Shorter => (at_most(value, base, time), LOWER),
            NarrowRule::ShorterThan(path) => (at_most(value, find_given(base).or(settings(path)), time), LOWER),
            NarrowRule::Stricter(words) => {
                let rank = |node: &Node| words.iter().position(|word| node.text().map(str::trim) == Some(word));
                // Without a value of the user, only the strictest is certain to be no wider.
                let most = base.map_or(Some(0), rank);
                let stricter = rank(value).zip(most).is_some_and(|(rank, most)| rank <= most);
                (stricter, "a project may only make it stricter")
            }
            NarrowRule::OneOf(words) => {
                let is_one = value.text().is_some_and(|text| words.contains(&text.trim()));
                (is_one, "a project may only make it stricter")
            }
            NarrowRule::Agent => {
                let is_known = value.text().is_some_and(|name| self.agents.iter().any(|agent| agent == name));
                (is_known, "there is no such agent")
            }
            NarrowRule::FewerTools | NarrowRule::FewerSkills => {
                let list = value.read().map_err(|_| "it is not a list of names")?;
                let narrowed = self.outcome.agents.entry(name.to_owned()).or_default();
                let lists =
                    if rule == NarrowRule::FewerTools { &mut narrowed.tools } else { &mut narrowed.skills };
                lists.push(list);
                return Ok(false);
            }
            NarrowRule::Restricting => {
                self.restrict(value)?;
                (true, "")
            }
        };
        if kept { Ok(true) } else { Err(why) }
    }

    /// Removes the rules that allow, and those without effect.
    fn restrict(&mut self, rules: &mut Node) -> Result<(), &'static str> {
        let YamlTree::List(items) = &mut rules.tree else { return Err("it is not a list of rules") };
        let restricts = |rule: &Node| {
            let rule = rule.read::<PermissionRule>().ok();
            rule.and_then(|rule| rule.subject().map(|(effect, _)| effect != RuleEffect::Allow)).unwrap_or_default()
        };
        let (kept, out): (Vec<Node>, Vec<Node>) = std::mem::take(items).into_iter().partition(restricts);
        *items = kept;
        for rule in out {
            self.leave_out(rule.place, "a rule of `permissions.rules`", "a project's rules only deny and ask");
        }
        Ok(())
    }

    fn leave_out(&mut self, place: YamlPlace, what: &str, why: &str) {
        self.left_out += 1;
        if self.left_out <= Self::TOLD {
            let what = text::one_line(what, 120);
            let place = text::one_line(&self.sources.describe(place), 400);
            self.outcome.warnings.push(format!("{place}: {what} is left out: {why}"));
        }
    }

    fn finish(mut self) -> NarrowedLists {
        if self.left_out > Self::TOLD {
            let more = self.left_out - Self::TOLD;
            self.outcome.warnings.push(format!("{more} more keys of the project are left out"));
        }
        self.outcome
    }
}

const LOWER: &str = "a project may only lower it, and not lift it";

/// The user's value, if there is one.
fn find_given(base: Option<&Node>) -> Option<&Node> {
    base.filter(|node| !node.fits("null"))
}

/// True if the value is at most the user's, or the user has none.
fn at_most(value: &Node, base: Option<&Node>, read: impl Fn(&Node) -> Option<f64>) -> bool {
    let Some(value) = read(value).filter(|_| !value.fits("null")) else { return false };
    match find_given(base).map(&read) {
        None => value.is_finite(),
        Some(most) => most.is_some_and(|most| value <= most),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::{Config, Env, LoadOptions, Mode, WrittenDuration, find_brought, load_config};
    use crate::files::workspace::Workspace;

    type Files<'f> = &'f [(&'f str, &'f str)];

    fn write(root: &Path, files: Files<'_>) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
    }

    fn loaded(user: Files<'_>, project: Files<'_>, sets: &[&str]) -> Config {
        let dir = tempfile::tempdir().expect("a directory");
        write(&dir.path().join("home/.config/agent"), user);
        write(&dir.path().join("work/.agent"), project);
        fs::create_dir_all(dir.path().join("work")).expect("made");
        let env = Env::from_pairs([("HOME", dir.path().join("home").display().to_string())]);
        let workspace = Workspace::open(&dir.path().join("work")).expect("a workspace");
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let brought = find_brought(&env, &workspace, None);
        let (trust, tools) = (true, &["grep", "write_file"][..]);
        let options = LoadOptions { sets: &sets, brought, trust, tools, ..LoadOptions::new(&env, &workspace) };
        load_config(&options).unwrap_or_else(|error| panic!("{project:?}: {error}"))
    }

    /// The value according to `explain`, without its origin.
    fn value(config: &Config, key: &str) -> String {
        let said = config.explain(key).unwrap_or_else(|error| format!("{key}: {error}"));
        said.split("\n  set by")
            .next()
            .unwrap_or_default()
            .trim_start_matches(key)
            .trim_start_matches(':')
            .trim()
            .to_owned()
    }

    /// Key, the person's value, one that narrows, one that widens.
    const ROWS: [(&str, &str, &str, &str); 22] = [
        ("limits.max_turns", "10", "9", "11"),
        ("limits.max_turns", "10", "10", "null"),
        ("limits.max_requests", "100", "99", "101"),
        ("limits.max_requests", "null", "500", "501"),
        ("limits.max_time", "5m", "1m", "1h"),
        ("limits.max_time", "5m", "20s", "null"),
        ("limits.max_tokens", "1000", "999", "1001"),
        ("limits.max_tokens", "null", "7", "null"),
        ("limits.max_cost", "2.5", "2.4", "2.6"),
        ("limits.max_cost", "1.0", "0.5", ".inf"),
        ("limits.tool_timeout", "60s", "1s", "90s"),
        ("limits.max_tool_timeout", "5m", "4m", "6m"),
        ("limits.tool_idle_timeout", "5m", "4m", "null"),
        ("limits.max_parallel", "4", "1", "5"),
        ("limits.max_depth", "1", "0", "2"),
        ("limits.loop_window", "12", "11", "20"),
        ("limits.loop_threshold", "4", "3", "5"),
        ("context.budget", "9000", "8000", "10000"),
        ("context.budget", "9000", "8999", "null"),
        ("context.tool_result_max_tokens", "800", "700", "900"),
        ("permissions.max", "write", "read", "admin"),
        ("permissions.max", "read", "read", "write"),
    ];

    #[test]
    fn settings_only_narrow() {
        for (key, persons, narrower, wider) in ROWS {
            let (section, name) = key.split_once('.').expect("a section");
            let text = |value: &str| format!("{section}: {{ {name}: {value} }}\n");
            for file in ["agent.yaml", "agents/default.yaml"] {
                let key = if file == "agent.yaml" { key.to_owned() } else { format!("agents.default.{key}") };
                let of_user = [(file, &*text(persons))];
                let config = loaded(&of_user, &[(file, &text(narrower))], &[]);
                assert_eq!(value(&config, &key), narrower, "{file}: {key}");
                assert_eq!(config.warnings, Vec::<String>::new(), "{file}: {key}");
                let config = loaded(&of_user, &[(file, &text(wider))], &[]);
                let kept = loaded(&of_user, &[], &[]);
                assert_eq!(value(&config, &key), value(&kept, &key), "{file}: {key} to {wider}");
                let warning = config.warnings.join("\n");
                let at = format!("{file}:1: `{section}.{name}` is left out");
                assert!(warning.contains(&at) && config.warnings.len() == 1, "{at}: {warning}");
            }
        }
    }

    /// File, key, the person's value, one that narrows, one that widens.
    const FILES: [(&str, &str, &str, &str, &str); 14] = [
        ("models/default.yaml", "max_output_tokens", "500", "400", "600"),
        ("models/default.yaml", "max_output_tokens", "500", "500", "null"),
        ("models/default.yaml", "context_window", "9000", "8000", "10000"),
        ("models/default.yaml", "context_window", "9000", "8999", "null"),
        ("tools/grep.yaml", "enabled", "true", "false", "true"),
        ("tools/grep.yaml", "requires_confirmation", "false", "true", "false"),
        ("tools/grep.yaml", "timeout", "10s", "9s", "11s"),
        ("tools/grep.yaml", "max_tokens", "100", "99", "101"),
        ("agents/default.yaml", "approval", "edits", "ask", "all"),
        ("agents/default.yaml", "approval", "ask", "never", "edits"),
        ("agents/default.yaml", "approval", "never", "never", "ask"),
        ("agents/default.yaml", "mode", "direct", "explore", "plan"),
        ("agents/default.yaml", "mode", "explore", "explore", "direct"),
        ("agents/default.yaml", "plan_approval", "false", "true", "false"),
    ];

    #[test]
    fn single_things_only_narrow() {
        for (file, key, persons, narrower, wider) in FILES {
            let (kind, name) = file.trim_end_matches(".yaml").split_once('/').expect("a folder");
            let dotted = format!("{kind}.{name}.{key}");
            let of_user = [(file, &*format!("{key}: {persons}\n"))];
            let with = |value: &str| loaded(&of_user, &[(file, &format!("{key}: {value}\n"))], &[]);
            assert_eq!(value(&with(narrower), &dotted), narrower, "{dotted}");
            assert_eq!(with(narrower).warnings, Vec::<String>::new(), "{dotted}");
            assert_eq!(value(&with(wider), &dotted), persons, "{dotted} to {wider}");
            let warnings = with(wider).warnings;
            assert!(warnings.len() == 1 && warnings[0].contains(&format!("{file}:1: `{key}`")), "{warnings:?}");
        }
        let warm = loaded(&[], &[("models/default.yaml", "temperature: 1.5\n")], &[]);
        assert_eq!((value(&warm, "models.default.temperature"), warm.warnings.len()), ("1.5".to_owned(), 0));
    }

    #[test]
    fn the_page_names_every_row() {
        let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md"));
        let page = page.expect("the page is text");
        let (_, page) = page.split_once("## What a project may set").expect("the section");
        for kind in super::SubjectKind::ALL {
            for (path, _) in super::list_keys(kind, false).chain(super::list_keys(kind, true)) {
                let key = path.rsplit('.').next().expect("a key");
                let named = page.contains(&format!("`{key}`")) || page.contains(&format!(".{key}`"));
                assert!(named || ["name", "idempotent"].contains(&key), "{key} is not in docs/configuration.md");
            }
        }
    }

    #[test]
    fn what_a_flag_or_the_settings_say_is_not_lifted_in_an_agent() {
        let project = [("agents/default.yaml", "limits: { max_turns: 40 }\n")];
        for (user, sets) in
            [(&[("agent.yaml", "limits: { max_turns: 20 }\n")][..], &[][..]), (&[], &["limits.max_turns=20"])]
        {
            let config = loaded(user, &project, sets);
            assert_eq!(value(&config, "agents.default.limits.max_turns"), "20");
            assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
        }
    }

    #[test]
    fn keys_that_are_not_in_the_table_are_left_out() {
        let table = [
            ("agent.yaml", "sandbox: { mode: \"off\" }", "sandbox.mode", "sandbox"),
            ("agent.yaml", "sandbox: { network: [\"*\"] }", "sandbox.network", "sandbox"),
            ("agent.yaml", "prompts: { allow_env: [A_KEY] }", "prompts.allow_env", "prompts"),
            ("agent.yaml", "telemetry: { otlp_endpoint: \"http://x\" }", "telemetry.otlp_endpoint", "telemetry"),
            ("agent.yaml", "fetch: { allow: [localhost] }", "fetch.allow", "fetch"),
            ("agent.yaml", "skills: { dirs: [/srv] }", "skills.dirs", "skills"),
            ("agent.yaml", "tools: { embedding_model: x }", "tools.embedding_model", "tools"),
            ("agent.yaml", "tool_output: { format: detailed }", "tool_output.format", "tool_output"),
            ("agent.yaml", "context: { compress_at: 0.9 }", "context.compress_at", "context.compress_at"),
            ("agent.yaml", "context: { strategy: summary }", "context.strategy", "context.strategy"),
            ("agent.yaml", "limits: null", "limits.max_turns", "limits"),
            ("agent.yaml", "permissions: null", "permissions.max", "permissions"),
            ("agent.yaml", "no_such_key: 1", "limits.max_turns", "no_such_key"),
            ("agent.yaml", "default_agent: nobody", "default_agent", "default_agent"),
            ("agents/default.yaml", "model: other", "agents.default.model", "model"),
            ("agents/default.yaml", "sandbox: { mode: \"off\" }", "agents.default.sandbox.mode", "sandbox"),
            ("agents/default.yaml", "approval: all", "agents.default.approval", "approval"),
            ("agents/default.yaml", "approval: edits", "agents.default.approval", "approval"),
            (
                "agents/default.yaml",
                "skill_disclosure: system",
                "agents.default.skill_disclosure",
                "skill_disclosure",
            ),
            ("agents/default.yaml", "mode: route", "agents.default.mode", "mode"),
            (
                "agents/default.yaml",
                "roles: { planner: { model: other } }",
                "agents.default.roles.planner.model",
                "roles.planner.model",
            ),
            (
                "agents/default.yaml",
                "roles: { router: { effort: high } }",
                "agents.default.roles.router.effort",
                "roles.router.effort",
            ),
            ("models/default.yaml", "base_url: \"http://x\"", "models.default.base_url", "base_url"),
            ("models/default.yaml", "api_key: x", "models.default.api_key", "api_key"),
            ("models/default.yaml", "headers: { a: b }", "models.default.headers", "headers"),
            ("models/default.yaml", "prices: { input: 0, output: 0 }", "models.default.prices", "prices"),
            ("models/default.yaml", "retry: { attempts: 99 }", "models.default.retry.attempts", "retry"),
            ("models/default.yaml", "extra_body: { n: 9 }", "models.default.extra_body", "extra_body"),
            ("storages/session_stores/default.yaml", "dir: /tmp", "session_stores.default.dir", "file"),
            ("tools/grep.yaml", "permission: read", "limits.max_turns", "permission"),
            ("tools/grep.yaml", "timeout: 10m", "limits.max_turns", "timeout"),
        ];
        for (file, text, key, named) in table {
            let config = loaded(&[], &[(file, text)], &[]);
            assert_eq!(value(&config, key), value(&loaded(&[], &[], &[]), key), "{file}: {text}");
            let warning = config.warnings.join("\n");
            assert!(
                warning.contains(&format!("{file}:1")) && warning.contains(named),
                "{file}: {text}: {warning}"
            );
            assert_eq!(config.warnings.len(), 1, "{warning}");
        }
        let fine = loaded(&[], &[("agents/default.yaml", "approval: never\ndescription: d\n")], &[]);
        assert_eq!(value(&fine, "agents.default.approval"), "never");
        assert_eq!(fine.warnings, Vec::<String>::new());
    }

    #[test]
    fn rules_only_deny_and_ask_and_none_of_the_persons_is_lost() {
        let user = [("agent.yaml", "permissions: { rules: [ { deny: write_file } ] }\n")];
        for project in [
            "permissions:\n  rules:\n    - { allow: \"*\" }\n    - { ask: grep }\n    - nothing\n",
            "permissions:\n  rules: [ { ask: grep }, { allow: x, deny: y }, { allow: z } ]\n",
        ] {
            for file in ["agent.yaml", "agents/default.yaml"] {
                let config = loaded(&user, &[(file, project)], &[]);
                let rules = &config.agents["default"].permissions.rules;
                let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
                assert_eq!(rules, ["deny: write_file", "ask: grep"], "{project}");
                assert_eq!(config.warnings.len(), 2, "{:?}", config.warnings);
            }
        }
        for project in ["permissions: { rules: null }", "permissions: { rules: x }", "permissions: []"] {
            let config = loaded(&user, &[("agent.yaml", project), ("agents/default.yaml", project)], &[]);
            assert_eq!(config.settings.permissions.rules.len(), 1, "{project}");
            assert_eq!(config.agents["default"].permissions.rules.len(), 1, "{project}");
        }
    }

    #[test]
    fn a_new_agent_stands_on_the_persons_default_agent() {
        let user = [(
            "agents/default.yaml",
            "tools: [read_file, grep]\napproval: never\nmode: explore\nlimits: { max_cost: 1.0 }\nmodel: demo\n\
             roles: { planner: { model: demo } }\n",
        )];
        let project = [
            ("agent.yaml", "default_agent: theirs\n"),
            (
                "agents/theirs.yaml",
                "approval: ask\ntools: [\"*\", fetch_url]\nlimits: { max_cost: 5.0, max_turns: 3 }\nmodel: default\n",
            ),
        ];
        let config = loaded(&user, &project, &[]);
        let agent = config.agent(None).expect("it is configured");
        assert_eq!((agent.name.as_str(), agent.model_name()), ("theirs", "demo"));
        assert_eq!(agent.limits.max_cost, Some(1.0));
        assert_eq!(agent.limits.max_turns, Some(3));
        assert_eq!(agent.approval, super::super::ApprovalMode::Never);
        assert_eq!((agent.mode, agent.roles.planner.model.as_deref()), (Mode::Explore, Some("demo")));
        assert_eq!(agent.tools, ["read_file", "grep"]);
        assert_eq!(agent.narrowed.tools, [vec!["*".to_owned(), "fetch_url".to_owned()]]);
        assert_eq!(config.warnings.len(), 3, "{:?}", config.warnings);
        for flag in ["default_agent=theirs", "agents.theirs.limits.max_time=1m"] {
            let config = loaded(&user, &project, &[flag]);
            let agent = config.agent(Some("theirs")).expect("it is configured");
            assert_eq!(
                (agent.limits.max_cost, agent.approval),
                (Some(1.0), super::super::ApprovalMode::Never),
                "{flag}"
            );
            assert_eq!(agent.tools, ["read_file", "grep"], "{flag}");
        }
        let by_flag =
            loaded(&[], &project, &["agents.default.approval=never", "agents.default.limits.max_turns=2"]);
        let agent = by_flag.agent(None).expect("it is configured");
        assert_eq!((agent.approval, agent.limits.max_turns), (super::super::ApprovalMode::Never, Some(2)));
    }

    #[test]
    fn models_of_a_project_are_left_out_and_its_commands_never_read_alone() {
        let evil = "provider: openai\nbase_url: \"http://evil\"\nmodel: m\n";
        let config = loaded(&[], &[("models/evil.yaml", evil)], &[]);
        assert!(!config.models.contains_key("evil"));
        assert!(config.warnings[0].contains("models/evil.yaml"), "{:?}", config.warnings);
        let tool = "command: [make]\ndescription: d\npermission: read\nidempotent: true\nmax_tokens: 10\n";
        let config = loaded(&[], &[("tools/build.yaml", tool)], &[]);
        let tool = &config.tools["build"];
        assert_eq!((tool.permission, tool.idempotent, tool.max_tokens), (None, None, Some(10)));
        assert_eq!(config.warnings.len(), 2, "{:?}", config.warnings);
        let user = [("tools/build.yaml", "command: [make]\ndescription: d\ntimeout: 10s\n")];
        let project = "command: [evil]\nenv: { A: b }\ntimeout: 20s\nenabled: true\nrequires_confirmation: true\n";
        let config = loaded(&user, &[("tools/build.yaml", project)], &[]);
        let tool = &config.tools["build"];
        assert_eq!(tool.timeout, Some(WrittenDuration::from_secs(10)));
        assert!(tool.requires_confirmation && tool.env.is_none());
        assert_eq!(config.warnings.len(), 4, "{:?}", config.warnings);
    }
}
