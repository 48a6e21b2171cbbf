//! The readable text of a web page, as simple Markdown: headings, paragraphs, lists, links, code, tables.
//!
//! The page is read as a flat stream of tags; no tree is built. A hostile page can nest a million levels deep or
//! multiply itself in a tree: here time and memory are proportional to the length of a page, whatever it contains.

use std::fmt::Write;

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

/// The readable part of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadablePage {
    /// Empty if it has none.
    pub title: String,
    pub text: String,
}

/// The parts of a page that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageScope {
    /// The part that the page itself marks as its content.
    Main,
    /// Everything but navigation and the like.
    Body,
    All,
}

/// Reads a page. `absolute` resolves the address of a link; `None` if it leads nowhere.
pub fn read_html(html: &str, absolute: &dyn Fn(&str) -> Option<String>) -> ReadablePage {
    /// A part with fewer bytes is more likely a frame than the content.
    const ENOUGH: usize = 200;
    let of = |scope| PageReader::new(scope, absolute).read(html);
    let is_enough = |page: &ReadablePage| page.text.len() >= ENOUGH;
    let main = of(PageScope::Main);
    if is_enough(&main) {
        return main;
    }
    let body = of(PageScope::Body);
    if is_enough(&body) {
        return body;
    }
    let all = of(PageScope::All);
    if is_enough(&all) || body.text.is_empty() { all } else { body }
}

struct PageReader<'a> {
    scope: PageScope,
    absolute: &'a dyn Fn(&str) -> Option<String>,
    page: ReadablePage,
    /// The element whose content is skipped, and the number of open ones of its name.
    silenced: Option<(Vec<u8>, usize)>,
    in_title: bool,
    /// Open `main` and `article`.
    main: usize,
    /// Open `pre`.
    verbatim: usize,
    /// The line feeds that precede the next text.
    feeds: usize,
    space: bool,
    /// The beginning of the text of the open link, and its address.
    link: Option<(usize, String)>,
    /// For each open list the number of its next item, if it is numbered.
    lists: Vec<Option<usize>>,
    /// Cells of the open row.
    cells: usize,
    /// True if the mark of an item or a cell was written, with nothing after it yet.
    at_mark: bool,
}

impl<'a> PageReader<'a> {
    fn new(scope: PageScope, absolute: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            scope,
            absolute,
            page: ReadablePage::default(),
            silenced: None,
            in_title: false,
            main: 0,
            verbatim: 0,
            feeds: 0,
            space: false,
            link: None,
            lists: Vec::new(),
            cells: 0,
            at_mark: false,
        }
    }

    fn read(mut self, html: &str) -> ReadablePage {
        let mut emitter = DefaultEmitter::default();
        // Without it the contents of scripts and titles would be read as tags.
        emitter.naively_switch_states(true);
        for token in Tokenizer::new_with_emitter(html, emitter) {
            match token {
                Ok(Token::StartTag(tag)) => self.on_start(&tag),
                Ok(Token::EndTag(tag)) => self.on_end(&tag.name.0),
                Ok(Token::String(text)) => self.on_text(&String::from_utf8_lossy(&text.value.0)),
                Ok(Token::Comment(_) | Token::Doctype(_) | Token::Error(_)) => {}
                Err(never) => match never {},
            }
        }
        self.end_link();
        self.page.text.truncate(self.page.text.trim_end().len());
        self.page
    }

    fn on_start(&mut self, tag: &StartTag<()>) {
        let name = tag.name.0.as_slice();
        if let Some((silenced, open)) = &mut self.silenced {
            *open += usize::from(silenced == name);
            return;
        }
        if name == b"title" {
            self.in_title = self.page.title.is_empty();
            return;
        }
        let skipped = is_silent(name) || self.scope != PageScope::All && (is_around(name) || is_hidden(tag));
        if skipped && !is_void(name) && !tag.self_closing {
            self.silenced = Some((name.to_vec(), 1));
            return;
        }
        if is_main(name) {
            self.main += 1;
        }
        self.break_before(name);
        if !self.is_taken() {
            return;
        }
        match name {
            b"br" => self.feeds = self.feeds.max(1),
            b"hr" => self.put("---"),
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => {
                let level = usize::from(name[1] - b'0');
                self.put(&format!("{} ", "#".repeat(level)));
            }
            b"ul" => self.lists.push(None),
            b"ol" => self.lists.push(Some(1)),
            b"li" => self.item(),
            b"tr" => self.cells = 0,
            b"td" | b"th" => self.cell(),
            b"pre" => {
                self.put("```\n");
                self.verbatim += 1;
            }
            b"code" if self.verbatim == 0 => self.put("`"),
            b"a" => self.begin_link(find_attribute(tag, "href")),
            b"img" => {
                let alt = find_attribute(tag, "alt").unwrap_or_default();
                if !alt.trim().is_empty() {
                    self.put(&format!("[image: {}]", alt.trim()));
                }
            }
            _ => {}
        }
    }

    fn on_end(&mut self, name: &[u8]) {
        if let Some((silenced, open)) = &mut self.silenced {
            *open -= usize::from(silenced == name);
            if *open == 0 {
                self.silenced = None;
            }
            return;
        }
        match name {
            b"title" => self.in_title = false,
            b"a" => self.end_link(),
            b"ul" | b"ol" => drop(self.lists.pop()),
            b"code" if self.verbatim == 0 && self.is_taken() => {
                self.space = false;
                self.put("`");
            }
            b"pre" if self.verbatim > 0 => {
                self.verbatim -= 1;
                if !self.page.text.ends_with('\n') {
                    self.page.text.push('\n');
                }
                self.page.text.push_str("```");
            }
            _ => {}
        }
        self.break_before(name);
        if is_main(name) {
            self.main = self.main.saturating_sub(1);
        }
    }

    fn on_text(&mut self, text: &str) {
        if self.in_title {
            let words: Vec<&str> = text.split_whitespace().collect();
            self.page.title.push_str(&words.join(" "));
            return;
        }
        if self.silenced.is_some() || !self.is_taken() {
            return;
        }
        let printed = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        if self.verbatim > 0 {
            self.page.text.extend(text.chars().filter(printed));
            return;
        }
        let mut words = text.split_whitespace().peekable();
        self.space |= text.starts_with(char::is_whitespace);
        while let Some(word) = words.next() {
            let word: String = word.chars().filter(printed).collect();
            self.put(&word);
            self.space = words.peek().is_some() || text.ends_with(char::is_whitespace);
        }
    }

    fn is_taken(&self) -> bool {
        self.scope != PageScope::Main || self.main > 0
    }

    fn break_before(&mut self, name: &[u8]) {
        if self.at_mark && !matches!(name, b"li" | b"tr") {
            return;
        }
        // Nothing within a list is surrounded by empty lines.
        let most = if self.lists.is_empty() { 2 } else { 1 };
        self.feeds = self.feeds.max(count_feeds(name).min(most));
    }

    /// Writes `text` after its pending line feeds and space.
    fn put(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let out = &mut self.page.text;
        let at_start = out.is_empty() || self.verbatim == 0 && out.ends_with(['\n', ' ']) && self.feeds == 0;
        match std::mem::take(&mut self.feeds) {
            0 if self.space && !at_start => out.push(' '),
            0 => {}
            feeds => {
                let kept = out.trim_end_matches(' ').len();
                out.truncate(kept);
                let there = out.len() - out.trim_end_matches('\n').len();
                if !out.is_empty() {
                    out.extend(std::iter::repeat_n('\n', feeds.saturating_sub(there)));
                }
            }
        }
        (self.space, self.at_mark) = (false, false);
        out.push_str(text);
    }

    fn item(&mut self) {
        const DEEPEST: usize = 8;
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(DEEPEST));
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{indent}{}. ", *number - 1)
            }
            _ => format!("{indent}- "),
        };
        self.put(&mark);
        self.at_mark = true;
    }

    fn cell(&mut self) {
        self.cells += 1;
        if self.cells > 1 {
            (self.space, self.feeds) = (false, 0);
            self.put(" | ");
        }
        self.at_mark = true;
    }

    fn begin_link(&mut self, href: Option<String>) {
        self.end_link();
        let target = href.and_then(|href| (self.absolute)(href.trim()));
        if let Some(target) = target {
            // Pending white space goes before the link, not into it.
            if self.space
                && self.feeds == 0
                && !self.page.text.ends_with(['\n', ' '])
                && !self.page.text.is_empty()
            {
                self.page.text.push(' ');
            }
            self.space = false;
            self.link = Some((self.page.text.len(), target));
        }
    }

    fn end_link(&mut self) {
        let Some((start, target)) = self.link.take() else { return };
        let Some(written) = self.page.text.get(start..).filter(|text| !text.trim().is_empty()) else { return };
        // Leading line feeds stay outside.
        let begin = start + written.len() - written.trim_start().len();
        let one_line = !written.trim().contains('\n');
        if one_line && self.verbatim == 0 {
            self.page.text.insert(begin, '[');
            let _ = write!(self.page.text, "]({target})");
        }
    }
}

/// True for elements that are never part of the text.
fn is_silent(name: &[u8]) -> bool {
    const SILENT: &str = "script style noscript template svg math iframe object select textarea";
    SILENT.split(' ').any(|silent| silent.as_bytes() == name)
}

/// True for elements around the content of most pages.
fn is_around(name: &[u8]) -> bool {
    matches!(name, b"nav" | b"footer" | b"aside" | b"dialog" | b"button")
}

fn is_main(name: &[u8]) -> bool {
    matches!(name, b"main" | b"article")
}

/// True for elements without an end tag.
fn is_void(name: &[u8]) -> bool {
    matches!(name, b"br" | b"hr" | b"img" | b"input" | b"meta" | b"link" | b"source" | b"wbr" | b"col" | b"embed")
}

/// The line feeds around an element: two if empty lines surround it, one if it begins on a new line.
fn count_feeds(name: &[u8]) -> usize {
    match name {
        b"p" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"ul" | b"ol" | b"dl" | b"pre" | b"blockquote"
        | b"table" | b"section" | b"article" | b"main" | b"header" | b"figure" | b"details" | b"hr" | b"form"
        | b"fieldset" => 2,
        b"div" | b"li" | b"tr" | b"dt" | b"dd" | b"figcaption" | b"caption" | b"summary" | b"address"
        | b"option" | b"legend" => 1,
        _ => 0,
    }
}

fn find_attribute(tag: &StartTag<()>, name: &str) -> Option<String> {
    let value = tag.attributes.iter().find(|(known, _)| known.0 == name.as_bytes())?.1;
    Some(String::from_utf8_lossy(&value.value.0).into_owned())
}

/// True if the element is invisible to readers: text for programs is left out.
fn is_hidden(tag: &StartTag<()>) -> bool {
    let style = find_attribute(tag, "style").unwrap_or_default().replace(' ', "").to_lowercase();
    find_attribute(tag, "hidden").is_some()
        || find_attribute(tag, "aria-hidden").is_some_and(|value| value == "true")
        || style.contains("display:none")
        || style.contains("visibility:hidden")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(html: &str) -> String {
        let absolute = |link: &str| (!link.starts_with('#')).then(|| format!("http://h/{link}"));
        read_html(html, &absolute).text
    }

    #[test]
    fn what_remains_of_a_page() {
        for (html, expected) in [
            ("<p>One\n two</p><p>three", "One two\n\nthree"),
            ("<h1>Head</h1><h3> Sub </h3>text", "# Head\n\n### Sub\n\ntext"),
            ("a<br>b<div>c</div>d", "a\nb\nc\nd"),
            ("<ul><li>a<li><p>b</p><ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d"),
            ("<ol><li>a</li> <li>b</li></ol>", "1. a\n2. b"),
            ("see <a href='x'> the page</a>, <a href='#y'>or not</a>", "see [the page](http://h/x), or not"),
            ("<a href=x><img src=y></a><a href=z>z", "[z](http://h/z)"),
            ("<pre>a\n  b &lt; c</pre>after", "```\na\n  b < c\n```\n\nafter"),
            ("run <code>cargo</code> now", "run `cargo` now"),
            ("<table><tr><th>a<th>b<tr><td>1</td><td><p>2</p></table>c", "a | b\n1 | 2\n\nc"),
            ("a<script>if (a < b) { '<p>' }</script><style>p{}</style>b<!-- c -->", "ab"),
            ("&amp; &eacute; &#x4e2d; &notanentity;", "& é 中 ¬anentity;"),
            ("<img alt='a cat'> <img alt=''>x", "[image: a cat] x"),
            ("seen<span style='display: none'>not <b>seen</b></span><p hidden>nor this</p>", "seen"),
            ("\u{1b}[31mred\u{7}", "[31mred"),
            ("", ""),
        ] {
            assert_eq!(text(html), expected, "{html}");
        }
    }

    #[test]
    fn the_content_is_taken_and_what_stands_around_it_is_not() {
        let long = "word ".repeat(60);
        let html = format!(
            "<title> The\n page </title><nav>Home</nav><p>Cookies?</p><main><h1>It</h1>{long}<aside>Ads</aside></main><footer>©</footer>"
        );
        let page = read_html(&html, &|_| None);
        assert_eq!(page.title, "The page");
        assert_eq!(page.text, format!("# It\n\n{}", long.trim_end()));
        let page = read_html(&format!("<nav>Home</nav><div>{long}</div>"), &|_| None);
        assert_eq!(page.text, long.trim_end());
        // Where hardly anything would remain, all of it is shown.
        assert_eq!(text(&format!("<nav>{long}</nav><main>x</main>")), format!("{long}\nx").replace(" \n", "\n\n"));
    }

    #[test]
    fn a_page_that_nests_without_end_is_only_long() {
        for part in ["<div>", "<b>", "<ul><li>", "<table><tr><td>", "<a href=x>", "<nav>", "<pre>"] {
            let html = part.repeat(20_000) + "end";
            assert!(text(&html).contains("end"), "{part}");
        }
    }
}
