//! Values that are never shown: they print and serialise as `***`.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// A secret string. Only [`Secret::reveal`] returns it.
#[derive(Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value, which is shown as `***` unless it is revealed.
    pub fn new(value: String) -> Self {
        Self(value)
    }

    /// The value itself: for the request that needs it, never for a message.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

/// True if the name of a variable or a key suggests a secret.
pub fn looks_secret(name: &str) -> bool {
    const PARTS: [&str; 8] =
        ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CONNECTION_STRING"];
    // Within other words they have no meaning: `AUTHOR`, `PATH`, `COMPASS`.
    const WORDS: [&str; 11] =
        ["PASS", "PGPASS", "PWD", "PAT", "AUTH", "DSN", "COOKIE", "COOKIES", "WEBHOOK", "BEARER", "JWT"];
    // Each start asks this of each variable, so nothing is copied, and a first letter decides nearly always.
    let begins = |rest: &[u8], part: &str| {
        rest.get(..part.len()).is_some_and(|head| head.eq_ignore_ascii_case(part.as_bytes()))
    };
    let name_bytes = name.as_bytes();
    let has_part = (0..name.len()).any(|at| {
        let may_begin = matches!(name_bytes[at].to_ascii_uppercase(), b'K' | b'T' | b'S' | b'P' | b'C');
        may_begin && PARTS.iter().any(|part| begins(&name_bytes[at..], part))
    });
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    has_part
        || !name.eq_ignore_ascii_case("PWD")
            && words.any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use super::looks_secret;

    #[test]
    fn names_say_what_is_secret() {
        for name in
            ["OPENAI_API_KEY", "mysql_pwd", "GITHUB_PAT", "SENTRY_DSN", "DOCKER_AUTH_CONFIG", "X-Auth", "PGPASS"]
        {
            assert!(looks_secret(name), "{name}");
        }
        for name in
            ["PWD", "OLDPWD", "PGPASSFILE", "PATH", "GIT_AUTHOR_NAME", "COMPASS_DIR", "PATTERN", "DATABASE_URL"]
        {
            assert!(!looks_secret(name), "{name}");
        }
    }
}
