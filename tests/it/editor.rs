//! An editor that speaks the Agent Client Protocol, for tests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::run::{Place, Run};
use crate::server::Server;

/// An editor with its agent.
pub struct Editor {
    pub agent: Child,
    pub input: ChildStdin,
    pub output: BufReader<ChildStdout>,
    pub place: Arc<Place>,
    /// Every update so far.
    pub updates: Vec<Value>,
    /// Every question so far.
    pub questions: Vec<Value>,
    /// The option that answers them; `None` leaves them open.
    pub answer: Option<&'static str>,
    /// The files with changes that are not saved, by their names in the workspace.
    pub unsaved: BTreeMap<&'static str, String>,
    /// The names of the files that the agent wanted to know something about, or wanted saved.
    pub asked_files: Vec<String>,
    number: u64,
}

impl Editor {
    pub fn start(place: &Arc<Place>, server: Option<&Server>, args: &[&str]) -> Self {
        let run = Run::at(place).arg("acp").args(args.iter().copied());
        let run = match server {
            Some(server) => run.server(server),
            None => run,
        };
        Self::of(&run)
    }

    pub fn of(run: &Run) -> Self {
        let mut command = run.command();
        let mut agent = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (agent.stdin.take().expect("piped"), agent.stdout.take().expect("piped"));
        let (updates, questions) = (Vec::new(), Vec::new());
        let output = BufReader::new(output);
        let place = run.place();
        Self {
            agent,
            input,
            output,
            place,
            updates,
            questions,
            answer: Some("yes"),
            unsaved: BTreeMap::new(),
            asked_files: Vec::new(),
            number: 0,
        }
    }

    pub fn write(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the agent reads");
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.number += 1;
        let number = self.number;
        self.write(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params }).to_string());
        number
    }

    /// Reads one message; keeps updates, and answers questions.
    pub fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).expect("it is text") > 0, "the agent is gone");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        match message["method"].as_str() {
            Some("session/update") => self.updates.push(message["params"]["update"].clone()),
            Some("session/request_permission") => {
                self.questions.push(message["params"].clone());
                if let Some(option) = self.answer {
                    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
                    self.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": outcome }).to_string());
                }
            }
            Some(method @ ("fs/read_text_file" | "fs/write_text_file")) => {
                let answer = self.answer_about_file(method, &message["params"]);
                self.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer }).to_string());
            }
            Some("elicitation/create") => {
                self.questions.push(message["params"].clone());
                let content = json!({ "action": "accept", "content": { "words": "the blue one" } });
                self.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": content }).to_string());
            }
            _ => {}
        }
        message
    }

    pub fn answer_about_file(&mut self, method: &str, params: &Value) -> Value {
        let path = params["path"].as_str().expect("a path").to_owned();
        let name = Path::new(&path).file_name().and_then(|name| name.to_str()).expect("a name");
        self.asked_files.push(format!("{method} {name}"));
        if method == "fs/write_text_file" {
            std::fs::write(&path, params["content"].as_str().expect("a text")).expect("a file");
            self.unsaved.remove(name);
            return Value::Null;
        }
        let saved = || std::fs::read_to_string(&path).expect("a file");
        json!({ "content": self.unsaved.get(name).cloned().unwrap_or_else(saved) })
    }

    pub fn wait(&mut self, number: u64) -> Value {
        loop {
            let message = self.read();
            if message["id"] == number && message["method"].is_null() {
                return message;
            }
        }
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let number = self.send(method, params);
        self.wait(number)
    }

    /// A new session in the workspace.
    pub fn begin(&mut self) -> String {
        let params = json!({ "cwd": self.place.workspace(), "mcpServers": [] });
        let begun = self.ask("session/new", &params);
        begun["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned()
    }

    pub fn prompt(&mut self, session: &str, text: &str) -> Value {
        self.ask("session/prompt", &say(session, text))
    }

    pub fn texts(&self, kind: &str) -> String {
        let of_kind = self.updates.iter().filter(|update| update["sessionUpdate"] == kind);
        of_kind.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    pub fn updates_of(&self, kind: &str) -> Vec<&Value> {
        self.updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// Closes the editor's end; the exit code of the agent.
    pub fn close(self) -> Option<i32> {
        let Self { mut agent, input, .. } = self;
        drop(input);
        agent.wait().expect("it ends").code()
    }
}

/// The parameters of a message.
pub fn say(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}
