//! The values of `--var`: text, JSON, and the text of files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::CommandFailure;
use super::args::{Var, VarValue};

/// The size of the largest file, in bytes.
const MOST_BYTES: u64 = 10 << 20;

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
    let unread = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            "there is no such file (a text that begins with @ is written with @@)".to_owned()
        }
        _ => format!("it cannot be read: {error}"),
    };
    let metadata = std::fs::metadata(path).map_err(unread)?;
    if metadata.is_dir() {
        return Err("it is a directory".to_owned());
    }
    let mut bytes = Vec::new();
    if metadata.len() <= MOST_BYTES {
        // A pipe does not report its size.
        File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)).map_err(unread)?;
    }
    if metadata.len().max(bytes.len() as u64) > MOST_BYTES {
        return Err("it is longer than 10 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        format!("it is not UTF-8 text: byte {} belongs to no character", error.utf8_error().valid_up_to())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
