//! The meaning of names, place by place, and the errors about names without one.

use std::fs;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::{ListedPrompt, Registry};
use crate::config::{PromptDir, PromptSource};
use crate::prompt::PromptContext;
use crate::prompt::file::Prompt;
use crate::template::{convert_value, layer_values, make_clock, make_object};

fn registry(files: &[(&str, &str)]) -> (tempfile::TempDir, Registry) {
    let dir = tempfile::tempdir().expect("a directory");
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    let dirs = [dir.path().to_path_buf(), dir.path().join("absent")].map(PromptDir::new);
    (dir, Registry::new(&dirs))
}

fn body(registry: &Registry, reference: &str) -> String {
    registry.get(reference).map_or_else(|error| format!("error: {error}"), |prompt| prompt.body().to_owned())
}

fn error(files: &[(&str, &str)], reference: &str) -> String {
    registry(files).1.get(reference).expect_err("wrong").to_string()
}

#[test]
fn what_is_built_in_is_sound() {
    let registry = Registry::new(&[]);
    let names = registry.names().expect("listed");
    let context = PromptContext::sample().value();
    for ListedPrompt { name, version, prompt, .. } in
        registry.list(names.iter().map(String::as_str)).expect("listed")
    {
        let prompt = prompt.expect("sound");
        assert!(prompt.is_built_in() && !prompt.head.description.is_empty(), "{name}");
        // The build's reading equals the one here, and the text is a template.
        let text = crate::base::builtin::PROMPTS.get_file(format!("{name}/{version}.md"));
        let text = text.and_then(|file| file.contents_utf8()).expect("text");
        let read = Prompt::parse(&name, version, &prompt.origin, text).expect("sound");
        let read = registry.compose(read, None).and_then(Prompt::compiled).expect("sound");
        assert_eq!(format!("{:?}", read.head), format!("{:?}", prompt.head));
        assert_eq!((read.body(), read.digest()), (prompt.body(), prompt.digest()), "{name}@{version}");
        if name.starts_with(super::MODULES) {
            assert_eq!(read.modules().count(), 0);
        } else if prompt.head.required_vars.iter().all(|name| !prompt.undefined_in(&context).contains(name)) {
            assert!(!prompt.render(&context).expect("it renders").is_empty());
        }
    }
}

#[test]
fn later_directories_win_version_by_version_and_label_by_label() {
    let (_dir, registry) = registry(&[
        ("system/v1.0.md", "mine"),
        ("system/v1.1.txt", "newer"),
        ("system/notes.md", "{% not a prompt"),
        ("system/release.yaml", "labels: { next: v1.1 }\n"),
        ("own/v1.9.md", "nine"),
        ("own/v1.10.md", "ten"),
        ("staged/v1.0.md", "one"),
        ("staged/v2.0.md", "two"),
        ("staged/release.yaml", "labels: { production: v1.0 }\n"),
    ]);
    for (reference, expected) in [
        ("system@1.0", "mine"),
        ("system@next", "newer"),
        ("own", "ten"),
        ("own@production", "ten"),
        ("own@latest", "ten"),
        ("own@v1.9", "nine"),
        ("staged", "one"),
        ("staged@latest", "two"),
    ] {
        assert_eq!(body(&registry, reference), expected, "{reference}");
    }
}

#[test]
fn errors_say_what_there_is() {
    let built_in = Registry::new(&[]);
    let said = |reference: &str| built_in.get(reference).expect_err("unknown").to_string();
    assert!(said("sytem").contains("did you mean system?"), "{}", said("sytem"));
    assert!(said("sytem").contains("known: ") && !said("sytem").contains("modules/"), "{}", said("sytem"));
    assert!(said("system@prodution").contains("did you mean production?"));
    assert!(said("system@v9.9").contains("versions: v1.0"), "{}", said("system@v9.9"));
    for outside in ["../x", "/etc", "a/b", "", "system/../system", "modules/../system"] {
        assert!(said(outside).contains("there is no "), "{outside}: {}", said(outside));
    }
}

#[test]
fn mistakes_beside_a_prompt_have_a_place() {
    let mine = ("mine/v1.0.md", "text");
    for (files, said) in [
        (&[mine, ("mine/release.yaml", "labels:\n  production: latest\n")][..], "mine/release.yaml:2:"),
        (&[mine, ("mine/release.yaml", "labels: { production: v1.0")], "mine/release.yaml:"),
        (
            &[mine, ("mine/release.yaml", "labels: { production: v7.0 }")],
            "mine/v7.0.md does not exist; versions: v1.0",
        ),
        (&[mine, ("mine/v1.0.txt", "text")], "is the same version"),
        (&[mine, ("mine/release.lock", "v1.0: [")], "mine/release.lock:"),
        (
            &[("mine/v1.0.md", "---\nmodules: [nothing@1.0]\n---\n")],
            "mine/v1.0.md:2: there is no module `nothing`",
        ),
        (
            &[
                ("mine/v1.0.md", "{% include 'mine/part.md' %}"),
                ("mine/part.md", "---\ndescription: d\n---\na\n{% if %}"),
            ],
            "mine/v1.0.md: unexpected end of block (in mine/part.md:5:7: `{% if %}`)",
        ),
    ] {
        let (_dir, registry) = registry(files);
        let read = registry.get("mine").and_then(|prompt| prompt.render(&convert_value(&json!({}))));
        let error = read.expect_err("wrong").to_string();
        assert!(error.contains(said), "{said}\n{error}");
    }
}

#[test]
fn a_released_version_stays_as_it_was() {
    const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let lock = format!("v1.0: {DIGEST}\n");
    let (_dir, sound) =
        registry(&[("mine/v1.0.md", "abc"), ("mine/v1.1.md", "new"), ("mine/release.lock", &lock)]);
    assert_eq!((body(&sound, "mine@1.0"), body(&sound, "mine@1.1")), ("abc".to_owned(), "new".to_owned()));
    let (_dir, edited) = registry(&[("mine/v1.0.md", "abd"), ("mine/release.lock", &lock)]);
    assert_eq!(body(&edited, "mine"), "abd");
    let said = edited.warnings().concat();
    assert!(said.contains("v1.0 was released as #ba7816bf8f01 and is #"), "{said}");
    assert!(said.contains("agent prompt new mine"), "{said}");
}

const PARTS: [(&str, &str); 5] = [
    (
        "modules/who/v1.0.md",
        "---\nrequired_vars: [agent.name]\n---\nYou are {{ agent.name }}{{ agent.model is defined }}.\n",
    ),
    ("modules/tools/v1.0.md", "---\nrequired_vars: [tools]\n---\n{% for t in tools %}- {{ t }}\n{% endfor %}"),
    ("modules/tools/v2.0.md", "---\nrequired_vars: [tools]\n---\n{{ tools | join(',') }}"),
    ("one/v1.0.md", "---\nmodules:\n  - who@1.0\n  - Tools: tools@1.0\n  - Task: body\n---\n{{ task }}\n"),
    ("two/v1.0.md", "---\nmodules: [{ Tools: tools@2.0 }]\ndefaults: { tone: dry }\n---\nBe {{ tone }}.\n"),
];

#[test]
fn modules_are_assembled_under_their_headings() {
    let (_dir, registry) = registry(&PARTS);
    let context = convert_value(&json!({
        "agent": { "name": "ada", "model": "m" }, "tools": ["a", "b"], "task": "{{ x }}", "vars": {},
    }));
    let text = |name: &str| registry.get(name).expect("sound").render(&context).expect("all is defined");
    assert_eq!(text("one"), "You are adaFalse.\n\n# Tools\n- a\n- b\n\n# Task\n{{ x }}");
    assert_eq!(text("two"), "# Tools\na,b\n\nBe dry.");
    let without = convert_value(&json!({ "agent": { "name": "ada" }, "tools": [], "task": "t", "vars": {} }));
    let text = registry.get("one").expect("sound").render(&without).expect("all is defined");
    assert_eq!(text, "You are adaFalse.\n\n# Task\nt", "a section that says nothing has no heading");
    let missing =
        registry.get("one").expect("sound").render(&convert_value(&json!({ "vars": {} }))).expect_err("missing");
    for name in ["`agent.name`", "`tools`", "`task`"] {
        assert!(missing.to_string().contains(name), "{missing}");
    }
}

#[test]
fn the_fingerprint_covers_modules_and_included_files() {
    let fingerprint =
        |files: &[(&str, &str)], name: &str| registry(files).1.get(name).expect("sound").fingerprint().to_owned();
    let before = fingerprint(&PARTS, "one");
    let mut changed = PARTS;
    changed[1].1 = "---\nrequired_vars: [tools]\n---\n{{ tools }}\n";
    assert_ne!(fingerprint(&changed, "one"), before);
    assert_eq!(fingerprint(&changed, "two"), fingerprint(&PARTS, "two"));
    let including = |part: &'static str| [("p/v1.0.md", "{% include 'p/part.md' %}"), ("p/part.md", part)];
    assert_ne!(fingerprint(&including("a"), "p"), fingerprint(&including("b"), "p"));
    let (_dir, registry) = registry(&including("---\ndescription: Shared.\n---\nshared {{ x }}"));
    let text = registry.get("p").expect("sound").render(&convert_value(&json!({ "x": 1 }))).expect("defined");
    assert_eq!(text, "shared 1");
}

#[test]
fn a_module_of_a_person_takes_the_place_of_a_built_in_one_and_is_seen_in_the_fingerprint() {
    let own = (
        "modules/reminder/v1.0.md",
        "---\nrequired_vars: [session.person]\n---\nBe kind to {{ session.person }}.",
    );
    let (_dir, registry) = registry(&[own]);
    let (before, after) =
        (Registry::new(&[]).get("system").expect("sound"), registry.get("system").expect("sound"));
    assert_ne!(before.fingerprint(), after.fingerprint());
    assert!(before.is_built_in() && !after.is_built_in());
    let text = after.render(&PromptContext::sample().value()).expect("all is defined");
    assert!(text.contains("# Above all\nBe kind to "), "{text}");
}

#[test]
fn examples_are_data_from_the_nearest_place() {
    let files = |examples: &'static str| {
        [
            ("p/v1.0.md", "---\nexamples: few.yaml\n---\n{% for e in examples %}{{ e.a }};{% endfor %}"),
            ("p/few.yaml", examples),
        ]
    };
    let context = convert_value(&json!({ "vars": {} }));
    let (_dir, first) = registry(&files("- a: '{{ x }}'\n- a: 2\n"));
    let (_dir, other) = registry(&files("- a: 3\n"));
    let (first, other) = (first.get("p").expect("sound"), other.get("p").expect("sound"));
    assert_eq!(first.render(&context).expect("defined"), "{{ x }};2;");
    assert_ne!(first.fingerprint(), other.fingerprint());
    let given = convert_value(&json!({ "vars": { "examples": [{ "a": "mine" }] } }));
    assert_eq!(first.render(&given).expect("defined"), "mine;", "a person may give others");
}

#[test]
fn examples_of_a_person_take_the_place_of_built_in_ones() {
    let (_dir, registry) =
        registry(&[("planner/examples.yaml", "- { request: Wash up., reply: { plan: [] } }\n")]);
    let (before, after) =
        (Registry::new(&[]).get("planner").expect("sound"), registry.get("planner").expect("sound"));
    assert_ne!(before.fingerprint(), after.fingerprint());
    assert!(before.is_built_in() && !after.is_built_in());
    let workspace = json!({ "dir": "/w", "git_branch": null, "os": "linux" });
    let given =
        json!({ "tools": [], "user_request": "x", "vars": {}, "instructions": "", "workspace": workspace });
    let clock = make_clock(Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC));
    let context = layer_values(convert_value(&given), make_object([("datetime", clock)]));
    let text = after.render(&context).expect("all is defined");
    assert!(text.contains("<request>Wash up.</request>\n{\"plan\": []}") && !text.contains("Lisbon"), "{text}");
}

#[test]
fn mistakes_in_examples_have_a_place() {
    let head = |file: &str| format!("---\ndescription: d\nexamples: {file}\n---\nx");
    for (file, text, said) in [
        ("gone.yaml", "", "p/v1.0.md:3: `examples: gone.yaml` is not beside the prompt"),
        ("../out.yaml", "", "p/v1.0.md:3: `examples: ../out.yaml` leads out of the folder"),
        ("few.yaml", "- a: [", "p/few.yaml:2:1: "),
    ] {
        let said_at = error(&[("p/v1.0.md", &head(file)), ("p/few.yaml", text)], "p");
        assert!(said_at.contains(said), "{said_at}");
    }
}

#[test]
fn a_module_names_no_modules() {
    let said = error(&[("modules/a/v1.0.md", "---\nmodules: [a@1.0]\n---\n")], "modules/a");
    assert!(said.contains("a module is not composed of others"), "{said}");
}

#[test]
fn a_configuration_may_write_a_prompt_out() {
    let prompt = Registry::new(&[])
        .resolve(&PromptSource::Inline("Be brief.".to_owned()), "here", false)
        .expect("a template")
        .stable;
    assert_eq!((prompt.name.as_str(), prompt.version), ("inline", None));
}
