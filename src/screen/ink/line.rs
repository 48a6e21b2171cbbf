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

impl<I: Into<Inks>> From<(I, &str)> for Line {
    fn from((inks, text): (I, &str)) -> Self {
        Self::new().add(inks, text)
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
