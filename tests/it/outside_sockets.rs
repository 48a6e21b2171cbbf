//! Unix sockets of programs outside: a command that may write reaches none, wherever it lies and whoever made it when.

#![cfg(target_os = "linux")]

use std::io::Read;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::kernel::has_landlock;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::sandbox::{Form, has, not_tried};
use crate::server::{Server, between_tags};

/// A command that connects to `socket`, and one that sends to `datagrams`, by a socket of a pair as well.
fn connect(socket: &str, datagrams: &str) -> String {
    format!(
        "python3 - <<'E'\nimport socket as s\n\
         def tried(what):\n    try:\n        what()\n        print('reached')\n    except OSError as e:\n        print('refused', e.errno)\n\
         tried(lambda: s.socket(s.AF_UNIX).connect('{socket}'))\n\
         tried(lambda: s.socket(s.AF_UNIX, s.SOCK_DGRAM).sendto(b'1', '{datagrams}'))\n\
         tried(lambda: s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)[0].sendto(b'1', '{datagrams}'))\nE"
    )
}

/// A program that listens on `name`, relative to the workspace.
fn listen_relatively(place: &Place, name: &str) -> Child {
    let code = format!(
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind('{name}'); s.listen(); print('.', flush=True); sys.stdin.read()"
    );
    let mut program = Command::new("python3");
    program.args(["-c", &code]).current_dir(place.workspace()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().expect("started");
    child.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("it listens");
    child
}

/// What the model reads of each command. The policy, which asks about what a line names, does not see what they name.
fn tried_at(form: Form, place: &Arc<Place>, commands: &[&str]) -> Option<Vec<String>> {
    if !has_landlock() {
        not_tried("there is no Landlock");
        return None;
    }
    let unseen = |command: &&str| format!("eval \"$(cat <<'THE END'\n{command}\nTHE END\n)\"");
    let calls = commands.iter().map(|command| Reply::call("run_command", &json!({"command": unseen(command)})));
    let server = Server::start(calls.chain([Reply::text("done")]));
    form.of(Run::at(place).server(&server).args(["run", "--approve", "all", "task"])).run().success();
    let requests = server.requests();
    let results = requests.last().expect("a request").tool_results();
    Some(results.into_iter().map(|(_, text)| between_tags(text).to_owned()).collect())
}

#[test]
fn a_command_that_writes_reaches_no_socket_of_the_machine() {
    if !has("python3") {
        return not_tried("there is no python3");
    }
    let inside = "python3 -c \"\nimport socket as s\na = s.socket(s.AF_UNIX); a.bind('own.sock'); a.listen()\n\
                  b = s.socket(s.AF_UNIX); b.connect('own.sock'); a.accept()[0].send(b'hello'); print(b.recv(9))\"";
    for form in [Form::Namespaces, Form::NamespacesOfAUser] {
        let (mut kept, mut commands) = (Vec::new(), Vec::new());
        let place = Place::new();
        for dir in [place.home().join(".docker/desktop"), place.workspace().join("sub")] {
            std::fs::create_dir_all(&dir).expect("made");
            let socket = UnixListener::bind(dir.join("a.sock")).expect("bound");
            let datagrams = UnixDatagram::bind(dir.join("b.sock")).expect("bound");
            commands.push(connect(&dir.join("a.sock").to_string_lossy(), &dir.join("b.sock").to_string_lossy()));
            kept.push((socket, datagrams));
        }
        let mut relative = listen_relatively(&place, "relative.sock");
        commands.push(connect("relative.sock", "sub/b.sock"));
        commands.push(inside.to_owned());
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let results = tried_at(form, &place, &commands);
        relative.kill().expect("ended");
        relative.wait().expect("ended");
        let Some(results) = results else { return };
        for result in &results[..3] {
            assert!(!result.contains("reached") && result.matches("refused").count() == 3, "{form:?}: {result}");
        }
        assert_eq!(results[3], "exit 0\nb'hello'", "{form:?}: what commands make themselves works");
        drop(kept);
    }
}

#[test]
fn sockets_that_come_and_go_stop_no_command() {
    let place = Place::new();
    let is_over = AtomicBool::new(false);
    let churn = |thread: usize| {
        let paths: Vec<_> = (0..8).map(|number| place.home().join(format!("s{thread}-{number}"))).collect();
        while !is_over.load(Ordering::Relaxed) {
            for path in &paths {
                drop(UnixListener::bind(path).expect("bound"));
                std::fs::remove_file(path).expect("removed");
            }
        }
    };
    let commands: Vec<String> = (0..30).map(|number| format!("echo {number} > f{number} && echo ok")).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let results = std::thread::scope(|scope| {
        (0..2).for_each(|thread| drop(scope.spawn(move || churn(thread))));
        let results = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            tried_at(Form::Namespaces, &place, &commands)
        }));
        is_over.store(true, Ordering::Relaxed);
        results
    });
    for result in results.expect("the run ended well").into_iter().flatten() {
        assert_eq!(result, "exit 0\nok");
    }
}
