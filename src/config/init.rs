//! `agent init`: the built-in configuration, prompts and skills as files to edit.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::base::builtin::{self, Dir};
use crate::base::yaml;

/// One file, and true if it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitFile {
    pub path: PathBuf,
    /// False if a file of this name was there already and was left as it is.
    pub written: bool,
}

/// Writes every built-in file below `dir`, which then is a config directory with prompts and skills inside it.
/// Overwrites nothing. Skills that are examples are written only if `examples` says so. `own` is a path below `dir`,
/// and the text to write there in place of the built-in file.
///
/// # Errors
/// A directory or file cannot be written; what was written before it stays.
pub fn write_examples(dir: &Path, examples: bool, own: Option<(&str, &str)>) -> io::Result<Vec<InitFile>> {
    let mut files = Vec::new();
    if let Some((path, text)) = own {
        files.push(write_new(dir.join(path), text.as_bytes())?);
    }
    write_all(&builtin::CONFIGS, dir, &mut files)?;
    write_all(&builtin::PROMPTS, &dir.join("prompts"), &mut files)?;
    let skills = builtin::SKILLS.dirs().filter(|skill| examples || !is_example(skill));
    for skill in skills {
        write_all(skill, &dir.join("skills"), &mut files)?;
    }
    Ok(files)
}

/// True if the head of a skill says `metadata: { example: true }`.
fn is_example(skill: &Dir<'static>) -> bool {
    let path = format!("{}/SKILL.md", skill.path().display());
    let head = builtin::find_tree("skills", &path).map(|packed| yaml::unpack_tree(packed, 0));
    let example = head.as_ref().and_then(|head| head.get("metadata")?.get("example")?.text());
    example == Some("true")
}

fn write_all(built_in: &Dir<'static>, into: &Path, files: &mut Vec<InitFile>) -> io::Result<()> {
    let is_placeholder = |path: &Path| path.file_name().is_some_and(|name| name == ".gitkeep");
    for file in built_in.files().filter(|file| !is_placeholder(file.path())) {
        let path = into.join(file.path());
        if files.iter().all(|written| written.path != path) {
            files.push(write_new(path, file.contents())?);
        }
    }
    built_in.dirs().try_for_each(|dir| write_all(dir, into, files))
}

/// Writes a file that does not exist yet.
fn write_new(path: PathBuf, contents: &[u8]) -> io::Result<InitFile> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| name_file(parent, &error))?;
    }
    let written = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(mut target) => target.write_all(contents).map(|()| true).map_err(|e| name_file(&path, &e))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(name_file(&path, &error)),
    };
    Ok(InitFile { path, written })
}

fn name_file(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::write_examples;
    use crate::config::{Env, LoadOptions, SettingFlags, load_config};
    use crate::files::workspace::Workspace;

    #[test]
    fn what_is_written_out_is_what_was_built_in() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("agent.yaml"), "default_agent: default").expect("written");
        let files = write_examples(dir.path(), false, None).expect("written");
        let kept: Vec<_> = files.iter().filter(|file| !file.written).map(|file| file.path.clone()).collect();
        assert_eq!(kept, [dir.path().join("agent.yaml")]);
        assert!(write_examples(dir.path(), false, None).expect("nothing to do").iter().all(|file| !file.written));
        let examples = write_examples(dir.path(), true, None).expect("written");
        let mut new = examples.iter().filter(|file| file.written).peekable();
        assert!(new.peek().is_some(), "there is an example");
        assert!(new.all(|file| file.path.starts_with(dir.path().join("skills/book-flight"))));

        let env = Env::from_pairs([("HOME", "/nowhere")]);
        let workspace = Workspace::open(dir.path()).expect("a workspace");
        let show = |config_dir| {
            let options = LoadOptions {
                env: &env,
                workspace: &workspace,
                config_dir,
                sets: &[],
                flags: SettingFlags::default(),
                brought: None,
                trust: false,
                tools: &[],
            };
            load_config(&options).expect("valid").show()
        };
        assert_eq!(show(Some(dir.path().to_path_buf())), show(None));
    }
}
