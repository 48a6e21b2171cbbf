//! Reading what a person put on disk: regular files of a bounded size, as a pipe would be waited for and an endless
//! device never ends.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes of a file that is read while the program starts.
pub const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// The text of a regular file of at most 4 MiB; `None` where nothing has that path.
///
/// # Errors
/// A message about the problem, which is shown after the path.
pub fn read_regular(path: &Path) -> Result<Option<String>, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let length = match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
        Ok(data) if data.is_dir() => return Err("is a directory, not a file".to_owned()),
        Ok(data) if !data.is_file() => return Err("is not a regular file".to_owned()),
        Ok(data) => data.len(),
    };
    let too_long = || format!("is longer than {} MiB", LONGEST_FILE / 1024 / 1024);
    if length > LONGEST_FILE {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(LONGEST_FILE + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(too_long());
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "is not UTF-8".to_owned())
}
