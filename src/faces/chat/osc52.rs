//! OSC 52: puts a text into the clipboard of the person's terminal, even over a connection to another machine.

use crate::base::image::encode_base64;

/// The longest text in bytes. Terminals drop a longer one, or show it as text.
pub const MOST_BYTES: usize = 74_994;

/// The sequence that puts a text into the clipboard; `None` if it is too long.
pub fn write_sequence(text: &str) -> Option<String> {
    (text.len() <= MOST_BYTES).then(|| format!("\x1b]52;c;{}\x07", encode_base64(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_one_sequence_unless_it_is_too_long() {
        assert_eq!(write_sequence("héllo").as_deref(), Some("\x1b]52;c;aMOpbGxv\x07"));
        let longest = write_sequence(&"x".repeat(MOST_BYTES)).expect("it fits");
        assert!(longest.len() <= 100_000, "{}", longest.len());
        assert_eq!(write_sequence(&"x".repeat(MOST_BYTES + 1)), None);
    }
}
