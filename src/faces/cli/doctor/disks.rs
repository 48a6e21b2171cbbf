//! Checks that the directories of a run can be written, and that they have free space.

use std::path::Path;

use crate::files::disk;

use super::account::{DoctorCheck, Health};

/// Free bytes below which a long session may run out of space.
const LITTLE: u64 = 200 << 20;

/// Checks the directory of sessions, then that of histories and drafts.
pub(super) fn check_disks(sessions: &Path, state: &Path) -> [DoctorCheck; 2] {
    let lost = "`--ephemeral` keeps no session, XDG_DATA_HOME names another place";
    [
        check_disk("disk", ("sessions go to", sessions), lost),
        check_disk("state", ("histories and drafts go to", state), "XDG_STATE_HOME names another place"),
    ]
}

fn check_disk(of: &'static str, (what, dir): (&str, &Path), otherwise: &str) -> DoctorCheck {
    let made = std::fs::create_dir_all(dir).and_then(|()| tempfile::tempfile_in(dir));
    if let Err(error) = made {
        let says = format!("{} cannot be written: {error}; {otherwise}", dir.display());
        return DoctorCheck::new(of, Health::Bad, says);
    }
    judge_space(of, (what, dir), disk::free_bytes(dir), otherwise)
}

fn judge_space(of: &'static str, (what, dir): (&str, &Path), free: Option<u64>, otherwise: &str) -> DoctorCheck {
    let dir = dir.display();
    match free {
        Some(free) if free < LITTLE => {
            let says = format!("{what} {dir}, with {} left: free some space, or {otherwise}", format_size(free));
            DoctorCheck::new(of, Health::Weak, says)
        }
        Some(free) => DoctorCheck::new(of, Health::Good, format!("{what} {dir} ({} free)", format_size(free))),
        None => DoctorCheck::new(of, Health::Good, format!("{what} {dir}")),
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
    use super::*;

    #[test]
    fn little_room_is_told_with_what_to_do() {
        let told = |free| judge_space("disk", ("sessions go to", Path::new("/srv")), free, "name another place");
        assert_eq!(
            told(Some(1 << 40)),
            DoctorCheck::new("disk", Health::Good, "sessions go to /srv (1024 GiB free)")
        );
        assert_eq!(told(None), DoctorCheck::new("disk", Health::Good, "sessions go to /srv"));
        let full = told(Some(3 << 20));
        assert_eq!(full.health, Health::Weak);
        assert!(full.says.contains("3 MiB left: free some space, or name another place"), "{}", full.says);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_bad() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("file");
        std::fs::write(&file, "").expect("written");
        let check = check_disk("disk", ("sessions go to", &file.join("sessions")), "name another place");
        assert_eq!(check.health, Health::Bad);
        assert!(check.says.ends_with("; name another place"), "{}", check.says);
    }
}
