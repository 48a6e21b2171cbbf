//! Draws the text within a block: emphasis, code, links and images, parsed by pulldown-cmark.
//!
//! A block is parsed when it ends, so a link can use addresses that were defined above it. A link whose address is
//! defined below is shown as it was written, and the definition is shown when it arrives.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use pulldown_cmark::{Alignment, BrokenLink, Event, LinkType, Options, Parser, Tag, TagEnd};

use crate::base::text;
use crate::screen::ink::{Ink, Inks, Line, Span, Style, is_link};

const TEXT: Options = Options::ENABLE_STRIKETHROUGH;
const TABLE: Options = TEXT.union(Options::ENABLE_TABLES);

/// Put before a text to make it continue a paragraph, whatever it begins with.
const GUARD: &str = "x\n    ";

/// The most undefined labels that are remembered.
const MOST_MISSED: usize = 1000;

/// Parses text, and remembers the addresses that it defines.
#[derive(Debug, Clone, Default)]
pub struct InlineReader {
    style: Style,
    /// The addresses by label, shared with the copies that draw unfinished text.
    defined: Arc<HashMap<String, String>>,
    /// Labels that were used but are not yet defined.
    missed: Arc<HashSet<String>>,
}

/// The cells of a table, each without line feeds.
#[derive(Debug, Default)]
pub struct TableCells {
    pub alignments: Vec<Alignment>,
    /// The first one is the head.
    pub rows: Vec<Vec<Line>>,
}

/// Adds a line to a paragraph. A line that could open a block is indented, so it stays part of the paragraph.
pub fn add_line(paragraph: &mut String, line: &str) {
    let line = line.trim_start_matches([' ', '\t']);
    *paragraph += if line.starts_with(opens_block) { "\n    " } else { "\n" };
    *paragraph += line;
}

/// True if a line that begins with this character could be something other than text.
fn opens_block(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '>' | '-' | '+' | '*' | '_' | '=' | '`' | '~' | '<' | '|' | ':')
}

/// Makes a text visible, with spaces in place of tabs and line feeds.
pub fn show_text(text: &str) -> Cow<'_, str> {
    // Fast path for plain ASCII.
    if text::is_printable_ascii(text) {
        return Cow::Borrowed(text);
    }
    match text::make_visible(text) {
        text if text.contains(['\t', '\n']) => Cow::Owned(text.replace(['\t', '\n'], " ")),
        text => text,
    }
}

/// Adds a row to a table.
pub fn add_row(rows: &mut String, row: &str) {
    rows.push('\n');
    *rows += row.trim_start_matches(' ');
}

/// True if a paragraph consists only of definitions.
pub fn is_only_definitions(paragraph: &str) -> bool {
    paragraph.starts_with('[') && Parser::new_ext(paragraph, TEXT).next().is_none()
}

impl InlineReader {
    pub fn new(style: Style) -> Self {
        Self { style, ..Self::default() }
    }

    /// Draws a paragraph or a heading in these inks.
    pub fn lines(&mut self, paragraph: &str, inks: Inks) -> Vec<Line> {
        if !paragraph.bytes().any(|byte| b"\\`*_[<&~".contains(&byte)) {
            let plain = |line: &str| Line::new().add(inks, &show_text(line.trim_matches([' ', '\t'])));
            return paragraph.split('\n').map(plain).collect();
        }
        if paragraph.starts_with(opens_block) {
            let mut lines = self.write_inline(&format!("{GUARD}{paragraph}"), TEXT, inks).lines();
            lines.remove(0);
            return lines;
        }
        let mut lines = if paragraph.starts_with('[') { self.define(paragraph) } else { Vec::new() };
        lines.extend(self.write_inline(paragraph, TEXT, inks).lines());
        lines
    }

    /// Draws the cells of a table; none if pulldown-cmark does not see a table.
    pub fn table(&mut self, rows: &str) -> TableCells {
        self.write_inline(rows, TABLE, Inks::PLAIN).table
    }

    /// Stores the definitions of a paragraph. Returns lines for those whose labels were used before.
    fn define(&mut self, paragraph: &str) -> Vec<Line> {
        let parser = Parser::new_ext(paragraph, TEXT);
        let mut definitions: Vec<_> = parser.reference_definitions().iter().collect();
        definitions.sort_by_key(|(_, definition)| definition.span.start);
        let mut late = Vec::new();
        for (label, definition) in definitions {
            let key = label_key(label);
            if self.missed.contains(&key) {
                let address = show_text(&definition.dest).into_owned();
                let mut line = Line::new().add(Ink::Dim, &show_text(&format!("[{label}]: ")));
                let click = Some(definition.dest.to_string());
                line.push_span(Span { text: address, inks: Ink::Dim.into(), link: click });
                late.push(line);
            }
            Arc::make_mut(&mut self.defined).entry(key).or_insert_with(|| definition.dest.to_string());
        }
        late
    }

    fn write_inline(&mut self, markdown: &str, options: Options, inks: Inks) -> InlineWriter {
        let (defined, mut missed) = (&self.defined, Vec::new());
        let mut resolve = |link: BrokenLink<'_>| {
            let key = label_key(&link.reference);
            let found = defined.get(&key).map(|address| (address.clone().into(), "".into()));
            if found.is_none() {
                missed.push(key);
            }
            found
        };
        let mut writer = InlineWriter { style: self.style, inks: vec![inks], ..InlineWriter::default() };
        for event in Parser::new_with_broken_link_callback(markdown, options, Some(&mut resolve)) {
            writer.event(event);
        }
        missed.retain(|key| !self.missed.contains(key));
        if !missed.is_empty() && self.missed.len() < MOST_MISSED {
            Arc::make_mut(&mut self.missed).extend(missed);
        }
        writer
    }
}

/// Normalises a label: case and spaces do not count. Lower case first, because `ẞ` must equal `SS`.
fn label_key(label: &str) -> String {
    label.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase().to_uppercase()
}

/// A link or an image whose text is being written.
struct LinkTarget {
    address: String,
    link: Option<String>,
    /// The text so far.
    said: String,
}

/// Turns the events of pulldown-cmark into lines.
#[derive(Default)]
struct InlineWriter {
    style: Style,
    /// A stack of inks, the innermost last.
    inks: Vec<Inks>,
    targets: Vec<LinkTarget>,
    done: Vec<Line>,
    line: Line,
    table: TableCells,
}

impl InlineWriter {
    fn lines(mut self) -> Vec<Line> {
        if !self.line.spans.is_empty() {
            self.done.push(self.line);
        }
        self.done
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.text(&text, Inks::PLAIN),
            Event::Code(text) if self.style.colours => self.text(&text, Ink::Cyan.into()),
            Event::Code(text) => {
                let fence = if text.contains('`') { "``" } else { "`" };
                self.text(&format!("{fence}{text}{fence}"), Inks::PLAIN);
            }
            Event::Html(html) | Event::InlineHtml(html) => self.text(&html, Ink::Dim.into()),
            Event::SoftBreak | Event::HardBreak => self.done.push(mem::take(&mut self.line)),
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            // The extensions for these are off.
            Event::FootnoteReference(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.open("*", Ink::Italic.into()),
            Tag::Strong => self.open("**", Ink::Bold.into()),
            Tag::Strikethrough => self.open("~~", Ink::Strike.into()),
            Tag::Link { link_type, dest_url, .. } => {
                let mail = if link_type == LinkType::Email { "mailto:" } else { "" };
                self.open("", Inks::from(Ink::Blue).add(Ink::Underline));
                self.aim(&dest_url, mail);
            }
            Tag::Image { dest_url, .. } => {
                self.open("", Inks::from(Ink::Magenta).add(Ink::Underline));
                self.aim(&dest_url, "");
            }
            Tag::Table(alignments) => self.table.alignments = alignments,
            Tag::TableHead | Tag::TableRow => self.table.rows.push(Vec::new()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis => self.close("*"),
            TagEnd::Strong => self.close("**"),
            TagEnd::Strikethrough => self.close("~~"),
            TagEnd::Link | TagEnd::Image => {
                self.close("");
                if let Some(target) = self.targets.pop() {
                    self.show_address(&target);
                }
            }
            TagEnd::TableCell => {
                let cell = mem::take(&mut self.line);
                if let Some(row) = self.table.rows.last_mut() {
                    row.push(cell);
                }
            }
            _ => {}
        }
    }

    /// Begins a piece in other inks. Without colours its mark is shown as it was written.
    fn open(&mut self, mark: &str, inks: Inks) {
        self.mark(mark);
        let around = self.inks.last().copied().unwrap_or_default();
        self.inks.push(around.and(inks));
    }

    fn close(&mut self, mark: &str) {
        self.inks.pop();
        self.mark(mark);
    }

    fn mark(&mut self, mark: &str) {
        if !self.style.colours {
            self.line.push(Inks::PLAIN, mark);
        }
    }

    /// Begins the text of a link or an image.
    fn aim(&mut self, address: &str, scheme: &str) {
        let link = format!("{scheme}{address}");
        let link = is_link(&link).then_some(link);
        self.targets.push(LinkTarget { address: address.to_owned(), link, said: String::new() });
    }

    fn text(&mut self, text: &str, inks: Inks) {
        let inks = self.inks.last().copied().unwrap_or_default().and(inks);
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.done.push(mem::take(&mut self.line));
            }
            let line = show_text(line);
            let Some(target) = self.targets.last() else {
                self.line.push(inks, &line);
                continue;
            };
            let click = target.link.clone();
            self.line.push_span(Span { text: line.to_string(), inks, link: click });
            self.targets.iter_mut().for_each(|target| target.said += &line);
        }
    }

    /// Shows the address of a link, unless its text or the terminal shows it.
    fn show_address(&mut self, target: &LinkTarget) {
        let is_click = self.style.links && target.link.is_some();
        let address = show_text(&target.address);
        if target.said.is_empty() {
            self.text(&address, Ink::Underline.into());
        } else if !is_click && target.said != address && !address.is_empty() {
            self.text(&format!(" ({address})"), Ink::Dim.into());
        }
    }
}
