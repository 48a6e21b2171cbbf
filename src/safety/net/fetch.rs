//! Fetches a page from a host that is not configured.
//!
//! The name is looked up first, every address is judged, and the connection goes to a judged address, so a name whose
//! addresses change a moment later gains nothing. Redirects are handled in the same way. A proxy that the environment
//! names is used, and looks the name up again, beyond our control: everything that can be judged before is judged. No
//! key, cookie or login is sent.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Response, Url};

use super::proxies::{LONGEST_CHECK, ProxyRoute, is_private_name};
use super::public::is_public;
use super::{Net, NetError, list_causes, parse_url, strip_brackets};

/// The limits of a fetch.
#[derive(Debug, Clone, Copy)]
pub struct FetchRules<'a> {
    /// Hosts (`localhost`, `10.0.0.7:8080`) that may be reached although their addresses are not public.
    pub allow: &'a [String],
    /// The most bytes of a body; the rest is not read.
    pub most_bytes: usize,
    pub most_redirects: usize,
    pub connect_timeout: Duration,
}

/// A fetched page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The address after all redirects.
    pub url: String,
    pub status: u16,
    /// The type that the server states; empty if it states none.
    pub content_type: String,
    pub body: Vec<u8>,
    /// False if the body was longer than the limit.
    pub whole: bool,
}

/// The reason that nothing came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Net(#[from] NetError),
    #[error("addresses with a login are not fetched")]
    Login,
    #[error("{host} is {address}, an address of this machine or of a private network: it is not fetched")]
    Private { host: String, address: String },
    #[error(
        "{host} is by its name a host of a private network, and no address was found to judge: it is not fetched"
    )]
    PrivateName { host: String },
    #[error("{host} cannot be found: {why}")]
    Unknown { host: String, why: String },
    #[error("more than {most} redirects, the last one to {url}")]
    Redirects { most: usize, url: String },
    #[error("{host} does not answer: {why}")]
    Failed { host: String, why: String },
    #[error("{host} sent its answer compressed ({encoding}), which was not requested")]
    Packed { host: String, encoding: String },
}

impl FetchError {
    fn of_answer(url: &Url, error: &reqwest::Error) -> Self {
        Self::Failed { host: host_of(url), why: list_causes(error) }
    }

    /// True if the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Unknown { .. })
    }
}

impl Net {
    /// Gets `url`, following redirects. `accept` says which kinds are preferred.
    ///
    /// # Errors
    /// An address may not be fetched or nothing answers. A status such as 404 is not an error.
    pub async fn fetch(&self, url: &str, accept: &str, rules: FetchRules<'_>) -> Result<Fetched, FetchError> {
        let mut url = parse_url(url)?;
        for _ in 0..=rules.most_redirects {
            let client = match self.way(&url, rules.allow).await? {
                Way::Direct(addresses) => self.pin_addresses(&url, addresses, rules.connect_timeout)?,
                Way::Proxy(proxy) => self.connect_through(&url, &proxy, rules.connect_timeout)?,
            };
            let sent = client.get(url.clone()).header("accept", accept).send().await;
            let response = sent.map_err(|error| FetchError::of_answer(&url, &error))?;
            match find_redirect(&response, &url)? {
                Some(target) => url = target,
                None => return read_response(response, &url, rules.most_bytes).await,
            }
        }
        Err(FetchError::Redirects { most: rules.most_redirects, url: url.to_string() })
    }
}

/// The way to reach a host.
enum Way<'p> {
    /// At one of these addresses, which were judged.
    Direct(Vec<SocketAddr>),
    Proxy(ProxyRoute<'p>),
}

impl Net {
    /// The way to the host, if it may be reached.
    async fn way(&self, url: &Url, allow: &[String]) -> Result<Way<'_>, FetchError> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::Login);
        }
        let (host, port) = (host_of(url), url.port_or_known_default().unwrap_or(80));
        let with_port = format!("{host}:{port}");
        let is_allowed =
            allow.iter().any(|entry| entry.eq_ignore_ascii_case(&host) || entry.eq_ignore_ascii_case(&with_port));
        let proxy = self.proxies.choose(url)?;
        match (look_up(&host, port, proxy.is_some()).await, proxy) {
            (Ok(addresses), proxy) => {
                judge_addresses(&host, &addresses, is_allowed)?;
                Ok(proxy.map_or(Way::Direct(addresses), Way::Proxy))
            }
            (Err(why), None) => Err(FetchError::Unknown { host, why }),
            (Err(_), Some(_)) if !is_allowed && is_private_name(&host) => Err(FetchError::PrivateName { host }),
            (Err(_), Some(proxy)) => Ok(Way::Proxy(proxy)),
        }
    }
}

/// Looks up a host. Behind a proxy this is only a check with a short time limit, as no names may be resolvable.
async fn look_up(host: &str, port: u16, behind_proxy: bool) -> Result<Vec<SocketAddr>, String> {
    let looking = tokio::net::lookup_host((strip_brackets(host), port));
    let found = if behind_proxy {
        tokio::time::timeout(LONGEST_CHECK, looking).await.map_err(|_| "no answer in time".to_owned())?
    } else {
        looking.await
    };
    let addresses: Vec<SocketAddr> = found.map_err(|error| error.to_string())?.collect();
    if addresses.is_empty() { Err("it has no address".to_owned()) } else { Ok(addresses) }
}

/// An error unless all of the addresses may be reached.
fn judge_addresses(host: &str, addresses: &[SocketAddr], is_allowed: bool) -> Result<(), FetchError> {
    match addresses.iter().find(|address| !is_allowed && !is_public(address.ip())) {
        Some(address) => Err(FetchError::Private { host: host.to_owned(), address: address.ip().to_string() }),
        None => Ok(()),
    }
}

/// The target of a redirect.
fn find_redirect(response: &Response, from: &Url) -> Result<Option<Url>, FetchError> {
    let location = response.headers().get("location").and_then(|value| value.to_str().ok());
    let Some(location) = location.filter(|_| response.status().is_redirection()) else { return Ok(None) };
    let target = from
        .join(location)
        .map_err(|error| NetError::Address { url: location.to_owned(), why: error.to_string() })?;
    Ok(Some(parse_url(target.as_str())?))
}

async fn read_response(mut response: Response, url: &Url, most_bytes: usize) -> Result<Fetched, FetchError> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let encoding = header("content-encoding").to_owned();
    if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        return Err(FetchError::Packed { host: host_of(url), encoding });
    }
    let content_type = header("content-type").to_owned();
    let (mut body, mut whole) = (Vec::new(), true);
    while let Some(chunk) = response.chunk().await.map_err(|error| FetchError::of_answer(url, &error))? {
        let room = most_bytes - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        whole = chunk.len() <= room;
        if !whole {
            break;
        }
    }
    Ok(Fetched { url: url.to_string(), status: response.status().as_u16(), content_type, body, whole })
}

fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str, allow: &[&str]) -> String {
        refused_by(&Net::default(), url, allow)
    }

    fn refused_by(net: &Net, url: &str, allow: &[&str]) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let allow: Vec<String> = allow.iter().map(|&host| host.to_owned()).collect();
        let url = parse_url(url).expect("an address");
        match runtime.block_on(net.way(&url, &allow)) {
            Ok(Way::Direct(addresses)) => format!("{} addresses", addresses.len()),
            Ok(Way::Proxy(_)) => "by the proxy".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn private_addresses_are_refused_however_they_are_written() {
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0/",
            "http://[::1]/",
            "http://[::ffff:169.254.169.254]/latest/meta-data",
            "http://169.254.169.254/",
            "http://localhost:8080/",
            "https://10.0.0.1/",
        ] {
            assert!(refused(url, &["example.com", "127.0.0.1:81"]).contains("private network"), "{url}");
        }
        assert_eq!(refused("http://user:x@1.1.1.1/", &[]), "addresses with a login are not fetched");
        assert_eq!(refused("http://1.1.1.1/", &[]), "1 addresses");
        assert_eq!(refused("http://127.0.0.1:81/", &["127.0.0.1:81"]), "1 addresses");
        assert_eq!(refused("http://[::1]/", &["[::1]"]), "1 addresses");
    }
    #[test]
    fn a_proxy_leads_to_no_private_address() {
        let net = Net::new(|name| match name {
            "ALL_PROXY" => Some("http://proxy.example:3128"),
            "NO_PROXY" => Some("1.1.1.2"),
            _ => None,
        });
        for (url, expected) in [
            ("http://10.0.0.1/", "of a private network"),
            ("http://0x7f.1/", "of a private network"),
            ("http://[fd00:ec2::254]/", "of a private network"),
            ("http://nowhere.internal/", "of a private network"),
            ("http://10.0.0.7/", "by the proxy"),
            ("http://nowhere.invalid/", "by the proxy"),
            ("https://1.1.1.1/", "by the proxy"),
            ("https://1.1.1.2/", "1 addresses"),
            ("http://127.0.0.1:81/", "1 addresses"),
        ] {
            let way = refused_by(&net, url, &["10.0.0.7", "127.0.0.1:81"]);
            assert!(way.contains(expected), "{url}: {way}");
        }
    }
}
