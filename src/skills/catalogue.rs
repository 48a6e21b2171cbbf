//! The skills of a run: the purpose of each, and its instructions when it is loaded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::builtin::{self, Dir};
use crate::base::frontmatter;
use crate::base::text;
use crate::base::yaml;
use crate::config::{FileAccess, SkillDir, SkillScope};

use super::allowed::Allowed;
use super::body::SkillBody;
use super::discover;
use super::error::{SkillError, SkillErrorKind};
use super::folder::{FilePage, FileWindow, Folder};
use super::header::{DESCRIPTION_CHARS, NAME_CHARS, SkillHeader};
use super::inside::{FILE, LARGEST, resolve_inside};
use super::note::{self, SkillNote};
use super::rendering::{self, RunVariables, SkillVariables};
use super::served::{self, ServedFolder, ServedSkill, SkillServer};
use super::unpack::unpack_skill;

/// All skills that can be loaded, by name.
#[derive(Debug)]
pub struct SkillCatalogue {
    skills: BTreeMap<String, Skill>,
    notes: Vec<SkillNote>,
    /// The directory that built-in skills are unpacked to.
    cache: PathBuf,
    around: RunVariables,
}

/// A skill before it is loaded.
#[derive(Debug, Clone)]
pub struct Skill {
    pub name: String,
    /// Its description, on one line.
    pub description: String,
    pub scope: SkillScope,
    pub license: Option<String>,
    pub compatibility: Option<String>,
    /// The tools that it asks to use without questions.
    pub allowed_tools: Vec<Allowed>,
    /// True if it is hidden from the model; people can load it.
    pub is_hidden: bool,
    /// True if its body is rendered when it is loaded.
    pub is_template: bool,
    /// The `SKILL.md` of unused skills of the same name that are farther away, nearest first.
    pub hides: Vec<String>,
    pub(super) place: SkillPlace,
}

/// The place of a skill.
#[derive(Debug, Clone)]
pub(super) enum SkillPlace {
    Builtin(&'static Dir<'static>),
    Folder {
        /// Absolute, with links resolved.
        dir: PathBuf,
        /// Its `SKILL.md`.
        file: PathBuf,
        through: FileAccess,
    },
    Served(Arc<ServedFolder>),
}

impl Skill {
    pub(super) fn new(
        name: String,
        description: String,
        header: SkillHeader,
        scope: SkillScope,
        place: SkillPlace,
    ) -> Self {
        Self {
            name: text::one_line(&name, NAME_CHARS + 1),
            description: text::one_line(&description, DESCRIPTION_CHARS + 1),
            scope,
            license: header.license,
            compatibility: header.compatibility,
            allowed_tools: header.allowed_tools.iter().map(|entry| Allowed::read(entry)).collect(),
            is_hidden: header.is_hidden,
            is_template: header.is_template,
            hides: Vec::new(),
            place,
        }
    }

    /// Its `SKILL.md`, for people.
    pub fn path(&self) -> String {
        match &self.place {
            SkillPlace::Builtin(dir) => format!("built-in skills/{}/{FILE}", dir.path().display()),
            SkillPlace::Folder { file, .. } => file.display().to_string(),
            SkillPlace::Served(folder) => folder.path(),
        }
    }
}

impl SkillPlace {
    /// Its files; `unpacked` is the directory that a built-in skill is unpacked to.
    fn folder<'a>(&'a self, unpacked: &'a Path) -> Folder<'a> {
        match self {
            Self::Builtin(dir) => Folder::Builtin(dir, unpacked),
            Self::Folder { dir, through, .. } => Folder::Disk(dir, through),
            Self::Served(folder) => Folder::Served(folder),
        }
    }
}

impl SkillCatalogue {
    /// The built-in skills and those of `dirs`, lowest first: a later one hides an earlier one of the same name.
    /// `cache` is the cache directory; `around` has the variables of bodies that are templates.
    pub fn discover(dirs: &[SkillDir], cache: &Path, around: RunVariables) -> Self {
        let cache = cache.join("skills").join(env!("CARGO_PKG_VERSION"));
        let mut catalogue = Self { skills: BTreeMap::new(), notes: Vec::new(), cache, around };
        for dir in builtin::SKILLS.dirs() {
            catalogue.add_builtin(dir);
        }
        let roots: Vec<(&SkillDir, PathBuf)> =
            dirs.iter().filter_map(|dir| Some((dir, discover::find_root(dir, &mut catalogue.notes)?))).collect();
        let real: Vec<PathBuf> = roots.iter().map(|(_, root)| root.clone()).collect();
        for (at, (dir, root)) in roots.iter().enumerate() {
            // A directory listed twice is read once, at its nearest position.
            if !real[at + 1..].contains(root) {
                let found = discover::find_folders(dir, root, &real, &mut catalogue.notes);
                let skill = |found| discover::read_skill(found, dir.scope, &dir.through, &mut catalogue.notes);
                let skills = found.iter().filter_map(skill).collect();
                catalogue.add(skills);
            }
        }
        catalogue
    }

    /// The remarks to show when a run begins.
    pub fn warnings(&self) -> Vec<String> {
        note::write_notes(&self.notes)
    }

    /// Every remark. A skill that hides another is not one, since skills are replaced this way ([`Skill::hides`]).
    pub fn notes(&self) -> &[SkillNote] {
        &self.notes
    }

    /// All skills, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.skills.values()
    }

    /// The skills that the model may load, sorted by name.
    pub fn list_offered(&self) -> impl Iterator<Item = &Skill> {
        self.iter().filter(|skill| !skill.is_hidden)
    }

    /// The directories of all skills, including unpacked ones: the model may read them besides the workspace.
    pub fn directories(&self) -> Vec<PathBuf> {
        let folders = self.skills.values().filter_map(|skill| match &skill.place {
            SkillPlace::Folder { dir, .. } => Some(dir.clone()),
            SkillPlace::Builtin(_) | SkillPlace::Served(_) => None,
        });
        std::iter::once(self.cache.clone()).chain(folders).collect()
    }

    /// True if there are no skills.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Removes the skills whose name `keep` rejects.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.skills.retain(|name, _| keep(name));
    }

    /// The skill of this name.
    ///
    /// # Errors
    /// There is none; the error has the nearest names.
    pub fn get(&self, name: &str) -> Result<&Skill, SkillError> {
        self.skills.get(name).ok_or_else(|| refuse_unknown(name, self.skills.keys().map(String::as_str)))
    }

    /// The skill of this name, if the model may load it.
    ///
    /// # Errors
    /// There is none; the error has the nearest names.
    pub fn get_offered(&self, name: &str) -> Result<&Skill, SkillError> {
        let skill = self.skills.get(name).filter(|skill| !skill.is_hidden);
        skill.ok_or_else(|| refuse_unknown(name, self.list_offered().map(|skill| skill.name.as_str())))
    }

    /// Loads the instructions of a skill; `arguments` are for a body that is a template. A built-in skill is
    /// unpacked, so that its files have paths.
    ///
    /// # Errors
    /// There is no such skill, or its `SKILL.md` can no longer be read or cannot be rendered.
    pub fn load(&self, name: &str, arguments: &str) -> Result<SkillBody, SkillError> {
        let skill = self.get(name)?;
        let unusable = |why: String| SkillError::new(SkillErrorKind::Unreadable, why);
        let unreadable = |why: String| unusable(format!("{} cannot be read: {why}", skill.path()));
        let unpacked = self.cache.join(name);
        let (source, directory) = match &skill.place {
            SkillPlace::Builtin(dir) => {
                let text = builtin_text(dir).unwrap_or_default().to_owned();
                (text, unpack_skill(dir, &unpacked).ok().map(|()| unpacked.clone()))
            }
            SkillPlace::Folder { dir, file, through } => {
                (read_skill(file, through).map_err(unreadable)?, Some(dir.clone()))
            }
            SkillPlace::Served(folder) => {
                let bytes = folder.content(FILE).and_then(|(_, bytes)| bytes);
                let bytes = bytes.ok_or_else(|| unreadable("it was not fetched".to_owned()))?;
                (String::from_utf8_lossy(&bytes).into_owned(), None)
            }
        };
        let parts = frontmatter::split_head(&source).map_err(|error| unreadable(error.message))?;
        let text = parts.body.trim();
        let blank = parts.body.len() - parts.body.trim_start().len();
        let first_line = parts.body_line + parts.body[..blank].matches('\n').count();
        let (text, first_line) = if skill.is_template {
            let subject = SkillVariables { name, directory: directory.as_deref(), arguments };
            let rendered = rendering::render_body(text, &subject, &self.around).map_err(|(line, why)| {
                let line = line.map_or(String::new(), |line| format!(":{}", first_line + line - 1));
                unusable(format!("{}{line}: the body cannot be rendered: {why}", skill.path()))
            })?;
            (rendered.trim().to_owned(), None)
        } else {
            (text.to_owned(), Some(first_line))
        };
        let (files, more_files) = skill.place.folder(&unpacked).files();
        let path = directory.as_ref().map(|dir| dir.join(FILE).display().to_string());
        Ok(SkillBody {
            name: name.to_owned(),
            text,
            first_line,
            path: match &skill.place {
                SkillPlace::Builtin(_) => path.unwrap_or_else(|| skill.path()),
                SkillPlace::Folder { .. } | SkillPlace::Served(_) => skill.path(),
            },
            directory,
            files,
            more_files,
        })
    }

    /// Reads a part of one file in a skill's folder.
    ///
    /// # Errors
    /// There is no such skill, the path leads out of its folder, or the file or line does not exist.
    pub fn reference(&self, name: &str, path: &str, window: FileWindow) -> Result<FilePage, SkillError> {
        self.get(name)?.place.folder(&self.cache.join(name)).page(path, window)
    }

    /// The file on disk that a path in a skill's folder names, if it is one of the disk.
    pub fn find_file(&self, name: &str, path: &str) -> Option<PathBuf> {
        let SkillPlace::Folder { dir, .. } = &self.get(name).ok()?.place else { return None };
        Some(dir.join(resolve_inside(dir, path).ok()?))
    }

    /// Adds the skills of a server, each under the name that `name` gives it. None takes the place of another.
    pub fn add_served(
        &mut self,
        server: &Arc<dyn SkillServer>,
        listed: &[ServedSkill],
        name: impl Fn(&str) -> String,
    ) {
        for ServedSkill { uri, head, .. } in listed {
            let Some(mut header) = served::read_served_head(head) else { continue };
            let (Some(own), Some(description)) = (header.name.take(), header.description.take()) else { continue };
            let folder = ServedFolder::new(Arc::clone(server), uri.clone(), own.clone());
            let place = SkillPlace::Served(Arc::new(folder));
            let skill = Skill::new(name(&own), description, header, SkillScope::Served, place);
            self.skills.entry(skill.name.clone()).or_insert(skill);
        }
    }

    /// True if the files of this skill come from a server.
    pub fn is_served(&self, name: &str) -> bool {
        self.skills.get(name).is_some_and(|skill| matches!(skill.place, SkillPlace::Served(_)))
    }

    /// Fetches a file of a skill of a server, so that [`load`](Self::load) or [`reference`](Self::reference) has it: its
    /// instructions where there is no `path`. For other skills there is nothing to do.
    ///
    /// # Errors
    /// The server does not give it, or not as it stated.
    pub async fn fetch(&self, name: &str, path: Option<&str>) -> Result<(), SkillError> {
        match self.skills.get(name).map(|skill| &skill.place) {
            Some(SkillPlace::Served(folder)) => folder.fetch(path.unwrap_or(FILE)).await,
            _ => Ok(()),
        }
    }

    fn add_builtin(&mut self, dir: &'static Dir<'static>) {
        let path = format!("{}/{FILE}", dir.path().display());
        let Some(packed) = builtin::find_tree("skills", &path) else { return };
        let mut header = SkillHeader::from_node(&yaml::unpack_tree(packed, 0));
        header.is_hidden |= header.is_example;
        if let (Some(name), Some(description)) = (header.name.take(), header.description.take()) {
            let skill = Skill::new(name, description, header, SkillScope::BuiltIn, SkillPlace::Builtin(dir));
            self.skills.insert(skill.name.clone(), skill);
        }
    }

    /// Adds the skills of one directory. Of two skills with the same name in it, the first path wins; one from a
    /// lower directory is hidden.
    fn add(&mut self, found: Vec<Skill>) {
        let mut new: BTreeMap<String, Skill> = BTreeMap::new();
        for skill in found {
            if let Some(first) = new.get(&skill.name) {
                let message = format!("{} has the same name `{}`", first.path(), skill.name);
                self.notes.push(SkillNote { path: skill.path(), line: None, message, used: false });
            } else {
                new.insert(skill.name.clone(), skill);
            }
        }
        for (name, mut skill) in new {
            if let Some(below) = self.skills.remove(&name) {
                skill.hides = std::iter::once(below.path()).chain(below.hides).collect();
            }
            self.skills.insert(name, skill);
        }
    }
}

fn refuse_unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> SkillError {
    const MOST: usize = 30;
    let names: Vec<&str> = names.collect();
    let known = match text::find_nearest(name, names.iter().copied()).as_slice() {
        [] if names.is_empty() => "there are no skills".to_owned(),
        [] if names.len() <= MOST => format!("known: {}", names.join(", ")),
        [] => format!("known: {}, … and {} more", names[..MOST].join(", "), names.len() - MOST),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    let name = text::one_line(name, 80);
    SkillError::new(SkillErrorKind::Unknown, format!("there is no skill `{name}`; {known}"))
}

/// Reads a `SKILL.md` that is not too large.
fn read_skill(file: &Path, through: &FileAccess) -> Result<String, String> {
    let bytes = through.read(file, LARGEST)?.ok_or("it is gone")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn builtin_text(dir: &Dir<'static>) -> Option<&'static str> {
    let file = dir.files().find(|file| file.path().ends_with(FILE))?;
    std::str::from_utf8(file.contents()).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::SkillCatalogue;
    use crate::config::{SkillDir, SkillScope};
    #[cfg(unix)]
    use crate::skills::SkillErrorKind;
    use crate::skills::note::SkillNote;
    use crate::skills::{FileContent, FileWindow, RunVariables};

    const ALL: FileWindow = FileWindow { offset: 1, limit: usize::MAX, bytes: usize::MAX };

    fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    fn discover(root: &Path, dirs: &[&str]) -> SkillCatalogue {
        let user = |dir: &&str| SkillDir::new(root.join(dir), SkillScope::User);
        let dirs: Vec<_> = dirs.iter().map(user).collect();
        let mut catalogue = SkillCatalogue::discover(&dirs, &root.join("cache"), RunVariables::default());
        catalogue.retain(|name| crate::base::builtin::SKILLS.get_dir(name).is_none());
        catalogue
    }

    fn names(catalogue: &SkillCatalogue) -> Vec<&str> {
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
        assert_eq!(catalogue.load("b", "").expect("there").text, "B");
        let warnings: Vec<String> = catalogue.notes().iter().map(SkillNote::to_string).collect();
        let warnings = warnings.join("\n");
        for expected in [
            "mute/SKILL.md is left out: it has no description",
            "plain/SKILL.md:1 is left out: it does not begin with",
            "b/SKILL.md:3: its head is not YAML",
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
        assert!(skill.hides.len() == 1 && skill.hides[0].ends_with("far/x/SKILL.md"), "{skill:?}");
        let warnings: Vec<String> = catalogue.notes().iter().map(SkillNote::to_string).collect();
        let warnings = warnings.join("\n");
        assert!(warnings.contains("has the same name `x`") && !warnings.contains("far"), "{warnings}");
    }

    #[cfg(unix)]
    #[test]
    fn nothing_outside_the_folder_is_read() {
        let root = tempfile::tempdir().expect("a directory");
        let root = &crate::files::canonicalize(root.path()).expect("it exists");
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
        assert_eq!(catalogue.load("a", "").expect("there").files, ["docs/x.md", "latin.txt", "logo.png"]);

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
        assert_eq!(content("logo.png"), FileContent::Other("binary"));
        assert!(matches!(content("latin.txt"), FileContent::Lines { text, .. } if text.contains("au lait")));
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
            .reference("a", path, FileWindow { offset, limit, bytes })
            .map(|page| page.content)
        {
            Ok(FileContent::Lines { text, first, last, lines, cut }) => Ok((text, first, last, lines, cut)),
            Ok(FileContent::Other(what)) => panic!("{what}"),
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
        let catalogue = SkillCatalogue::discover(&[], root.path(), RunVariables::default());
        let body = catalogue.load("workspace-tour", "").expect("built in");
        let reference = body.directory.expect("unpacked").join("references/reading-order.md");
        let whole = fs::read(&reference).expect("unpacked");
        let untouched = fs::metadata(&reference).expect("a file").modified().expect("a time");
        catalogue.load("workspace-tour", "").expect("again");
        assert_eq!(fs::metadata(&reference).expect("a file").modified().expect("a time"), untouched);
        fs::write(&reference, "broken").expect("a file");
        catalogue.load("workspace-tour", "").expect("again");
        assert_eq!(fs::read(&reference).expect("repaired"), whole);

        let nowhere = SkillCatalogue::discover(&[], &reference, RunVariables::default());
        assert_eq!(nowhere.load("workspace-tour", "").expect("without a place").directory, None);
        assert!(nowhere.reference("workspace-tour", "references/reading-order.md", ALL).is_ok());
    }
}
