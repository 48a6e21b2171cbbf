//! A proxy that lets commands in the sandbox reach the hosts that the settings name, and nothing else.
//!
//! It listens where only they can connect, and connects from where this program runs. It supports plain HTTP and
//! `CONNECT` (RFC 9110, 9.3.6), and checks the name, then every address of the name, so that a name which leads to this
//! machine is refused. It adds nothing to what it forwards. If the machine itself needs a proxy, allowed requests go
//! through that one, which looks the name up again.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use reqwest::Url;

use super::proxies::{LONGEST_CHECK, Proxies, is_private_name};
use super::public::is_public;
use super::strip_brackets;

/// The longest head of a request.
const MOST_HEAD: usize = 32 * 1024;

/// The hosts that may be reached: `crates.io`, `*.crates.io`, `localhost:8080`.
#[derive(Debug, Clone)]
pub struct Hosts {
    named: Vec<String>,
    proxies: Proxies,
}

impl Hosts {
    /// These hosts, through the proxies of this machine.
    pub fn new(hosts: &[String], proxies: Proxies) -> Self {
        Self { named: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(), proxies }
    }

    /// The entry that covers a host.
    fn entry(&self, host: &str, port: u16) -> Option<&str> {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        let covers = |entry: &&String| {
            let (name, of_port) = split_authority(entry);
            let is_host = match name.strip_prefix("*.") {
                Some(domain) => {
                    host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
                }
                None => name == host,
            };
            is_host && of_port.is_none_or(|only| only == port)
        };
        self.named.iter().find(covers).map(String::as_str)
    }

    /// True if a host may be reached at an address. One that is not public must be listed explicitly.
    fn allow(&self, host: &str, address: SocketAddr) -> bool {
        self.entry(host, address.port()).is_some_and(|entry| {
            let name = split_authority(entry).0;
            is_public(address.ip()) || name == "localhost" || name.parse() == Ok(address.ip())
        })
    }
}

/// Splits `host:port`, whose port may be missing, or `[::1]:80`.
fn split_authority(authority: &str) -> (&str, Option<u16>) {
    let split = authority.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let (host, port) = split.map_or((authority, None), |(host, port)| (host, port.parse().ok()));
    (strip_brackets(host), port)
}

/// Serves on a separate thread, until this program ends.
///
/// # Errors
/// The thread cannot be started.
pub fn start_proxy(listener: std::net::TcpListener, hosts: Hosts) -> io::Result<()> {
    let serve = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(serve_clients(listener, Arc::new(hosts)))
    };
    std::thread::Builder::new().name("proxy".to_owned()).spawn(serve).map(drop)
}

async fn serve_clients(listener: std::net::TcpListener, hosts: Arc<Hosts>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (client, _) = listener.accept().await?;
        let hosts = Arc::clone(&hosts);
        tokio::spawn(async move {
            // The client notices the end.
            let _ = pass_client(client, &hosts).await;
        });
    }
}

/// The parts of a request that the proxy needs.
#[derive(Debug, PartialEq, Eq)]
struct ProxyTarget {
    host: String,
    port: u16,
    /// `None` for a tunnel.
    request: Option<PlainRequest>,
}

/// A request of plain HTTP that is forwarded.
#[derive(Debug, PartialEq, Eq)]
struct PlainRequest {
    method: String,
    /// `host:port` as the client wrote it.
    authority: String,
    path: String,
    version: String,
    /// The fields that are forwarded, each with its line end.
    fields: String,
}

/// The receiver of a request.
#[derive(Clone, Copy)]
enum To<'l> {
    Host,
    /// Another proxy, with its login.
    Proxy(Option<&'l str>),
}

async fn pass_client(mut client: TcpStream, hosts: &Hosts) -> io::Result<()> {
    let (head, rest) = read_head(&mut client).await?;
    let Some(target) = parse_target(&head) else {
        return answer_client(&mut client, "400 Bad Request", "this is not a request for a proxy").await;
    };
    let (host, port) = (&target.host, target.port);
    if hosts.entry(host, port).is_none() {
        let why = format!("{host} is not among the hosts of sandbox.network");
        return answer_client(&mut client, "403 Forbidden", &why).await;
    }
    let (mut server, head) = match connect_target(&target, hosts).await {
        Ok(connected) => connected,
        Err(error) => return answer_client(&mut client, "502 Bad Gateway", &format!("{host}: {error}")).await,
    };
    if target.request.is_none() {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    }
    server.write_all(&head).await?;
    server.write_all(&rest).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

impl PlainRequest {
    /// The head of the request, for a separate connection: the client's next request may be for another host.
    fn head(&self, to: To<'_>) -> Vec<u8> {
        let Self { method, authority, path, version, fields } = self;
        let (origin, login) = match to {
            To::Host => (String::new(), None),
            To::Proxy(login) => (format!("http://{authority}"), login),
        };
        let login = login.map(|login| format!("Proxy-Authorization: {login}\r\n")).unwrap_or_default();
        // The host of the request line counts, not a field.
        format!(
            "{method} {origin}{path} {version}\r\nConnection: close\r\nHost: {authority}\r\n{login}{fields}\r\n"
        )
        .into_bytes()
    }
}

/// The head of a request, and the bytes after it.
async fn read_head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
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

/// Reads the head: `CONNECT host:port`, or `GET http://host/path`.
fn parse_target(head: &[u8]) -> Option<ProxyTarget> {
    let text = std::str::from_utf8(head).ok()?;
    let (line, fields) = text.split_once("\r\n")?;
    let mut words = line.split(' ');
    let (method, uri, version) = (words.next()?, words.next()?, words.next()?);
    if method == "CONNECT" {
        let (host, port) = split_authority(uri);
        return Some(ProxyTarget { host: host.to_owned(), port: port?, request: None });
    }
    let rest = uri.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = split_authority(authority);
    let own = |field: &str| {
        let name = field.split(':').next().unwrap_or_default().trim();
        ["connection", "proxy-connection", "proxy-authorization", "host"]
            .iter()
            .any(|own| name.eq_ignore_ascii_case(own))
    };
    let fields = fields.split("\r\n").filter(|field| !field.is_empty() && !own(field));
    let request = PlainRequest {
        method: method.to_owned(),
        authority: authority.to_owned(),
        path: if path.is_empty() { "/" } else { path }.to_owned(),
        version: version.to_owned(),
        fields: fields.flat_map(|field| [field, "\r\n"]).collect(),
    };
    Some(ProxyTarget { host: host.to_owned(), port: port.unwrap_or(80), request: Some(request) })
}

/// A connection towards a host, and the head that is sent on it first.
async fn connect_target(target: &ProxyTarget, hosts: &Hosts) -> io::Result<(TcpStream, Vec<u8>)> {
    let ProxyTarget { host, port, request } = target;
    let scheme = if request.is_some() { "http" } else { "https" };
    let bare = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let url = Url::parse(&format!("{scheme}://{bare}:{port}/")).map_err(io::Error::other)?;
    let head = |to| request.as_ref().map(|request| request.head(to)).unwrap_or_default();
    let Some(proxy) = hosts.proxies.choose(&url).map_err(io::Error::other)? else {
        return Ok((connect_directly(host, *port, hosts).await?, head(To::Host)));
    };
    check_host(host, *port, hosts).await?;
    if request.is_some() && proxy.takes_requests() {
        return Ok((proxy.connect().await?, head(To::Proxy(proxy.login()))));
    }
    Ok((proxy.tunnel(host, *port).await?, head(To::Host)))
}

async fn connect_directly(host: &str, port: u16, hosts: &Hosts) -> io::Result<TcpStream> {
    let mut refused = io::Error::other("no address");
    for address in tokio::net::lookup_host((host, port)).await? {
        if !hosts.allow(host, address) {
            refused = is_private(address);
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(server) => return Ok(server),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Checks the addresses of a host that a proxy will look up again, or only the form of a name that cannot be looked up
/// here.
async fn check_host(host: &str, port: u16, hosts: &Hosts) -> io::Result<()> {
    match tokio::time::timeout(LONGEST_CHECK, tokio::net::lookup_host((host, port))).await {
        Ok(Ok(mut addresses)) => addresses
            .find(|address| !hosts.allow(host, *address))
            .map_or(Ok(()), |address| Err(is_private(address))),
        _ if is_private_name(host) => Err(io::Error::other(
            "it is by its name a host of a private network, and no address was found to judge",
        )),
        _ => Ok(()),
    }
}

fn is_private(address: SocketAddr) -> io::Error {
    io::Error::other(format!("{} is an address of this machine or of a private network", address.ip()))
}

async fn answer_client(client: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
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
        let hosts = Hosts::new(&named, Proxies::default());
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
        let tunnel = parse_target(b"CONNECT crates.io:443 HTTP/1.1\r\nHost: x\r\n\r\n").expect("a tunnel");
        assert_eq!((tunnel.host.as_str(), tunnel.port, tunnel.request), ("crates.io", 443, None));
        let plain = parse_target(
            b"GET http://me:word@a.b:81/c?d HTTP/1.1\r\nHost: evil\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\nA: b\r\n\r\n",
        );
        let plain = plain.expect("a request");
        assert_eq!((plain.host.as_str(), plain.port), ("a.b", 81));
        let request = plain.request.expect("plain HTTP");
        let head = |to| String::from_utf8(request.head(to)).expect("text");
        let tail = "Connection: close\r\nHost: a.b:81\r\n";
        assert_eq!(head(To::Host), format!("GET /c?d HTTP/1.1\r\n{tail}A: b\r\n\r\n"));
        assert_eq!(head(To::Proxy(None)), format!("GET http://a.b:81/c?d HTTP/1.1\r\n{tail}A: b\r\n\r\n"));
        let login =
            format!("GET http://a.b:81/c?d HTTP/1.1\r\n{tail}Proxy-Authorization: Basic x\r\nA: b\r\n\r\n");
        assert_eq!(head(To::Proxy(Some("Basic x"))), login);
        for wrong in ["GET / HTTP/1.1\r\n\r\n", "CONNECT crates.io HTTP/1.1\r\n\r\n", "x\r\n\r\n", "\r\n\r\n"] {
            assert_eq!(parse_target(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
