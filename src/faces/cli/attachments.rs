//! Files named by options: `-f` and `--var` read text of a bounded size and never truncate it, `--output-file` writes an
//! answer.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;

use crate::conversation::attachment::Attachment;

use super::args::{Var, VarValue};
use super::{CommandFailure, stdin};

/// The largest attachment, in bytes.
const MOST_ATTACHED: u64 = 16 << 20;
/// The largest file of a variable, in bytes.
const MOST_IN_VARIABLE: u64 = 10 << 20;

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
    let bytes = read_bounded(path, MOST_ATTACHED).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => {
            format!("{name} is a directory. Attach files, or name the directory in the task.")
        }
        io::ErrorKind::FileTooLarge => {
            format!("{name} is larger than 16 MiB. Name its path in the task instead.")
        }
        _ => format!("cannot read {name}: {error}"),
    })?;
    from_bytes(&name, bytes)
}

/// Reads a file, or a pipe or a device, which does not report its size.
///
/// # Errors
/// Also that it is a directory, or too large.
fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut bytes = Vec::new();
    if metadata.len() <= most {
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    }
    let is_too_large = metadata.len().max(bytes.len() as u64) > most;
    if is_too_large { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
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
        Err(error) if error.kind() == io::ErrorKind::NotFound => match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
                refused(&"its directory does not exist")
            }
            _ => Ok(()),
        },
        Err(error) => refused(&error),
    }
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

/// Reads the values, in order.
///
/// # Errors
/// A usage error that names the variable and the file.
pub(super) fn read_vars(vars: &[Var]) -> Result<Vec<(String, Value)>, CommandFailure> {
    let value = |Var { name, value }: &Var| {
        let value = match value {
            VarValue::Given(value) => value.clone(),
            VarValue::File(path) => read_text_file(path)
                .map(Value::String)
                .map_err(|why| CommandFailure::usage(format!("--var {name}=@{}: {why}", path.display())))?,
        };
        Ok((name.clone(), value))
    };
    vars.iter().map(value).collect()
}

/// Reads the text of a file, or of a pipe made by a shell.
fn read_text_file(path: &Path) -> Result<String, String> {
    let bytes = read_bounded(path, MOST_IN_VARIABLE).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            "there is no such file (a text that begins with @ is written with @@)".to_owned()
        }
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::FileTooLarge => "it is longer than 10 MiB".to_owned(),
        _ => format!("it cannot be read: {error}"),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        format!("it is not UTF-8 text: byte {} belongs to no character", error.utf8_error().valid_up_to())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_data_is_refused_and_odd_text_is_not() {
        assert!(from_bytes("x", vec![1, 0, 2]).is_err());
        assert_eq!(from_bytes("x", vec![b'a', 0xff]).expect("text").content, "a\u{fffd}");
    }

    #[test]
    fn a_file_is_text_of_at_most_ten_mebibytes() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            path
        };
        let longest = vec![b'x'; 10 << 20];
        assert_eq!(read_text_file(&at("fits", &longest)).expect("text").len(), 10 << 20);
        assert_eq!(read_text_file(&at("same", b"{{ x }}\r\n\n")).expect("text"), "{{ x }}\r\n\n", "kept as it is");
        for (path, why) in [
            (at("long", &[longest.as_slice(), b"x"].concat()), "longer than 10 MiB"),
            (at("latin", b"caf\xe9"), "it is not UTF-8 text: byte 3"),
            (dir.path().join("gone"), "there is no such file"),
            (dir.path().to_path_buf(), "it is a directory"),
        ] {
            let error = read_text_file(&path).expect_err("refused");
            assert!(error.contains(why), "{error}");
        }
    }
}
