//! A browser that comes back to this program: it is sent to an address, and ends at a port of this machine. Where it is on
//! another one, the address that it ends at can be pasted.

use std::io::{self, BufRead};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
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

    /// Waits until the browser comes back; the address that it asked for. Browsers open connections ahead of need, which stay
    /// silent: they hold up none.
    async fn accept(&self) -> io::Result<String> {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => open.push(take_callback(accepted?.0)),
                Some(path) = open.next(), if !open.is_empty() => {
                    if let Some(path) = path {
                        return Ok(format!("{}{path}", self.home));
                    }
                }
            }
        }
    }
}

/// The path of a connection's request, if it is the one that the browser was sent to: it asks for more, such as an icon.
async fn take_callback(mut stream: TcpStream) -> Option<String> {
    let mut request = vec![0; REQUEST];
    let read = stream.read(&mut request).await.ok()?;
    let request = String::from_utf8_lossy(&request[..read]);
    let path = request.strip_prefix("GET ").and_then(|rest| rest.split(' ').next())?;
    let path = Some(path).filter(|path| path.starts_with("/callback?"))?.to_owned();
    let _ = stream.write_all(PAGE.as_bytes()).await;
    Some(path)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_that_say_nothing_hold_up_none() {
        let home = BrowserReturn::open("127.0.0.1", None).await.expect("a port");
        let address = home.home.strip_prefix("http://").expect("an address").to_owned();
        let _silent = TcpStream::connect(&address).await.expect("it listens");
        let browser = async {
            let mut icon = TcpStream::connect(&address).await.expect("it listens");
            icon.write_all(b"GET /favicon.ico HTTP/1.1\r\n\r\n").await.expect("it reads");
            let mut stream = TcpStream::connect(&address).await.expect("it listens");
            stream.write_all(b"GET /callback?code=1 HTTP/1.1\r\n\r\n").await.expect("it reads");
            stream
        };
        let (came, _stream) = tokio::join!(home.accept(), browser);
        assert_eq!(came.expect("it comes"), format!("http://{address}/callback?code=1"));
    }
}
