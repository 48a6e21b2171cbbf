//! Requests over connections that are kept alive. A server may close one while it is idle, just as the next request is
//! sent: then the request is sent again at once, on a fresh connection. A connection that fails at its first request is
//! a failure like any other.

use std::collections::HashSet;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpInfo;
use reqwest::{Client, RequestBuilder, Response, Url};

use super::{Net, NetError};

/// The reason that a request got no response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Http(#[from] reqwest::Error),
}

/// The connections that have served a request, by their address on this side.
#[derive(Debug, Default)]
pub(super) struct Served(Mutex<HashSet<SocketAddr>>);

impl Net {
    /// Sends a request to `url`, as `request` builds it.
    ///
    /// If it used a connection that had served another request before and that ended without a response, it is sent a
    /// second time. This happens at most once, with a new client, as other idle connections may be stale too.
    pub async fn send(
        &self,
        url: &Url,
        connect_timeout: Duration,
        request: impl Fn(&Client) -> RequestBuilder,
    ) -> Result<Response, SendError> {
        let sent = request(&self.client(url, connect_timeout)?).send().await;
        let sent = match sent {
            Err(error) if self.served.forget(&error) => {
                self.renew(url, connect_timeout);
                request(&self.client(url, connect_timeout)?).send().await
            }
            sent => sent,
        };
        let response = sent?;
        self.served.note(&response);
        Ok(response)
    }
}

impl Served {
    fn note(&self, response: &Response) {
        if let Some(info) = response.extensions().get::<HttpInfo>() {
            self.0.lock().expect("no holder of the addresses panics").insert(info.local_addr());
        }
    }

    /// True if the request was lost with a connection that had served another one before.
    fn forget(&self, error: &reqwest::Error) -> bool {
        let causes = || std::iter::successors(error.source(), |error| (*error).source());
        let Some(address) = causes().find_map(|cause| local_address(cause.downcast_ref()?)) else { return false };
        causes().any(says_nothing) && self.0.lock().expect("no holder of the addresses panics").remove(&address)
    }
}

/// The address on this side of the connection that failed.
fn local_address(error: &legacy::Error) -> Option<SocketAddr> {
    let mut extensions = hyper::http::Extensions::new();
    error.connect_info()?.get_extras(&mut extensions);
    extensions.get::<HttpInfo>().map(HttpInfo::local_addr)
}

/// True if a connection ended before any response.
fn says_nothing(cause: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    let ended = |error: &hyper::Error| error.is_incomplete_message() || error.is_canceled();
    let broken = |error: &io::Error| matches!(error.kind(), ConnectionReset | ConnectionAborted | BrokenPipe);
    cause.downcast_ref().is_some_and(ended) || cause.downcast_ref().is_some_and(broken)
}
