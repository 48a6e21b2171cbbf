//! What commands make or change under protected names: it is kept apart, told and offered, and what a person does
//! meanwhile is left alone.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

use serde_json::json;

use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::sandbox::{FORMS, Form, tried_in};
use crate::server::Server;

/// The text of what a command made under a protected name, where it is kept.
pub fn read_kept(place: &Place, name: &str) -> Option<String> {
    let kept = fs::read_dir(place.home().join(".local/state/agent/undone")).ok()?;
    kept.flatten().find_map(|dir| fs::read_to_string(dir.path().join(name)).ok())
}

#[test]
fn no_word_of_a_line_lets_a_command_write_the_configuration_itself() {
    let commands = [
        // What programs outside would read meanwhile.
        "git config core.fsmonitor evil; git remote add there https://a/b; git config --get core.fsmonitor; touch made; sleep 0.5",
        "mv .git .g; git status --short; rm -f .git/config; git config --get remote.origin.url",
        "git remote set-url origin https://evil/b; git config branch.main.remote there",
        // Without its copy, and in another process of the boundary, there is no way either.
        "for dir in /tmp/.git-config*; do rm -rf $dir; ln -s /nowhere $dir; done; sleep 300 >/dev/null 2>&1 & echo gone",
        "echo evil >> .git/config; git config user.name me; echo tried",
    ];
    let mine =
        "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://a/b\n[branch \"main\"]\n\tremote = origin\n";
    for form in [Form::Namespaces, Form::NamespacesOfAUser] {
        let mut reader = None;
        let prepare = |run: Run| {
            let run = run.file(".git/config", mine).file(".git/HEAD", "ref: refs/heads/main\n");
            for dir in ["objects", "refs"] {
                fs::create_dir_all(run.place().workspace().join(".git").join(dir)).expect("made");
            }
            let root = run.place().workspace().clone();
            reader = Some(thread::spawn(move || {
                let read = || fs::read_to_string(root.join(".git/config")).expect("read");
                while !root.join("made").exists() {
                    assert_eq!(read(), mine);
                    thread::yield_now();
                }
                read()
            }));
            run
        };
        let Some((output, results)) = tried_in(form, prepare, &commands) else { return };
        assert_eq!(reader.expect("it was begun").join().expect("nothing else was read"), mine, "{form:?}");
        assert!(results[0].contains("evil\n"), "{form:?}: its own copy is changed: {}", results[0]);
        assert!(results[1].contains("https://a/b"), "{form:?}: {}", results[1]);
        assert!(results[1].contains("Device or resource busy"), "{form:?}: {}", results[1]);
        assert!(results[4].contains("Read-only file system"), "{form:?}: {}", results[4]);
        for result in [&results[0], &results[2]] {
            assert!(result.contains("not taken over: changes of .git/config (kept as "), "{form:?}: {result}");
        }
        assert_eq!(output.place.read(".git/config"), mine, "{form:?}");
    }
}

#[test]
fn depth_and_number_of_what_a_command_makes_do_not_matter() {
    let commands = [
        "mkdir -p .idea/1/2/3/4/5/6 && echo evil > .idea/workspace.xml; mkdir -p .github/actions/1/2/3/4/5/6",
        "mkdir .claude && for n in $(seq 1100); do echo x > .claude/$n; done; echo evil > 'Job\n[x].Code-Workspace'",
        "mkdir -p elsewhere/workflows && echo x > elsewhere/workflows/ci.yml && ln -s elsewhere .gitea; echo ok",
    ];
    for form in FORMS {
        let Some((output, results)) = tried_in(form, |run| run, &commands) else { return };
        for (at, name) in [(0, ".idea"), (0, ".github/actions"), (1, ".claude"), (2, ".gitea")] {
            assert!(results[at].contains(&format!("{name} (kept as ")), "{form:?}: {name}: {}", results[at]);
            assert!(!output.place.exists(name), "{form:?}: {name}");
        }
        assert!(results[1].contains("\"Job\\n[x].Code-Workspace\" (kept as \""), "{form:?}: {}", results[1]);
        assert!(!output.place.exists("Job\n[x].Code-Workspace"), "{form:?}");
        assert_eq!(read_kept(&output.place, ".idea/workspace.xml").as_deref(), Some("evil\n"), "{form:?}");
        assert_eq!(read_kept(&output.place, ".claude/1100").as_deref(), Some("x\n"), "{form:?}");
        assert!(output.place.exists("elsewhere/workflows/ci.yml"), "{form:?}");
    }
}

#[test]
fn what_can_be_run_where_git_status_shows_nothing_is_told_and_guarded() {
    let commands = [
        "mkdir -p out/bin && cp /bin/true out/bin/tool && cp /bin/true run.out && echo text > out/bin/notes",
        "git init -q out/made && cd out/made/.git && printf '[core]\n\tfsmonitor = ./evil\n' >> config && \
         mkdir -p hooks && echo evil > hooks/pre-commit",
        "git init -q --bare bare.git && printf '[core]\\n\\tfsmonitor = ./evil\\n' >> bare.git/config && \
         echo evil > bare.git/hooks/post-checkout; mkdir -p out/b && cp -r bare.git/. out/b && \
         mkdir -p out/b/objects/in && cp -r out/made/.git out/b/objects/in/.git && \
         printf '[core]\\n\\tfsmonitor = ./evil\\n' >> out/b/objects/in/.git/config",
        "cp /bin/true out/deep/er/other; touch out/bin/tool; chmod +x out/bin/notes; cp /bin/true seen",
    ];
    for form in FORMS {
        let prepare = |run: Run| {
            let run = run.file(".gitignore", "out/\n*.out\n").file("out/old", "").file("out/deep/er/text", "");
            let run = run.file(".git/HEAD", "ref: refs/heads/main\n").file(".git/config", "[core]\n");
            let old = run.place().workspace().join("out/old");
            fs::set_permissions(old, fs::Permissions::from_mode(0o755)).expect("ours");
            run
        };
        let Some((output, _)) = tried_in(form, prepare, &commands) else { continue };
        let told: Vec<&str> = output
            .stderr
            .lines()
            .filter_map(|line| line.split_once("that were made or changed: "))
            .map(|told| told.1)
            .collect();
        assert_eq!(
            told,
            ["out/bin/tool, run.out", "out/bin/notes, out/deep/er/other"],
            "{form:?}: {}",
            output.stderr
        );
        for made in ["out/made/.git", "bare.git", "out/b", "out/b/objects/in/.git"] {
            let config = output.place.read(&format!("{made}/config"));
            assert!(config.contains("bare = ") && !config.contains("fsmonitor"), "{form:?}: {made}: {config}");
        }
        for hook in ["out/made/.git/hooks/pre-commit", "bare.git/hooks/post-checkout", "out/b/hooks/post-checkout"]
        {
            assert!(!output.place.exists(hook), "{form:?}: {hook}");
        }
    }
}

#[test]
fn what_a_person_changes_meanwhile_is_left_alone() {
    for form in [Form::Namespaces, Form::NamespacesOfAUser] {
        let mut editor = None;
        let prepare = |run: Run| {
            let run = run
                .file("AGENTS.md", "as it was\n")
                .file(".vscode/tasks.json", "{}\n")
                .file("sub/AGENTS.md", "old\n");
            let run = run.file(".git/HEAD", "ref: refs/heads/main\n").file(".git/config", "[core]\n");
            let root = run.place().workspace().clone();
            editor = Some(thread::spawn(move || {
                while !root.join("made").exists() {
                    thread::yield_now();
                }
                for (name, text) in
                    [("AGENTS.md", "mine\n"), ("sub/AGENTS.md", "mine\n"), (".vscode/new.json", "mine\n")]
                {
                    fs::write(root.join(name), text).expect("written");
                }
                // As editors and git save.
                fs::write(root.join("new"), "mine\n").expect("written");
                fs::rename(root.join("new"), root.join(".vscode/tasks.json")).expect("renamed");
                fs::write(root.join("new"), "[user]\n\tname = mine\n").expect("written");
                fs::rename(root.join("new"), root.join(".git/config")).expect("renamed");
                fs::write(root.join("go"), "").expect("written");
            }));
            run
        };
        let command = "touch made; while [ ! -e go ]; do sleep 0.01; done; echo over";
        let Some((output, results)) = tried_in(form, prepare, &[command, "cat .git/config"]) else { return };
        editor.expect("it was begun").join().expect("it wrote");
        assert_eq!(results[0], "exit 0\nover", "{form:?}");
        for name in ["AGENTS.md", "sub/AGENTS.md", ".vscode/tasks.json", ".vscode/new.json"] {
            assert_eq!(output.place.read(name), "mine\n", "{form:?}: {name}");
        }
        assert!(results[1].contains("name = mine"), "{form:?}: {}", results[1]);
    }
}

#[test]
fn what_is_replaced_while_a_command_runs_is_covered_again() {
    let command = "touch made; while [ ! -e go ]; do sleep 0.01; done; n=0; \
                   while grep -qs SECRET ~/.ssh/id || echo evil >> AGENTS.md; do n=$((n+1)); [ $n -lt 900 ] || exit 1; sleep 0.01; done; \
                   echo covered";
    for form in [Form::Namespaces, Form::NamespacesOfAUser] {
        let mut person = None;
        let prepare = |run: Run| {
            let run = run.file("../home/.ssh/id", "old\n").file("AGENTS.md", "old\n");
            let (home, root) = (run.place().home(), run.place().workspace());
            person = Some(thread::spawn(move || {
                while !root.join("made").exists() {
                    thread::yield_now();
                }
                for (path, text) in [(home.join(".ssh/id"), "SECRET\n"), (root.join("AGENTS.md"), "mine\n")] {
                    fs::write(path.with_extension("new"), text).expect("written");
                    fs::rename(path.with_extension("new"), path).expect("replaced");
                }
                fs::write(root.join("go"), "").expect("written");
            }));
            run
        };
        let Some((_, results)) = tried_in(form, prepare, &[command]) else { return };
        person.expect("it was begun").join().expect("it wrote");
        assert!(results[0].starts_with("exit 0") && results[0].contains("covered"), "{form:?}: {}", results[0]);
    }
}

#[test]
fn a_link_under_a_protected_name_stays_and_so_does_what_it_leads_to() {
    let commands = [
        "echo evil >> AGENTS.md; echo evil >> docs/rules.md; mv docs/rules.md docs/x",
        "rm -f AGENTS.md; ln -sf other AGENTS.md; mv other docs/rules.md; cat AGENTS.md; echo fine > docs/other",
    ];
    for form in [Form::Namespaces, Form::NamespacesOfAUser] {
        let prepare = |run: Run| {
            let run = run.file("docs/rules.md", "be good\n").file("other", "evil\n");
            std::os::unix::fs::symlink("docs/rules.md", run.place().workspace().join("AGENTS.md"))
                .expect("linked");
            run
        };
        let Some((output, results)) = tried_in(form, prepare, &commands) else { return };
        assert!(results[1].contains("be good"), "{form:?}: {}", results[1]);
        assert_eq!(output.place.read("AGENTS.md"), "be good\n", "{form:?}: {results:?}");
        assert!(output.place.exists("docs/other"), "{form:?}");
        let link = fs::read_link(output.place.workspace().join("AGENTS.md")).expect("it is still a link");
        assert_eq!(link, Path::new("docs/rules.md"), "{form:?}");
    }
}

#[test]
fn what_a_person_allowed_by_its_name_is_changed() {
    let command = "echo '{}' > .vscode/tasks.json; mkdir -p .idea && echo x > .idea/x; echo ok";
    let command = format!("{command}; eval \"$(printf 'echo x > .%s' envrc)\"");
    let server = Server::start([Reply::call("run_command", &json!({ "command": command })), Reply::text("Done.")]);
    let run = Run::new().args(["chat", "--approve", "edits"]).file(".vscode/tasks.json", "[]\n");
    let place = run.place();
    let mut terminal = Terminal::sized(&run.server(&server), 200, 30);
    terminal.line("go");
    terminal.wait_for("asked because it writes `.vscode/tasks.json`");
    terminal.line("y");
    terminal.wait_for("put it in its place?");
    assert!(terminal.screen().contains(".envrc"), "{}", terminal.screen());
    terminal.line("n");
    terminal.wait_for("Done.");
    assert_eq!(place.read(".vscode/tasks.json"), "{}\n");
    assert!(place.exists(".idea/x") && !place.exists(".envrc"), "{}", server.requests()[1].last_output());
}

#[test]
fn a_command_that_failed_at_a_protected_file_is_offered_again_where_it_may_change_that_one() {
    let command = "eval \"$(printf 'rm -r sub; echo x > .%s; test ! -e sub' envrc)\"";
    let server = Server::start([Reply::call("run_command", &json!({ "command": command })), Reply::text("Done.")]);
    let run =
        Run::new().args(["chat", "--approve", "edits"]).file("sub/CLAUDE.md", "x\n").file(".envrc", "mine\n");
    let place = run.place();
    let mut terminal = Terminal::sized(&run.server(&server), 200, 30);
    terminal.line("go");
    terminal.wait_for("run it again, once, with more opened?");
    terminal.wait_for("writes in the workspace and .envrc and sub/CLAUDE.md, no network");
    terminal.line("y");
    terminal.wait_for("Done.");
    let told = server.requests()[1].last_output().to_owned();
    assert!(!place.exists("sub") && place.read(".envrc") == "x\n", "{told}");
}

#[test]
fn a_person_is_offered_what_was_moved_aside() {
    // The policy, which asks about what a line names, does not see it here.
    let command = "eval \"$(printf 'mkdir -p .%s && echo made > .%s/tasks.json; git config alias.st !x; echo ok' vscode vscode)\"";
    for (answer, is_taken) in [("y", true), ("n", false)] {
        let server =
            Server::start([Reply::call("run_command", &json!({ "command": command })), Reply::text("Done.")]);
        let run = Run::new().args(["chat", "--approve", "edits"]);
        let run = run.file(".git/HEAD", "ref: refs/heads/main\n").file(".git/config", "[core]\n");
        let place = run.place();
        for dir in ["objects", "refs"] {
            fs::create_dir_all(place.workspace().join(".git").join(dir)).expect("made");
        }
        let mut terminal = Terminal::sized(&run.server(&server), 200, 30);
        terminal.line("go");
        terminal.wait_for("put it in its place?");
        for shown in [".vscode", "+ [alias]", ".git/config"] {
            assert!(terminal.screen().contains(shown), "{shown}: {}", terminal.screen());
        }
        terminal.line(answer);
        terminal.wait_for("Done.");
        let told = server.requests()[1].last_output().to_owned();
        assert!(told.contains("moved aside: .vscode"), "{told}");
        assert_eq!(place.exists(".vscode/tasks.json"), is_taken, "{told}");
        assert_eq!(place.read(".git/config").contains("alias"), is_taken, "{told}");
    }
}
