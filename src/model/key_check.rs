//! Whether a provider takes a key: asked with the list of its models, which costs nothing.

use std::time::Duration;

use reqwest::StatusCode;

use super::catalogue::providers::Provider;
use super::dialect::Auth;
use super::wires::choose_auth;
use crate::safety::net::{self, Net};

/// The longest that the answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// True if the provider refuses the key; false as well if it does not answer.
pub async fn is_key_refused(net: &Net, provider: &Provider, base_url: &str, key: &str) -> bool {
    let auth = choose_auth(provider.wire);
    let ask = async || {
        let url = net::parse_url(&format!("{base_url}/models")).ok()?;
        let request = net.client(&url, PATIENCE).ok()?.get(url).timeout(PATIENCE);
        let request = match auth {
            Auth::XApiKey => request.header("x-api-key", key).header("anthropic-version", "2023-06-01"),
            Auth::XGoogApiKey => request.header("x-goog-api-key", key),
            Auth::ApiKey => request.header("api-key", key),
            Auth::Bearer => request.bearer_auth(key),
        };
        Some(request.send().await.ok()?.status())
    };
    match ask().await {
        Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => true,
        // Google calls a key that is none a bad argument.
        Some(StatusCode::BAD_REQUEST) => auth == Auth::XGoogApiKey,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::super::catalogue::providers::PROVIDERS;
    use super::*;

    /// True if a server that answers with this status refuses the key of a provider; and what it was asked.
    fn ask(provider: &str, status: &str) -> (bool, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("its address"));
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let asked = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            let mut request = [0; 4096];
            let length = client.read(&mut request).expect("a request");
            client.write_all(answer.as_bytes()).expect("it is read");
            String::from_utf8_lossy(&request[..length]).to_lowercase()
        });
        let provider = PROVIDERS.iter().find(|known| known.id == provider).expect("it is known");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let refused = runtime.block_on(is_key_refused(&Net::default(), provider, &url, "the-key"));
        (refused, asked.join().expect("it answered"))
    }

    #[test]
    fn a_key_is_refused_by_the_status_that_the_provider_gives() {
        for (provider, status, refused, header) in [
            ("openai", "200 OK", false, "authorization: bearer the-key"),
            ("openai", "401 Unauthorized", true, "get /v1/models"),
            ("anthropic", "401 Unauthorized", true, "x-api-key: the-key"),
            ("google", "400 Bad Request", true, "the-key"),
            ("openai", "400 Bad Request", false, "bearer"),
            ("openai", "500 Internal Server Error", false, "bearer"),
        ] {
            let (was_refused, asked) = ask(provider, status);
            assert_eq!(was_refused, refused, "{provider}: {status}");
            assert!(asked.contains(header), "{asked}");
        }
    }
}
