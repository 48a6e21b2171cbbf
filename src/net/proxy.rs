//! A proxy that lets commands in the sandbox reach the hosts that the settings name, and nothing else.
//!
//! It listens where only they can connect, and connects from where this program runs. It speaks plain HTTP and
//! `CONNECT` (RFC 9110, 9.3.6): by name, then by every address that the name has, so that a name which leads to this
//! machine leads nowhere. It adds nothing to what it passes on.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::public::is_public;

/// The longest head of a request.
const MOST_HEAD: usize = 32 * 1024;

/// The hosts that may be reached: `crates.io`, `*.crates.io`, `localhost:8080`.
#[derive(Debug, Clone)]
pub struct Hosts(Vec<String>);

impl Hosts {
    #[must_use]
    pub fn new(hosts: &[String]) -> Self {
        Self(hosts.iter().map(|host| host.to_ascii_lowercase()).collect())
    }

    /// The entry that covers a host.
    fn entry(&self, host: &str, port: u16) -> Option<&str> {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        let covers = |entry: &&String| {
            let (name, of_port) = split(entry);
            let is_host = match name.strip_prefix("*.") {
                Some(domain) => {
                    host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
                }
                None => name == host,
            };
            is_host && of_port.is_none_or(|only| only == port)
        };
        self.0.iter().find(covers).map(String::as_str)
    }

    /// Whether a host may be reached at an address. One that is not public must be named as it is.
    fn allow(&self, host: &str, address: SocketAddr) -> bool {
        self.entry(host, address.port()).is_some_and(|entry| {
            let name = split(entry).0;
            is_public(address.ip()) || name == "localhost" || name.parse() == Ok(address.ip())
        })
    }
}

/// `host:port`, of which the port may be missing; `[::1]:80`.
fn split(authority: &str) -> (&str, Option<u16>) {
    let split = authority.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let (host, port) = match split {
        Some((host, port)) => (host, port.parse().ok()),
        None => (authority, None),
    };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

/// Serves on a thread of its own, until this program ends.
///
/// # Errors
/// When the thread cannot be started.
pub fn start(listener: std::net::TcpListener, hosts: Hosts) -> io::Result<()> {
    let serve = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(serve(listener, Arc::new(hosts)))
    };
    std::thread::Builder::new().name("proxy".to_owned()).spawn(serve).map(drop)
}

async fn serve(listener: std::net::TcpListener, hosts: Arc<Hosts>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (client, _) = listener.accept().await?;
        let hosts = Arc::clone(&hosts);
        tokio::spawn(async move {
            // Its end is the client's to see.
            let _ = pass(client, &hosts).await;
        });
    }
}

/// A request as far as the proxy needs it.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    host: String,
    port: u16,
    /// What the host is sent first; nothing for a tunnel.
    head: Vec<u8>,
}

async fn pass(mut client: TcpStream, hosts: &Hosts) -> io::Result<()> {
    let (head, rest) = head(&mut client).await?;
    let Some(target) = target(&head) else {
        return answer(&mut client, "400 Bad Request", "this is no request for a proxy").await;
    };
    let Target { host, port, head } = target;
    if hosts.entry(&host, port).is_none() {
        let why = format!("{host} is not among the hosts of sandbox.network");
        return answer(&mut client, "403 Forbidden", &why).await;
    }
    let mut server = match connect(&host, port, hosts).await {
        Ok(server) => server,
        Err(error) => return answer(&mut client, "502 Bad Gateway", &format!("{host}: {error}")).await,
    };
    if head.is_empty() {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    } else {
        server.write_all(&head).await?;
    }
    server.write_all(&rest).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// The head of a request, and what came after it.
async fn head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    const END: &[u8] = b"\r\n\r\n";
    let mut bytes = Vec::new();
    loop {
        if let Some(at) = bytes.windows(END.len()).position(|part| part == END) {
            let rest = bytes.split_off(at + END.len());
            return Ok((bytes, rest));
        }
        if bytes.len() > MOST_HEAD || client.read_buf(&mut bytes).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
    }
}

/// Reads the head: `CONNECT host:port`, or `GET http://host/path`, whose host then gets `GET /path` and a connection
/// for this request alone, as the next one may be for another host.
fn target(head: &[u8]) -> Option<Target> {
    let text = std::str::from_utf8(head).ok()?;
    let (line, fields) = text.split_once("\r\n")?;
    let mut words = line.split(' ');
    let (method, uri, version) = (words.next()?, words.next()?, words.next()?);
    if method == "CONNECT" {
        let (host, port) = split(uri);
        return Some(Target { host: host.to_owned(), port: port?, head: Vec::new() });
    }
    let rest = uri.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = split(authority.rsplit_once('@').map_or(authority, |(_, host)| host));
    let path = if path.is_empty() { "/" } else { path };
    // The host of the request line holds, not what a field says.
    let mut head = format!("{method} {path} {version}\r\nConnection: close\r\nHost: {authority}\r\n");
    let own = |field: &str| {
        let name = field.split(':').next().unwrap_or_default().trim();
        ["connection", "proxy-connection", "proxy-authorization", "host"]
            .iter()
            .any(|own| name.eq_ignore_ascii_case(own))
    };
    fields.split("\r\n").filter(|field| !field.is_empty() && !own(field)).for_each(|field| {
        head += field;
        head += "\r\n";
    });
    head += "\r\n";
    Some(Target { host: host.to_owned(), port: port.unwrap_or(80), head: head.into_bytes() })
}

async fn connect(host: &str, port: u16, hosts: &Hosts) -> io::Result<TcpStream> {
    let mut refused = io::Error::other("no address");
    for address in tokio::net::lookup_host((host, port)).await? {
        if !hosts.allow(host, address) {
            refused = io::Error::other(format!(
                "{} is an address of this machine or of a private network",
                address.ip()
            ));
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(server) => return Ok(server),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

async fn answer(client: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{why}\n",
        why.len() + 1
    );
    client.write_all(text.as_bytes()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_allowed_by_its_name_and_its_address() {
        let named = ["crates.io", "*.Example.com", "localhost:8080", "10.0.0.7"].map(str::to_owned);
        let hosts = Hosts::new(&named);
        let table = [
            ("crates.io", "1.1.1.1:443", true),
            ("CRATES.io.", "1.1.1.1:443", true),
            ("evil-crates.io", "1.1.1.1:443", false),
            ("crates.io.evil.com", "1.1.1.1:443", false),
            ("crates.io", "127.0.0.1:443", false),
            ("crates.io", "169.254.169.254:80", false),
            ("a.example.com", "1.1.1.1:443", true),
            ("example.com", "1.1.1.1:443", false),
            ("badexample.com", "1.1.1.1:443", false),
            ("localhost", "127.0.0.1:8080", true),
            ("localhost", "127.0.0.1:22", false),
            ("10.0.0.7", "10.0.0.7:80", true),
            ("10.0.0.8", "10.0.0.8:80", false),
        ];
        for (host, address, allowed) in table {
            assert_eq!(hosts.allow(host, address.parse().expect("an address")), allowed, "{host} {address}");
        }
    }

    #[test]
    fn a_request_is_passed_on_without_what_is_the_proxy_s() {
        let tunnel = target(b"CONNECT crates.io:443 HTTP/1.1\r\nHost: x\r\n\r\n").expect("a tunnel");
        assert_eq!((tunnel.host.as_str(), tunnel.port, tunnel.head.len()), ("crates.io", 443, 0));
        let plain = target(
            b"GET http://a.b:81/c?d HTTP/1.1\r\nHost: evil\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\nA: b\r\n\r\n",
        );
        let plain = plain.expect("a request");
        let head = "GET /c?d HTTP/1.1\r\nConnection: close\r\nHost: a.b:81\r\nA: b\r\n\r\n";
        assert_eq!((plain.host.as_str(), plain.port), ("a.b", 81));
        assert_eq!(String::from_utf8_lossy(&plain.head), head);
        for wrong in ["GET / HTTP/1.1\r\n\r\n", "CONNECT crates.io HTTP/1.1\r\n\r\n", "x\r\n\r\n", "\r\n\r\n"] {
            assert_eq!(target(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
