//! stdin is data, never a reason to hang, and never taken from the program that started us: shells, loops, pipelines,
//! editors, cron, CI, callers as ssh is one.

use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// Part of the line that says that stdin was left alone.
const LEFT_ALONE: &str = "--stdin require";

/// The model's input in each run of a script; every run must succeed.
#[track_caller]
fn told(shell: &'static str, script: &str, files: &[(&str, &str)]) -> (Vec<String>, String) {
    let server = Server::always(Reply::text("ok"));
    let run = Run::script(shell, script).server(&server);
    let run = files.iter().fold(run, |run, (path, content)| run.file(path, content));
    let stderr = run.run().success().stderr;
    (server.requests().iter().map(|request| request.user().to_owned()).collect(), stderr)
}

#[test]
fn stdin_follows_the_task_as_data() {
    let server = Server::start([Reply::text("ok")]);
    Run::task(&server, "explain").stdin("error[E0382]: use of moved value\n").run().success();
    let request = server.only_request();
    let user = request.user();
    assert!(user.starts_with("explain"), "the task comes first: {user}");
    assert!(user.contains("error[E0382]: use of moved value"), "{user}");
    assert!(user.len() > "explain".len() + "error[E0382]: use of moved value\n".len() + 4, "no delimiter: {user}");
}

#[test]
fn without_a_task_stdin_is_the_task() {
    for args in [vec!["run"], vec!["run", "-"], vec![]] {
        let server = Server::start([Reply::text("ok")]);
        Run::new().args(args).server(&server).stdin("what is this?\n").run().success().stdout_is("ok\n");
        assert_eq!(server.only_request().user().trim_end(), "what is this?");
    }
}

#[test]
fn without_a_task_and_with_nothing_on_stdin_usage_is_wrong() {
    let server = Server::start([]);
    Run::new().arg("run").server(&server).run().exits(2).stdout_is("");
}

#[test]
fn a_silent_open_stdin_does_not_hold_up_a_task() {
    let server = Server::start([Reply::text("ok")]);
    let output = Run::task(&server, "task").silent_stdin().run().success().stdout_is("ok\n").stderr_has("stdin");
    assert_eq!(server.only_request().user(), "task", "{}", output.shown());
}

#[test]
fn stdin_none_never_reads() {
    let server = Server::start([Reply::text("ok")]);
    Run::task(&server, "task")
        .args(["--stdin", "none"])
        .stdin("not for you")
        .run()
        .success()
        .stderr_lacks("stdin");
    assert_eq!(server.only_request().user(), "task");
}

#[test]
fn stdin_require_fails_when_it_is_empty() {
    let server = Server::start([Reply::text("ok")]);
    Run::task(&server, "task")
        .args(["--stdin", "require"])
        .stdin("")
        .run()
        .fails()
        .stdout_is("")
        .stderr_has("stdin");
    Run::task(&server, "task").args(["-f", "-"]).stdin("").run().fails().stdout_is("");
    assert!(server.requests().is_empty());
    Run::task(&server, "task").args(["--stdin", "require"]).stdin("here").run().success();
    assert!(server.only_request().user().contains("here"));
}

#[test]
fn too_much_on_stdin_is_an_error_and_never_a_silent_cut() {
    let server = Server::start([]);
    Run::task(&server, "task").stdin(vec![b'x'; (16 << 20) + 1]).run().fails().stdout_is("").stderr_has("16");
    assert!(server.requests().is_empty());
}

#[test]
fn a_line_says_what_was_attached_and_how_large() {
    let server = Server::always(Reply::text("ok"));
    Run::task(&server, "task").stdin("hello\n").run().success().stderr_has("attached stdin: 6 bytes\n");
    Run::task(&server, "task").stdin("x".repeat(3072)).run().success().stderr_has("attached stdin: 3.0 KiB\n");
    Run::task(&server, "task").stdin("hello\n").arg("-q").run().success().stderr_lacks("stdin");
    Run::task(&server, "task").stdin("").run().success().stderr_lacks("stdin");
}

#[test]
fn a_loop_over_a_file_runs_once_for_each_line() {
    for shell in ["sh", "bash"] {
        let script = "while read x; do agent run \"do $x\"; done < list";
        let (tasks, stderr) = told(shell, script, &[("list", "one\ntwo\nthree\n")]);
        assert_eq!(tasks, ["do one", "do two", "do three"], "{shell}");
        assert_eq!(
            stderr.matches(LEFT_ALONE).count(),
            2,
            "{shell}: after the last line nothing is left\n{stderr}"
        );
    }
}

#[test]
fn a_loop_over_a_pipe_runs_once_for_each_line() {
    for shell in ["sh", "bash"] {
        let script = "printf 'one\\ntwo\\nthree\\n' | while read x; do agent run \"do $x\"; done";
        let (tasks, stderr) = told(shell, script, &[]);
        assert_eq!(tasks, ["do one", "do two", "do three"], "{shell}");
        assert!(stderr.contains(LEFT_ALONE), "{shell}\n{stderr}");
    }
}

#[test]
fn a_loop_that_asks_for_its_list_gets_it() {
    let script = "while read x; do agent run --stdin require \"do $x\"; done < list";
    let (tasks, _) = told("bash", script, &[("list", "one\ntwo\nthree\n")]);
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    assert!(tasks[0].starts_with("do one") && tasks[0].contains("two\nthree"), "{tasks:?}");
}

#[test]
fn a_wrapper_script_keeps_its_stdin() {
    for shell in ["sh", "bash"] {
        for start in ["wrapper < list", "cat list | SHELL wrapper", "SHELL -c '. ./wrapper' < list"] {
            let script = if start.contains("SHELL") { start.to_owned() } else { format!("SHELL {start}") };
            let script = script.replace("SHELL", shell);
            let files = [("list", "one\ntwo\n"), ("wrapper", "agent run first\ncat > rest\n")];
            let server = Server::always(Reply::text("ok"));
            let run = Run::script(shell, &script).server(&server);
            let run = files.iter().fold(run, |run, (path, content)| run.file(path, content));
            let output = run.run().success().stderr_has(LEFT_ALONE);
            assert_eq!(server.only_request().user(), "first", "{script}");
            assert_eq!(output.place.read("rest"), "one\ntwo\n", "{script}");
        }
    }
}

#[test]
fn a_pipeline_is_read_to_its_end() {
    for (shell, script) in [
        ("sh", "cat list | agent run explain"),
        ("sh", "cat list | agent run explain; true"),
        ("bash", "cat list | agent run explain; true"),
        ("bash", "cat list | (agent run explain); true"),
        ("bash", "agent run explain < <(cat list); true"),
        ("bash", "cat list | timeout 60 agent run explain; true"),
        ("bash", "cat list | sh -c 'agent run explain 2>&1' >&2; true"),
        ("bash", "cat list | sh -c 'A=1 timeout 60 agent run explain'; true"),
    ] {
        let (tasks, stderr) = told(shell, script, &[("list", "one\ntwo\n")]);
        assert!(tasks.len() == 1 && tasks[0].contains("one\ntwo"), "{shell} {script}: {tasks:?}\n{stderr}");
        assert!(stderr.contains("attached stdin: 8 bytes"), "{shell} {script}\n{stderr}");
    }
}

#[test]
fn a_redirected_file_is_attached() {
    for (shell, script) in [
        ("sh", "agent run explain < list"),
        ("sh", "agent run explain < list; true"),
        ("sh", "sh job"),
        ("sh", "sh -c 'agent run explain' < list; true"),
        ("sh", "cat list | sh job"),
        ("bash", "agent run explain < list"),
        ("bash", "agent run explain < list; true"),
        ("bash", "agent run explain <<< $'one\\ntwo'; true"),
        ("bash", "exec 9< list; read x <&9; agent run explain < list; true"),
        ("bash", "exec agent run explain < list"),
    ] {
        let files = [("list", "one\ntwo\n"), ("job", "agent run explain < list\ntrue\n")];
        let (tasks, stderr) = told(shell, script, &files);
        assert!(tasks.len() == 1 && tasks[0].contains("one\ntwo"), "{shell} {script}: {tasks:?}\n{stderr}");
    }
}

#[test]
fn xargs_runs_each_line_as_a_task_of_its_own() {
    let files = [("list", "one\ntwo\nthree\n")];
    let (tasks, stderr) = told("sh", "xargs -I{} agent run 'do {}' < list", &files);
    assert_eq!(tasks, ["do one", "do two", "do three"]);
    assert!(!stderr.contains("stdin"), "xargs gives its commands an empty stdin\n{stderr}");
    let (tasks, stderr) = told("sh", "xargs -a list -I{} agent run 'do {}' < list", &files);
    assert_eq!(tasks, ["do one", "do two", "do three"]);
    assert!(stderr.contains(LEFT_ALONE), "with -a its commands share its stdin\n{stderr}");
}

#[test]
fn a_shell_that_a_remote_caller_started_keeps_its_connection() {
    let caller = "
import socket, subprocess, sys
ours, theirs = socket.socketpair()
shell = subprocess.Popen(['sh', '-c', 'agent run first; cat > rest'], stdin=theirs)
theirs.close()
ours.sendall(b'one two')
ours.shutdown(socket.SHUT_WR)
sys.exit(shell.wait())
";
    let server = Server::always(Reply::text("ok"));
    let output = Run::script("python3", caller).server(&server).run().success().stderr_has(LEFT_ALONE);
    assert_eq!(server.only_request().user(), "first");
    assert_eq!(output.place.read("rest"), "one two");
}

#[test]
fn what_a_remote_caller_sends_is_attached() {
    let caller = "
import socket, subprocess, sys
ours, theirs = socket.socketpair()
agent = subprocess.Popen(['agent', 'run', 'explain'], stdin=theirs)
theirs.close()
ours.sendall(b'one two')
ours.shutdown(socket.SHUT_WR)
sys.exit(agent.wait())
";
    let (tasks, stderr) = told("python3", caller, &[]);
    assert!(tasks.len() == 1 && tasks[0].contains("one two"), "{tasks:?}\n{stderr}");
}

#[test]
fn an_editor_gets_its_selection_rewritten() {
    // The editor alone holds the other end, with a shell in between or not; or a shell redirects a file.
    let pipe = "
import subprocess, sys
sys.exit(subprocess.run(['agent', 'run', 'rewrite'], input=b'one two').returncode)
";
    let shell = "
import subprocess, sys
sys.exit(subprocess.run('agent run rewrite', shell=True, input=b'one two').returncode)
";
    for (shell, script) in [
        ("python3", pipe),
        ("python3", shell),
        ("sh", "sh -c '(agent run rewrite) < selection'; true"),
        ("bash", "bash -c '(agent run rewrite) < selection > out 2>&1'; true"),
    ] {
        let (tasks, stderr) = told(shell, script, &[("selection", "one two")]);
        assert!(tasks.len() == 1 && tasks[0].contains("one two"), "{script}: {tasks:?}\n{stderr}");
    }
}

#[test]
fn cron_and_ci_have_nothing_on_stdin_and_nothing_is_said() {
    for script in [
        "agent run task < /dev/null; true",
        "agent run task; true",
        "agent run task <&-; true",
        "exec <&-; agent run task; true",
        ": | sh ci",
        "sh ci < empty",
    ] {
        let (tasks, stderr) = told("sh", script, &[("ci", "agent run task\ntrue\n"), ("empty", "")]);
        assert_eq!(tasks, ["task"], "{script}");
        assert!(!stderr.contains("stdin"), "{script}\n{stderr}");
    }
}

#[test]
fn a_script_under_a_forgotten_pipe_is_not_held_up() {
    let server = Server::always(Reply::text("ok"));
    Run::script("sh", "agent run task; true")
        .server(&server)
        .silent_stdin()
        .run()
        .success()
        .stderr_has(LEFT_ALONE);
    assert_eq!(server.only_request().user(), "task");
}

#[test]
fn stdin_that_is_not_to_be_read_is_no_task() {
    Run::new().args(["run", "--stdin", "none", "-m", "demo"]).stdin("a task").run().exits(2).stderr_has("no task");
}
