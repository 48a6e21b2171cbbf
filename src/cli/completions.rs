//! `agent completions SHELL` and `agent man`: made from the same definitions as `--help`.

use super::{Outcome, args, print};

pub(super) fn shell(shell: args::Shell) -> Outcome {
    print(args::completions(shell))
}

pub(super) fn manual() -> Outcome {
    print(args::manual()?)
}
