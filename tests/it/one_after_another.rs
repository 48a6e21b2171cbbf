//! One process of the boundary serves the commands of a run, one after another: what one of them leaves, and what
//! changes between two of them, makes no hole for the next.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use rustix::process::{PidfdFlags, pidfd_open};
use serde_json::json;

use crate::kernel::has_landlock;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::sandbox::{Form, has, not_tried, tried_in};
use crate::server::{Server, between_tags};

const FORMS: [Form; 3] = [Form::Namespaces, Form::NamespacesOfAUser, Form::NoLandlock];

/// Names the namespace in which it runs.
const WHERE: &str = "readlink /proc/self/ns/pid";
/// The same, and lets directories come to rest: those that changed just now are not relied on.
const REST: &str = "sleep 0.2; readlink /proc/self/ns/pid";

/// A command, and what happens outside before it.
type Step = (&'static str, fn(&Place));

/// The results of commands as the model reads them; something happens outside before each command.
fn tried_between(form: Form, steps: Vec<Step>) -> Option<Vec<String>> {
    if !has_landlock() {
        not_tried("there is no Landlock");
        return None;
    }
    let place = Place::new();
    let (theirs, count) = (Arc::clone(&place), steps.len());
    let server = Server::answering(move |_, at| match steps.get(at) {
        Some((command, happens)) => {
            happens(&theirs);
            // The policy, which asks about what a line names, does not see what they name.
            let unseen = format!("eval \"$(cat <<'THE END'\n{command}\nTHE END\n)\"");
            Reply::call("run_command", &json!({ "command": unseen }))
        }
        None => Reply::text("done"),
    });
    form.of(Run::at(&place).server(&server).args(["run", "--approve", "all", "task"])).run().success();
    let requests = server.requests();
    let results = requests.last().expect("a request").tool_results();
    assert_eq!(results.len(), count);
    Some(results.into_iter().map(|(_, text)| between_tags(text).to_owned()).collect())
}

fn nothing(_: &Place) {}

/// Replaces a file as editors do: by another one of its name.
fn replace(path: &Path, content: &str) {
    let new = path.with_extension("new");
    fs::write(&new, content).expect("written");
    fs::rename(&new, path).expect("replaced");
}

#[test]
fn commands_of_one_kind_share_a_namespace_that_is_empty_in_between() {
    // By the shell alone: of two programs in a pipe the first may look before the second is there.
    let count = "set -- /proc/[0-9]*; echo $#";
    let commands = [
        WHERE,
        WHERE,
        count,
        count,
        "sleep 300 >/dev/null 2>&1 & readlink /proc/self/ns/pid",
        WHERE,
        "no-such-program",
        WHERE,
    ];
    for form in FORMS {
        let Some((_, results)) = tried_in(form, |run| run, &commands) else { return };
        assert_eq!(results[0], results[1], "{form:?}");
        assert_eq!(results[2], results[3], "{form:?}: nothing is left of the one before");
        assert!(results[4].contains(results[0].trim_start_matches("exit 0\n")), "{form:?}: {}", results[4]);
        assert_ne!(results[5], results[0], "{form:?}: one that was left with processes is not used again");
        assert_eq!(results[5], results[7], "{form:?}: a command that failed leaves it usable");
    }
}

#[test]
fn what_appears_between_two_commands_is_hidden_from_the_next() {
    const LOOK: &str =
        "cat ../home/.netrc ../home/.config/gh/hosts.yml ../home/.aws/credentials; readlink /proc/self/ns/pid";
    let appears = |place: &Place| {
        fs::write(place.home().join(".netrc"), "secret of a file").expect("written");
        for dir in [".config/gh", ".aws"] {
            fs::create_dir_all(place.home().join(dir)).expect("made");
        }
        fs::write(place.home().join(".config/gh/hosts.yml"), "secret on a way").expect("written");
        fs::write(place.home().join(".aws/credentials"), "secret in a directory").expect("written");
    };
    let replaced = |place: &Place| {
        replace(&place.home().join(".netrc"), "secret of another file");
        fs::rename(place.home().join(".aws"), place.home().join("old")).expect("moved");
        fs::create_dir(place.home().join(".aws")).expect("made");
        fs::write(place.home().join(".aws/credentials"), "secret of another directory").expect("written");
        fs::remove_dir_all(place.home().join("old")).expect("removed");
    };
    for form in FORMS {
        let steps: Vec<Step> = vec![
            (REST, nothing),
            (WHERE, nothing),
            (LOOK, appears),
            (REST, nothing),
            (LOOK, nothing),
            (LOOK, replaced),
            (LOOK, nothing),
        ];
        let Some(results) = tried_between(form, steps) else { return };
        let namespace = results[0].trim_start_matches("exit 0\n");
        for result in &results[1..] {
            assert!(!result.contains("secret"), "{form:?}: {result}");
            assert!(result.contains(namespace), "{form:?}: in the same namespace: {result}");
        }
    }
}

#[test]
fn what_appears_between_two_commands_is_protected_from_the_next() {
    const WRITE: &str =
        "echo changed > AGENTS.md; echo changed > .git/hooks/pre-commit; readlink /proc/self/ns/pid";
    let appears = |place: &Place| {
        fs::write(place.workspace().join("AGENTS.md"), "as it was").expect("written");
        fs::create_dir_all(place.workspace().join(".git/hooks")).expect("made");
    };
    let replaced = |place: &Place| replace(&place.workspace().join("AGENTS.md"), "as it is");
    for form in FORMS {
        let steps: Vec<Step> =
            vec![(REST, nothing), (WHERE, nothing), (WRITE, appears), (WRITE, replaced), (WRITE, nothing)];
        let Some(results) = tried_between(form, steps) else { return };
        let namespace = results[0].trim_start_matches("exit 0\n");
        for result in &results[2..] {
            assert_eq!(result.matches("Read-only file system").count(), 2, "{form:?}: {result}");
            assert!(result.contains(namespace), "{form:?}: in the same namespace: {result}");
        }
    }
}

#[test]
fn what_a_command_plants_is_moved_aside_however_quiet_it_was_before() {
    let commands = [
        REST,
        WHERE,
        "mkdir -p .github/workflows && echo x > .github/workflows/ci.yml",
        REST,
        // The time of change of the directory is made what it was.
        "echo x > AGENTS.md; touch -d '2001-01-01' .",
        WHERE,
    ];
    for form in FORMS {
        let Some((output, results)) = tried_in(form, |run| run, &commands) else { return };
        for (at, path) in [(2, ".github/workflows"), (4, "AGENTS.md")] {
            assert!(results[at].contains(&format!("moved aside: {path} ")), "{form:?}: {}", results[at]);
            assert!(!output.place.exists(path), "{form:?}: {path}");
        }
        assert!(results[1].starts_with("exit 0") && results[5].starts_with("exit 0"), "{form:?}");
    }
}

#[test]
fn a_command_that_changes_the_process_that_starts_commands_changes_nothing_for_the_next() {
    if !has("prlimit") {
        not_tried("there is no prlimit");
        return;
    }
    let state = "ulimit -n; nice";
    let commands = [
        state,
        "for n in 1 2 3 4; do prlimit --pid $n --nofile=3:3; renice -n 5 -p $n; done >/dev/null 2>&1; echo tried",
        state,
    ];
    for form in FORMS {
        let Some((_, results)) = tried_in(form, |run| run, &commands) else { return };
        assert!(results[1].contains("tried"), "{form:?}: {}", results[1]);
        assert_eq!(results[0], results[2], "{form:?}");
    }
}

#[test]
fn a_process_of_the_boundary_that_was_killed_is_replaced() {
    /// Kills the processes below this one that run no command.
    fn killed(place: &Place) {
        let agent = processes().find(|(pid, _)| {
            fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|dir| dir == place.workspace())
                && fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"task\0"))
        });
        let below = |of: u32| processes().filter(move |(_, parent)| *parent == of).map(|(pid, _)| pid);
        let keeper = agent.and_then(|(agent, _)| below(agent).next());
        for init in keeper.into_iter().flat_map(below) {
            let pid = init.try_into().expect("a number of a process");
            let known = rustix::process::Pid::from_raw(pid).expect("a process");
            let handle = pidfd_open(known, PidfdFlags::empty()).expect("a handle");
            kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).expect("killed");
            // A busy machine takes its time to end it, and until then it takes orders.
            let mut ended = [PollFd::new(handle.as_fd(), PollFlags::POLLIN)];
            poll(&mut ended, PollTimeout::NONE).expect("it ends");
        }
    }
    if !nix::unistd::geteuid().is_root() {
        not_tried("only the superuser sees whose directory is whose");
        return;
    }
    let steps: Vec<Step> = vec![(WHERE, nothing), (WHERE, killed), (WHERE, nothing)];
    let Some(results) = tried_between(Form::Namespaces, steps) else { return };
    assert!(results.iter().all(|result| result.starts_with("exit 0\npid:")), "{results:?}");
    assert_ne!(results[0], results[1]);
    assert_eq!(results[1], results[2]);
}

/// The processes of the machine, and their parents.
fn processes() -> impl Iterator<Item = (u32, u32)> {
    let entries = fs::read_dir("/proc").expect("it is mounted").filter_map(Result::ok);
    entries.filter_map(|entry| {
        let stat: PathBuf = entry.path().join("stat");
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(stat).ok()?;
        Some((pid, stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?))
    })
}
