//! Which of the standard streams lead to a terminal. Each is asked once: the question is a system call of every start.

use std::io::{self, IsTerminal};
use std::sync::LazyLock;

static STDIN: LazyLock<bool> = LazyLock::new(|| io::stdin().is_terminal());
static STDOUT: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());
static STDERR: LazyLock<bool> = LazyLock::new(|| io::stderr().is_terminal());

pub fn stdin_is_terminal() -> bool {
    *STDIN
}

pub fn stdout_is_terminal() -> bool {
    *STDOUT
}

pub fn stderr_is_terminal() -> bool {
    *STDERR
}

/// True if somebody can be asked: questions go to stderr, and answers come from stdin.
pub fn has_person() -> bool {
    *STDIN && *STDERR
}
