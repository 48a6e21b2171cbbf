//! The version of a prompt: two numbers, written `v1.0` (or `1.0`), ordered as numbers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

/// `v1.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    /// The version in the name of a file: `v1.2.md` or `v1.2.txt`.
    pub fn of_file(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".md").or_else(|| name.strip_suffix(".txt"))?;
        stem.strip_prefix('v').filter(|number| !number.starts_with('v'))?.parse().ok()
    }

    /// True if the name of a file looks as if a version was meant: `1.2.md`.
    pub fn is_meant_by(name: &str) -> bool {
        let number = name.strip_suffix(".md").map(|stem| stem.trim_start_matches(['v', 'V']));
        number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a version: write it like v1.0");
        let (major, minor) = text.strip_prefix('v').unwrap_or(text).split_once('.').ok_or_else(wrong)?;
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten().ok_or_else(wrong)
        };
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}", self.major, self.minor)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn versions_are_two_numbers_ordered_as_numbers() {
        let version = |text: &str| text.parse::<Version>();
        assert_eq!(version("v1.0"), version("1.0"));
        assert!(version("v1.10") > version("v1.9"));
        assert_eq!(Version::of_file("v1.10.txt"), version("v1.10").ok());
        for other in ["v1.0", "1.0.md", "vv1.0.md", "notes.md", "v1.0.md.bak"] {
            assert_eq!(Version::of_file(other), None, "{other}");
        }
        for wrong in ["", "v", "1", "v1", "v1.0.0", "v1.x", "v+1.0", "latest"] {
            assert!(version(wrong).is_err(), "{wrong}");
        }
    }
}
