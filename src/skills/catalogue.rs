//! The skills of a run: what each is for, and its instructions when it is loaded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::builtin::{self, Dir};
use crate::frontmatter;
use crate::text;

use super::discover;
use super::error::{SkillError, SkillErrorKind};
use super::folder::{Folder, Page, Window, and_more};
use super::header;
use super::unpack::unpack;

/// All skills that can be loaded, by name.
#[derive(Debug)]
pub struct Catalogue {
    skills: BTreeMap<String, Skill>,
    warnings: Vec<String>,
    /// Built-in skills are unpacked below it.
    cache: PathBuf,
}

/// What is known of a skill before it is loaded.
#[derive(Debug, Clone)]
pub struct Skill {
    pub name: String,
    /// On one line.
    pub description: String,
    /// The `SKILL.md` of the skill of the same name from a lower directory, which is not used.
    pub hides: Option<String>,
    pub(super) place: Place,
}

/// Where a skill lives.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Builtin(&'static Dir<'static>),
    Folder {
        /// Absolute, links followed.
        dir: PathBuf,
        /// Its `SKILL.md`.
        file: PathBuf,
    },
}

/// A skill's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    pub name: String,
    /// `SKILL.md` without its head.
    pub text: String,
    /// The file that the text is from, for people.
    pub path: String,
    /// What relative paths in the text are relative to. `None` when a built-in skill could not be unpacked: its
    /// files can be read as references all the same.
    pub directory: Option<PathBuf>,
    /// The files beside `SKILL.md`, relative to the directory, sorted.
    pub files: Vec<String>,
    /// How many more files there are than `files` names.
    pub more_files: usize,
}

impl Body {
    /// What it costs, as an estimate: bytes over four.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.text.len() as u64 / 4
    }

    /// Its files on one line; empty where there are none.
    #[must_use]
    pub fn listing(&self) -> String {
        self.files.join(", ") + &and_more(self.more_files)
    }
}

impl Skill {
    /// Its `SKILL.md`, for people.
    #[must_use]
    pub fn path(&self) -> String {
        match &self.place {
            Place::Builtin(dir) => format!("built-in skills/{}/SKILL.md", dir.path().display()),
            Place::Folder { file, .. } => file.display().to_string(),
        }
    }
}

impl Catalogue {
    /// The built-in skills and those below `dirs`, lowest first: a later one hides an earlier one of its name.
    /// `cache` is the directory of what can be made again.
    #[must_use]
    pub fn discover(dirs: &[PathBuf], cache: &Path) -> Self {
        let cache = cache.join("skills").join(env!("CARGO_PKG_VERSION"));
        let mut catalogue = Self { skills: BTreeMap::new(), warnings: Vec::new(), cache };
        for dir in builtin::SKILLS.dirs() {
            catalogue.add_builtin(dir);
        }
        for dir in dirs {
            let found = discover::skills(dir, &mut catalogue.warnings);
            catalogue.add(found);
        }
        catalogue
    }

    /// What was left out or overlooked while discovering: one sentence each. That one skill hides another is how
    /// skills are replaced, and no warning ([`Skill::hides`]).
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.skills.values()
    }

    /// Where the files of skills lie, unpacked ones included: what the model may read besides the workspace.
    #[must_use]
    pub fn directories(&self) -> Vec<PathBuf> {
        let folders = self.skills.values().filter_map(|skill| match &skill.place {
            Place::Folder { dir, .. } => Some(dir.clone()),
            Place::Builtin(_) => None,
        });
        std::iter::once(self.cache.clone()).chain(folders).collect()
    }

    /// Whether there is nothing to load.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Takes out the skills whose name `keep` refuses.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.skills.retain(|name, _| keep(name));
    }

    /// The skill of this name.
    ///
    /// # Errors
    /// With the nearest names when there is none.
    pub fn get(&self, name: &str) -> Result<&Skill, SkillError> {
        self.skills.get(name).ok_or_else(|| {
            let names = || self.skills.keys().map(String::as_str);
            let known = match text::nearest(name, names()).as_slice() {
                [] if self.skills.is_empty() => "there are no skills".to_owned(),
                [] => format!("known: {}", names().collect::<Vec<_>>().join(", ")),
                near => format!("did you mean {}?", near.join(" or ")),
            };
            SkillError::new(SkillErrorKind::Unknown, format!("there is no skill `{name}`; {known}"))
        })
    }

    /// The instructions of a skill. A built-in one is unpacked, so that its files have paths.
    ///
    /// # Errors
    /// When there is no such skill, or its `SKILL.md` can no longer be read.
    pub fn load(&self, name: &str) -> Result<Body, SkillError> {
        let skill = self.get(name)?;
        let unreadable = |why: String| {
            SkillError::new(SkillErrorKind::Unreadable, format!("{} cannot be read: {why}", skill.path()))
        };
        let unpacked = self.cache.join(name);
        let (source, folder, directory) = match &skill.place {
            Place::Builtin(dir) => {
                let text = builtin_text(dir).unwrap_or_default().to_owned();
                let directory = unpack(dir, &unpacked).ok().map(|()| unpacked.clone());
                (text, Folder::Builtin(dir, &unpacked), directory)
            }
            Place::Folder { dir, file } => {
                let bytes = fs::read(file).map_err(|error| unreadable(error.to_string()))?;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                (text, Folder::Disk(dir), Some(dir.clone()))
            }
        };
        let body = frontmatter::split(&source).map_err(|error| unreadable(error.message))?.body;
        let (files, more_files) = folder.files();
        let path = directory.as_ref().map(|dir| dir.join("SKILL.md").display().to_string());
        Ok(Body {
            name: name.to_owned(),
            text: body.trim().to_owned(),
            path: match &skill.place {
                Place::Builtin(_) => path.unwrap_or_else(|| skill.path()),
                Place::Folder { .. } => skill.path(),
            },
            directory,
            files,
            more_files,
        })
    }

    /// A part of one file in a skill's folder.
    ///
    /// # Errors
    /// When there is no such skill, the path leads out of its folder, or the file or line does not exist.
    pub fn reference(&self, name: &str, path: &str, window: Window) -> Result<Page, SkillError> {
        let unpacked = self.cache.join(name);
        match &self.get(name)?.place {
            Place::Builtin(dir) => Folder::Builtin(dir, &unpacked).page(path, window),
            Place::Folder { dir, .. } => Folder::Disk(dir).page(path, window),
        }
    }

    fn add_builtin(&mut self, dir: &'static Dir<'static>) {
        let Some(header) = builtin_text(dir).and_then(|text| header::read(text).ok()) else { return };
        if let (Some(name), Some(description)) = (header.name, header.description) {
            self.skills.insert(name.clone(), Skill { name, description, hides: None, place: Place::Builtin(dir) });
        }
    }

    /// Adds what one directory holds. Of two skills of one name in it the first path wins; one from a lower
    /// directory is hidden.
    fn add(&mut self, found: Vec<Skill>) {
        let mut new: BTreeMap<String, Skill> = BTreeMap::new();
        for skill in found {
            match new.get(&skill.name) {
                Some(first) => self.warnings.push(format!(
                    "{} is left out: {} has the same name `{}`",
                    skill.path(),
                    first.path(),
                    skill.name
                )),
                None => {
                    new.insert(skill.name.clone(), skill);
                }
            }
        }
        for (name, skill) in new {
            let hides = self.skills.get(&name).map(Skill::path);
            self.skills.insert(name, Skill { hides, ..skill });
        }
    }
}

fn builtin_text(dir: &Dir<'static>) -> Option<&'static str> {
    let file = dir.files().find(|file| file.path().ends_with("SKILL.md"))?;
    std::str::from_utf8(file.contents()).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::Catalogue;
    use crate::skills::{Content, SkillErrorKind, Window};

    const ALL: Window = Window { offset: 1, limit: usize::MAX, bytes: usize::MAX };

    fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    fn discover(root: &Path, dirs: &[&str]) -> Catalogue {
        let dirs: Vec<_> = dirs.iter().map(|dir| root.join(dir)).collect();
        let mut catalogue = Catalogue::discover(&dirs, &root.join("cache"));
        catalogue.retain(|name| crate::builtin::SKILLS.get_dir(name).is_none());
        catalogue
    }

    fn names(catalogue: &Catalogue) -> Vec<&str> {
        catalogue.iter().map(|skill| skill.name.as_str()).collect()
    }

    #[test]
    fn a_skill_is_a_folder_with_a_head() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        write(root, "s/a/SKILL.md", "---\nname: a\ndescription: |\n  Two\n  lines\n---\nbody\n");
        write(root, "s/a/nested/SKILL.md", "---\nname: nested\ndescription: not searched\n---\n");
        write(root, "s/group/b/SKILL.md", "\u{feff}---\r\nname: b\r\ndescription: Use when: ever\r\n---\r\nB\r\n");
        write(root, "s/other/SKILL.md", "---\nname: Named-Otherwise\ndescription: d\n---\n");
        write(root, "s/mute/SKILL.md", "---\nname: mute\n---\n");
        write(root, "s/plain/SKILL.md", "# no head\n");
        write(root, "s/.git/x/SKILL.md", "---\nname: x\ndescription: d\n---\n");
        write(root, "s/node_modules/y/SKILL.md", "---\nname: y\ndescription: d\n---\n");
        let catalogue = discover(root, &["s", "absent"]);
        assert_eq!(names(&catalogue), ["Named-Otherwise", "a", "b"]);
        assert_eq!(catalogue.get("a").expect("there").description, "Two lines");
        assert_eq!(catalogue.load("b").expect("there").text, "B");
        let warnings = catalogue.warnings().join("\n");
        for expected in [
            "mute/SKILL.md is left out: it has no description",
            "plain/SKILL.md is left out: it does not begin with",
            "b/SKILL.md: its head is not YAML",
            "its name `Named-Otherwise` differs from its directory `other`",
            "should be lowercase",
        ] {
            assert!(warnings.contains(expected), "{expected}: {warnings}");
        }
        let error = catalogue.get("named-otherwise").expect_err("case matters").message;
        assert!(error.contains("did you mean Named-Otherwise?"), "{error}");
    }

    #[test]
    fn the_nearer_of_two_wins_and_the_other_is_named() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        for (path, description) in [("far/x", "far"), ("near/x", "near"), ("near/y", "second of one directory")] {
            write(root, &format!("{path}/SKILL.md"), format!("---\nname: x\ndescription: {description}\n---\n"));
        }
        let catalogue = discover(root, &["far", "near"]);
        let skill = catalogue.get("x").expect("there");
        assert_eq!(skill.description, "near");
        assert!(skill.hides.as_ref().is_some_and(|path| path.ends_with("far/x/SKILL.md")), "{skill:?}");
        let warnings = catalogue.warnings().join("\n");
        assert!(warnings.contains("has the same name `x`") && !warnings.contains("far"), "{warnings}");
    }

    #[cfg(unix)]
    #[test]
    fn nothing_outside_the_folder_is_read() {
        let root = tempfile::tempdir().expect("a directory");
        let root = &root.path().canonicalize().expect("it exists");
        write(root, "s/a/SKILL.md", "---\nname: a\ndescription: d\n---\n");
        write(root, "s/a/docs/x.md", "one\ntwo\nthree\n");
        write(root, "s/a/logo.png", b"\x89PNG\r\n\0\0\0");
        write(root, "s/a/latin.txt", b"caf\xe9 au lait, un texte\n");
        write(root, "s/secret.txt", "secret");
        fs::create_dir_all(root.join("elsewhere/out")).expect("a directory");
        write(root, "elsewhere/out/SKILL.md", "---\nname: out\ndescription: d\n---\n");
        for (target, path) in
            [("../secret.txt", "a/link.txt"), ("..", "a/up"), ("docs", "a/same"), ("../elsewhere/out", "out")]
        {
            std::os::unix::fs::symlink(target, root.join("s").join(path)).expect("a link");
        }
        let catalogue = discover(root, &["s"]);
        assert_eq!(names(&catalogue), ["a"], "a link out of the directory is no skill");
        assert_eq!(catalogue.load("a").expect("there").files, ["docs/x.md", "latin.txt", "logo.png"]);

        let absolute = root.join("s/a/docs/x.md");
        for path in ["docs/x.md", "./docs/../docs/x.md", absolute.to_str().expect("plain")] {
            let page = catalogue.reference("a", path, ALL).expect("inside");
            assert_eq!((page.path.as_str(), page.size), ("docs/x.md", 14));
        }
        for (path, kind) in [
            ("../secret.txt", SkillErrorKind::Outside),
            ("docs/../../secret.txt", SkillErrorKind::Outside),
            ("/etc/passwd", SkillErrorKind::Outside),
            ("link.txt", SkillErrorKind::Outside),
            ("up/secret.txt", SkillErrorKind::Outside),
            ("docs/y.md", SkillErrorKind::Unknown),
            ("docs", SkillErrorKind::Unknown),
            ("", SkillErrorKind::Unknown),
        ] {
            assert_eq!(catalogue.reference("a", path, ALL).expect_err(path).kind, kind, "{path}");
        }
        let content = |path: &str| catalogue.reference("a", path, ALL).expect("inside").content;
        assert_eq!(content("logo.png"), Content::Other("binary"));
        assert!(matches!(content("latin.txt"), Content::Lines { text, .. } if text.contains("au lait")));
    }

    #[test]
    fn a_file_is_paged_by_lines() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        write(root, "s/a/SKILL.md", "---\nname: a\ndescription: d\n---\n");
        write(root, "s/a/x.md", "one\ntwo\nthree\n");
        write(root, "s/a/empty", "");
        let catalogue = discover(root, &["s"]);
        let page = |path: &str, offset, limit, bytes| match catalogue
            .reference("a", path, Window { offset, limit, bytes })
            .map(|page| page.content)
        {
            Ok(Content::Lines { text, first, last, lines, cut }) => Ok((text, first, last, lines, cut)),
            Ok(Content::Other(what)) => panic!("{what}"),
            Err(error) => Err(error.message),
        };
        assert_eq!(page("x.md", 2, 1, 99), Ok(("two\n".to_owned(), 2, 2, 3, false)));
        assert_eq!(page("x.md", 1, 99, 9), Ok(("one\ntwo\n".to_owned(), 1, 2, 3, false)));
        assert_eq!(page("x.md", 3, 99, 2), Ok(("th".to_owned(), 3, 3, 3, true)));
        assert_eq!(page("empty", 1, 99, 9), Ok((String::new(), 1, 0, 0, false)));
        assert_eq!(page("x.md", 4, 1, 9), Err("`x.md` has 3 lines; there is no line 4".to_owned()));
    }

    #[test]
    fn a_built_in_skill_is_unpacked_once_and_repaired() {
        let root = tempfile::tempdir().expect("a directory");
        let catalogue = Catalogue::discover(&[], root.path());
        let body = catalogue.load("workspace-tour").expect("built in");
        let reference = body.directory.expect("unpacked").join("references/reading-order.md");
        let whole = fs::read(&reference).expect("unpacked");
        let untouched = fs::metadata(&reference).expect("a file").modified().expect("a time");
        catalogue.load("workspace-tour").expect("again");
        assert_eq!(fs::metadata(&reference).expect("a file").modified().expect("a time"), untouched);
        fs::write(&reference, "broken").expect("a file");
        catalogue.load("workspace-tour").expect("again");
        assert_eq!(fs::read(&reference).expect("repaired"), whole);

        let nowhere = Catalogue::discover(&[], &reference);
        assert_eq!(nowhere.load("workspace-tour").expect("without a place").directory, None);
        assert!(nowhere.reference("workspace-tour", "references/reading-order.md", ALL).is_ok());
    }
}
