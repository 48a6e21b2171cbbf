//! A small parent that starts one program and records its cost.
//!
//! The peak memory that the system reports for a child includes its parent's at the start, so the parent is a separate
//! process with almost no memory.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::server::now;

/// The cost of one run of a program.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    /// Nanoseconds of the system's clock when it was started.
    pub started: u128,
    pub wall_ms: f64,
    /// User and system time of the program and its children.
    pub cpu_ms: f64,
    pub rss_mb: f64,
    /// Page faults that no disk was read for.
    pub faults: f64,
    pub failed: bool,
}

/// The small parent: `OUT COMMAND ARGS…`.
pub fn parent(args: &[String]) -> ExitCode {
    let [out, program, rest @ ..] = args else { return ExitCode::from(2) };
    let started = now();
    let status = Command::new(program).args(rest).status();
    let wall = now() - started;
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return ExitCode::FAILURE };
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let failed = i32::from(!status.is_ok_and(|status| status.success()));
    let line = format!("{started} {wall} {cpu} {} {} {failed}", usage.max_rss(), usage.minor_page_faults());
    fs::write(out, line).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// Runs `command` under a small parent; its output goes to a file, as a separate reader would cost time.
pub fn cost(command: &Command, dir: &Path) -> Cost {
    let (out, stdout, stderr) = (dir.join("cost"), dir.join("stdout"), dir.join("stderr"));
    let mut parent = Command::new(std::env::current_exe().expect("this program has a path"));
    parent.arg("measure").arg(&out).arg(command.get_program()).args(command.get_args());
    parent.env_clear();
    parent.envs(command.get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
    parent.current_dir(command.get_current_dir().unwrap_or(dir));
    parent.stdin(Stdio::null());
    parent.stdout(fs::File::create(stdout).expect("the temporary directory is writable"));
    parent.stderr(fs::File::create(&stderr).expect("the temporary directory is writable"));
    let status = parent.status().expect("this program can be started again");
    assert!(status.success(), "the measuring parent failed");
    let line = fs::read_to_string(out).expect("the parent wrote its line");
    let figures: Vec<f64> = line.split(' ').filter_map(|figure| figure.parse().ok()).collect();
    let [_, wall, cpu, rss, faults, failed] = figures[..] else { panic!("the parent wrote `{line}`") };
    // Kilobytes on Linux, bytes on macOS.
    let rss_mb = if cfg!(target_os = "macos") { rss / 1024.0 / 1024.0 } else { rss / 1024.0 };
    let cost = Cost {
        started: line.split(' ').next().and_then(|figure| figure.parse().ok()).unwrap_or_default(),
        wall_ms: wall / 1e6,
        cpu_ms: cpu / 1e3,
        rss_mb,
        faults,
        failed: failed > 0.0,
    };
    if cost.failed {
        let words = fs::read_to_string(stderr).unwrap_or_default();
        eprintln!("!! {} failed: {}", command.get_program().display(), words.trim());
    }
    cost
}
