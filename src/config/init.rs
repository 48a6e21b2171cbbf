//! `agent init`: one file for the model, and copies of what is built in for whoever wants to edit it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::base::builtin::{self, Dir};
use crate::base::yaml;

/// The built-in files to copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitCopies {
    pub configs: bool,
    pub prompts: bool,
    pub skills: InitSkills,
    /// The skills that are examples.
    pub examples: bool,
}

/// The skills to copy, apart from examples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum InitSkills {
    #[default]
    None,
    All,
    One(String),
}

/// One file, and true if it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitFile {
    pub path: PathBuf,
    /// False if a file of this name was there already and was left as it is.
    pub written: bool,
}

/// Copies built-in files below `dir`, which then is a config directory with prompts and skills inside it. Each says where
/// it comes from, as far as its form has comments. Overwrites nothing.
///
/// # Errors
/// There is no such skill, or a directory or file cannot be written; what was written before it stays.
pub fn copy_built_in(dir: &Path, copies: &InitCopies) -> io::Result<Vec<InitFile>> {
    let mut files = Vec::new();
    if copies.configs {
        write_all(&builtin::CONFIGS, "", dir, &mut files)?;
    }
    if copies.prompts {
        write_all(&builtin::PROMPTS, "prompts", dir, &mut files)?;
    }
    let name = |skill: &Dir<'static>| skill.path().display().to_string();
    for skill in builtin::SKILLS.dirs() {
        let is_asked = match &copies.skills {
            InitSkills::One(one) => name(skill) == *one,
            InitSkills::All => !is_example(skill),
            InitSkills::None => false,
        };
        if is_asked || copies.examples && is_example(skill) {
            write_all(skill, "skills", dir, &mut files)?;
        }
    }
    match &copies.skills {
        InitSkills::One(one) if builtin::SKILLS.get_dir(one).is_none() => {
            let known: Vec<String> = builtin::SKILLS.dirs().map(name).collect();
            let told = format!("there is no built-in skill `{one}`; known: {}", known.join(", "));
            Err(io::Error::new(io::ErrorKind::NotFound, told))
        }
        _ => Ok(files),
    }
}

/// Copies the file of the default model.
///
/// # Errors
/// It cannot be written.
pub fn copy_model(dir: &Path) -> io::Result<InitFile> {
    let path = Path::new("models/default.yaml");
    let text = builtin::CONFIGS.get_file(path).and_then(|file| file.contents_utf8()).unwrap_or_default();
    write_new(dir.join(path), with_origin(path, text).as_bytes())
}

/// Writes a file of the person's own, unless there is one.
///
/// # Errors
/// It cannot be written.
pub fn write_own(path: PathBuf, text: &str) -> io::Result<InitFile> {
    write_new(path, text.as_bytes())
}

/// True if the head of a skill says `metadata: { example: true }`.
fn is_example(skill: &Dir<'static>) -> bool {
    let path = format!("{}/SKILL.md", skill.path().display());
    let head = builtin::find_tree("skills", &path).map(|packed| yaml::unpack_tree(packed, 0));
    let example = head.as_ref().and_then(|head| head.get("metadata")?.get("example")?.text());
    example == Some("true")
}

fn write_all(built_in: &Dir<'static>, folder: &str, dir: &Path, files: &mut Vec<InitFile>) -> io::Result<()> {
    let is_placeholder = |path: &Path| path.file_name().is_some_and(|name| name == ".gitkeep");
    for file in built_in.files().filter(|file| !is_placeholder(file.path())) {
        let path = Path::new(folder).join(file.path());
        let text = file.contents_utf8().map(|text| with_origin(&path, text));
        files.push(write_new(dir.join(&path), text.as_deref().map_or(file.contents(), str::as_bytes))?);
    }
    built_in.dirs().try_for_each(|inside| write_all(inside, folder, dir, files))
}

/// The text under a comment that names its origin; as it is, if its form has no place for one.
fn with_origin(path: &Path, text: &str) -> String {
    let origin = format!("# Copied from agent {}: {}\n", env!("CARGO_PKG_VERSION"), path.display());
    let is_yaml = path.extension().is_some_and(|kind| kind == "yaml" || kind == "j2");
    match text.strip_prefix("---\n") {
        Some(rest) if !is_yaml => format!("---\n{origin}{rest}"),
        _ if is_yaml => origin + text,
        _ => text.to_owned(),
    }
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

    use super::{InitCopies, InitSkills, copy_built_in};
    use crate::config::{Env, LoadOptions, load_config};
    use crate::files::workspace::Workspace;

    #[test]
    fn what_is_copied_means_what_is_built_in() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("agent.yaml"), "default_agent: default").expect("written");
        let all = InitCopies { configs: true, prompts: true, skills: InitSkills::All, examples: false };
        let files = copy_built_in(dir.path(), &all).expect("written");
        let kept: Vec<_> = files.iter().filter(|file| !file.written).map(|file| file.path.clone()).collect();
        assert_eq!(kept, [dir.path().join("agent.yaml")]);
        assert!(copy_built_in(dir.path(), &all).expect("nothing to do").iter().all(|file| !file.written));
        let examples = InitCopies { examples: true, ..InitCopies::default() };
        let examples = copy_built_in(dir.path(), &examples).expect("written");
        assert!(examples.iter().any(|file| file.written), "there is an example");
        assert!(examples.iter().all(|file| file.path.starts_with(dir.path().join("skills/book-flight"))));
        for file in ["prompts/system/v2.0.md", "skills/workspace-tour/SKILL.md", "models/default.yaml"] {
            let text = fs::read_to_string(dir.path().join(file)).expect(file);
            let origin = format!("# Copied from agent {}: {file}\n", env!("CARGO_PKG_VERSION"));
            assert!(text.trim_start_matches("---\n").starts_with(&origin), "{file}: {text}");
        }
        let one = InitCopies { skills: InitSkills::One("nothing".to_owned()), ..InitCopies::default() };
        assert!(
            copy_built_in(dir.path(), &one).expect_err("no such skill").to_string().contains("workspace-tour")
        );

        let env = Env::from_pairs([("HOME", "/nowhere")]);
        let workspace = Workspace::open(dir.path()).expect("a workspace");
        let show = |config_dir| {
            let options = LoadOptions { config_dir, ..LoadOptions::new(&env, &workspace) };
            load_config(&options).expect("valid").show()
        };
        assert_eq!(show(Some(dir.path().to_path_buf())), show(None));
    }
}
