//! Decides which text goes to which stream: a pure function of the two streams and the options.

use crate::config::ThemeChoice;
use crate::screen::ink::{Colour, ColourWishes, Style, Theme};
use crate::screen::terminal::Abilities;

/// The facts that decide the look.
#[derive(Debug, Clone, Copy, Default)]
pub struct LookFacts<'a> {
    pub stdout_terminal: bool,
    pub stderr_terminal: bool,
    /// `--output json` or `jsonl`: another sink writes stdout.
    pub json: bool,
    /// `--stream`
    pub stream: bool,
    /// `--schema` was given.
    pub schema: bool,
    pub quiet: bool,
    pub verbose: bool,
    /// True in a chat, where each turn ends with its cost.
    pub chat: bool,
    pub colour: Colour,
    /// The environment variables about colours.
    pub wishes: ColourWishes<'a>,
    pub abilities: Abilities,
    /// The setting `ui.theme`; `none` turns colours off.
    pub theme: ThemeChoice,
    /// The setting `ui.screen_reader`: nothing is drawn, and marks are words.
    pub screen_reader: bool,
}

/// The destination of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerTo {
    /// All text of the model goes to stdout as it arrives.
    Live,
    /// Only the final answer goes to stdout, whole, at the end.
    AtEnd,
    /// Another sink writes stdout.
    Nowhere,
}

/// The amount of text on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Warnings and the reason of a failure.
    Quiet,
    /// Also one line per call, and the model's words between calls.
    Normal,
    /// Also reasoning, live output of commands, and permissions.
    Verbose,
}

/// The look of the output.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub answer: AnswerTo,
    pub verbosity: Verbosity,
    /// The answer is data: only a valid result is shown.
    pub schema: bool,
    /// stdout is a terminal: control characters in the answer are made visible.
    pub answer_on_terminal: bool,
    /// Both streams are terminals: a line begun on one ends before the other writes.
    pub one_screen: bool,
    /// stderr is a terminal.
    pub progress_on_terminal: bool,
    /// stderr is a terminal that can be drawn on.
    pub live: bool,
    /// The terminal rewraps lines when its width changes.
    pub reflows: bool,
    /// The terminal reports modified keys as xterm does, if it is asked to.
    pub modifies_keys: bool,
    /// The terminal should be asked for its background colour.
    pub asks_theme: bool,
    /// The end of a turn shows tokens, cost and time.
    pub footer: bool,
    pub style: Style,
    /// Returns the columns of the terminal on stderr. Called for each line, because windows are resized.
    pub width: fn() -> Option<usize>,
}

/// Decides which text goes to which stream.
pub fn choose_look(facts: &LookFacts<'_>, width: fn() -> Option<usize>) -> Look {
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
        live: facts.stderr_terminal && facts.abilities.draws && !facts.screen_reader,
        reflows: facts.abilities.reflows,
        modifies_keys: facts.abilities.modifies_keys,
        asks_theme: !facts.screen_reader
            && facts.theme == ThemeChoice::Auto
            && facts.abilities.theme == Theme::Either,
        footer: facts.stderr_terminal && !facts.quiet && (facts.chat || facts.verbose),
        style: Style {
            colours: facts.theme != ThemeChoice::None && facts.colour.allows(facts.stderr_terminal, facts.wishes),
            theme: match facts.theme {
                ThemeChoice::Light => Theme::Light,
                ThemeChoice::Dark => Theme::Dark,
                ThemeChoice::Auto | ThemeChoice::None => facts.abilities.theme,
            },
            links: facts.abilities.links,
            spoken: facts.screen_reader,
        },
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
            let facts = LookFacts { stdout_terminal, json, stream, schema, ..LookFacts::default() };
            assert_eq!(choose_look(&facts, || None).answer, expected, "{facts:?}");
        }
    }

    #[test]
    fn nothing_moves_off_a_terminal() {
        let shown =
            choose_look(&LookFacts { stdout_terminal: true, verbose: true, ..LookFacts::default() }, || Some(80));
        assert!(!shown.live && !shown.footer && !shown.style.colours && (shown.width)().is_none());
        let wishes = ColourWishes { term: Some("dumb"), ..ColourWishes::default() };
        let dumb = LookFacts { stderr_terminal: true, wishes, ..LookFacts::default() };
        assert!(!choose_look(&dumb, || Some(80)).live);
        let abilities = Abilities { draws: true, ..Abilities::default() };
        assert!(choose_look(&LookFacts { abilities, ..dumb }, || Some(80)).live);
    }
}
