//! Colours of help and of mistakes on the command line: by `--color` and the usual variables.

use crate::pty::Terminal;
use crate::run::Run;

const ESCAPE: char = '\u{1b}';

fn in_pipe(args: &[&str], variables: &[(&str, &str)]) -> bool {
    let run = Run::new().args(args.iter().copied());
    let output = variables.iter().fold(run, |run, (name, value)| run.env(name, *value)).run();
    format!("{}{}", output.stdout, output.stderr).contains(ESCAPE)
}

fn on_terminal(args: &[&str], variables: &[(&str, &str)]) -> bool {
    let run = Run::new().args(args.iter().copied());
    let run = variables.iter().fold(run, |run, (name, value)| run.env(name, *value));
    let mut terminal = Terminal::start(&run);
    terminal.exit_code();
    terminal.raw_to_the_end().contains("\u{1b}[1m")
}

#[test]
fn help_and_mistakes_are_coloured_where_a_terminal_wants_it() {
    for args in [["run", "--help"], ["run", "--nonsense"]] {
        for (variables, coloured) in [
            (vec![], true),
            (vec![("NO_COLOR", "1")], false),
            (vec![("CLICOLOR", "0")], false),
            (vec![("TERM", "dumb")], false),
            (vec![("TERM", "dumb"), ("CLICOLOR_FORCE", "1")], true),
            (vec![("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], false),
        ] {
            assert_eq!(on_terminal(&args, &variables), coloured, "{args:?} {variables:?}");
        }
        let with = |colour: &'static str| [args[0], args[1], "--color", colour];
        assert!(on_terminal(&with("always"), &[("NO_COLOR", "1")]), "{args:?}");
        assert!(!on_terminal(&with("never"), &[("CLICOLOR_FORCE", "1")]), "{args:?}");
    }
}

#[test]
fn a_pipe_gets_colours_only_where_they_are_forced() {
    for args in [["run", "--help"], ["run", "--nonsense"]] {
        assert!(!in_pipe(&args, &[]) && !in_pipe(&args, &[("CLICOLOR", "1")]), "{args:?}");
        assert!(in_pipe(&args, &[("CLICOLOR_FORCE", "1")]), "{args:?}");
        assert!(in_pipe(&[args[0], args[1], "--color=always"], &[]), "{args:?}");
    }
}
