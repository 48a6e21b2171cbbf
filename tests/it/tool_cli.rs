//! `agent tool list / show / call`.

use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::run::Run;

const TOUCH: &str = "description: Makes a file. Returns nothing.\ncommand: [touch, made.txt]\n";

fn tool(args: &[&str]) -> Run {
    Run::new().arg("tool").args(args.iter().copied())
}

#[test]
fn the_list_says_what_each_may_do_and_where_it_comes_from() {
    let list = tool(&["list"]).config("tools/touch.yaml", TOUCH).run().success();
    let line = |name: &str| {
        let found = list.stdout.lines().find(|line| line.split_whitespace().next() == Some(name));
        found.unwrap_or_else(|| panic!("{name} is missing\n{}", list.shown())).to_owned()
    };
    assert!(line("grep").contains("read   -        built in"), "{}", line("grep"));
    assert!(line("write_file").contains("write  files"), "{}", line("write_file"));
    assert!(line("touch").contains("process") && line("touch").contains("tools/touch.yaml"), "{}", line("touch"));
    assert!(line("touch").ends_with("Makes a file."), "{}", line("touch"));
    let names: Vec<&str> = list.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.is_sorted(), "{names:?}");

    let some = tool(&["list", "*_file", "!edit_file", "--permission", "read"]).run().success();
    assert!(some.stdout.starts_with("read_file ") && some.stdout.lines().count() == 1, "{}", some.shown());
    tool(&["list", "gerp"]).run().exits(2).reason_has("did you mean `grep`?");
}

#[test]
fn a_definition_is_shown_as_the_model_sees_it() {
    let shown = tool(&["show", "touch"]).config("tools/touch.yaml", TOUCH).run().success().json();
    assert_eq!(shown["description"], "Makes a file. Returns nothing.");
    assert_eq!(shown["parameters"], json!({"type": "object", "properties": {}, "additionalProperties": false}));
    tool(&["show", "gerp"]).run().exits(2).reason_has("grep");
}

#[test]
fn a_call_prints_what_the_model_would_read() {
    let read = |args: &[&str]| {
        let args = [&["call", "read_file", "{\"path\": \"a.txt\"}"], args].concat();
        tool(&args).file("a.txt", "hello\n").run().success().stdout
    };
    assert_eq!(read(&[]), "<result tool=\"read_file\" untrusted>\n1\thello\n</result>\n");
    let json: Value = serde_json::from_str(&read(&["--format", "standard", "--encoding", "json"])).expect("JSON");
    assert_eq!((&json["status"], &json["content"]), (&json!("ok"), &json!("1\thello")));
    assert!(read(&["--encoding", "xml"]).starts_with("<result tool=\"read_file\""));
    assert!(read(&["--set", "tool_output.encoding=compact"]).starts_with("tool:read_file"));
    tool(&["call", "read_file", "{}", "--format", "short"]).run().exits(2).stderr_has("concise, standard");
}

#[test]
fn raw_data_is_byte_for_byte_what_was_read() {
    for content in ["abc", "abc\n", "a\r\nb", "a\r\nb\r\n", "\n", "\n\n", "a\n\nb\r", "\u{feff}x\r\n", "日本"] {
        let read = |arguments: Value| {
            let arguments = arguments.to_string();
            let run = tool(&["call", "read_file", &arguments, "--format", "raw", "--encoding", "json"]);
            run.file("a.txt", content).run().success().json()["result"]["text"].clone()
        };
        assert_eq!(read(json!({"path": "a.txt"})), content);
        let (first, rest) = content.split_once('\n').map_or((content, ""), |(first, rest)| (first, rest));
        if !rest.is_empty() {
            assert_eq!(read(json!({"path": "a.txt", "limit": 1})), format!("{first}\n"));
            assert_eq!(read(json!({"path": "a.txt", "offset": 2})), rest);
        }
    }
    for encoding in ["text", "json", "yaml", "xml", "compact"] {
        let args = ["call", "list_dir", "{}", "--format", "raw", "--encoding", encoding];
        let stdout = tool(&args).file("a.txt", "x").run().success().stdout;
        assert!(stdout.ends_with('\n') && !stdout.ends_with("\n\n"), "{encoding}: {stdout:?}");
    }
}

#[test]
fn the_exit_code_says_how_it_ended() {
    tool(&["call", "read_file", "{\"path\": \"none.txt\"}"]).run().exits(1).stdout_has("none.txt");
    tool(&["call", "read_file", "{\"pth\": 1}"]).run().exits(1).stdout_has("path");
    tool(&["call", "read_file", "path"]).run().exits(2).stdout_is("");
    tool(&["call", "raed_file", "{}"]).run().exits(2).stdout_is("").reason_has("read_file");
    let touch = |args: &[&str]| tool(&[&["call", "touch"], args].concat()).config("tools/touch.yaml", TOUCH).run();
    assert!(!touch(&[]).exits(7).stdout_has("status: denied").place.exists("made.txt"));
    assert!(!touch(&["--approve", "never"]).exits(1).place.exists("made.txt"));
    assert!(touch(&["--approve", "all"]).success().place.exists("made.txt"));
    assert!(touch(&["--approve", "all"]).place.session_logs().is_empty(), "a call by hand leaves no session");
}

#[test]
fn on_a_terminal_it_asks_and_shows_exactly_what_would_run() {
    let run = Run::new().args(["tool", "call", "touch"]).config("tools/touch.yaml", TOUCH);
    let mut terminal = Terminal::start(&run);
    terminal.wait_for("┌ touch");
    terminal.wait_for("│ touch made.txt");
    terminal.wait_for("asked because it runs a command");
    terminal.wait_for("Allow?");
    terminal.line("y");
    assert_eq!(terminal.exit_code(), 0);
    assert!(terminal.place.exists("made.txt"));
}
