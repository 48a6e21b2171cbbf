//! Files named by options: `-f` reads text of a bounded size and never truncates it, `--output-file` writes an answer.

use std::io::Read;
use std::path::Path;

use crate::conversation::attachment::Attachment;

use super::stdin;

/// The largest attachment, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// Reads a file, or standard input for `-`.
///
/// # Errors
/// A sentence that names the file.
pub(super) fn read_attachment(path: &Path) -> Result<Attachment, String> {
    if path == Path::new("-") {
        let bytes = stdin::read_whole(super::note_progress).map_err(|error| error.to_string())?;
        return from_bytes("stdin", bytes);
    }
    let name = path.display().to_string();
    let metadata = std::fs::metadata(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    if metadata.is_dir() {
        return Err(format!("{name} is a directory. Attach files, or name the directory in the task."));
    }
    if metadata.len() > MOST_BYTES {
        return Err(too_long(&name));
    }
    // A pipe or a device does not report its size.
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("cannot read {name}: {error}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_long(&name));
    }
    from_bytes(&name, bytes)
}

/// Checks that an answer can be written to `path`, before the run costs anything. Creates nothing.
///
/// # Errors
/// A sentence that names the file.
pub(super) fn check_writable(path: &Path) -> Result<(), String> {
    let refused =
        |why: &dyn std::fmt::Display| Err(format!("cannot write the answer to {}: {why}", path.display()));
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => refused(&"it is a directory"),
        Ok(metadata) if metadata.is_file() => {
            std::fs::OpenOptions::new().append(true).open(path).map_or_else(|error| refused(&error), |_| Ok(()))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
                refused(&"its directory does not exist")
            }
            _ => Ok(()),
        },
        Err(error) => refused(&error),
    }
}

fn too_long(name: &str) -> String {
    format!("{name} is larger than 16 MiB. Name its path in the task instead.")
}

/// Makes an attachment from bytes. Replaces invalid UTF-8 and refuses binary data.
///
/// # Errors
/// A sentence with the name.
pub(super) fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Attachment, String> {
    const PEEK: usize = 8192;
    if bytes.iter().take(PEEK).any(|byte| *byte == 0) {
        return Err(format!("{name} is binary. Attach text, or name its path in the task."));
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
