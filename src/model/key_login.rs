//! A login that ends with a key of one's own: a person allows it in a browser, and the provider exchanges the code that the
//! browser brings back. For providers that let any program of this machine do so, by PKCE (RFC 7636) and without a
//! registration: OpenRouter (openrouter.ai/docs/guides/overview/auth/oauth).

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::catalogue::providers::Provider;
use crate::base::image::encode_base64_url;
use crate::base::secrets::Redactor;
use crate::base::text;
use crate::safety::net::{self, Net};

/// The longest that the exchange is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A login that waits for a person.
pub struct KeyLogin {
    /// What only this program knows: whoever else saw the code cannot use it.
    verifier: String,
}

/// What the exchange answers.
#[derive(Deserialize)]
struct KeyAnswer {
    key: String,
}

impl KeyLogin {
    /// Begins a login. Returns the address that a person opens as well; the browser comes back to `redirect`. `None` if the
    /// provider has none.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn begin(provider: &Provider, redirect: &str) -> Result<Option<(Self, String)>, String> {
        let Some(page) = provider.login else { return Ok(None) };
        let verifier = encode_base64_url(&net::make_random_bytes()?);
        let challenge = encode_base64_url(&Sha256::digest(&verifier));
        let mut url = net::parse_url(page).map_err(|error| error.to_string())?;
        url.query_pairs_mut()
            .append_pair("callback_url", redirect)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(Some((Self { verifier }, url.into())))
    }

    /// Ends a login with the address that the browser came back to. Returns the key. `base_url` is the provider's.
    ///
    /// # Errors
    /// The end of a sentence about the provider.
    pub async fn finish(
        self,
        net: &Net,
        redactor: &Redactor,
        base_url: &str,
        back: &str,
    ) -> Result<String, String> {
        // Of a secret that was cut, a part would stay.
        let quote = |said: &str| text::one_line(redactor.redact(said).trim(), 200);
        let back = net::parse_url(back).map_err(|_| "sent no address back: paste the whole of it".to_owned())?;
        let find = |wanted: &str| {
            back.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
        };
        let code = find("code").ok_or_else(|| match find("error") {
            Some(error) => format!("refused the login: {}", quote(&error)),
            None => "sent no code back: the address that the browser ends at has `code=` in it".to_owned(),
        })?;
        let body = json!({ "code": code, "code_verifier": self.verifier, "code_challenge_method": "S256" });
        let failed = |error: &dyn std::error::Error| format!("cannot be asked for the key: {error}");
        let url = net::parse_url(&format!("{base_url}/auth/keys")).map_err(|error| failed(&error))?;
        let client = net.client(&url, PATIENCE).map_err(|error| failed(&error))?;
        let request = client.post(url).timeout(PATIENCE).header("content-type", "application/json");
        let answer =
            request.body(body.to_string()).send().await.map_err(|error| {
                format!("cannot be asked for the key: {}", net::list_causes(&error.without_url()))
            })?;
        let status = answer.status();
        let said = answer.text().await.unwrap_or_default();
        match serde_json::from_str::<KeyAnswer>(&said) {
            Ok(KeyAnswer { key }) if status.is_success() => Ok(key),
            _ if status.is_success() => Err("answered without a key".to_owned()),
            _ => Err(format!("gives no key ({}): {}", status.as_u16(), quote(&said))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::super::catalogue::providers::by_id;
    use super::*;

    fn begin() -> (KeyLogin, String) {
        let provider = by_id("openrouter").expect("it is known");
        KeyLogin::begin(provider, "http://localhost:4000/callback").expect("random").expect("it has a login")
    }

    /// What a login ends with at a server that answers so; and the body that it was sent.
    fn finish(login: KeyLogin, back: &str, status: &str, said: &str) -> (Result<String, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/api/v1", listener.local_addr().expect("its address"));
        let length = said.len();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{said}");
        let asked = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !request.ends_with(b"}") {
                let read = client.read(&mut piece).expect("a request");
                request.extend_from_slice(&piece[..read]);
            }
            client.write_all(answer.as_bytes()).expect("it is read");
            String::from_utf8(request).expect("text")
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let key = runtime.block_on(login.finish(&Net::default(), &Redactor::default(), &url, back));
        (key, asked.join().expect("it answered"))
    }

    #[test]
    fn the_code_is_exchanged_with_what_only_this_login_knows() {
        let (login, address) = begin();
        let url = net::parse_url(&address).expect("an address");
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        assert_eq!(pairs[0], ("callback_url".to_owned(), "http://localhost:4000/callback".to_owned()));
        assert_eq!(pairs[2].1, "S256");
        assert_ne!(begin().1, address, "each login has its own");
        let (challenge, verifier) = (pairs[1].1.clone(), login.verifier.clone());
        assert_eq!((verifier.len(), challenge.len()), (43, 43));
        let (key, asked) =
            finish(login, "http://localhost:4000/callback?code=c%2F1", "200 OK", r#"{"key":"sk-or-1"}"#);
        assert_eq!(key.as_deref(), Ok("sk-or-1"));
        assert!(asked.starts_with("POST /api/v1/auth/keys ") && asked.contains(r#""code":"c/1""#), "{asked}");
        let sent = asked.split(r#""code_verifier":""#).nth(1).and_then(|rest| rest.split('"').next());
        assert_eq!(sent.map(|sent| encode_base64_url(&Sha256::digest(sent))), Some(challenge));
    }

    #[test]
    fn a_login_that_fails_says_why() {
        let refused =
            finish(begin().0, "http://localhost/?code=x", "403 Forbidden", r#"{"error":"Invalid code"}"#).0;
        assert_eq!(refused, Err(r#"gives no key (403): {"error":"Invalid code"}"#.to_owned()));
        let key = format!("sk-or-v1-{}", "5e".repeat(32));
        let cut =
            finish(begin().0, "http://localhost/?code=x", "403 Forbidden", &format!("{}{key}", "no ".repeat(60)))
                .0;
        assert!(
            cut.as_ref().is_err_and(|said| !said.contains("5e5e")),
            "a key that would be cut is masked: {cut:?}"
        );
        let empty = finish(begin().0, "http://localhost/?code=x", "200 OK", "{}").0;
        assert_eq!(empty, Err("answered without a key".to_owned()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        for (back, why) in [
            ("nonsense", "sent no address back"),
            ("http://localhost/", "sent no code back"),
            ("http://localhost/?error=access_denied", "refused the login: access_denied"),
        ] {
            let end = runtime.block_on(begin().0.finish(
                &Net::default(),
                &Redactor::default(),
                "http://127.0.0.1:9",
                back,
            ));
            assert!(end.as_ref().is_err_and(|said| said.starts_with(why)), "{back}: {end:?}");
        }
    }
}
