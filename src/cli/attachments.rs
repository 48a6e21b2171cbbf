//! Reading what `-f` names: text of a bounded size, never a silent cut.

use std::path::Path;

use crate::attachment::Attachment;

use super::stdin;

/// More than this is an error.
const MOST_BYTES: u64 = 16 << 20;

/// Reads a file; `-` is standard input.
///
/// # Errors
/// A sentence with the file's name.
pub(super) fn read(path: &Path) -> Result<Attachment, String> {
    if path == Path::new("-") {
        let bytes = stdin::whole(super::note).map_err(|error| error.to_string())?;
        return from_bytes("stdin", bytes);
    }
    let name = path.display().to_string();
    let metadata = std::fs::metadata(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    if metadata.is_dir() {
        return Err(format!("{name} is a directory: attach files, or name the directory in the task"));
    }
    if metadata.len() > MOST_BYTES {
        return Err(format!("{name} has more than 16 MiB: name its path in the task instead"));
    }
    from_bytes(&name, std::fs::read(path).map_err(|error| format!("cannot read {name}: {error}"))?)
}

/// Text from bytes; what is not Unicode is replaced, what is binary refused.
///
/// # Errors
/// A sentence with the name.
pub(super) fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Attachment, String> {
    const PEEK: usize = 8192;
    if bytes.iter().take(PEEK).any(|byte| *byte == 0) {
        return Err(format!("{name} is binary: attach text, or name the path in the task"));
    }
    let content =
        String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into());
    Ok(Attachment { name: name.to_owned(), content })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_data_is_refused_and_odd_text_is_not() {
        assert!(from_bytes("x", vec![1, 0, 2]).is_err());
        assert_eq!(from_bytes("x", vec![b'a', 0xff]).expect("text").content, "a\u{fffd}");
    }
}
