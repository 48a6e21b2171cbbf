//! The one HTTP client: made when it is first needed, shared by every request of a process, so that connections live
//! from step to step.
//!
//! Nothing is paid for in advance: no client, no TLS provider, no certificate is loaded before the first request, and
//! a plain `http://` address never loads certificates at all (they cost more than the rest of a start).

mod fetch;
mod public;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Url};

pub use fetch::{FetchError, FetchRules, Fetched};

/// What every request names itself.
const USER_AGENT: &str = concat!("agent/", env!("CARGO_PKG_VERSION"));

/// The way out of the process.
#[derive(Debug, Default)]
pub struct Net {
    roots: Option<PathBuf>,
    clients: Mutex<HashMap<Kind, Client>>,
}

/// Why no client could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    #[error("`{url}` is not an http:// or https:// address: {why}")]
    Address { url: String, why: String },
    #[error("SSL_CERT_FILE names {}, which cannot be used: {why}", path.display())]
    Roots { path: PathBuf, why: String },
    #[error("the HTTP client cannot be set up: {0}")]
    Setup(String),
}

/// Clients differ only in what a client, not a request, decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    tls: bool,
    loopback: bool,
    connect_timeout: Duration,
}

impl Net {
    /// `roots` is the PEM file that `SSL_CERT_FILE` names: its certificates are then trusted instead of the system's.
    #[must_use]
    pub fn new(roots: Option<PathBuf>) -> Self {
        Self { roots, clients: Mutex::default() }
    }

    /// The client for requests to `url`. The same one is given for every address that can share it.
    pub fn client(&self, url: &Url, connect_timeout: Duration) -> Result<Client, NetError> {
        let kind = Kind { tls: url.scheme() == "https", loopback: is_loopback(url), connect_timeout };
        let mut clients = self.clients.lock().expect("no holder of the clients panics");
        if let Some(client) = clients.get(&kind) {
            return Ok(client.clone());
        }
        let client = self.builder(kind)?.build().map_err(|error| NetError::Setup(causes(&error)))?;
        clients.insert(kind, client.clone());
        Ok(client)
    }

    /// A client that connects to these addresses and to nothing else, whatever the name of the host says meanwhile.
    fn pinned(&self, url: &Url, addresses: &[SocketAddr], connect_timeout: Duration) -> Result<Client, NetError> {
        let kind = Kind { tls: url.scheme() == "https", loopback: false, connect_timeout };
        let builder = self.builder(kind)?.no_proxy().dns_resolver(Arc::new(Pinned(addresses.to_vec())));
        builder.build().map_err(|error| NetError::Setup(causes(&error)))
    }

    fn builder(&self, kind: Kind) -> Result<ClientBuilder, NetError> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // An error means that a provider is installed already, which serves as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let builder = Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(kind.connect_timeout)
            // A redirect would carry the key to a host that nobody named.
            .redirect(Policy::none());
        // A server on this machine is never behind a proxy, whatever the variables say.
        let builder = if kind.loopback { builder.no_proxy() } else { builder };
        Ok(match &self.roots {
            _ if !kind.tls => builder.tls_certs_only([]),
            Some(path) => builder.tls_certs_only(read_roots(path)?),
            // The system's own, which on Linux honours SSL_CERT_DIR as well.
            None => builder,
        })
    }
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
    let wrong = |why: String| NetError::Address { url: text.to_owned(), why };
    let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        scheme => Err(wrong(format!("the scheme is `{scheme}`"))),
    }
}

/// An error with everything that lies under it, without addresses: they can hold keys.
pub fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = match error.downcast_ref::<reqwest::Error>() {
            // Its own words only repeat what the cause says better.
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
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let roots = Certificate::from_pem_bundle(&pem).map_err(|error| wrong(causes(&error)))?;
    if roots.is_empty() { Err(wrong("it holds no certificate".to_owned())) } else { Ok(roots) }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
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
    fn one_client_for_what_can_share_it() {
        let net = Net::default();
        let timeout = Duration::from_secs(1);
        for url in ["http://127.0.0.1:1/a", "http://127.0.0.1:2/b", "http://example.com/"] {
            net.client(&parse_url(url).expect("an address"), timeout).expect("a client");
        }
        assert_eq!(net.clients.lock().expect("no panic").len(), 2);
    }

    #[test]
    fn a_missing_certificate_file_is_named() {
        let net = Net::new(Some(PathBuf::from("/nowhere/roots.pem")));
        let url = parse_url("https://example.com").expect("an address");
        let error = net.client(&url, Duration::from_secs(1)).expect_err("no such file");
        assert!(error.to_string().starts_with("SSL_CERT_FILE names /nowhere/roots.pem, which cannot be used"));
    }
}
