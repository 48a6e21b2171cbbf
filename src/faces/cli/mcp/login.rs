//! `agent mcp login / logout`: a person allows the server's use in a browser. It comes back to a port of this machine; where
//! the browser is on another one, the address that it ends at can be pasted.

use std::io::{self, BufRead};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::agent::assembly;
use crate::config::suggest;
use crate::faces::cli::setup::{CliSetup, build_runtime};
use crate::faces::cli::{CommandFailure, CommandOutcome, exit, print_text};
use crate::safety::net::Net;
use crate::tools::{TokenFile, begin_login};

/// The most bytes of a browser's request that matter.
const REQUEST: usize = 16 * 1024;
/// What the browser shows in the end.
const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n\
    The agent has its answer. You can close this page.\n";

pub(super) fn log_in(setup: &CliSetup, name: &str) -> CommandOutcome {
    let (net, url, tokens) = find_server(setup, name)?;
    let failed = |why: String| CommandFailure::word(exit::AUTHENTICATION, format!("the server `{name}` {why}"));
    let runtime = build_runtime()?;
    let done = runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let home = format!("http://127.0.0.1:{}", listener.local_addr()?.port());
        let (login, address) = begin_login(&net, &url, &format!("{home}/callback"), &tokens).await.map_err(failed)?;
        print_text(format!(
            "Open this address in a browser:\n\n  {address}\n\nIf the browser is on another machine, paste the address that it ends \
             at, then Enter.\n"
        ))?;
        let pasted = read_line()?;
        let back = tokio::select! {
            came = wait_for_browser(&listener, &home) => came?,
            Ok(line) = pasted => line,
        };
        login.finish(back.trim()).await.map_err(failed)
    });
    // A thread may still read a line.
    runtime.shutdown_background();
    done?;
    print_text(format!("Logged in to {name}.\n"))
}

pub(super) fn log_out(setup: &CliSetup, name: &str) -> CommandOutcome {
    let (_, _, tokens) = find_server(setup, name)?;
    if tokens.remove()? {
        return print_text(format!("Logged out of {name}.\n"));
    }
    Err(CommandFailure::usage(format!("there is no login to {name}")))
}

/// The way out, the address of a server, and the file of its tokens.
fn find_server(setup: &CliSetup, name: &str) -> Result<(Net, String, TokenFile), CommandFailure> {
    let (_, config) = setup.load()?;
    let with_address = || config.servers.values().filter_map(|server| Some((&server.name, server.url.as_ref()?)));
    let Some((_, url)) = with_address().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = with_address().map(|(name, _)| name.as_str()).collect();
        let hint = suggest(name, &known, "configured");
        return Err(CommandFailure::usage(format!("no server with an address is called `{name}`: {hint}")));
    };
    let tokens = TokenFile::new(&config.mcp_token_dir(), url);
    Ok((assembly::open_net(&config), url.clone(), tokens))
}

/// Waits until the browser comes back; the address that it asked for.
async fn wait_for_browser(listener: &TcpListener, home: &str) -> io::Result<String> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let mut request = vec![0; REQUEST];
        let read = stream.read(&mut request).await?;
        let request = String::from_utf8_lossy(&request[..read]);
        let path = request.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
        // A browser asks for more than it was sent to, such as an icon.
        if let Some(path) = path.filter(|path| path.starts_with("/callback?")) {
            let _ = stream.write_all(PAGE.as_bytes()).await;
            return Ok(format!("{home}{path}"));
        }
    }
}

/// The next line of stdin, read on a thread: nobody need type it.
fn read_line() -> io::Result<oneshot::Receiver<String>> {
    let (sender, receiver) = oneshot::channel();
    let read = move || {
        let mut line = String::new();
        if matches!(io::stdin().lock().read_line(&mut line), Ok(1..)) && !line.trim().is_empty() {
            let _ = sender.send(line);
        } else {
            // The end of stdin is no answer.
            std::mem::forget(sender);
        }
    };
    std::thread::Builder::new().name("answer".to_owned()).spawn(read)?;
    Ok(receiver)
}
