//! Checks that the directories of a run can be written, and that they have free space.

use std::path::{Path, PathBuf};

use crate::config::ProgramDirs;
use crate::files::disk::{self, Dir};

use super::account::DoctorCheck;

/// Free bytes below which a long session may run out of space.
const LITTLE: u64 = 200 << 20;

/// Checks a directory of a run; `otherwise` says how to go on without it.
pub(super) fn check_disk(what: &str, dir: &Path, otherwise: &str) -> DoctorCheck {
    match std::fs::create_dir_all(dir).and_then(|()| tempfile::tempfile_in(dir)) {
        Ok(_) => judge_space(what, dir, disk::free_bytes(dir), otherwise),
        Err(error) => DoctorCheck::bad(format!("{} cannot be written: {error}; {otherwise}", dir.display())),
    }
}

/// Names what earlier runs left for a person to look at; `None` if that is nothing.
pub(super) fn check_kept(dirs: &ProgramDirs) -> Option<DoctorCheck> {
    /// A larger directory is not measured to its end.
    const MOST: u64 = 10 << 30;
    let places = [
        (dirs.state.join("undone"), "what commands made under names that decide what runs later"),
        (dirs.cache.join("trials"), "copies of trials: `agent session list` names those that wait"),
        (dirs.state.join("worker/sessions"), "sessions of workers that were killed"),
    ];
    let describe = |(dir, what): (PathBuf, &str)| {
        let count = std::fs::read_dir(&dir).ok()?.flatten().filter(|entry| entry.path().is_dir()).count();
        let (parent, name) = disk::split_path(&dir).ok().flatten().filter(|_| count > 0)?;
        let size = format_size(disk::measure_tree(&Dir::open(parent).ok()?, name, MOST));
        Some(format!("{count} in {} ({size}): {what}", dir.display()))
    };
    let kept: Vec<String> = places.into_iter().filter_map(describe).collect();
    (!kept.is_empty())
        .then(|| DoctorCheck::good(format!("{}\ndelete there what you do not need", kept.join("\n"))))
}

fn judge_space(what: &str, dir: &Path, free: Option<u64>, otherwise: &str) -> DoctorCheck {
    let place = format!("{what} {}", dir.display());
    match (free, free.map(format_size).unwrap_or_default()) {
        (None, _) => DoctorCheck::good(place),
        (Some(..LITTLE), size) => {
            DoctorCheck::weak(format!("{place}, with {size} left: free some space, or {otherwise}"))
        }
        (Some(_), size) => DoctorCheck::good(format!("{place} ({size} free)")),
    }
}

fn format_size(bytes: u64) -> String {
    match bytes >> 20 {
        mib if mib < 10 * 1024 => format!("{mib} MiB"),
        mib => format!("{} GiB", mib >> 10),
    }
}

#[cfg(test)]
mod tests {
    use super::super::account::Health;
    use super::*;

    #[test]
    fn little_room_is_told_with_what_to_do() {
        let told = |free| judge_space("sessions go to", Path::new("/srv"), free, "name another place");
        assert_eq!(told(Some(1 << 40)), DoctorCheck::good("sessions go to /srv (1024 GiB free)"));
        assert_eq!(told(None), DoctorCheck::good("sessions go to /srv"));
        let full = told(Some(3 << 20));
        assert_eq!(full.health, Health::Weak);
        assert!(full.says.contains("3 MiB left: free some space, or name another place"), "{}", full.says);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_bad() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("file");
        std::fs::write(&file, "").expect("written");
        let check = check_disk("sessions go to", &file.join("sessions"), "name another place");
        assert_eq!(check.health, Health::Bad);
        assert!(check.says.ends_with("; name another place"), "{}", check.says);
    }
}
