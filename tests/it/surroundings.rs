//! Broken surroundings at startup, on disk and in the environment: paths that are not files, empty variables,
//! read-only places, invalid proxies. Each is one clear error, and nothing hangs.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use nix::sys::stat::Mode;

use crate::run::{Place, Run};

#[test]
fn only_regular_files_of_a_bounded_size_are_read() {
    let pipe = |path: &Path| {
        fs::create_dir_all(path.parent().expect("inside")).expect("made");
        nix::unistd::mkfifo(path, Mode::S_IRWXU).expect("a pipe");
    };
    let asked =
        |place: &std::sync::Arc<Place>| Run::at(place).env("OPENAI_API_KEY", "k").args(["config", "check"]).run();
    for (path, what) in [
        ("agent.yaml", "is not a regular file"),
        ("models/default.yaml.j2", "is not a regular file"),
        ("prompts/system/v9.9.md", "is not a regular file"),
        ("prompts/system/release.yaml", "is not a regular file"),
    ] {
        let place = Place::new();
        pipe(&place.config().join(path));
        let run = asked(&place);
        // A prompt that nobody names is read by nobody.
        if path.ends_with("v9.9.md") {
            let run = Run::at(&place).args(["run", "-m", "demo", "--prompt", "system@v9.9", "hi"]).run().exits(3);
            assert!(run.stderr.contains(path) && run.stderr.contains(what), "{path}\n{}", run.shown());
            continue;
        }
        let run = run.exits(3);
        assert!(run.stderr.contains(path) && run.stderr.contains(what), "{path}\n{}", run.shown());
    }
    for path in ["agent.yaml", "models/default.yaml"] {
        let place = Place::new();
        fs::create_dir_all(place.config().join(path)).expect("made");
        let run = asked(&place).exits(3);
        assert!(run.stderr.contains(&format!("{path}: is a directory, not a file")), "{}", run.shown());
    }
    let place = Place::new();
    pipe(&place.config().join("included.j2"));
    fs::write(place.config().join("agent.yaml.j2"), "{% include 'included.j2' %}").expect("written");
    asked(&place).exits(3);
    let place = Place::new();
    pipe(&place.config().join("skills/piped/SKILL.md"));
    let run = Run::at(&place).args(["run", "-m", "demo", "hi"]).run().success();
    assert!(run.stderr.contains("piped"), "{}", run.shown());
    pipe(&place.workspace().join("AGENTS.md"));
    let run = Run::at(&place).args(["run", "-m", "demo", "hi"]).run().success();
    assert!(run.stderr.contains("AGENTS.md is left out"), "{}", run.shown());
    let place = Place::new();
    fs::create_dir_all(place.config()).expect("made");
    fs::write(place.config().join("agent.yaml"), "#".repeat(5 * 1024 * 1024)).expect("written");
    let run = asked(&place).exits(3);
    assert!(run.stderr.contains("agent.yaml: is longer than 4 MiB"), "{}", run.shown());
}

#[test]
fn an_empty_variable_lifts_no_limit() {
    for key in ["max_turns", "max_time", "max_tokens", "max_cost", "tool_idle_timeout"] {
        let text = format!("limits:\n  {key}: \"{{{{ env.UNSET_LIMIT }}}}\"\n");
        for file in ["agent.yaml", "agents/default.yaml"] {
            let output = Run::new().args(["run", "-m", "demo", "hi"]).config(file, &text).run().exits(3);
            let place = format!("{file}:2:{}: `{key}` is empty", key.len() + 5);
            assert!(output.stderr.contains(&place), "{place}\n{}", output.shown());
            assert_eq!(output.stderr.matches("is empty").count(), 1, "told once\n{}", output.shown());
        }
        let set = format!("limits.{key}=");
        Run::new().args(["run", "-m", "demo", "--set", &set, "hi"]).run().exits(3);
        let text = format!("limits: {{ {key}: \"{{{{ env.UNSET_LIMIT | default('null') }}}}\" }}\n");
        for text in [&text, &format!("limits: {{ {key}: null }}\n")] {
            Run::new()
                .args(["config", "check"])
                .env("OPENAI_API_KEY", "k")
                .config("agent.yaml", text)
                .run()
                .success();
        }
    }
}

#[test]
fn a_place_that_cannot_be_written_names_the_way_without_one() {
    let place = Place::new();
    fs::create_dir_all(place.home().join(".local")).expect("made");
    fs::write(place.home().join(".local/share"), "a file").expect("written");
    let run = || Run::at(&place).args(["run", "-m", "demo", "hi"]);
    let output = run().run().exits(1);
    assert!(
        output.stderr.contains("cannot be created") && output.stderr.contains("hint: --ephemeral"),
        "{}",
        output.shown()
    );
    run().arg("--ephemeral").run().success();
    let output = Run::at(&place).args(["run", "-m", "demo", "hi"]).env("XDG_DATA_HOME", "/proc").run().exits(1);
    assert!(output.stderr.contains("/proc/agent") && output.stderr.contains("--ephemeral"), "{}", output.shown());
    for (variable, value) in [("XDG_CONFIG_HOME", ".local/share"), ("XDG_CONFIG_HOME", ".local")] {
        let dir = place.home().join(value);
        if value == ".local" {
            fs::write(dir.join("agent"), "a file").expect("written");
        }
        let output = run().arg("--ephemeral").env(variable, dir.to_string_lossy()).run().exits(3);
        assert!(output.stderr.contains("agent"), "{}", output.shown());
    }
}

#[test]
fn a_broken_proxy_is_one_clear_error() {
    let run = Run::new().args(["run", "--ephemeral", "hi"]).env("OPENAI_API_KEY", "k");
    let run = run.env("OPENAI_BASE_URL", "http://example.invalid/v1").env("HTTP_PROXY", "http://user:word@a:b:c");
    let output = run.run().fails();
    assert!(output.stderr.contains("HTTP_PROXY is not the address of a proxy"), "{}", output.shown());
    assert!(!output.stderr.contains("word"), "{}", output.shown());
}

#[test]
fn a_full_disk_names_the_way_without_one() {
    let place = Place::new();
    let dir = place.data();
    fs::create_dir_all(&dir).expect("made");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4k", "none"]).arg(&dir).status();
    if !mounted.is_ok_and(|status| status.success()) {
        let _ = writeln!(std::io::stderr(), "skipped: a small disk can be mounted by root alone");
        return;
    }
    let output = Run::at(&place).args(["run", "-m", "demo", "hi"]).run();
    let _ = Command::new("umount").arg("-l").arg(&dir).status();
    let output = output.fails();
    assert!(
        output.stderr.contains("cannot be written") && output.stderr.contains("hint: --ephemeral"),
        "{}",
        output.shown()
    );
}
