//! The names that a prompt can read when the agent runs, as one value.
//!
//! The facts are passed in; nothing is looked up here. The aliases (`name`, `tools`, `user_id`, …) are other names for
//! facts that are also in their section.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::config::GuidanceProfile;
use crate::config::Permission;
use crate::conversation::message::Usage;
use crate::template::{self, Value};

use super::file::Prompt;

/// The clock of [`PromptContext::sample`]: 2026-01-02T03:04:05Z.
const SAMPLE_TIME: Timestamp = Timestamp::constant(1_767_323_045, 0);

/// The facts of a run; their serde form is the names at the top level, without the environment and the aliases.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PromptContext {
    pub agent: AgentFacts,
    pub session: SessionFacts,
    pub workspace: WorkspaceFacts,
    /// Answers `env.NAME`; withholds secrets.
    #[serde(skip)]
    pub env: Value,
    /// The same without those that the user lets prompts read, for prompts that a workspace brings along.
    #[serde(skip)]
    pub open_env: Value,
    /// Answers `datetime.now()`.
    pub datetime: Value,
    /// `--var NAME=VALUE`.
    pub vars: Map<String, Json>,
    /// The session's key-value state.
    pub state: Map<String, Json>,
    /// The text of the project's instructions; empty if there are none.
    pub instructions: String,
    /// Only in the termination prompt.
    #[serde(flatten)]
    pub ending: Option<EndingFacts>,
    /// Only in the compression prompt.
    #[serde(flatten)]
    pub summary: Option<SummaryRequirements>,
}

/// Requirements of a summary.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SummaryRequirements {
    /// Its headings.
    pub parts: Vec<SummaryPart>,
    /// The topic that the user asked to keep in particular; empty if there is none.
    pub focus: String,
    /// True if the conversation begins with a summary already.
    pub updates: bool,
    /// The most tokens that it may have.
    pub tokens: u64,
}

/// A heading of a summary, and what belongs below it.
#[derive(Debug, Clone, Serialize)]
pub struct SummaryPart {
    pub name: &'static str,
    pub about: &'static str,
}

/// The agent that runs.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AgentFacts {
    pub name: String,
    pub description: String,
    pub model: String,
    /// The amount of guidance that the model needs.
    pub profile: GuidanceProfile,
    /// What runs without a question: `ask`, `edits`, `all`, `never`.
    pub approval: &'static str,
    /// True if commands run in a sandbox.
    pub has_walls: bool,
    pub tools: Vec<ToolFacts>,
    pub skills: Vec<SkillFacts>,
    /// The number of skills that there is no room to list.
    pub skills_left_out: usize,
}

/// A tool that the model is shown.
#[derive(Debug, Clone, Serialize)]
pub struct ToolFacts {
    pub name: String,
    pub description: String,
    pub permission: Permission,
    /// True if the model knows only its description, and calls it through `call_tool`.
    pub listed: bool,
}

/// A skill of the catalogue.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SkillFacts {
    pub name: String,
    pub description: String,
    pub loaded: bool,
}

/// The conversation.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SessionFacts {
    pub id: String,
    /// The id again, under the name that it has beside `run_id` and `user_id` in the events.
    pub session_id: String,
    pub run_id: String,
    pub user_id: String,
    pub person: AnswerWays,
    pub output: AnswerReader,
    pub turn: u64,
    pub step: u64,
    /// RFC 3339.
    pub started_at: String,
}

/// The ways in which somebody can answer a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerWays {
    /// In a chat: their next message can answer.
    Chat,
    /// At the terminal: they can be asked while the turn runs, and the answer ends the run.
    Present,
    /// In no way.
    #[default]
    Absent,
}

/// The reader of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerReader {
    /// A person, in a terminal.
    Terminal,
    /// A file or a program, which gets it as it is.
    #[default]
    Pipe,
    /// A program, which gets it as a text in JSON (`-o json`, `-o jsonl`).
    Json,
    /// A program, which gets a JSON document that matches a schema (`--schema`).
    Schema,
}

/// The workspace of the run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct WorkspaceFacts {
    pub dir: String,
    pub git_branch: Option<String>,
    pub os: String,
    pub shell: String,
}

/// The reason that a turn has to end now.
#[derive(Debug, Clone, Default, Serialize)]
pub struct EndingFacts {
    /// One sentence.
    pub termination_reason: String,
    /// The limits of the turn, as configured.
    pub limits: Json,
    /// Tokens that the turn has used.
    pub usage: Usage,
}

/// The names at the top level, in their serde form.
#[derive(Serialize)]
struct Names<'a> {
    #[serde(flatten)]
    facts: &'a PromptContext,
    env: &'a Value,
    context: &'a SessionFacts,
    name: &'a str,
    model: &'a str,
    profile: GuidanceProfile,
    tools: &'a [ToolFacts],
    skills: &'a [SkillFacts],
    user_id: &'a str,
    work_dir: &'a str,
}

impl PromptContext {
    /// A context that defines everything that the program, the user, the environment or the session can define, to find
    /// the names that nothing can. With limits it is that of the termination prompt, with `summary` that of the
    /// compression prompt.
    pub fn anything(ending_limits: Option<Json>, summary: bool) -> Value {
        let anything = || template::make_lookup(Vec::new(), |_| Some(String::new()));
        let (name, description) = (String::new(), String::new());
        let tool = ToolFacts { name, description, permission: Permission::Read, listed: false };
        let skill = SkillFacts::default();
        let context = Self {
            agent: AgentFacts { tools: vec![tool], skills: vec![skill], ..AgentFacts::default() },
            env: anything(),
            datetime: template::make_clock(Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC)),
            ending: ending_limits.map(|limits| EndingFacts { limits, ..EndingFacts::default() }),
            summary: summary.then(SummaryRequirements::default),
            ..Self::default()
        };
        let defined = context.value();
        let names = defined.try_iter().into_iter().flatten();
        let pairs = names.filter_map(|name| Some((name.as_str()?.to_owned(), defined.get_item(&name).ok()?)));
        let open = ["vars", "state"].map(|name| (name.to_owned(), anything()));
        template::make_object(pairs.chain(open))
    }

    /// A context that defines everything, with the same values everywhere: for tests of prompts, which replace the
    /// values that they are about.
    pub fn sample() -> Self {
        let tool = |name: &str, description: &str, permission| ToolFacts {
            name: name.to_owned(),
            description: description.to_owned(),
            permission,
            listed: false,
        };
        let nothing = || template::convert_value(&Map::new());
        Self {
            agent: AgentFacts {
                name: "default".to_owned(),
                model: "sample-model".to_owned(),
                approval: "ask",
                has_walls: true,
                tools: vec![
                    tool("edit_file", "Replaces text in a file.", Permission::Write),
                    tool("read_file", "Reads a file.", Permission::Read),
                    tool("run_command", "Runs a shell command.", Permission::Write),
                ],
                ..AgentFacts::default()
            },
            session: SessionFacts {
                id: "20260102-030405-sample".to_owned(),
                session_id: "20260102-030405-sample".to_owned(),
                run_id: "run-sample".to_owned(),
                user_id: "ada".to_owned(),
                turn: 1,
                started_at: "2026-01-02T03:04:05Z".to_owned(),
                ..SessionFacts::default()
            },
            workspace: WorkspaceFacts {
                dir: "/home/ada/project".to_owned(),
                git_branch: Some("main".to_owned()),
                os: "linux".to_owned(),
                shell: "bash".to_owned(),
            },
            env: nothing(),
            open_env: nothing(),
            datetime: template::make_clock(SAMPLE_TIME.to_zoned(jiff::tz::TimeZone::UTC)),
            ending: Some(EndingFacts {
                termination_reason: "the limit of 50 steps is reached".to_owned(),
                limits: json!({ "max_turns": 50, "max_time": "30m", "max_tokens": null, "max_cost": null }),
                usage: Usage { input_tokens: 1000, output_tokens: 200, ..Usage::default() },
            }),
            summary: Some(SummaryRequirements {
                parts: vec![SummaryPart { name: "Task", about: "what was asked" }],
                tokens: 1000,
                ..SummaryRequirements::default()
            }),
            ..Self::default()
        }
    }

    /// The value that this prompt is rendered with.
    pub fn value_for(&self, prompt: &Prompt) -> Value {
        self.with_env(if prompt.is_of_project() { &self.open_env } else { &self.env })
    }

    /// The value that [`Prompt::render`](super::Prompt::render) takes.
    pub fn value(&self) -> Value {
        self.with_env(&self.env)
    }

    fn with_env(&self, env: &Value) -> Value {
        template::convert_value(&Names {
            facts: self,
            env,
            context: &self.session,
            name: &self.agent.name,
            model: &self.agent.model,
            profile: self.agent.profile,
            tools: &self.agent.tools,
            skills: &self.agent.skills,
            user_id: &self.session.user_id,
            work_dir: &self.workspace.dir,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{AgentFacts, EndingFacts, PromptContext, SessionFacts, SkillFacts, ToolFacts, WorkspaceFacts};
    use crate::config::Permission;
    use crate::conversation::message::Usage;
    use crate::prompt::{Prompt, Registry};
    use crate::template::convert_value;

    fn context() -> PromptContext {
        let tool = |name: &str| ToolFacts {
            name: name.to_owned(),
            description: "What it does.".to_owned(),
            permission: Permission::Read,
            listed: false,
        };
        let tools =
            "edit_file glob grep list_dir load_skill load_skill_reference read_file run_command write_file";
        PromptContext {
            agent: AgentFacts {
                name: "default".to_owned(),
                model: "scripted".to_owned(),
                tools: tools.split(' ').map(tool).collect(),
                skills: vec![SkillFacts {
                    name: "workspace-tour".to_owned(),
                    description: "d".repeat(230),
                    loaded: false,
                }],
                ..AgentFacts::default()
            },
            session: SessionFacts { user_id: "ada".to_owned(), turn: 2, step: 7, ..SessionFacts::default() },
            workspace: WorkspaceFacts {
                dir: "/home/ada/project".to_owned(),
                git_branch: Some("main".to_owned()),
                os: "linux".to_owned(),
                shell: "bash".to_owned(),
            },
            env: convert_value(&json!({"EDITOR": "vi"})),
            open_env: convert_value(&json!({})),
            datetime: PromptContext::sample().datetime,
            ..PromptContext::default()
        }
    }

    fn render(reference: &str, context: &PromptContext) -> String {
        Registry::new(&[]).get(reference).expect("built in").render(&context.value()).expect("all is defined")
    }

    #[test]
    fn every_name_and_alias_can_be_read() {
        let text = "{{ agent.name == name }} {{ agent.model == model }} {{ agent.tools == tools }} {{ skills[0].loaded }} \
                    {{ session == context }} {{ user_id }} {{ work_dir }} {{ env.EDITOR }} {{ tools[0].permission }} \
                    {{ vars }} {{ state }} {{ instructions }}{{ termination_reason is defined }} \
                    {{ context.session_id == session.id }}";
        let prompt = Prompt::inline(text, "here").expect("a template");
        let rendered = prompt.render(&context().value()).expect("all is defined");
        assert_eq!(rendered, "True True True False True ada /home/ada/project vi read {} {} False True");
    }

    #[test]
    fn the_system_prompt_is_short_and_tells_what_is_there() {
        let mut context = context();
        let prompt = render("system", &context);
        assert!(prompt.len() <= 7500, "{} bytes of 7500\n{prompt}", prompt.len());
        assert!(prompt.contains("- [○] workspace-tour: ddd"));
        assert!(!prompt.contains("\n\n\n") && !prompt.contains("# Project instructions"), "{prompt}");

        context.agent.skills.clear();
        context.agent.tools.clear();
        context.instructions = "Use {{ tabs }}.".to_owned();
        let prompt = render("system", &context);
        assert!(!prompt.contains("# Skills") && !prompt.contains("[○]"));
        assert!(prompt.contains("Use {{ tabs }}.") && !prompt.contains("\n\n\n"), "{prompt}");
    }

    #[test]
    fn the_page_lists_every_variable_and_no_other() {
        let page = include_str!("../../docs/prompts.md");
        let rows =
            page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | ").map(|(name, _)| name));
        let below = page.split("## What a prompt can read").nth(1).expect("the section");
        let section = below.split("\n## ").next().expect("its end");
        let mut listed: Vec<&str> = rows.filter(|name| section.contains(&format!("| `{name}` | "))).collect();
        let sample = PromptContext::sample().value();
        let keys = |value: &crate::template::Value| -> Vec<String> {
            value.try_iter().into_iter().flatten().filter_map(|key| key.as_str().map(str::to_owned)).collect()
        };
        let mut known: Vec<String> = Vec::new();
        for name in keys(&sample) {
            if ["agent", "session", "workspace"].contains(&name.as_str()) {
                let inside = keys(&sample.get_attr(&name).expect("a section"));
                known.extend(inside.iter().map(|key| format!("{name}.{key}")));
            } else {
                known.push(name);
            }
        }
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn the_termination_prompt_tells_why_and_how_much() {
        let mut context = context();
        context.ending = Some(EndingFacts {
            termination_reason: "the limit of 50 steps is reached.".to_owned(),
            limits: json!({"max_turns": 50, "max_time": "30m", "max_tokens": null, "max_cost": null}),
            usage: Usage { input_tokens: 1000, output_tokens: 234, ..Usage::default() },
        });
        let prompt = render("termination", &context);
        assert!(prompt.starts_with("This turn has to end now: the limit of 50 steps is reached."));
        assert!(
            prompt.contains("turn 2, 7 model requests, 1234 tokens. Limits: max_turns 50, max_time 30m.\n"),
            "{prompt}"
        );
        context.ending = None;
        let error = Registry::new(&[])
            .get("termination")
            .expect("built in")
            .render(&context.value())
            .expect_err("no ending");
        assert!(error.to_string().contains("`termination_reason`, `limits`, `usage`"), "{error}");
    }
}
