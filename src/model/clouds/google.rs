//! Tokens of Google Cloud, in the order of its own programs ("application default credentials"): a file that is named, the
//! one that `gcloud auth application-default login` writes, the machine's own account.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::json;

use super::{CredentialRequest, hold_until};
use crate::base::image::{decode_base64, encode_base64_url};
use crate::config::Env;
use crate::files::regular::{Links, read_bytes};
use crate::safety::net::Net;

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKENS: &str = "https://oauth2.googleapis.com/token";
/// The name of the machine's own server of facts.
const METADATA: &str = "metadata.google.internal";
const LARGEST: u64 = 1024 * 1024;
/// The lifetime of a signed claim, in seconds.
const LIFETIME: i64 = 3600;

/// Stands for whatever the environment has, instead of a file.
const DEFAULT_ACCOUNT: &str = "default";

/// A file of credentials.
#[derive(Deserialize)]
struct GoogleAccount {
    #[serde(rename = "type")]
    kind: String,
    token_uri: Option<String>,
    // A service account.
    #[serde(default)]
    client_email: String,
    #[serde(default)]
    private_key: String,
    #[serde(default)]
    private_key_id: String,
    // A person.
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    client_secret: String,
    #[serde(default)]
    refresh_token: String,
}

#[derive(Deserialize)]
struct GivenToken {
    access_token: String,
    /// In seconds.
    expires_in: i64,
}

/// Fetches a token, and the time for which it can be held. `account` is a file of credentials, or `default`.
///
/// # Errors
/// There is none; a sentence says why.
pub async fn fetch_google_token(account: &str, env: &Env, net: &Net) -> Result<(String, Duration), String> {
    let home = env.dirs().home;
    let named = Some(account).filter(|account| *account != DEFAULT_ACCOUNT);
    let file = match named.or_else(|| env.get("GOOGLE_APPLICATION_CREDENTIALS")) {
        Some(file) => Path::new(file).strip_prefix("~").map_or_else(|_| file.into(), |rest| home.join(rest)),
        None => home.join(".config/gcloud/application_default_credentials.json"),
    };
    let bytes = read_bytes(&file, Links::Follow, LARGEST).map_err(|why| format!("{} {why}", file.display()))?;
    let answer = match bytes {
        Some(bytes) => {
            let wrong = |why: String| format!("{} holds no credentials of Google: {why}", file.display());
            let account: GoogleAccount =
                serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
            ask_for_token(&account, net, wrong).await?
        }
        None if named.is_some() => return Err(format!("{} does not exist", file.display())),
        None => ask_machine(env, net).await.map_err(|why| {
            format!(
                "no credentials of Google: neither GOOGLE_APPLICATION_CREDENTIALS nor {}, and {why}",
                file.display()
            )
        })?,
    };
    let given: GivenToken =
        serde_json::from_str(&answer).map_err(|_| "Google answered without a token".to_owned())?;
    let now = Timestamp::now();
    let expires = now + jiff::SignedDuration::from_secs(given.expires_in.clamp(0, LIFETIME));
    Ok((given.access_token, hold_until(expires, now)))
}

async fn ask_for_token(
    account: &GoogleAccount,
    net: &Net,
    wrong: impl Fn(String) -> String,
) -> Result<String, String> {
    let url = account.token_uri.as_deref().unwrap_or(TOKENS);
    let claim;
    let form: &[(&str, &str)] = match account.kind.as_str() {
        "service_account" => {
            claim = sign_claim(account, url, Timestamp::now()).map_err(|why| wrong(why.to_owned()))?;
            &[("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", &claim)]
        }
        "authorized_user" => &[
            ("grant_type", "refresh_token"),
            ("client_id", &account.client_id),
            ("client_secret", &account.client_secret),
            ("refresh_token", &account.refresh_token),
        ],
        kind => {
            let advice = "a service account's and a person's are read; for others, use `command: [gcloud, auth, \
                          print-access-token]`";
            return Err(wrong(format!("its type is `{kind}`: {advice}")));
        }
    };
    CredentialRequest { method: Method::POST, url, headers: HeaderMap::new(), form }.send(net, None).await
}

/// The claim of a service account, signed with its key (RFC 7523).
fn sign_claim(account: &GoogleAccount, url: &str, now: Timestamp) -> Result<String, &'static str> {
    let lines = account.private_key.lines().filter(|line| !line.starts_with("-----"));
    let key = decode_base64(&lines.collect::<String>()).ok_or("its private key is no PEM")?;
    let key = RsaKeyPair::from_pkcs8(&key).map_err(|_| "its private key is no RSA key in PKCS #8")?;
    let begins = now.as_second();
    let head = json!({"alg": "RS256", "typ": "JWT", "kid": account.private_key_id});
    let body =
        json!({"iss": account.client_email, "scope": SCOPE, "aud": url, "iat": begins, "exp": begins + LIFETIME});
    let text = [head, body].map(|part| encode_base64_url(part.to_string().as_bytes())).join(".");
    let mut signature = vec![0; key.public().modulus_len()];
    let signed = key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature);
    signed.map_err(|_| "its private key does not sign")?;
    Ok(format!("{text}.{}", encode_base64_url(&signature)))
}

/// Asks the machine for a token of its own account.
async fn ask_machine(env: &Env, net: &Net) -> Result<String, String> {
    let host = env.get("GCE_METADATA_HOST").unwrap_or(METADATA);
    let url = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
    let mut headers = HeaderMap::new();
    headers.insert("metadata-flavor", HeaderValue::from_static("Google"));
    CredentialRequest { method: Method::GET, url: &url, headers, form: &[] }.send(net, None).await
}
