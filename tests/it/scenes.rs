//! Whole screens of a chat: snapshots of their text and looks at three widths, light and dark, and the pictures of the
//! tour in the README, which `.ci/tour` redraws.

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
    /// Commands run without a question.
    runs_commands: bool,
    /// The person's first message; empty for none.
    says: &'static str,
    /// The keys after it.
    types: &'static str,
    /// True if a screen, with its rows in one line, shows the scene in full.
    is_there: fn(&str) -> bool,
}

const DARK_TERMINAL: &str = "15;0";
const LIGHT_TERMINAL: &str = "0;15";

const FIRST_START: Scene = Scene {
    name: "first_start",
    replies: Vec::new,
    runs_commands: false,
    says: "",
    types: "",
    is_there: |screen| prompts(screen, "/help"),
};

const ANSWER: Scene = Scene {
    name: "answer",
    replies: || vec![Reply::text(MARKDOWN).counted(41_000)],
    runs_commands: false,
    says: "How do I read a file in Rust?",
    types: "",
    is_there: |screen| prompts(screen, "is a convenience") && screen.contains(" % "),
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
    runs_commands: true,
    says: "Run the tests.",
    types: "",
    is_there: |screen| screen.contains("test wide ... ok") && runs(screen),
};

const APPROVAL: Scene = Scene {
    name: "approval",
    replies: || {
        let edit = json!({"path": "net.rs", "old_text": "from_secs(30)", "new_text": "from_secs(60)"});
        vec![Reply::call("read_file", &json!({"path": "net.rs"})), Reply::call("edit_file", &edit)]
    },
    runs_commands: false,
    says: "Double the timeout.",
    types: "",
    is_there: |screen| prompts(screen, "Explain"),
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
    runs_commands: true,
    says: "Double the timeout, then test.",
    types: "",
    is_there: |screen| screen.contains("building") && screen.contains("Run the tests") && runs(screen),
};

const MODEL: Scene = Scene {
    name: "model",
    replies: Vec::new,
    runs_commands: false,
    says: "/model",
    types: "",
    is_there: |screen| prompts(screen, "4. local"),
};

const LINE: Scene = Scene {
    name: "line",
    types: "看一看 net.rs：the timeout is too short，请把它加倍，then run the tests 🎉 and tell me what they say\x1b\rsecond row",
    is_there: |screen| screen.contains("second row"),
    ..FIRST_START
};

const COMPLETIONS: Scene =
    Scene { name: "completions", types: "/s\t", is_there: |screen| screen.contains("/sessions"), ..FIRST_START };

const QUESTION_AND_LINE: Scene = Scene {
    name: "question_and_line",
    types: "wait, what is this?",
    is_there: |screen| screen.contains("Explain") && screen.contains("what is this?"),
    ..APPROVAL
};

/// The models of the scenes, with their prices.
const MODELS: [(&str, &str); 3] = [
    ("default", "context_window: 200000\nprices: { input: 3, output: 15 }\n"),
    (
        "fast",
        "provider: openai\nmodel: small-model\napi_key: k\ncontext_window: 128000\nprices: { input: 0.15, output: 0.6 }\n",
    ),
    ("local", "provider: openai\nbase_url: http://127.0.0.1:8081/v1\nmodel: own-model\ncontext_window: 32000\n"),
];

/// The prompt waits below this text.
fn prompts(screen: &str, text: &str) -> bool {
    screen.contains(text) && screen.trim_end().ends_with('>')
}

/// A call runs for so long that its time is shown.
fn runs(screen: &str) -> bool {
    screen.split_once('▸').is_some_and(|(_, call)| call.contains(" s "))
}

impl Scene {
    fn at(&self, columns: u16, colours: &str) -> Picture {
        let server = Server::start((self.replies)());
        let approve = if self.runs_commands { "all" } else { "ask" };
        // The time is never the same.
        let status = "ui.status=[model, tokens, cost, context]";
        let run = Run::new().args(["chat", "--approve", approve, "--set", status]);
        let run = run.server(&server).env("COLORFGBG", colours);
        let run = run.file(
            "net.rs",
            "use std::time::Duration;\n\nfn timeout() -> Duration {\n    Duration::from_secs(30)\n}\n",
        );
        let run = MODELS.iter().fold(run, |run, (name, text)| run.config(&format!("models/{name}.yaml"), text));
        let mut terminal = Terminal::sized(&run, columns, 24);
        terminal.wait_for("> ");
        if !self.says.is_empty() {
            terminal.line(self.says);
        }
        if !self.types.is_empty() {
            // Before a question can be seen, keys are not for it.
            let last = if self.says.is_empty() { "" } else { "Explain" };
            terminal.wait_until("the prompt", |screen| prompts(screen, last));
            terminal.keys(self.types);
        }
        // A narrow screen breaks the words.
        terminal.wait_until(self.name, |screen| (self.is_there)(&(screen.replace('\n', " ") + " ")));
        let host = server.url().replace("http://", "").replace("/v1", "");
        terminal.picture().with(&host, "127.0.0.1:8080")
    }

    /// The text and the looks are those of the snapshot, on a dark background as on a light one. The colours are not:
    /// on dark they are the bright ones.
    fn holds(&self) {
        for columns in [40, 80, 200] {
            let [dark, light] = [DARK_TERMINAL, LIGHT_TERMINAL].map(|colours| self.at(columns, colours));
            let shown = dark.notation();
            assert_eq!(light.notation(), shown, "{} at {columns} columns on a light background", self.name);
            let colours = format!("dark: {:?}\nlight: {:?}\n", dark.colours(), light.colours());
            insta::assert_snapshot!(format!("screen_{}_{columns}", self.name), shown + &colours);
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
fn a_list_of_models_to_pick_from() {
    MODEL.holds();
}

#[test]
fn a_line_of_several_rows() {
    LINE.holds();
}

#[test]
fn what_completes_the_line() {
    COMPLETIONS.holds();
}

#[test]
fn words_typed_at_a_question() {
    QUESTION_AND_LINE.holds();
}

#[test]
fn the_pictures_of_the_tour_are_what_the_scenes_draw() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tour");
    let blesses = std::env::var_os("BLESS").is_some();
    let pictures: [(Scene, &str, &Palette); 9] = [
        (FIRST_START, DARK_TERMINAL, &DARK),
        (ANSWER, DARK_TERMINAL, &DARK),
        (RUNNING, DARK_TERMINAL, &DARK),
        (APPROVAL, LIGHT_TERMINAL, &LIGHT),
        (TODO, DARK_TERMINAL, &DARK),
        (MODEL, LIGHT_TERMINAL, &LIGHT),
        (LINE, DARK_TERMINAL, &DARK),
        (COMPLETIONS, DARK_TERMINAL, &DARK),
        (QUESTION_AND_LINE, LIGHT_TERMINAL, &LIGHT),
    ];
    for (scene, colours, palette) in pictures {
        let path = folder.join(format!("{}.svg", scene.name));
        let drawn = scene.at(80, colours).svg(palette);
        if blesses {
            std::fs::write(path, drawn).expect("the picture can be written");
            continue;
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == drawn,
            "docs/tour/{}.svg is not what a chat shows now: .ci/tour draws it anew",
            scene.name
        );
    }
}
