//! What the program does to files by their paths, and the programs that it starts. A path in a workspace, a worktree or a
//! cache may lead elsewhere a moment after it was judged, as commands write there: such files are read, written and
//! removed through `files/disk`, which follows no link. What does otherwise stands here, with the reason.

use std::collections::BTreeMap;

use super::source::{none, rust};

/// Calls that follow the links of a path, or start a program.
const CALLS: [&str; 12] = [
    "fs::read(", "fs::read_to_string(", "fs::read_dir(", "fs::write(", "fs::create_dir(", "fs::create_dir_all(",
    "fs::remove_", "fs::rename(", "fs::copy(", "fs::set_permissions(", "File::open", " Command::new(",
];

const OWN: &str = "a directory of this program, which commands cannot write";
const NAMED: &str = "a person named the path, and it is read as they would read it";
const SETTINGS: &str = "names in directories of settings, which commands cannot write";
const KERNEL: &str = "files of the kernel";

/// The files with such calls, how many, and the reason.
const EXCEPTIONS: &[(&str, usize, &str)] = &[
    ("src/agent/assembly/git.rs", 1, NAMED),
    ("src/agent/assembly/prompt_test/attempt.rs", 2, OWN),
    ("src/agent/assembly/retention.rs", 1, OWN),
    ("src/agent/assembly/wall_memory.rs", 3, KERNEL),
    ("src/agent/assembly/task/worktree.rs", 1, "the directory of all worktrees, which commands cannot write"),
    ("src/agent/workers/work.rs", 6, OWN),
    (
        "src/config/import/home.rs",
        2,
        "the settings of other agents in the home, which a person wrote, or in a project, out of which nothing leads",
    ),
    ("src/config/import/installed.rs", 4, SETTINGS),
    ("src/config/import/settle.rs", 5, SETTINGS),
    ("src/config/import/tree.rs", 1, NAMED),
    ("src/config/init.rs", 1, NAMED),
    ("src/config/layer.rs", 1, SETTINGS),
    ("src/config/manifest.rs", 1, SETTINGS),
    ("src/config/own_commands.rs", 1, SETTINGS),
    ("src/conversation/session/archive.rs", 2, OWN),
    ("src/conversation/session/fork.rs", 2, OWN),
    ("src/conversation/session/header.rs", 1, OWN),
    ("src/conversation/session/log.rs", 1, OWN),
    ("src/conversation/session/removal.rs", 4, OWN),
    ("src/conversation/session/store.rs", 1, OWN),
    ("src/conversation/spill.rs", 10, OWN),
    ("src/faces/chat/find.rs", 2, "names for completion, which a person reads"),
    ("src/faces/cli/attachments.rs", 1, NAMED),
    ("src/faces/cli/doctor/disks.rs", 2, OWN),
    ("src/faces/cli/map/results.rs", 6, NAMED),
    ("src/faces/cli/mcp.rs", 1, OWN),
    ("src/faces/cli/run.rs", 2, NAMED),
    ("src/faces/cli/signals.rs", 1, KERNEL),
    ("src/faces/cli/stdin/holders.rs", 7, KERNEL),
    ("src/files/denied.rs", 1, "names, to find a denied file that was moved"),
    ("src/files/disk/closed.rs", 1, "the permissions of a handle, by the name that the system has for it"),
    ("src/files/disk/leftovers.rs", 3, OWN),
    ("src/files/disk/plain.rs", 8, "systems without handles"),
    ("src/files/history/content.rs", 5, OWN),
    ("src/files/history/journal.rs", 1, OWN),
    ("src/files/history/seen.rs", 1, OWN),
    ("src/files/history/tracker.rs", 1, OWN),
    ("src/files/regular.rs", 1, OWN),
    ("src/files/trial.rs", 5, OWN),
    ("src/prompt/change.rs", 9, NAMED),
    ("src/prompt/layer.rs", 2, SETTINGS),
    ("src/safety/net.rs", 1, NAMED),
    ("src/safety/process/children.rs", 1, KERNEL),
    (
        "src/safety/process/foreground.rs",
        5,
        "programs of the person: their editor, pager and shell, and what prints a key",
    ),
    ("src/safety/process/group.rs", 1, "the program of Windows that ends processes"),
    ("src/safety/process/subject.rs", 1, "a command: inside walls, or outside because a person allowed it"),
    ("src/safety/sandbox/credentials.rs", 1, "names of homes"),
    ("src/safety/sandbox/linux/caches.rs", 1, "layers above caches: only their insides are written by commands"),
    ("src/safety/sandbox/linux/family.rs", 2, KERNEL),
    ("src/safety/sandbox/linux/layer.rs", 1, KERNEL),
    ("src/safety/sandbox/linux/files.rs", 1, "names for rules, each of which takes a handle that follows no link"),
    ("src/safety/sandbox/linux/flood.rs", 3, KERNEL),
    ("src/safety/sandbox/linux/init.rs", 1, "a command, by a thread that is bound by its rules"),
    ("src/safety/sandbox/aside.rs", 1, OWN),
    ("src/safety/sandbox/configurations.rs", 1, OWN),
    ("src/safety/sandbox/linux/keeper.rs", 3, KERNEL),
    ("src/safety/sandbox/linux/mounts.rs", 9, "mount points in a namespace in which nothing runs yet"),
    ("src/safety/sandbox/linux/part.rs", 2, "this program itself, and what a person's file names in its place"),
    (
        "src/safety/sandbox/linux/reading.rs",
        7,
        "programs and git's configuration in a home, which commands cannot write, and a view in which nothing runs yet",
    ),
    ("src/safety/sandbox/linux/space.rs", 2, KERNEL),
    ("src/safety/sandbox/linux/sockets.rs", 4, KERNEL),
    ("src/screen/editor.rs", 4, OWN),
    ("src/skills/check.rs", 1, NAMED),
    ("src/skills/discover.rs", 1, "names in directories of skills, which commands cannot write"),
    ("src/skills/unpack.rs", 2, OWN),
    ("src/tools/commands/hidden.rs", 1, "names to be hidden"),
    ("src/tools/recall.rs", 1, OWN),
    ("src/tools/mcp/login.rs", 2, OWN),
];

#[test]
fn what_follows_links_says_why() {
    let found: BTreeMap<String, usize> = rust(&["src"])
        .iter()
        .filter(|file| !file.is_test())
        .map(|file| {
            let lines = file.code();
            let calls = lines.iter().flat_map(|(_, line)| CALLS.map(|call| line.matches(call).count()));
            (file.path.clone(), calls.sum())
        })
        .filter(|(_, calls)| *calls > 0)
        .collect();
    let known: BTreeMap<String, usize> =
        EXCEPTIONS.iter().map(|(file, calls, _)| ((*file).to_owned(), *calls)).collect();
    let changed = |one: &BTreeMap<String, usize>, other: &BTreeMap<String, usize>, what: &str| {
        let differs = one.iter().filter(|(file, calls)| other.get(*file) != Some(*calls));
        differs.map(|(file, calls)| format!("{what} {file}: {calls}")).collect::<Vec<_>>()
    };
    none(
        "Files in a workspace, a worktree or a cache go through `files/disk`. If a path lies elsewhere, say so in \
         EXCEPTIONS:",
        &[changed(&found, &known, "found"), changed(&known, &found, "said")].concat(),
    );
}

#[test]
fn one_function_says_where_a_path_leads() {
    let broken: Vec<String> = rust(&["src"])
        .into_iter()
        .filter(|file| file.text.contains(".canonicalize()") || file.text.contains("fs::canonicalize("))
        .map(|file| file.path)
        .collect();
    none("Windows has two forms of an absolute path; `files::canonicalize` chooses one. Use it in:", &broken);
}
