//! The meaning of keys at the prompt, decided without a terminal: where a message ends, what is a paste, and the keys
//! that the line editor does not know.
//!
//! Enter ends a line only if no text is readable right after it. A terminal that does not mark pastes sends a paste in
//! one burst, so its line feeds stay line feeds; nobody types that fast. A command always ends at its Enter. A key
//! after Enter that is not text ends the line too: Ctrl-C and Ctrl-D take effect afterwards.

use crate::screen::line::Pastes;

/// A key, reduced to what matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    Text(char),
    Tab,
    /// Enter: a carriage return.
    Return,
    /// Ctrl-J: a line feed.
    Feed,
    /// The mark before a paste, and the one after it.
    PasteBegins,
    PasteEnds,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    Eof,
    /// Ctrl-Z.
    Stop,
    /// Esc Esc.
    Cancel,
    Backspace,
    /// End, Ctrl-E.
    LineEnd,
    /// The key that opens the person's editor.
    Elsewhere,
    /// Ctrl-O.
    Look,
    Other,
}

/// The line at the time of a key.
#[derive(Debug, Clone, Copy)]
pub struct LineAtKey<'a> {
    pub line: &'a str,
    /// The cursor, a byte of `line`.
    pub pos: usize,
    /// A hint is shown after the line.
    pub is_hinted: bool,
    /// Characters are inserted; false in the command mode of vi.
    pub inserts: bool,
    /// The line is a command.
    pub is_command: bool,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrokeEffect {
    /// The usual effect in the line editor.
    Usual,
    Nothing,
    /// Redraws the line.
    Redraw,
    Insert(String),
    /// Ends the line.
    Accept,
    /// Turns the hint into text.
    TakeHint,
    /// Deletes everything from the last `[` to the cursor.
    KillBracket,
}

/// The end of a line by another key than Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// Ctrl-C on an empty line.
    Interrupted,
    /// Ctrl-C on a line with text.
    Cleared,
    Eof,
    /// The line continues in the person's editor.
    Elsewhere,
    /// It continues after the last output was shown.
    Looking,
}

/// A line that Enter ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entered {
    pub line: String,
    pub pos: usize,
}

/// The state between two strokes.
#[derive(Debug, Default)]
pub struct Strokes {
    state: StrokeState,
    pub pastes: Pastes,
    ended: Option<LineEnd>,
    /// True if the line ended only for the program to stop.
    stops: bool,
    /// The end of the next line, before any key.
    after: Option<LineEnd>,
    /// The start of the line that was pasted.
    pasted: Option<String>,
    /// The last message, as it was in the line. Esc Esc takes it back.
    last: Option<String>,
}

#[derive(Debug, Default)]
enum StrokeState {
    #[default]
    Idle,
    /// Between the marks of a paste.
    Pasting(String),
    /// After Enter, until it is known whether more is readable.
    Entered(Entered),
}

impl Strokes {
    /// Nothing was pressed yet.
    pub fn new(pastes: Pastes) -> Self {
        Self { pastes, ..Self::default() }
    }

    /// Begins a line whose pasted start is `pasted`. Returns its end if that is already known.
    pub fn begin(&mut self, pasted: Option<String>) -> Option<LineEnd> {
        (self.state, self.ended, self.pasted) = (StrokeState::Idle, None, pasted);
        self.after.take()
    }

    /// Decides what a key does.
    pub fn press(&mut self, key: Stroke, seen: LineAtKey<'_>) -> StrokeEffect {
        match std::mem::take(&mut self.state) {
            StrokeState::Idle => self.idle(key, seen),
            StrokeState::Pasting(text) => self.continue_paste(text, key, seen),
            StrokeState::Entered(entered) => self.handle_entered(entered, key, seen),
        }
    }

    /// True if the next key, or its absence, decides whether Enter ended the line.
    pub fn is_entered(&self) -> bool {
        matches!(self.state, StrokeState::Entered(_))
    }

    /// Takes the line that Enter has ended, because nothing was readable after it.
    pub fn take_entered(&mut self) -> Option<Entered> {
        match std::mem::take(&mut self.state) {
            StrokeState::Entered(entered) => Some(entered),
            state => {
                self.state = state;
                None
            }
        }
    }

    /// Takes the end of the line, if it was not Enter.
    pub fn take_end(&mut self) -> Option<LineEnd> {
        self.ended.take()
    }

    /// Takes whether the line ended only for the program to stop.
    pub fn take_stop(&mut self) -> bool {
        std::mem::take(&mut self.stops)
    }

    /// True if the start of `line` was pasted: then it is not a command, whatever it looks like.
    pub fn is_pasted(&self, line: &str) -> bool {
        self.pasted.as_ref().is_some_and(|start| line.starts_with(start.as_str()))
    }

    /// Keeps a message for Esc Esc, as it was in the line.
    pub fn keep_last(&mut self, message: &str) {
        self.last = Some(message.to_owned());
    }

    fn idle(&mut self, key: Stroke, seen: LineAtKey<'_>) -> StrokeEffect {
        match key {
            Stroke::Return | Stroke::Feed if seen.is_command && self.pasted.is_none() => StrokeEffect::Accept,
            Stroke::Return | Stroke::Feed => {
                self.state = StrokeState::Entered(Entered { line: seen.line.to_owned(), pos: seen.pos });
                // Redrawing removes the hint.
                if seen.pos == seen.line.len() { StrokeEffect::Redraw } else { StrokeEffect::Nothing }
            }
            Stroke::PasteBegins if seen.inserts => {
                self.state = StrokeState::Pasting(String::new());
                StrokeEffect::Nothing
            }
            Stroke::Interrupt => {
                self.end(if seen.line.is_empty() { LineEnd::Interrupted } else { LineEnd::Cleared })
            }
            Stroke::Eof if seen.line.is_empty() => self.end(LineEnd::Eof),
            Stroke::Elsewhere => self.end(LineEnd::Elsewhere),
            Stroke::Stop => {
                self.stops = true;
                StrokeEffect::Accept
            }
            Stroke::Look => self.end(LineEnd::Looking),
            Stroke::Cancel if seen.line.is_empty() => {
                self.last.clone().filter(|last| !last.is_empty()).map_or(StrokeEffect::Usual, StrokeEffect::Insert)
            }
            Stroke::Backspace if seen.inserts && self.pastes.at_end_of(&seen.line[..seen.pos]).is_some() => {
                StrokeEffect::KillBracket
            }
            Stroke::LineEnd if seen.is_hinted => StrokeEffect::TakeHint,
            _ => StrokeEffect::Usual,
        }
    }

    fn continue_paste(&mut self, mut text: String, key: Stroke, seen: LineAtKey<'_>) -> StrokeEffect {
        match key {
            // Ctrl-C ends a paste whose end mark is missing.
            Stroke::PasteEnds | Stroke::Interrupt => return self.pasted(text, seen),
            Stroke::Text(c) => text.push(c),
            Stroke::Tab => text.push('\t'),
            Stroke::Return => text.push('\r'),
            Stroke::Feed => text.push('\n'),
            _ => {}
        }
        self.state = StrokeState::Pasting(text);
        StrokeEffect::Nothing
    }

    fn pasted(&mut self, text: String, seen: LineAtKey<'_>) -> StrokeEffect {
        let text = self.pastes.shorten(text.replace("\r\n", "\n").replace('\r', "\n"));
        if text.is_empty() {
            return StrokeEffect::Nothing;
        }
        if seen.pos == 0 {
            self.pasted = Some(text.clone());
        }
        StrokeEffect::Insert(text)
    }

    fn handle_entered(
        &mut self,
        Entered { mut line, pos }: Entered,
        key: Stroke,
        seen: LineAtKey<'_>,
    ) -> StrokeEffect {
        let mut more = "\n".to_owned();
        match key {
            _ if !seen.inserts => return StrokeEffect::Accept,
            Stroke::Text(c) => more.push(c),
            Stroke::Tab => more.push('\t'),
            Stroke::Return | Stroke::Feed => {
                line.insert(pos, '\n');
                self.state = StrokeState::Entered(Entered { line, pos: pos + 1 });
            }
            Stroke::PasteBegins => self.state = StrokeState::Pasting(String::new()),
            Stroke::Interrupt => self.after = Some(LineEnd::Interrupted),
            Stroke::Eof => self.after = Some(LineEnd::Eof),
            _ => return StrokeEffect::Accept,
        }
        if self.after.is_some() {
            return StrokeEffect::Accept;
        }
        if self.pasted.is_none() {
            self.pasted = Some(seen.line[..seen.pos].to_owned());
        }
        StrokeEffect::Insert(more)
    }

    fn end(&mut self, end: LineEnd) -> StrokeEffect {
        self.ended = Some(end);
        StrokeEffect::Accept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line editor as far as these keys need one: its cursor stays at the end.
    fn typed(strokes: &mut Strokes, keys: &[Stroke]) -> (String, Option<StrokeEffect>) {
        let mut line = String::new();
        for key in keys {
            let is_command = line == "/clear";
            let seen = LineAtKey { line: &line, pos: line.len(), is_hinted: false, inserts: true, is_command };
            match (strokes.press(*key, seen), key) {
                (StrokeEffect::Insert(text), _) => line += &text,
                (StrokeEffect::Usual, Stroke::Text(c)) => line.push(*c),
                (StrokeEffect::Usual | StrokeEffect::Nothing | StrokeEffect::Redraw, _) => {}
                (StrokeEffect::KillBracket, _) => line.truncate(line.rfind('[').unwrap_or(0)),
                (effect, _) => return (line, Some(effect)),
            }
        }
        (line, None)
    }

    fn keys(text: &str) -> Vec<Stroke> {
        text.chars()
            .map(|c| match c {
                '\r' => Stroke::Return,
                '\n' => Stroke::Feed,
                '«' => Stroke::PasteBegins,
                '»' => Stroke::PasteEnds,
                '\x03' => Stroke::Interrupt,
                '\x04' => Stroke::Eof,
                '\x1b' => Stroke::Cancel,
                '\x7f' => Stroke::Backspace,
                '→' => Stroke::Other,
                c => Stroke::Text(c),
            })
            .collect()
    }

    #[test]
    fn enter_ends_a_line_unless_text_follows_at_once() {
        // What came in one piece → the line, and whether it is over.
        for (burst, line, over) in [
            ("one\r", "one", true),
            ("one", "one", false),
            ("one\rtwo", "one\ntwo", false),
            ("one\n\ntwo\r", "one\n\ntwo", true),
            ("one\r\r", "one\n", true),
            ("«a\r\nb\rc»", "a\nb\nc", false),
            ("«a»\r", "a", true),
            ("«a\x03", "a", false),
            ("/clear\r", "/clear", true),
            ("/clear\rmore", "/clear", true),
            ("one\r→", "one", true),
            ("\x04", "", true),
        ] {
            let mut strokes = Strokes::default();
            let (got, effect) = typed(&mut strokes, &keys(burst));
            let entered = strokes.take_entered().map(|entered| entered.line);
            let is_over = effect == Some(StrokeEffect::Accept) || entered.is_some();
            assert_eq!((entered.unwrap_or(got).as_str(), is_over), (line, over), "{burst:?}");
        }
    }

    #[test]
    fn what_is_pasted_at_the_start_is_no_command() {
        for (burst, is_pasted) in [
            ("«/help»", true),
            ("«/usr/bin\rx»", true),
            ("/usr\rtwo", true),
            ("/help", false),
            ("x«/help»", false),
        ] {
            let mut strokes = Strokes::default();
            let (line, _) = typed(&mut strokes, &keys(burst));
            assert_eq!(strokes.is_pasted(&line), is_pasted, "{burst:?}");
            assert_eq!(strokes.begin(None), None);
            assert!(!strokes.is_pasted(&line), "the next line is another one");
        }
    }

    #[test]
    fn control_keys_behind_enter_are_obeyed_on_the_next_line() {
        for (burst, end) in [("one\r\x03", LineEnd::Interrupted), ("one\r\x04", LineEnd::Eof)] {
            let mut strokes = Strokes::default();
            assert_eq!(typed(&mut strokes, &keys(burst)), ("one".to_owned(), Some(StrokeEffect::Accept)));
            assert_eq!((strokes.take_end(), strokes.begin(None), strokes.begin(None)), (None, Some(end), None));
        }
    }

    #[test]
    fn a_long_paste_is_one_thing_to_delete() {
        let mut strokes = Strokes::default();
        let paste = format!("see «{}»", "x\r".repeat(84));
        assert_eq!(typed(&mut strokes, &keys(&paste)).0, "see [pasted 84 lines]");
        assert_eq!(typed(&mut strokes, &keys(&(paste + "\x7f"))).0, "see ");
    }

    #[test]
    fn esc_esc_takes_the_last_message_back_into_an_empty_line() {
        let mut strokes = Strokes::default();
        assert_eq!(typed(&mut strokes, &keys("\x1b")).0, "");
        strokes.keep_last("said before");
        assert_eq!(typed(&mut strokes, &keys("\x1b")).0, "said before");
        assert_eq!(typed(&mut strokes, &keys("x\x1b")).0, "x");
    }
}
