//! Whole screens of a chat: snapshots of their text and looks at three widths, light and dark, and the pictures of the
//! tour in the README. `.ci/tour` redraws those.

use serde_json::json;

use crate::picture::{DARK, LIGHT, Palette, Picture};
use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// A moment of a chat.
struct Scene {
    name: &'static str,
    replies: fn() -> Vec<Reply>,
    /// The person's first message; empty for none.
    says: &'static str,
    /// The text that the screen shows by then.
    shows: &'static str,
    /// The turn is over, and the prompt waits.
    is_over: bool,
}

const DARK_TERMINAL: &str = "15;0";
const LIGHT_TERMINAL: &str = "0;15";

const FIRST_START: Scene =
    Scene { name: "first_start", replies: Vec::new, says: "", shows: "/help", is_over: true };

const ANSWER: Scene = Scene {
    name: "answer",
    replies: || vec![Reply::text(MARKDOWN).counted(41_000)],
    says: "How do I read a file in Rust?",
    shows: "is a convenience",
    is_over: true,
};

const MARKDOWN: &str = "## Reading a file\n\nUse `std::fs`: it reads the *whole* file, and **fails** with a reason.\n\n\
                        ```rust\nlet text = std::fs::read_to_string(\"notes.txt\")?;\n```\n\n- [x] small files\n- [ ] \
                        large ones: read them by line\n\n> `read_to_string` is a convenience.\n";

const RUNNING: Scene = Scene {
    name: "running",
    replies: || {
        let command =
            "for test in lexer parser printer nested empty wide; do echo \"test $test ... ok\"; done; sleep 600";
        vec![Reply::call("run_command", &json!({ "command": command }))]
    },
    says: "Run the tests.",
    shows: "test wide ... ok",
    is_over: false,
};

const APPROVAL: Scene = Scene {
    name: "approval",
    replies: || {
        let edit = json!({"path": "net.rs", "old_text": "from_secs(30)", "new_text": "from_secs(60)"});
        vec![Reply::call("read_file", &json!({"path": "net.rs"})), Reply::call("edit_file", &edit)]
    },
    says: "Double the timeout.",
    shows: "Allow",
    is_over: false,
};

const TODO: Scene = Scene {
    name: "todo",
    replies: || {
        let items = json!({"items": [
            {"text": "Find where the timeout is set", "status": "done"},
            {"text": "Double it", "status": "doing"},
            {"text": "Run the tests", "status": "pending"},
        ]});
        vec![
            Reply::call("todo", &items),
            Reply::call("run_command", &json!({"command": "echo building; sleep 600"})),
        ]
    },
    says: "Double the timeout, then test.",
    shows: "building",
    is_over: false,
};

impl Scene {
    fn at(&self, columns: u16, colours: &str) -> Picture {
        let server = Server::start((self.replies)());
        let approve = if self.name == "approval" { "ask" } else { "all" };
        // The time is never the same.
        let status = "ui.status=[model, tokens, cost, context]";
        let run = Run::new().args(["chat", "--approve", approve, "--set", status]);
        let run = run.server(&server).env("COLORFGBG", colours);
        let run = run.file(
            "net.rs",
            "use std::time::Duration;\n\nfn timeout() -> Duration {\n    Duration::from_secs(30)\n}\n",
        );
        let mut terminal = Terminal::sized(&run, columns, 24);
        terminal.wait_for("> ");
        if !self.says.is_empty() {
            terminal.line(self.says);
        }
        terminal.wait_until(self.shows, |screen| {
            let has_prompt = screen.trim_end().ends_with('>');
            // A narrow screen breaks the words.
            screen.replace('\n', " ").contains(self.shows) && has_prompt == self.is_over
        });
        let host = server.url().replace("http://", "").replace("/v1", "");
        terminal.picture().with(&host, "127.0.0.1:8080")
    }

    fn holds(&self) {
        for columns in [40, 80, 200] {
            let dark = self.at(columns, DARK_TERMINAL).notation();
            insta::assert_snapshot!(format!("screen_{}_{columns}", self.name), dark);
            if columns == 80 {
                assert_eq!(
                    self.at(columns, LIGHT_TERMINAL).notation(),
                    dark,
                    "{} on a light background",
                    self.name
                );
            }
        }
    }
}

#[test]
fn the_first_start() {
    FIRST_START.holds();
}

#[test]
fn an_answer_with_markdown_and_code() {
    ANSWER.holds();
}

#[test]
fn a_running_command_with_its_output() {
    RUNNING.holds();
}

#[test]
fn a_question_with_a_diff() {
    APPROVAL.holds();
}

#[test]
fn a_todo_list_beside_a_running_command() {
    TODO.holds();
}

#[test]
#[ignore = "writes the pictures of the README; .ci/tour runs it"]
fn the_pictures_of_the_tour() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tour");
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let pictures: [(Scene, &str, &Palette); 5] = [
        (FIRST_START, DARK_TERMINAL, &DARK),
        (ANSWER, DARK_TERMINAL, &DARK),
        (RUNNING, DARK_TERMINAL, &DARK),
        (APPROVAL, LIGHT_TERMINAL, &LIGHT),
        (TODO, DARK_TERMINAL, &DARK),
    ];
    for (scene, colours, palette) in pictures {
        let svg = scene.at(80, colours).svg(palette);
        std::fs::write(folder.join(format!("{}.svg", scene.name)), svg).expect("the picture can be written");
    }
}
