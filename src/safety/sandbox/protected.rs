//! Files of the workspace that decide what runs later: git's hooks and configuration, this program's own, start-up
//! files of shells, CI. A command must not change them.
//!
//! In namespaces those that exist are read-only to it, so a change of one during a command is a person's, and is left
//! alone; of a repository's configuration it has a copy (`configurations`). Where nothing can be mounted, they
//! are compared and put back ([`Snapshot`]). What appears under a protected name is moved aside in either form, through
//! handles: a link that a command planted has no effect.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::files::disk::{self, Dir};
use crate::files::file_name;

use super::appeared::PathsBefore;
use super::aside::{MovedAside, move_aside};
use super::denial::Refused;
use super::git_config::keep_harmless;
use super::places::{Places, find_repository_at, find_unknown, has_head};
use super::snapshot::{MOST_FILE_BYTES, Snapshot, put_back};
use super::{Sandbox, WallGround, Walls};

/// Watches the protected files while a command runs. Dropping it ends the watch as well.
pub struct Protection {
    walls: Walls,
    workspace: PathBuf,
    paths: PathsBefore,
    /// The states of the workspace itself, and of the repositories in it, where nothing is mounted over them.
    before: Vec<(Arc<Places>, Arc<Snapshot>)>,
}

/// The forbidden changes of a command, by paths relative to the workspace, and what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// New under a protected name.
    pub aside: Vec<MovedAside>,
    pub put_back: Vec<String>,
    /// Configurations of git whose changes were not taken over.
    pub refused: Vec<MovedAside>,
    /// Neither moved aside nor restored: too large to have been kept, or blocked by something.
    pub left: Vec<String>,
}

impl Undone {
    /// What may be offered for it, if there is anything.
    pub fn refusal(&self) -> Option<Refused> {
        if !self.put_back.is_empty() || !self.left.is_empty() {
            return Some(Refused::Known);
        }
        let kept: Vec<MovedAside> = self.aside.iter().chain(&self.refused).cloned().collect();
        (!kept.is_empty()).then_some(Refused::Making(kept))
    }
}

impl Protection {
    /// Records the state of the protected files.
    pub fn begin(walls: &Walls, workspace: &Path) -> Self {
        let ground = &walls.ground;
        let is_needed = cfg!(target_os = "linux") && !walls.only_read();
        let places = if is_needed { ground.all_places() } else { Vec::new() };
        ground.has_written.fetch_or(is_needed, Ordering::Relaxed);
        let paths = PathsBefore::record(workspace, &places, &ground.accepted());
        let mut before = Vec::new();
        if let Some(copies) = walls.copies() {
            copies.give();
        } else {
            let mut known = ground.last.lock().expect("nobody panics while files are looked at");
            let take = |(at, places): (usize, &Arc<Places>)| {
                let now = Snapshot::take(workspace, places, known.get(at).map(Arc::as_ref));
                (Arc::clone(places), Arc::new(now))
            };
            before = places.iter().enumerate().map(take).collect();
            if !before.is_empty() {
                *known = before.iter().map(|(_, now)| Arc::clone(now)).collect();
            }
        }
        Self { walls: walls.clone(), workspace: workspace.to_path_buf(), paths, before }
    }

    /// Undoes the changes since.
    pub fn end(mut self) -> Undone {
        self.undo()
    }

    fn undo(&mut self) -> Undone {
        let ground = &self.walls.ground;
        let kept = &ground.plan.undone;
        let mut undone = ground.judge(std::mem::take(&mut self.paths), &self.workspace, !self.before.is_empty());
        for (places, before) in self.before.drain(..) {
            let after = Snapshot::take(&self.workspace, &places, Some(&before));
            for (path, entry) in before.changes(&after, &places, &self.workspace) {
                let name = file_name::quote(&path).into_owned();
                let aside = move_aside(&self.workspace, &path, kept);
                let restored = entry.map(|entry| put_back(&self.workspace, &path, &entry));
                match (aside, restored) {
                    (_, Some(Ok(()))) => undone.put_back.push(name),
                    (Ok(aside), None) => undone.aside.push(aside),
                    (Err(error), None) if error.kind() == io::ErrorKind::NotFound => {}
                    (_, Some(Err(_)) | None) => undone.left.push(name),
                }
            }
        }
        for refused in self.walls.copies().map(|copies| copies.collect(kept)).unwrap_or_default() {
            match refused {
                Ok(refused) => undone.refused.push(refused),
                Err(name) => undone.left.push(name),
            }
        }
        undone
    }
}

impl Sandbox {
    /// Guards the repositories that commands of a turn made: those that were `followed` in the workspace, and those that a
    /// search finds in further directories. Where nothing follows the workspace, it is searched as well.
    pub fn guard_turn(&self, followed: Option<&[PathBuf]>) -> Undone {
        let has_written = self.0.has_written.load(Ordering::Relaxed);
        let find = || find_unknown(&self.0.plan, &self.0.all_places(), followed.is_some());
        let found = has_written.then(find).unwrap_or_default();
        self.guard_made(&[followed.unwrap_or_default(), &found].concat())
    }

    /// Guards repositories that a command made, by the paths of their `.git` in the workspace, as long as the boundary lasts.
    /// What would run in them is moved aside.
    pub fn guard_made(&self, entries: &[PathBuf]) -> Undone {
        if entries.is_empty() {
            return Undone::default();
        }
        let (ground, workspace) = (&self.0, &self.0.plan.workspace);
        let made = entries.iter().map(|entry| Arc::new(find_repository_at(&ground.plan, entry)));
        let made: Vec<Arc<Places>> = made.collect();
        ground.made.lock().expect("nobody panics while places are listed").extend(made.iter().cloned());
        ground.judge(PathsBefore::record_nothing(workspace, &made, &ground.all_places()), workspace, false)
    }
}

impl WallGround {
    /// The places, and those of repositories that commands made.
    fn all_places(&self) -> Vec<Arc<Places>> {
        let made = self.made.lock().expect("nobody panics while places are listed");
        self.places().iter().chain(&*made).cloned().collect()
    }

    /// Moves aside what appeared since, except for what is harmless; in a configuration of git too, unless what was there
    /// `is_put_back`.
    fn judge(&self, before: PathsBefore, workspace: &Path, is_put_back: bool) -> Undone {
        let mut undone = Undone::default();
        let appeared = before.find_appeared(workspace, &mut self.accepted());
        for path in appeared {
            match move_aside(workspace, &path, &self.plan.undone) {
                Ok(aside) => match (!is_put_back).then(|| leave_harmless(&aside)).flatten() {
                    Some(refused) => {
                        self.accepted().insert(path);
                        undone.refused.push(refused);
                    }
                    None => undone.aside.push(aside),
                },
                Err(_) => undone.left.push(file_name::quote(&path).into_owned()),
            }
        }
        undone
    }
}

/// Leaves the settings that run nothing where a configuration of git was moved away, if there are any.
fn leave_harmless(moved: &MovedAside) -> Option<MovedAside> {
    let (dir, name) = disk::split_path(&moved.path).ok()??;
    let is_configuration = name == "config" && has_head(dir);
    let text = disk::read_file(&moved.kept, MOST_FILE_BYTES).ok().filter(|_| is_configuration)?;
    let left = keep_harmless(&String::from_utf8(text).ok()?, |_| true).into_bytes();
    if left.is_empty() || Dir::open(dir).and_then(|dir| dir.replace(name, &left, None)).is_err() {
        return None;
    }
    Some(MovedAside { replaces: Some(left), ..moved.clone() })
}

impl Drop for Protection {
    fn drop(&mut self) {
        self.undo();
    }
}
