//! A browser that comes back to this program: it is sent to an address, and ends at a port of this machine. Where it is on
//! another one, the address that it ends at can be pasted.

use std::io::{self, BufRead};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::{CommandFailure, print_text};

/// The most bytes of a browser's request that matter.
const REQUEST: usize = 16 * 1024;
/// What the browser shows in the end.
const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n\
    The agent has its answer. You can close this page.\n";

/// The port that a browser comes back to.
pub(super) struct BrowserReturn {
    listener: TcpListener,
    home: String,
}

impl BrowserReturn {
    /// Opens a port of this machine: `port`, or any free one. `host` is what the browser calls it.
    pub async fn open(host: &str, port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await?;
        let home = format!("http://{host}:{}", listener.local_addr()?.port());
        Ok(Self { listener, home })
    }

    /// The address to come back to.
    pub fn callback(&self) -> String {
        format!("{}/callback", self.home)
    }

    /// Has a person open `address`. Returns the address that the browser ended at.
    pub async fn wait(&self, address: &str) -> Result<String, CommandFailure> {
        print_text(format!(
            "Open this address in a browser:\n\n  {address}\n\nIf the browser is on another machine, paste the address that it ends \
             at, then Enter.\n"
        ))?;
        let pasted = read_line()?;
        let back = tokio::select! {
            came = self.accept() => came?,
            Ok(line) = pasted => line,
        };
        Ok(back.trim().to_owned())
    }

    /// Waits until the browser comes back; the address that it asked for.
    async fn accept(&self) -> io::Result<String> {
        loop {
            let (mut stream, _) = self.listener.accept().await?;
            let mut request = vec![0; REQUEST];
            let read = stream.read(&mut request).await?;
            let request = String::from_utf8_lossy(&request[..read]);
            let path = request.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
            // A browser asks for more than it was sent to, such as an icon.
            if let Some(path) = path.filter(|path| path.starts_with("/callback?")) {
                let _ = stream.write_all(PAGE.as_bytes()).await;
                return Ok(format!("{}{path}", self.home));
            }
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
