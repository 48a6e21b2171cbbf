//! Versions of prompts as people release them: the commands, canaries, locks, and what sessions tell of versions.

use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// Ten cases that any version of `mine` passes.
fn cases(contains: &str) -> String {
    let case = |number: usize| {
        format!(
            "  - name: case {number}\n    render: true\n    vars: {{ tone: t{number} }}\n    assert: [ {{ contains: {contains} }} ]\n"
        )
    };
    format!("cases:\n{}", (0..10).map(case).collect::<String>())
}

const ONE: &str = "---\ndescription: Mine.\ndefaults: { tone: plain }\n---\nVersion one, {{ tone }}.\n";
const TWO: &str = "---\ndescription: Mine.\ndefaults: { tone: plain }\n---\nVersion two, {{ tone }}.\n";

fn place(run: Run) -> Run {
    run.config("prompts/mine/v1.0.md", ONE)
        .config("prompts/mine/v1.1.md", TWO)
        .config("prompts/mine/tests.yaml", &cases("Version"))
        .config("prompts/mine/release.yaml", "labels: { production: v1.0 }\n")
}

#[test]
fn a_version_is_promoted_once_its_tests_pass_and_taken_back() {
    let server = Server::always(Reply::text("done"));
    let first = place(Run::new().args(["prompt", "promote", "mine", "1.1", "-m", "Says two."])).run().success();
    assert_eq!(first.stdout, "mine: v1.1 is `production` instead of v1.0\n");
    let at = |args: &[&str]| Run::at(&first.place).args(args.iter().copied()).run();
    let system = || {
        Run::at(&first.place).args(["run", "--prompt", "mine", "hi"]).server(&server).run().success();
        server.requests().last().expect("a request").system().to_owned()
    };
    assert_eq!(system(), "Version two, plain.");
    assert_eq!(
        at(&["prompt", "promote", "mine", "v1.1"]).success().stdout,
        "mine: v1.1 is `production` already\n"
    );
    let file = |name: &str| {
        let path = first.place.config().join("prompts/mine").join(name);
        std::fs::read_to_string(path).expect(name)
    };
    assert!(file("changelog.md").contains("v1.1 is `production` instead of v1.0. Says two."));
    assert_eq!(file("release.yaml"), "labels: { production: v1.1 }\nhistory: [v1.0]\n");
    assert!(file("release.lock").starts_with("v1.1: "));
    let back = at(&["prompt", "rollback", "mine"]).success().stdout;
    assert_eq!(back, "mine: v1.0 is `production` again instead of v1.1\n");
    assert_eq!(system(), "Version one, plain.");
    at(&["prompt", "rollback", "mine"]).exits(2).stderr_has("there is nothing to roll back");

    // What was released stays what it was, whatever becomes of its file.
    let changed =
        |args: [&str; 3]| Run::at(&first.place).config("prompts/mine/v1.1.md", "changed").args(args).run();
    let shown = changed(["prompt", "show", "mine@1.1"]).success().stdout_is("Version two, {{ tone }}.\n");
    shown.stderr_has("mine/v1.1.md was edited after mine@v1.1 was released").stderr_has("agent prompt new mine");
    at(&["prompt", "promote", "mine", "1.1"]).success();
    std::fs::remove_file(first.place.config().join("prompts/mine/v1.1.md")).expect("it was there");
    assert_eq!(system(), "Version two, plain.");
    at(&["prompt", "rollback", "mine"]).success();
    assert_eq!(system(), "Version one, plain.");
}

#[test]
fn the_first_release_leaves_no_draft_to_go_back_to() {
    let run = Run::new().args(["prompt", "promote", "mine", "1.0"]);
    let run = run.config("prompts/mine/v1.0.md", ONE).config("prompts/mine/v1.1.md", TWO);
    let first = run.config("prompts/mine/tests.yaml", &cases("Version")).run().success();
    assert_eq!(first.stdout, "mine: v1.0 is `production`\n");
    let back = Run::at(&first.place).args(["prompt", "rollback", "mine"]).run().exits(2);
    back.stderr_has("there is nothing to roll back");
}

#[test]
fn a_changed_module_or_a_broken_release_bricks_nothing() {
    let prompt = "---\ndescription: d\nmodules: [part@1.0, body]\n---\nBody{% include 'two/end.txt' %}\n";
    let run = Run::new().config("prompts/two/v1.0.md", prompt).config("prompts/modules/part/v1.0.md", "Part.\n");
    let run = run.config("prompts/two/end.txt", ".");
    let place = run.args(["prompt", "promote", "two", "1.0", "--force"]).run().success().place;
    let at = |args: &[&str]| Run::at(&place).args(args.iter().copied());
    let show = at(&["prompt", "render", "two"]).config("prompts/modules/part/v1.0.md", "Other.\n").run().success();
    show.stdout_is("Part.\n\nBody.\n").stderr_has("modules/part/v1.0.md was edited after two@v1.0 was released");
    at(&["prompt", "show", "two"])
        .config("prompts/modules/part/v1.0.md", "Part.\n")
        .config("prompts/two/end.txt", "!")
        .run()
        .stderr_has("two/end.txt was edited after two@v1.0 was released");
    at(&["prompt", "promote", "two", "1.0", "--label", "a: b", "--force"])
        .run()
        .exits(2)
        .stderr_has("cannot be a label");

    let dangling = "labels: { production: v1.0, next: v7.0 }\nhistory: [v0.1]\n";
    let list = at(&["prompt", "list"]).config("prompts/two/release.yaml", dangling).run().success();
    list.stdout_has("two").stdout_has("system");
    at(&["prompt", "show", "two@next"]).run().exits(2).stderr_has("agent prompt repair two");
    at(&["prompt", "show", "two"]).run().success();
    let left = place.config().join("prompts/two/.tmpLeft");
    std::fs::write(&left, "half").expect("written");
    let repaired = at(&["prompt", "repair", "two"]).run().success();
    repaired.stdout_has("`next` meant v7.0, which does not exist: the label is gone");
    assert!(!left.exists(), "what a killed process left is gone");
    at(&["prompt", "list"])
        .config("prompts/two/release.yaml", "labels: { a: b: c }\n")
        .run()
        .success()
        .stdout_has("system");
    at(&["prompt", "repair", "two"]).run().success().stdout_has("release.yaml cannot be read");
    at(&["prompt", "repair", "two"]).run().success().stdout_is("two: nothing to repair\n");
    at(&["prompt", "show", "two"]).run().success();
}

#[test]
fn a_copy_that_a_killed_promotion_left_in_part_is_mended() {
    let prompt = "---\ndescription: d\nmodules: [part@1.0, body]\n---\nBody.\n";
    let run = Run::new().config("prompts/two/v1.0.md", prompt).config("prompts/modules/part/v1.0.md", "Part.\n");
    let promote = ["prompt", "promote", "two", "1.0", "--force"];
    let place = run.args(promote).args(["-m", "a\n## v9.9\n- b"]).run().success().place;
    let at = |args: &[&str]| Run::at(&place).args(args.iter().copied()).run();
    let log = std::fs::read_to_string(place.config().join("prompts/two/changelog.md")).expect("a changelog");
    assert!(log.contains(". a ## v9.9 - b\n") && !log.contains("\n## v9.9"), "{log}");
    let released = place.config().join("prompts/two/released");
    let (kept, part) = (released.join("v1.0"), released.join("v1.0/modules/part/v1.0.md"));
    std::fs::write(kept.join("seen"), "").expect("written");
    at(&[&promote[..], &["--label", "next"]].concat()).success();
    assert!(kept.join("seen").exists(), "a copy that runs read is not replaced");

    let copy = |to: &std::path::Path| {
        for file in ["two/v1.0.md", "modules/part/v1.0.md"] {
            std::fs::create_dir_all(to.join(file).parent().expect("a folder")).expect("made");
            std::fs::copy(kept.join(file), to.join(file)).expect("copied");
        }
    };
    for (has_new, counts) in
        [(true, "the one of the last promotion counts"), (false, "the file of the version counts")]
    {
        if has_new {
            copy(&released.join("v1.0.new"));
        }
        std::fs::remove_file(&part).expect("removed");
        let broken = at(&["prompt", "render", "two"]).exits(3);
        broken.stderr_has("module `part` has no version").stderr_has("agent prompt repair two");
        at(&["prompt", "repair", "two"]).success().stdout_has(counts);
        at(&["prompt", "render", "two"]).success().stdout_is("Part.\n\nBody.\n");
        at(&["prompt", "repair", "two"]).success().stdout_is("two: nothing to repair\n");
        assert_eq!(kept.exists(), has_new);
    }
    std::fs::create_dir_all(&kept).expect("made");
    let empty = at(&["prompt", "render", "two"]).exits(3);
    empty.stderr_has("released/v1.0: ").stderr_has("agent prompt repair two");
}

#[test]
fn what_fails_its_tests_or_has_too_few_is_not_released() {
    let promote = ["prompt", "promote", "mine", "1.1"];
    let failing = place(Run::new().args(promote)).config("prompts/mine/tests.yaml", &cases("nine")).run();
    let failing = failing.exits(100);
    failing.stderr_has("the tests of mine@v1.1#").stderr_has("Nothing was released");
    let few_cases = "cases: [ { name: one, render: true, assert: [ { contains: two } ] } ]\n".to_owned();
    let few = place(Run::new().args(promote)).config("prompts/mine/tests.yaml", &few_cases).run().exits(100);
    let few = few.stderr_has("1 of 10");
    let forced = Run::at(&few.place).args(promote).arg("--force").run().success();
    assert!(
        forced.stdout.contains("v1.1 is `production`") && forced.stderr.contains("1 of 10"),
        "{}",
        forced.shown()
    );
    let unknown = Run::at(&few.place).args(["prompt", "promote", "mine", "7.0"]).run().exits(2);
    unknown.stderr_has("versions: v1.0, v1.1");
    Run::at(&few.place).args(["prompt", "promote", "mine", "1.1", "--label", "latest"]).run().exits(2);
}

#[test]
fn a_canary_goes_to_some_sessions_and_each_keeps_its_version() {
    let server = Server::always(Reply::text("done"));
    let first = place(Run::new().args(["prompt", "promote", "mine", "1.1", "--canary", "50"])).run().success();
    assert!(first.stdout.contains("v1.1 is the canary of 50 % of the sessions, beside v1.0"), "{}", first.stdout);
    let run = |args: &[&str]| {
        let output = Run::at(&first.place)
            .args(["run", "--prompt", "mine", "-o", "jsonl", "hi"])
            .args(args.iter().copied());
        let output = output.server(&server).run().success();
        let events = output.events();
        let started = events.of("run.started")[0];
        let version = started["prompts"][0]["version"].as_str().expect("a version").to_owned();
        let text = server.requests().last().expect("a request").system().to_owned();
        assert!(text.contains(if version == "v1.1" { "two" } else { "one" }), "{version}: {text}");
        (started["session_id"].as_str().expect("an id").to_owned(), version)
    };
    let mut versions: Vec<String> = Vec::new();
    for _ in 0..12 {
        let (session, version) = run(&[]);
        assert_eq!(run(&["--session", &session]).1, version, "a session keeps its version");
        versions.push(version);
    }
    versions.sort();
    versions.dedup();
    assert_eq!(versions, ["v1.0", "v1.1"], "of 12 sessions with an even chance each");
    let stats = Run::at(&first.place).args(["stats", "--by", "prompt"]).run().success().stdout;
    let lines: Vec<&str> = stats.lines().filter(|line| line.starts_with("mine@")).collect();
    assert_eq!(lines.len(), 2, "{stats}");
    assert!(lines.iter().all(|line| line.contains("100 %")), "{stats}");
    let data = Run::at(&first.place).args(["stats", "--by", "prompt", "-o", "json"]).run().success().stdout;
    let data: serde_json::Value = serde_json::from_str(&data).expect("JSON");
    let turns: u64 = data.as_array().expect("a list").iter().filter_map(|row| row["turns"].as_u64()).sum();
    assert_eq!((turns, &data[0]["exit_codes"]["0"]), (24, &data[0]["turns"]));
}

#[test]
fn a_new_prompt_renders_passes_its_test_and_is_beyond_doubt() {
    let first = Run::new().args(["prompt", "new", "ours"]).run().success();
    assert!(first.stdout.contains("ours/v1.0.md") && first.stdout.contains("ours/tests.yaml"), "{}", first.stdout);
    let at = |args: &[&str]| Run::at(&first.place).args(args.iter().copied()).run();
    at(&["prompt", "test", "ours"]).success();
    let checked = at(&["prompt", "check", "ours"]).success().stdout;
    assert!(checked.starts_with("ours@v1.0#") && checked.contains(" tokens"), "{checked}");
    let next = at(&["prompt", "new", "ours"]).success().stdout;
    assert!(next.trim_end().ends_with("ours/v1.1.md"), "{next}");
    let same = at(&["prompt", "diff", "ours@1.0", "ours@1.1"]).success().stdout;
    assert!(same.contains("are identical"), "{same}");
    at(&["prompt", "new", "../out"]).exits(2).stderr_has("cannot name a prompt");
}

#[test]
fn a_difference_is_shown_with_its_tokens() {
    let shown = place(Run::new().args(["prompt", "diff", "mine@1.0", "mine@1.1"])).run().success().stdout;
    assert!(shown.starts_with("--- mine@v1.0#") && shown.contains("\n+++ mine@v1.1#"), "{shown}");
    assert!(shown.contains("\n-Version one, {{ tone }}.\n+Version two, {{ tone }}.\n"), "{shown}");
    assert!(shown.contains("total"), "{shown}");
}

#[test]
fn a_half_written_release_is_an_error_with_its_place() {
    let run = place(Run::new().args(["prompt", "show", "mine"]));
    let run = run.config("prompts/mine/release.yaml", "labels: { production: v1.0\ncan").run().exits(3);
    run.stderr_has("prompts/mine/release.yaml:");
}

#[test]
fn doubts_are_told_with_their_lines() {
    let text = "---\nrequired_vars: [request, unused]\nuntrusted: [request]\n---\n{{ request }}\n{{ nobody }}\n";
    let run = Run::new().args(["prompt", "check", "p"]).config("prompts/p/v1.0.md", text).run().exits(3);
    run.stderr_has("p/v1.0.md:2: declares `unused`")
        .stderr_has("p/v1.0.md:5: `request` comes from outside")
        .stderr_has("p/v1.0.md:6: reads `nobody`");
}
