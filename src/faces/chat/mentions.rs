//! `@path` in a message attaches the file.
//!
//! Only files of the workspace are attached: messages are often pasted, and a paste must not send other files. A word
//! after `@` that does not name a file is an ordinary word.

use std::path::Path;

use crate::conversation::attachment::Attachment;
use crate::files::disk;
use crate::files::workspace::Workspace;

/// The size of the largest file, in bytes.
pub const MOST_BYTES: u64 = 256 * 1024;

/// What may follow a mention without being part of it.
pub const CLOSING: [char; 12] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '"', '`'];

/// The result of reading a mentioned file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mentioned {
    /// There is no such file; the word is an ordinary word.
    Nothing,
    Text(String),
    /// The file is not attached. The text says why.
    Refused(String),
    /// It is no file: whoever reads attaches it.
    Elsewhere,
}

/// Reads the files that `message` mentions, each once, in order. Also returns the reasons that others are not attached.
pub fn expand_mentions(message: &str, mut read: impl FnMut(&str) -> Mentioned) -> (Vec<Attachment>, Vec<String>) {
    let (mut attachments, mut refused) = (Vec::<Attachment>::new(), Vec::new());
    for mention in find_mentions(message) {
        // `see @src/main.rs.` means the file without the full stop, unless a file with it exists.
        let trimmed = mention.trim_end_matches(CLOSING);
        for name in [mention, trimmed] {
            if name.is_empty() || attachments.iter().any(|known| known.name == name) {
                break;
            }
            match read(name) {
                Mentioned::Nothing => continue,
                Mentioned::Text(content) => attachments.push(Attachment { name: name.to_owned(), content }),
                Mentioned::Refused(why) => refused.push(format!("@{name} is not attached: {why}")),
                Mentioned::Elsewhere => {}
            }
            break;
        }
    }
    (attachments, refused)
}

/// Reads a file that was mentioned, unless `omits` says that a rule denies it, or that credentials are kept there.
pub fn read_mention(workspace: &Workspace, name: &str, omits: impl Fn(&Path) -> bool) -> Mentioned {
    let resolved = workspace.resolve(name);
    // Anything else (a directory, a pipe that would block) cannot be attached.
    let Some(metadata) = std::fs::metadata(&resolved.path).ok().filter(std::fs::Metadata::is_file) else {
        return Mentioned::Nothing;
    };
    if !resolved.inside {
        return Mentioned::Refused("it is outside the workspace".to_owned());
    }
    if omits(&resolved.path) {
        return Mentioned::Refused(
            "a rule denies it, or credentials are kept there; -f FILE at the start attaches it".to_owned(),
        );
    }
    if metadata.len() > MOST_BYTES {
        let (size, most) = (metadata.len() / 1024, MOST_BYTES / 1024);
        return Mentioned::Refused(format!("it has {size} KiB, the limit is {most} KiB"));
    }
    match disk::open_file(&resolved.path).and_then(|mut file| file.read(MOST_BYTES)) {
        Err(error) => Mentioned::Refused(error.to_string()),
        Ok(bytes) if bytes.contains(&0) => Mentioned::Refused("it is binary".to_owned()),
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Mentioned::Text(text),
            Err(_) => Mentioned::Refused("it is not UTF-8 text".to_owned()),
        },
    }
}

/// Returns the text after each `@` that begins a word: up to white space, or between quotes.
fn find_mentions(message: &str) -> impl Iterator<Item = &str> {
    message.match_indices('@').filter_map(|(at, _)| {
        let before = message[..at].chars().next_back();
        if before.is_some_and(|c| !c.is_whitespace() && !matches!(c, '(' | '[' | '{' | '\'' | '"' | '`')) {
            return None;
        }
        let after = &message[at + 1..];
        match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').map(|(name, _)| name),
            None => after.split(char::is_whitespace).next().filter(|name| !name.is_empty()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_begin_with_at_and_name_a_file_are_attached() {
        let read = |name: &str| match name {
            "a.rs" | "dir/b c.txt" | "日本.md" | "odd." => Mentioned::Text(format!("<{name}>")),
            "big" => Mentioned::Refused("too big".to_owned()),
            _ => Mentioned::Nothing,
        };
        for (message, files, problems) in [
            ("see @a.rs", vec!["a.rs"], 0),
            ("(@a.rs), @a.rs.", vec!["a.rs"], 0),
            ("@\"dir/b c.txt\" and @日本.md?", vec!["dir/b c.txt", "日本.md"], 0),
            ("@odd.", vec!["odd."], 0),
            ("me@a.rs @Override @ @nobody", vec![], 0),
            ("@big", vec![], 1),
        ] {
            let (attachments, refused) = expand_mentions(message, read);
            let names: Vec<&str> = attachments.iter().map(|file| file.name.as_str()).collect();
            assert_eq!((names, refused.len()), (files, problems), "{message:?}");
        }
    }

    #[test]
    fn binary_huge_and_outside_files_stay_behind() {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let root = dir.path().join("w");
        std::fs::create_dir_all(root.join("sub")).expect("created");
        for (name, content) in [
            ("text.txt", b"hello".to_vec()),
            ("binary", vec![0; 4]),
            ("denied", b"hello".to_vec()),
            ("latin", vec![0xe9]),
            ("huge", vec![b'x'; 300 * 1024]),
            ("../outside", b"secret".to_vec()),
        ] {
            std::fs::write(root.join(name), content).expect("written");
        }
        let workspace = Workspace::open(&root).expect("it exists");
        assert_eq!(read_mention(&workspace, "text.txt", |_| false), Mentioned::Text("hello".to_owned()));
        for missing in ["sub", "no"] {
            assert_eq!(read_mention(&workspace, missing, |_| false), Mentioned::Nothing);
        }
        for refused in ["binary", "latin", "huge", "../outside", "denied"] {
            assert!(
                matches!(
                    read_mention(&workspace, refused, |path| path.ends_with("denied")),
                    Mentioned::Refused(_)
                ),
                "{refused}"
            );
        }
    }
}
