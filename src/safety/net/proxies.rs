//! The proxies that the environment names: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and the exceptions of `NO_PROXY`,
//! also in lower case. Servers on this machine are never behind one.
//!
//! The proxy looks up names. If this machine can look up a name too, its addresses are judged as usual; if it cannot, a
//! name that by its form belongs to a private network is refused.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::service::Service;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use reqwest::Url;
use tokio::net::TcpStream;

use super::{NetError, strip_brackets};

/// The variables that name a proxy for TLS, for plain connections, and for both.
const TLS: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const PLAIN: [&str; 2] = ["HTTP_PROXY", "http_proxy"];
const ALL: [&str; 2] = ["ALL_PROXY", "all_proxy"];
/// The variables that name the hosts without a proxy.
const NONE: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The suffixes of names that are reserved for private networks (RFC 6761, 6762, 8375, 9476) or common in them.
const PRIVATE_ENDS: &str =
    "localhost local internal intranet private corp home lan home.arpa localdomain alt onion";

/// The time limit for looking up a name if a proxy does it anyway.
pub(super) const LONGEST_CHECK: Duration = Duration::from_secs(2);

/// The proxies of this machine. None by default.
#[derive(Debug, Clone, Default)]
pub struct Proxies(Arc<KnownProxies>);

#[derive(Default)]
struct KnownProxies {
    tls: Option<ProxyVariable>,
    plain: Option<ProxyVariable>,
    /// Applies `NO_PROXY`.
    matcher: Option<Matcher>,
}

/// A variable with its value.
struct ProxyVariable {
    variable: &'static str,
    /// With a scheme; may contain a password.
    address: String,
    /// The reason that it is not the address of a proxy.
    mistake: Option<String>,
}

/// A proxy between this machine and a host.
pub struct ProxyRoute<'p> {
    /// The address of the proxy, which may contain a password.
    pub address: &'p str,
    intercept: Intercept,
}

impl Proxies {
    /// Reads the variables.
    pub fn new<'e>(variable: impl Fn(&str) -> Option<&'e str>) -> Self {
        let find = |names: [&'static str; 2]| {
            let (variable, value) = names.iter().find_map(|name| Some((*name, variable(name)?)))?;
            let mistake = find_mistake(value);
            Some(ProxyVariable { variable, address: with_scheme(value), mistake })
        };
        let [tls, plain] = [TLS, PLAIN].map(|names| find(names).or_else(|| find(ALL)));
        let except = NONE.iter().find_map(|name| variable(name)).unwrap_or_default().to_owned();
        let address =
            |named: &Option<ProxyVariable>| named.as_ref().map(|named| named.address.clone()).unwrap_or_default();
        let matcher = Matcher::builder().https(address(&tls)).http(address(&plain)).no(except).build();
        Self(Arc::new(KnownProxies { tls, plain, matcher: Some(matcher) }))
    }

    /// The proxy for an address; `None` if it is reached directly.
    ///
    /// # Errors
    /// [`NetError::Proxy`] if the variable that names the proxy does not contain the address of one.
    pub fn choose(&self, url: &Url) -> Result<Option<ProxyRoute<'_>>, NetError> {
        let named = if url.scheme() == "https" { &self.0.tls } else { &self.0.plain };
        let Some(named) = named.as_ref().filter(|_| !super::is_loopback(url)) else { return Ok(None) };
        if let Some(why) = &named.mistake {
            return Err(NetError::Proxy { variable: named.variable, why: why.clone() });
        }
        // The path is irrelevant, and the matcher does not accept every path.
        let origin = url.origin().ascii_serialization();
        let intercept = origin.parse().ok().and_then(|uri: Uri| self.0.matcher.as_ref()?.intercept(&uri));
        Ok(intercept.map(|intercept| ProxyRoute { address: &named.address, intercept }))
    }
}

impl ProxyRoute<'_> {
    /// True if the connection to the proxy itself uses TLS.
    pub fn is_tls(&self) -> bool {
        self.intercept.uri().scheme_str() == Some("https")
    }

    /// True if the proxy forwards requests of plain HTTP that name the whole address.
    pub fn takes_requests(&self) -> bool {
        self.intercept.uri().scheme_str() == Some("http")
    }

    /// The value of `Proxy-Authorization`, if the address contains a login.
    pub fn login(&self) -> Option<&str> {
        self.intercept.basic_auth()?.to_str().ok()
    }

    /// Connects to the proxy itself.
    pub async fn connect(&self) -> io::Result<TcpStream> {
        let uri = self.intercept.uri();
        let port = uri.port_u16().unwrap_or(if self.takes_requests() { 80 } else { 1080 });
        TcpStream::connect((strip_brackets(uri.host().unwrap_or_default()), port)).await
    }

    /// A connection to a host through the proxy, as bytes.
    pub async fn tunnel(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let target =
            Uri::builder().scheme("https").authority(format!("{host}:{port}")).path_and_query("/").build();
        let target = target.map_err(io::Error::other)?;
        let proxy = self.intercept.uri().clone();
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        match proxy.scheme_str().unwrap_or_default() {
            "http" => {
                let tunnel = Tunnel::new(proxy, connector);
                let login = self.intercept.basic_auth().cloned();
                call_connector(login.map_or(tunnel.clone(), |login| tunnel.with_auth(login)), target).await
            }
            scheme @ ("socks5" | "socks5h") => {
                let socks = SocksV5::new(proxy.clone(), connector).local_dns(scheme == "socks5");
                let login = self.intercept.raw_auth();
                let with_login =
                    |(user, word): (&str, &str)| socks.clone().with_auth(user.to_owned(), word.to_owned());
                call_connector(login.map_or(socks.clone(), with_login), target).await
            }
            scheme @ ("socks4" | "socks4a") => {
                let socks = SocksV4::new(proxy.clone(), connector).local_dns(scheme == "socks4");
                call_connector(socks, target).await
            }
            scheme => {
                let why = format!("commands cannot use a proxy of the machine whose scheme is `{scheme}`");
                Err(io::Error::new(io::ErrorKind::Unsupported, why))
            }
        }
    }
}

async fn call_connector<S>(connector: S, target: Uri) -> io::Result<TcpStream>
where
    TowerToHyperService<S>: Service<Uri, Response = TokioIo<TcpStream>, Error: fmt::Display>,
{
    let stream = TowerToHyperService::new(connector).call(target).await;
    let failed = |error| io::Error::other(format!("the proxy of this machine: {error}"));
    stream.map(TokioIo::into_inner).map_err(failed)
}

/// True if a name belongs to a private network by its form: without a dot, or with a suffix that the internet does not
/// know.
pub(super) fn is_private_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let ends = |end: &str| host.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    !host.contains('.') || PRIVATE_ENDS.split(' ').any(ends)
}

fn with_scheme(text: &str) -> String {
    if text.contains("://") { text.to_owned() } else { format!("http://{text}") }
}

/// The reason that a text is not the address of a proxy. Without a scheme it is taken as http.
fn find_mistake(text: &str) -> Option<String> {
    const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];
    match Url::parse(&with_scheme(text)) {
        Err(error) => Some(error.to_string()),
        Ok(url) if !SCHEMES.contains(&url.scheme()) => Some(format!("the scheme is `{}`", url.scheme())),
        Ok(url) => (!url.has_host()).then(|| "it names no host".to_owned()),
    }
}

impl fmt::Debug for KnownProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [&self.tls, &self.plain].into_iter().flatten().map(|named| named.variable);
        f.debug_set().entries(names).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_proxy_is_told() {
        for (text, good) in [
            ("proxy.example:3128", true),
            ("http://user:pass@proxy.example:3128", true),
            ("socks5h://127.0.0.1:9050", true),
            ("http://a:b:c", false),
            ("http://host:99999", false),
            ("http://[::1", false),
            ("ftp://proxy.example", false),
            ("http://", false),
        ] {
            assert_eq!(find_mistake(text).is_none(), good, "{text}");
        }
    }

    #[test]
    fn each_address_has_the_proxy_of_its_scheme_unless_it_is_excepted() {
        let all = [
            ("https_proxy", "http://tls.example:1"),
            ("ALL_PROXY", "socks5h://all.example:2"),
            ("NO_PROXY", "excepted.example, 10.0.0.0/8"),
        ];
        let proxies = Proxies::new(|name| all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value));
        for (url, expected) in [
            ("https://crates.io/a|b", Some("http://tls.example:1")),
            ("http://crates.io/", Some("socks5h://all.example:2")),
            ("https://excepted.example/", None),
            ("https://api.excepted.example/", None),
            ("http://10.1.2.3/", None),
            ("http://localhost:80/", None),
            ("http://[::1]/", None),
        ] {
            let through = proxies.choose(&Url::parse(url).expect("an address")).expect("proxies");
            assert_eq!(through.map(|through| through.address), expected, "{url}");
        }
    }

    #[test]
    fn names_of_private_networks_are_known_by_their_form() {
        for (name, private) in [
            ("intranet", true),
            ("localhost.", true),
            ("metadata.google.internal", true),
            ("printer.LAN", true),
            ("router.home.arpa", true),
            ("crates.io", false),
            ("plan.example.com", false),
        ] {
            assert_eq!(is_private_name(name), private, "{name}");
        }
    }
}
