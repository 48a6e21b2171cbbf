//! The boundary around commands, with real processes: what they can and cannot do, as the model reads it.
//!
//! If the kernel has no Landlock, each of these runs must end with exit code 11 instead, which [`tried`] checks.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::kernel::has_landlock;
use crate::output::Output;
use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Server, between_tags};

/// The forms of the boundary, as far as this machine has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Namespaces,
    /// The same for a user who is not the superuser.
    NamespacesOfAUser,
    /// The kernel has no namespaces.
    Rules,
    /// The kernel has no Landlock.
    NoLandlock,
}

pub const FORMS: [Form; 4] = [Form::Namespaces, Form::NamespacesOfAUser, Form::Rules, Form::NoLandlock];

impl Form {
    pub fn of(self, run: Run) -> Run {
        match self {
            Self::Namespaces => run,
            Self::NamespacesOfAUser => run.ordinary_user(),
            Self::Rules => run.without(&[nix::libc::SYS_unshare]),
            Self::NoLandlock => run.without(&[nix::libc::SYS_landlock_create_ruleset]),
        }
    }
}

/// The output and what the model read of each command, run one after the other; `None` if there is no Landlock.
pub fn tried(prepare: impl FnOnce(Run) -> Run, commands: &[&str]) -> Option<(Output, Vec<String>)> {
    tried_in(Form::Namespaces, prepare, commands)
}

/// The same in one form of the boundary. The policy, which asks about what a line names, does not see what they name:
/// the walls have to hold by themselves.
pub fn tried_in(form: Form, prepare: impl FnOnce(Run) -> Run, commands: &[&str]) -> Option<(Output, Vec<String>)> {
    let unseen = |command: &&str| format!("eval \"$(cat <<'THE END'\n{command}\nTHE END\n)\"");
    let calls = commands.iter().map(|command| Reply::call("run_command", &json!({"command": unseen(command)})));
    let server = Server::start(calls.chain([Reply::text("done")]));
    let run = Run::task(&server, "task").args(["--approve", "all"]);
    if !has_landlock() {
        not_tried("there is no Landlock");
        return None;
    }
    let output = form.of(prepare(run)).run().success();
    let requests = server.requests();
    let results = requests.last().expect("a request").tool_results();
    Some((output, results.into_iter().map(|(_, text)| between_tags(text).to_owned()).collect()))
}

pub fn not_tried(why: &str) {
    let _ = writeln!(std::io::stderr(), "not tried: {why}");
}

pub fn has(program: &str) -> bool {
    Command::new("/bin/sh")
        .args(["-c", &format!("command -v {program}")])
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[test]
fn writing_goes_to_the_workspace_and_the_temporary_directory_alone() {
    let commands = [
        "echo x > inside.txt && mkdir -p a/b && mv inside.txt a/b/ && ln -s b a/c && cat a/c/inside.txt",
        "echo x > ../outside.txt",
        "rm -f ../home/kept.txt; mv ../home/kept.txt .; ln ../home/kept.txt hard",
        "truncate -s 0 ../home/kept.txt",
        "ln -s ../home/kept.txt link && echo x > link",
        "f=$(mktemp) && echo temporary > $f && cat $f && echo $TMPDIR",
        "echo x > /dev/null && head -c 4 /dev/urandom | wc -c && echo error > /dev/stderr",
        "cp ../home/kept.txt copy.txt && cat copy.txt",
    ];
    for form in FORMS {
        let prepare = |run: Run| {
            fs::write(run.place().home().join("kept.txt"), "kept\n").expect("written");
            run
        };
        let Some((output, results)) = tried_in(form, prepare, &commands) else { return };
        writes_inside_alone(form, &output, &results);
    }
}

fn writes_inside_alone(form: Form, output: &Output, results: &[String]) {
    assert_eq!(results[0], "exit 0\nx", "{form:?}");
    assert!(
        !results[1].starts_with("exit 0") && results[1].contains("[the sandbox may be the reason"),
        "{}",
        results[1]
    );
    assert!(!output.place.exists("../outside.txt"));
    assert!(results[1..5].iter().all(|result| !result.starts_with("exit 0")), "{results:?}");
    assert_eq!(output.place.read("../home/kept.txt"), "kept\n", "{results:?}");
    assert!(results[5].starts_with("exit 0\ntemporary\n"), "{}", results[5]);
    let temp = results[5].lines().last().expect("the path of the directory");
    let is_gone = if form == Form::Rules { !Path::new(temp).exists() } else { temp == "/tmp" };
    assert!(is_gone, "{form:?}: {temp} outlives the run");
    assert_eq!(results[6], "exit 0\n4\nerror");
    assert_eq!(results[7], "exit 0\nkept");
}

#[test]
fn credentials_cannot_be_read_and_their_neighbours_can() {
    let commands = [
        "cat ../home/.ssh/id_ed25519",
        "cat ../home/.netrc",
        "cat $HOME/.config/gh/hosts.yml || cat alias/.ssh/id_ed25519 || cat /proc/self/root$HOME/.ssh/id_ed25519",
        "cat $HOME/.local/share/agent/sessions/*/*",
        "cat $HOME/.config/agent/models/default.yaml",
        "cat $HOME/.gitconfig $HOME/.config/other/file; ls -d / $HOME/.config > /dev/null",
    ];
    let prepare = |run: Run| {
        let home = run.place().home();
        for (path, text) in [
            (".ssh/id_ed25519", "SECRET"),
            (".netrc", "SECRET"),
            (".config/gh/hosts.yml", "SECRET"),
            (".gitconfig", "open"),
            (".config/other/file", "open"),
        ] {
            let path = home.join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(path, text).expect("written");
        }
        symlink(&home, run.place().workspace().join("alias")).expect("made");
        run.config("models/default.yaml", "# SECRET\n")
    };
    for form in FORMS {
        let Some((_, results)) = tried_in(form, prepare, &commands) else { return };
        for (command, result) in commands.iter().zip(&results).take(5) {
            assert!(!result.contains("SECRET") && !result.starts_with("exit 0"), "{form:?} {command}: {result}");
            assert!(result.contains("credentials"), "the reason is named: {form:?} {command}: {result}");
        }
        assert_eq!(results[5], "exit 0\nopenopen", "{form:?}");
    }
}

#[test]
fn a_home_as_workspace_still_hides_its_credentials() {
    let commands =
        ["cat .ssh/id", "echo x >> .ssh/id; echo x > .ssh/new", "cat notes/a && echo b > notes/b && cat notes/b"];
    let prepare = |run: Run| {
        let home = run.place().home();
        for (path, text) in [(".ssh/id", "SECRET\n"), ("notes/a", "a\n")] {
            fs::create_dir_all(home.join(path).parent().expect("it has one")).expect("made");
            fs::write(home.join(path), text).expect("written");
        }
        run.args(["-C", &home.to_string_lossy()])
    };
    let Some((output, results)) = tried(prepare, &commands) else { return };
    assert!(!results[0].contains("SECRET") && !results[1].starts_with("exit 0"), "{results:?}");
    assert_eq!(output.place.read("../home/.ssh/id"), "SECRET\n");
    assert!(!output.place.exists("../home/.ssh/new"));
    assert_eq!(results[2], "exit 0\na\nb");
}

#[test]
fn the_network_is_off_until_the_settings_open_it() {
    if !has("python3") {
        not_tried("there is no python3");
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let connect = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port})); print(\"connected\")'"
    );
    let unix = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\"); print(\"bound\")'";
    let pair =
        "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"pair\"); print(b.recv(4).decode())'";
    let commands = [connect.as_str(), unix, pair];
    let open = |run: Run| run.config("agent.yaml", "sandbox: { network: [\"*\"] }\n");
    for form in FORMS {
        let Some((_, results)) = tried_in(form, |run| run, &commands) else { return };
        let refused = !results[0].contains("\nconnected") && results[0].contains("no network");
        assert!(refused, "{form:?}: {}", results[0]);
        // Sockets that a command makes inside are its own; without namespaces they could not be told apart.
        assert_eq!(results[1].contains("\nbound"), form != Form::Rules, "{form:?}: {}", results[1]);
        assert_eq!(results[2], "exit 0\npair", "{form:?}");
        let Some((_, results)) = tried_in(form, open, &commands) else { return };
        assert_eq!(results[0], "exit 0\nconnected", "{form:?}");
    }
}

#[test]
fn other_processes_are_out_of_reach() {
    let mut other = Command::new("sleep").arg("600").env("A_SECRET", "hidden").spawn().expect("sleep can be run");
    let id = other.id();
    let commands = [
        format!("kill -TERM {id}"),
        format!("cat /proc/{id}/environ | tr '\\0' '\\n'"),
        "cat /proc/$PPID/environ | tr '\\0' '\\n'".to_owned(),
        "head -c 1 /proc/$PPID/mem; ls -l /proc/$PPID/fd/".to_owned(),
        "sleep 600 & kill $! && echo own".to_owned(),
        "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status; echo x > /proc/sys/kernel/hostname".to_owned(),
    ];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let tried = tried(|run| run, &commands);
    assert!(other.try_wait().expect("it can be waited for").is_none(), "the other process was ended");
    other.kill().and_then(|()| other.wait()).expect("it is ours");
    let Some((_, results)) = tried else { return };
    assert!(!results[0].starts_with("exit 0"), "{}", results[0]);
    assert!(!results[1].contains("A_SECRET="), "{}", results[1]);
    assert!(!results[2].contains("OPENAI_API_KEY") && !results[2].contains("HOME="), "{}", results[2]);
    assert!(!results[3].starts_with("exit 0"), "{}", results[3]);
    assert!(results[4].contains("own"), "{}", results[4]);
    assert!(results[5].contains("NoNewPrivs:\t1") && results[5].contains("Seccomp:\t2"), "{}", results[5]);
    assert!(!results[5].starts_with("exit 0"), "{}", results[5]);
}

#[test]
fn new_file_systems_namespaces_and_devices_are_refused() {
    let commands = [
        "mount -t tmpfs none .",
        "unshare -r true",
        "unshare -n true",
        "mknod disk b 8 0",
        "chroot . true",
        "head -c 1 /dev/tty || head -c 1 /dev/kmsg || head -c 1 /proc/kcore || cat /dev/pts/0",
        "d=$(findmnt -no SOURCE / | grep /dev/) && [ -e \"$d\" ] && head -c 1 $d",
        "echo 1 > /proc/sys/vm/drop_caches || echo h > /proc/sysrq-trigger",
    ];
    for form in FORMS {
        let Some((_, results)) = tried_in(form, |run| run, &commands) else { return };
        for (command, result) in commands.iter().zip(&results) {
            assert!(!result.starts_with("exit 0"), "{form:?} {command}: {result}");
        }
    }
}

#[test]
fn what_runs_away_is_stopped() {
    let commands = [
        "i=0; while [ $i -lt 700 ]; do sleep 600 & i=$((i+1)); done; wait",
        "dd if=/dev/zero of=big bs=1 count=1 seek=9G",
        "ulimit -f unlimited || ulimit -d unlimited",
    ];
    let Some((output, results)) = tried(|run| run, &commands) else { return };
    assert!(results[0].contains("more than 512 processes"), "{}", results[0]);
    assert!(results[1].contains("8 GiB"), "{}", results[1]);
    let size = fs::metadata(output.place.workspace().join("big")).map_or(0, |big| big.len());
    assert!(size <= 8 << 30, "{size}");
    assert!(!results[2].starts_with("exit 0"), "{}", results[2]);
}

#[test]
fn everyday_tools_work() {
    let git = "git init -q repo && cd repo && git config user.email a@b && git config user.name a && echo x > f && \
               git add f && git commit -qm 'first' && git status --short && git log --oneline | wc -l";
    let all = [
        ("git", git, "exit 0\n1"),
        ("git", "git init -q . && git status --short | head -1", "exit 0\n?? repo/"),
        ("python3", "python3 -c 'import tempfile; f = tempfile.NamedTemporaryFile(); print(6 * 7)'", "exit 0\n42"),
        ("node", "node -e 'console.log(6 * 7)'", "exit 0\n42"),
        ("sh", "seq 3 | sort -r | xargs echo | tee out", "exit 0\n3 2 1"),
        (
            "sh",
            "timeout 5 sleep 0.01 && nice true && nohup true && env -i true && date > /dev/null; echo $?",
            "exit 0\n0",
        ),
    ];
    let commands: Vec<&str> =
        all.iter().filter(|(program, ..)| has(program)).map(|(_, command, _)| *command).collect();
    let expected = all.iter().filter(|(program, ..)| has(program)).map(|(.., expected)| *expected);
    let Some((_, results)) = tried(|run| run, &commands) else { return };
    for ((command, result), expected) in commands.iter().zip(&results).zip(expected) {
        assert_eq!(result, expected, "{command}");
    }
}

#[test]
fn cargo_works_as_it_is_installed() {
    // Cargo itself told where it is; the toolchain lies in the home of whoever runs the tests.
    let bin = Path::new(env!("CARGO")).parent().expect("a directory").to_string_lossy().into_owned();
    let commands = ["cargo --version", "cargo init -q --name x --vcs none . && cargo run -q --offline"];
    let prepare = |run: Run| run.env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"));
    let Some((_, results)) = tried(prepare, &commands) else { return };
    assert!(results[0].starts_with("exit 0\ncargo "), "{}", results[0]);
    assert_eq!(results[1], "exit 0\nHello, world!");
}

#[test]
fn further_directories_and_no_sandbox_at_all_are_decisions_in_the_settings() {
    let commands = ["echo x > ../home/.cache-of-tool/file; echo x > ../outside.txt"];
    let prepare = |run: Run| {
        fs::create_dir(run.place().home().join(".cache-of-tool")).expect("made");
        run.config("agent.yaml", "sandbox: { write: [~/.cache-of-tool] }\n")
    };
    if let Some((output, results)) = tried(prepare, &commands) {
        assert!(results[0].contains(".cache-of-tool"), "what is open is named: {}", results[0]);
        assert!(output.place.exists("../home/.cache-of-tool/file") && !output.place.exists("../outside.txt"));
    }
    let server = Server::start([Reply::text("done")]);
    let run = Run::task(&server, "task").args(["--approve", "edits"]);
    let run = run.config("agent.yaml", "sandbox: { write: [~/lib, /opt/x] }\n").run().success();
    run.stderr_has("without asking, and in ~/lib, /opt/x, where what commands change is not undone;");
    let server = Server::start([
        Reply::call("run_command", &json!({"command": "f=../outside.txt; n=netrc; echo x > $f; cat ../home/.$n"})),
        Reply::text("done"),
    ]);
    let run =
        Run::task(&server, "task").args(["--approve", "all"]).config("agent.yaml", "sandbox: { mode: off }\n");
    fs::write(run.place().home().join(".netrc"), "open\n").expect("written");
    let output = run.run().success();
    assert!(output.place.exists("../outside.txt"));
    assert_eq!(server.requests()[1].last_output(), "exit 0\nopen");
    let definition = server.requests()[0].raw.clone();
    assert!(!definition.contains("$TMPDIR"), "the model is told of a boundary that is not there");
}

#[test]
fn a_project_cannot_widen_it_and_hosts_are_names() {
    let shown = Run::new()
        .args(["config", "explain", "agents.default.sandbox.mode", "--trust"])
        .env("OPENAI_API_KEY", "k");
    let shown = shown.file(".agent/agent.yaml", "sandbox: { mode: off }\n").run().success();
    assert!(shown.stdout.starts_with("agents.default.sandbox.mode: on\n"), "{}", shown.shown());
    let server = Server::start([]);
    let run = Run::task(&server, "task").config("agent.yaml", "sandbox: { network: [\"https://crates.io\"] }\n");
    run.run().exits(3).stderr_has("https://crates.io").stderr_has("[\"*\"]");
}

#[test]
fn where_there_is_none_the_first_command_ends_the_run_with_code_11() {
    let call = |command: &str| Reply::call("run_command", &json!({"command": command}));
    let server = Server::start([
        Reply::call("write_file", &json!({"path": "before.txt", "content": "x"})),
        call("touch ran.txt"),
        Reply::text("never asked for"),
    ]);
    let bare = |run: Run| Form::NoLandlock.of(Form::Rules.of(run));
    let run = bare(Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]));
    let place = run.place();
    let output = run.run().exits(11).reason_has("Landlock").reason_has("sandbox.mode");
    assert!(output.place.exists("before.txt") && !output.place.exists("ran.txt"), "{}", output.shown());
    assert_eq!(output.events().one("run.completed")["exit_code"], 11);
    assert_eq!(output.events().of("tool.finished").len(), 2, "the call is answered all the same");
    assert_eq!(server.requests().len(), 2, "nothing is asked any more");
    let server = Server::start([call("touch off.txt"), Reply::text("done")]);
    let off = Run::at(&place).args(["run", "task", "--approve", "all", "--sandbox", "off"]);
    let off = bare(off.server(&server)).run().success();
    assert!(off.stderr.starts_with("warning: the sandbox is off"), "{}", off.stderr);
    assert!(off.place.exists("off.txt"), "without a sandbox by decision it runs");
}

#[test]
fn a_person_may_let_a_refused_command_run_outside() {
    if !has_landlock() {
        not_tried("there is no Landlock");
        return;
    }
    let command = json!({"command": "echo x >> ../outside.txt"});
    let server = Server::start([
        Reply::call("run_command", &command),
        Reply::call("run_command", &command),
        Reply::text("Both are done."),
    ]);
    let mut terminal = Terminal::start(&Run::new().arg("chat").args(["--approve", "all"]).server(&server));
    terminal.line("go");
    terminal.wait_for("Allow?");
    terminal.tell("not there");
    terminal.wait_until("the second question", |screen| {
        screen.contains("do instead? not there") && screen.contains("(y or n")
    });
    terminal.line("y");
    terminal.wait_for("Both are done.");
    assert_eq!(terminal.place.read("../outside.txt"), "x\n");
    let requests = server.requests();
    let refused = requests[1].last_output();
    assert!(refused.contains("not there") && refused.contains("the sandbox may be the reason"), "{refused}");
    assert_eq!(requests[2].last_output(), "exit 0, no output");
}
