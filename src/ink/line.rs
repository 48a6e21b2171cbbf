//! A line of coloured text: measured, cut and folded by the columns of a terminal.

use super::style::{Inks, Style};
use crate::text;

/// A piece of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    /// Without line feeds and control characters.
    pub text: String,
    pub inks: Inks,
    /// The address that a click opens. Only `http`, `https` and `mailto` are made links of.
    pub link: Option<String>,
}

/// One line on a screen, or one that is folded to several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    pub spans: Vec<Span>,
}

impl Line {
    /// An empty line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a piece. One in the inks of the last joins it.
    pub fn push(&mut self, inks: impl Into<Inks>, text: &str) {
        self.push_span(Span { text: text.to_owned(), inks: inks.into(), link: None });
    }

    /// The same, for a line that is built at once.
    #[must_use]
    pub fn with(mut self, inks: impl Into<Inks>, text: &str) -> Self {
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
            _ => self.spans.push(span),
        }
    }

    /// The text alone.
    #[must_use]
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// The columns that it takes.
    #[must_use]
    pub fn columns(&self) -> usize {
        // Measured as a whole: a mark at the start of a span combines with the end of the one before.
        text::columns(&self.text())
    }

    /// At most `width` columns of it, with `…` as the last one where it was cut.
    #[must_use]
    pub fn cut(mut self, width: usize) -> Self {
        if self.columns() <= width {
            return self;
        }
        let mut room = width;
        for at in 0..self.spans.len() {
            let span = &mut self.spans[at].text;
            let taken = text::columns(span);
            if taken >= room {
                // Something follows, so the mark is due even where the span itself fits.
                *span = text::cut(&format!("{span}_"), room).into_owned();
                self.spans.truncate(at + 1);
                break;
            }
            room -= taken;
        }
        self
    }

    /// As a terminal shows it, without a line feed.
    #[must_use]
    pub fn painted(&self, style: Style) -> String {
        let mut out = String::with_capacity(self.spans.iter().map(|span| span.text.len() + 12).sum());
        for span in &self.spans {
            let link = span.link.as_deref().filter(|link| style.links && is_link(link));
            if let Some(link) = link {
                out.extend(["\x1b]8;;", link, "\x1b\\"]);
            }
            style.paint_to(&mut out, span.inks, &span.text);
            if link.is_some() {
                out += "\x1b]8;;\x1b\\";
            }
        }
        out
    }
}

impl<I: Into<Inks>> From<(I, &str)> for Line {
    fn from((inks, text): (I, &str)) -> Self {
        Self::new().with(inks, text)
    }
}

/// True if a terminal may be given an address: printable ASCII, of a scheme that only shows something.
#[must_use]
pub fn is_link(link: &str) -> bool {
    let is_known = ["https://", "http://", "mailto:"].iter().any(|scheme| link.starts_with(scheme));
    is_known && link.bytes().all(|byte| byte.is_ascii_graphic()) && link.len() <= 2000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ink::Ink;

    #[test]
    fn a_line_is_cut_by_columns_wherever_its_spans_end() {
        let line = || Line::new().with(Ink::Bold, "日本").with(Inks::PLAIN, "abc").with(Ink::Dim, "def");
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
