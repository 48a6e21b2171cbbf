//! Credentials of clouds. Amazon's sign each request (`sigv4`); Google's are exchanged for a token. Both are found where
//! the clouds' own programs look, and are asked for again before they expire. No SDK of a cloud is linked: they would be
//! some fifty crates for these few requests.

mod aws;
mod google;
mod sigv4;

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, Url};

use crate::base::secrets::Redactor;
use crate::base::text;
use crate::safety::net::{self, Net};

pub use aws::fetch_aws_keys;
pub use google::fetch_google_token;
pub use sigv4::{AwsKeys, sign_request};

/// The longest time that a cloud may take to give a credential.
const PATIENCE: Duration = Duration::from_secs(20);

/// A credential is asked for again this long before it expires.
const MARGIN: Duration = Duration::from_mins(5);

/// A request for a credential.
struct CredentialRequest<'a> {
    method: Method,
    url: &'a str,
    headers: HeaderMap,
    /// The fields of a form; none: no body.
    form: &'a [(&'a str, &'a str)],
}

impl CredentialRequest<'_> {
    fn body(&self) -> String {
        // A query is written like a form.
        let mut url = Url::parse("http://form/").expect("an address");
        url.query_pairs_mut().extend_pairs(self.form);
        if self.form.is_empty() { String::new() } else { url.query().unwrap_or_default().to_owned() }
    }

    /// Sends it, signed if there are keys to sign with.
    ///
    /// # Errors
    /// A sentence: the address, and what it said.
    async fn send(mut self, net: &Net, signer: Option<&AwsKeys>) -> Result<String, String> {
        // Of a secret that was cut, a part would stay.
        let masked = |why: &str| Redactor::default().redact(why).into_owned();
        let failed = |why: String| format!("{}: {}", self.url, text::one_line(masked(&why).trim(), 300));
        let url = net::parse_url(self.url).map_err(|error| failed(error.to_string()))?;
        let body = self.body();
        if !body.is_empty() {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            self.headers.insert("content-type", form);
        }
        if let Some(keys) = signer {
            sign_request(keys, "sts", &url, &mut self.headers, body.as_bytes(), Timestamp::now());
        }
        let client = net.client(&url, PATIENCE).map_err(|error| failed(error.to_string()))?;
        let request = client.request(self.method.clone(), url).headers(self.headers.clone()).timeout(PATIENCE);
        let answer = request.body(body).send().await;
        let answer = answer.map_err(|error| failed(net::list_causes(&error.without_url())))?;
        let status = answer.status();
        let said = answer.text().await.unwrap_or_default();
        if status.is_success() { Ok(said) } else { Err(failed(format!("{} {said}", status.as_u16()))) }
    }
}

/// The time for which a credential can be held that expires then.
fn hold_until(expires: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(expires.duration_since(now)).unwrap_or_default().saturating_sub(MARGIN)
}
