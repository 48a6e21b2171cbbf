//! Sessions that are over: found by their words, written in other forms, deleted.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::Server;

/// A place with two sessions: in the first a file was read.
fn place() -> Arc<Place> {
    let place = Place::new();
    let read = Reply::call("read_file", &json!({"path": "notes.txt"}));
    let server =
        Server::start([read, Reply::text("The notes speak of 重试 and of <b>retries</b>."), Reply::text("Four.")]);
    Run::at(&place)
        .file("notes.txt", "Retry with back-off, always.\n")
        .args(["run", "What do the notes say?"])
        .server(&server)
        .run()
        .success();
    Run::at(&place).args(["run", "Two and two?"]).server(&server).run().success();
    place
}

fn session(place: &Arc<Place>, words: &[&str]) -> Output {
    Run::at(place).arg("session").args(words.to_vec()).run()
}

fn ids(place: &Arc<Place>) -> Vec<String> {
    let listed = session(place, &["list", "-o", "json"]).success().json();
    listed.as_array().expect("a list").iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn words_are_found_whoever_said_them() {
    let place = place();
    session(&place, &["search", "BACK-OFF"]).stdout_has("What do the notes say?").stdout_has("tool: ");
    session(&place, &["search", "重试"]).stdout_has("assistant: The notes speak of 重试");
    session(&place, &["search", "two and", "--by", "user"]).stdout_has("user: Two and two?");
    session(&place, &["search", "two and", "--by", "tool"]).success().stdout_is("").stderr_has("No session");
    let found = session(&place, &["search", "<b>", "-o", "json"]).success().json();
    assert_eq!((&found[0]["hits"], &found[0]["lines"][0]["by"]), (&json!(1), &json!("assistant")));
    session(&place, &["search", " "]).exits(2).stderr_has("no words");
}

#[test]
fn the_request_of_each_step_is_shown_as_it_was_sent() {
    let place = Place::new();
    let read = || Reply::call("read_file", &json!({"path": "notes.txt"}));
    let server = Server::start([read(), Reply::text("Retry."), read(), Reply::text("I had to stop.")]);
    let run = |words: &[&str]| {
        Run::at(&place).file("notes.txt", "Retry, 总是.\n").arg("run").args(words.to_vec()).server(&server).run()
    };
    run(&["What do the notes say?"]).success();
    run(&["--continue", "--max-turns", "1", "Read them again."]).exits(8);
    let id = ids(&place).remove(0);
    let show =
        |step: &str| Run::at(&place).args(["session", "show", &id, "--as-request", step]).server(&server).run();
    let sent: Vec<String> = server.requests().iter().map(|request| format!("{}\n", request.raw)).collect();
    assert_eq!(sent.len(), 4);
    for (number, request) in sent.iter().enumerate() {
        show(&(number + 1).to_string()).success().stdout_is(request);
    }
    show("5").exits(2).stderr_has("has 4 steps");
    show("0").exits(2).stderr_has("0 is not in 1..");
    let server = Server::start([]);
    let moved = Run::at(&place).args(["session", "show", &id, "--as-request", "2"]).server(&server);
    let fewer = moved.config("agents/default.yaml", "tools: [read_file]\n");
    fewer.run().success().stderr_has("tools changed since");
}

#[test]
fn a_session_is_written_in_every_form() {
    let place = place();
    let first = ids(&place).remove(1);
    let export = |form: &str| session(&place, &["export", &first, "--to", form]).success().stdout;
    let markdown = session(&place, &["export", &first]).success().stdout;
    assert!(
        markdown.starts_with("# What do the notes say?\n") && markdown.contains("**read_file**"),
        "{markdown}"
    );
    let html = export("html");
    assert!(html.contains("of &lt;b&gt;retries") && !html.contains("<script"), "{html}");
    let messages: Value = serde_json::from_str(&export("openai")).expect("a line of JSON");
    let roles = messages["messages"].as_array().expect("a list").iter().map(|message| message["role"].clone());
    assert_eq!(roles.collect::<Vec<_>>(), ["system", "user", "assistant", "tool", "assistant"]);
    let trajectory: Value = serde_json::from_str(&export("atif")).expect("JSON");
    assert_eq!(trajectory["schema_version"], "ATIF-v1.8");
    assert_eq!(trajectory["steps"].as_array().map(Vec::len), Some(4));
    let document: Value = serde_json::from_str(&export("json")).expect("JSON");
    assert_eq!(document["messages"][1]["calls"][0]["name"], "read_file");
    // Without an id it is the latest.
    session(&place, &["export"]).stdout_has("# Two and two?");
}

#[test]
fn a_session_is_deleted_with_what_lies_beside_it() {
    let place = place();
    let all = ids(&place);
    session(&place, &["delete", "nonsense"]).exits(2).stderr_has("there is no session `nonsense`");
    let dir = place.home().join(".local/share/agent/sessions");
    let dir = fs::read_dir(dir).expect("sessions").next().expect("a workspace").expect("an entry").path();
    let beside = dir.join(format!("{}.spill", all[0]));
    fs::create_dir(&beside).expect("made");
    fs::write(beside.join("s1"), "long").expect("written");
    session(&place, &["delete", &all[0]]).success().stderr_has(&all[0]);
    assert!(!beside.exists());
    assert_eq!(ids(&place), all[1..]);
    session(&place, &["prune", "--older-than", "90d"]).success().stderr_has("0 sessions deleted");
    session(&place, &["prune", "--older-than", "0s", "--dry-run"]).success().stdout_has(&all[1]);
    let aside = place.home().join(".local/state/agent/undone/x/hooks");
    fs::create_dir_all(&aside).expect("created");
    session(&place, &["prune", "--older-than", "0s"]).success().stderr_has("1 session deleted");
    session(&place, &["prune", "--older-than", "1d", "--all"]).success();
    assert!(aside.exists());
    session(&place, &["prune", "--older-than", "0s", "--all"]).success();
    assert!(!aside.exists());
    assert_eq!(ids(&place), [] as [&str; 0]);
}

#[test]
fn a_task_needs_no_command() {
    let server = Server::always(Reply::text("done"));
    let place = Place::new();
    let run = |words: &[&str]| Run::at(&place).args(words.to_vec()).server(&server).run();
    run(&["fix the bug"]).stdout_is("done\n");
    run(&["-p", "fix"]).stdout_is("done\n");
    run(&["fxi"]).exits(2).stderr_has("unrecognized subcommand 'fxi'");
    run(&["-c"]).exits(2).stderr_has("agent --continue");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_session_has_the_title_that_a_person_gives_and_is_found_by_it() {
    let place = place();
    let first = ids(&place).remove(1);
    session(&place, &["rename", &first, "Retry notes"]).success();
    session(&place, &["list"]).stdout_has("Retry notes").stdout_has("Two and two?");
    session(&place, &["show", "retry notes"]).success().stdout_has("What do the notes say?");
    let server = Server::always(Reply::text("Again."));
    Run::at(&place).args(["run", "--session", "Retry notes", "More?"]).server(&server).run().success();
    // Later turns keep it.
    session(&place, &["list", "--size"]).stdout_has("Retry notes").stdout_has(" KiB");
    session(&place, &["prune", "--older-than", "0d", "--keep-named"]).success();
    let left = session(&place, &["list", "-o", "json"]).success().json();
    assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
    assert_eq!((&left[0]["title"], &left[0]["named"]), (&json!("Retry notes"), &json!(true)));
    session(&place, &["rename", "Retry notes", ""]).success();
    session(&place, &["list"]).stdout_has("What do the notes say?");
}

#[test]
fn a_fork_goes_on_by_itself_from_before_a_message() {
    let place = Place::new();
    let server = Server::answering(|request, _| Reply::text(&format!("You said {}.", request.user())));
    for task in ["one", "two", "three"] {
        let words: &[&str] = if task == "one" { &[] } else { &["--continue"] };
        Run::at(&place).args(["run", task]).args(words.to_vec()).server(&server).run().success();
    }
    let first = ids(&place).remove(0);
    let shown = session(&place, &["show", &first]).success().stdout;
    let heads: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("## You (")).collect();
    let message = heads[2].trim_end_matches(')');
    let forked = session(&place, &["fork", &first, "--at", message]).success().stdout;
    let forked = forked.trim();
    Run::at(&place).args(["run", "--session", forked, "four"]).server(&server).run().success();
    let asked = server.requests().last().expect("a request").clone();
    let said: Vec<&str> = asked
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert_eq!(said, ["one", "two", "four"]);
    session(&place, &["show", &first]).stdout_has("three");
    session(&place, &["fork", &first, "--at", "m999"]).exits(2).stderr_has("m999 is no message of yours");
    // A run forks as well.
    Run::at(&place).args(["run", "--fork", &first, "five"]).server(&server).run().success();
    assert_eq!(ids(&place).len(), 3);
}

#[test]
fn a_checkpoint_names_a_place_for_undos_and_forks() {
    let place = Place::new();
    let server = Server::answering(|request, _| Reply::text(&format!("You said {}.", request.user())));
    let typed = [
        "one", "/checkpoint start", "two", "three", "/checkpoint", "/export talk.md", "/undo start",
        "/checkpoint 7",
    ];
    let chat = Run::at(&place).server(&server).arg("chat").stdin(typed.join("\n") + "\n").run().success();
    chat.stderr_has("/undo start comes back here").stderr_has("Taken back: two").stderr_has("is named by letters");
    assert!(place.read("talk.md").contains("You said three."));
    let id = ids(&place).remove(0);
    session(&place, &["redo", &id]).success();
    let forked = session(&place, &["fork", &id, "--at", "start"]).success().stdout;
    let shown = session(&place, &["show", forked.trim()]).success().stdout;
    assert!(shown.contains("You said one.") && !shown.contains("two"), "{shown}");
    session(&place, &["undo", &id, "--to", "start"]).success().stdout_is("two\n");
    session(&place, &["undo", &id, "--to", "start"]).exits(1);
}

#[test]
fn what_is_older_than_the_settings_keep_is_deleted_once_a_day() {
    let server = Server::always(Reply::text("Fine."));
    let place = Place::new();
    let run = |task: &str| Run::at(&place).server(&server).args(["run", task]).run().success();
    run("one");
    run("two");
    assert_eq!(place.session_logs().len(), 2);
    // Without the setting nothing goes.
    run("three");
    assert_eq!(place.session_logs().len(), 3);
    // The run that looks is the newest itself, and is in use.
    let keep = |age: &str| format!("session:\n  retention: {age}\n");
    Run::at(&place).config("agent.yaml", &keep("90d")).server(&server).args(["run", "four"]).run().success();
    assert_eq!(place.session_logs().len(), 4, "none is so old");
    Run::at(&place).config("agent.yaml", &keep("0s")).server(&server).args(["run", "five"]).run().success();
    assert_eq!(place.session_logs().len(), 5, "it was looked at today already");
    fs::remove_file(place.home().join(".local/state/agent/retention")).expect("the day is kept");
    run("six");
    assert_eq!(place.session_logs().len(), 1, "the one that is in use");
    Run::at(&place)
        .args(["--set", "session.retention=soon", "config", "check"])
        .run()
        .exits(3)
        .stderr_has("or 90d");
}

#[test]
fn pruning_leaves_what_is_in_use_and_names_what_goes() {
    let place = place();
    let all = ids(&place);
    let log =
        place.session_logs().into_iter().find(|log| log.to_string_lossy().contains(&*all[0])).expect("a log");
    let held = fs::File::open(log).expect("it is there");
    held.lock().expect("free");
    for words in [&["prune", "--older-than", "0s", "--dry-run"][..], &["prune", "--older-than", "0s"]] {
        let told = session(&place, words).success();
        assert!(!told.stdout.contains(&*all[0]), "{}", told.stdout);
        told.stdout_has(&all[1]).stderr_has("1 session").stderr_has(&format!("In use, and so kept: {}", all[0]));
    }
    assert_eq!(ids(&place), all[..1]);
}
