//! A screen as data: its runs of equal style, a notation of them for snapshots, and an SVG of them for people. What
//! differs from run to run (times, the directory, the picture of an animation) is made equal first.

use std::collections::BTreeSet;
use std::fmt::Write;

use vt100::{Color, Screen};

/// The style of a piece of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    pub foreground: Color,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub inverse: bool,
}

/// A piece of a row in one style, and the column that it begins in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub column: usize,
    pub columns: usize,
    pub text: String,
    pub look: Look,
}

/// A screen without the empty rows at its end.
pub struct Picture {
    columns: usize,
    rows: Vec<Vec<Piece>>,
}

/// The colours of a theme: background, text, then the palette of a terminal from black to bright white.
pub struct Palette {
    background: &'static str,
    text: &'static str,
    colours: [&'static str; 16],
}

pub const DARK: Palette = Palette {
    background: "#16181d",
    text: "#d6d9e0",
    colours: [
        "#16181d", "#d16d6d", "#7fae6e", "#c9a55c", "#6d93d1", "#b07cc6", "#5fa8ad", "#c8ccd4", "#5c6370",
        "#ef8787", "#98cf86", "#e5c07b", "#86aef0", "#cf97e6", "#74c7cd", "#ffffff",
    ],
};
pub const LIGHT: Palette = Palette {
    background: "#fbfbf8",
    text: "#2b2d33",
    colours: [
        "#2b2d33", "#b3261e", "#2e7d32", "#8a6100", "#1a5fb4", "#8e2f9e", "#00727a", "#6b6f78", "#565a63",
        "#c62828", "#388e3c", "#9a6d00", "#1c71d8", "#9c3aad", "#00838f", "#1b1c20",
    ],
};

impl Picture {
    pub fn of(screen: &Screen) -> Self {
        let (rows, columns) = screen.size();
        let (rows, columns) = (rows.get(), columns.get());
        let mut rows: Vec<Vec<Piece>> = (0..rows).map(|row| pieces(screen, row, columns)).collect();
        while rows.last().is_some_and(Vec::is_empty) {
            rows.pop();
        }
        Self { columns: columns.into(), rows }
    }

    /// The same with every `from` in a piece as `to`.
    #[must_use]
    pub fn with(mut self, from: &str, to: &str) -> Self {
        for piece in self.rows.iter_mut().flatten() {
            piece.text = piece.text.replace(from, to);
        }
        self
    }

    /// The same with what a clock decides made equal: every time is `1.2 s`, every animation at its first picture.
    #[must_use]
    pub fn without_clock(mut self) -> Self {
        for piece in self.rows.iter_mut().flatten() {
            piece.text = without_times(&piece.text).replace(['⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'], "⠋");
        }
        self
    }

    /// The colours by their numbers in the palette of a terminal, each once.
    pub fn colours(&self) -> BTreeSet<u8> {
        let colour = |piece: &Piece| match piece.look.foreground {
            Color::Idx(index) => Some(index),
            Color::Default | Color::Rgb(..) => None,
        };
        self.rows.iter().flatten().filter_map(colour).collect()
    }

    /// The text, and below each row that has them its looks: a colour is its letter, capital where it is bold; `-` is
    /// dim, `*` bold, `/` italic, `_` underlined, `#` inverse.
    pub fn notation(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            let (mut text, mut marks) = (String::new(), String::new());
            for piece in row {
                pad(&mut text, piece.column);
                text += &piece.text;
                if piece.look != Look::default() && !piece.text.trim().is_empty() {
                    marks += &" ".repeat(piece.column.saturating_sub(marks.len()));
                    marks += &piece.look.letter().to_string().repeat(piece.columns);
                }
            }
            let _ = writeln!(out, "│{}", text.trim_end());
            if !marks.is_empty() {
                let _ = writeln!(out, "┆{marks}");
            }
        }
        out
    }

    /// The screen as a drawing.
    pub fn svg(&self, palette: &Palette) -> String {
        /// Of a cell, in pixels, for a font of 14.
        const CELL: (f32, f32) = (8.43, 19.0);
        const MARGIN: f32 = 16.0;
        let at = |count: usize, size: f32| MARGIN + f32::from(u16::try_from(count).unwrap_or(u16::MAX)) * size;
        let (width, height) = (at(self.columns, CELL.0) + MARGIN, at(self.rows.len(), CELL.1) + MARGIN);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 \
             {width:.0} {height:.0}\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n<g \
             font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\" \
             xml:space=\"preserve\">\n",
            palette.background
        );
        for (number, row) in self.rows.iter().enumerate() {
            for piece in row.iter().filter(|piece| !piece.text.trim().is_empty() || piece.look.inverse) {
                let (x, top) = (at(piece.column, CELL.0), at(number, CELL.1));
                let long = at(piece.columns, CELL.0) - MARGIN;
                let colour = piece.look.colour(palette);
                let mut ink = colour;
                if piece.look.inverse {
                    let _ = writeln!(
                        out,
                        "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{long:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                        CELL.1
                    );
                    ink = palette.background;
                }
                let _ = writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{long:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
                     fill=\"{ink}\"{}>{}</text>",
                    top + 14.0,
                    piece.look.attributes(),
                    escaped(&piece.text)
                );
            }
        }
        out + "</g>\n</svg>\n"
    }
}

impl Look {
    fn letter(self) -> char {
        let colour = match self.foreground {
            Color::Idx(index) => Some(['k', 'r', 'g', 'y', 'b', 'm', 'c', 'w'][usize::from(index % 8)]),
            Color::Rgb(..) => Some('x'),
            Color::Default => None,
        };
        match self {
            Self { inverse: true, .. } => '#',
            Self { underline: true, .. } => '_',
            Self { bold: true, .. } => colour.map_or('*', |colour| colour.to_ascii_uppercase()),
            Self { italic: true, .. } => '/',
            Self { dim: true, .. } => colour.unwrap_or('-'),
            _ => colour.unwrap_or(' '),
        }
    }

    fn colour(self, palette: &Palette) -> &'static str {
        match self.foreground {
            Color::Idx(index) => palette.colours[usize::from(index % 16)],
            Color::Default | Color::Rgb(..) => palette.text,
        }
    }

    fn attributes(self) -> String {
        let all = [
            (self.bold, " font-weight=\"bold\""),
            (self.italic, " font-style=\"italic\""),
            (self.underline, " text-decoration=\"underline\""),
            (self.dim, " opacity=\"0.62\""),
        ];
        all.into_iter().filter(|(holds, _)| *holds).map(|(_, attribute)| attribute).collect()
    }
}

/// The pieces of a row, without invisible spaces.
fn pieces(screen: &Screen, row: u16, columns: u16) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else { continue };
        let look = Look {
            foreground: cell.fgcolor(),
            bold: cell.bold(),
            dim: cell.dim(),
            italic: cell.italic(),
            underline: cell.underline(),
            inverse: cell.inverse(),
        };
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let taken = if cell.is_wide() { 2 } else { 1 };
        match pieces.last_mut() {
            Some(last) if last.look == look => {
                last.text += text;
                last.columns += taken;
            }
            _ => pieces.push(Piece { column: column.into(), columns: taken, text: text.to_owned(), look }),
        }
    }
    while let Some(last) = pieces.last_mut().filter(|last| !last.look.inverse && last.text.ends_with(' ')) {
        let kept = last.text.trim_end().len();
        last.columns -= last.text.len() - kept;
        last.text.truncate(kept);
        if last.text.is_empty() {
            pieces.pop();
        }
    }
    pieces
}

/// `text` with every amount of time as `1.2 s`.
fn without_times(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_number = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_digit() || c == '.')
    };
    let mut out: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let unit = words.get(at + 1).copied().unwrap_or_default();
        if is_number(words[at]) && matches!(unit, "ms" | "s") {
            out.extend(["1.2", "s"]);
            at += 2;
        } else {
            out.push(words[at]);
            at += 1;
        }
    }
    out.join(" ")
}

/// Blanks up to this column; a wide character counts as two.
fn pad(text: &mut String, column: usize) {
    let used = unicode_width::UnicodeWidthStr::width(text.as_str());
    *text += &" ".repeat(column.saturating_sub(used));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[test]
fn a_screen_is_noted_and_drawn() {
    let mut parser = vt100::Parser::new(
        std::num::NonZeroU16::new(4).expect("rows"),
        std::num::NonZeroU16::new(20).expect("columns"),
        0,
    );
    parser.process("a \x1b[1;32mok\x1b[0m \x1b[2m· 350 ms\x1b[0m\r\n\r\n日\x1b[7m<x>\x1b[0m".as_bytes());
    let picture = Picture::of(parser.screen()).without_clock();
    assert_eq!(picture.notation(), "│a ok · 1.2 s\n┆  GG --------\n│\n│日<x>\n┆  ###\n");
    let svg = picture.svg(&DARK);
    assert!(svg.contains("&lt;x&gt;") && svg.contains(DARK.colours[2]) && svg.ends_with("</svg>\n"), "{svg}");
}
