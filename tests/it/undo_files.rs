//! What a run changed in files is taken back exactly, by whatever it was changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use crate::kernel::has_walls;
use crate::output::Output;
use crate::pty::APPROVAL;
use crate::repl::start;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::Server;

/// Everything in a directory: the mode, and the content, the target, or nothing.
pub fn read_tree(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut tree = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("listed") {
        let path = entry.expect("listed").path();
        let data = fs::symlink_metadata(&path).expect("there");
        let content = if data.is_dir() {
            tree.extend(read_tree(&path));
            Vec::new()
        } else if data.is_symlink() {
            fs::read_link(&path).expect("a link").as_os_str().as_bytes().to_vec()
        } else {
            fs::read(&path).expect("a file")
        };
        tree.insert(path, (data.mode(), content));
    }
    tree
}

pub fn session(place: &Arc<Place>, words: &[&str]) -> Output {
    Run::at(place).args(["session"]).args(words.iter().copied()).run()
}

/// A server whose model runs these commands, one for each message.
pub fn runs(commands: &[&str]) -> Server {
    let commands: Vec<String> = commands.iter().map(|command| (*command).to_owned()).collect();
    Server::answering(move |request, _| match request.messages().last() {
        Some(last) if last["role"] == "user" => {
            let told = request.messages().iter().filter(|message| message["role"] == "user").count();
            Reply::call("run_command", &json!({ "command": commands[told - 1] }))
        }
        _ => Reply::text("Done."),
    })
}

pub fn change(server: &Server, place: &Arc<Place>, words: &[&str]) -> Output {
    let run = Run::at(place).args(["run", "--approve", "all"]).args(words.iter().copied());
    run.server(server).run().success()
}

pub fn workspace_with(files: &[(&str, &str)]) -> Arc<Place> {
    let place = Run::new().place();
    for (name, content) in files {
        fs::write(place.workspace().join(name), content).expect("written");
    }
    place
}

#[test]
fn what_a_command_did_is_undone_and_redone_to_the_byte() {
    let place =
        workspace_with(&[("text.txt", "one\ntwo\n"), ("gone.txt", "was here"), (".gitignore", "built/\n")]);
    let root = place.workspace();
    fs::create_dir_all(root.join("deep/er")).expect("made");
    fs::create_dir_all(root.join("empty")).expect("made");
    fs::write(root.join("deep/er/binary"), (0..=255).collect::<Vec<u8>>()).expect("written");
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"not \xff utf-8")), "x").expect("written");
    fs::write(root.join("tool.sh"), "#!/bin/sh\n").expect("written");
    fs::set_permissions(root.join("tool.sh"), fs::Permissions::from_mode(0o755)).expect("set");
    fs::write(root.join("only read"), "fixed").expect("written");
    fs::set_permissions(root.join("only read"), fs::Permissions::from_mode(0o444)).expect("set");
    symlink("text.txt", root.join("link")).expect("linked");
    let before = read_tree(&root);
    let command = "sed -i s/two/three/ text.txt; rm gone.txt; rm -r deep; rmdir empty; chmod 600 tool.sh; \
                   rm -f 'only read'; echo other > 'only read'; ln -sfn nowhere link; mkdir -p new/dir; \
                   echo fresh > new/dir/file; mkdir gone.txt; rm not*; mkdir built; echo kept > built/out";
    let server = runs(&[command]);
    change(&server, &place, &["do it"]);
    let after = read_tree(&root);
    assert_ne!(before, after);
    session(&place, &["undo", "--dry-run"])
        .success()
        .stdout_has("Would put back")
        .stdout_has("text.txt  +1 −1 lines");
    assert_eq!(read_tree(&root), after, "a dry run changes nothing");
    session(&place, &["undo"]).success().stdout_is("do it\n").stderr_has("Put back");
    let ignored = |tree: BTreeMap<PathBuf, (u32, Vec<u8>)>| -> BTreeMap<_, _> {
        tree.into_iter().filter(|(path, _)| !path.starts_with(root.join("built"))).collect()
    };
    assert_eq!(ignored(read_tree(&root)), before);
    assert_eq!(fs::read_to_string(root.join("built/out")).expect("ignored, so left"), "kept\n");
    session(&place, &["redo"]).success().stderr_has("has its messages again");
    assert_eq!(read_tree(&root), after);
    session(&place, &["redo"]).exits(1).reason_has("no undo to take back");
    session(&place, &["undo"]).success().stdout_is("do it\n");
    assert_eq!(ignored(read_tree(&root)), before);
    session(&place, &["undo"]).exits(1);
}

#[test]
fn each_message_is_taken_back_with_its_own_changes() {
    let place = workspace_with(&[("a.txt", "0\n")]);
    let server = runs(&["echo 1 >> a.txt", "echo 2 >> a.txt; echo b > b.txt", "rm b.txt"]);
    change(&server, &place, &["first"]);
    change(&server, &place, &["--continue", "second"]);
    change(&server, &place, &["--continue", "third"]);
    session(&place, &["undo"]).success().stdout_is("third\n");
    assert_eq!(place.read("b.txt"), "b\n");
    session(&place, &["undo"]).success().stdout_is("second\n");
    assert!(!place.exists("b.txt"));
    assert_eq!(place.read("a.txt"), "0\n1\n");
    session(&place, &["redo"]).success();
    session(&place, &["redo"]).success();
    assert_eq!((place.read("a.txt").as_str(), place.exists("b.txt")), ("0\n1\n2\n", false));
    session(&place, &["undo", "--to", "m1"]).success().stdout_is("first\n");
    assert_eq!((place.read("a.txt").as_str(), place.exists("b.txt")), ("0\n", false));
    session(&place, &["redo"]).success();
    session(&place, &["undo", "--to", "m99"]).exits(2).reason_has("no message of yours");
}

#[test]
fn what_changed_since_is_overwritten_only_by_force_and_comes_back() {
    let place = workspace_with(&[("a.txt", "before\n"), ("other.txt", "mine\n")]);
    let server = runs(&["echo after > a.txt; echo new > new.txt"]);
    change(&server, &place, &["do it"]);
    fs::write(place.workspace().join("a.txt"), "edited by hand\n").expect("written");
    fs::write(place.workspace().join("other.txt"), "mine too\n").expect("written");
    session(&place, &["undo"]).exits(1).reason_has("changed since by something else: a.txt");
    assert_eq!((place.read("a.txt").as_str(), place.exists("new.txt")), ("edited by hand\n", true));
    session(&place, &["undo", "--conversation"]).success().stdout_is("do it\n");
    session(&place, &["redo", "--conversation"]).success();
    assert_eq!(place.read("a.txt"), "edited by hand\n");
    session(&place, &["undo", "--force", "--files"]).success();
    assert_eq!((place.read("a.txt").as_str(), place.exists("new.txt")), ("before\n", false));
    assert_eq!(place.read("other.txt"), "mine too\n", "what the run did not touch is left alone");
    session(&place, &["redo", "--files"]).success();
    assert_eq!((place.read("a.txt").as_str(), place.exists("new.txt")), ("edited by hand\n", true));
}

#[test]
fn what_tools_did_outside_and_where_git_ignores_it_is_undone_too() {
    let place = Run::new().config("agent.yaml", "sandbox: { write: [~/lib] }\n").place();
    let lib = place.home().join("lib");
    fs::create_dir(&lib).expect("made");
    let (old, new) = (lib.join("old"), lib.join("deep/new"));
    let edit = || {
        Server::start([
            Reply::call("read_file", &json!({ "path": old })),
            Reply::call("edit_file", &json!({ "path": old, "old_text": "mine", "new_text": "theirs" })),
            Reply::call("write_file", &json!({ "path": new, "content": "new\n" })),
            Reply::call("write_file", &json!({ "path": "here", "content": "new\n" })),
            Reply::call("write_file", &json!({ "path": "built/by/hand", "content": "new\n" })),
            Reply::text("Done."),
        ])
    };
    fs::write(&old, "mine\n").expect("written");
    fs::write(place.workspace().join(".gitignore"), "built\n").expect("written");
    let before = read_tree(&lib);
    change(&edit(), &place, &["Change it."]);
    let after = read_tree(&lib);
    assert!(after.len() == 3 && place.exists("here") && place.exists("built/by/hand"), "{after:?}");
    session(&place, &["undo"]).success();
    assert!(read_tree(&lib) == before && !place.exists("here") && !place.exists("built"));
    session(&place, &["redo"]).success();
    assert!(read_tree(&lib) == after && place.exists("here") && place.exists("built/by/hand"));
    session(&place, &["undo"]).success();
    change(&edit(), &place, &["--trial", "Change it."]);
    assert!(read_tree(&lib) == after && !place.exists("here"), "a trial is of the workspace");
    session(&place, &["apply"]).success().stderr_has("Applied ");
    assert!(read_tree(&lib) == after && place.exists("here"));
}

#[test]
fn a_fifo_is_left_alone() {
    let place = workspace_with(&[("a.txt", "before\n")]);
    change(&runs(&["mkfifo pipe; echo after > a.txt"]), &place, &["do it"]);
    session(&place, &["undo"]).success();
    assert_eq!((place.read("a.txt").as_str(), place.exists("pipe")), ("before\n", true));
    session(&place, &["redo"]).success();
    assert_eq!((place.read("a.txt").as_str(), place.exists("pipe")), ("after\n", true));
}

#[test]
fn what_a_command_did_in_the_background_after_the_last_call_is_undone_too() {
    let place = workspace_with(&[("kept", "one\n")]);
    let job = "sleep 0.2; echo late > made; echo two > kept";
    let wait = json!({"id": "r1", "wait": 600});
    let server = Server::start([
        Reply::call("run_command", &json!({"command": job, "background": true})),
        Reply::call("background", &wait),
        Reply::text("Done."),
    ]);
    let before = read_tree(&place.workspace());
    change(&server, &place, &["Do it."]);
    assert_ne!(read_tree(&place.workspace()), before);
    session(&place, &["undo"]).success().stderr_lacks("changed since");
    assert_eq!(read_tree(&place.workspace()), before);
}

#[test]
fn nothing_of_a_repository_and_nothing_behind_a_link_is_touched() {
    let place = workspace_with(&[("a.txt", "before\n")]);
    let outside = tempfile::tempdir().expect("a directory can be made");
    fs::write(outside.path().join("secret"), "outside\n").expect("written");
    let root = place.workspace();
    let git = |words: &[&str]| {
        let run = std::process::Command::new("git").args(words).current_dir(&root).output().expect("git runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    fs::create_dir(root.join("dir")).expect("made");
    fs::write(root.join("dir/secret"), "inside\n").expect("written");
    let server = runs(&["echo after > a.txt; rm dir/secret"]);
    change(&server, &place, &["do it"]);
    let repository = read_tree(&root.join(".git"));
    fs::remove_dir(root.join("dir")).expect("empty");
    symlink(outside.path(), root.join("dir")).expect("linked");
    session(&place, &["undo", "--force"]).exits(1).reason_has("not put back: dir/secret");
    assert_eq!(fs::read_to_string(outside.path().join("secret")).expect("there"), "outside\n");
    assert_eq!((place.read("a.txt").as_str(), read_tree(&root.join(".git"))), ("before\n", repository));
}

#[test]
fn a_chat_takes_back_shows_and_brings_again() {
    let server = Server::answering(|request, _| match request.messages().last() {
        Some(last) if last["role"] == "user" && request.user() == "write" => {
            Reply::call("write_file", &json!({"path": "made.txt", "content": "a line\n"}))
        }
        _ => Reply::text(&format!("Answer to {}.", request.user())),
    });
    let mut terminal = start(&Run::new().args(["chat", "--approve", "all"]).server(&server));
    let place = Arc::clone(&terminal.place);
    terminal.line("write");
    terminal.wait_for("Answer to write.");
    terminal.line("/diff");
    terminal.wait_for("+a line");
    terminal.line("/undo");
    terminal.wait_for("Taken back: write");
    assert!(!place.exists("made.txt"));
    terminal.line("/undo");
    terminal.wait_for("not so many messages");
    terminal.line("/redo");
    terminal.wait_for("as it was before the undo");
    assert_eq!(place.read("made.txt"), "a line\n");
    terminal.line("what now?");
    terminal.wait_for("Answer to what now?.");
    let last = server.requests().pop().expect("requests");
    assert!(last.raw.contains("Answer to write."), "the conversation goes on: {}", last.raw);
}

#[test]
fn deleting_the_sessions_deletes_the_former_contents() {
    let place = workspace_with(&[("a.txt", "before\n")]);
    let server = runs(&["echo after > a.txt"]);
    change(&server, &place, &["do it"]);
    let dir = place.session_logs()[0].parent().expect("a directory").to_path_buf();
    let id = place.session_logs()[0].file_stem().expect("a name").to_string_lossy().into_owned();
    let mode = |name: &str| fs::metadata(dir.join(name)).expect("there").mode() & 0o777;
    assert_eq!((mode("files"), mode(&format!("{id}.files"))), (0o700, 0o600));
    session(&place, &["delete", &id]).success();
    assert_eq!(fs::read_dir(&dir).expect("listed").count(), 0);
}

#[test]
fn a_chat_that_can_undo_changes_files_without_a_question() {
    if !has_walls() {
        return;
    }
    let server = runs(&["echo new > made.txt", "echo more >> made.txt"]);
    let place = workspace_with(&[]);
    let run = || Run::at(&place).arg("chat").server(&server).env(APPROVAL, "auto");
    let mut terminal = start(&run());
    terminal.wait_for("Edits here unasked, /undo reverts");
    terminal.line("make it");
    terminal.wait_for("Done.");
    assert_eq!(place.read("made.txt"), "new\n");
    terminal.line("/undo");
    terminal.wait_for("Taken back: make it");
    assert!(!place.exists("made.txt"));
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    let mut asks = start(&run().arg("--ephemeral"));
    asks.wait_for("It asks, as changes are not recorded");
    asks.line("make it");
    asks.wait_for("echo new > made.txt");
    assert!(!place.exists("made.txt"));
}

#[test]
fn without_handles_to_look_everywhere_nothing_is_said_to_be_known() {
    let server = runs(&["rm -rf d"]);
    let run = Run::script("bash", "ulimit -n 120; exec agent run 'remove it' --approve all").server(&server);
    let deep = run.place().workspace().join("d/".repeat(150));
    fs::create_dir_all(&deep).expect("a fresh directory");
    fs::write(deep.join("file"), "x").expect("written");
    let output = run.run().success().stderr_has("cannot be undone: Too many open files");
    session(&output.place, &["undo"])
        .fails()
        .stderr_has("what run_command changed in step")
        .stderr_has("is not known");
}

#[test]
fn where_changes_cannot_be_followed_a_chat_asks() {
    if !has_walls() {
        return;
    }
    let server = runs(&["echo new > made.txt"]);
    let place = workspace_with(&[]);
    for number in 0..40 {
        let file = fs::File::create(place.workspace().join(format!("large{number}"))).expect("created");
        file.set_len(15 << 20).expect("sparse");
    }
    let mut terminal = start(&Run::at(&place).arg("chat").server(&server).env(APPROVAL, "auto"));
    terminal.line("make it");
    terminal.wait_for("cannot be undone: its files have more than 512 MiB");
    terminal.wait_for("Yes, once");
    assert!(!place.exists("made.txt"));
}

#[test]
fn an_undo_says_where_no_change_of_a_file_was_kept() {
    let place = Place::new();
    let written = json!({"path": "new.txt", "content": "new\n"});
    let server = Server::start([Reply::call("write_file", &written), Reply::text("Done.")]);
    change(&server, &place, &["write it"]);
    // As where the disk was full when the changes began.
    for kept in place.session_logs().iter().map(|log| log.with_extension("files")) {
        fs::remove_file(kept).expect("removed");
    }
    session(&place, &["undo"]).success().stderr_has("No change of a file is kept for it");
    assert_eq!(place.read("new.txt"), "new\n");
}

#[test]
fn a_session_of_another_workspace_is_not_followed_and_asks() {
    if !has_walls() {
        return;
    }
    let place = workspace_with(&[("mine.txt", "precious\n")]);
    fs::create_dir(place.workspace().join("other")).expect("made");
    let greets = Server::always(Reply::text("Hi."));
    Run::at(&place).args(["-C", "other", "run", "hello"]).server(&greets).run().success();
    let id = session(&place, &["list", "--all"]).success().stdout;
    let id = id.split_whitespace().next().expect("an id").to_owned();
    let server = runs(&["unused", "echo evil > mine.txt"]);
    let run = Run::at(&place).args(["chat", "--session", &id]).server(&server).env(APPROVAL, "auto");
    let mut terminal = start(&run);
    terminal.line("change it");
    terminal.wait_for("Yes, once");
    assert_eq!(place.read("mine.txt"), "precious\n");
}

#[test]
fn a_workspace_that_was_replaced_is_not_worked_in() {
    let server = runs(&["echo one >> made.txt", "echo two >> made.txt"]);
    let place = workspace_with(&[]);
    let mut terminal = start(&Run::at(&place).args(["chat", "--approve", "all"]).server(&server));
    terminal.line("first");
    terminal.wait_for("Done.");
    let (root, old) = (place.workspace(), place.home().join("old"));
    fs::rename(&root, &old).expect("moved");
    fs::create_dir(&root).expect("made");
    terminal.line("second");
    terminal.wait_for("was moved or replaced");
    terminal.wait_for("Done.");
    assert_eq!(fs::read_to_string(old.join("made.txt")).expect("there"), "one\n");
    assert!(!place.exists("made.txt"));
}
