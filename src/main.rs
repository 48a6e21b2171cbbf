//! The binary, which calls the command line.

fn main() -> std::process::ExitCode {
    agent::facade::faces::cli::main()
}
