//! Finds the block of each line. Containers (quotes, items and footnotes) nest; the innermost one has a leaf.
//!
//! A line first continues the open blocks, from the outside in; then it may open new ones; otherwise it is text. This
//! is the parsing strategy of CommonMark (0.31.2, appendix), which needs only the line and the open blocks. Code and
//! HTML are passed on line by line. Paragraphs and tables are kept until they end.

use std::mem;

use super::indent::{after_quote, expand_first_tabs, is_blank, strip_container, strip_indent};
use super::inline;
use super::starts::{self, Fence, HtmlEnd, Marker};
use crate::base::text;

/// The most containers around a line, to bound the cost of a line. Deeper marks are text.
const MOST_CONTAINERS: usize = 32;

/// The result of reading lines, in the order of the text.
#[derive(Debug)]
pub enum MarkdownPiece<'t> {
    Open(&'t Container),
    /// The innermost container ends.
    Close,
    /// One empty line or more.
    Blank,
    /// A whole paragraph, in the form that [`inline::InlineReader::lines`] reads.
    Paragraph(&'t str),
    Heading(usize, &'t str),
    Rule,
    /// The start of code: its fence, if it has one, and the text after the fence.
    Code(Option<Fence>, &'t str),
    CodeLine(&'t str),
    CodeEnd,
    /// The start of HTML.
    Html,
    HtmlLine(&'t str),
    /// A whole table: the head, the delimiter line and the rows.
    Table(&'t str),
}

/// A block that holds other blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Container {
    Quote,
    Item {
        marker: Marker,
        /// The columns before its text.
        indent: usize,
        /// True if the item has any content.
        is_filled: bool,
    },
    Note(String),
}

/// The innermost open block.
#[derive(Debug, Clone, Default)]
enum Leaf {
    #[default]
    None,
    Paragraph(String),
    /// Fenced code, with the columns before its fence.
    Fenced(Fence, usize),
    /// Indented code, with the empty lines that belong to it if more code follows.
    Indented(Vec<String>),
    Html(HtmlEnd),
    Table(String),
}

/// The open blocks.
#[derive(Debug, Clone, Default)]
pub struct Blocks {
    containers: Vec<Container>,
    leaf: Leaf,
}

/// A line that is being read.
struct LineReading<'l> {
    rest: &'l str,
    /// The number of open containers that it continues.
    depth: usize,
    /// True if it continues all open containers and the open leaf is a paragraph.
    interrupts: bool,
    /// True if it has opened a container.
    is_new: bool,
}

/// The result of looking for the start of a block.
enum BlockStart {
    /// A container: another block may start after its mark.
    Container,
    /// A block that takes the rest of the line.
    Leaf,
    Nothing,
}

impl Blocks {
    /// Reads one line, without its line feed.
    pub fn line(&mut self, line: &str, out: &mut impl FnMut(MarkdownPiece<'_>)) {
        let line = expand_first_tabs(line);
        let (depth, rest) = self.goes_on(&line);
        let is_inside = depth == self.containers.len();
        if is_inside && self.leaf_goes_on(rest, out) {
            return;
        }
        let interrupts = is_inside && matches!(self.leaf, Leaf::Paragraph(_));
        let mut reading = LineReading { rest, depth, interrupts, is_new: false };
        loop {
            match self.opens(&mut reading, out) {
                BlockStart::Container => {}
                BlockStart::Leaf => return,
                BlockStart::Nothing => break,
            }
        }
        let LineReading { rest, depth, is_new, .. } = reading;
        if is_blank(rest) {
            self.keep(depth, out);
            if !is_new {
                out(MarkdownPiece::Blank);
            }
            return;
        }
        match &mut self.leaf {
            // A line that opens nothing belongs to the paragraph, even if it does not continue all containers.
            Leaf::Paragraph(text) if !is_new => inline::add_line(text, rest),
            Leaf::Table(rows) if !is_new && is_inside => inline::add_row(rows, rest),
            _ => {
                self.keep(depth, out);
                let mut text = String::with_capacity(256);
                text += rest.trim_start_matches(' ');
                self.open(Leaf::Paragraph(text));
            }
        }
    }

    /// Closes all open blocks.
    pub fn finish(&mut self, out: &mut impl FnMut(MarkdownPiece<'_>)) {
        self.keep(0, out);
    }

    /// True if the next line may be code.
    pub fn in_code(&self) -> bool {
        matches!(self.leaf, Leaf::Fenced(..) | Leaf::Indented(_))
    }

    /// The paragraph that is kept until it ends.
    pub fn paragraph(&mut self) -> Option<&mut String> {
        if let Leaf::Paragraph(text) = &mut self.leaf { Some(text) } else { None }
    }

    /// The table that is kept until it ends.
    pub fn table(&self) -> Option<&str> {
        if let Leaf::Table(rows) = &self.leaf { Some(rows) } else { None }
    }

    /// A copy that may be closed, with at most the last `bytes` of an open paragraph or table.
    pub fn sketch(&self, bytes: usize) -> Self {
        let leaf = match &self.leaf {
            Leaf::Paragraph(text) => Leaf::Paragraph(text::take_tail(text, bytes).to_owned()),
            Leaf::Table(rows) => Leaf::Table(text::take_tail(rows, bytes).to_owned()),
            leaf => leaf.clone(),
        };
        Self { containers: self.containers.clone(), leaf }
    }

    /// The number of open containers that a line continues, and the rest of the line inside them.
    fn goes_on<'l>(&self, line: &'l str) -> (usize, &'l str) {
        let mut rest = line;
        for (depth, container) in self.containers.iter().enumerate() {
            let (text, indent) = strip_indent(rest);
            let inner = match container {
                Container::Quote if indent < 4 => text.strip_prefix('>').map(after_quote),
                Container::Quote => None,
                Container::Item { is_filled, .. } if is_blank(text) && !is_filled => None,
                Container::Item { indent: needed, .. } => strip_container(rest, indent, *needed),
                Container::Note(_) => strip_container(rest, indent, 4),
            };
            match inner {
                Some(inner) => rest = inner,
                None => return (depth, rest),
            }
        }
        (self.containers.len(), rest)
    }

    /// True if a line continues or ends the open code or HTML.
    fn leaf_goes_on(&mut self, rest: &str, out: &mut impl FnMut(MarkdownPiece<'_>)) -> bool {
        let (text, indent) = strip_indent(rest);
        match &mut self.leaf {
            Leaf::Fenced(fence, _) if indent < 4 && starts::closes_fence(text, *fence) => self.close_leaf(out),
            Leaf::Fenced(_, fence_indent) => out(MarkdownPiece::CodeLine(&rest[indent.min(*fence_indent)..])),
            Leaf::Indented(blanks) if is_blank(text) => blanks.push(rest[indent.min(4)..].to_owned()),
            Leaf::Indented(blanks) if indent >= 4 => {
                blanks.drain(..).for_each(|blank| out(MarkdownPiece::CodeLine(&blank)));
                out(MarkdownPiece::CodeLine(&rest[4..]));
            }
            Leaf::Html(end) if *end != HtmlEnd::Blank || !is_blank(text) => {
                let ends = starts::ends_html(text, *end);
                out(MarkdownPiece::HtmlLine(rest));
                if ends {
                    self.leaf = Leaf::None;
                }
            }
            _ => return false,
        }
        true
    }

    /// Looks for the start of a block at the start of the rest of a line.
    fn opens(&mut self, reading: &mut LineReading<'_>, out: &mut impl FnMut(MarkdownPiece<'_>)) -> BlockStart {
        let (text, indent) = strip_indent(reading.rest);
        if is_blank(text) {
            return BlockStart::Nothing;
        }
        if reading.interrupts && indent < 4 && (self.is_underlined(text, out) || self.is_head_of(text, out)) {
            return BlockStart::Leaf;
        }
        if indent >= 4 {
            let may_go_on = !reading.is_new && matches!(self.leaf, Leaf::Paragraph(_));
            if may_go_on {
                return BlockStart::Nothing;
            }
            self.keep(reading.depth, out);
            out(MarkdownPiece::Code(None, ""));
            out(MarkdownPiece::CodeLine(&reading.rest[4..]));
            self.open(Leaf::Indented(Vec::new()));
            return BlockStart::Leaf;
        }
        // Most lines begin with one of these, which never start a block.
        if text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '"' | '\'' | '(')) {
            return BlockStart::Nothing;
        }
        if self.opens_leaf(reading, out) {
            return BlockStart::Leaf;
        }
        self.opens_container(reading, out)
    }

    /// Opens a heading, code, HTML or a rule. Returns false if the line starts none.
    fn opens_leaf(&mut self, reading: &LineReading<'_>, out: &mut impl FnMut(MarkdownPiece<'_>)) -> bool {
        let (text, indent) = strip_indent(reading.rest);
        let (piece, leaf) = if let Some((level, heading)) = starts::parse_heading(text) {
            (MarkdownPiece::Heading(level, heading), Leaf::None)
        } else if let Some((fence, info)) = starts::parse_fence(text) {
            (MarkdownPiece::Code(Some(fence), info), Leaf::Fenced(fence, indent))
        } else if let Some(end) = starts::find_html_end(text, reading.interrupts) {
            let is_whole = starts::ends_html(text, end);
            (MarkdownPiece::Html, if is_whole { Leaf::None } else { Leaf::Html(end) })
        } else if starts::is_rule(text) {
            (MarkdownPiece::Rule, Leaf::None)
        } else {
            return false;
        };
        self.keep(reading.depth, out);
        let is_html = matches!(piece, MarkdownPiece::Html);
        out(piece);
        if is_html {
            out(MarkdownPiece::HtmlLine(reading.rest));
        }
        self.open(leaf);
        true
    }

    /// Opens a quote, an item or a footnote.
    fn opens_container(
        &mut self,
        reading: &mut LineReading<'_>,
        out: &mut impl FnMut(MarkdownPiece<'_>),
    ) -> BlockStart {
        if reading.depth >= MOST_CONTAINERS {
            return BlockStart::Nothing;
        }
        let (text, indent) = strip_indent(reading.rest);
        let (container, offset) = if let Some(rest) = text.strip_prefix('>') {
            (Container::Quote, text.len() - after_quote(rest).len())
        } else if let Some(marker) = starts::parse_marker(text, reading.interrupts) {
            let rest = &text[marker.columns..];
            let blanks = strip_indent(rest).1;
            // Of five or more spaces, one belongs to the marker and the rest begins code.
            let offset = marker.columns + if is_blank(rest) || blanks > 4 { 1 } else { blanks };
            let marker = self.number_after(marker, reading.depth);
            (Container::Item { marker, indent: indent + offset, is_filled: false }, offset)
        } else if let Some((label, rest)) = starts::parse_note(text) {
            (Container::Note(label.to_owned()), text.len() - rest.len())
        } else {
            return BlockStart::Nothing;
        };
        self.keep(reading.depth, out);
        out(MarkdownPiece::Open(&container));
        self.fill();
        self.containers.push(container);
        let rest = text.get(offset..).unwrap_or_default();
        *reading = LineReading { rest, depth: self.containers.len(), interrupts: false, is_new: true };
        BlockStart::Container
    }

    /// Numbers a marker after the item before it, if both are in the same list.
    fn number_after(&self, marker: Marker, depth: usize) -> Marker {
        match self.containers.get(depth) {
            Some(Container::Item { marker: before, .. }) if before.kind == marker.kind => {
                Marker { number: before.number.map(|number| number.saturating_add(1)), ..marker }
            }
            _ => marker,
        }
    }

    /// True if a line turns the paragraph above it into a heading.
    fn is_underlined(&mut self, text: &str, out: &mut impl FnMut(MarkdownPiece<'_>)) -> bool {
        let (Leaf::Paragraph(paragraph), Some(level)) = (&self.leaf, starts::parse_underline(text)) else {
            return false;
        };
        if inline::is_only_definitions(paragraph) {
            self.close_leaf(out);
            self.open(Leaf::Paragraph(text.to_owned()));
        } else {
            out(MarkdownPiece::Heading(level, paragraph));
            self.leaf = Leaf::None;
        }
        true
    }

    /// True if a line turns the last line of the paragraph above it into the head of a table.
    fn is_head_of(&mut self, text: &str, out: &mut impl FnMut(MarkdownPiece<'_>)) -> bool {
        let (Leaf::Paragraph(paragraph), Some(columns)) = (&self.leaf, starts::count_columns(text)) else {
            return false;
        };
        let (before, head) = paragraph.rsplit_once('\n').unwrap_or(("", paragraph));
        if starts::split_cells(head).count() != columns {
            return false;
        }
        if !before.is_empty() {
            out(MarkdownPiece::Paragraph(before));
        }
        let mut rows = head.trim_start_matches(' ').to_owned();
        inline::add_row(&mut rows, text);
        self.open(Leaf::Table(rows));
        true
    }

    fn open(&mut self, leaf: Leaf) {
        self.fill();
        self.leaf = leaf;
    }

    /// Marks the innermost item as having content.
    fn fill(&mut self) {
        if let Some(Container::Item { is_filled, .. }) = self.containers.last_mut() {
            *is_filled = true;
        }
    }

    /// Closes the leaf, and the containers deeper than `depth`.
    fn keep(&mut self, depth: usize, out: &mut impl FnMut(MarkdownPiece<'_>)) {
        self.close_leaf(out);
        while self.containers.len() > depth {
            self.containers.pop();
            out(MarkdownPiece::Close);
        }
    }

    fn close_leaf(&mut self, out: &mut impl FnMut(MarkdownPiece<'_>)) {
        match mem::take(&mut self.leaf) {
            Leaf::None | Leaf::Html(_) => {}
            Leaf::Paragraph(text) => out(MarkdownPiece::Paragraph(&text)),
            Leaf::Table(rows) => out(MarkdownPiece::Table(&rows)),
            Leaf::Fenced(..) => out(MarkdownPiece::CodeEnd),
            Leaf::Indented(blanks) => {
                out(MarkdownPiece::CodeEnd);
                if !blanks.is_empty() {
                    out(MarkdownPiece::Blank);
                }
            }
        }
    }
}
