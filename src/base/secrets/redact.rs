//! Masks secrets: known values become `***`, and so do text that has the shape of a key ([`super::shapes`]) and the
//! value of a key that looks like a secret.
//!
//! Text is redacted once, where it enters: the results of tools and the messages of errors. Text that the user types or
//! attaches is sent as it is.

use std::borrow::Cow;
use std::sync::{Arc, RwLock};

use serde_json::Value;

use super::address::without_credentials;
use super::ordinary::is_ordinary;
use super::secret::looks_secret;
use super::shapes;
use crate::base::json::change_texts;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// Replaces known secrets in text that is about to be shown, logged or sent.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret which contains another is replaced as a whole.
    secrets: Vec<String>,
    late: LateSecrets,
}

/// Secrets that become known while the program runs, such as a key that a command printed. Every redactor that was made
/// with them masks them from then on.
#[derive(Clone, Default)]
pub struct LateSecrets(Arc<RwLock<Vec<String>>>);

impl LateSecrets {
    /// Adds a secret, unless it is an ordinary value.
    pub fn add(&self, secret: &str) {
        let mut secrets = self.0.write().expect("no holder of the secrets panics");
        if !is_ordinary(secret) && !secrets.iter().any(|known| known == secret) {
            secrets.extend(list_forms(secret));
            secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
    }
}

impl std::fmt::Debug for LateSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LateSecrets(***)")
    }
}

impl Redactor {
    /// A redactor of these secrets. Ordinary values are skipped: they are placeholders, and text would become
    /// unreadable.
    pub fn new(mut secrets: Vec<String>) -> Self {
        secrets.retain(|secret| !is_ordinary(secret));
        secrets = secrets.iter().flat_map(|secret| list_forms(secret)).collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self { secrets, late: LateSecrets::default() }
    }

    /// Masks these as well, as soon as they are known.
    pub fn with_late(self, late: LateSecrets) -> Self {
        Self { late, ..self }
    }

    /// Replaces each known secret, and text that has the shape of a key, by `***`; borrowed if there is none.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = self.redact_known(text);
        match shapes::mask_keys(&text, MASK) {
            Some(masked) => Cow::Owned(masked),
            None => text,
        }
    }

    /// Replaces only known secrets: text that the user types may be about things that look like keys.
    pub fn redact_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        let late = self.late.0.read().expect("no holder of the secrets panics");
        for secret in self.secrets.iter().chain(late.iter()) {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), MASK));
            }
        }
        text
    }

    /// Where the end of a text begins that may be the beginning of a known secret, of which the rest is yet to come; the length
    /// of the text if there is none.
    pub fn find_begun(&self, text: &str) -> usize {
        let late = self.late.0.read().expect("no holder of the secrets panics");
        let known = || self.secrets.iter().chain(late.iter());
        let longest = known().map(String::len).max().unwrap_or(0);
        let tails = text.char_indices().skip_while(|(at, _)| text.len() - at >= longest);
        let mut begun = tails.filter(|(at, _)| known().any(|secret| secret.starts_with(&text[*at..])));
        begun.next().map_or(text.len(), |(at, _)| at)
    }

    /// Redacts every text within data, except keys of objects.
    pub fn redact_value(&self, value: &mut Value) {
        change_texts(value, &mut |text| {
            if let Cow::Owned(masked) = self.redact(text) {
                *text = masked;
            }
        });
    }

    /// Masks a value in place: known secrets, passwords in URLs, and every text under a key that looks secret.
    pub fn mask(&self, key: &str, value: &mut Value) {
        match value {
            Value::String(text) if key_is_secret(key) && !text.is_empty() => MASK.clone_into(text),
            Value::String(text) => {
                *text = without_credentials(text, MASK);
                if let Cow::Owned(masked) = self.redact(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(key, item)),
            Value::Object(entries) => {
                for (name, value) in entries.iter_mut() {
                    let name = if key_is_secret(key) { key } else { name };
                    self.mask(name, value);
                }
            }
            _ => {}
        }
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

/// A secret as it is, and as a program writes it in JSON.
fn list_forms(secret: &str) -> Vec<String> {
    let quoted = Value::from(secret).to_string();
    let quoted = Some(&quoted[1..quoted.len() - 1]).filter(|quoted| *quoted != secret);
    [Some(secret), quoted].into_iter().flatten().map(str::to_owned).collect()
}

/// True if the value of this key is a secret. Counts of tokens are not.
fn key_is_secret(key: &str) -> bool {
    const MARKS: [&str; 4] = ["AUTHORIZATION", "COOKIE", "HEADERS", "PASSWD"];
    let key = key.to_ascii_uppercase();
    let counts = key.contains("TOKENS") && (key.contains("MAX") || key.contains("BUDGET"));
    !counts && (looks_secret(&key) || MARKS.iter().any(|mark| key.contains(mark)))
}

/// A line of a YAML text as it may be shown, or `None` if there is no such line.
pub fn mask_line(text: &str, number: usize) -> Option<String> {
    let line = text.lines().nth(number.checked_sub(1)?)?.trim_start_matches('\u{feff}');
    let indent = |line: &str| line.len() - line.trim_start().len();
    // A value may be below its key: headers, a list of keys, a block.
    let mut level = indent(line);
    let above: Vec<&str> = text.lines().take(number - 1).filter(|line| !line.trim().is_empty()).collect();
    for parent in above.into_iter().rev() {
        if indent(parent) < level {
            level = indent(parent);
            let key = parent.trim_start().trim_start_matches("- ").split(':').next().unwrap_or_default();
            if key_is_secret(key) {
                let shown = line.split_once(':').map_or(String::new(), |(key, _)| format!("{key}: "));
                return Some(format!("{shown}{MASK}"));
            }
        }
    }
    let mut masked = without_credentials(line, MASK);
    let mut from = 0;
    while let Some(colon) = masked[from..].find(':').map(|at| at + from) {
        let name_end = masked[..colon].trim_end_matches(['"', '\'', ' ']).len();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let name_start =
            masked[..name_end].rfind(|c| !is_name(c)).map_or(0, |at| masked.ceil_char_boundary(at + 1));
        let value = masked[colon + 1..].trim_start().trim_start_matches(['"', '\'']);
        let shows_nothing = value.is_empty() || value.starts_with("{{") || value.starts_with('#');
        if key_is_secret(&masked[name_start..name_end]) && !shows_nothing {
            masked.truncate(colon + 1);
            masked.push_str(" ***");
            break;
        }
        from = colon + 1;
    }
    Some(masked)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Redactor, mask_line};

    #[test]
    fn lines_are_shown_without_secrets() {
        let table = [
            ("api_key: sk-123", 1, "api_key: ***"),
            ("api_key: \"{{ env.KEY }}\"", 1, "api_key: \"{{ env.KEY }}\""),
            ("max_tokens: abc", 1, "max_tokens: abc"),
            ("base_url: https://me:pw@host/v1", 1, "base_url: https://***@host/v1"),
            ("base_url: https://host/v1?key=abc", 1, "base_url: https://host/v1?key=***"),
            ("headers:\n  X-Any: abc", 2, "  X-Any: ***"),
            ("headers: { Authorization: Bearer x }", 1, "headers: ***"),
            ("api_key:\n  - sk-1", 2, "***"),
            ("x: {a: 1, \"my_secret\": pw, b: 2}", 1, "x: {a: 1, \"my_secret\": ***"),
        ];
        for (text, line, expected) in table {
            assert_eq!(mask_line(text, line).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn known_values_disappear_wherever_they_stand() {
        let redactor =
            Redactor::new(["a1b2c3d4e5", "xx-a1b2c3d4e5-xx", "1234", "disabled"].map(str::to_owned).into());
        let text = "a a1b2c3d4e5 b xx-a1b2c3d4e5-xx 1234 disabled";
        assert_eq!(redactor.redact(text), "a *** b *** 1234 disabled");
        assert!(matches!(redactor.redact("nothing"), std::borrow::Cow::Borrowed(_)));
        let mut value =
            json!({"extra": {"api_key": "k", "max_tokens": 5, "n": ["a1b2c3d4e5"]}, "u": "http://a:b@c/"});
        redactor.mask("", &mut value);
        let expected = json!({"extra": {"api_key": "***", "max_tokens": 5, "n": ["***"]}, "u": "http://***@c/"});
        assert_eq!(value, expected);
    }
}
