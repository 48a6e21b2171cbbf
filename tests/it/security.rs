//! The promises of docs/security.md: its tables are made by these tests, from what commands could really do.

#![cfg(target_os = "linux")]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use agent::config::ApprovalMode;
use agent::contract::{Effect, Hold, Permission};
use agent::policy::{self, Call, Grounds, Invocation, Line, Rules, Verdict};
use agent::workspace::Workspace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::run::Run;
use crate::sandbox::{Form, tried_in};

/// Something that a command may try, and the word that its output holds where it could.
const PROBES: &[(&str, &str)] = &[
    ("write in the workspace", "echo x > made && echo COULD"),
    ("write elsewhere in the home", "echo x > $HOME/made && echo COULD"),
    ("write in `/tmp` of the machine", "echo x > /tmp/made-by-NUMBER"),
    ("read a key (`~/.ssh`)", "grep -q SECRET $HOME/.ssh/id && echo COULD"),
    ("read other files of the home", "grep -q open $HOME/notes && echo COULD"),
    ("change `.git/config` for good", "echo evil >> .git/config"),
    ("change `.git/hooks` for a moment", "echo evil > .git/hooks/pre-push && echo COULD"),
    ("make a protected file that was not there, for good", "echo evil > .envrc"),
    (
        "see processes of the machine",
        "kill -0 NUMBER 2>/dev/null || [ -e /proc/NUMBER/cmdline ] && grep -qa sleep /proc/NUMBER/cmdline && echo COULD",
    ),
    ("end processes of the machine", "kill -0 NUMBER && echo COULD"),
    ("run on after its end (`setsid`)", "setsid sleep 7NUMBER & sleep 0.1"),
    (
        "reach servers of the machine",
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", PORT))' && echo COULD",
    ),
    (
        "serve on a loopback of its own",
        "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); socket.create_connection(s.getsockname())' && echo COULD",
    ),
    (
        "reach Unix sockets of the machine",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"SOCKET\")' && echo COULD",
    ),
    ("trace or mount", "unshare -r true 2>/dev/null && echo COULD"),
];

const COLUMNS: [(&str, Option<Form>); 4] = [
    ("whole", Some(Form::Namespaces)),
    ("no Landlock", Some(Form::NoLandlock)),
    ("no namespaces", Some(Form::Rules)),
    ("`mode: off`", None),
];

#[test]
fn the_table_of_boundaries_is_what_commands_could_do() {
    let columns: Vec<Vec<bool>> = COLUMNS.iter().map(|(_, form)| could(*form)).collect();
    let mut table = String::from("| a command can … |");
    for (name, _) in COLUMNS {
        let _ = write!(table, " {name} |");
    }
    table += "\n|---|---|---|---|---|\n";
    for (row, (what, _)) in PROBES.iter().enumerate() {
        let _ = write!(table, "| {what} |");
        for column in &columns {
            let _ = write!(table, " {} |", if column[row] { "yes" } else { "no" });
        }
        table.push('\n');
    }
    held_against("boundaries", &table);
}

/// What a command could do in a form of the boundary, probe by probe.
fn could(form: Option<Form>) -> Vec<bool> {
    let mut other = Command::new("sleep").arg("600").spawn().expect("sleep can be run");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let sockets = tempfile::Builder::new().prefix("s-").tempdir_in("/dev/shm").expect("it is writable");
    let socket = sockets.path().join("socket");
    let _served = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let number = other.id().to_string();
    let fill = |probe: &str| {
        let probe = probe.replace("NUMBER", &number).replace("PORT", &port.to_string());
        probe.replace("SOCKET", &socket.to_string_lossy())
    };
    let commands: Vec<String> = PROBES.iter().map(|(_, probe)| fill(probe)).collect();
    let prepare = |run: Run| {
        let home = run.place().home();
        fs::create_dir_all(home.join(".ssh")).expect("made");
        fs::write(home.join(".ssh/id"), "SECRET\n").expect("written");
        fs::write(home.join("notes"), "open\n").expect("written");
        let run = run.file(".git/config", "[core]\n").file(".git/HEAD", "ref: refs/heads/main\n");
        let run = run.file(".git/hooks/post-commit", "mine\n");
        if form.is_none() { run.config("agent.yaml", "sandbox: { mode: off }\n") } else { run }
    };
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let (output, results) = tried_in(form.unwrap_or(Form::Namespaces), prepare, &commands).expect("Landlock");
    other.kill().and_then(|()| other.wait()).expect("it is ours");
    let place = &output.place;
    let trace = Path::new("/tmp").join(format!("made-by-{number}"));
    let mut could: Vec<bool> = results.iter().map(|result| result.lines().any(|line| line == "COULD")).collect();
    let at = |what: &str| PROBES.iter().position(|(probe, _)| probe.starts_with(what)).expect("a probe");
    could[at("write in `/tmp`")] = trace.exists();
    could[at("change `.git/config`")] = place.read(".git/config").contains("evil");
    could[at("make a protected file")] = place.exists(".envrc");
    let sleeper = format!("7{number}");
    could[at("run on after its end")] = ends(&sleeper);
    let _ = fs::remove_file(trace);
    could
}

/// Ends the sleeper if it runs; tells whether it did.
fn ends(sleeper: &str) -> bool {
    let line = format!("sleep\0{sleeper}\0");
    let processes = fs::read_dir("/proc").expect("it is mounted").filter_map(Result::ok);
    let is_it = |path: &Path| fs::read(path.join("cmdline")).is_ok_and(|text| text == line.as_bytes());
    let found = processes.map(|process| process.path()).find(|path| is_it(path));
    let number = found.and_then(|path| path.file_name()?.to_str()?.parse().ok());
    number.is_some_and(|number| kill(Pid::from_raw(number), Signal::SIGKILL).is_ok())
}

/// A call, as a row of the table: what it does, its tool, what it reads and writes, its command line.
type Row = (&'static str, &'static str, &'static [&'static str], &'static [&'static str], Option<&'static str>);

const CALLS: &[Row] = &[
    ("read a file of the workspace", "read_file", &["src/a"], &[], None),
    ("read a file elsewhere", "read_file", &["/etc/hostname"], &[], None),
    ("read a key (`~/.ssh`)", "read_file", &["/home/x/.ssh/id"], &[], None),
    ("change a file of the workspace", "write_file", &[], &["src/a"], None),
    ("change `.git/config`, `AGENTS.md`, …", "write_file", &[], &["AGENTS.md"], None),
    ("change a file elsewhere", "write_file", &[], &["/etc/hostname"], None),
    (
        "`git status`, `grep -r x .`, `find . \\| wc -l`",
        "run_command",
        &[],
        &[],
        Some("git status && find . | wc -l"),
    ),
    ("`cargo build`, `npm test`, `make`", "run_command", &[], &[], Some("cargo build")),
    ("`curl https://example.com`", "run_command", &[], &[], Some("curl https://example.com")),
    ("`docker ps`, `kubectl get pods`", "run_command", &[], &[], Some("docker ps")),
    ("`fetch_url`", "fetch_url", &[], &[], None),
];

#[test]
fn the_table_of_modes_is_how_calls_are_judged() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("src")).expect("made");
    let keys = || vec!["/home/x/.ssh".into()];
    let workspace = Workspace::open(dir.path()).expect("a workspace").of_person(Path::new("/home/x"), keys);
    let modes = [ApprovalMode::Ask, ApprovalMode::Edits, ApprovalMode::All, ApprovalMode::Never];
    let mut table = String::from("| | `ask` | `edits` | `all` | `never` |\n|---|---|---|---|---|\n");
    for (what, tool, reads, writes, line) in CALLS {
        let line =
            line.map(|command| Line::new(Invocation { command, dir: workspace.root() }, &workspace, &[], None));
        let (permission, effects): (_, &[Effect]) = match *tool {
            "run_command" => (Permission::Write, &[Effect::Process]),
            "write_file" => (Permission::Write, &[Effect::Files]),
            "fetch_url" => (Permission::Read, &[Effect::Network]),
            _ => (Permission::Read, &[]),
        };
        let call = Call {
            tool,
            permission,
            requires_confirmation: false,
            effects,
            has_network: false,
            reads: policy::targets(&workspace, reads, &[]),
            writes: policy::targets(&workspace, writes, &[]),
            line,
            hold: Hold::Permitted,
            host: (*tool == "fetch_url").then(|| "example.com".to_owned()),
        };
        let verdicts = modes.map(|mode| match policy::judge(mode, &Rules::default(), &call, None) {
            Verdict::Allow(Grounds::Reading) => "runs, only reads",
            Verdict::Allow(_) => "runs",
            Verdict::Ask { .. } => "asks",
            Verdict::Deny { .. } => "no",
        });
        let _ = writeln!(table, "| {what} | {} |", verdicts.join(" | "));
    }
    held_against("modes", &table);
}

/// Holds a table against the one in the docs; `BLESS=1` in the environment writes it.
fn held_against(name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/security.md");
    let text = fs::read_to_string(&path).expect("the docs");
    let (begin, end) = (format!("<!-- {name} -->\n\n"), format!("\n<!-- /{name} -->"));
    let from = text.find(&begin).expect("a mark") + begin.len();
    let to = from + text[from..].find(&end).expect("a closing mark");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, format!("{}{table}{}", &text[..from], &text[to..])).expect("written");
    } else {
        assert_eq!(&text[from..to], table, "BLESS=1 writes the table into docs/security.md");
    }
}
