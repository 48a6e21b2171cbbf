//! The floor: the least that a client can do. One socket, one decoder, one shell; no agent.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, ExitCode};

use serde::Deserialize;

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    content: Option<&'a str>,
    #[serde(borrow, default)]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<&'a str>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    arguments: std::borrow::Cow<'a, str>,
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
}

/// `ADDRESS TASK`
pub fn main(args: &[String]) -> ExitCode {
    let [address, task] = args else { return ExitCode::from(2) };
    match talk(address, task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn talk(address: &str, task: &str) -> std::io::Result<()> {
    let mut writing = TcpStream::connect(address)?;
    writing.set_nodelay(true)?;
    let mut reading = BufReader::with_capacity(64 * 1024, writing.try_clone()?);
    let mut messages = format!("{{\"role\":\"user\",\"content\":{}}}", serde_json::to_string(task)?);
    loop {
        let body = format!(
            "{{\"model\":\"scripted\",\"stream\":true,\"stream_options\":{{\"include_usage\":true}},\"messages\":[{messages}]}}"
        );
        write!(
            writing,
            "POST /s/floor/v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let Some((id, arguments)) = answer(&mut reading)? else { return Ok(()) };
        let command = serde_json::from_str::<Arguments>(&arguments)?.command;
        let output = Command::new("sh").arg("-c").arg(command).output()?;
        let _ = write!(
            messages,
            ",{{\"role\":\"assistant\",\"tool_calls\":[{{\"id\":\"{id}\",\"type\":\"function\",\"function\":\
             {{\"name\":\"shell\",\"arguments\":{}}}}}]}},{{\"role\":\"tool\",\"tool_call_id\":\"{id}\",\"content\":{}}}",
            serde_json::to_string(&arguments)?,
            serde_json::to_string(&String::from_utf8_lossy(&output.stdout))?
        );
    }
}

/// Prints one reply as it comes, joined per read; the call in it, if any.
fn answer(reading: &mut BufReader<TcpStream>) -> std::io::Result<Option<(String, String)>> {
    let mut line = String::new();
    while {
        line.clear();
        reading.read_line(&mut line)? > 2
    } {}
    let (mut text, mut call, mut chunk) = (String::new(), None, Vec::new());
    let mut stdout = std::io::stdout().lock();
    loop {
        line.clear();
        reading.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
        chunk.resize(length + 2, 0);
        reading.read_exact(&mut chunk)?;
        if length == 0 {
            break;
        }
        let event = chunk.strip_prefix(b"data: ").unwrap_or_default().trim_ascii_end();
        for choice in serde_json::from_slice::<Chunk<'_>>(event).map(|chunk| chunk.choices).unwrap_or_default() {
            text.push_str(choice.delta.content.unwrap_or_default());
            if let Some(begun) = choice.delta.tool_calls.into_iter().next() {
                call = Some((begun.id.unwrap_or_default().to_owned(), begun.function.arguments.into_owned()));
            }
        }
        if reading.buffer().is_empty() {
            stdout.write_all(text.as_bytes())?;
            text.clear();
        }
    }
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(call)
}
