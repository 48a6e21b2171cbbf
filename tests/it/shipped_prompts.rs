//! The built-in prompts: their tests, their changelogs, and their cost.

use std::collections::BTreeSet;

use agent::facade::base::Validator;
use agent::facade::base::tokens::count_tokens;
use agent::facade::config::GuidanceProfile;
use agent::facade::prompt::test::{Suite, parse_suite, run_all_rendered};
use agent::facade::prompt::{MODULES, PRODUCTION, Prompt, PromptContext, Registry, SkillFacts, Version};
use agent::facade::template::{self, convert_value};
use jiff::Zoned;
use serde_json::{Value, json};

/// The fewest cases with which a prompt may be released.
const LEAST_CASES: usize = 10;

/// Every prompt that is no module, in production.
fn shipped(registry: &Registry) -> Vec<std::sync::Arc<Prompt>> {
    let names = registry.names().expect("built in");
    let own = names.iter().filter(|name| !name.starts_with(MODULES));
    own.map(|name| registry.get(&format!("{name}@{PRODUCTION}")).expect("released")).collect()
}

fn suite(registry: &Registry, name: &str) -> Suite {
    let file = registry.read_beside(name, "tests.yaml").expect("readable");
    let (text, origin) = file.unwrap_or_else(|| panic!("{name} has no tests.yaml"));
    let suite = parse_suite(&origin, &text).unwrap_or_else(|mistakes| panic!("{origin}: {mistakes:?}"));
    assert_eq!(suite.notes, [""; 0], "{origin}");
    suite
}

#[test]
fn every_prompt_passes_its_tests() {
    let registry = Registry::new(&[]);
    let mut failed = Vec::new();
    for prompt in shipped(&registry) {
        let suite = suite(&registry, &prompt.name);
        assert!(suite.cases.len() >= LEAST_CASES, "{}: {} cases", prompt.name, suite.cases.len());
        for outcome in run_all_rendered(&prompt, &suite, &PromptContext::sample().value()) {
            if !outcome.has_passed() {
                let run = &outcome.runs[0];
                failed.push(format!("{}: {}\n{:#?}", prompt.name, outcome.name, run.judgement));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn every_version_stands_in_the_changelog() {
    let registry = Registry::new(&[]);
    for prompt in shipped(&registry) {
        let name = &prompt.name;
        let (changes, _) =
            registry.read_beside(name, "changelog.md").expect("readable").expect("it has a changelog");
        let versions: Vec<Version> =
            registry.list([name.as_str()]).expect("listed").iter().map(|listed| listed.version).collect();
        assert_eq!(prompt.version.as_ref(), versions.last(), "{name}: the newest is in production");
        for version in versions {
            assert!(
                changes.contains(&format!("\n## {version}\n\n- ")),
                "{name}: {version} is not in its changelog"
            );
        }
    }
}

/// The tokens of the system prompt without skills and instructions, and its text.
fn system(profile: GuidanceProfile, skills: Vec<SkillFacts>) -> (u64, String) {
    let mut facts = PromptContext::sample();
    facts.agent.profile = profile;
    facts.agent.skills = skills;
    let prompt = Registry::new(&[]).get("system").expect("built in");
    let text = prompt.render(&facts.value()).expect("all is defined");
    (count_tokens(&text), text)
}

#[test]
fn the_system_prompt_is_short_in_both_profiles() {
    for profile in [GuidanceProfile::Concise, GuidanceProfile::Guided] {
        let (tokens, text) = system(profile, Vec::new());
        let most = if profile == GuidanceProfile::Guided { 9000 } else { 7500 };
        assert!(text.len() <= most, "{profile:?}: {} bytes of {most}: say it shorter", text.len());
        assert!(!text.contains("\n\n\n"), "{text}");
        let skill = SkillFacts { name: "tour".to_owned(), description: "Shows around.".to_owned(), loaded: false };
        let (with_skill, text) = system(profile, vec![skill]);
        assert!(with_skill > tokens && text.contains("\n# Skills\n"), "{text}");
    }
}

/// The prompts whose replies a program carries out.
const CARRIED_OUT: [&str; 4] = ["router", "planner", "executor", "reflector"];

#[test]
fn replies_that_a_program_carries_out_share_their_form_and_leave_a_way_out() {
    let registry = Registry::new(&[]);
    for name in CARRIED_OUT {
        let prompt = registry.get(name).expect("built in");
        let modules: Vec<&str> = prompt.modules().map(|(_, module)| module.name.as_str()).collect();
        assert!(
            modules.contains(&"modules/role") && modules.contains(&"modules/json-reply"),
            "{name}: {modules:?}"
        );
        assert!(!prompt.head.untrusted.is_empty(), "{name} works on what comes from outside");
        assert!(
            ["`none`", "an empty `plan`", "`tool_call` is null", "`escalate`"]
                .iter()
                .any(|out| prompt.body().contains(out)),
            "{name}: no way out"
        );
    }
}

/// The roles whose replies have a schema, and a value for each of their variables.
fn roles() -> [(&'static str, Value); 5] {
    let tools = json!([{ "name": "grep", "description": "Searches files." }]);
    [
        ("router", json!({ "tools": tools, "user_request": "x" })),
        ("planner", json!({ "tools": tools, "user_request": "x" })),
        ("executor", json!({ "tools": tools, "step": "x" })),
        ("reflector", json!({ "user_request": "x", "plan": "x", "results": "x" })),
        ("scratchpad", json!({ "tools": tools, "user_request": "x" })),
    ]
}

/// The lines of a text that are JSON objects: what a prompt shows of its replies.
fn objects(text: &str) -> Vec<Value> {
    text.lines()
        .filter(|line| line.starts_with("{\""))
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// The variables of a role, in some workspace.
fn in_a_place(variables: &Value) -> template::Value {
    let workspace = json!({ "dir": "/w", "git_branch": null, "os": "linux" });
    let given =
        variables.as_object().expect("an object").iter().map(|(name, value)| (name.clone(), convert_value(value)));
    let place = [
        ("workspace".to_owned(), convert_value(&workspace)),
        ("instructions".to_owned(), convert_value(&"")),
        ("datetime".to_owned(), template::make_clock(Zoned::now())),
    ];
    template::make_object(given.chain(place))
}

#[test]
fn the_schema_of_a_reply_and_the_prompt_say_the_same() {
    let registry = Registry::new(&[]);
    for (name, variables) in roles() {
        let (schema, _) = registry.read_beside(name, "reply.json").expect("readable").expect("there is a schema");
        let schema: Value = serde_json::from_str(&schema).expect("JSON");
        let validator = Validator::new(&schema).expect("a schema");
        let text = registry.get(name).expect("built in").render(&in_a_place(&variables)).expect("all is given");
        let shown: Vec<Value> = objects(&text);
        let (keys, examples) = shown.split_first().expect("the keys are shown");
        let names = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(names(keys), names(&schema["properties"]), "{name}");
        if let Some(actions) = schema["properties"]["action"]["enum"].as_array() {
            let actions: Vec<&str> = actions.iter().filter_map(Value::as_str).collect();
            assert_eq!(keys["action"], actions.join(" | "), "{name}");
        }
        assert_eq!(examples.is_empty(), name != "planner", "{name}: examples are for plans");
        for example in examples {
            validator.check("The example does", example).unwrap_or_else(|why| panic!("{name}: {why}\n{example}"));
        }
    }
}

#[test]
fn the_end_of_a_role_asks_for_the_form_that_is_read() {
    let registry = Registry::new(&[]);
    for name in CARRIED_OUT {
        let prompt = registry.get(name).expect("built in");
        let variables = roles().into_iter().find(|(role, _)| *role == name).expect("a role").1;
        for (reasoning, end) in [
            ("implicit", "\nAnswer with the JSON object alone."),
            ("explicit", "\nAnswer with <scratchpad>, then <action> and in it the JSON object alone."),
        ] {
            let mut variables = variables.clone();
            variables["reasoning"] = json!(reasoning);
            let text = prompt.render(&in_a_place(&variables)).expect("all is given");
            assert!(text.ends_with(end) && text.contains(&prompt.head.reminder), "{name}: {text}");
        }
    }
}
