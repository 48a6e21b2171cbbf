//! The key of a server: held, and asked for again where its source can give another one.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};

use super::Surroundings;
use super::clouds::{AwsKeys, fetch_aws_keys, fetch_google_token, sign_request};
use crate::base::secrets::LateSecrets;
use crate::base::text;
use crate::config::{ApiKey, Env, KeySource};
use crate::files::regular::{Links, read_bytes};
use crate::safety::net::Net;
use crate::safety::process;

/// The most bytes of a key: tokens of clouds have some thousands.
const LONGEST: u64 = 64 * 1024;

/// The longest time that a program may take to print a key. It may ask its own server.
const PATIENCE: Duration = Duration::from_secs(30);

/// The key of a server.
pub(super) struct ServerKey {
    /// `None`: the key was given, or there is none.
    source: Option<KeySource>,
    held: Mutex<HeldKey>,
    /// Held while the source is asked, so that requests at the same time ask it once.
    asking: tokio::sync::Mutex<()>,
    secrets: LateSecrets,
    net: Arc<Net>,
    env: Env,
}

#[derive(Default)]
struct HeldKey {
    fetched: FetchedKey,
    /// The time when the source gave it; `None` before that.
    since: Option<Instant>,
}

/// What a source gives.
#[derive(Default)]
struct FetchedKey {
    /// Empty if there is none.
    key: String,
    /// Signs requests in place of a key in a header.
    signer: Option<AwsKeys>,
    /// `None`: until the server refuses it.
    lifetime: Option<Duration>,
}

impl ServerKey {
    /// Takes a key or its source. What is fetched later is masked by every redactor of the surroundings' late secrets.
    ///
    /// # Errors
    /// The end of a sentence about a key that cannot be sent.
    pub fn new(configured: Option<&ApiKey>, around: &Surroundings) -> Result<Self, String> {
        let key = configured.and_then(ApiKey::given).unwrap_or_default().to_owned();
        let source = if let Some(ApiKey::Source(source)) = configured { Some(source.clone()) } else { None };
        check_key(&key)?;
        let fetched = FetchedKey { key, ..FetchedKey::default() };
        let held = Mutex::new(HeldKey { fetched, since: None });
        let (net, env) = (Arc::clone(&around.net), around.env.clone());
        Ok(Self {
            source,
            held,
            asking: tokio::sync::Mutex::default(),
            secrets: around.late_secrets.clone(),
            net,
            env,
        })
    }

    /// The key as it is known; empty if there is none.
    pub fn current(&self) -> String {
        self.held.lock().expect("no holder of the key panics").fetched.key.clone()
    }

    /// True if the key signs requests. Amazon refuses keys that have expired with 403.
    pub fn signs(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.aws.is_some())
    }

    /// Signs a request, if the key is one that signs.
    pub fn sign(&self, url: &Url, headers: &mut HeaderMap, body: &[u8]) {
        if let Some(keys) = &self.held.lock().expect("no holder of the key panics").fetched.signer {
            sign_request(keys, "bedrock", url, headers, body, Timestamp::now());
        }
    }

    /// Asks the source for the key if it was not asked yet, or too long ago.
    ///
    /// # Errors
    /// It gives none; the sentence says why.
    pub async fn ready(&self) -> Result<(), String> {
        if self.is_fresh() {
            return Ok(());
        }
        let _asking = self.asking.lock().await;
        if self.is_fresh() { Ok(()) } else { self.fetch().await.map(drop) }
    }

    /// Asks the source again, because the server refused the key. False if it gives the same one.
    ///
    /// # Errors
    /// It gives none; the sentence says why.
    pub async fn renew(&self, refused: &str) -> Result<bool, String> {
        if self.source.is_none() {
            return Ok(false);
        }
        let _asking = self.asking.lock().await;
        // Another request may have renewed it meanwhile.
        if self.current() == refused { self.fetch().await } else { Ok(true) }
    }

    fn is_fresh(&self) -> bool {
        if self.source.is_none() {
            return true;
        }
        let held = self.held.lock().expect("no holder of the key panics");
        held.since.is_some_and(|since| held.fetched.lifetime.is_none_or(|lifetime| since.elapsed() < lifetime))
    }

    /// Fetches the key; false if it is the one that is held.
    async fn fetch(&self) -> Result<bool, String> {
        let Some(source) = &self.source else { return Ok(false) };
        let fetched = self.ask(source).await?;
        let of_signer = fetched.signer.iter().flat_map(|keys| std::iter::once(&keys.secret).chain(&keys.token));
        std::iter::once(&fetched.key).chain(of_signer).for_each(|secret| self.secrets.add(secret));
        let mut held = self.held.lock().expect("no holder of the key panics");
        let is_new = held.fetched.key != fetched.key || held.fetched.signer != fetched.signer;
        *held = HeldKey { fetched, since: Some(Instant::now()) };
        Ok(is_new)
    }

    /// Asks the source.
    async fn ask(&self, source: &KeySource) -> Result<FetchedKey, String> {
        let mut lifetime = source.refresh.map(Duration::from);
        let (bytes, name) = match source {
            KeySource { aws: Some(profile), .. } => {
                let (keys, lifetime) = fetch_aws_keys(profile, &self.env, &self.net).await?;
                return Ok(FetchedKey { key: String::new(), signer: Some(keys), lifetime });
            }
            KeySource { google: Some(account), .. } => {
                let (token, held) = fetch_google_token(account, &self.env, &self.net).await?;
                lifetime = Some(held);
                (token.into_bytes(), "Google".to_owned())
            }
            KeySource { file: Some(file), .. } => (read_key(file)?, file.display().to_string()),
            KeySource { command: Some(command), .. } => {
                let name = command.first().map(String::as_str).unwrap_or_default().to_owned();
                let printed = process::ask_program(command, PATIENCE).await;
                (printed.map_err(|why| format!("the command of `api_key`, {name}, {why}"))?, name)
            }
            _ => return Err("`api_key` names no source".to_owned()),
        };
        let key = String::from_utf8_lossy(&bytes).trim().to_owned();
        if key.is_empty() {
            return Err(format!("{name} gives no key (`api_key` in the model file)"));
        }
        check_key(&key).map_err(|why| format!("the key that {name} gives is none: {why}"))?;
        Ok(FetchedKey { key, signer: None, lifetime })
    }
}

fn read_key(file: &Path) -> Result<Vec<u8>, String> {
    let wrong = |why: &str| format!("the file of `api_key`, {}, {}", file.display(), text::one_line(why, 200));
    if !file.is_absolute() {
        return Err(wrong("is named neither from / nor from ~/ on"));
    }
    read_bytes(file, Links::Follow, LONGEST).map_err(|why| wrong(&why))?.ok_or_else(|| wrong("does not exist"))
}

fn check_key(key: &str) -> Result<(), String> {
    let is_sendable = HeaderValue::from_str(key).is_ok();
    is_sendable
        .then_some(())
        .ok_or_else(|| "it contains a line break or another character that a header cannot carry".to_owned())
}
