//! The binary, which calls the command line.

fn main() -> std::process::ExitCode {
    agent::faces::cli::main()
}
