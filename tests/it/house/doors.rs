//! The doors: each third-party crate is used in one place, so that it can be replaced there; and what only some rooms
//! do.

use super::source::{Source, none, package, rust};

/// Crate (as code names it) → the files or directories (ending in `/`) that may use it.
const DOORS: &[(&str, &[&str])] = &[
    // command line and terminal
    ("clap", &["src/faces/cli/args.rs", "src/faces/cli/args/"]),
    ("clap_complete", &["src/faces/cli/"]),
    ("clap_mangen", &["src/faces/cli/"]),
    ("indicatif", &["src/screen/"]),
    ("rustyline", &["src/screen/terminal/"]),
    ("terminal_size", &["src/screen/terminal.rs"]),
    // data
    ("aho_corasick", &["src/base/secrets/shapes.rs"]),
    ("saphyr_parser", &["src/base/yaml.rs", "src/base/yaml/"]),
    ("serde_variant", &["src/base/spelling.rs"]),
    ("toml", &["src/config/import/"]),
    ("serde_yaml", &["src/base/yaml.rs", "src/base/yaml/"]),
    ("jsonschema", &["src/base/validator.rs"]),
    ("schemars", &["src/config/", "src/base/secrets/secret.rs", "src/base/output.rs"]),
    ("include_dir", &["src/base/builtin.rs"]),
    ("pulldown_cmark", &["src/screen/markdown/"]),
    ("syntect", &["src/screen/highlight/"]),
    ("two_face", &["src/screen/highlight/"]),
    // templates
    ("gotmpl", &["src/template/"]),
    ("minijinja", &["src/template/"]),
    ("minijinja_contrib", &["src/template/"]),
    // network and model
    ("async_openai", &["src/model/endpoint.rs"]),
    ("base64", &["src/base/image.rs"]),
    ("encoding_rs", &["src/tools/fetch_url.rs", "src/tools/files/encoding.rs"]),
    ("html5gum", &["src/tools/readable.rs"]),
    ("image_codecs", &["src/base/image/scaling.rs"]),
    ("hyper", &["src/safety/net/"]),
    ("hyper_util", &["src/safety/net/"]),
    ("memchr", &["src/model/", "src/conversation/session/lines.rs"]),
    ("opentelemetry", &["src/screen/otlp/"]),
    ("opentelemetry_http", &["src/screen/otlp/"]),
    ("opentelemetry_otlp", &["src/screen/otlp/"]),
    ("opentelemetry_sdk", &["src/screen/otlp/"]),
    ("reqwest", &["src/safety/net.rs", "src/safety/net/", "src/model/", "src/tools/mcp/client.rs"]),
    ("ring", &["src/model/clouds/"]),
    (
        "rmcp",
        &[
            "src/tools/mcp/client.rs", "src/tools/mcp/login.rs", "src/tools/mcp/pages.rs",
            "src/tools/mcp/refusals.rs", "src/tools/mcp/rounds.rs", "src/tools/mcp/serve/",
            "src/tools/mcp/skill_wire.rs",
        ],
    ),
    ("rustls", &["src/safety/net.rs", "src/safety/net/"]),
    // workers
    ("async_nats", &["src/agent/workers/queue.rs"]),
    ("rustls_platform_verifier", &["src/agent/workers/tls.rs"]),
    ("tokio_postgres", &["src/agent/workers/results.rs", "src/agent/workers/tls.rs"]),
    ("tokio_rustls", &["src/agent/workers/tls.rs"]),
    // files and search
    ("globset", &["src/tools/", "src/safety/policy/", "src/base/text.rs"]),
    ("icu_normalizer", &["src/base/text.rs"]),
    ("icu_properties", &["src/base/text.rs"]),
    ("grep_matcher", &["src/tools/", "src/prompt/test/pattern.rs"]),
    ("grep_regex", &["src/tools/", "src/prompt/test/pattern.rs"]),
    ("grep_searcher", &["src/tools/"]),
    ("ignore", &["src/tools/", "src/files/ignored.rs"]),
    ("dunce", &["src/files/mod.rs"]),
    ("lz4_flex", &["src/files/history/content.rs"]),
    ("similar", &["src/base/diff.rs", "src/tools/patch/"]),
    ("strsim", &["src/base/text.rs"]),
    // operating system
    (
        "nix",
        &[
            "src/safety/process/", "src/safety/sandbox/", "src/screen/terminal.rs", "src/screen/terminal/",
            "src/files/regular.rs",
        ],
    ),
    ("landlock", &["src/safety/sandbox/linux/"]),
    ("rustix", &["src/files/disk/unix.rs", "src/files/history/watch.rs", "src/safety/sandbox/linux/"]),
    ("seccompiler", &["src/safety/sandbox/linux/"]),
    // errors: `anyhow` above the library layers, kinds of errors below
    ("anyhow", &["src/agent/", "src/faces/"]),
];

/// Plain vocabulary that any room may use.
const OPEN: &[&str] = &[
    "bytes", "fastrand", "futures_util", "jiff", "serde", "serde_json", "sha2", "tempfile", "thiserror", "tokio",
    "unicode_width",
];

/// Actions that only some rooms may take: words in the code → where → what to do instead.
const DEEDS: &[(&[&str], &[&str], &str)] = &[
    (
        &["env::var(", "env::var_os", "env::vars"],
        &["src/config/env.rs"],
        "Only src/config/env.rs reads the environment; take an `Env`",
    ),
    (
        &["println!", "print!(", "io::stdout()", "io::stderr()", "stdout().lock", "stderr().lock", "dbg!"],
        // The terminal is asked for its width through a handle, and put back as it was found at the end.
        &["src/main.rs", "src/screen/", "src/faces/"],
        "Library code does not print: emit an event, or return the text",
    ),
    (
        &["process::exit", "process::abort"],
        &["src/faces/cli/", "src/main.rs"],
        "Library code does not exit: return an error",
    ),
];

#[test]
fn every_foreign_crate_is_behind_its_door() {
    let mut broken = Vec::new();
    for file in rust(&["src"]) {
        for (line, code) in file.code() {
            for (name, places) in DOORS {
                if names_crate(&code, name) && !inside(&file.path, places) {
                    broken.push(format!("{}:{line}: {name} belongs in {}", file.path, places.join(" or ")));
                }
            }
        }
    }
    none("A foreign crate is used behind its one door. Ask the door's module for what is needed:", &broken);
}

#[test]
fn every_dependency_has_a_door_or_is_open_to_all() {
    let manifest = std::fs::read_to_string(package().join("Cargo.toml")).expect("the package has a manifest");
    let declared = dependencies(&manifest);
    let known = |name: &str| OPEN.contains(&name) || DOORS.iter().any(|(door, _)| *door == name);
    let undecided: Vec<String> = declared.iter().filter(|name| !known(name)).cloned().collect();
    none("Decide where each dependency is used, in DOORS or OPEN of tests/it/house/doors.rs:", &undecided);
    let all: String = rust(&["src"]).iter().flat_map(Source::all_code).map(|(_, code)| code + "\n").collect();
    let unused: Vec<String> = declared.iter().filter(|name| !names_crate(&all, name)).cloned().collect();
    none("Nothing uses these dependencies; take them out of Cargo.toml:", &unused);
    let doors = DOORS.iter().map(|(name, _)| *name).chain(OPEN.iter().copied());
    let gone: Vec<String> = doors.filter(|name| !declared.iter().any(|d| d == name)).map(str::to_owned).collect();
    none("These have a door but are no dependency any more; take them out of tests/it/house/doors.rs:", &gone);
}

#[test]
fn only_the_rooms_meant_for_it_read_the_environment_print_or_exit() {
    let mut broken = Vec::new();
    for file in rust(&["src"]) {
        for (line, code) in file.code() {
            for (words, places, instead) in DEEDS {
                if let Some(word) = words.iter().find(|word| code.contains(**word))
                    && !inside(&file.path, places)
                {
                    broken.push(format!("{}:{line}: `{}`. {instead}.", file.path, word.trim()));
                }
            }
        }
    }
    none("What only some rooms may do:", &broken);
}

fn inside(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path == *place || place.ends_with('/') && path.starts_with(place))
}

/// True if the code names this crate at the start of a path.
fn names_crate(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let fresh = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':' && c != '.');
        let rest = &code[at + name.len()..];
        let root =
            code[..at].ends_with("::") && !code[..at].trim_end_matches("::").ends_with(char::is_alphanumeric);
        let imported = code[..at].trim_end().ends_with("use") && rest.starts_with([';', ' ']);
        (fresh || root) && (rest.starts_with("::") || rest.starts_with('!') || imported)
    })
}

/// Names under `[dependencies]` and `[target.….dependencies]`, as code writes them.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut counted = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            counted = line == "[dependencies]" || line.starts_with("[target.") && line.ends_with(".dependencies]");
        } else if let (true, Some((name, _))) = (counted && !line.starts_with('#'), line.split_once('=')) {
            names.push(name.trim().replace('-', "_"));
        }
    }
    names
}

#[test]
fn crates_are_found_however_they_are_named() {
    for (code, name, expected) in [
        ("use clap::Parser;", "clap", true),
        ("use clap_complete::generate;", "clap", false),
        ("let x = ::reqwest::get(y);", "reqwest", true),
        ("x.ignore::<T>()", "ignore", false),
        ("include_dir!(a)", "include_dir", true),
        ("crate::template::minijinja::x", "minijinja", false),
        ("#[derive(schemars::JsonSchema)]", "schemars", true),
    ] {
        assert_eq!(names_crate(code, name), expected, "{code}");
    }
}
