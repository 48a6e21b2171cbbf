//! Asks whether a newer version is published. Nothing asks this by itself: `agent doctor --online` does.

use std::time::Duration;

use serde_json::Value;

use crate::config::Env;
use crate::safety::net::{FetchRules, Net};

use super::account::DoctorCheck;
use crate::faces::cli::setup::build_runtime;

/// Where the releases lie, as `.ci/release --url` built it in; empty or `None` in other builds.
const RELEASES: Option<&str> = option_env!("AGENT_RELEASES");
/// The longest that their server may take.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn check_newer(env: &Env) -> anyhow::Result<DoctorCheck> {
    let releases = env.get("AGENT_RELEASES").or(RELEASES).unwrap_or_default().trim_end_matches('/');
    if releases.is_empty() {
        return Ok(DoctorCheck::weak("nobody said where releases lie: AGENT_RELEASES names the address"));
    }
    let own = env!("CARGO_PKG_VERSION");
    Ok(match build_runtime()?.block_on(fetch_version(env, releases)) {
        Ok(version) if parse_version(&version) > parse_version(own) => {
            DoctorCheck::weak(format!("version {version} is published at {releases}; this is {own}"))
        }
        Ok(version) => DoctorCheck::good(format!("the newest published version is {version}")),
        Err(why) => DoctorCheck::weak(format!("{releases} was asked for the newest version: {why}")),
    })
}

/// The version that `agent.json` among the releases names.
///
/// # Errors
/// Why none is known.
async fn fetch_version(env: &Env, releases: &str) -> Result<String, String> {
    let net = Net::new(|name| env.get(name));
    // Whoever named the address may mean a host of their own.
    let host = releases.split("://").nth(1).and_then(|rest| rest.split('/').next());
    let allow: Vec<String> = host.map(str::to_owned).into_iter().collect();
    let rules = FetchRules { allow: &allow, most_bytes: 1 << 20, most_redirects: 5, connect_timeout: PATIENCE };
    let url = format!("{releases}/agent.json");
    let fetched = tokio::time::timeout(PATIENCE, net.fetch(&url, "application/json", rules)).await;
    let fetched = fetched.map_err(|_| "it does not answer".to_owned())?.map_err(|error| error.to_string())?;
    if fetched.status != 200 {
        return Err(format!("HTTP {} for {}", fetched.status, fetched.url));
    }
    let release: Value = serde_json::from_slice(&fetched.body).unwrap_or_default();
    match release["version"].as_str() {
        Some(version) if parse_version(version).is_some() => Ok(version.to_owned()),
        _ => Err("its agent.json names no version".to_owned()),
    }
}

/// The three numbers of a version. One with a suffix is none: it is not what people are told to install.
fn parse_version(text: &str) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = text.split('.').map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}
