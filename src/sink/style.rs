//! Colours: the rule that allows them, and the few in use.

use std::borrow::Cow;

/// The value of `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colour {
    #[default]
    Auto,
    Always,
    Never,
}

impl Colour {
    /// True if a stream gets colours. `no_color` and `term` are the variables `NO_COLOR` and `TERM`, if set and not
    /// empty. `--color always` overrides both.
    #[must_use]
    pub fn allowed(self, terminal: bool, no_color: Option<&str>, term: Option<&str>) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => terminal && no_color.is_none() && term != Some("dumb"),
        }
    }
}

/// The colour or weight of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    Dim,
    Bold,
    Green,
    Yellow,
    Red,
    Cyan,
}

/// Paints text if colours are on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub colours: bool,
}

impl Style {
    /// Returns `text` in `ink`, or unchanged if colours are off. The caller has made control characters visible.
    #[must_use]
    pub fn paint(self, ink: Ink, text: &str) -> Cow<'_, str> {
        if !self.colours || text.is_empty() {
            return Cow::Borrowed(text);
        }
        let code = match ink {
            Ink::Dim => 2,
            Ink::Bold => 1,
            Ink::Green => 32,
            Ink::Yellow => 33,
            Ink::Red => 31,
            Ink::Cyan => 36,
        };
        Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_need_a_terminal_that_wants_them_unless_they_are_asked_for() {
        for (colour, terminal, no_color, term, expected) in [
            (Colour::Auto, true, None, Some("xterm"), true),
            (Colour::Auto, true, None, None, true),
            (Colour::Auto, false, None, Some("xterm"), false),
            (Colour::Auto, true, Some("1"), Some("xterm"), false),
            (Colour::Auto, true, None, Some("dumb"), false),
            (Colour::Always, false, Some("1"), None, true),
            (Colour::Never, true, None, Some("xterm"), false),
        ] {
            assert_eq!(colour.allowed(terminal, no_color, term), expected, "{colour:?} {terminal} {no_color:?}");
        }
    }
}
