//! Names of sessions (they sort by start time) and of the directory of a workspace's sessions.

use std::path::Path;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// `YYYYMMDD-HHMMSS-xxxxxx`: the second (UTC), and 30 random bits in base 32, without letters that look like
/// digits.
pub(super) fn session_id(began: Timestamp, random: u32) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let tail = (0..6).map(|place| char::from(ALPHABET[(random >> (5 * place)) as usize % ALPHABET.len()]));
    format!("{}-{}", began.strftime("%Y%m%d-%H%M%S"), tail.collect::<String>())
}

/// The workspace's name for people, and a hash of its path, which separates workspaces of the same name.
pub(super) fn workspace_slug(workspace: &Path) -> String {
    use std::fmt::Write;
    const LONGEST: usize = 40;
    let name = workspace.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let mut slug: String = name.chars().take(LONGEST).map(plain).collect();
    slug.push('-');
    for byte in Sha256::digest(workspace.as_os_str().as_encoded_bytes()).iter().take(4) {
        let _ = write!(slug, "{byte:02x}");
    }
    slug
}

/// RFC 3339, UTC, milliseconds.
pub(super) fn format_stamp(time: Timestamp) -> String {
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{format_stamp, session_id, workspace_slug};

    #[test]
    fn ids_sort_by_time() {
        let at = |text: &str| text.parse().expect("a time");
        assert_eq!(session_id(at("2026-02-03T04:05:06.789Z"), 0), "20260203-040506-000000");
        assert_eq!(session_id(at("2026-02-03T04:05:06Z"), u32::MAX), "20260203-040506-zzzzzz");
        assert_eq!(format_stamp(at("2026-02-03T04:05:06.7891Z")), "2026-02-03T04:05:06.789Z");
    }

    #[test]
    fn a_workspace_has_one_directory() {
        let slug = workspace_slug(Path::new("/home/ada/My Project"));
        assert!(slug.starts_with("my-project-") && slug.len() == "my-project-".len() + 8, "{slug}");
        assert_ne!(slug, workspace_slug(Path::new("/home/bob/My Project")));
        assert!(!workspace_slug(Path::new("/")).is_empty());
    }
}
