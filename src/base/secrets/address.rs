//! Credentials in the address of a server: before the host, and after keys of the query.

use std::ops::Range;

use super::ordinary::is_ordinary;
use super::secret::looks_secret;

/// The `user:password` of a URL.
pub fn user_info(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    authority.rsplit_once('@').map(|(info, _)| info).filter(|info| !info.is_empty())
}

/// The secret parts of a URL: the user info before the host, the password in it, and the values of keys that look like
/// secrets.
pub fn secrets_in(url: &str) -> Vec<String> {
    let info = user_info(url);
    let password = info.and_then(|info| info.split_once(':')).map(|(_, password)| password);
    let values = query_secrets(url).into_iter().map(|value| &url[value]);
    info.into_iter().chain(password).chain(values).map(str::to_owned).collect()
}

/// A text with a URL, without the credentials in it.
pub fn without_credentials(text: &str, mask: &str) -> String {
    let mut masked = text.to_owned();
    for value in query_secrets(text).into_iter().rev() {
        masked.replace_range(value, mask);
    }
    match user_info(text) {
        Some(info) => masked.replacen(info, mask, 1),
        None => masked,
    }
}

/// The values in the query of a URL whose keys look like secrets.
fn query_secrets(text: &str) -> Vec<Range<usize>> {
    let Some(scheme) = text.find("://") else { return Vec::new() };
    let Some(query) = text[scheme..].find('?').map(|at| scheme + at + 1) else { return Vec::new() };
    let end = text[query..].find(['#', '"', '\'', ' ', '{']).map_or(text.len(), |length| query + length);
    let mut at = query;
    let pairs = text[query..end].split('&').map(|pair| {
        let start = at;
        at += pair.len() + 1;
        (pair, start)
    });
    pairs
        .filter_map(|(pair, start)| {
            let (key, value) = pair.split_once('=')?;
            let from = start + key.len() + 1;
            let is_secret = looks_secret(key) || ["sig", "signature"].contains(&key);
            (is_secret && !value.is_empty()).then_some(from..from + value.len())
        })
        .collect()
}

/// The password in a variable's address, whatever the variable is called.
pub fn password_in(value: &str) -> Option<&str> {
    user_info(value)?.split_once(':').map(|(_, password)| password).filter(|password| !is_ordinary(password))
}

#[cfg(test)]
mod tests {
    use super::{secrets_in, without_credentials};

    #[test]
    fn credentials_of_addresses_are_masked_where_they_stand() {
        for (text, expected) in [
            ("https://me:pw@host/v1", "https://***@host/v1"),
            ("https://host/v1?key=abc", "https://host/v1?key=***"),
            ("base_url: 'https://host/v1?v=2&api_key=abc&x=1'", "base_url: 'https://host/v1?v=2&api_key=***&x=1'"),
            ("https://me@host/v1?token=a&sig=b#c", "https://***@host/v1?token=***&sig=***#c"),
            ("https://host/v1?key={{ env.KEY }}", "https://host/v1?key={{ env.KEY }}"),
            ("https://host/v1?monday=1", "https://host/v1?monday=1"),
            ("why? key=abc", "why? key=abc"),
        ] {
            assert_eq!(without_credentials(text, "***"), expected);
        }
        assert_eq!(secrets_in("http://me:pw@host/?key=abc"), ["me:pw", "pw", "abc"]);
    }
}
