//! Skills: their places, what the model reads of them and when, and their commands for people.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::repl::start;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::{Request, Server, assert_answered_once, assert_append_only};

/// A `SKILL.md` with this body.
pub fn skill(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: How to {name}.\n---\n{body}\n")
}

/// A file below a directory.
pub fn write(dir: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().expect("it has one")).expect("made");
    fs::write(path, text).expect("written");
}

pub fn load(name: &str) -> Reply {
    Reply::call("load_skill", &json!({ "name": name }))
}

/// The names of the skills that are found in a place, but for those that are built in.
fn names(place: &std::sync::Arc<Place>, args: &[&str]) -> Vec<String> {
    let list = ["skill", "list", "-o", "json"];
    let found = Run::at(place).args(list).args(args.iter().copied()).run().success().json();
    let others = found.as_array().expect("a list").iter().filter(|skill| skill["scope"] != "built in");
    others.map(|skill| skill["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn they_are_found_where_everybody_keeps_them_and_the_nearer_wins() {
    let place = Place::new();
    let (home, root) = (place.home(), place.workspace());
    fs::create_dir(root.join(".git")).expect("made");
    for (dir, path) in [
        (&home, ".claude/skills/a"),
        (&home, ".agents/skills/a"),
        (&home, ".agents/skills/b"),
        (&home, ".config/agent/skills/c"),
        (&root, ".claude/skills/d"),
        (&root, ".agents/skills/b"),
        (&root, "sub/.agent/skills/b"),
        (&root, "sub/.agents/skills/e"),
    ] {
        let name = path.rsplit('/').next().expect("a name");
        write(dir, &format!("{path}/SKILL.md"), skill(name, path));
    }
    write(&home, "own/f/SKILL.md", skill("f", "f"));
    write(&home, ".config/agent/agent.yaml", "skills: { dirs: [~/own] }\n");
    assert_eq!(names(&place, &["-C", "sub"]), ["a", "b", "c", "f"], "an untrusted workspace brings nothing");
    assert_eq!(names(&place, &["-C", "sub", "--trust"]), ["a", "b", "c", "d", "e", "f"]);

    let list =
        Run::at(&place).args(["skill", "list", "-o", "json", "-C", "sub", "--trust"]).run().success().json();
    let found = |name: &str| list.as_array().expect("a list").iter().find(|s| s["name"] == name).expect("it");
    let b = found("b");
    assert!(b["path"].as_str().expect("a path").ends_with("sub/.agent/skills/b/SKILL.md"), "{b}");
    let hidden: Vec<&str> =
        b["hides"].as_array().expect("a list").iter().filter_map(|path| path.as_str()).collect();
    assert!(hidden[0].ends_with("workspace/.agents/skills/b/SKILL.md"), "nearest first: {hidden:?}");
    assert!(hidden[1].ends_with("home/.agents/skills/b/SKILL.md"), "{hidden:?}");
    assert!(found("a")["path"].as_str().is_some_and(|path| path.contains("/.agents/")), "{list}");
    assert_eq!(
        (&b["scope"], &found("a")["scope"], &found("f")["scope"]),
        (&json!("project"), &json!("user"), &json!("configured"))
    );

    write(&home, "conf/agent.yaml", "default_agent: default\n");
    write(&home, "conf/skills/g/SKILL.md", skill("g", "g"));
    write(&home, "skills/h/SKILL.md", skill("h", "h"));
    let conf = home.join("conf").display().to_string();
    assert_eq!(names(&place, &["-C", "sub", "--trust", "--config", &conf]), ["g", "h"]);
}

#[test]
fn an_untrusted_workspace_says_that_its_skills_are_left_out() {
    let server = Server::start([Reply::text("ok")]);
    let run = Run::task(&server, "task").file(".claude/skills/x/SKILL.md", skill("x", "x"));
    run.run().success().stderr_has(".claude/skills is not trusted and was left out (--trust uses it)");
    assert!(!server.only_request().raw.contains("How to x."));
}

#[test]
fn what_git_ignores_and_what_leads_out_is_not_searched() {
    let place = Place::new();
    let root = place.workspace();
    fs::create_dir(root.join(".git")).expect("made");
    write(&root, ".gitignore", ".agents/skills/built/\n");
    write(&root, ".agents/skills/.gitignore", "made-*\n!made-by-hand\n");
    for path in
        ["good", "built/x", "made-up", "made-by-hand", "node_modules/y", ".git/z", "a/b/c/deep", "a/b/c/d/e"]
    {
        let name = path.rsplit('/').next().expect("a name");
        write(&root, &format!(".agents/skills/{path}/SKILL.md"), skill(name, "x"));
    }
    write(&place.home(), "elsewhere/out/SKILL.md", skill("out", "x"));
    let link = |target: &str, path: &str| std::os::unix::fs::symlink(target, root.join(path)).expect("a link");
    link("../../../home/elsewhere/out", ".agents/skills/out");
    link("good", ".agents/skills/same");
    link(".", ".agents/skills/loop");
    fs::create_dir(root.join(".claude")).expect("made");
    link("../../home/elsewhere", ".claude/skills");
    assert_eq!(names(&place, &["--trust"]), ["deep", "good", "made-by-hand"]);
    let listed = Run::at(&place).args(["skill", "list", "--trust"]).run().success();
    listed
        .stderr_has("skills/out is left out: it is a link out of")
        .stderr_has(".claude/skills is a link out of the project and is not used");
}

#[test]
fn a_loaded_skill_is_a_result_and_loading_it_again_costs_a_line() {
    let server = Server::start([load("brew"), load("brew"), Reply::text("done")]);
    let first =
        Run::task(&server, "coffee?").config("skills/brew/SKILL.md", &skill("brew", "Grind.")).run().success();
    let requests = server.requests();
    assert_append_only(&requests);
    assert!(requests[0].system().contains("- [○] brew: How to brew.\n"), "{}", requests[0].system());
    assert!(requests[1].last_result().contains("<skill name=\"brew\">\nGrind.\n</skill>\nSkill directory: "));
    let again = requests[2].last_result();
    assert!(again.contains("`brew` is already loaded") && !again.contains("Grind"), "{again}");

    let server = Server::start([load("brew"), Reply::text("done")]);
    Run::at(&first.place).args(["run", "more", "--continue"]).server(&server).run().success();
    assert!(server.requests()[1].last_result().contains("already loaded"), "a session that goes on knows it");
}

#[test]
fn the_system_prompt_shows_loaded_skills_where_that_is_wanted() {
    let read = json!({"name": "brew", "path": "beans.md"});
    let server = Server::start([load("brew"), Reply::call("load_skill_reference", &read), Reply::text("done")]);
    let first = Run::task(&server, "coffee?")
        .config("skills/brew/SKILL.md", &skill("brew", "Grind {{ beans }}."))
        .config("skills/brew/beans.md", "Arabica.\n")
        .config("agents/default.yaml", "skill_disclosure: system\n")
        .run()
        .success();
    let requests = server.requests();
    assert!(!requests[0].system().contains("Loaded Skill Instructions"));
    let shows = |request: &Request, texts: &[&str]| {
        let section =
            request.system().split_once("# Loaded Skill Instructions\n").expect("the section").1.to_owned();
        assert!(texts.iter().all(|text| section.contains(text)), "{section}");
        assert!(request.system().contains("- [✓] brew: How to brew.\n"), "{}", request.system());
    };
    shows(&requests[1], &["<skill name=\"brew\">\nGrind {{ beans }}.\n</skill>", "Skill directory: "]);
    assert!(!requests[1].system().contains("Arabica"));
    shows(&requests[2], &["Grind {{ beans }}.", "<skill_reference skill=\"brew\" file=\"beans.md\">\nArabica.\n"]);
    for request in &requests[1..] {
        let result = request.last_output();
        assert!(result.lines().count() == 1 && result.contains("in the system prompt"), "{result}");
        assert_answered_once(request);
    }
    let server = Server::start([Reply::text("done")]);
    Run::at(&first.place).args(["run", "more", "--continue"]).server(&server).run().success();
    shows(&server.only_request(), &["Grind {{ beans }}.", "Arabica."]);
    assert_eq!(server.only_request().system(), requests[2].system(), "opened again, nothing has changed");
}

#[test]
fn loading_into_the_system_prompt_is_no_reason_to_warn_of_the_cache() {
    let server = Server::start([load("brew"), Reply::text("done")]);
    let output = Run::task(&server, "coffee?")
        .args(["-o", "jsonl"])
        .config("skills/brew/SKILL.md", &skill("brew", "Grind the beans."))
        .config("agents/default.yaml", "skill_disclosure: system\n")
        .run()
        .success();
    assert!(server.requests()[1].system().contains("Grind the beans."));
    assert_eq!(output.events().of("warning").len(), 0, "{}", output.shown());
}

#[test]
fn a_thousand_skills_fit_into_their_share_and_the_rest_can_be_found() {
    let find = "brewing espresso";
    let server = Server::start([load(find), load("skill-0999"), Reply::text("done")]);
    let run = Run::task(&server, "task");
    for n in 0..1000 {
        let about =
            if n == 990 { "Brewing espresso at home." } else { "Does one of a thousand things, and well." };
        let text =
            format!("---\nname: skill-{n:04}\ndescription: {about} {}\n---\nBody {n}.\n", "More. ".repeat(20));
        write(&run.place().config(), &format!("skills/skill-{n:04}/SKILL.md"), text);
    }
    run.run().success();
    let requests = server.requests();
    let system = requests[0].system();
    let listed = system.lines().filter(|line| line.starts_with("- [○] skill-")).map(str::len).sum::<usize>();
    assert!(listed > 5_000 && listed <= 128_000 * 2 / 100 * 4, "{listed} bytes");
    assert!(system.contains(" more are not listed: `load_skill` takes their names"), "{system}");
    let found = requests[1].last_result();
    assert!(
        found.contains("there is no skill `brewing espresso`") && found.contains("- skill-0990: Brewing"),
        "{found}"
    );
    assert!(requests[2].last_result().contains("Body 999."), "what is not listed is loaded by its name");
}

#[test]
fn without_skills_there_is_no_word_of_them() {
    let server = Server::start([Reply::text("ok")]);
    Run::task(&server, "task").config("agents/default.yaml", "skills: [\"!*\"]\n").run().success();
    let request = server.only_request();
    assert!(!request.tool_names().iter().any(|name| name.contains("skill")), "{:?}", request.tool_names());
    assert!(!request.system().contains("# Skills"), "{}", request.system());
}

#[test]
fn a_hidden_skill_is_for_people() {
    let hidden =
        "---\nname: deploy\ndescription: How to deploy.\ndisable-model-invocation: true\n---\nPush the tag.\n";
    let server = Server::start([load("deploy"), Reply::text("ok")]);
    let first = Run::task(&server, "task").config("skills/deploy/SKILL.md", hidden).run().success();
    let requests = server.requests();
    assert!(!requests[0].raw.contains("How to deploy."), "it is not shown");
    assert!(!requests[1].raw.contains("Push the tag."), "nor loaded");

    let server = Server::start([Reply::text("ok")]);
    let by_hand = ["run", "release it", "--skill", "deploy", "-o", "jsonl"];
    let output = Run::at(&first.place).args(by_hand).server(&server).run().success();
    let said = server.only_request().user().to_owned();
    assert!(said.starts_with("release it\n\n<skill name=\"deploy\">\nPush the tag.\n"), "{said}");
    assert_eq!(output.events().one("skill.loaded")["name"], "deploy");
    let server = Server::start([Reply::text("ok")]);
    Run::at(&first.place)
        .args(["run", "again", "--continue", "--skill", "deploy"])
        .server(&server)
        .run()
        .success();
    assert_eq!(server.only_request().user(), "again", "its instructions are there already");
}

#[test]
fn a_skill_that_does_not_exist_is_wrong_usage() {
    let server = Server::start([]);
    for command in [&["run", "task", "--skill", "workspace-tuor"][..], &["skill", "show", "workspace-tuor"]] {
        let output = Run::new().args(command.iter().copied()).server(&server).run().exits(2);
        output.reason_has("there is no skill `workspace-tuor`; did you mean workspace-tour?");
    }
}

#[test]
fn a_person_loads_one_in_a_chat() {
    let server = Server::always(Reply::text("Noted."));
    let run = Run::new()
        .server(&server)
        .config("skills/brew/SKILL.md", &skill("brew", "Grind."))
        .config("skills/bake/SKILL.md", &skill("bake", "Knead."));
    let mut terminal = start(&run);
    terminal.line("/skill nope");
    terminal.wait_for("there is no skill `nope`");
    terminal.keys("/skill bre\t");
    terminal.wait_for("/skill brew");
    terminal.line(" a cup");
    terminal.wait_for("Noted.");
    terminal.line("/skill bake");
    terminal.wait_for("bake goes with your next message.");
    terminal.line("a loaf");
    terminal.wait_until("the second answer", |_| server.requests().len() == 2);
    let said: Vec<String> = server.requests().iter().map(|request| request.user().to_owned()).collect();
    assert!(said[0].starts_with("a cup\n\n<skill name=\"brew\">\nGrind."), "{}", said[0]);
    assert!(said[1].starts_with("a loaf\n\n<skill name=\"bake\">\nKnead."), "{}", said[1]);
    terminal.line("/skills");
    terminal.wait_for("[✓]  brew ");
    terminal.wait_for("[○]  workspace-tour");
}

#[test]
fn a_person_unloads_one_and_it_loads_again() {
    let server = Server::start([
        load("bake"),
        Reply::text("First."),
        Reply::text("Second."),
        load("bake"),
        Reply::text("Third."),
    ]);
    let run = Run::new()
        .server(&server)
        .config("skills/brew/SKILL.md", &skill("brew", "Grind."))
        .config("skills/bake/SKILL.md", &skill("bake", "Knead."));
    let mut terminal = start(&run);
    terminal.line("/unload bake");
    terminal.wait_for("error: bake is not loaded; /skills shows the loaded ones");
    terminal.line("/skill brew a cup");
    terminal.wait_for("First.");
    for name in ["bake", "brew"] {
        terminal.line(&format!("/unload {name}"));
        terminal.wait_for(&format!("{name} is no longer part of what is sent."));
    }
    terminal.line("more");
    terminal.wait_for("Second.");
    terminal.line("again");
    terminal.wait_for("Third.");
    let requests = server.requests();
    assert!(requests[1].raw.contains("Grind.") && requests[1].raw.contains("Knead."));
    assert!(!requests[2].raw.contains("Grind.") && !requests[2].raw.contains("Knead."), "{}", requests[2].raw);
    let stub = "[The skill `brew` was unloaded; load_skill loads it again.]";
    assert_eq!(requests[2].messages()[1]["content"], format!("a cup\n\n{stub}"));
    assert!(requests[2].last_result().contains("The skill `bake` was unloaded; load_skill loads it again."));
    assert_answered_once(&requests[2]);
    assert!(requests[4].last_result().contains("\nKnead.\n"), "{}", requests[4].last_result());
}

#[test]
fn a_skill_asks_for_tools_and_gets_no_more_than_the_rules_allow() {
    let head = "name: brew\ndescription: d\nallowed-tools: Bash(touch:*) Write\n";
    let server = Server::start([
        load("brew"),
        Reply::call("run_command", &json!({"command": "touch made"})),
        Reply::text("done"),
    ]);
    let run = Run::task(&server, "task").config("skills/brew/SKILL.md", &format!("---\n{head}---\nTouch.\n"));
    let output = run.run().exits(7);
    assert!(!output.place.exists("made"));
    assert!(server.requests()[2].last_result().contains("status: denied"));
    Run::at(&output.place)
        .args(["skill", "show", "brew"])
        .run()
        .success()
        .stdout_has("- {\"allow\":\"run_command\",\"command\":[\"touch\",\"*\"]}");
}

#[test]
fn scripts_of_a_skill_run_like_any_command() {
    let script = "#!/bin/sh\necho \"ground by $(basename \"$0\")\"\n";
    let run = Run::new().file(".git/HEAD", "");
    let dir = run.place().home().join(".claude/skills/brew");
    write(&dir, "SKILL.md", skill("brew", "Run scripts/grind.sh."));
    write(&dir, "scripts/grind.sh", script);
    let path = dir.join("scripts/grind.sh");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    let call = || Reply::call("run_command", &json!({"command": path.display().to_string()}));
    let server = Server::start([load("brew"), call(), Reply::text("done")]);
    let denied = run.args(["run", "task"]).server(&server).run().exits(7);
    assert!(server.requests()[2].last_result().contains("nobody is there to allow it"));
    let server = Server::start([call(), Reply::text("done")]);
    Run::at(&denied.place).args(["run", "task", "--approve", "all"]).server(&server).run().success();
    assert!(
        server.requests()[1].last_result().contains("ground by grind.sh"),
        "{}",
        server.requests()[1].last_result()
    );
}
