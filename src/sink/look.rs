//! What is shown where: a pure decision from what is known of the two streams and the options.

use super::style::{Colour, Style};

/// What the decision rests on.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact or an option of its own")]
pub struct Facts<'a> {
    pub stdout_terminal: bool,
    pub stderr_terminal: bool,
    /// `--output json` or `jsonl`: stdout belongs to another sink.
    pub json: bool,
    /// `--stream`
    pub stream: bool,
    /// `--schema` is in force.
    pub schema: bool,
    pub quiet: bool,
    pub verbose: bool,
    /// One turn of many: each ends with what it cost.
    pub chat: bool,
    pub colour: Colour,
    /// The variable `NO_COLOR`, where it is set and not empty.
    pub no_color: Option<&'a str>,
    /// The variable `TERM`.
    pub term: Option<&'a str>,
}

/// Where the answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerTo {
    /// To stdout as it comes, every text of the model.
    Live,
    /// To stdout at the end: the final answer alone, once and whole.
    AtEnd,
    /// Nowhere: stdout belongs to another sink.
    Nowhere,
}

/// How much is said on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Warnings and the reason of a failure.
    Quiet,
    /// A line per call as well, and the model's words between calls.
    Normal,
    /// Reasoning, live output of commands and what was decided as well.
    Verbose,
}

/// What is shown where.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each decides something of its own")]
pub struct Look {
    pub answer: AnswerTo,
    pub verbosity: Verbosity,
    /// The result is data: nothing but a valid one is an answer.
    pub schema: bool,
    /// The answer is read on a terminal: what would control it is made visible.
    pub answer_on_terminal: bool,
    /// Both streams end on one screen, so a line begun on one is ended before the other writes.
    pub one_screen: bool,
    /// stderr is a terminal.
    pub progress_on_terminal: bool,
    /// A moving progress line may be drawn.
    pub spinner: bool,
    /// Tokens, cost and time are shown at the end.
    pub footer: bool,
    pub style: Style,
    /// Columns of the terminal behind stderr; asked for each line, as windows are resized.
    pub width: fn() -> Option<usize>,
}

/// Decides what is shown where.
#[must_use]
pub fn look(facts: &Facts<'_>, width: fn() -> Option<usize>) -> Look {
    let answer = if facts.json {
        AnswerTo::Nowhere
    } else if !facts.schema && (facts.stdout_terminal || facts.stream) {
        AnswerTo::Live
    } else {
        AnswerTo::AtEnd
    };
    let verbosity = if facts.quiet {
        Verbosity::Quiet
    } else if facts.verbose {
        Verbosity::Verbose
    } else {
        Verbosity::Normal
    };
    Look {
        answer,
        verbosity,
        schema: facts.schema,
        answer_on_terminal: facts.stdout_terminal,
        one_screen: facts.stdout_terminal && facts.stderr_terminal,
        progress_on_terminal: facts.stderr_terminal,
        spinner: facts.stderr_terminal && !facts.quiet && facts.term != Some("dumb"),
        footer: facts.stderr_terminal && !facts.quiet && (facts.chat || facts.verbose),
        style: Style { colours: facts.colour.allowed(facts.stderr_terminal, facts.no_color, facts.term) },
        width: if facts.stderr_terminal { width } else { || None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_streams_on_a_terminal_and_into_a_pipe_only_when_asked() {
        for (stdout_terminal, stream, schema, json, expected) in [
            (true, false, false, false, AnswerTo::Live),
            (false, false, false, false, AnswerTo::AtEnd),
            (false, true, false, false, AnswerTo::Live),
            (true, true, true, false, AnswerTo::AtEnd),
            (false, true, true, false, AnswerTo::AtEnd),
            (true, true, false, true, AnswerTo::Nowhere),
        ] {
            let facts = Facts { stdout_terminal, json, stream, schema, ..Facts::default() };
            assert_eq!(look(&facts, || None).answer, expected, "{facts:?}");
        }
    }

    #[test]
    fn nothing_moves_off_a_terminal() {
        let shown = look(&Facts { stdout_terminal: true, verbose: true, ..Facts::default() }, || Some(80));
        assert!(!shown.spinner && !shown.footer && !shown.style.colours && (shown.width)().is_none());
        let dumb = Facts { stderr_terminal: true, term: Some("dumb"), ..Facts::default() };
        assert!(!look(&dumb, || Some(80)).spinner);
    }
}
