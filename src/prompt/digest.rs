//! Fingerprints: the SHA-256 of texts, whole and short.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The SHA-256 of texts one after another, in 64 hexadecimal digits.
pub fn hash_sha256<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let digest = texts.into_iter().fold(Sha256::new(), Sha256::chain_update).finalize();
    digest.iter().fold(String::with_capacity(64), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The digits of a digest that are shown.
pub(super) fn shorten_digest(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
