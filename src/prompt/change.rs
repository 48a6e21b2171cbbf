//! Changes the files of a prompt: a release, a rollback, a new version. One process at a time changes a prompt, and
//! each file is replaced as a whole, `release.yaml` last: until then nothing has changed for a run.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::base::text;
use crate::files::regular::{read_regular, replace_file};
use jiff::civil::Date;

use super::error::PromptError;
use super::file::Prompt;
use super::layer::{RELEASED, list_released, released_dir};
use super::promotion::{Promotion, add_log_line};
use super::registry::Registry;
use super::release::{CHANGELOG, LOCK, Lock, PRODUCTION, RELEASE, Release, read_lock};
use super::version::Version;

/// The files of one prompt in a directory that may be written.
#[derive(Debug)]
pub struct PromptDesk {
    /// The directory of prompts, and in it that of this one.
    prompts: PathBuf,
    dir: PathBuf,
    name: String,
    /// Held as long as the desk exists.
    _lock: File,
}

impl PromptDesk {
    /// Waits until no other process changes the prompt. `prompts` is a directory of prompts, created if necessary.
    ///
    /// # Errors
    /// The directory cannot be made or locked.
    pub fn open(prompts: &Path, name: &str) -> Result<Self, PromptError> {
        let dir = prompts.join(name);
        // Windows locks no directories.
        let open = || if cfg!(windows) { File::create(dir.join(".lock")) } else { File::open(&dir) };
        let opened = fs::create_dir_all(&dir).and_then(|()| open());
        let locked = opened.and_then(|file| file.lock().map(|()| file));
        let lock = locked.map_err(|error| refuse_write(&dir, &error))?;
        // What a killed process left: nobody else writes here now.
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(".tmp") {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(Self { prompts: prompts.to_owned(), dir, name: name.to_owned(), _lock: lock })
    }

    /// Releases a version: records its hash, logs it, and then gives it its label or its share. `prompt` is the
    /// version, `before` the one that the plain name has meant so far; `is_here` is true if the version is in this
    /// directory. Returns one sentence about it; `None` if nothing changes.
    ///
    /// # Errors
    /// A file is wrong or cannot be written. What the name means has not changed then.
    pub fn promote(
        &self,
        promotion: &Promotion<'_>,
        prompt: &Prompt,
        before: Version,
    ) -> Result<Option<String>, PromptError> {
        let release = self.release()?;
        let Some((next, said)) = release.promote(promotion, before) else { return Ok(None) };
        if Path::new(&prompt.origin).starts_with(&self.dir) {
            // A project's part would become one of the person's own.
            if !prompt.is_of_project() {
                self.keep_files(promotion.version, prompt)?;
            }
            let mut lock = self.lock()?;
            lock.insert(promotion.version, prompt.digest().to_owned());
            let lines: Vec<String> =
                lock.iter().map(|(version, digest)| format!("{version}: {digest}\n")).collect();
            self.write(LOCK, &lines.concat())?;
        }
        let note = text::one_line(promotion.note, usize::MAX);
        let note = if note.is_empty() { note } else { format!(". {note}") };
        self.log(promotion.version, &format!("{}: {said}{note}", promotion.today))?;
        self.write(RELEASE, &next.write(&self.text(RELEASE)?))?;
        Ok(Some(said))
    }

    /// Keeps the files of a version as they are. The copy appears as a whole: a folder of it would count as released.
    /// One that is there already stays: runs read it, and so does a promotion.
    fn keep_files(&self, version: Version, prompt: &Prompt) -> Result<(), PromptError> {
        let kept = released_dir(&self.prompts, &self.name, version);
        if kept.is_dir() {
            return Ok(());
        }
        let new = kept.with_added_extension("new");
        let _ = fs::remove_dir_all(&new);
        for (path, text) in prompt.files() {
            let path = new.join(path);
            replace_file(&path, text.as_bytes()).map_err(|error| refuse_write(&path, &error))?;
        }
        fs::rename(&new, &kept).map_err(|error| refuse_write(&kept, &error))
    }

    /// Undoes the last promotion; a version that is not among `versions` is passed over. Returns one sentence about it;
    /// `None` if there is nothing to undo.
    ///
    /// # Errors
    /// Those of [`PromptDesk::promote`].
    pub fn roll_back(&self, today: Date, versions: &[Version]) -> Result<Option<String>, PromptError> {
        let release = self.release()?;
        let Some((next, said)) = release.rolled_back(versions) else { return Ok(None) };
        let canary = release.canary.map(|canary| canary.version);
        if let Some(version) = canary.or(release.labels.get(PRODUCTION).copied()) {
            self.log(version, &format!("{today}: {said}"))?;
        }
        self.write(RELEASE, &next.write(&self.text(RELEASE)?))?;
        Ok(Some(said))
    }

    /// Begins a version with this text. Overwrites nothing.
    ///
    /// # Errors
    /// The version exists already, or cannot be written.
    pub fn begin(&self, version: Version, text: &str) -> Result<PathBuf, PromptError> {
        let file = format!("{version}.md");
        let is_there = self.dir.join(format!("{version}.txt")).exists();
        let begun = if is_there { None } else { self.add(&file, text)? };
        let path = self.dir.join(file);
        begun.ok_or_else(|| PromptError::of_file(&path.display().to_string(), "is there already"))
    }

    /// Adds a file beside the versions; `None` if it exists already.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&self, file: &str, text: &str) -> Result<Option<PathBuf>, PromptError> {
        let path = self.dir.join(file);
        if path.exists() {
            return Ok(None);
        }
        self.write(file, text)?;
        Ok(Some(path))
    }

    /// Mends what is wrong with its releases: sets files and copies aside that cannot be read, and takes labels, the canary
    /// and the history of versions out that are not among `versions`. Returns a sentence about each.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn repair(&self, versions: &[Version]) -> Result<Vec<String>, PromptError> {
        let mut said = Vec::new();
        for (file, is_sound) in [(RELEASE, self.release().is_ok()), (LOCK, self.lock().is_ok())] {
            if !is_sound {
                let name = self.set_aside(file)?;
                let counts =
                    if file == RELEASE { "; the latest version counts until one is promoted" } else { "" };
                said.push(format!("{file} cannot be read: it is {name} now{counts}"));
            }
        }
        let lock = self.lock()?;
        for version in list_released(&self.prompts, &self.name) {
            let kept = released_dir(&self.prompts, &self.name, version);
            let is_sound = |copy: &Path| {
                let read = Registry::read_copy(copy, &self.name, version);
                read.is_ok_and(|prompt| lock.get(&version).is_none_or(|digest| digest == prompt.digest()))
            };
            if !is_sound(&kept) {
                let name = self.set_aside(&format!("{RELEASED}/{version}"))?;
                // A promotion that was killed while it replaced the copy left a whole one.
                let new = kept.with_added_extension("new");
                let is_back = is_sound(&new) && fs::rename(&new, &kept).is_ok();
                let counts = if is_back { "the one of the last promotion" } else { "the file of the version" };
                said.push(format!(
                    "{RELEASED}/{version} is not what was released: it is {name} now; {counts} counts"
                ));
            }
        }
        let before = self.release()?;
        let mut release = before.clone();
        let is_known = |version: &Version| versions.contains(version);
        for version in release.history.extract_if(.., |version| !is_known(version)) {
            said.push(format!(
                "{version} was in production once and does not exist: it is taken out of the history"
            ));
        }
        for (label, version) in release.labels.extract_if(.., |_, version| !is_known(version)) {
            said.push(format!("`{label}` meant {version}, which does not exist: the label is gone"));
        }
        if let Some(canary) = release.canary.take_if(|canary| !is_known(&canary.version)) {
            said.push(format!("the canary was {}, which does not exist: there is none now", canary.version));
        }
        if before.labels.contains_key(PRODUCTION)
            && !release.labels.contains_key(PRODUCTION)
            && let Some(version) = release.history.pop()
        {
            said.push(format!("`{PRODUCTION}` is {version} again, which it was before"));
            release.labels.insert(PRODUCTION.to_owned(), version);
        }
        if release == Release::default() && release != before {
            // Without releases the latest version counts.
            let path = self.dir.join(RELEASE);
            fs::remove_file(&path).map_err(|error| refuse_write(&path, &error))?;
        } else if release != before {
            self.write(RELEASE, &release.write(&self.text(RELEASE)?))?;
        }
        Ok(said)
    }

    /// Renames a file or a folder, so that it does not count any more. Returns its new name.
    fn set_aside(&self, file: &str) -> Result<String, PromptError> {
        let names = (1..).map(|number| if number == 1 { String::new() } else { format!("-{number}") });
        let mut names = names.map(|number| format!("{file}.unreadable{number}"));
        let name = names.find(|name| !self.dir.join(name).exists()).unwrap_or_default();
        let to = self.dir.join(&name);
        fs::rename(self.dir.join(file), &to).map_err(|error| refuse_write(&to, &error))?;
        Ok(name)
    }

    fn release(&self) -> Result<Release, PromptError> {
        Release::parse(&self.dir.join(RELEASE).display().to_string(), &self.text(RELEASE)?)
    }

    fn lock(&self) -> Result<Lock, PromptError> {
        read_lock(&self.dir.join(LOCK).display().to_string(), &self.text(LOCK)?)
    }

    fn log(&self, version: Version, line: &str) -> Result<(), PromptError> {
        self.write(CHANGELOG, &add_log_line(&self.text(CHANGELOG)?, &self.name, version, line))
    }

    /// The text of a file; empty if there is none.
    fn text(&self, file: &str) -> Result<String, PromptError> {
        let path = self.dir.join(file);
        let text = read_regular(&path).map_err(|why| PromptError::of_file(&path.display().to_string(), why))?;
        Ok(text.unwrap_or_default())
    }

    fn write(&self, file: &str, text: &str) -> Result<(), PromptError> {
        let path = self.dir.join(file);
        replace_file(&path, text.as_bytes()).map_err(|error| refuse_write(&path, &error))
    }
}

fn refuse_write(path: &Path, error: &io::Error) -> PromptError {
    PromptError::of_file(&path.display().to_string(), format!("cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use jiff::civil::Date;

    use super::PromptDesk;
    use crate::config::PromptDir;
    use crate::prompt::{Promotion, Registry, Version};

    const TODAY: Date = Date::constant(2026, 1, 2);
    const V1_0: Version = Version { major: 1, minor: 0 };

    fn promote(prompts: &std::path::Path, to: &str) -> Option<String> {
        let desk = PromptDesk::open(prompts, "mine").expect("a desk");
        let registry = Registry::new(&[PromptDir::new(prompts.to_path_buf())]);
        let prompt = registry.get(&format!("mine@{to}")).expect("the version");
        let before = registry.get("mine").expect("a version").version.expect("a version");
        let version = to.parse().expect("a version");
        let promotion = Promotion { version, label: "production", canary: None, note: "Why.", today: TODAY };
        desk.promote(&promotion, &prompt, before).expect("promoted")
    }

    #[test]
    fn a_release_is_locked_logged_and_taken_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = |name: &str| fs::read_to_string(dir.path().join("mine").join(name)).expect(name);
        fs::create_dir(dir.path().join("mine")).expect("a directory");
        fs::write(dir.path().join("mine/v1.0.md"), "one").expect("a file");
        assert!(promote(dir.path(), "v1.0").expect("a change").contains("v1.0 is `production`"));
        fs::write(dir.path().join("mine/v1.1.md"), "two").expect("a file");
        assert_eq!(promote(dir.path(), "v1.1").as_deref(), Some("v1.1 is `production` instead of v1.0"));
        assert_eq!(promote(dir.path(), "v1.1"), None);
        assert!(
            file("release.lock").starts_with("v1.0: 7692c3ad3540bb80") && file("release.lock").contains("v1.1: ")
        );
        assert!(file("changelog.md").contains("- 2026-01-02: v1.1 is `production` instead of v1.0. Why."));
        let back =
            PromptDesk::open(dir.path(), "mine").expect("a desk").roll_back(TODAY, &[V1_0]).expect("a way back");
        assert_eq!(back.as_deref(), Some("v1.0 is `production` again instead of v1.1"));
        assert_eq!(file("release.yaml"), "labels: { production: v1.0 }\n");
        assert_eq!(fs::read_dir(dir.path().join("mine")).expect("listed").count(), 6, "no file is left over");
    }

    #[test]
    fn what_a_killed_promotion_left_is_no_release() {
        let dir = tempfile::tempdir().expect("a directory");
        let left = dir.path().join("mine/released/v1.0.new/mine");
        fs::create_dir_all(&left).expect("made");
        fs::write(left.join("v1.0.md"), "ha").expect("a file");
        fs::write(dir.path().join("mine/v1.0.md"), "whole").expect("a file");
        assert!(promote(dir.path(), "v1.0").is_some());
        let names = fs::read_dir(dir.path().join("mine/released")).expect("listed");
        let names: Vec<_> = names.map(|entry| entry.expect("read").file_name()).collect();
        assert_eq!(names, ["v1.0"]);
        let kept = fs::read_to_string(dir.path().join("mine/released/v1.0/mine/v1.0.md"));
        assert_eq!(kept.expect("kept"), "whole");
    }

    #[test]
    fn a_repair_overwrites_nothing_and_goes_back_to_what_was_before() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = |name: &str| dir.path().join("mine").join(name);
        fs::create_dir(dir.path().join("mine")).expect("a directory");
        let desk = PromptDesk::open(dir.path(), "mine").expect("a desk");
        for text in ["{", "["] {
            fs::write(file("release.yaml"), text).expect("written");
            assert!(desk.repair(&[V1_0]).expect("repaired")[0].contains("the latest version counts"));
        }
        let aside = |name: &str| fs::read_to_string(file(name)).expect(name);
        assert_eq!(
            ["", "-2"].map(|number| aside(&format!("release.yaml.unreadable{number}"))),
            ["{".to_owned(), "[".to_owned()]
        );
        fs::write(file("release.yaml"), "labels: { production: v1.1 }\nhistory: [v1.0, v0.9]\n").expect("written");
        let said = desk.repair(&[V1_0]).expect("repaired");
        assert!(said.len() == 3 && said[2].contains("`production` is v1.0 again"), "{said:?}");
        assert_eq!(aside("release.yaml"), "labels: { production: v1.0 }\n");
    }

    #[test]
    fn two_at_once_follow_one_another() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("mine")).expect("a directory");
        let versions: Vec<String> = (0..8).map(|minor| format!("v1.{minor}")).collect();
        for version in &versions {
            fs::write(dir.path().join(format!("mine/{version}.md")), version).expect("a file");
        }
        thread::scope(|scope| {
            for version in &versions {
                scope.spawn(|| promote(dir.path(), version));
            }
        });
        let lock = fs::read_to_string(dir.path().join("mine/release.lock")).expect("a lock");
        let changelog = fs::read_to_string(dir.path().join("mine/changelog.md")).expect("a changelog");
        let count = |text: &str, mark: &str| text.lines().filter(|line| line.starts_with(mark)).count();
        assert_eq!(count(&lock, "v1."), count(&changelog, "- "), "{lock}{changelog}");
        assert!(count(&lock, "v1.") >= 7, "all but the one that was meant already: {lock}");
        let release = fs::read_to_string(dir.path().join("mine/release.yaml")).expect("a release");
        crate::prompt::release::Release::parse("release.yaml", &release).expect("whole");
    }
}
