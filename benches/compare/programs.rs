//! The programs that are compared, each called the way a person would.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::server::{LOOP_STEPS, Phase};

pub const TASK: &str = "say hello";

/// A home and a workspace for all of them, removed with this value.
pub struct Place {
    root: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Place {
    pub fn new(server: &str) -> Self {
        static PLACES: AtomicUsize = AtomicUsize::new(0);
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        // Each directory on the way to a workspace costs system calls, and the length of a path may cost the allocator a
        // round of tidying up: the way is the same on every machine, and as long in every process.
        let temp = Some(PathBuf::from("/tmp")).filter(|dir| dir.is_dir()).unwrap_or_else(env::temp_dir);
        let place = Self { root: temp.join(format!("agent-bench-{:07}-{number:03}", std::process::id())) };
        let text = "some text to read back, line after line\n".repeat(20);
        for step in 0..LOOP_STEPS {
            write(&place.work().join(format!("f{step}.txt")), &format!("file {step}\n{text}"));
        }
        write(&place.work().join(".git/HEAD"), "ref: refs/heads/main\n");
        aichat_config(&place.home().join(".config/aichat"), server);
        place
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The programs that take part in `phase`, by name; only installed ones.
    pub fn programs(&self, agent: &Path, phase: Phase, server: &str) -> Vec<(&'static str, Command)> {
        let mut programs = Vec::new();
        let floor = env::current_exe().expect("this program has a path");
        programs.push(("floor", self.command(floor, &["floor", server, TASK])));
        if let Some(curl) = installed("curl").filter(|_| !phase.calls_tools()) {
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
            let functions: &[&str] = if phase.calls_tools() { &["-r", "%functions%"] } else { &[] };
            let args = [&["-m", "bench:scripted"], functions, &[TASK]].concat();
            programs.push(("aichat", self.command(aichat, &args)));
        }
        if let Some(codex) = installed("codex") {
            let provider = format!(
                "model_providers.bench={{name=\"bench\",base_url=\"http://{server}/s/codex/v1\",env_key=\"BENCH\",\
                 wire_api=\"responses\"}}"
            );
            let args = ["exec", "-m", "scripted", "-c", "model_provider=\"bench\"", "-c", &provider, TASK];
            let mut codex = self.command(codex, &args);
            codex.env("BENCH", "bench").env("CODEX_HOME", self.home());
            programs.push(("codex", codex));
        }
        programs.push(("agent", self.agent(agent, phase, server)));
        programs
    }

    /// The programs whose chat is compared.
    pub fn chats(&self, agent: &Path, server: &str) -> Vec<(&'static str, Command)> {
        let aichat = installed("aichat").map(|aichat| ("aichat", self.command(aichat, &["-m", "bench:scripted"])));
        let agent = ("agent", self.agent_in_chat(agent, server));
        aichat.into_iter().chain([agent]).collect()
    }

    /// `program` as the agent of `phase`.
    pub fn agent(&self, program: &Path, phase: Phase, server: &str) -> Command {
        let approve: &[&str] = if phase.calls_tools() { &["--approve", "all"] } else { &[] };
        let args = [&["run", "--ephemeral"], approve, &[TASK]].concat();
        Self::with_model(self.command(program.to_owned(), &args), server)
    }

    /// `program` as the agent of a chat.
    pub fn agent_in_chat(&self, program: &Path, server: &str) -> Command {
        Self::with_model(self.command(program.to_owned(), &[]), server)
    }

    fn with_model(mut agent: Command, server: &str) -> Command {
        agent.env("OPENAI_BASE_URL", format!("http://{server}/s/agent/v1"));
        agent.env("OPENAI_API_KEY", "bench").env("AGENT_MODEL", "scripted");
        agent
    }

    fn command(&self, program: PathBuf, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.work());
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.home());
        command.env("LANG", "C.UTF-8").env("TERM", "xterm-256color");
        command
    }
}

/// The size of a program.
pub fn size_mb(program: &Path) -> f64 {
    let bytes = fs::metadata(program).map_or(0, |file| file.len());
    let bytes = bytes as f64;
    bytes / 1024.0 / 1024.0
}

fn installed(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
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
