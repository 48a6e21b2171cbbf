//! Calls that servers without a parser leave in the content, in the model's own notation.
//!
//! A notation counts at the start of the content, at the start of a line and right after another one, but not in a code
//! block or in the middle of a sentence, where it is only mentioned. Text streams at once; only a possible beginning of
//! a notation is held back. If it turns out not to be one, or is cut off, it is passed on unchanged as text.

use super::super::bounds::{LONGEST_NAME, MOST_BYTES};
use super::notation::{NOTATIONS, NotatedCall, Notation, NotationMeaning, NotationPiece, Texts};
use crate::model::ToolDefinition;

/// The most white space before a notation, in bytes.
const MOST_BLANK: usize = 1024;

/// A classified piece of content.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ContentPiece {
    Text(String),
    Call(NotatedCall),
}

/// Separates calls from text while content arrives.
pub(super) struct TextCalls {
    texts: Texts,
    place: HeldPlace,
    in_code: bool,
    /// The content that is not classified yet.
    held: String,
    /// The notations that `held` may be the beginning of.
    tries: Vec<Try>,
}

/// The place at which `held` begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeldPlace {
    /// At the start of the content.
    Start,
    /// After a call.
    Between,
    /// At the start of a line.
    Line,
    /// Where nothing is a notation.
    Within,
}

impl TextCalls {
    pub fn new(tools: &[ToolDefinition]) -> Self {
        Self {
            texts: Texts::from_tools(tools),
            place: HeldPlace::Start,
            in_code: false,
            held: String::new(),
            tries: Vec::new(),
        }
    }

    /// Takes content.
    pub fn feed(&mut self, content: &str) -> Vec<ContentPiece> {
        self.held.push_str(content);
        let mut told = Vec::new();
        while !self.held.is_empty() && self.step(&mut told) {}
        told
    }

    /// Classifies what is held back, as nothing more comes.
    pub fn finish(&mut self) -> Vec<ContentPiece> {
        let mut told = Vec::new();
        let is_gap = self.place == HeldPlace::Between && self.held.trim().is_empty();
        if !is_gap {
            // The text after a beginning that is never closed belongs to it.
            add_text(&mut told, std::mem::take(&mut self.held));
        }
        *self = Self { texts: std::mem::take(&mut self.texts), ..Self::new(&[]) };
        told
    }

    /// Applies one rule; returns false if more has to arrive.
    fn step(&mut self, told: &mut Vec<ContentPiece>) -> bool {
        if self.place == HeldPlace::Within {
            let end = self.held.find('\n').map_or(self.held.len(), |at| at + 1);
            self.pass(end, told);
            return true;
        }
        // Between calls, and before the first, blank lines are dropped.
        let blank = match self.place {
            HeldPlace::Start | HeldPlace::Between => self.held.len() - self.held.trim_start().len(),
            HeldPlace::Line | HeldPlace::Within => 0,
        };
        if blank > MOST_BLANK {
            self.pass(self.held.floor_char_boundary(MOST_BLANK), told);
            return true;
        }
        if blank == self.held.len() {
            return false;
        }
        if self.tries.is_empty() {
            let in_code = self.in_code;
            let counts = |notation: &&Notation| !in_code || matches!(notation.means, NotationMeaning::Fence);
            self.tries = NOTATIONS.iter().filter(counts).map(|notation| Try::new(notation, blank)).collect();
        }
        self.try_all(told)
    }

    /// Finds the notations that `held` begins with or may begin with.
    fn try_all(&mut self, told: &mut Vec<ContentPiece>) -> bool {
        let held = &self.held;
        let (mut fit, mut looked_at) = (None, 0);
        self.tries.retain_mut(|attempt| {
            let progress = attempt.go_on(held);
            looked_at = looked_at.max(attempt.at);
            if matches!(progress, NotationProgress::Whole) && fit.is_none() {
                fit = attempt.read(held, &self.texts).map(|fit| (attempt.at, fit));
            }
            matches!(progress, NotationProgress::Open)
        });
        match fit {
            Some((end, Fit::Calls(calls))) => {
                told.extend(calls.into_iter().map(ContentPiece::Call));
                self.held.drain(..end);
                self.place = HeldPlace::Between;
            }
            Some((end, Fit::Fence)) => {
                self.in_code = !self.in_code;
                self.pass(end, told);
            }
            // Scanned text is not scanned again: a hostile server could make that take forever.
            None if self.tries.is_empty() => self.pass(looked_at, told),
            None if self.held.len() > MOST_BYTES => self.pass(self.held.len(), told),
            None => return false,
        }
        self.tries.clear();
        true
    }

    /// Passes on as text what is held up to `end`.
    fn pass(&mut self, end: usize, told: &mut Vec<ContentPiece>) {
        let rest = self.held.split_off(end);
        self.place = if self.held.ends_with('\n') { HeldPlace::Line } else { HeldPlace::Within };
        add_text(told, std::mem::replace(&mut self.held, rest));
    }
}

fn add_text(told: &mut Vec<ContentPiece>, text: String) {
    match told.last_mut() {
        _ if text.is_empty() => {}
        Some(ContentPiece::Text(before)) => before.push_str(&text),
        _ => told.push(ContentPiece::Text(text)),
    }
}

/// A notation that is matched against the content as it arrives. Each character is examined once or twice, however the
/// content is cut.
struct Try {
    notation: &'static Notation,
    /// The piece that comes next.
    piece: usize,
    /// The end of the pieces that came.
    at: usize,
    /// The end of what was looked at of the next piece.
    seen: usize,
    json: JsonEnd,
    /// The ranges of the captures.
    captures: Vec<(usize, usize)>,
}

enum NotationProgress {
    /// More has to arrive.
    Open,
    Failed,
    Whole,
}

/// The meaning of a complete notation.
enum Fit {
    Calls(Vec<NotatedCall>),
    Fence,
}

impl Try {
    fn new(notation: &'static Notation, at: usize) -> Self {
        Self { notation, piece: 0, at, seen: at, json: JsonEnd::default(), captures: Vec::new() }
    }

    fn go_on(&mut self, held: &str) -> NotationProgress {
        while let Some(piece) = self.notation.pieces.get(self.piece) {
            let step = self.step(piece, held);
            match step {
                NotationStep::To(end) => (self.at, self.seen) = (end, end),
                NotationStep::Captured(text, end) => {
                    self.captures.push((self.at, text));
                    (self.at, self.seen) = (end, end);
                    self.json = JsonEnd::default();
                }
                NotationStep::Open => return NotationProgress::Open,
                NotationStep::Failed => return NotationProgress::Failed,
            }
            self.piece += 1;
        }
        NotationProgress::Whole
    }

    fn step(&mut self, piece: &NotationPiece, held: &str) -> NotationStep {
        let rest = &held[self.at..];
        match *piece {
            NotationPiece::Literal(text) if rest.starts_with(text) => NotationStep::To(self.at + text.len()),
            NotationPiece::Literal(text) if text.starts_with(rest) => NotationStep::Open,
            NotationPiece::Literal(_) => NotationStep::Failed,
            NotationPiece::Space => {
                let blank = self.seen + held[self.seen..].len() - held[self.seen..].trim_start().len();
                self.seen = blank;
                if blank == held.len() { NotationStep::Open } else { NotationStep::To(blank) }
            }
            NotationPiece::Name(close) => match_name(rest, close, self.at),
            NotationPiece::Json => {
                if !rest.is_empty() && !rest.starts_with(['{', '[']) {
                    return NotationStep::Failed;
                }
                let end = self.json.find(&held.as_bytes()[self.seen..]);
                match end.map(|end| self.seen + end) {
                    Some(end) => NotationStep::Captured(end, end),
                    None => {
                        self.seen = held.len();
                        NotationStep::Open
                    }
                }
            }
            NotationPiece::Until { after, close } => {
                while let Some(at) = held[self.seen..].find(close).map(|at| self.seen + at) {
                    if held[self.at..at].trim_end().ends_with(after) {
                        return NotationStep::Captured(at, at + close.len());
                    }
                    self.seen = at + close.len();
                }
                let unseen = held.len().saturating_sub(close.len()).max(self.seen);
                self.seen = held.floor_char_boundary(unseen).max(self.seen);
                NotationStep::Open
            }
        }
    }

    fn read(&self, held: &str, texts: &Texts) -> Option<Fit> {
        let captures: Vec<&str> = self.captures.iter().map(|&(start, end)| &held[start..end]).collect();
        match self.notation.means {
            NotationMeaning::Calls(read) => read(&captures, texts).map(Fit::Calls),
            NotationMeaning::Fence => Some(Fit::Fence),
        }
    }
}

/// The result of matching one piece of a notation. The numbers are ends.
enum NotationStep {
    To(usize),
    /// The end of what is captured, and of the piece.
    Captured(usize, usize),
    Open,
    Failed,
}

fn match_name(rest: &str, close: &str, at: usize) -> NotationStep {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    let after = &rest[length..];
    if length > LONGEST_NAME || (length == 0 && !rest.is_empty()) {
        NotationStep::Failed
    } else if after.starts_with(close) {
        NotationStep::Captured(at + length, at + length + close.len())
    } else if close.starts_with(after) {
        NotationStep::Open
    } else {
        NotationStep::Failed
    }
}

/// Finds the end of a JSON object or list while it arrives.
#[derive(Debug, Default)]
struct JsonEnd {
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl JsonEnd {
    /// The end of the value in these bytes, which follow those before.
    fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            if self.in_text {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::config::Permission;

    /// The text and the calls of content that arrives in pieces.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<ContentPiece> {
        let mut calls = TextCalls::new(&[tool()]);
        let mut told: Vec<ContentPiece> = Vec::new();
        let mut add = |pieces: Vec<ContentPiece>| {
            for piece in pieces {
                match piece {
                    ContentPiece::Text(text) => add_text(&mut told, text),
                    call @ ContentPiece::Call(_) => told.push(call),
                }
            }
        };
        pieces.into_iter().for_each(|piece| add(calls.feed(piece)));
        add(calls.finish());
        told
    }

    fn tool() -> ToolDefinition {
        let parameters = json!({"properties": {
            "text": {"type": "string"}, "title": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "line": {"type": "integer"}, "words": {"type": "array", "items": {"type": "string"}},
        }});
        ToolDefinition {
            name: "f".to_owned(),
            description: String::new(),
            parameters: parameters.into(),
            permission: Permission::Read,
            default: true,
            ..ToolDefinition::default()
        }
    }

    #[test]
    fn parameters_without_types_are_what_their_tool_expects() {
        for (tool, parameter, value, read_as) in [
            ("f", "text", "1", json!("1")),
            ("f", "text", "{\"a\": 1}", json!("{\"a\": 1}")),
            ("f", "title", "null", json!("null")),
            ("f", "line", "1", json!(1)),
            ("f", "line", "one", json!("one")),
            ("f", "words", "[\"a\"]", json!(["a"])),
            ("f", "unknown", "true", json!(true)),
            ("g", "text", "1", json!(1)),
        ] {
            let content = format!("<function={tool}><parameter={parameter}>\n{value}\n</parameter></function>");
            let arguments = json!({ parameter: read_as }).to_string();
            let call = ContentPiece::Call(NotatedCall { name: tool.to_owned(), arguments });
            assert_eq!(read([content.as_str()]), [call], "{content}");
        }
    }

    #[test]
    fn only_what_may_begin_a_notation_is_held_back() {
        let mut calls = TextCalls::new(&[]);
        for (content, passed) in [
            ("One ", "One "),
            ("<tool_call>", "<tool_call>"),
            (" two.\n", " two.\n"),
            ("<", ""),
            ("tool", ""),
            ("s> three\n`", "<tools> three\n"),
            ("a` [", "`a` ["),
            ("TOOL", "TOOL"),
        ] {
            let expected: Vec<ContentPiece> = [passed]
                .into_iter()
                .filter(|text| !text.is_empty())
                .map(|text| ContentPiece::Text(text.to_owned()))
                .collect();
            assert_eq!(calls.feed(content), expected, "{content:?}");
        }
    }

    #[test]
    fn hostile_content_takes_no_time_and_nothing_of_it_is_lost() {
        const TIMES: usize = 20_000;
        let many = |piece: &str| piece.repeat(TIMES);
        for content in [
            many("<tool_call>{\n") + &many("}"),
            many("<tool_call>{}\n"),
            "<function=f>".to_owned() + &many("<parameter=</function>"),
            many("[TOOL_CALLS]a"),
            many(" "),
            many("\n") + "<tool_call>",
            many("```\n"),
        ] {
            let pieces = content.as_bytes().chunks(3).map(|piece| std::str::from_utf8(piece).expect("ASCII"));
            assert_eq!(read(pieces), [ContentPiece::Text(content.clone())]);
        }
    }

    proptest! {
        /// Content reads the same however it is cut, and all of it that is no call is text.
        #[test]
        fn cuts_do_not_matter(
            words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..16),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let content = words.concat();
            let mut at: Vec<usize> =
                cuts.iter().map(|cut| content.floor_char_boundary(cut.index(content.len() + 1))).collect();
            at.extend([0, content.len()]);
            at.sort_unstable();
            let whole = read([content.as_str()]);
            prop_assert_eq!(&read(at.windows(2).map(|pair| &content[pair[0]..pair[1]])), &whole);
            let single: Vec<String> = content.chars().map(String::from).collect();
            prop_assert_eq!(&read(single.iter().map(String::as_str)), &whole);
            if !whole.iter().any(|told| matches!(told, ContentPiece::Call(_))) {
                let text = if content.is_empty() { vec![] } else { vec![ContentPiece::Text(content)] };
                prop_assert_eq!(whole, text);
            }
        }
    }

    const WORDS: [&str; 32] = [
        "<tool_call>",
        "</tool_call>",
        "{\"name\":\"f\",\"arguments\":{\"x\":\"}\"}}",
        "{\"name\":\"f\"}",
        "<function=f>",
        "</function>",
        "<parameter=x>",
        "</parameter>",
        "<function=",
        "{}",
        "{",
        "}",
        "[TOOL_CALLS]",
        "[TOOL_CALLS]f[ARGS]{}",
        "[ARGS]",
        "[",
        "]",
        "<|python_tag|>",
        "<｜DSML｜function_calls>",
        "<｜DSML｜invoke name=\"f\">",
        "<｜DSML｜parameter name=\"x\" string=\"true\">",
        "</｜DSML｜parameter>",
        "</｜DSML｜invoke>",
        "</｜DSML｜function_calls>",
        "<tool_call>{\"name\":\"g\"}</tool_call>",
        "```",
        "`",
        "\n",
        "\n\n",
        " ",
        "word",
        "é",
    ];
}
