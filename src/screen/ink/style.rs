//! Colours: the rules that allow them, and the few in use.

use std::borrow::Cow;

/// The value of `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colour {
    #[default]
    Auto,
    Always,
    Never,
}

/// The environment variables about colours, if they are set and not empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColourWishes<'a> {
    /// `NO_COLOR`: any value turns colours off.
    pub no_color: Option<&'a str>,
    /// `CLICOLOR`: `0` turns colours off.
    pub clicolor: Option<&'a str>,
    /// `CLICOLOR_FORCE`: any value but `0` turns colours on, even without a terminal.
    pub clicolor_force: Option<&'a str>,
    /// `TERM`: `dumb` turns colours off.
    pub term: Option<&'a str>,
}

impl<'a> ColourWishes<'a> {
    /// Reads the variables with `get`.
    pub fn read(get: impl Fn(&str) -> Option<&'a str>) -> Self {
        Self {
            no_color: get("NO_COLOR"),
            clicolor: get("CLICOLOR"),
            clicolor_force: get("CLICOLOR_FORCE"),
            term: get("TERM"),
        }
    }
}

impl Colour {
    /// True if a stream gets colours. `--color` overrides the variables. Of these, the first that applies counts:
    /// `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR`, `TERM`.
    pub fn allows(self, terminal: bool, wishes: ColourWishes<'_>) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if wishes.no_color.is_some() => false,
            Self::Auto if wishes.clicolor_force.is_some_and(|value| value != "0") => true,
            Self::Auto => terminal && wishes.clicolor != Some("0") && wishes.term != Some("dumb"),
        }
    }
}

/// The colour, the weight or the meaning of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    Dim,
    Bold,
    Italic,
    Underline,
    Strike,
    /// Foreground and background swapped.
    Reverse,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

/// A set of inks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inks(u16);

/// The background of the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// Unknown: the colours are readable on both.
    #[default]
    Either,
    Dark,
    Light,
}

/// The way a terminal shows inks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub colours: bool,
    pub theme: Theme,
    /// The terminal supports links by OSC 8.
    pub links: bool,
    /// Marks and frames are words, or nothing: a program reads the screen aloud.
    pub spoken: bool,
}

/// What is said in place of a mark.
const SPOKEN: [(char, &str); 12] = [
    ('✓', "done:"),
    ('✗', "failed:"),
    ('▸', "now:"),
    ('☐', "to do:"),
    ('☑', "done:"),
    ('·', ","),
    ('│', "|"),
    ('┌', ""),
    ('└', ""),
    ('─', ""),
    ('┼', ""),
    ('❯', ">"),
];

/// The inks with their SGR codes (ECMA-48, 8.3.117), in the order of the themes.
const CODES: [(Ink, [&str; 3]); 12] = [
    (Ink::Dim, ["2", "2", "2"]),
    (Ink::Bold, ["1", "1", "1"]),
    (Ink::Italic, ["3", "3", "3"]),
    (Ink::Underline, ["4", "4", "4"]),
    (Ink::Strike, ["9", "9", "9"]),
    (Ink::Reverse, ["7", "7", "7"]),
    (Ink::Red, ["31", "91", "31"]),
    (Ink::Green, ["32", "92", "32"]),
    (Ink::Yellow, ["33", "93", "33"]),
    (Ink::Blue, ["34", "94", "34"]),
    (Ink::Magenta, ["35", "95", "35"]),
    (Ink::Cyan, ["36", "96", "36"]),
];

impl Inks {
    /// No ink.
    pub const PLAIN: Self = Self(0);

    /// Adds an ink.
    pub const fn add(self, ink: Ink) -> Self {
        Self(self.0 | 1 << ink as u16)
    }

    /// The union of two sets.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if the set holds `ink`.
    pub const fn has(self, ink: Ink) -> bool {
        self.0 & (1 << ink as u16) != 0
    }
}

impl From<Ink> for Inks {
    fn from(ink: Ink) -> Self {
        Self::PLAIN.add(ink)
    }
}

impl Style {
    /// Returns `text` in these inks, or unchanged if colours are off.
    pub fn paint(self, inks: impl Into<Inks>, text: &str) -> Cow<'_, str> {
        let inks = inks.into();
        if !self.colours || inks == Inks::PLAIN || text.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut painted = String::new();
        self.paint_to(&mut painted, inks, text);
        Cow::Owned(painted)
    }

    /// Appends `text` in these inks. Fast, because every piece of an answer passes through here.
    pub(super) fn paint_to(self, out: &mut String, inks: Inks, text: &str) {
        let words;
        let text = if self.spoken && !text.is_ascii() {
            words = speak_marks(text);
            &words
        } else {
            text
        };
        if !self.colours || inks == Inks::PLAIN || text.is_empty() {
            return out.push_str(text);
        }
        let mut before = "\x1b[";
        for (_, codes) in CODES.iter().filter(|(ink, _)| inks.has(*ink)) {
            out.extend([before, codes[self.theme as usize]]);
            before = ";";
        }
        out.extend(["m", text, "\x1b[0m"]);
    }
}

/// A text with words in place of marks.
fn speak_marks(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    for c in text.chars() {
        match SPOKEN.iter().find(|(mark, _)| *mark == c) {
            // A comma follows its word.
            Some((_, word @ ",")) => {
                said.truncate(said.trim_end().len());
                said.push_str(word);
            }
            Some((_, word)) => said.push_str(word),
            None => said.push(c),
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_said_in_words() {
        let style = Style { spoken: true, ..Style::default() };
        let mut out = String::new();
        style.paint_to(&mut out, Inks::PLAIN, "✓ read_file a.rs · 42 lines");
        assert_eq!(out, "done: read_file a.rs, 42 lines");
        assert_eq!(speak_marks("┌ run_command ───"), " run_command ");
        assert_eq!(speak_marks("│ 日本語"), "| 日本語");
    }

    #[test]
    fn colours_need_a_terminal_that_wants_them_unless_they_are_asked_for() {
        let nothing = ColourWishes::default();
        let xterm = ColourWishes { term: Some("xterm"), ..nothing };
        let (no_color, dumb) =
            (ColourWishes { no_color: Some("1"), ..xterm }, ColourWishes { term: Some("dumb"), ..nothing });
        let forced = |value| ColourWishes { clicolor_force: Some(value), ..nothing };
        for (colour, terminal, wishes, expected) in [
            (Colour::Auto, true, xterm, true),
            (Colour::Auto, true, nothing, true),
            (Colour::Auto, false, xterm, false),
            (Colour::Auto, true, no_color, false),
            (Colour::Auto, true, dumb, false),
            (Colour::Auto, true, ColourWishes { clicolor: Some("0"), ..xterm }, false),
            (Colour::Auto, true, ColourWishes { clicolor: Some("1"), ..xterm }, true),
            (Colour::Auto, false, ColourWishes { clicolor: Some("1"), ..xterm }, false),
            (Colour::Auto, false, forced("1"), true),
            (Colour::Auto, false, forced("0"), false),
            (Colour::Auto, true, ColourWishes { no_color: Some("1"), ..forced("1") }, false),
            (Colour::Always, false, no_color, true),
            (Colour::Never, true, xterm, false),
            (Colour::Never, true, forced("1"), false),
        ] {
            assert_eq!(colour.allows(terminal, wishes), expected, "{colour:?} {terminal} {wishes:?}");
        }
    }

    #[test]
    fn inks_are_codes_of_the_theme_and_nothing_without_colours() {
        let style = Style { colours: true, theme: Theme::Dark, ..Style::default() };
        let both = Inks::from(Ink::Bold).add(Ink::Cyan);
        assert_eq!(style.paint(both, "x"), "\x1b[1;96mx\x1b[0m");
        assert_eq!(Style { theme: Theme::Light, ..style }.paint(both, "x"), "\x1b[1;36mx\x1b[0m");
        assert_eq!(Style::default().paint(both, "x"), "x");
        assert_eq!(style.paint(Inks::PLAIN, "x"), "x");
    }
}
