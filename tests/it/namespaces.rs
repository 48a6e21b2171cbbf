//! Commands in their own namespaces: what ends with them, what is private to them, which hosts they reach.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use serde_json::json;

use crate::reply::Reply;
use crate::run::Run;
use crate::sandbox::{Form, has, not_tried, tried_in};
use crate::server::Server;

/// The forms of the boundary that have namespaces.
const FORMS: [Form; 3] = [Form::Namespaces, Form::NamespacesOfAUser, Form::NoLandlock];

/// True if a process with this word on its command line runs anywhere on the machine.
fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("it is mounted").filter_map(Result::ok);
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.windows(word.len()).any(|part| part == word.as_bytes()))
}

/// Waits for something to become true; a broken build fails instead of hanging.
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let (give_up, guard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        std::thread::park_timeout(crate::run::GUARD);
        give_up.send(())
    });
    while !is_so() {
        assert!(guard.try_recv().is_err(), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn one_failure_of_the_moment_does_not_weaken_the_walls() {
    let running = Run::new().arg("doctor").spawn();
    // Who killed it came too late where it was ready already.
    let _ = kill(running.wait_child("keeper"), Signal::SIGKILL);
    let output = running.wait();
    assert!(!output.stdout.contains("refuses namespaces"), "{}", output.shown());
}

#[test]
fn a_workspace_below_tmp_sees_its_repository_and_nothing_else_there() {
    if !has("git") {
        return not_tried("there is no git");
    }
    let place = tempfile::tempdir_in("/tmp").expect("a directory can be made");
    let [whole, linked] = ["whole", "linked"].map(|name| place.path().join(name));
    fs::create_dir_all(whole.join("inner")).expect("a fresh directory");
    fs::write(place.path().join("other"), "").expect("written");
    for words in ["init -q", "commit -q --allow-empty -m one", "worktree add -q ../linked"] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(words.split(' '));
        let done = git.current_dir(&whole).env("HOME", place.path()).status();
        assert!(done.is_ok_and(|status| status.success()), "git {words}");
    }
    for dir in [whole.join("inner"), linked] {
        let command = ["git log --oneline | wc -l; ls ../other ../../other; touch ../whole/new ../new"];
        let in_it = |run: Run| run.arg("-C").arg(dir.display().to_string());
        let Some((_, results)) = tried_in(Form::Namespaces, in_it, &command) else { return };
        assert!(results[0].contains("\n1\n"), "{}", results[0]);
        assert_eq!(results[0].matches("ls: cannot access").count(), 2, "{}", results[0]);
        assert!(!whole.join("new").exists(), "{}", results[0]);
    }
    // Anybody can put a file of that name there.
    let plain = place.path().join("plain");
    fs::create_dir(&plain).expect("a fresh directory");
    fs::write(place.path().join(".git"), "").expect("written");
    let in_it = |run: Run| run.arg("-C").arg(plain.display().to_string());
    let Some((_, results)) = tried_in(Form::Namespaces, in_it, &["ls ../other; touch ../new"]) else { return };
    assert!(results[0].contains("ls: cannot access '../other'"), "{}", results[0]);
    assert!(!place.path().join("new").exists(), "{}", results[0]);
}

#[test]
fn nothing_outlives_its_command_or_this_program() {
    // A number that no other process has on its line.
    let unique = |at: u32| format!("{}{at}", std::process::id() + 7_000_000);
    let [session, twice, job, background] = [1, 2, 3, 4].map(unique);
    let commands = [
        format!("setsid sleep {session} & (setsid sh -c 'sleep {twice} & exit' &) ; echo started"),
        format!("bash -mc 'sleep {job} & disown' ; echo started"),
    ];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    for form in FORMS {
        let Some((_, results)) = tried_in(form, |run| run, &commands) else { return };
        assert!(results.iter().all(|result| result.contains("started")), "{form:?}: {results:?}");
        for word in [&session, &twice, &job] {
            assert!(!runs(word), "{form:?}: sleep {word} outlives its command");
        }
        // The program is killed, and says nothing to anybody.
        let call = json!({"command": format!("setsid sleep {background}; true"), "background": true});
        let server = Server::start([Reply::call("run_command", &call), Reply::nothing(crate::reply::Act::Hang)]);
        let run = form.of(Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"])).spawn();
        run.wait_stdout("tool.finished");
        assert!(runs(&background), "{form:?}: it was started");
        run.signal(Signal::SIGKILL);
        run.wait();
        eventually("a command outlives the program", || !runs(&background));
    }
}

#[test]
fn a_command_sees_its_own_network_memory_and_terminals() {
    if !has("python3") {
        not_tried("there is no python3");
        return;
    }
    let commands = [
        // A server in the background of one command is reached by the next only if both run at once.
        "python3 -m http.server 8765 --bind 127.0.0.1 >/dev/null 2>&1 & \
         until python3 -c 'import urllib.request; print(urllib.request.urlopen(\"http://127.0.0.1:8765/\").status)' \
         2>/dev/null; do sleep 0.1; done",
        "python3 -c 'from multiprocessing import Pool\nif __name__ == \"__main__\":\n  with Pool(2) as p: print(p.map(abs, [-1, -2]))'",
        "python3 -c 'import pty; pty.spawn([\"echo\", \"from a terminal\"])'",
        "ls /dev/shm /run; ipcs -m 2>/dev/null | grep -c 0x; hostname >/dev/null; cat /etc/resolv.conf > /dev/null; echo",
        "echo shared > /tmp/kept; echo x > /dev/shm/kept",
        "cat /tmp/kept /dev/shm/kept",
    ];
    for form in FORMS {
        let Some((_, results)) = tried_in(form, |run| run, &commands) else { return };
        assert!(results[0].starts_with("exit 0\n200"), "{form:?}: {}", results[0]);
        assert_eq!(results[1], "exit 0\n[1, 2]", "{form:?}");
        assert!(results[2].contains("from a terminal"), "{form:?}: {}", results[2]);
        assert_eq!(results[5], "exit 0\nshared\nx", "{form:?}: what one command leaves in /tmp, the next finds");
    }
    assert!(!Path::new("/tmp/kept").exists() && !Path::new("/dev/shm/kept").exists());
}

#[test]
fn the_doctor_says_which_boundary_is_in_force() {
    let script = "provider: scripted\nscript: [ { text: hello } ]\n";
    let doctor = || Run::new().arg("doctor").config("models/default.yaml", script);
    for (form, code, says) in [
        (Form::Namespaces, 0, "ok    sandbox  namespaces, Landlock and seccomp"),
        (Form::NamespacesOfAUser, 0, "ok    sandbox  namespaces, Landlock and seccomp"),
        (Form::Rules, 0, "the system refuses namespaces"),
        (Form::NoLandlock, 0, "the kernel has no Landlock"),
    ] {
        let output = form.of(doctor()).run();
        assert!(output.code == code && output.stdout.contains(says), "{form:?}: {}", output.shown());
    }
    let none = Form::NoLandlock.of(Form::Rules.of(doctor())).run();
    assert!(none.code == 1 && none.stdout.contains("bad   sandbox"), "{}", none.shown());
}

#[test]
fn a_cache_of_the_home_is_read_through_and_written_above() {
    let commands = [
        "cat $HOME/.npm/real && echo private > $HOME/.npm/made && rm $HOME/.npm/gone && ls $HOME/.npm",
        "cat $HOME/.npm/made; echo x > $HOME/.other",
    ];
    for form in FORMS {
        let prepare = |run: Run| {
            let cache = run.place().home().join(".npm");
            fs::create_dir_all(&cache).expect("made");
            fs::write(cache.join("real"), "real\n").expect("written");
            fs::write(cache.join("gone"), "still\n").expect("written");
            run
        };
        let Some((output, results)) = tried_in(form, prepare, &commands) else { return };
        assert_eq!(results[0], "exit 0\nreal\nmade\nreal", "{form:?}");
        assert!(results[1].contains("private") && results[1].contains("Read-only"), "{form:?}: {}", results[1]);
        let home = output.place.home();
        assert!(home.join(".npm/gone").exists() && !home.join(".npm/made").exists(), "{form:?}");
        // Another run of the same workspace finds what this one wrote.
        let server = Server::start([
            Reply::call("run_command", &json!({"command": "cat $HOME/.npm/made"})),
            Reply::text("done"),
        ]);
        let again = Run::at(&output.place).args(["run", "task", "--approve", "all"]).server(&server);
        form.of(again).run().success();
        assert_eq!(server.requests()[1].last_output(), "exit 0\nprivate", "{form:?}");
    }
}

#[test]
fn only_the_hosts_of_the_settings_are_reached() {
    if !has("python3") {
        not_tried("there is no python3");
        return;
    }
    let page = |listener: std::net::TcpListener| {
        std::thread::spawn(move || {
            for client in listener.incoming().take(1) {
                let mut client = client.expect("a client");
                let mut request = [0; 1024];
                let _ = std::io::Read::read(&mut client, &mut request);
                let _ =
                    client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nthe page");
            }
        })
    };
    for form in FORMS {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let [port, closed] =
            [&listener, &other].map(|listener| listener.local_addr().expect("it is bound").port());
        let _served = page(listener);
        let get = |target: &str| {
            // Python leaves the proxy out for localhost, as NO_PROXY says.
            format!(
                "NO_PROXY= no_proxy= python3 -c 'import urllib.request as u; print(u.urlopen(\"http://{target}/\").read().decode())'"
            )
        };
        let commands = [
            get(&format!("localhost:{closed}")),
            get(&format!("127.0.0.1:{port}")),
            get("example.com"),
            format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"),
            get(&format!("localhost:{port}")),
        ];
        let prepare =
            |run: Run| run.config("agent.yaml", &format!("sandbox: {{ network: [\"localhost:{port}\"] }}\n"));
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let Some((_, results)) = tried_in(form, prepare, &commands) else { return };
        for result in &results[..3] {
            assert!(result.contains("403"), "{form:?}: {result}");
        }
        assert!(results[3].contains("refused") && results[3].contains("HTTPS_PROXY"), "{form:?}: {}", results[3]);
        assert_eq!(results[4], "exit 0\nthe page", "{form:?}");
    }
}

#[test]
fn file_tools_see_the_temporary_files_of_commands() {
    let run = |command: &str| Reply::call("run_command", &json!({ "command": command }));
    for form in FORMS {
        let server = Server::start([
            run("mkdir -p /tmp/deep && echo made > /tmp/deep/it.txt"),
            Reply::call("read_file", &json!({"path": "/tmp/deep/it.txt"})),
            Reply::call("grep", &json!({"pattern": "made", "path": "/tmp/deep"})),
            Reply::call("write_file", &json!({"path": "/tmp/deep/other.txt", "content": "written\n"})),
            run("cat /tmp/deep/other.txt"),
            Reply::text("done"),
        ]);
        let output = form.of(Run::task(&server, "task").args(["--approve", "edits"]).config(
            "agent.yaml",
            "permissions: { rules: [ { allow: run_command, command: [\"*\", \"*\"] } ] }\n",
        ));
        output.run().success();
        let requests = server.requests();
        let results: Vec<String> =
            requests.iter().skip(1).map(|request| request.last_output().to_owned()).collect();
        assert!(results[1].contains("made"), "{form:?}: {results:?}");
        assert!(results[2].contains("/tmp/deep/it.txt"), "{form:?}: {results:?}");
        assert_eq!(results[4], "exit 0\nwritten", "{form:?}: {results:?}");
    }
    assert!(!Path::new("/tmp/deep").exists());
}

#[test]
fn a_file_of_somebody_else_in_the_directory_for_temporary_files_is_not_taken_for_a_file_of_commands() {
    let dir = tempfile::Builder::new().tempdir_in("/tmp").expect("a directory");
    let (theirs, beside) = (dir.path().join("theirs.txt"), dir.path().join("beside.txt"));
    fs::write(&theirs, "theirs").expect("written");
    // Commands find the directories above a workspace there.
    let make = format!("mkdir -p {}", dir.path().display());
    for form in FORMS {
        for (command, path) in [("true", &theirs), ("true", &beside), (&make, &theirs), (&make, &beside)] {
            let server = Server::start([
                Reply::call("run_command", &json!({"command": command})),
                Reply::call("write_file", &json!({"path": path, "content": "new"})),
                Reply::text("done"),
            ]);
            let output = form.of(Run::task(&server, "task").args(["--approve", "edits"])).run();
            assert!(server.requests()[2].last_output().contains("outside"), "{form:?}: {}", output.shown());
        }
        assert!(fs::read(&theirs).expect("there") == b"theirs" && !beside.exists());
    }
}

/// Rules of a person, and commands that come upon what they deny in every way but by its name.
#[test]
fn what_a_rule_denies_is_hidden_from_commands_however_they_come_upon_it() {
    let rules = "permissions:\n  rules:\n    - { deny: read_file, path: \"secrets/**\" }\n    - { deny: read_file, path: \"**/.env\" }\n    - { deny: write_file, path: \"kept.txt\" }\n";
    let commands = [
        "cat s*/k",
        "cp -r secrets x && cat x/k",
        "tar cf - . | grep -a -c SECRET",
        "cd secrets; cat k",
        "x=secrets; cat $x/k",
        "cat deep/*/.env || grep -r SECRET .",
        "mv secrets open; cat open/k",
        "echo y > kept.txt; cat kept.txt",
        "echo z > other.txt && cat other.txt",
    ];
    let prepare = |run: Run| {
        run.file("secrets/k", "SECRET\n")
            .file("deep/er/.env", "SECRET\n")
            .file("kept.txt", "kept\n")
            .config("agent.yaml", rules)
    };
    for form in FORMS {
        let Some((output, results)) = tried_in(form, prepare, &commands) else { return };
        for result in &results {
            assert!(!result.contains("SECRET"), "{form:?}: {result}");
        }
        assert!(results[7].ends_with("kept") || results[7].contains("\nkept\n"), "{form:?}: {}", results[7]);
        assert_eq!(results[8], "exit 0\nz", "{form:?}");
        assert_eq!(output.place.read("secrets/k"), "SECRET\n", "{form:?}");
        assert_eq!(output.place.read("kept.txt"), "kept\n", "{form:?}");
    }
    // Where nothing can hide it, commands are asked about: nobody answers.
    let server = Server::start([Reply::call("run_command", &json!({"command": "cat s*/k"})), Reply::text("done")]);
    let run = prepare(Run::task(&server, "task").args(["--approve", "all"]));
    Form::Rules.of(run).run().exits(7);
    let result = server.requests()[1].last_result().to_owned();
    assert!(!result.contains("SECRET") && result.contains("nothing here hides"), "{result}");
}

#[test]
fn no_file_is_left_that_makes_its_user_another() {
    use std::os::unix::fs::PermissionsExt;
    let commands = [
        "cp /bin/true a && chmod 4755 a; chmod u+s a; install -m 4755 /bin/true b; mkdir d && chmod g+s d && chmod 755 a && echo fine",
        "python3 -c \"import os; f = os.open('c', os.O_CREAT | os.O_WRONLY, 0o4777); os.write(f, open('/bin/true', 'rb').read())\"",
        "mkdir t && cp /bin/true t/e && chmod 4755 t/e; tar cf t.tar --mode=4755 t/e && rm t/e && tar xpf t.tar; echo tried",
    ];
    for form in FORMS {
        let Some((output, results)) = tried_in(form, |run| run, &commands) else { return };
        assert!(results[0].contains("fine"), "{form:?}: {}", results[0]);
        for name in ["a", "b", "c", "t/e"] {
            let Ok(entry) = fs::metadata(output.place.workspace().join(name)) else { continue };
            assert_eq!(entry.permissions().mode() & 0o4000, 0, "{form:?}: {name}: {results:?}");
        }
        assert!(output.place.exists("a") && output.place.exists("c"), "{form:?}: {results:?}");
    }
}
