//! Signatures of requests to Amazon: AWS Signature Version 4, with the headers `host`, `x-amz-date` and
//! `x-amz-security-token` signed.

use jiff::Timestamp;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use ring::hmac;
use sha2::{Digest, Sha256};

use crate::base::digest::{percent_encode, write_hex};

/// Keys of Amazon.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsKeys {
    pub id: String,
    pub secret: String,
    /// The token of a session: temporary keys have one.
    pub token: Option<String>,
    pub region: String,
}

/// Signs a POST of this body to a service. What cannot be a header is left out, and the server refuses it.
pub fn sign_request(
    keys: &AwsKeys,
    service: &str,
    url: &Url,
    headers: &mut HeaderMap,
    body: &[u8],
    now: Timestamp,
) {
    let region = find_region(url.host_str().unwrap_or_default()).unwrap_or(&keys.region);
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let host = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let token = keys.token.as_ref().map(|token| ("x-amz-security-token", token.as_str()));
    let signed: Vec<(&str, &str)> =
        [("host", host.as_str()), ("x-amz-date", &time)].into_iter().chain(token).collect();
    let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let lines = signed.iter().map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>().join("\n");
    // A path is signed as it is sent, encoded again.
    let (path, query, sum) = (percent_encode(url.path(), b"/"), sort_query(url), write_hex(&Sha256::digest(body)));
    let request = format!("POST\n{path}\n{query}\n{lines}\n\n{names}\n{sum}");
    let scope = format!("{}/{region}/{service}/aws4_request", &time[..8]);
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", write_hex(&Sha256::digest(request)));
    let key = [&time[..8], region, service, "aws4_request"]
        .iter()
        .fold(format!("AWS4{}", keys.secret).into_bytes(), |key, part| authenticate(&key, part));
    let signature = write_hex(&authenticate(&key, &text));
    let id = &keys.id;
    let authorization =
        format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
    for (name, value) in signed.into_iter().skip(1) {
        insert_hidden(headers, name, value);
    }
    insert_hidden(headers, AUTHORIZATION.as_str(), &authorization);
}

/// The region in a host: `bedrock-runtime.eu-west-1.amazonaws.com`.
fn find_region(host: &str) -> Option<&str> {
    host.strip_suffix(".amazonaws.com")?.split('.').nth(1)
}

fn authenticate(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn insert_hidden(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(mut value)) = (name.parse::<reqwest::header::HeaderName>(), HeaderValue::from_str(value))
    {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
}

/// The parameters in order.
fn sort_query(url: &Url) -> String {
    let mut pairs: Vec<String> = url
        .query_pairs()
        .map(|(name, value)| format!("{}={}", percent_encode(&name, b""), percent_encode(&value, b"")))
        .collect();
    pairs.sort();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected signatures are those of botocore 1.44.8 (`SigV4Auth`) for these requests.
    #[test]
    fn signatures_are_those_of_amazons_own_library() {
        let keys = |token: Option<&str>| AwsKeys {
            id: "AKIDEXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            token: token.map(str::to_owned),
            region: "us-east-1".to_owned(),
        };
        let now = "2026-11-28T09:00:01Z".parse().expect("a time");
        for (address, token, service, region, expected) in [
            (
                "https://bedrock-runtime.eu-west-1.amazonaws.com/model/eu.anthropic.claude-opus-5-v1%3A0/invoke",
                None,
                "bedrock",
                "eu-west-1",
                "317f2633a423f4a64bdb2414ae3fb149b879a28cfbdcb98ae2df8aacc3ccfc25",
            ),
            (
                "http://127.0.0.1:8080/model/m/invoke-with-response-stream?b=2&a=1%201",
                Some("a/token=="),
                "bedrock",
                "us-east-1",
                "d8c65d5d26eea4791127adfe493f1e52fe0c6315e4c9d9bfffed64a245053fb8",
            ),
            (
                "https://sts.us-east-1.amazonaws.com/",
                None,
                "sts",
                "us-east-1",
                "b37458e7e0a635bc3334493038cf3aa9db6bd4ab41d3939070c01af18f1a330c",
            ),
        ] {
            let url = Url::parse(address).expect("an address");
            let mut headers = HeaderMap::new();
            sign_request(&keys(token), service, &url, &mut headers, b"{\"a\":1}", now);
            let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let signed = if token.is_some() { ";x-amz-security-token" } else { "" };
            assert_eq!(
                header("authorization"),
                format!(
                    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261128/{region}/{service}/aws4_request, \
                     SignedHeaders=host;x-amz-date{signed}, Signature={expected}"
                ),
                "{address}"
            );
            assert_eq!(
                (header("x-amz-date"), header("x-amz-security-token")),
                ("20261128T090001Z", token.unwrap_or_default())
            );
            assert!(headers.values().all(HeaderValue::is_sensitive));
        }
    }
}
