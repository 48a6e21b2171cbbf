//! The shell that runs command lines: bash if it exists, since that is what models write for, else `sh`.

use std::path::Path;
use std::sync::OnceLock;

use tokio::process::Command;

/// The shell of every Unix, or that of Windows, and the flags before the line. There `/S` takes off the quotes around the line.
pub const SHELL: [&str; 2] = if cfg!(unix) { ["/bin/sh", "-c"] } else { ["cmd", "/D /S /C"] };

/// The places of bash. A program of that name elsewhere in `PATH` may be anything.
const BASH: [&str; 2] = ["/bin/bash", "/usr/bin/bash"];

/// The shell for the lines that a model writes, and the flag before the line. The file system is checked once.
pub fn choose_shell() -> [&'static str; 2] {
    static FOUND: OnceLock<&'static str> = OnceLock::new();
    let bash = || BASH.into_iter().filter(|_| cfg!(unix)).find(|path| Path::new(path).is_file());
    [*FOUND.get_or_init(|| bash().unwrap_or(SHELL[0])), SHELL[1]]
}

/// The name of the shell: `bash`, `sh`.
pub fn shell_name() -> &'static str {
    let program = choose_shell()[0];
    program.rsplit('/').next().unwrap_or(program)
}

/// Adds the arguments of a program. `cmd` undoes no quoting of arguments, so it gets its line as that stands.
pub(super) fn add_arguments(command: &mut Command, arguments: &[&str]) {
    #[cfg(windows)]
    if let ([flags, line], true) = (arguments, command.as_std().get_program() == SHELL[0]) {
        command.raw_arg(flags).raw_arg(format!("\"{line}\""));
        return;
    }
    command.args(arguments);
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::{choose_shell, shell_name};

    #[test]
    fn the_shell_is_bash_where_there_is_one() {
        let has_bash = ["/bin/bash", "/usr/bin/bash"].iter().any(|path| std::fs::metadata(path).is_ok());
        assert_eq!(shell_name(), if has_bash { "bash" } else { "sh" });
        let [program, flag] = choose_shell();
        let output = std::process::Command::new(program).args([flag, "printf '%s' \"${0##*/}\""]).output();
        assert_eq!(output.expect("it runs").stdout, shell_name().as_bytes());
    }
}
