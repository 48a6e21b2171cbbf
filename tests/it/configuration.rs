//! The configuration: layers, templates, provenance, and all mistakes at once with their places.

use std::fs;

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// Runs a task with these files and variables against a server; the model id that it was asked for.
fn asked_model(run: impl FnOnce(Run) -> Run) -> String {
    let server = Server::start([Reply::text("ok")]);
    run(Run::task(&server, "task")).run().success();
    server.only_request().body["model"].as_str().unwrap_or_default().to_owned()
}

fn check(files: &[(&str, &str)]) -> Output {
    let run = files.iter().fold(Run::new().args(["config", "check"]), |run, (path, text)| run.config(path, text));
    run.env("OPENAI_API_KEY", "k").run()
}

#[test]
fn later_layers_win_and_files_merge_key_by_key() {
    let user = "model: of-the-user\n";
    assert_eq!(asked_model(|run| run), "scripted-model", "built in: the variable");
    assert_eq!(asked_model(|run| run.config("models/default.yaml", user)), "of-the-user");
    assert_eq!(
        asked_model(|run| {
            run.config("models/default.yaml", user).env("AGENT_SET_MODELS__DEFAULT__MODEL", "of-the-variable")
        }),
        "of-the-variable"
    );
    assert_eq!(
        asked_model(|run| {
            run.config("models/default.yaml", user)
                .env("AGENT_SET_MODELS__DEFAULT__MODEL", "of-the-variable")
                .args(["--set", "models.default.model=of-the-flag"])
        }),
        "of-the-flag"
    );
    assert_eq!(asked_model(|run| run.args(["-m", "some-provider-id"])), "some-provider-id");
}

#[test]
fn config_replaces_user_and_project() {
    let model = asked_model(|run| {
        run.config("models/default.yaml", "model: of-the-user\n")
            .file("conf/models/default.yaml", "model: of-the-directory\n")
            .args(["--config", "conf"])
    });
    assert_eq!(model, "of-the-directory");
    let model = asked_model(|run| {
        run.file("conf/models/default.yaml", "model: of-the-directory\n").env("AGENT_CONFIG", "conf")
    });
    assert_eq!(model, "of-the-directory");
}

#[test]
fn a_project_is_left_out_unless_trusted_and_can_only_narrow() {
    let project = ".agent/agents/default.yaml";
    let text = "limits: { max_turns: 1 }\n";
    let server = Server::always(Reply::text("ok"));
    let output = Run::task(&server, "task").file(project, text).run().success();
    assert!(output.stderr.contains("--trust"), "what was left out is said\n{}", output.shown());
    let shown =
        Run::new().args(["--trust", "config", "show"]).file(project, text).env("OPENAI_API_KEY", "k").run();
    shown.success().stdout_has("max_turns: 1");
    let evil = Server::always(Reply::text("evil"));
    let output = Run::task(&server, "task")
        .arg("--trust")
        .file(".agent/models/default.yaml", format!("base_url: \"{}\"\n", evil.url()))
        .run();
    assert!(evil.requests().is_empty(), "a project redirected the requests\n{}", output.shown());
    let output = Run::task(&server, "task").arg("--trust").file(project, "approval: all\n").run();
    assert!(
        output.code == 3 || output.stderr.contains("approval"),
        "a project widened approval\n{}",
        output.shown()
    );
}

#[test]
fn strings_are_rendered_after_parsing_and_types_restored() {
    let server = Server::start([Reply::text("ok")]);
    Run::task(&server, "task")
        .config(
            "models/default.yaml",
            "temperature: \"{{ env.HEAT }}\"\nmax_output_tokens: \"{{ env.MOST | default('77') }}\"\n\
             extra_body: { deep: [ \"{{ env.HEAT }}!\" ] }\n",
        )
        .env("HEAT", "0.25")
        .run()
        .success();
    let body = server.only_request().body;
    assert_eq!(body["temperature"], 0.25);
    assert_eq!(body["deep"][0], "0.25!");
    assert!(body.to_string().contains("77"), "{body}");
}

#[test]
fn a_j2_file_is_rendered_as_a_whole_first() {
    let text = "{% if env.STAGE == 'production' %}\nmodel: big\n{% else %}\nmodel: small\n{% endif %}\n\
                extra_body:\n{% for name in env.FLAGS.split(',') %}  {{ name }}: true\n{% endfor %}";
    let server = Server::start([Reply::text("ok")]);
    Run::task(&server, "task")
        .config("models/default.yaml.j2", text)
        .env("STAGE", "production")
        .env("FLAGS", "one,two")
        .run()
        .success();
    let body = server.only_request().body;
    assert_eq!(body["model"], "big");
    assert_eq!((body["one"].clone(), body["two"].clone()), (true.into(), true.into()));
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_places() {
    let output = check(&[
        ("agent.yaml", "default_agent: default\nlimts: { max_turns: 3 }\n"),
        ("models/default.yaml", "# a comment\nbase_url: 7000\nretry: { attempts: many }\n"),
        (
            "agents/other.yaml",
            "name: other\nmodel: no-such-model\nsystem_prompt: \"{{ unclosed\"\ntools: [\"*\"]\n",
        ),
        ("models/twice.yaml", "name: twice\nprovider: openai\nmodel: a\nmodel: b\n"),
    ])
    .exits(3);
    for part in [
        "agent.yaml:2:1", "limts", "limits", "models/default.yaml:3", "attempts", "agents/other.yaml:2",
        "no-such-model", "agents/other.yaml:3", "models/twice.yaml:4", "retry: { attempts: many }",
    ] {
        assert!(
            output.stderr.contains(part) || output.stdout.contains(part),
            "{part} is missing\n{}",
            output.shown()
        );
    }
    check(&[]).success();
}

#[test]
fn a_run_fails_with_the_same_text_as_check() {
    let broken = ("agent.yaml", "limits: { max_turns: many }\n");
    let checked = check(&[broken]).exits(3);
    assert!(checked.stderr.contains("agent.yaml:1:22"), "{}", checked.shown());
    let run = Run::at(&checked.place).args(["run", "task"]).env("OPENAI_API_KEY", "k").run().exits(3);
    assert_eq!(run.stderr, checked.stderr);
}

#[test]
fn a_plain_yaml_file_with_template_blocks_gets_a_hint() {
    check(&[("models/default.yaml", "{% if env.X %}\nmodel: a\n{% endif %}\n")]).exits(3).stderr_has(".yaml.j2");
}

#[test]
fn explain_names_the_file_and_line_the_variable_or_the_flag() {
    let explain = |extra: &[&str], variable: &str| {
        Run::new()
            .args(["config", "explain", "models.default.retry.attempts"])
            .args(extra.iter().copied())
            .config("models/default.yaml", "# first line\nretry:\n  attempts: 9\n")
            .env(variable, "7")
            .env("OPENAI_API_KEY", "k")
            .run()
            .success()
    };
    explain(&[], "UNRELATED").stdout_has("models/default.yaml:3").stdout_has("9");
    explain(&[], "AGENT_SET_MODELS__DEFAULT__RETRY__ATTEMPTS")
        .stdout_has("AGENT_SET_MODELS__DEFAULT__RETRY__ATTEMPTS")
        .stdout_has("7");
    explain(&["--set", "models.default.retry.attempts=8"], "UNRELATED").stdout_has("--set").stdout_has("8");
    Run::new()
        .args(["config", "explain", "limits.max_turns"])
        .env("OPENAI_API_KEY", "k")
        .run()
        .success()
        .stdout_has("50");
    Run::new()
        .args(["config", "explain", "limits.max_tunrs"])
        .env("OPENAI_API_KEY", "k")
        .run()
        .fails()
        .stderr_has("max_turns");
}

#[test]
fn settings_reach_the_built_in_agents() {
    let shown =
        Run::new().args(["--set", "limits.max_turns=7", "config", "explain", "agents.default.limits.max_turns"]);
    shown.env("OPENAI_API_KEY", "k").run().success().stdout_has("7");
}

#[test]
fn path_shows_where_it_looks() {
    let output = Run::new().args(["config", "path"]).run().success();
    assert!(output.stdout.contains(&output.place.config().to_string_lossy().into_owned()), "{}", output.shown());
}

#[test]
fn schema_is_a_json_schema_for_editors() {
    for (kind, key) in [("model", "base_url"), ("agent", "system_prompt"), ("settings", "default_agent")] {
        let schema = Run::new().args(["config", "schema", kind]).run().success().json();
        assert!(schema["properties"][key].is_object(), "{kind}: {schema}");
    }
    Run::new().args(["config", "schema", "no-such-kind"]).run().exits(2);
}

#[test]
fn the_built_in_configuration_is_sound_under_its_own_check() {
    let output = Run::new().args(["init", "conf", "--all"]).run().success();
    let written = fs::read_dir(output.place.workspace().join("conf")).expect("init writes").count();
    assert!(written >= 3, "configs, prompts and skills");
    Run::at(&output.place)
        .args(["--config", "conf", "config", "check"])
        .env("OPENAI_API_KEY", "k")
        .run()
        .success();
}

#[test]
fn what_agents_name_must_exist() {
    let output = check(&[(
        "agents/mine.yaml",
        "tools: [\"*\", read_fil]\nskills: [nothing]\nsystem_prompt: |\n  {{ vars.any }} {{ env.ANY }} {{ agnt.name }} \
         {{ datetime.now().year }}\n  {% for tool in tools %}{{ tool.nam }}{% endfor %}\n",
    )]);
    let output = output.exits(3).stderr_has("mine.yaml:1:").stderr_has("did you mean `read_file`?");
    let output = output.stderr_has("mine.yaml:2:").stderr_has("`nothing` names nothing that exists");
    output.stderr_has("mine.yaml:4:3: the prompt reads `agnt.name`, `tool.nam`, which nothing defines");
    check(&[("agents/mine.yaml", "tools: [\"*\", ask_user]\n")]).success();
}

#[test]
fn a_prompt_that_cannot_be_rendered_is_a_mistake_told_before_any_event() {
    let server = Server::always(Reply::text("ok"));
    let prompt = "system_prompt: \"{{ vars.team }} {{ env.NOT_SET }} {{ context.session_id }}\"\n";
    for arg in ["--output=jsonl", "--dry-run"] {
        let output = Run::task(&server, "task").config("agents/default.yaml", prompt).arg(arg).run();
        let output = output
            .exits(3)
            .stderr_has("agents/default.yaml:1: system_prompt:1:")
            .stderr_has("`env.NOT_SET`, `vars.team`");
        assert_eq!(output.stdout, "", "{}", output.shown());
    }
    assert!(server.requests().is_empty());
}

#[test]
fn the_prompt_that_ends_a_turn_can_be_rendered() {
    let output = Run::new().args(["prompt", "render", "termination"]).env("OPENAI_API_KEY", "k").run();
    output.success().stdout_has("This turn has to end now");
}

#[test]
fn a_key_that_stands_twice_hides_no_other_mistake_of_its_file() {
    let text =
        "limts: { max_turns: 1 }\nlimits: { max_turns: many }\nlimits: { max_turns: 3 }\ndefault_agent: nobody\n";
    let output = check(&[("agent.yaml", text)]).exits(3);
    let output =
        output.stderr_has("agent.yaml:1:1: unknown key `limts`").stderr_has("agent.yaml:2:22: `max_turns`");
    output
        .stderr_has("agent.yaml:3:1: the key `limits` is duplicated")
        .stderr_has("agent.yaml:4:16: there is no agent");
}

#[test]
fn one_round_tells_everything() {
    let output = check(&[
        ("agent.yaml", "limits: { max_parallel: 0, max_turns: many }\ndefault_agnt: x\n"),
        (
            "agents/other.yaml",
            "model: nobody\napproval: perhaps\ntools: [red_file]\nskills: [no-such-skill]\n\
             limits: { loop_threshold: 1, max_time: soon }\nsystem_prompt: \"{{ nothing_defines_this }}\"\n\
             termination_summary_prompt: { ref: absent@v1.0 }\n",
        ),
        ("models/default.yaml", "temperature: hot\nretry: { attempts: 0 }\n"),
        ("tools/ghost.yaml", "enabled: false\n"),
    ])
    .exits(3);
    for part in [
        "max_parallel", "max_turns", "default_agnt", "there is no model `nobody`", "perhaps", "red_file",
        "no-such-skill", "loop_threshold", "soon", "nothing_defines_this", "absent", "temperature", "attempts",
        "ghost",
    ] {
        assert!(output.stderr.contains(part), "{part} is missing\n{}", output.shown());
    }
    assert!(!output.stderr.contains("at least tool_timeout"), "a mistake that nobody made\n{}", output.shown());
}

#[test]
fn every_failure_of_models_is_told_at_once() {
    let model = "provider: openai\nbase_url: http://127.0.0.1:9/v1\nmodel: x\n";
    let roles =
        "mode: plan\nroles:\n  planner: { model: deep, effort: enormous }\n  reflector: { effort: tiny }\n";
    check(&[
        ("models/deep.yaml", model),
        ("models/odd.yaml", &format!("{model}reasoning_effort: sideways\n")),
        ("agents/planning.yaml", roles),
    ])
    .exits(3)
    .stderr_has("agents/planning.yaml:3: models.deep")
    .stderr_has("`enormous` is not a level of reasoning")
    .stderr_has("agents/planning.yaml:4: models.default")
    .stderr_has("`tiny` is not")
    .stderr_has("`sideways` is not");
}

#[test]
fn a_window_that_is_too_small_is_told_of_every_model() {
    let small = "provider: openai\nbase_url: http://127.0.0.1:9/v1\nmodel: x\ncontext_window: 1900\n";
    let output = check(&[("models/small.yaml", small)]).exits(3);
    let output = output.stderr_has("models/small.yaml:4:17: the layer `context` has");
    let run = Run::at(&output.place).args(["run", "-m", "small", "hi"]).env("OPENAI_API_KEY", "k").run().exits(3);
    assert_eq!(run.reason(), output.reason(), "the run says the same");
    // A model that an agent or a role names is checked with that one alone.
    let with_few_tools = "model: small\ntools: []\n";
    check(&[("models/small.yaml", small), ("agents/tiny.yaml", with_few_tools)]).success();
    let router = "mode: route\nroles: { router: { model: small } }\n";
    check(&[("models/small.yaml", small), ("agents/routed.yaml", router)]).success();
    // A share that is too small for every model is one mistake.
    let share = ("agent.yaml", "context: { layers: { context: 0.001 } }\n");
    let other = ("models/other.yaml", "provider: openai\nmodel: x\ncontext_window: 64000\n");
    let alone = check(&[share]).exits(3);
    assert_eq!(check(&[share, other]).exits(3).stderr.matches("1:31: the layer").count(), {
        alone.stderr.matches("1:31: the layer").count()
    });
}

#[test]
fn a_layer_that_is_too_large_is_told_at_the_value_that_made_it_so() {
    let output = Run::new().args(["run", "-m", "demo", "--set", "context.budget=900", "hi"]).run().exits(3);
    assert!(output.stderr.contains("--set context.budget: the layer `"), "{}", output.shown());
    assert!(!output.stderr.contains("agents/default.yaml"), "{}", output.shown());
    let share = "context: { layers: { context: 0.001 } }\n";
    let output = Run::new().config("agent.yaml", share).args(["run", "-m", "demo", "hi"]).run().exits(3);
    assert!(output.stderr.contains(".config/agent/agent.yaml:1:31: the layer `context`"), "{}", output.shown());
    check(&[("agent.yaml", share)]).exits(3);
}

#[test]
fn an_empty_variable_is_unset_but_for_a_limit() {
    let check = |name: &str| Run::new().args(["config", "check"]).env(name, "").run();
    check("AGENT_SET_AGENTS__DEFAULT__APPROVAL").success();
    check("AGENT_SET_LIMITS__MAX_COST").exits(3).stderr_has("`max_cost` is empty");
    let file = |text: &str| Run::new().config("agent.yaml", text).args(["config", "check"]).run();
    file("limits:\n  max_turns:\n").exits(3).stderr_has("agent.yaml:2").stderr_has("`max_turns` is empty");
    file("limits: { max_turns: null }\n").success();
}
