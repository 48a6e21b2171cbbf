//! Files that decide what runs later: what a command changed of them is put back, whichever repository they are of.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::kept_apart::read_kept;
use crate::reply::Reply;
use crate::run::Run;
use crate::sandbox::{FORMS, Form, tried_in};
use crate::server::Server;

#[test]
fn protected_files_are_put_back_and_named() {
    let commands = [
        "echo '[core] fsmonitor = evil' >> .git/config; echo evil > .git/hooks/pre-commit; rm .github/workflows/ci.yml; echo ok",
        "mkdir -p .agent && echo x > .agent/agent.yaml; rm -r .git/hooks && ln -s ../elsewhere .git/hooks; echo evil > elsewhere/pre-push",
        "chmod 755 .git/config; touch src.txt",
        "mv .github .github2; mkdir .github; echo 'on: push' > .github/workflows",
    ];
    let prepare = |run: Run| {
        run.file(".git/config", "[core]\n")
            .file(".git/HEAD", "ref: refs/heads/main\n")
            .file(".git/hooks/post-commit", "mine\n")
            .file(".github/workflows/ci.yml", "on: push\n")
            .file("elsewhere/x", "")
    };
    let Some((output, results)) = tried_in(Form::Rules, prepare, &commands) else { return };
    let place = &output.place;
    for name in [".git/config", ".git/hooks/pre-commit", ".github/workflows/ci.yml"] {
        assert!(results[0].contains(name), "{name} is not reported: {}", results[0]);
    }
    assert_eq!(place.read(".git/config"), "[core]\n");
    assert_eq!(place.read(".github/workflows/ci.yml"), "on: push\n");
    assert_eq!(place.read(".git/hooks/post-commit"), "mine\n");
    assert!(!place.exists(".git/hooks/pre-commit") && !place.exists(".git/hooks/pre-push"));
    assert!(!place.exists(".agent/agent.yaml"));
    assert!(
        results[1].contains("moved aside: .agent ") && results[1].contains("put back as before: "),
        "{}",
        results[1]
    );
    let mode = fs::metadata(place.workspace().join(".git/config")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o644, "{}", results[2]);
    assert!(place.exists("src.txt"));
    assert_eq!(read_kept(place, ".git/hooks/pre-commit").as_deref(), Some("evil\n"));
}

#[test]
fn repositories_in_the_workspace_are_protected_as_its_own_is() {
    let commands = [
        // One by one: a nested repository, a submodule's, a linked work tree's.
        "echo evil >> libs/a/.git/config; echo evil > libs/a/.git/hooks/pre-commit; echo fine > libs/a/.git/index",
        "echo evil >> .git/modules/b/config; echo evil > .git/modules/b/hooks/post-checkout",
        "echo evil > .git/worktrees/w/config.worktree; echo ../../../elsewhere > .git/worktrees/w/commondir",
        // A pointer to a repository is protected like the repository itself.
        "echo 'gitdir: ../elsewhere' > b/.git; mv libs/a/.git libs/a/x && mkdir libs/a/.git && echo evil > libs/a/.git/config",
        // A repository that goes is gone, with its pointer.
        "rm -rf libs/gone b && mkdir -p made/.git/hooks",
    ];
    let nested = |run: Run, dir: &str| {
        run.file(&format!("{dir}/HEAD"), "ref: refs/heads/main\n").file(&format!("{dir}/config"), "[core]\n")
    };
    let prepare = |run: Run| {
        let run = [".git", "libs/a/.git", "libs/gone/.git", ".git/modules/b"].into_iter().fold(run, nested);
        run.file("b/.git", "gitdir: ../.git/modules/b\n")
            .file("w/.git", "gitdir: ../.git/worktrees/w\n")
            .file(".git/modules/b/hooks/x", "")
            .file("libs/a/.git/hooks/post-commit", "mine\n")
            .file(".git/worktrees/w/HEAD", "ref: refs/heads/w\n")
            .file(".git/worktrees/w/commondir", "../..\n")
    };
    let Some((output, results)) = tried_in(Form::Rules, prepare, &commands) else { return };
    let place = &output.place;
    let named = [
        (0, "libs/a/.git/hooks/pre-commit"),
        (0, "libs/a/.git/config"),
        (1, ".git/modules/b/config"),
        (1, ".git/modules/b/hooks/post-checkout"),
        (2, ".git/worktrees/w/config.worktree"),
        (2, ".git/worktrees/w/commondir"),
        (3, "b/.git"),
        (3, "libs/a/.git/config"),
    ];
    for (at, name) in named {
        assert!(results[at].contains(name), "{name} is not reported: {}", results[at]);
    }
    assert_eq!(place.read("libs/a/.git/config"), "[core]\n");
    assert_eq!(place.read("libs/a/.git/hooks/post-commit"), "mine\n");
    assert_eq!(place.read(".git/worktrees/w/commondir"), "../..\n");
    for gone in ["libs/a/.git/hooks/pre-commit", ".git/modules/b/hooks/post-checkout", "libs/gone", "b"] {
        assert!(!place.exists(gone), "{gone} is there");
    }
    assert!(!results[4].contains("put back") && !results[4].contains("moved aside"), "{}", results[4]);
}

#[test]
fn a_repository_that_the_settings_open_is_protected_where_it_lies() {
    let commands = ["echo evil >> ../main/.git/config; echo x > ../main/.git/worktrees/w/index; echo tried"];
    let prepare = |run: Run| {
        run.file(".git", "gitdir: ../main/.git/worktrees/w\n")
            .file("../main/.git/worktrees/w/commondir", "../..\n")
            .file("../main/.git/worktrees/w/HEAD", "ref: refs/heads/w\n")
            .file("../main/.git/HEAD", "ref: refs/heads/main\n")
            .file("../main/.git/config", "[core]\n")
            .config("agent.yaml", "sandbox: { write: [\"../main\"] }\n")
    };
    let Some((output, results)) = tried_in(Form::Rules, prepare, &commands) else { return };
    assert!(
        results[0].contains("put back as before") && results[0].contains("main/.git/config"),
        "{}",
        results[0]
    );
    assert_eq!(output.place.read("../main/.git/config"), "[core]\n");
    assert_eq!(output.place.read("../main/.git/worktrees/w/index"), "x\n");
}

/// In namespaces a write to a protected file fails; what cannot be held so is moved aside afterwards.
#[test]
fn protected_files_are_read_only_in_namespaces() {
    let commands = [
        "echo '[core] fsmonitor = evil' >> .git/config; echo evil > .git/hooks/pre-commit; rm .github/workflows/ci.yml",
        "rm -r .git/hooks && ln -s ../elsewhere .git/hooks; echo evil > a/b/c/d/e/f/g/AGENTS.md",
        "mv .git/hooks .git/h; mv .git/config .git/c; cp /dev/null .git/config",
        "(while :; do echo evil > .git/hooks/pre-push; done) 2>/dev/null & sleep 0.2; kill $!; ls .git/hooks",
        "mkdir -p .agent && echo x > .agent/agent.yaml; echo evil > .envrc; echo ok",
        "mv .github .github2; mkdir .github; echo 'on: push' > .github/workflows",
        "git init -q nested; echo x > .git/index; echo y > src.txt; cat .git/config",
    ];
    let prepare = |run: Run| {
        run.file(".git/config", "[core]\n\tbare = false\n")
            .file(".git/HEAD", "ref: refs/heads/main\n")
            .file(".git/hooks/post-commit", "mine\n")
            .file(".github/workflows/ci.yml", "on: push\n")
            .file("elsewhere/x", "")
            .file("a/b/c/d/e/f/g/AGENTS.md", "be good\n")
    };
    for form in [Form::Namespaces, Form::NamespacesOfAUser] {
        let Some((output, results)) = tried_in(form, prepare, &commands) else { return };
        let place = &output.place;
        for result in &results[..2] {
            assert!(!result.starts_with("exit 0"), "{form:?}: {result}");
        }
        assert_eq!(results[2].matches("Device or resource busy").count(), 2, "{form:?}: {}", results[2]);
        assert!(results[2].contains("not taken over"), "emptied: {form:?}: {}", results[2]);
        assert!(results[0].contains("Read-only file system"), "{form:?}: {}", results[0]);
        assert_eq!(results[3], "exit 0\npost-commit", "{form:?}");
        assert!(results[0].contains("not taken over: changes of .git/config"), "{form:?}: {}", results[0]);
        assert_eq!(place.read(".git/config"), "[core]\n\tbare = false\n", "{form:?}");
        // The directory above may go; what comes in its place is moved aside.
        assert_eq!(place.read(".github2/workflows/ci.yml"), "on: push\n");
        assert!(results[5].contains("moved aside: .github/workflows"), "{form:?}: {}", results[5]);
        assert!(!place.exists(".github/workflows"), "{form:?}");
        assert_eq!(place.read(".git/hooks/post-commit"), "mine\n");
        assert_eq!(place.read("a/b/c/d/e/f/g/AGENTS.md"), "be good\n", "{form:?}");
        assert!(results[4].contains("moved aside: .agent "), "{form:?}: {}", results[4]);
        assert_eq!(read_kept(place, ".agent/agent.yaml").as_deref(), Some("x\n"));
        assert!(!place.exists(".agent/agent.yaml") && !place.exists(".envrc"), "{form:?}");
        assert!(place.exists("src.txt") && place.exists("nested/.git/config"), "{form:?}: {}", results[6]);
    }
}

#[test]
fn what_agents_and_editors_are_told_is_put_back_at_any_depth() {
    let commands = [
        "echo evil >> AGENTS.md; echo evil > sub/.vscode/tasks.json; echo evil > sub/CLAUDE.md; echo ok > sub/x",
        "echo evil >> data.git/config; mkdir -p data.git/hooks; echo evil > data.git/hooks/post-receive; echo x > data.git/refs/x",
        // What goes as a whole is gone.
        "rm -r gone",
    ];
    let prepare = |run: Run| {
        run.file("AGENTS.md", "be good\n")
            .file("sub/.vscode/tasks.json", "{}\n")
            .file("sub/CLAUDE.md", "be good\n")
            .file("gone/AGENTS.md", "")
            .file("gone/.vscode/x", "")
            .file("data.git/HEAD", "ref: refs/heads/main\n")
            .file("data.git/config", "[core]\n")
            .file("data.git/objects/x", "")
            .file("data.git/refs/y", "")
    };
    let Some((output, results)) = tried_in(Form::Rules, prepare, &commands) else { return };
    let place = &output.place;
    for (at, name) in
        [(0, "AGENTS.md"), (0, "sub/.vscode/tasks.json"), (0, "sub/CLAUDE.md"), (1, "data.git/config")]
    {
        assert!(results[at].contains(name), "{name} is not reported: {}", results[at]);
    }
    assert_eq!((place.read("AGENTS.md"), place.read("sub/CLAUDE.md")), ("be good\n".into(), "be good\n".into()));
    assert_eq!(
        (place.read("sub/.vscode/tasks.json"), place.read("data.git/config")),
        ("{}\n".into(), "[core]\n".into())
    );
    assert!(
        !place.exists("data.git/hooks/post-receive") && place.exists("data.git/refs/x") && place.exists("sub/x")
    );
    assert!(!place.exists("gone"), "{}", results[2]);
}

#[test]
fn the_everyday_work_of_git_goes_on() {
    let identity = "git -c user.name=a -c user.email=a@b";
    let commands = [
        "git init -q -b main . && echo a > f && git add f && ID commit -qm one",
        "git checkout -qb side && echo b > f && ID commit -qam two && git checkout -q main && echo c > f && \
         ID commit -qam three && ID tag -a v1 -m v1 && git branch other && echo d >> f && ID stash -q && ID stash pop -q && \
         git checkout -q f && git gc -q",
        // One that stops leaves its state, and the next command goes on from there.
        "ID rebase -q main side; test -d .git/rebase-merge && echo stopped",
        "echo e > f && git add f && GIT_EDITOR=true ID rebase --continue && git log --format=%s",
    ]
    .map(|command| command.replace("ID ", &format!("{identity} ")));
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let Some((_, results)) = tried_in(Form::NamespacesOfAUser, |run| run, &commands) else { return };
    for result in &results {
        assert!(!result.contains("put back") && !result.contains("moved aside"), "{result}");
    }
    assert!(results[2].contains("stopped"), "{}", results[2]);
    assert!(results[3].contains("two\nthree\none"), "{}", results[3]);
}

#[test]
fn what_git_does_every_day_to_its_configuration_stays() {
    let commands = [
        "git init -q -b main . && git config user.email a@b && git config user.name a && echo x > f && git add f && git commit -qm one",
        "git remote add origin https://example.com/a && git branch side && git branch --set-upstream-to=main side && git config --get user.email",
        "git clone -q . nested && rm -rf nested && ls",
        "git init -q kept",
        "echo evil > kept/.git/hooks/pre-commit",
        "git config core.hooksPath elsewhere; git config alias.st '!evil'; git config user.name b; echo ok",
        "rm -rf kept && git worktree add -q ../workspace/tree side && git worktree remove tree && git config --get user.name; ls",
    ];
    for form in [Form::Namespaces, Form::NamespacesOfAUser, Form::Rules] {
        let Some((output, results)) = tried_in(form, |run| run, &commands) else { return };
        assert_eq!(results[0], "exit 0, no output", "{form:?}");
        assert!(results[1].ends_with("a@b"), "{form:?}: {}", results[1]);
        assert_eq!(results[2], "exit 0\nf", "{form:?}");
        let config = output.place.read(".git/config");
        assert!(config.contains("https://example.com/a") && !config.contains("evil"), "{form:?}: {config}");
        assert!(!config.contains("hooksPath"), "{form:?}: {config}");
        let (undone, kept) = ("put back as before: .git/config", "not taken over: changes of .git/config");
        assert!(results[5].contains(if form == Form::Rules { undone } else { kept }), "{form:?}: {}", results[5]);
        assert!(results[6].ends_with("a\nf"), "{form:?}: {}", results[6]);
    }
}

#[test]
fn a_repository_that_a_command_makes_runs_nothing() {
    let git = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main -c protocol.file.allow=always";
    let commands = [
        "GIT init -q . && echo x > f && GIT add f && GIT commit -qm one && GIT init -q a && GIT clone -q . b/c",
        "GIT init -q evil && GIT -C evil config core.fsmonitor ./x && echo x > evil/.git/hooks/post-commit",
        // Later as well, and where another runs nothing.
        "GIT -C a config alias.st '!x'; echo x > b/c/.git/hooks/pre-push; GIT -C b/c config user.name n",
        "GIT worktree add -q tree && GIT submodule --quiet add ./a/.git sub; GIT -C tree status --short; cat .gitmodules",
        // However many come, and wherever a link in one leads.
        "for i in $(seq 300); do mkdir -p n/a$i/.git; done; mkdir -p n/z/.git/hooks; echo x > n/z/.git/hooks/pre-push; ln -s / n/a1/.git/modules",
        "echo 'gitdir: /usr' > tree/.git; mkdir d && ln -s ../elsewhere d/.git; mkdir -p elsewhere/objects elsewhere/refs; echo x > elsewhere/HEAD; echo x > elsewhere/config",
    ];
    let commands = commands.map(|command| command.replace("GIT ", &format!("{git} ")));
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    for form in [Form::Namespaces, Form::NamespacesOfAUser, Form::Rules] {
        let Some((output, results)) = tried_in(form, |run| run, &commands) else { return };
        let place = &output.place;
        assert!(!results[0].contains("moved aside"), "{form:?}: {}", results[0]);
        for (at, names) in [
            (1, &["evil/.git/config", "evil/.git/hooks"][..]),
            (2, &["a/.git/config", "b/c/.git/hooks"][..]),
            (4, &["n/z/.git/hooks"][..]),
            (5, &["d/.git"][..]),
        ] {
            for name in names {
                assert!(results[at].contains(&format!("{name} (kept as ")), "{form:?}, {name}: {}", results[at]);
                if !name.ends_with("config") {
                    assert!(!place.exists(name), "{form:?}: {name}");
                    continue;
                }
                // What runs nothing stays, so that git goes on.
                let left = place.read(name);
                let runs = left.contains("alias") || left.contains("fsmonitor");
                assert!(left.contains("bare = false") && !runs, "{form:?}: {left}");
            }
        }
        assert!(place.read("b/c/.git/config").contains("name = n"), "{form:?}");
        assert!(!results[3].contains("moved aside"), "{form:?}: {}", results[3]);
    }
}

#[test]
fn an_interrupted_command_leaves_no_repository_that_runs_something() {
    let command = "d=m/.g''it/hooks; mkdir -p $d && echo x > $d/pre-push && echo rea''dy && sleep 60";
    let server = Server::start([Reply::call("run_command", &json!({"command": command}))]);
    let running = Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]).spawn();
    running.wait_stdout("ready");
    running.signal(Signal::SIGINT);
    let output = running.wait().stderr_has("moved aside: m/.git/hooks");
    assert!(output.place.exists("m/.git") && !output.place.exists("m/.git/hooks"));
}

#[test]
fn a_run_that_keeps_no_session_leaves_no_repository_that_runs_something() {
    let commands = [
        "git init -q a; mkdir d && ln -s ../e d/.git && mkdir -p e/objects e/refs && echo x > e/HEAD && echo x > e/config",
        "for i in $(seq 300); do mkdir -p a$i/.git; done; d=m/n/.g''it/hooks; mkdir -p $d && echo x > $d/pre-push",
    ];
    for form in [Form::Namespaces, Form::NamespacesOfAUser, Form::Rules] {
        let prepare = |run: Run| {
            // More than are guarded: they are a person's all the same.
            let mine = (0..300).map(|n| format!("mine/{n}/.git/hooks/pre-push"));
            mine.fold(run, |run, hook| run.file(&hook, "#!/bin/sh\n")).arg("--ephemeral")
        };
        let Some((output, _)) = tried_in(form, prepare, &commands) else { return };
        let output = output.stderr_has("m/n/.git/hooks (kept as ").stderr_has("d/.git (kept as ");
        let place = &output.place;
        assert!(place.exists("m/n/.git") && !place.exists("m/n/.git/hooks"), "{form:?}");
        assert!(!place.exists("d/.git") && place.exists("a/.git/hooks"), "{form:?}");
        assert!((0..300).all(|n| place.exists(&format!("mine/{n}/.git/hooks/pre-push"))), "{form:?}");
    }
}

#[test]
fn a_further_directory_is_protected_at_its_top() {
    let commands = [
        "cd ../lib && echo x > new; echo x > AGENTS.md; mkdir .vscode && echo x > .vscode/tasks.json; cat new",
        "d=../lib/.g''it/hooks; mkdir -p $d && echo x > $d/pre-push",
    ];
    for form in [Form::Namespaces, Form::NamespacesOfAUser, Form::Rules] {
        let prepare = |run: Run| {
            run.file("../lib/AGENTS.md", "mine\n").config("agent.yaml", "sandbox: { write: [../lib] }\n")
        };
        let Some((output, results)) = tried_in(form, prepare, &commands) else { return };
        let place = &output.place;
        assert!(results[0].contains("\nx"), "{form:?}: {}", results[0]);
        assert_eq!(place.read("../lib/AGENTS.md"), "mine\n", "{form:?}");
        assert!(!place.exists("../lib/.vscode") && place.exists("../lib/new"), "{form:?}");
        assert!(place.exists("../lib/.git") && !place.exists("../lib/.git/hooks"), "{form:?}");
    }
}

#[test]
fn an_undo_leaves_a_repository_that_a_command_made() {
    let command = "git init -q made && echo x > made/f";
    let Some((output, _)) = tried_in(Form::Namespaces, |run| run, &[command]) else { return };
    let undone = Run::at(&output.place).args(["session", "undo"]).run().success();
    undone.stderr_has("left: made: it holds a repository, ignored files or a FIFO, which undo leaves alone");
    assert!(output.place.exists("made/.git/config") && !output.place.exists("made/f"));
}

#[test]
fn what_a_link_leads_to_is_not_copied() {
    for form in FORMS {
        let prepare = |run: Run| {
            let place = run.place();
            fs::create_dir(place.home().join(".ssh")).expect("made");
            fs::write(place.home().join(".ssh/id_rsa"), "SECRET").expect("written");
            std::os::unix::fs::symlink(place.home().join(".ssh"), place.workspace().join(".vscode"))
                .expect("made");
            run
        };
        let Some((output, _)) = tried_in(form, prepare, &["rm .vscode && mkdir .vscode"]) else { return };
        let left = fs::symlink_metadata(output.place.workspace().join(".vscode/id_rsa"));
        let is_link = fs::read_link(output.place.workspace().join(".vscode")).is_ok();
        assert!(is_link || left.is_err(), "{form:?}: a key is in the workspace");
    }
}
