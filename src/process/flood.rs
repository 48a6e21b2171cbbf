//! Notices a child that starts processes without end.
//!
//! The kernel's own limit counts all processes of a user and leaves the superuser out, so it can neither be set to a
//! useful number nor relied on. Instead: a look at the number of all tasks every now and then, which is one small
//! read; only when that has grown by more than is allowed, the members of the group are counted.

use std::fs;
use std::time::Duration;

const PERIOD: Duration = Duration::from_millis(100);

/// Returns once the group has more than `most` members; never where that cannot be told.
pub(super) async fn of(group: Option<i32>, most: usize) {
    if let (Some(group), Some(before)) = (group, all_tasks()) {
        loop {
            tokio::time::sleep(PERIOD).await;
            let grown = all_tasks().is_some_and(|now| now > before + most);
            if grown && members(group) > most {
                return;
            }
        }
    }
    std::future::pending::<()>().await;
}

/// `0.20 0.18 0.12 1/80 11206`: one task is running, of 80.
fn all_tasks() -> Option<usize> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

fn members(group: i32) -> usize {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter(|process| group_of(&process.path()) == Some(group)).count()
}

/// The fifth field of `stat`; the second is a name in parentheses that may hold anything.
fn group_of(process: &std::path::Path) -> Option<i32> {
    process.file_name()?.to_str()?.parse::<u32>().ok()?;
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}
