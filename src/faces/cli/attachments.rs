//! Files named by options: `-f` reads text and pictures, `--var` text, of a bounded size and never truncated;
//! `--output-file` writes an answer.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::base::image::Image;
use crate::conversation::attachment::{Attachment, Attachments};
use crate::model::ModelInfo;
use crate::tools::decode_text;

use super::args::{Var, VarValue};
use super::{CommandFailure, stdin};

/// The largest attachment, in bytes.
const MOST_ATTACHED: u64 = 16 << 20;
/// The largest file of a variable, in bytes.
const MOST_IN_VARIABLE: u64 = 10 << 20;

/// Reads the files of `-f`, in order; `-` is standard input.
///
/// # Errors
/// A usage error that names the file.
pub(super) fn read_attachments(files: &[PathBuf]) -> Result<Attachments, CommandFailure> {
    let mut attached = Attachments::default();
    for path in files {
        read_attachment(path, &mut attached).map_err(CommandFailure::usage)?;
    }
    Ok(attached)
}

fn read_attachment(path: &Path, attached: &mut Attachments) -> Result<(), String> {
    if path == Path::new("-") {
        let bytes = stdin::read_whole(super::note_progress).map_err(|error| error.to_string())?;
        return attach(attached, "stdin", &bytes);
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
    attach(attached, &name, &bytes)
}

/// Attaches bytes: a picture as such, else as text. Other binary data is refused.
///
/// # Errors
/// A sentence with the name.
pub(super) fn attach(attached: &mut Attachments, name: &str, bytes: &[u8]) -> Result<(), String> {
    const PEEK: usize = 8192;
    if Image::recognise(&bytes[..bytes.len().min(PEEK)]).is_some() {
        attached.pictures.push(Image::read(bytes).map_err(|why| format!("{name} {why}"))?);
        return Ok(());
    }
    let content = decode_text(bytes).ok_or_else(|| {
        format!("{name} is binary. Attach text, a picture or a PDF, or name its path in the task.")
    })?;
    attached.texts.push(Attachment { name: name.to_owned(), content });
    Ok(())
}

/// Checks that the model can see what is attached.
///
/// # Errors
/// A usage error.
pub(super) fn check_pictures(attached: &Attachments, model: &ModelInfo) -> Result<(), CommandFailure> {
    let what = match attached.pictures.iter().find(|picture| !model.shows(picture)) {
        None => return Ok(()),
        Some(picture) if picture.is_document() => "takes no PDFs at its server; pdftotext makes text of one, and",
        Some(_) => "sees no pictures;",
    };
    Err(CommandFailure::usage(format!("{} {what} -m names another model", model.id)))
}

/// Reads a file, or a pipe of a shell or a device, which does not report its size. A FIFO with a name would be waited for
/// until somebody writes it.
///
/// # Errors
/// Also that it is a directory, or too large.
fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if is_special(path, &metadata) {
        return Err(io::Error::other("it is no regular file; `<(cat FILE)` gives what comes out of it"));
    }
    let mut bytes = Vec::new();
    if metadata.len() <= most {
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    }
    let is_too_large = metadata.len().max(bytes.len() as u64) > most;
    if is_too_large { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// True if it is neither a regular file nor one of those that the system makes for pipes and devices.
fn is_special(path: &Path, metadata: &Metadata) -> bool {
    !metadata.is_file() && !["/dev", "/proc"].iter().any(|dir| path.starts_with(dir))
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
        Ok(metadata) if is_special(path, &metadata) => {
            refused(&"it is no regular file; `--output-file >(cat >FILE)` gives the answer to another program")
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
    fn binary_data_is_refused_unless_it_is_a_picture_and_odd_text_is_not() {
        let mut attached = Attachments::default();
        assert!(attach(&mut attached, "x", &[1, 0, 2]).is_err());
        attach(&mut attached, "x", b"caf\xe9").expect("text");
        attach(&mut attached, "y", b"\x89PNG\r\n\x1a\n\0").expect("a picture");
        assert_eq!((attached.texts[0].content.as_str(), attached.pictures.len()), ("caf\u{e9}", 1));
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_of_a_shell_is_read_and_a_fifo_is_not_waited_for() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let dir = tempfile::tempdir().expect("a directory");
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("made");
        let error = read_attachment(&fifo, &mut Attachments::default()).expect_err("refused");
        assert!(error.contains("it is no regular file; `<(cat FILE)"), "{error}");
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"text").expect("written");
        drop(writer);
        let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
        assert_eq!(read_text_file(&path).as_deref(), Ok("text"));
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
