//! `agent review`: findings about a change, for a person, a program and a pipeline.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use serde_json::json;

use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::Server;

/// A repository whose file has an uncommitted change.
fn repository() -> Arc<Place> {
    let place = Place::new();
    fs::write(place.workspace().join("a.rs"), "fn a() {}\n").expect("written");
    let git = "git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -q -m first";
    assert!(Command::new("sh").args(["-c", git]).current_dir(place.workspace()).status().expect("git").success());
    fs::write(place.workspace().join("a.rs"), "fn a() { panic!() }\n").expect("written");
    place
}

fn finds_one() -> Server {
    let low = json!({ "file": "a.rs", "line": 1, "severity": "low", "confidence": 0.5, "title": "Name", "detail": "Short." });
    let high = json!({ "file": "a.rs", "line": 1, "severity": "high", "confidence": 0.95, "title": "It panics", "detail": "Always.\nReturn." });
    let answer = json!({ "findings": [low, high], "verdict": "do not merge: it panics" });
    Server::always(Reply::text(&answer.to_string()))
}

#[test]
fn findings_are_printed_heaviest_first() {
    let (place, server) = (repository(), finds_one());
    let review = |words: &[&str]| Run::at(&place).server(&server).arg("review").args(words.to_vec());
    review(&[]).run().exits(1).stdout_is(
        "a.rs:1: high (95 % sure): It panics\n    Always.\n    Return.\na.rs:1: low (50 % sure): Name\n    Short.\n\
         do not merge: it panics\n",
    );
    let asked = server.only_request();
    assert!(asked.user().contains("+fn a() { panic!() }"), "{}", asked.user());
    let data = review(&["-o", "json", "HEAD"]).run().exits(1).json();
    assert_eq!(data["findings"][0]["title"], "It panics");
    let summary = place.home().join("summary.md");
    let run = review(&["-o", "github"]).env("GITHUB_STEP_SUMMARY", summary.to_string_lossy());
    run.run()
        .exits(1)
        .stdout_has("::error file=a.rs,line=1,title=It panics::Always.%0AReturn.\n::notice file=a.rs");
    assert!(fs::read_to_string(summary).expect("a summary").contains("- **high** `a.rs:1` It panics"));
}

#[test]
fn what_a_rule_denies_is_not_sent() {
    let (place, server) = (repository(), finds_one());
    fs::create_dir(place.workspace().join("secrets")).expect("made");
    fs::write(place.workspace().join("secrets/key"), "the key\n").expect("written");
    let add = Command::new("git").args(["add", "."]).current_dir(place.workspace()).status().expect("git");
    assert!(add.success());
    let run = Run::at(&place).server(&server).arg("review");
    let run = run.config("agent.yaml", "permissions: { rules: [ { deny: '*', path: 'secrets/**' } ] }\n");
    run.run().exits(1).stderr_has("not reviewed, as it is denied: secrets/key");
    let asked = server.only_request();
    let asked = asked.user();
    assert!(asked.contains("panic!()") && !asked.contains("the key"), "{asked}");
}

#[test]
fn what_is_denied_is_left_out_whatever_its_name_and_whatever_git_warns_of() {
    let (place, server) = (repository(), finds_one());
    let make = "echo '* text eol=lf' > .gitattributes; echo x > prod.env; touch $'odd\\xff.env' $'two\\n::error::lines.env'
        git add . ':!a.rs' && git -c user.name=a -c user.email=a@b commit -qm more
        printf 'PASS=first\\r\\n' > prod.env; echo PASS=second > $'odd\\xff.env'; echo PASS=third > $'two\\n::error::lines.env'";
    let status = Command::new("bash").args(["-c", make]).current_dir(place.workspace()).status();
    assert!(status.expect("git").success());
    let rules = "permissions: { rules: [ { deny: read_file, path: '*.env' } ] }\n";
    let output = Run::at(&place).server(&server).arg("review").config("agent.yaml", rules).run().exits(1);
    output.stderr_has("prod.env").stderr_lacks("\n::error::");
    let asked = server.only_request();
    assert!(asked.user().contains("panic!()") && !asked.user().contains("PASS="), "{}", asked.user());
}

#[test]
fn nothing_changed_is_no_finding_and_a_wrong_range_is_told() {
    let (place, server) = (repository(), finds_one());
    let review = |words: &[&str]| Run::at(&place).server(&server).arg("review").args(words.to_vec()).run();
    review(&["HEAD..HEAD"]).success().stdout_is("No findings.\n").stderr_has("Nothing changed");
    review(&["nowhere..HEAD"]).exits(2).stderr_has("there is no diff of `nowhere..HEAD`");
    review(&["--", "--output=x"]).exits(2).stderr_has("is no range");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn without_a_repository_there_is_nothing_to_review() {
    let server = finds_one();
    Run::new().server(&server).arg("review").run().exits(2).reason_has("this is no git repository");
}

#[test]
fn what_a_repository_configures_does_not_run() {
    let (place, server) = (repository(), finds_one());
    let hostile = "git config diff.external 'touch ran' && git config diff.x.textconv 'touch ran' && echo '*.rs diff=x' > .gitattributes";
    let made = Command::new("sh").args(["-c", hostile]).current_dir(place.workspace()).status();
    assert!(made.expect("git").success());
    Run::at(&place).server(&server).arg("review").run().exits(1);
    assert!(!place.exists("ran"));
}

#[test]
fn a_run_tells_a_workflow_how_it_ended() {
    let place = Place::new();
    let server = Server::start([
        Reply::text("All is well.\n::error::forged"),
        Reply::error(400, "no"),
        Reply::error(400, "no"),
    ]);
    let summary = place.home().join("summary.md");
    let run = || {
        let run = Run::at(&place).server(&server).args(["run", "-o", "github", "task"]);
        run.env("GITHUB_STEP_SUMMARY", summary.to_string_lossy()).run()
    };
    let stdout = run().success().stdout;
    let (_, rest) = stdout.split_once("::stop-commands::").expect("what is printed is no command");
    let (token, rest) = rest.split_once('\n').expect("a line");
    assert_eq!(rest, format!("All is well.\n::error::forged\n::{token}::\n"));
    assert_eq!(fs::read_to_string(&summary).expect("a summary"), "All is well.\n::error::forged\n");
    let stdout = run().exits(5).stdout;
    let unwritable = Run::at(&place).server(&server).args(["run", "-o", "github", "task"]);
    let output = unwritable.env("GITHUB_STEP_SUMMARY", "/nowhere/summary").run().exits(5);
    output.stdout_has("::error title=agent::").stderr_has("/nowhere/summary");
    let (_, told) = stdout.split_once("::\n::error title=agent::").expect("an annotation that is obeyed");
    assert!(told.contains("no"), "{stdout}");
}

#[test]
fn a_directory_of_the_repository_is_reviewed_with_all_of_it_and_what_is_too_large_is_told() {
    let (place, server) = (repository(), finds_one());
    fs::create_dir(place.workspace().join("sub")).expect("made");
    Run::at(&place).server(&server).args(["-C", "sub", "review"]).run().exits(1);
    assert!(server.only_request().user().contains("+fn a() { panic!() }"));
    fs::write(place.workspace().join("a.rs"), "fn b() {}\n".repeat(200_000)).expect("written");
    Run::at(&place).server(&server).arg("review").run().exits(2).stderr_has("review a smaller range");
}
