//! The command line: arguments, subcommands, exit codes.
