//! Prompts with messages, seen from outside: what the model is sent, what the session keeps, and what is told where a
//! variable or a file is wrong.

use std::sync::Arc;

use serde_json::Value;

use crate::output::Output;
use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::{Request, Server};

/// A run in a place whose person has the prompt `talk`.
fn with_prompt(server: &Server, head: &str, body: &str, args: &[&str]) -> Run {
    Run::new()
        .server(server)
        .config("prompts/talk/v1.0.md", &format!("---\n{head}---\n{body}"))
        .args(["run", "--prompt", "talk"])
        .args(args.iter().copied())
}

/// Role and text of every message after the system prompt. Parts are separated by ` + `, pictures are `[image]`.
fn told(request: &Request) -> Vec<String> {
    let part = |part: &Value| match part["type"].as_str() {
        Some("text") => part["text"].as_str().unwrap_or_default().to_owned(),
        _ => "[image]".to_owned(),
    };
    let text = |message: &Value| match &message["content"] {
        Value::Array(parts) => parts.iter().map(part).collect::<Vec<_>>().join(" + "),
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    let messages = request.messages().iter().skip(1);
    messages
        .map(|message| format!("{}: {}", message["role"].as_str().unwrap_or_default(), text(message)))
        .collect()
}

/// The content of the one request of a run.
fn sent(head: &str, body: &str, args: &[&str]) -> Request {
    let server = Server::start([Reply::text("ok")]);
    with_prompt(&server, head, body, args).run().success().stdout_is("ok\n");
    server.only_request()
}

/// A run that fails before anything is sent.
fn refused(code: i32, head: &str, args: &[&str]) -> Output {
    let server = Server::start([]);
    let output = with_prompt(&server, head, "", args).run().exits(code).stdout_is("");
    assert!(server.requests().is_empty(), "{}", output.shown());
    assert!(output.place.session_logs().is_empty(), "a run that never began leaves no session");
    output
}

const TALK: &str = "required_vars: [role, topic]\ndefaults: { tone: plain }\nmessages:\n  \
                    - system: You are {{ role }}, {{ tone }}.\n  \
                    - { placeholder: history, optional: true }\n  \
                    - user: Tell me about {{ topic }}.\n";
const HISTORY: &str =
    r#"history:=[{"role":"user","content":"Hi {{ role }}"},{"role":"assistant","content":"Hello."}]"#;

#[test]
fn the_messages_are_the_system_prompt_the_history_and_the_task() {
    let request = sent(TALK, "", &["--var", "role={{ tone }}", "--var", "topic=oil", "--var", HISTORY]);
    assert_eq!(request.system(), "You are {{ tone }}, plain.", "a value is never rendered");
    assert_eq!(told(&request), ["user: Hi {{ role }}", "assistant: Hello.", "user: Tell me about oil."]);
}

#[test]
fn a_task_follows_the_messages() {
    let head = "messages:\n  - user: 2+2\n  - assistant: '4'\n";
    let request = sent(head, "You add.\n", &["3+3"]);
    assert_eq!(request.system(), "You add.", "the body is the first system message");
    assert_eq!(told(&request), ["user: 2+2", "assistant: 4", "user: 3+3"]);
    let request = sent(TALK, "", &["--var", "role=r", "--var", "topic=oil", "In a word."]);
    assert_eq!(told(&request), ["user: Tell me about oil.\n\nIn a word."]);
}

#[test]
fn without_a_system_message_the_agents_own_system_prompt_stays() {
    let request = sent("messages: [ { user: Hello } ]\n", "", &[]);
    assert!(request.system().contains("workspace"), "{}", request.system());
    assert_eq!(told(&request), ["user: Hello"]);
}

#[test]
fn what_is_piped_in_is_attached_to_the_question_of_the_prompt() {
    let server = Server::start([Reply::text("ok")]);
    let run = with_prompt(&server, "messages: [ { user: Explain this. } ]\n", "", &[]);
    run.stdin("error[E0382]").run().success();
    let request = server.only_request();
    assert!(request.user().starts_with("Explain this.\n\n<attachment name=\"stdin\""), "{}", request.user());
    // Where the prompt asks nothing at its end, stdin is the task, as ever.
    let server = Server::start([Reply::text("ok")]);
    let head = "messages:\n  - user: 2+2\n  - assistant: '4'\n";
    with_prompt(&server, head, "", &[]).stdin("3+3\n").run().success();
    assert_eq!(told(&server.only_request()), ["user: 2+2", "assistant: 4", "user: 3+3"]);
    let server = Server::start([Reply::text("ok")]);
    with_prompt(&server, "messages: [ { user: Hello } ]\n", "", &["-"]).stdin("from stdin").run().success();
    assert_eq!(told(&server.only_request()), ["user: Hello\n\nfrom stdin"]);
}

#[test]
fn calls_and_their_answers_go_along_and_count_as_nothing() {
    let head = "messages:\n  - user: How long is {{ vars.path }}?\n  - assistant: ''\n    calls:\n      \
                - { id: c1, name: read_file, arguments: { path: '{{ vars.path }}' } }\n  \
                - { tool: '1 line', call_id: c1 }\n  - assistant: One line.\n";
    let server = Server::start([Reply::text("ok")]);
    let args = ["--var", "path=a\"b", "and now?", "-o", "jsonl"];
    let output = with_prompt(&server, head, "", &args).run().success();
    let request = server.only_request();
    let expected =
        ["user: How long is a\"b?", "assistant: ", "tool: 1 line", "assistant: One line.", "user: and now?"];
    assert_eq!(told(&request), expected);
    let call = &request.calls()[0]["function"];
    assert_eq!(
        (call["name"].as_str(), call["arguments"].as_str()),
        (Some("read_file"), Some(r#"{"path":"a\"b"}"#))
    );
    let events = output.events();
    let end = events.one("run.completed");
    assert_eq!((&end["steps"], &end["tool_calls"]), (&1.into(), &0.into()), "{end}");
    assert_eq!(events.of("message").len(), 6);
}

#[test]
fn pictures_of_the_workspace_are_sent_to_a_model_that_sees() {
    let head = "messages:\n  - user: [ { text: 'What is {{ vars.what }}?' }, { image: '{{ vars.path }}' } ]\n";
    let model = "provider: openai\nmodel: m\nbase_url: ${OPENAI_BASE_URL}\ncapabilities: { vision: true }\n";
    let server = Server::start([Reply::text("ok")]);
    let gif = ["--var", "what=it", "--var", "path=a.gif"];
    let run = |server: &Server| with_prompt(server, head, "", &gif).file("a.gif", b"GIF89a");
    run(&server)
        .config("models/seeing.yaml", &model.replace("${OPENAI_BASE_URL}", &server.url()))
        .args(["-m", "seeing"])
        .run()
        .success();
    let request = server.only_request();
    assert_eq!(told(&request), ["user: What is it? + [image]"]);
    assert!(request.raw.contains("data:image/gif;base64,R0lGODlh"), "{}", request.raw);

    let server = Server::start([Reply::text("ok")]);
    let blind = model.replace("true", "false").replace("${OPENAI_BASE_URL}", &server.url());
    run(&server).config("models/blind.yaml", &blind).args(["-m", "blind"]).run().success();
    let message = &told(&server.only_request())[0];
    assert!(message.contains("A picture is not shown: you do not see pictures."), "{message}");

    for (path, why) in [
        ("no.gif", "message 1 (user): the picture no.gif does not exist"),
        ("../out.gif", "is outside the workspace"),
        ("https://example.org/a.png", "is a URL, and prompts fetch nothing"),
    ] {
        refused(3, head, &["--var", "what=it", "--var", &format!("path={path}")]).stderr_has(why);
    }
}

#[test]
fn the_messages_are_kept_in_order_and_a_continued_session_has_them_once() {
    let server = Server::always(Reply::text("ok"));
    let vars = ["--var", "role=r", "--var", "topic=oil", "--var", HISTORY];
    let first = with_prompt(&server, TALK, "", &vars).run().success();
    let log = std::fs::read_to_string(&first.place.session_logs()[0]).expect("a log");
    let kinds: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let said: Vec<&str> = kinds
        .iter()
        .filter_map(|entry| match entry["type"].as_str() {
            Some("said") => entry["text"].as_str(),
            Some("reply") => entry["parts"][0]["text"].as_str(),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["Hi {{ role }}", "Hello.", "Tell me about oil.", "ok"]);
    let again = |args: &[&str]| {
        let run = Run::at(&first.place).server(&server).args(["run", "--continue"]).args(args.iter().copied());
        run.run().success()
    };
    let vars: Vec<&str> = ["--prompt", "talk"].into_iter().chain(vars).chain(["More."]).collect();
    again(&vars).stderr_lacks("warning");
    again(&["And more."]);
    let requests = server.requests();
    let begin =
        ["user: Hi {{ role }}", "assistant: Hello.", "user: Tell me about oil.", "assistant: ok", "user: More."];
    assert_eq!(told(&requests[1]), begin);
    assert_eq!(told(&requests[2])[..5], begin);
    assert_eq!(told(&requests[2]).len(), 7);
}

#[test]
fn a_session_that_began_without_them_says_that_it_stays_so() {
    let server = Server::always(Reply::text("ok"));
    let first = Run::task(&server, "one").run().success();
    Run::at(&first.place)
        .server(&server)
        .config("prompts/talk/v1.0.md", "---\nmessages: [ { user: Hello } ]\n---\n")
        .args(["run", "--continue", "--prompt", "talk", "two"])
        .run()
        .success()
        .stderr_has("the messages of the prompt only open new sessions");
    assert_eq!(told(&server.requests()[1]), ["user: one", "assistant: ok", "user: two"]);
}

#[test]
fn a_dry_run_shows_the_messages_and_sends_nothing() {
    let server = Server::start([]);
    let args = ["--var", "role=r", "--var", "topic=oil", "--var", HISTORY, "--dry-run"];
    let output = with_prompt(&server, TALK, "", &args).run().success();
    let request: Value = serde_json::from_str(&output.stdout).expect("a request");
    let roles: Vec<&str> = request["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["role"].as_str())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert!(output.place.session_logs().is_empty());
}

#[test]
fn a_prompt_is_rendered_with_its_messages_as_text_and_as_data() {
    let head = format!("---\n{TALK}---\n");
    let run = || Run::new().config("prompts/talk/v1.0.md", &head).args(["prompt", "render", "talk"]);
    let vars = ["--var", "role=r", "--var", "topic=oil", "--var", HISTORY];
    run().args(vars).run().success().stdout_is(
        "system:\nYou are r, plain.\n\nuser:\nHi {{ role }}\n\nassistant:\nHello.\n\nuser:\nTell me about oil.\n",
    );
    let messages: Value =
        serde_json::from_str(&run().args(vars).arg("--messages").run().success().stdout).expect("JSON");
    assert_eq!(messages[3], serde_json::json!({ "role": "user", "content": "Tell me about oil." }));
    run().run().exits(3).stderr_has("`role`").stderr_has("`topic`");
}

#[test]
fn cases_of_its_tests_follow_the_messages() {
    let server = Server::always(Reply::text("ok"));
    let cases = "defaults: { vars: { role: r, topic: oil }, runs: 1 }\ncases:\n\
                 - { name: alone, assert: [equals: ok] }\n\
                 - { name: followed, messages: [user: More.], assert: [equals: ok] }\n\
                 - { name: shown, render: true, assert: [starts-with: 'system:'], vars: { topic: '{{ x }}' } }\n";
    Run::new()
        .server(&server)
        .config("prompts/talk/v1.0.md", &format!("---\n{TALK}---\n"))
        .config("prompts/talk/tests.yaml", cases)
        .args(["prompt", "test", "talk", "--jobs", "1"])
        .run()
        .success()
        .stdout_has("3 of 3 cases pass");
    let mut requests = server.requests().iter().map(told).collect::<Vec<_>>();
    requests.sort();
    assert_eq!(requests, [["user: Tell me about oil."], ["user: Tell me about oil.\n\nMore."]]);
    assert!(server.requests().iter().all(|request| request.system().starts_with("You are r, plain.")));
}

/// A chat whose prompt brings these messages along.
fn chat(server: &Server, head: &str) -> Terminal {
    let run = Run::new().server(server).config("prompts/talk/v1.0.md", &format!("---\n{head}---\n"));
    Terminal::start(&run.args(["chat", "--prompt", "talk"]))
}

#[test]
fn a_chat_opens_with_the_messages() {
    let server = Server::start([Reply::text("First answer."), Reply::text("Second answer.")]);
    let mut terminal = chat(&server, "messages:\n  - user: 2+2\n  - assistant: '4'\n  - user: And 3+3?\n");
    terminal.wait_for("First answer.");
    terminal.line("And 4+4?");
    terminal.wait_for("Second answer.");
    let requests = server.requests();
    assert_eq!(told(&requests[0]), ["user: 2+2", "assistant: 4", "user: And 3+3?"]);
    assert_eq!(told(&requests[1])[3..], ["assistant: First answer.", "user: And 4+4?"]);

    let server = Server::start([Reply::text("First answer."), Reply::text("Second answer.")]);
    let mut terminal = chat(&server, "messages:\n  - user: 2+2\n  - assistant: '4'\n");
    terminal.wait_for("> ");
    terminal.line("3+3");
    terminal.wait_for("First answer.");
    terminal.line("/clear");
    terminal.line("4+4");
    terminal.wait_for("Second answer.");
    let requests = server.requests();
    assert_eq!(told(&requests[0]), ["user: 2+2", "assistant: 4", "user: 3+3"]);
    assert_eq!(told(&requests[1]), ["user: 2+2", "assistant: 4", "user: 4+4"]);
}

#[test]
fn everything_that_is_missing_is_named_at_once() {
    let head = TALK.replace(", optional: true", "");
    let output = refused(3, &head, &["x"]);
    for name in ["`role`", "`topic`", "`history`"] {
        assert!(output.stderr.contains(name), "{name}: {}", output.shown());
    }
    assert!(output.stderr.contains("talk/v1.0.md:"), "{}", output.shown());
}

#[test]
fn histories_that_are_none_are_told_with_message_and_item() {
    for (history, why) in [
        (
            "history=said before",
            "message 2 (placeholder): `history` is of type string, but has to be a list of messages",
        ),
        (r#"history:={"role":"user"}"#, "`history` is of type map, but has to be a list"),
        (
            r#"history:=[{"role":"robot","content":"x"}]"#,
            "item 1 of `history` is not a message: unknown variant `robot`",
        ),
        (r#"history:=[{"role":"tool","content":"x","call_id":"c"}]"#, "no message before it makes the call `c`"),
        (
            r#"history:=[{"role":"user","content":"x"},{"role":"system","content":"x"}]"#,
            "must come before all others",
        ),
    ] {
        let args = ["--var", "role=r", "--var", "topic=t", "--var", history];
        refused(3, TALK, &args).stderr_has(why);
    }
}

#[test]
fn mistakes_in_the_file_are_told_with_their_line() {
    for (head, place) in [
        ("messages:\n  - robot: x\n", "talk/v1.0.md:3:5: unknown field `robot`"),
        ("messages:\n  - user: fine\n  - user: '{% if %}'\n", "talk/v1.0.md:4:"),
        ("messages:\n  - tool: x\n", "talk/v1.0.md:3:5: `tool` needs a `call_id`"),
        ("format: latex\nmessages: []\n", "talk/v1.0.md:2:"),
    ] {
        refused(3, head, &["x"]).stderr_has(place);
    }
}

#[test]
fn a_value_of_ten_megabytes_is_data_in_a_history_and_too_long_in_a_text() {
    let place = Place::new();
    std::fs::write(place.workspace().join("huge.txt"), "{{ x }}".repeat(1_400_000)).expect("written");
    let huge = format!("topic=@{}", place.workspace().join("huge.txt").display());
    refused(3, TALK, &["--var", "role=r", "--var", &huge]).stderr_has("message 3 (user)");
}

/// The value that `--var` gave the prompt, or the error about it.
fn var(written: &str, place: &Arc<Place>) -> Result<String, String> {
    let server = Server::start([Reply::text("ok")]);
    let output = Run::at(place)
        .server(&server)
        .config("agents/default.yaml", "system_prompt: \"{{ vars.k | tojson }}\"\n")
        .args(["run", "x", "--var", written])
        .run();
    match output.code {
        0 => Ok(server.only_request().system().to_owned()),
        2 => Err(output.stderr.clone()),
        _ => panic!("{}", output.shown()),
    }
}

#[test]
fn a_variable_is_text_data_or_the_text_of_a_file() {
    let place = Place::new();
    let write = |name: &str, bytes: &[u8]| std::fs::write(place.workspace().join(name), bytes).expect("written");
    write("notes.txt", b"{{ env }}\n");
    write("latin.txt", b"caf\xe9");
    write("long.txt", &vec![b'x'; (10 << 20) + 1]);
    for (written, given) in [
        ("k=v", "\"v\""),
        ("k=5", "\"5\""),
        ("k:=5", "5"),
        ("k:={\"a\": [1, null]}", "{\"a\": [1, null]}"),
        ("k=@notes.txt", "\"{{ env }}\\n\""),
        ("k=@@home", "\"@home\""),
    ] {
        assert_eq!(var(written, &place).expect(written), given, "{written}");
    }
    for (written, why) in [
        ("k", "NAME=TEXT, NAME=@FILE or NAME:=JSON"),
        ("k:=yes", "what follows := is not JSON"),
        ("k=@none.txt", "--var k=@none.txt: there is no such file (a text that begins with @ is written with @@)"),
        ("k=@latin.txt", "--var k=@latin.txt: it is not UTF-8 text"),
        ("k=@long.txt", "--var k=@long.txt: it is longer than 10 MiB"),
        ("k=@.", "--var k=@.: it is a directory"),
    ] {
        let error = var(written, &place).expect_err(written);
        assert!(error.contains(why), "{written}: {error}");
    }
}
