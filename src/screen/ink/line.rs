//! A line of coloured text: measured, cut and folded by the columns of a terminal.

use super::style::{Inks, Style};
use crate::base::text;

/// A piece of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    /// The text, without line feeds and control characters.
    pub text: String,
    pub inks: Inks,
    /// The address that a click opens. Only `http`, `https` and `mailto` become links.
    pub link: Option<String>,
}

/// One line of text, which may be folded to several rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    pub spans: Vec<Span>,
}

impl Line {
    /// An empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a piece. It joins the last piece if the inks are the same.
    pub fn push(&mut self, inks: impl Into<Inks>, text: &str) {
        self.push_span(Span { text: text.to_owned(), inks: inks.into(), link: None });
    }

    /// Adds a piece and returns the line.
    pub fn add(mut self, inks: impl Into<Inks>, text: &str) -> Self {
        self.push(inks, text);
        self
    }

    /// Adds the pieces of another line.
    pub fn append(&mut self, more: Self) {
        if self.spans.is_empty() {
            self.spans = more.spans;
        } else {
            more.spans.into_iter().for_each(|span| self.push_span(span));
        }
    }

    /// Adds the pieces of another line and returns the line.
    pub fn join(mut self, more: Self) -> Self {
        self.append(more);
        self
    }

    /// Adds a piece as it is.
    pub fn push_span(&mut self, span: Span) {
        if span.text.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.inks == span.inks && last.link == span.link => last.text += &span.text,
            // Most lines have one.
            None => self.spans = vec![span],
            Some(_) => self.spans.push(span),
        }
    }

    /// The text without inks.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// The columns of the line.
    pub fn columns(&self) -> usize {
        if self.spans.iter().all(|span| span.text.is_ascii()) {
            return self.spans.iter().map(|span| text::count_columns(&span.text)).sum();
        }
        // Measured as a whole: a mark at the start of a span combines with the end of the one before.
        text::count_columns(&self.text())
    }

    /// Cuts the line to at most `width` columns; a cut line ends in `…`.
    pub fn cut(mut self, width: usize) -> Self {
        if self.columns() <= width {
            return self;
        }
        let mut room = width;
        for at in 0..self.spans.len() {
            let span = &mut self.spans[at].text;
            let taken = text::count_columns(span);
            if taken >= room {
                // More text follows, so the mark is needed even if this span fits.
                *span = text::cut_to_width(&format!("{span}_"), room).into_owned();
                self.spans.truncate(at + 1);
                break;
            }
            room -= taken;
        }
        self
    }

    /// Breaks the line anywhere into rows of at most `width` columns; a wider character gets a row to itself.
    pub fn break_rows(&self, width: usize) -> Vec<Self> {
        /// The most columns of a tab, whose width depends on its place.
        const TAB: usize = 8;
        if self.columns() <= width && !self.spans.iter().any(|span| span.text.contains('\t')) {
            return vec![self.clone()];
        }
        let (mut rows, mut row, mut used) = (Vec::new(), Self::new(), 0);
        for Span { text: piece, inks, link } in &self.spans {
            let span = |text: &str| Span { text: text.to_owned(), inks: *inks, link: link.clone() };
            let mut start = 0;
            for (at, c) in piece.char_indices() {
                let taken = if c == '\t' { TAB } else { text::count_columns(c.encode_utf8(&mut [0; 4])) };
                if used > 0 && used + taken > width {
                    row.push_span(span(&piece[start..at]));
                    rows.push(std::mem::take(&mut row));
                    (start, used) = (at, 0);
                }
                used += taken;
            }
            row.push_span(span(&piece[start..]));
        }
        rows.push(row);
        rows
    }

    /// The line with escape codes for a terminal, without a line feed.
    pub fn painted(&self, style: Style) -> String {
        let mut out = String::new();
        self.paint_to(&mut out, style);
        out
    }

    /// Adds the same to `out`. Every line of an answer comes by here.
    pub fn paint_to(&self, out: &mut String, style: Style) {
        out.reserve(self.spans.iter().map(|span| span.text.len() + 12).sum());
        for span in &self.spans {
            let link = span.link.as_deref().filter(|link| style.links && is_link(link));
            if let Some(link) = link {
                out.extend(["\x1b]8;;", link, "\x1b\\"]);
            }
            style.paint_to(out, span.inks, &span.text);
            if link.is_some() {
                out.push_str("\x1b]8;;\x1b\\");
            }
        }
    }
}

impl<I: Into<Inks>, T: AsRef<str>> From<(I, T)> for Line {
    fn from(piece: (I, T)) -> Self {
        Self::new().add(piece.0, piece.1.as_ref())
    }
}

/// True if an address is safe as a link: printable ASCII, with a scheme that only displays something.
pub fn is_link(link: &str) -> bool {
    let is_known = ["https://", "http://", "mailto:"].iter().any(|scheme| link.starts_with(scheme));
    is_known && link.bytes().all(|byte| byte.is_ascii_graphic()) && link.len() <= 2000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::ink::Ink;

    #[test]
    fn a_line_is_cut_by_columns_wherever_its_spans_end() {
        let line = || Line::new().add(Ink::Bold, "日本").add(Inks::PLAIN, "abc").add(Ink::Dim, "def");
        for (width, expected) in [
            (20, "日本abcdef"),
            (10, "日本abcdef"),
            (9, "日本abcd…"),
            (8, "日本abc…"),
            (7, "日本ab…"),
            (4, "日…"),
            (1, "…"),
            (0, ""),
        ] {
            let cut = line().cut(width);
            assert_eq!(cut.text(), expected, "{width}");
            assert!(cut.columns() <= width);
        }
    }

    #[test]
    fn a_long_line_is_broken_into_rows_that_hold_all_of_it() {
        let line = Line::new().add(Ink::Red, "日本e\u{301}x").add(Ink::Bold, "yz");
        let rows: Vec<String> = line.break_rows(4).iter().map(Line::text).collect();
        assert_eq!(rows, ["日本", "e\u{301}xyz"]);
    }

    #[test]
    fn only_harmless_addresses_become_links() {
        let style = Style { links: true, ..Style::default() };
        let shown = |link: &str| {
            let span = Span { text: "x".to_owned(), link: Some(link.to_owned()), ..Span::default() };
            Line { spans: vec![span] }.painted(style)
        };
        assert_eq!(shown("https://a.b/c"), "\x1b]8;;https://a.b/c\x1b\\x\x1b]8;;\x1b\\");
        for refused in ["javascript:x", "file:///etc/passwd", "https://a\x1b\\b", "https://a b"] {
            assert_eq!(shown(refused), "x", "{refused}");
        }
    }
}
