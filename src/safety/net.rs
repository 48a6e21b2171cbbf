//! HTTP clients: made when they are first needed and shared by every request of a process, so that connections are
//! reused from step to step.
//!
//! Nothing is done in advance: no client, no TLS provider, no certificate is loaded before the first request, and a
//! plain `http://` address never loads certificates at all (they take longer than the rest of the startup).

mod fetch;
mod proxies;
pub mod proxy;
mod public;
mod reuse;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Proxy, Url};

pub use fetch::{FetchError, FetchRules, Fetched};
pub use proxies::Proxies;
pub use reuse::SendError;

use crate::base::secrets::without_credentials;
use proxies::ProxyRoute;

/// The user agent of every request.
const USER_AGENT: &str = concat!("agent/", env!("CARGO_PKG_VERSION"));

/// The way out of the process.
#[derive(Debug, Default)]
pub struct Net {
    roots: Option<PathBuf>,
    proxies: Proxies,
    clients: Mutex<HashMap<ClientKind, Client>>,
    served: reuse::Served,
}

/// The reason that no client could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    #[error("`{url}` is not an http:// or https:// address: {why}")]
    Address { url: String, why: String },
    #[error("SSL_CERT_FILE names {}, which cannot be used: {why}", path.display())]
    Roots { path: PathBuf, why: String },
    /// Without the value, which may contain a password.
    #[error("{variable} is not the address of a proxy: {why}. Write it like http://HOST:PORT")]
    Proxy { variable: &'static str, why: String },
    #[error("the HTTP client cannot be set up: {0}")]
    Setup(String),
}

/// The properties of a client that a request cannot set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ClientKind {
    tls: bool,
    loopback: bool,
    connect_timeout: Duration,
}

impl ClientKind {
    /// `tls` is true if the way to a plain address begins with TLS.
    fn new(url: &Url, tls: bool, connect_timeout: Duration) -> Self {
        Self { tls: tls || url.scheme() == "https", loopback: is_loopback(url), connect_timeout }
    }
}

impl Net {
    /// Reads the variables that it knows: `SSL_CERT_FILE` names a PEM file whose certificates are trusted instead of
    /// the system's; those of proxies are checked, as the client ignores values that it cannot read.
    pub fn new<'e>(variable: impl Fn(&str) -> Option<&'e str>) -> Self {
        let roots = variable("SSL_CERT_FILE").map(PathBuf::from);
        Self { roots, proxies: Proxies::new(variable), ..Self::default() }
    }

    /// The proxies of this machine.
    pub fn proxies(&self) -> &Proxies {
        &self.proxies
    }

    /// The client for requests to `url`, shared by all addresses that can use the same one.
    pub fn client(&self, url: &Url, connect_timeout: Duration) -> Result<Client, NetError> {
        let kind = self.kind(url, connect_timeout)?;
        let mut clients = self.clients.lock().expect("no holder of the clients panics");
        if let Some(client) = clients.get(&kind) {
            return Ok(client.clone());
        }
        let client = set_up(self.builder(kind)?)?;
        Ok(clients.entry(kind).or_insert(client).clone())
    }

    /// Drops the client for requests to `url`, with its idle connections.
    fn renew(&self, url: &Url, connect_timeout: Duration) {
        if let Ok(kind) = self.kind(url, connect_timeout) {
            self.clients.lock().expect("no holder of the clients panics").remove(&kind);
        }
    }

    fn kind(&self, url: &Url, connect_timeout: Duration) -> Result<ClientKind, NetError> {
        let through = self.proxies.choose(url)?;
        Ok(ClientKind::new(url, through.is_some_and(|through| through.is_tls()), connect_timeout))
    }

    /// A client that connects only to these addresses, whatever the name of the host resolves to meanwhile.
    fn pin_addresses(
        &self,
        url: &Url,
        addresses: Vec<SocketAddr>,
        connect_timeout: Duration,
    ) -> Result<Client, NetError> {
        let kind = ClientKind { loopback: false, ..ClientKind::new(url, false, connect_timeout) };
        set_up(self.builder(kind)?.no_proxy().dns_resolver(Arc::new(Pinned(addresses))))
    }

    /// A client that goes through a proxy, whatever the environment says meanwhile.
    fn connect_through(
        &self,
        url: &Url,
        proxy: &ProxyRoute<'_>,
        connect_timeout: Duration,
    ) -> Result<Client, NetError> {
        let builder = self.builder(ClientKind::new(url, proxy.is_tls(), connect_timeout))?;
        set_up(builder.no_proxy().proxy(Proxy::all(proxy.address).map_err(|error| cannot_set_up(&error))?))
    }

    fn builder(&self, kind: ClientKind) -> Result<ClientBuilder, NetError> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // An error means that a provider is installed already, which serves as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let builder = Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(kind.connect_timeout)
            // A redirect would send the key to a host that nobody named.
            .redirect(Policy::none());
        let builder = if kind.loopback { of_this_machine(builder) } else { builder };
        Ok(match &self.roots {
            _ if !kind.tls => builder.tls_certs_only([]),
            Some(path) => builder.tls_certs_only(read_roots(path)?),
            // The system's own, which on Linux honours SSL_CERT_DIR as well.
            None => builder,
        })
    }
}

/// Bytes that nobody can guess.
///
/// # Errors
/// The system gives none.
pub fn make_random_bytes() -> Result<[u8; 32], String> {
    let mut bytes = [0; 32];
    let filled = rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes);
    filled.map(|()| bytes).map_err(|_| "the system gives no random numbers".to_owned())
}

fn set_up(builder: ClientBuilder) -> Result<Client, NetError> {
    builder.build().map_err(|error| cannot_set_up(&error))
}

fn cannot_set_up(error: &reqwest::Error) -> NetError {
    NetError::Setup(list_causes(error))
}

/// Adjusts a client for a server on this machine: it is never behind a proxy, whatever the variables say, and its
/// connection needs no keep-alive probes, since the system knows at once when it is gone.
fn of_this_machine(builder: ClientBuilder) -> ClientBuilder {
    let builder = builder.no_proxy().tcp_keepalive(None).tcp_keepalive_interval(None).tcp_keepalive_retries(None);
    #[cfg(target_os = "linux")]
    let builder = builder.tcp_user_timeout(None);
    builder
}

/// Answers every name with the same addresses.
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses = self.0.clone();
        Box::pin(async move { Ok(Box::new(addresses.into_iter()) as Box<_>) })
    }
}

/// Reads an address, with the scheme checked.
pub fn parse_url(text: &str) -> Result<Url, NetError> {
    let wrong = |why: String| NetError::Address { url: hide_user(text), why };
    let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        scheme => Err(wrong(format!("the scheme is `{scheme}`"))),
    }
}

/// The path that a `file:` address names, and what follows its `#`: RFC 8089 has its bytes encoded. `None` for others.
pub fn read_file_address(text: &str) -> Option<(PathBuf, Option<String>)> {
    let url = Url::parse(text).ok().filter(|url| url.scheme() == "file")?;
    Some((url.to_file_path().ok()?, url.fragment().map(str::to_owned)))
}

/// An address that cannot be read, without its credentials, wherever the host may begin in it.
fn hide_user(text: &str) -> String {
    const MASK: &str = "***";
    let shown = without_credentials(text, MASK);
    let start = shown.find("://").map_or(0, |at| at + 3);
    match shown.rfind('@').filter(|at| *at > start) {
        Some(end) => format!("{}{MASK}{}", &shown[..start], &shown[end..]),
        None => shown,
    }
}

/// An error with all its causes, without addresses, which can contain keys.
pub fn list_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = match error.downcast_ref::<reqwest::Error>() {
            // Its message only repeats the cause.
            Some(_) if error.source().is_some() => String::new(),
            _ => error.to_string(),
        };
        if !text.is_empty() && !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        next = error.source();
    }
    parts.join(": ")
}

fn read_roots(path: &PathBuf) -> Result<Vec<Certificate>, NetError> {
    let wrong = |why: String| NetError::Roots { path: path.clone(), why };
    if !path.metadata().map_err(|error| wrong(error.to_string()))?.is_file() {
        return Err(wrong("it is not a regular file".to_owned()));
    }
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let roots = Certificate::from_pem_bundle(&pem).map_err(|error| wrong(list_causes(&error)))?;
    if roots.is_empty() { Err(wrong("it contains no certificate".to_owned())) } else { Ok(roots) }
}

/// True if a host is this machine or in a private network, judging by its name or its numeric address, without a
/// lookup.
pub fn is_private(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    match strip_brackets(host).parse() {
        Ok(address) => !public::is_public(address),
        Err(_) => proxies::is_private_name(host),
    }
}

/// The address in `[::1]`; any other host as it is.
fn strip_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// True if the host is this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost" || strip_brackets(host).parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, good, loopback) in [
            ("https://api.openai.com/v1", true, false),
            ("http://localhost:11434/v1", true, true),
            ("http://127.0.0.1:8080/v1", true, true),
            ("http://[::1]:8080", true, true),
            ("http://localhost.example.com", true, false),
            ("ftp://x", false, false),
            ("localhost:8080", false, false),
            ("", false, false),
        ] {
            let url = parse_url(text);
            assert_eq!(url.is_ok(), good, "{text}");
            assert_eq!(url.is_ok_and(|url| is_loopback(&url)), loopback, "{text}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_read_is_named_without_its_password() {
        for (text, shown) in [
            ("http://user:word@gw.example:99999/v1", "http://***@gw.example:99999/v1"),
            ("http://user:wo/rd@gw.example/v1", "http://***@gw.example/v1"),
            ("ftp://user:w@rd@gw.example", "ftp://***@gw.example"),
            ("user:word@gw.example/v1", "***@gw.example/v1"),
            ("http://gw.example:99999/v1?key=word", "http://gw.example:99999/v1?key=***"),
            ("gw.example", "gw.example"),
        ] {
            let error = parse_url(text).expect_err("no address").to_string();
            assert!(error.starts_with(&format!("`{shown}` is not")), "{error}");
        }
    }

    #[test]
    fn what_is_private_is_seen_without_looking_it_up() {
        for (text, private) in [
            ("http://localhost:11434/v1", true),
            ("http://[::1]:8080/v1", true),
            ("http://192.168.1.7:8080/v1", true),
            ("http://gpu-box:8000/v1", true),
            ("http://gpu.local/v1", true),
            ("http://host.docker.internal:1234/v1", true),
            ("https://api.openai.com/v1", false),
            ("http://8.8.8.8/v1", false),
        ] {
            assert_eq!(is_private(&parse_url(text).expect("an address")), private, "{text}");
        }
    }

    #[test]
    fn one_client_for_what_can_share_it() {
        let net = Net::default();
        let timeout = Duration::from_secs(1);
        for url in ["http://127.0.0.1:1/a", "http://127.0.0.1:2/b", "http://example.com/"] {
            net.client(&parse_url(url).expect("an address"), timeout).expect("a client");
        }
        assert_eq!(net.clients.lock().expect("no panic").len(), 2);
    }

    #[test]
    fn what_is_no_proxy_is_an_error_for_the_connections_that_it_is_meant_for() {
        let net = Net::new(|name| (name == "https_proxy").then_some("http://user:word@a:b:c"));
        let client = |url: &str| net.client(&parse_url(url).expect("an address"), Duration::from_secs(1));
        let error = client("https://example.com").expect_err("no proxy").to_string();
        assert!(
            error.starts_with("https_proxy is not the address of a proxy") && !error.contains("word"),
            "{error}"
        );
        client("http://example.com").expect("it is for TLS alone");
        client("https://localhost").expect("a server on this machine is behind no proxy");
    }

    #[test]
    fn a_missing_certificate_file_is_named() {
        let net = Net::new(|name| (name == "SSL_CERT_FILE").then_some("/nowhere/roots.pem"));
        let url = parse_url("https://example.com").expect("an address");
        let error = net.client(&url, Duration::from_secs(1)).expect_err("no such file");
        assert!(error.to_string().starts_with("SSL_CERT_FILE names /nowhere/roots.pem, which cannot be used"));
    }
}
