//! Opens a text in the person's own editor.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::files::private::private_file;
use crate::safety::process::in_foreground;

/// The most bytes that are read back from a file.
const LONGEST: u64 = 1024 * 1024;

/// The editor of a person, and the directory for the files that it opens.
#[derive(Debug, Clone)]
pub struct ExternalEditor {
    /// The shell command that starts it, such as `vi` or `code --wait`.
    pub line: String,
    pub dir: PathBuf,
}

/// A temporary file that only its owner can read. Dropping it removes the file.
#[derive(Debug)]
pub struct EditorDraft(PathBuf);

impl EditorDraft {
    /// Writes the text to a new file in this directory, which is created if necessary.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(dir: &Path, text: &str, extension: &str) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        fs::create_dir_all(dir)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("draft-{}-{number}.{extension}", std::process::id()));
        // A killed process with the same id may have left its file behind.
        let _ = fs::remove_file(&path);
        let mut file = private_file().write(true).create_new(true).open(&path)?;
        let draft = Self(path);
        file.write_all(text.as_bytes())?;
        Ok(draft)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for EditorDraft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl ExternalEditor {
    /// Opens `text` and waits until the editor ends. Returns the saved text, or `None` if it is unchanged.
    ///
    /// # Errors
    /// A sentence for the person.
    pub async fn edit(&self, text: &str, extension: &str) -> Result<Option<String>, String> {
        let line = &self.line;
        let at = |error: io::Error| format!("cannot edit in {}: {error}", self.dir.display());
        let draft = EditorDraft::write(&self.dir, text, extension).map_err(at)?;
        match in_foreground(line, &draft.0).await {
            Ok(true) => {}
            Ok(false) => {
                return Err(format!("the editor `{line}` failed; nothing was changed (set VISUAL or EDITOR)"));
            }
            Err(error) => {
                return Err(format!("the editor `{line}` cannot be started: {error} (set VISUAL or EDITOR)"));
            }
        }
        let saved = read_draft(&draft.0).map_err(at)?;
        Ok((saved.trim() != text.trim()).then_some(saved))
    }
}

fn read_draft(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is longer than 1 MiB"));
    }
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}
