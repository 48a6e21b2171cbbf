//! The system prompt that a model really gets.

use serde_json::json;

use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Server, between_tags};

/// The system prompt of one run.
fn system(run: impl FnOnce(Run) -> Run) -> String {
    let server = Server::start([Reply::text("ok")]);
    run(Run::task(&server, "task")).run().success();
    server.only_request().system().to_owned()
}

#[test]
fn it_names_the_workspace_and_holds_no_template() {
    let text = system(|run| run);
    assert!(text.contains("workspace"), "{text}");
    for mark in ["{{", "}}", "{%", "%}"] {
        assert!(!text.contains(mark), "{mark} in {text}");
    }
}

#[test]
fn it_is_the_same_for_two_runs_in_one_place() {
    let server = Server::always(Reply::text("ok"));
    let first = Run::task(&server, "task").run().success();
    Run::at(&first.place).args(["run", "another"]).server(&server).run().success();
    let requests = server.requests();
    assert_eq!(requests[0].system(), requests[1].system(), "no clock and no counter in the prefix");
    assert_eq!(requests[0].body["tools"], requests[1].body["tools"]);
}

#[test]
fn instructions_of_the_workspace_are_part_of_it_from_the_git_root_down() {
    let text = system(|run| {
        run.file(".git/HEAD", "ref: refs/heads/main\n")
            .file("AGENTS.md", "Rule of the root. {{ env.HOME }}")
            .file("sub/AGENTS.md", "Rule of the part.")
            .args(["-C", "sub"])
    });
    let (root, part) = (text.find("Rule of the root."), text.find("Rule of the part."));
    assert!(root.is_some() && part.is_some() && root < part, "{text}");
    assert!(text.contains("{{ env.HOME }}"), "what comes from a file is never rendered: {text}");
    let text = system(|run| run.file("CLAUDE.md", "Rule of another file."));
    assert!(text.contains("Rule of another file."), "{text}");
    let text = system(|run| run.file("CLAUDE.md", "Not read.").file("AGENTS.md", "Read."));
    assert!(!text.contains("Not read."), "{text}");
}

#[test]
fn long_instructions_share_the_room_and_the_nearest_is_never_dropped() {
    let text = system(|run| {
        run.file(".git/HEAD", "ref: refs/heads/main\n")
            .file("AGENTS.md", "root rule ".repeat(10_000))
            .file("sub/AGENTS.md", format!("nearest rule {}", "x".repeat(10_000)))
            .args(["-C", "sub"])
    });
    assert!(text.contains("nearest rule") && text.contains("root rule"), "{}", &text[..400]);
    assert!(text.len() < 48 * 1024, "{} bytes", text.len());
}

#[test]
fn an_agent_may_bring_its_own_prompt_with_variables() {
    let text = system(|run| {
        run.config("agents/default.yaml", "system_prompt: \"You are {{ name }}. {{ vars.tone }}\"\n")
            .args(["--var", "tone=Be {{ kind }}."])
    });
    assert!(text.starts_with("You are default. Be {{ kind }}."), "{text}");
}

#[test]
fn it_knows_the_profile_and_who_reads_the_answer() {
    let prompt =
        json!({"system_prompt": "{{ profile }} {{ agent.profile }} {{ session.person }} {{ session.output }}"});
    let said = |args: &[&str]| {
        system(|run| run.config("agents/default.yaml", &prompt.to_string()).args(args.iter().copied()))
    };
    let by_model = said(&["-m", "qwen2.5-coder:7b"]);
    assert_eq!(by_model, "guided guided absent pipe");
    let small = ["--set", "models.default.model=qwen2.5-coder:7b", "--set", "models.default.context_window=4096"];
    assert_eq!(said(&small), "concise concise absent pipe");
    assert_eq!(said(&["-m", "gpt-6-sol", "-o", "json"]), "concise concise absent json");
    assert_eq!(said(&["-m", "gpt-6-sol", "--set", "agents.default.profile=guided"]), "guided guided absent pipe");
}

#[test]
fn it_names_the_shell_that_commands_run_in() {
    let told = system(|run| run.env("SHELL", "/usr/bin/fish"));
    let server =
        Server::start([Reply::call("run_command", &json!({"command": "echo \"${0##*/}\""})), Reply::text("ok")]);
    Run::task(&server, "task").args(["--approve", "all"]).run().success();
    let requests = server.requests();
    let shell = between_tags(requests[1].last_result()).lines().last().unwrap_or_default().to_owned();
    assert!(!shell.is_empty() && told.contains(&shell), "{shell}: {told}");
    assert!(requests[0].body["tools"].to_string().contains(&format!("with {shell} -c.")));
    assert!(!told.contains("fish"), "{told}");
}

#[test]
fn a_prompt_of_the_user_is_found_by_name_and_version() {
    let prompt = |version: &str| format!("---\ndescription: Mine.\n---\nThis is {version}.\n");
    let with = |reference: &'static str| {
        system(move |run| {
            run.config("prompts/mine/v1.0.md", &prompt("one"))
                .config("prompts/mine/v2.0.md", &prompt("two"))
                .config("prompts/mine/release.yaml", "labels: { production: v1.0 }\n")
                .args(["--prompt", reference])
        })
    };
    assert!(with("mine@v2.0").contains("This is two."));
    assert!(with("mine@production").contains("This is one."));
}

#[test]
fn missing_variables_are_all_named_before_anything_is_sent() {
    let server = Server::start([]);
    let output = Run::task(&server, "task")
        .config(
            "prompts/mine/v1.0.md",
            "---\ndescription: Mine.\nrequired_vars: [vars.tone, vars.place]\n---\n{{ vars.tone }} in {{ vars.place }}\n",
        )
        .args(["--prompt", "mine@1.0"])
        .run()
        .fails();
    assert!(output.stderr.contains("tone") && output.stderr.contains("place"), "{}", output.shown());
    assert!(server.requests().is_empty());
}

#[test]
fn neither_the_head_nor_an_error_hides_a_missing_variable() {
    let server = Server::start([]);
    let output = Run::task(&server, "task")
        .config(
            "prompts/mine/v1.0.md",
            "---\ndescription: Mine.\nrequired_vars: [vars.tone]\n---\n{{ vars.tone }} {{ vars.place + 1 }} {{ nobody }}\n\
             {% for tool in tools %}{{ tool.colour }}{{ tool.size }}{% endfor %}\n",
        )
        .args(["--prompt", "mine@1.0"])
        .run()
        .exits(3);
    for name in ["`vars.tone`", "`vars.place`", "`nobody`", "`tool.colour`", "`tool.size`"] {
        assert!(output.stderr.contains(name), "{name} is missing\n{}", output.shown());
    }
}

#[test]
fn a_prompt_that_runs_for_ever_is_stopped() {
    let server = Server::start([]);
    Run::task(&server, "task")
        .config(
            "agents/default.yaml",
            "system_prompt: \"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}\"\n",
        )
        .run()
        .fails()
        .stdout_is("");
    assert!(server.requests().is_empty());
}

#[test]
fn listing_the_environment_lists_what_a_prompt_may_see() {
    let server = Server::start([Reply::text("done")]);
    Run::task(&server, "task")
        .env("PLAIN_WORD", "seen")
        .env("MY_TOKEN", "hidden-1")
        .env("SOME_KEY", "allowed-1")
        .config("agent.yaml", "prompts: { allow_env: [SOME_KEY] }\n")
        .config(
            "agents/default.yaml",
            "system_prompt: \"{% for name, value in env.items() %}<{{ name }}={{ value }}>{% endfor %} {{ env }}\"\n",
        )
        .run()
        .success();
    let request = server.only_request();
    let system = request.system();
    assert!(system.contains("<PLAIN_WORD=seen>") && system.contains("<SOME_KEY=allowed-1>"), "{system}");
    assert!(!system.contains("hidden-1") && !system.contains("MY_TOKEN"), "{system}");
    assert!(!system.contains("OPENAI_API_KEY") && system.contains("{}"), "{system}");
}

#[test]
fn listing_the_environment_in_a_configuration_leaves_secrets_out() {
    let server = Server::start([Reply::text("done")]);
    Run::task(&server, "task")
        .env("PLAIN_WORD", "seen")
        .env("MY_TOKEN", "hidden-1")
        .config(
            "agents/default.yaml.j2",
            "system_prompt: |\n  all:\n{% for name, value in env.items() %}  {{ name }}={{ value }}\n{% endfor %}\n",
        )
        .run()
        .success();
    let request = server.only_request();
    let system = request.system();
    assert!(system.contains("PLAIN_WORD=seen") && !system.contains("hidden-1"), "{system}");
}

#[test]
fn a_template_that_doubles_a_text_ends_with_an_error() {
    let bomb =
        "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}";
    let server = Server::always(Reply::text("ok"));
    let prompt = json!({"system_prompt": bomb}).to_string();
    let told = "it runs too long";
    Run::task(&server, "task").config("agents/default.yaml", &prompt).run().fails().stderr_has(told);
    let whole = format!("{bomb}\nlimits: {{ max_turns: 3 }}\n");
    Run::task(&server, "task").config("agent.yaml.j2", &whole).run().exits(3).stderr_has(told);
    // Doubled forty times, it would take 8 TiB; the limit holds for all that the program reserves.
    let limited = Run::script("sh", "ulimit -v 1000000; exec agent run task").server(&server);
    limited.config("agents/default.yaml", &prompt).run().exits(3).stderr_has(told);
    assert!(server.requests().is_empty());
}
