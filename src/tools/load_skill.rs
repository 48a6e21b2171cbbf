//! `load_skill`: gives the model the instructions of a skill. Loading a skill again returns one line.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::base::output::{ToolError, ToolErrorKind, ToolOutput};
use crate::base::{text, tokens::BYTES_PER_TOKEN};
use crate::config::{Permission, SkillDisclosure};
use crate::conversation::{event::EventKind, knowledge::SECTION};
use crate::files::file_name;
use crate::model::ToolDefinition;
use crate::skills::{SkillCatalogue, SkillError, SkillErrorKind};

use super::finding::rank::rank_texts;
use super::{CallContext, Tool, ToolFuture, define_tool, text_of};

/// Up to this many names are listed in the schema, so that the model cannot misspell them.
const MOST_NAMES: usize = 50;

/// The tool, which is offered only if there are skills.
pub struct LoadSkill {
    definition: ToolDefinition,
    catalogue: Arc<SkillCatalogue>,
    disclosure: SkillDisclosure,
}

impl LoadSkill {
    /// Names the skills of `catalogue` in its definition.
    pub fn new(catalogue: Arc<SkillCatalogue>, disclosure: SkillDisclosure) -> Self {
        let name = if catalogue.list_offered().count() <= MOST_NAMES {
            json!({ "enum": catalogue.list_offered().map(|skill| skill.name.as_str()).collect::<Vec<_>>() })
        } else {
            json!({ "type": "string" })
        };
        let definition = ToolDefinition {
            advice: "Then follow what it returns.",
            is_trusted: true,
            ..define_tool(
                "load_skill",
                "Returns a skill's instructions. Load one before you begin.",
                (Permission::Read, &[]),
                json!({ "name": name }),
                &["name"],
            )
        };
        Self { definition, catalogue, disclosure }
    }

    async fn load(&self, name: &str, context: CallContext<'_>) -> Result<ToolOutput, ToolError> {
        // The model may ask for a skill that the user has loaded.
        if !context.skills.contains(name) {
            self.catalogue.get_offered(name).map_err(|error| self.refuse_name(name, &error))?;
        }
        let body = match self.catalogue.fetch(name, None).await.and_then(|()| self.catalogue.load(name, "")) {
            Ok(body) => body,
            Err(error) if context.skills.contains(name) => {
                return Ok(report_again(name, &format!(" Its source has changed since: {}.", error.message)));
            }
            Err(error) => return Err(refuse_skill(&error)),
        };
        if !context.skills.insert(name, &body.path, body.fingerprint()) {
            return Ok(report_again(name, ""));
        }
        let tokens = body.tokens();
        (context.notify)(EventKind::SkillLoaded { name: body.name.clone(), path: body.path.clone(), tokens });
        let instructions = body.instructions(context.max_tokens.saturating_mul(BYTES_PER_TOKEN));
        let directory = body.directory.as_deref().map(file_name::quote);
        let mut result = json!({
            "name": body.name, "directory": directory, "files": body.files, "already_loaded": false,
        });
        let observation = match self.disclosure {
            SkillDisclosure::Message => {
                result["instructions"] = instructions.as_str().into();
                instructions
            }
            SkillDisclosure::System => {
                context.skills.show(name, instructions);
                format!("Skill `{name}` is loaded: see \"{SECTION}\" in the system prompt.")
            }
        };
        let summary = format!("{name}, about {tokens} tokens");
        let skill = (self.disclosure == SkillDisclosure::Message).then(|| name.to_owned());
        Ok(ToolOutput { result, observation, summary, skill, ..ToolOutput::default() })
    }

    /// The error for an unknown name, which is treated as a search if not all names are in the schema.
    fn refuse_name(&self, name: &str, error: &SkillError) -> ToolError {
        const MOST: usize = 10;
        let skills: Vec<(&str, &str)> =
            self.catalogue.list_offered().map(|skill| (skill.name.as_str(), skill.description.as_str())).collect();
        let texts: Vec<String> =
            skills.iter().map(|(name, description)| format!("{name} {description}")).collect();
        let line = |at: usize| format!("\n- {}: {}", skills[at].0, text::cut_to_width(skills[at].1, 120));
        let found: String = rank_texts(name, &texts).into_iter().take(MOST).map(line).collect();
        match found.as_str() {
            "" => refuse_skill(error),
            found => ToolError::parameter(format!("{}. Skills with these words:{found}", error.message)),
        }
    }
}

fn report_again(name: &str, note: &str) -> ToolOutput {
    ToolOutput {
        result: json!({ "name": name, "already_loaded": true }),
        observation: format!("Skill `{name}` is already loaded: you have its instructions.{note}"),
        summary: format!("{name} is already loaded"),
        ..ToolOutput::default()
    }
}

impl Tool for LoadSkill {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn has_network(&self, arguments: &Value) -> bool {
        text_of(arguments, "name").is_some_and(|name| self.catalogue.is_served(name))
    }

    fn call<'a>(&'a self, arguments: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let name = text_of(&arguments, "name");
            let name = name.ok_or_else(|| ToolError::parameter("`name` must be a string"))?;
            self.load(name, context).await
        })
    }
}

/// A skill's error as a tool's.
pub(super) fn refuse_skill(error: &SkillError) -> ToolError {
    let kind = match error.kind {
        SkillErrorKind::Unknown | SkillErrorKind::Outside => ToolErrorKind::Parameter,
        SkillErrorKind::Unreadable => ToolErrorKind::Permanent,
    };
    ToolError::new(kind, error.message.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use futures_util::FutureExt;
    use serde_json::{Value, json};

    use super::LoadSkill;
    use crate::base::output::{ToolError, ToolOutput};
    use crate::config::SkillDisclosure;
    use crate::conversation::event::EventKind;
    use crate::conversation::knowledge::Loaded;
    use crate::files::workspace::Workspace;
    use crate::safety::Reach;
    use crate::skills::{RunVariables, SkillCatalogue};
    use crate::tools::load_skill_reference::LoadSkillReference;
    use crate::tools::testing::{Empty, NobodyAsked};
    use crate::tools::{CallContext, Clocks, Tool};

    struct Bench {
        dir: tempfile::TempDir,
        load: LoadSkill,
        reference: LoadSkillReference,
        loaded: Loaded,
        events: Mutex<Vec<Value>>,
    }

    impl Bench {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            let catalogue = Arc::new(SkillCatalogue::discover(&[], dir.path(), RunVariables::default()));
            let disclosure = SkillDisclosure::Message;
            let load = LoadSkill::new(catalogue.clone(), disclosure);
            let reference = LoadSkillReference::new(catalogue, disclosure);
            Self { dir, load, reference, loaded: Loaded::default(), events: Mutex::default() }
        }

        fn call(&self, tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
            let workspace = Workspace::open(self.dir.path()).expect("a directory");
            let notify = |event: EventKind| {
                self.events.lock().expect("no panic").push(serde_json::to_value(event).expect("plain data"));
            };
            let context = CallContext {
                keep: None,
                workspace: &workspace,
                reach: &Arc::new(Reach::new(&workspace, Vec::new(), Vec::new())),
                files: &Arc::default(),
                skills: &self.loaded,
                spill: &Arc::default(),
                archive: &Empty,
                timeout: Duration::from_secs(1),
                clocks: Clocks { most: Duration::from_secs(1), idle: None, run: None },
                max_tokens: 2000,
                whole: false,
                live: &|_| {},
                enclosure: crate::safety::Enclosure::Write,
                variables: &[],
                person: &NobodyAsked,
                refused: &|_| {},
                notify: &notify,
                superior: &|| unreachable!("no tool of this room begins a run"),
            };
            tool.call(arguments, context).now_or_never().expect("it waits for nothing")
        }
    }

    #[test]
    fn a_skill_is_given_once_with_real_paths() {
        let bench = Bench::new();
        let first = bench.call(&bench.load, json!({"name": "workspace-tour"})).expect("built in");
        assert!(first.observation.contains("# Workspace tour") && !first.observation.contains("description:"));
        assert!(first.observation.contains("references/reading-order.md"), "{}", first.observation);
        let directory = first.result["directory"].as_str().expect("unpacked").to_owned();
        assert!(first.observation.contains(&format!("Skill directory: {directory}\n")));
        assert!(std::path::Path::new(&directory).join("references/reading-order.md").is_file());

        let again = bench.call(&bench.load, json!({"name": "workspace-tour"})).expect("still there");
        assert!(again.observation.lines().count() == 1 && again.result["already_loaded"] == true);
        assert_eq!(bench.events.lock().expect("no panic").len(), 1, "and nothing is announced twice");

        let error = bench.call(&bench.load, json!({"name": "workspace-tur"})).expect_err("unknown");
        assert!(error.message.contains("did you mean workspace-tour?"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_that_is_not_utf_8_is_quoted() {
        use std::os::unix::ffi::OsStrExt;

        use crate::config::{SkillDir, SkillScope};
        let mut bench = Bench::new();
        let root = bench.dir.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
        let skill =
            "---\nname: a\ndescription: d\nmetadata:\n  template: jinja\n---\n\nIn {{ skill.directory }}.\n";
        std::fs::create_dir_all(root.join("a")).expect("made");
        std::fs::write(root.join("a/SKILL.md"), skill).expect("written");
        let dirs = [SkillDir::new(root, SkillScope::User)];
        let catalogue = Arc::new(SkillCatalogue::discover(&dirs, bench.dir.path(), RunVariables::default()));
        bench.load = LoadSkill::new(catalogue, SkillDisclosure::Message);
        let first = bench.call(&bench.load, json!({"name": "a"})).expect("it is there");
        let directory = first.result["directory"].as_str().expect("a text");
        assert!(directory.starts_with('"') && directory.ends_with("/\\xff/a\""), "{directory}");
        assert!(first.observation.contains("/\u{fffd}/a.\n"), "{}", first.observation);
    }

    #[test]
    fn a_reference_is_read_by_lines() {
        let bench = Bench::new();
        let path = "references/reading-order.md";
        let arguments = json!({"name": "workspace-tour", "path": path, "offset": 1, "limit": 2});
        let page = bench.call(&bench.reference, arguments).expect("built in");
        assert!(page.observation.contains("# Which files tell the most") && page.truncated);
        assert!(page.observation.contains("offset 3"), "{}", page.observation);
        let events = bench.events.lock().expect("no panic").clone();
        assert_eq!((&events[0]["type"], &events[0]["path"]), (&json!("skill.referenced"), &json!(path)));
        for path in ["../workspace-tour/SKILL.md", "/etc/passwd", "references/../../x"] {
            let arguments = json!({"name": "workspace-tour", "path": path});
            let error = bench.call(&bench.reference, arguments).expect_err("outside");
            assert!(error.message.contains("outside the skill's folder"), "{}", error.message);
        }
    }

    #[test]
    fn both_definitions_are_cheap() {
        let bench = Bench::new();
        let bytes: usize = [bench.load.definition(), bench.reference.definition()]
            .iter()
            .map(|tool| {
                let mut parameters = Value::clone(&tool.parameters);
                // The names belong to the skills and are counted with the whole request.
                parameters["properties"]["name"] = json!({ "type": "string" });
                let function = json!({
                    "name": tool.name, "description": tool.description, "parameters": parameters
                });
                json!({"type": "function", "function": function}).to_string().len()
            })
            .sum();
        assert!(bytes <= 155 * 4, "{bytes} bytes: at most 155 tokens of four bytes");
        let names = &bench.load.definition().parameters["properties"]["name"]["enum"];
        assert!(names.as_array().is_some_and(|names| names.contains(&json!("workspace-tour"))), "{names}");
    }
}
