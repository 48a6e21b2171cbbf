//! The programs that are compared, each called the way a person would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::{LOOP_STEPS, Phase};

pub const TASK: &str = "say hello";

/// A home and a workspace for all of them.
pub struct Place {
    root: tempfile::TempDir,
}

impl Place {
    pub fn new(server: &str) -> Self {
        let place = Self { root: tempfile::tempdir().expect("the temporary directory is writable") };
        let text = "some text to read back, line after line\n".repeat(20);
        for step in 0..LOOP_STEPS {
            write(&place.work().join(format!("f{step}.txt")), &format!("file {step}\n{text}"));
        }
        write(&place.work().join(".git/HEAD"), "ref: refs/heads/main\n");
        aichat_config(&place.home().join(".config/aichat"), server);
        place
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The programs that take part in `phase`, by name; only installed ones.
    pub fn programs(&self, phase: Phase, server: &str) -> Vec<(&'static str, Command)> {
        let mut programs = Vec::new();
        let floor = std::env::current_exe().expect("this program has a path");
        programs.push(("floor", self.command(floor, &["floor", server, TASK])));
        if let Some(curl) = installed("curl").filter(|_| phase != Phase::Loop) {
            let url = format!("http://{server}/s/curl/v1/chat/completions");
            let body = format!(
                "{{\"model\":\"scripted\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"{TASK}\"}}]}}"
            );
            programs.push((
                "curl",
                self.command(curl, &["-sN", &url, "-H", "content-type: application/json", "-d", &body]),
            ));
        }
        if let Some(aichat) = installed("aichat") {
            let functions: &[&str] = if phase == Phase::Loop { &["-r", "%functions%"] } else { &[] };
            let args = [&["-m", "bench:scripted"], functions, &[TASK]].concat();
            programs.push(("aichat", self.command(aichat, &args)));
        }
        let approve: &[&str] = if phase == Phase::Loop { &["--approve", "all"] } else { &[] };
        let args = [&["run", "--ephemeral"], approve, &[TASK]].concat();
        let mut agent = self.command(PathBuf::from(env!("CARGO_BIN_EXE_agent")), &args);
        agent.env("OPENAI_BASE_URL", format!("http://{server}/s/agent/v1"));
        agent.env("OPENAI_API_KEY", "bench").env("AGENT_MODEL", "scripted");
        programs.push(("agent", agent));
        programs
    }

    fn command(&self, program: PathBuf, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.work());
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.home());
        command.env("LANG", "C.UTF-8").env("TERM", "xterm-256color");
        command
    }
}

/// The size of the program that people install.
pub fn size_mb() -> f64 {
    let bytes = fs::metadata(env!("CARGO_BIN_EXE_agent")).map_or(0, |file| file.len());
    #[expect(clippy::cast_precision_loss, reason = "some millions")]
    let bytes = bytes as f64;
    bytes / 1024.0 / 1024.0
}

fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// The same tool for aichat: a shell.
fn aichat_config(dir: &Path, server: &str) {
    write(
        &dir.join("config.yaml"),
        &format!(
            "model: bench:scripted\nsave: false\nfunction_calling: true\nuse_tools: shell\nclients:\n\
             - type: openai-compatible\n  name: bench\n  api_base: http://{server}/s/aichat/v1\n  api_key: bench\n  models:\n\
             \x20 - name: scripted\n    supports_function_calling: true\n    max_input_tokens: 1000000\n"
        ),
    );
    write(
        &dir.join("functions/functions.json"),
        r#"[{"name": "shell", "description": "Runs a shell command.", "parameters": {"type": "object",
            "properties": {"command": {"type": "string"}}, "required": ["command"]}}]"#,
    );
    let tool = dir.join("functions/bin/shell");
    write(&tool, "#!/bin/sh\nc=${1#*\\\"command\\\":\\\"}\nc=${c%%\\\"*}\nsh -c \"$c\" >\"$LLM_OUTPUT\"\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(tool, mode).expect("a file of ours");
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file in a directory")).expect("directories can be made");
    fs::write(path, text).expect("a file can be written");
}
