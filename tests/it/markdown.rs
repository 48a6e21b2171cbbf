//! Markdown drawn for a terminal: CommonMark's examples against pulldown-cmark, texts in pieces of any size, lines of
//! any width, and pages as they look.
//!
//! `tests/markdown_cases/drawn/NAME.md` is drawn as `NAME.WIDTH.txt`, without colours; `BLESS=1` writes those.

use std::fs;
use std::path::{Path, PathBuf};

use agent::facade::screen::ink::{Line, Style, is_link};
use agent::facade::screen::markdown::Printer;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::test_runner::Config;
use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

const LINKED: Style =
    Style { colours: true, theme: agent::facade::screen::ink::Theme::Either, links: true, spoken: false };

fn drawn(markdown: &str, width: usize, style: Style) -> Vec<Line> {
    in_pieces([markdown], width, style)
}

fn in_pieces<'t>(pieces: impl IntoIterator<Item = &'t str>, width: usize, style: Style) -> Vec<Line> {
    let mut printer = Printer::new(width, style);
    let mut lines: Vec<Line> = pieces.into_iter().flat_map(|piece| printer.push(piece)).collect();
    lines.extend(printer.finish());
    lines
}

fn joined(lines: &[Line]) -> String {
    lines.iter().map(|line| line.text() + "\n").collect()
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/markdown_cases")
}

/// The examples of the specification, from number 1 on.
fn examples() -> Vec<String> {
    let spec = fs::read_to_string(cases().join("commonmark/spec.txt")).expect("the specification");
    let fence = "`".repeat(32);
    let opening = format!("{fence} example\n");
    let blocks = spec.split(&opening).skip(1);
    let markdown = |block: &str| {
        let example = block.split(&format!("\n{fence}")).next().expect("a start");
        let end = example.find("\n.\n").map_or(0, |end| end + 1);
        example[..end].replace('→', "\t")
    };
    blocks.map(markdown).collect()
}

/// Examples that are drawn differently, and why.
const DIFFERENT: &[(&[usize], &str)] = &[(&[24, 34], "the words behind a fence stand as they were written")];

#[test]
fn the_examples_of_commonmark_say_what_pulldown_cmark_reads() {
    let examples = examples();
    assert_eq!(examples.len(), 652);
    let is_known = |number: usize| DIFFERENT.iter().any(|(numbers, _)| numbers.contains(&number));
    let mut wrong = Vec::new();
    for (index, example) in examples.iter().enumerate() {
        let markdown = &defined_above(example);
        let (ours, theirs) = (bare(&joined(&drawn(markdown, 500, LINKED))), bare(&reference(markdown)));
        if (ours == theirs) == is_known(index + 1) {
            wrong.push(format!("{}: {markdown:?}\n   ours {ours:?}\n theirs {theirs:?}", index + 1));
        }
    }
    assert!(wrong.is_empty(), "{} examples:\n{}", wrong.len(), wrong.join("\n"));
}

/// An example beneath the addresses that it defines: a text that streams knows none from further down.
fn defined_above(example: &str) -> String {
    let parser = Parser::new(example);
    let definitions = parser.reference_definitions().iter();
    let above: Vec<String> = definitions.map(|(label, found)| format!("[{label}]: <{}>\n", found.dest)).collect();
    if above.is_empty() { example.to_owned() } else { format!("{}\n{example}", above.concat()) }
}

/// A text without the marks that both ways of drawing choose for themselves.
fn bare(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !"•◦▪│─`~.)".contains(*c)).collect()
}

/// The content of a text according to pulldown-cmark, with the numbers of items, and the addresses that no click opens.
fn reference(markdown: &str) -> String {
    let mut text = String::new();
    let mut numbers: Vec<Option<u64>> = Vec::new();
    let mut targets: Vec<(String, String)> = Vec::new();
    for event in Parser::new_ext(markdown, Options::empty()) {
        match event {
            Event::Text(part) | Event::Code(part) | Event::Html(part) | Event::InlineHtml(part) => {
                let part = agent::facade::base::text::make_visible(&part);
                text += &part;
                for (_, said) in &mut targets {
                    *said += &part;
                }
            }
            Event::Start(Tag::List(start)) => numbers.push(start),
            Event::End(TagEnd::List(_)) => drop(numbers.pop()),
            Event::Start(Tag::Item) => {
                if let Some(Some(number)) = numbers.last_mut() {
                    text += &number.to_string();
                    *number += 1;
                }
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => text += &info,
            Event::Start(Tag::Link { link_type, dest_url, .. }) => {
                let scheme = if link_type == LinkType::Email { "mailto:" } else { "" };
                targets.push((format!("{scheme}{dest_url}"), String::new()));
            }
            Event::Start(Tag::Image { dest_url, .. }) => targets.push((dest_url.to_string(), String::new())),
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let (address, said) = targets.pop().expect("it has begun");
                let shown = if said.is_empty() {
                    address
                } else if is_link(&address) || said == address || address.is_empty() {
                    String::new()
                } else {
                    format!("({address})")
                };
                for (_, said) in &mut targets {
                    *said += &shown;
                }
                text += &shown;
            }
            _ => {}
        }
    }
    text
}

#[test]
fn an_address_that_is_defined_too_late_is_shown_where_it_is_defined() {
    let text = "See [this][a] and [b].\n\n[a]: http://a.b\n[c]: http://c.d\n\nSee [that][a] and [c].\n";
    let lines = drawn(text, 60, Style::default());
    let expected = "See [this][a] and [b].\n\n[a]: http://a.b\n\nSee that (http://a.b) and c (http://c.d).\n";
    assert_eq!(joined(&lines), expected);
}

#[test]
fn pages_look_as_they_are_in_the_tree() {
    let folder = cases().join("drawn");
    let mut pages: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("pages")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    pages.sort();
    assert!(!pages.is_empty());
    for page in pages {
        let markdown = fs::read_to_string(&page).expect("a page");
        for width in [20, 40, 80, 120] {
            let path = page.with_extension(format!("{width}.txt"));
            let now = joined(&drawn(&markdown, width, Style::default()));
            if std::env::var_os("BLESS").is_some() {
                fs::write(&path, &now).expect("written");
            }
            let before = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(now, before, "{}: BLESS=1 writes it", path.display());
        }
    }
}

/// Parts that texts are made of: marks of every block, and characters of every kind.
fn markdown() -> impl Strategy<Value = String> {
    let marks: Vec<&'static str> = vec![
        "\n", "\n", "\n", "\n\n", "\r\n", "\r", "  \n", "- ", "* ", "+ ", "-\n", "1. ", "2) ", "10. ", "> ", ">",
        "# ", "### ", "```", "```rust\n", "````", "~~~", "    ", "  ", " ", "\t", "---\n", "===\n", "***\n",
        "| a | b |\n", "|---|:-:|\n", "|---|---|\n", "| ", " | ", "|", "\\|", "**", "*", "_", "__", "~~", "`",
        "``", "[", "]", "](", ")", "](http://a.b)", "[a]: /u\n", "[a]", "[^1]", "[^1]: ", "![", "<", ">", "<b>",
        "</b>", "<div>", "<!--", "-->", "<pre>", "</pre>", "<https://x.y>", "&amp;", "&#27;", "&", "\\", "[ ] ",
        "[x] ", "a", "b c", "word", "fn x() {}", "+x", "```diff\n", "日本", "语言。", "「", "👩\u{200d}🚀", "🇩🇪",
        "e\u{301}", "❤\u{fe0f}", "مرحبا", "\u{202e}", "\x1b[2J", "\0", "\u{200b}", "ß",
    ];
    let part = prop_oneof![20 => proptest::sample::select(marks).prop_map(str::to_owned), 1 => any::<String>()];
    proptest::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

/// A text in pieces, which may be empty.
fn pieces(text: &str, sizes: &[usize]) -> Vec<String> {
    let mut chars = text.chars().peekable();
    let mut sizes = sizes.iter().cycle();
    let mut pieces = Vec::new();
    while chars.peek().is_some() {
        let size = sizes.next().copied().unwrap_or(1);
        pieces.push(chars.by_ref().take(size).collect());
    }
    pieces
}

/// A text whose marks of code are gone: lines of code are never broken.
fn without_code(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().filter(|c| !matches!(c, '`' | '~' | '\t')) {
        if c != ' ' || !out.ends_with(' ') {
            out.push(c);
        }
    }
    out
}

/// The width that no line exceeds: two columns at least, as some characters take so many.
fn bound(width: usize) -> usize {
    width.max(2)
}

#[test]
fn a_new_width_holds_for_what_comes_then() {
    let mut printer = Printer::new(11, Style::default());
    let mut lines = printer.push("one two three\n\n");
    printer.set_width(5);
    lines.extend(printer.push("one two three\n\n"));
    assert_eq!(joined(&lines), "one two\nthree\n\none\ntwo\nthree\n");
}

proptest! {
    #![proptest_config(Config::with_cases(400))]

    /// However a text is split, and whatever is drawn in between, the same lines stand in the end.
    #[test]
    fn pieces_of_any_size_give_the_same_lines(
        text in markdown(),
        mut sizes in proptest::collection::vec(0_usize..12, 1..8),
        width in 1_usize..120,
        rows in 0_usize..12,
    ) {
        sizes.push(1);
        let mut printer = Printer::new(width, LINKED);
        let mut lines = Vec::new();
        for piece in pieces(&text, &sizes) {
            lines.extend(printer.push(&piece));
            let tail = printer.tail(rows);
            prop_assert!(tail.len() <= rows.max(1), "{} rows", tail.len());
            for line in tail {
                prop_assert!(line.columns() <= bound(width), "{:?} at {width}", line.text());
            }
        }
        lines.extend(printer.finish());
        prop_assert_eq!(joined(&lines), joined(&drawn(&text, width, LINKED)));
    }

    /// Nothing but code is wider than the screen, and nothing that is drawn moves the cursor.
    #[test]
    fn lines_fit_the_width(text in markdown(), width in 1_usize..200, is_coloured in any::<bool>()) {
        let text = without_code(&text);
        let style = Style { colours: is_coloured, ..Style::default() };
        for line in drawn(&text, width, style) {
            let shown = line.text();
            prop_assert!(shown.chars().all(agent::facade::base::text::is_safe), "{shown:?}");
            prop_assert!(!shown.contains(['\n', '\t', '\r']), "{shown:?}");
            prop_assert!(line.columns() <= bound(width), "{shown:?} at {width}");
        }
    }
}
