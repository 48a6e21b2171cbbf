//! The binary: hands over to the command line.

fn main() -> std::process::ExitCode {
    agent::cli::main()
}
