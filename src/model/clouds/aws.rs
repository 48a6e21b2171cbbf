//! Keys of Amazon, in the order of its own programs: the environment, a role by web identity, the profile, the container.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::Deserialize;

use super::{AwsKeys, CredentialRequest, PATIENCE, hold_until};
use crate::config::Env;
use crate::files::regular::{Links, read_bytes};
use crate::safety::net::Net;
use crate::safety::process;

/// The most bytes of a file with keys or a token.
const LARGEST: u64 = 1024 * 1024;

/// Where containers on ECS are told their keys.
const CONTAINER: &str = "http://169.254.170.2";

/// The name of the profile that is taken if none is named.
const DEFAULT_PROFILE: &str = "default";

/// The sections of `~/.aws/credentials` and `~/.aws/config`, merged.
type Profiles = BTreeMap<String, BTreeMap<String, String>>;

/// The keys, and the time for which they can be held; `None`: for good.
pub type HeldAwsKeys = (AwsKeys, Option<Duration>);

/// Finds the keys of a profile; `default` stands for what the environment says.
///
/// # Errors
/// There are none; a sentence says where they were looked for.
pub async fn fetch_aws_keys(profile: &str, env: &Env, net: &Net) -> Result<HeldAwsKeys, String> {
    let is_default = profile == DEFAULT_PROFILE;
    let profile = env.get("AWS_PROFILE").filter(|_| is_default).unwrap_or(profile);
    let profiles = read_profiles(env)?;
    let section = profiles.get(profile);
    let region = ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| env.get(name));
    let region = region.or_else(|| section?.get("region").map(String::as_str)).unwrap_or("us-east-1").to_owned();
    let source = AwsSource { env, net, profiles: &profiles, region };
    if is_default {
        if let (Some(id), Some(secret)) = (env.get("AWS_ACCESS_KEY_ID"), env.get("AWS_SECRET_ACCESS_KEY")) {
            return Ok((source.keys(id, secret, env.get("AWS_SESSION_TOKEN")), None));
        }
        if let (Some(file), Some(role)) = (env.get("AWS_WEB_IDENTITY_TOKEN_FILE"), env.get("AWS_ROLE_ARN")) {
            return source.assume_by_identity(file, role).await;
        }
    }
    match section {
        Some(section) => source.read_profile(profile, section).await,
        None if profile != DEFAULT_PROFILE => Err(format!("Amazon's files have no profile `{profile}` (~/.aws)")),
        None => source.ask_container().await,
    }
}

/// Where keys come from.
struct AwsSource<'a> {
    env: &'a Env,
    net: &'a Net,
    profiles: &'a Profiles,
    region: String,
}

impl AwsSource<'_> {
    fn keys(&self, id: &str, secret: &str, token: Option<&str>) -> AwsKeys {
        let token = token.filter(|token| !token.is_empty()).map(str::to_owned);
        AwsKeys { id: id.to_owned(), secret: secret.to_owned(), token, region: self.region.clone() }
    }

    /// The keys of a section: written there, printed by its program, or of a role that others may assume.
    async fn read_profile(&self, name: &str, section: &BTreeMap<String, String>) -> Result<HeldAwsKeys, String> {
        let value = |key: &str| section.get(key).map(String::as_str);
        if let (Some(id), Some(secret)) = (value("aws_access_key_id"), value("aws_secret_access_key")) {
            return Ok((self.keys(id, secret, value("aws_session_token")), None));
        }
        match (value("role_arn"), value("web_identity_token_file"), value("source_profile")) {
            (Some(role), Some(file), _) => return self.assume_by_identity(file, role).await,
            (Some(role), None, Some(from)) => {
                let from = self.profiles.get(from).filter(|from| !from.contains_key("role_arn"));
                let from =
                    from.ok_or_else(|| format!("the profile `{name}` names no source with keys of its own"))?;
                let (signer, _) = Box::pin(self.read_profile(name, from)).await?;
                let form = [("Action", "AssumeRole"), ("RoleArn", role)];
                return self.assume_role(&form, Some(&signer)).await;
            }
            _ => {}
        }
        if let Some(line) = value("credential_process") {
            let program: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let printed = process::ask_program(&program, PATIENCE).await;
            let printed =
                printed.map_err(|why| format!("the credential_process of the profile `{name}` {why}"))?;
            return self.take_given(&String::from_utf8_lossy(&printed), "the credential_process");
        }
        Err(format!(
            "the profile `{name}` has no keys, role or credential_process. For one of a single sign-on, add to it: \
             credential_process = aws configure export-credentials --profile {name}"
        ))
    }

    /// Assumes a role with the token that the platform keeps in a file.
    async fn assume_by_identity(&self, file: &str, role: &str) -> Result<HeldAwsKeys, String> {
        let token = read_text(Path::new(file))?.ok_or_else(|| format!("{file} does not exist"))?;
        let form =
            [("Action", "AssumeRoleWithWebIdentity"), ("RoleArn", role), ("WebIdentityToken", token.trim())];
        self.assume_role(&form, None).await
    }

    async fn assume_role(&self, form: &[(&str, &str)], signer: Option<&AwsKeys>) -> Result<HeldAwsKeys, String> {
        let address = self.env.get("AWS_ENDPOINT_URL_STS").map(str::to_owned);
        let address = address.unwrap_or_else(|| format!("https://sts.{}.amazonaws.com/", self.region));
        let session = self.env.get("AWS_ROLE_SESSION_NAME").unwrap_or("agent");
        let form = [form, &[("Version", "2011-06-15"), ("RoleSessionName", session)]].concat();
        let request =
            CredentialRequest { method: Method::POST, url: &address, headers: HeaderMap::new(), form: &form };
        let answer = request.send(self.net, signer).await?;
        let field = |name: &str| {
            let (_, rest) = answer.split_once(&format!("<{name}>"))?;
            Some(rest.split_once("</")?.0.trim())
        };
        let (Some(id), Some(secret)) = (field("AccessKeyId"), field("SecretAccessKey")) else {
            return Err(format!("{address} answered without keys"));
        };
        Ok((self.keys(id, secret, field("SessionToken")), hold(field("Expiration"))))
    }

    /// Asks the agent of the container for the keys of its role.
    async fn ask_container(&self) -> Result<HeldAwsKeys, String> {
        let relative =
            self.env.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").map(|path| format!("{CONTAINER}{path}"));
        let Some(url) = relative.or_else(|| self.env.get("AWS_CONTAINER_CREDENTIALS_FULL_URI").map(str::to_owned))
        else {
            return Err(
                "no keys of Amazon: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor a role by web \
                        identity, a profile in ~/.aws (AWS_PROFILE) or a container's"
                    .to_owned(),
            );
        };
        let mut headers = HeaderMap::new();
        let file = self.env.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").map(Path::new);
        let token = file.map(read_text).transpose()?.flatten();
        let token = token.or_else(|| self.env.get("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned));
        if let Some(value) = token.and_then(|token| HeaderValue::from_str(token.trim()).ok()) {
            headers.insert(AUTHORIZATION, value);
        }
        let request = CredentialRequest { method: Method::GET, url: &url, headers, form: &[] };
        let answer = request.send(self.net, None).await?;
        self.take_given(&answer, &url)
    }

    /// Reads the JSON of containers and of programs.
    fn take_given(&self, text: &str, source: &str) -> Result<HeldAwsKeys, String> {
        let given: GivenKeys = serde_json::from_str(text).map_err(|_| format!("{source} gives no keys"))?;
        let token = given.token.or(given.session_token);
        let keys = self.keys(&given.access_key_id, &given.secret_access_key, token.as_deref());
        Ok((keys, hold(given.expiration.as_deref())))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GivenKeys {
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
    session_token: Option<String>,
    expiration: Option<String>,
}

fn hold(expires: Option<&str>) -> Option<Duration> {
    Some(hold_until(expires?.parse().ok()?, Timestamp::now()))
}

/// Reads both files. Sections of `config` are called `profile NAME`, but for the default one.
fn read_profiles(env: &Env) -> Result<Profiles, String> {
    let home = env.dirs().home.join(".aws");
    let path = |variable: &str, name: &str| env.get(variable).map_or_else(|| home.join(name), PathBuf::from);
    let mut profiles = Profiles::new();
    for path in [path("AWS_CONFIG_FILE", "config"), path("AWS_SHARED_CREDENTIALS_FILE", "credentials")] {
        let text = read_text(&path)?.unwrap_or_default();
        let mut section = None;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
                let name = name.trim();
                section = Some(
                    profiles.entry(name.strip_prefix("profile ").unwrap_or(name).trim().to_owned()).or_default(),
                );
            } else if let (Some(section), Some((key, value))) = (&mut section, line.split_once('=')) {
                section.insert(key.trim().to_owned(), value.trim().to_owned());
            }
        }
    }
    Ok(profiles)
}

fn read_text(path: &Path) -> Result<Option<String>, String> {
    let bytes = read_bytes(path, Links::Follow, LARGEST).map_err(|why| format!("{} {why}", path.display()))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
