//! Holds a conversation with `agent acp` over its stdin and stdout: the Rust of docs/sdk.md.
#![allow(clippy::print_stdout, reason = "the answer is for the person who runs it")]

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};

use serde_json::{Value, json};

fn send(agent: &mut ChildStdin, message: &Value) -> std::io::Result<()> {
    writeln!(agent, "{message}")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut command = Command::new("agent");
    let mut child =
        command.args(["acp", "--approve", "ask"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (mut agent, output) = (child.stdin.take().ok_or("no stdin")?, child.stdout.take().ok_or("no stdout")?);
    let mut lines = BufReader::new(output).lines();
    let mut ask = |id: u32, method: &str, params: Value| -> Result<Value, Box<dyn std::error::Error>> {
        send(&mut agent, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        for line in &mut lines {
            let message: Value = serde_json::from_str(&line?)?;
            match message["method"].as_str() {
                Some("session/update")
                    if message["params"]["update"]["sessionUpdate"] == "agent_message_chunk" =>
                {
                    print!("{}", message["params"]["update"]["content"]["text"].as_str().unwrap_or_default());
                }
                Some("session/request_permission") => {
                    let options = message["params"]["options"].as_array().ok_or("no options")?;
                    let once =
                        options.iter().find(|option| option["kind"] == "allow_once").ok_or("no such option")?;
                    let outcome = json!({ "outcome": "selected", "optionId": once["optionId"] });
                    let answer = json!({ "outcome": outcome });
                    send(&mut agent, &json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer }))?;
                }
                None if message["id"] == id => return Ok(message["result"].clone()),
                _ => {}
            }
        }
        Err("the agent has ended".into())
    };
    ask(1, "initialize", json!({ "protocolVersion": 1 }))?;
    let session = ask(2, "session/new", json!({ "cwd": std::env::current_dir()?, "mcpServers": [] }))?;
    let prompt = json!([{ "type": "text", "text": "Write hello.txt." }]);
    let done = ask(3, "session/prompt", json!({ "sessionId": session["sessionId"], "prompt": prompt }))?;
    println!("\n{}", done["stopReason"].as_str().unwrap_or_default());
    Ok(())
}
