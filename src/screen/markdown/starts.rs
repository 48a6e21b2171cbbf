//! Recognises lines that open or close a block. Each function gets a line without its indentation and tabs.

/// A fence of a code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// A backtick or a tilde.
    pub mark: char,
    /// The number of marks.
    pub length: usize,
}

/// The end of an HTML block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HtmlEnd {
    /// A line that contains one of these, in any case.
    With(&'static [&'static str]),
    /// An empty line.
    Blank,
}

/// The mark of a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// The kind of the list: `-`, `+`, `*`, `.` or `)`. Items of one list have the same kind.
    pub kind: char,
    /// The number of an ordered item.
    pub number: Option<u64>,
    /// The columns of the mark, without spaces.
    pub columns: usize,
}

/// Parses a heading to its level and its text.
pub fn parse_heading(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let text = rest.trim_matches([' ', '\t']);
    let open = text.trim_end_matches('#');
    let is_closed = open.is_empty() || open.ends_with([' ', '\t']);
    Some((level, if is_closed { open.trim_end_matches([' ', '\t']) } else { text }))
}

/// The level of the heading that this line makes of the paragraph above it.
pub fn parse_underline(line: &str) -> Option<usize> {
    let line = line.trim_end_matches([' ', '\t']);
    let all = |mark: char| !line.is_empty() && line.chars().all(|c| c == mark);
    if all('=') { Some(1) } else { all('-').then_some(2) }
}

/// True for a thematic break: three or more of one mark.
pub fn is_rule(line: &str) -> bool {
    let marks = || line.chars().filter(|c| !matches!(c, ' ' | '\t'));
    let Some(mark) = marks().next().filter(|mark| matches!(mark, '*' | '-' | '_')) else { return false };
    marks().count() >= 3 && marks().all(|c| c == mark)
}

/// Parses the opening fence of a code block and the text after it.
pub fn parse_fence(line: &str) -> Option<(Fence, &str)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    let is_inline = mark == '`' && rest.contains('`');
    (length >= 3 && !is_inline).then(|| (Fence { mark, length }, rest.trim_matches([' ', '\t'])))
}

/// True if a line closes the code block that this fence opened.
pub fn closes_fence(line: &str, fence: Fence) -> bool {
    let rest = line.trim_start_matches(fence.mark);
    line.len() - rest.len() >= fence.length && rest.trim_matches([' ', '\t']).is_empty()
}

/// Parses the mark of a list item. `interrupts` is true below a line of a paragraph, where only some marks count.
pub fn parse_marker(line: &str, interrupts: bool) -> Option<Marker> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let kind = line[digits..].chars().next()?;
    let marker = match (digits, kind) {
        (0, '-' | '+' | '*') => Marker { kind, number: None, columns: 1 },
        (1..=9, '.' | ')') => Marker { kind, number: line[..digits].parse().ok(), columns: digits + 1 },
        _ => return None,
    };
    let text = &line[marker.columns..];
    let stands_alone = text.is_empty() || text.starts_with(' ');
    let may_interrupt = !text.trim().is_empty() && marker.number.is_none_or(|number| number == 1);
    (stands_alone && (!interrupts || may_interrupt)).then_some(marker)
}

/// Parses the label of a footnote at the start of a line. Returns it with the rest of the line.
pub fn parse_note(line: &str) -> Option<(&str, &str)> {
    let (label, rest) = line.strip_prefix("[^")?.split_once("]:")?;
    let is_label = !label.is_empty() && !label.contains(|c: char| c.is_whitespace() || matches!(c, '[' | ']'));
    is_label.then_some((label, rest))
}

/// The number of columns of a table, if this is its delimiter line.
pub fn count_columns(line: &str) -> Option<usize> {
    let is_cell = |cell: &str| {
        let cell = cell.trim_matches([' ', '\t']);
        let cell = cell.strip_prefix(':').unwrap_or(cell);
        let cell = cell.strip_suffix(':').unwrap_or(cell);
        !cell.is_empty() && cell.bytes().all(|byte| byte == b'-')
    };
    // Most lines have another character.
    let has_only_marks = line.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'));
    if !has_only_marks || !line.contains('|') {
        return None;
    }
    split_cells(line).all(is_cell).then(|| split_cells(line).count())
}

/// Splits a row of a table into cells.
pub fn split_cells(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim_matches([' ', '\t']);
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = line.strip_suffix('|').filter(|line| !line.ends_with('\\')).unwrap_or(line);
    let mut is_escaped = false;
    line.split(move |c| {
        let ends = c == '|' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    })
}

/// The end of the HTML block that a line opens, if it opens one. `interrupts` is true below a line of a paragraph.
pub fn find_html_end(line: &str, interrupts: bool) -> Option<HtmlEnd> {
    let after = line.strip_prefix('<')?;
    let name_end = |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(text.len());
    let tag = after.strip_prefix('/').unwrap_or(after);
    let (name, rest) = tag.split_at(name_end(tag));
    let is_named = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let name_ends = rest.is_empty() || rest.starts_with([' ', '\t', '>']);
    if tag == after && name_ends && is_named(&["pre", "script", "style", "textarea"]) {
        return Some(HtmlEnd::With(&["</pre>", "</script>", "</style>", "</textarea>"]));
    }
    if after.starts_with('!') && after[1..].starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some(HtmlEnd::With(&[">"]));
    }
    let opening = [("!--", &["-->"]), ("?", &["?>"]), ("![CDATA[", &["]]>"])];
    if let Some((_, end)) = opening.iter().find(|(start, _)| after.starts_with(start)) {
        return Some(HtmlEnd::With(*end));
    }
    let is_block = (name_ends || rest.starts_with("/>")) && is_named(BLOCKS);
    (is_block || !interrupts && is_tag(after)).then_some(HtmlEnd::Blank)
}

/// True if an HTML block ends with this line.
pub fn ends_html(line: &str, end: HtmlEnd) -> bool {
    match end {
        HtmlEnd::Blank => line.trim_matches([' ', '\t']).is_empty(),
        HtmlEnd::With(ends) => {
            let holds = |end: &str| {
                line.as_bytes().windows(end.len()).any(|part| part.eq_ignore_ascii_case(end.as_bytes()))
            };
            ends.iter().any(|end| holds(end))
        }
    }
}

/// Elements that begin an HTML block anywhere (CommonMark 0.31.2, 4.6).
#[rustfmt::skip]
const BLOCKS: &[&str] = &[
    "address", "article", "aside", "base", "basefont", "blockquote", "body", "caption", "center", "col", "colgroup",
    "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frame",
    "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "iframe", "legend", "li", "link",
    "main", "menu", "menuitem", "nav", "noframes", "ol", "optgroup", "option", "p", "param", "search", "section",
    "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "track", "ul",
];

/// True if a line, after its `<`, is one complete tag and nothing else.
fn is_tag(line: &str) -> bool {
    let blank = |text: &str| text.trim_start_matches([' ', '\t']).len() < text.len();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let (is_end, name) = line.strip_prefix('/').map_or((false, line), |rest| (true, rest));
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    let mut rest = name.trim_start_matches(is_name);
    while !is_end && blank(rest) {
        let attribute = rest.trim_start_matches([' ', '\t']);
        let is_first = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ':');
        if !attribute.starts_with(is_first) {
            break;
        }
        let is_later = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '-');
        rest = attribute.trim_start_matches(is_later);
        if let Some(value) = rest.trim_start_matches([' ', '\t']).strip_prefix('=') {
            match after_value(value.trim_start_matches([' ', '\t'])) {
                Some(after) => rest = after,
                None => return false,
            }
        }
    }
    let rest = rest.trim_start_matches([' ', '\t']);
    let rest = if is_end { rest } else { rest.strip_prefix('/').unwrap_or(rest) };
    rest.strip_prefix('>').is_some_and(|after| after.trim_matches([' ', '\t']).is_empty())
}

/// The text after the value of an attribute.
fn after_value(value: &str) -> Option<&str> {
    if let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        return value[1..].split_once(quote).map(|(_, after)| after);
    }
    let is_end = |c: char| matches!(c, ' ' | '\t' | '"' | '\'' | '=' | '<' | '>' | '`');
    let end = value.find(is_end).unwrap_or(value.len());
    (end > 0).then(|| &value[end..])
}
