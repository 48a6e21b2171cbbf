//! The text of a catalogue: a head of two lines, then one section of rows per provider, each found without reading
//! the others.
//!
//! ```text
//! agent-models 1 2026-11-10
//! origin where it comes from
//!
//! @anthropic
//! claude-sonnet-5-5 w=1000000 o=128000 s l=23456 p=2/0.1/2.5/10 c=2
//! ```

use std::fmt::Write;

use jiff::civil::Date;
use memchr::memchr_iter;

use super::providers;
use super::row::ModelFacts;

const EMBEDDED: &str = include_str!("models.txt");

/// The name of the user's own catalogue in the data directory.
pub(super) const FILE: &str = "models.txt";

/// The largest catalogue, in bytes.
pub(super) const MOST_BYTES: u64 = 5 * 1024 * 1024;

/// The form of the text, and its version.
const FORM: &str = "agent-models 1 ";
const ORIGIN: &str = "origin ";

/// The catalogue that comes with the program.
pub(super) fn open_embedded() -> CatalogueText<'static> {
    CatalogueText::open(EMBEDDED).expect("a test reads every line")
}

/// The text of a catalogue whose head was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct CatalogueText<'t> {
    /// The day on which its facts were gathered.
    pub date: Date,
    /// The origin of the facts.
    pub origin: &'t str,
    body: &'t str,
}

impl<'t> CatalogueText<'t> {
    /// Reads only the head.
    ///
    /// # Errors
    /// The text is not a catalogue; the error is a phrase.
    pub fn open(text: &'t str) -> Result<Self, String> {
        let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
        let date = head.strip_prefix(FORM).ok_or_else(|| format!("it does not begin with `{FORM}DATE`"))?;
        let date = date.trim_end().parse().map_err(|_| format!("`{}` is no date", date.escape_debug()))?;
        let (origin, body) = rest.split_once('\n').unwrap_or((rest, ""));
        let origin = origin.strip_prefix(ORIGIN).ok_or("its second line does not begin with `origin `")?.trim();
        if origin.len() > 500 || origin.contains(char::is_control) {
            return Err("its origin is not a line of text".to_owned());
        }
        Ok(Self { date, origin, body })
    }

    /// Refuses a catalogue that is older than that of the program; the error is a phrase.
    pub fn check_age(&self) -> Result<(), String> {
        let (theirs, ours) = (self.date, open_embedded().date);
        if theirs < ours {
            return Err(format!("is of {theirs}, older than the catalogue of this program ({ours})"));
        }
        Ok(())
    }

    /// Reads everything.
    ///
    /// # Errors
    /// A line is wrong; the error is a phrase with the number of the first one.
    pub fn check(&self) -> Result<usize, String> {
        let (mut rows, mut in_section) = (0, false);
        for (at, line) in self.body.lines().enumerate() {
            let wrong = |why: String| format!("line {}: {why}", at + 3);
            match line.strip_prefix('@') {
                _ if line.is_empty() => {}
                Some(id) if providers::by_id(id).is_some() => in_section = true,
                Some(id) => return Err(wrong(format!("`{}` is not a known provider", id.escape_debug()))),
                None if !in_section => return Err(wrong("it comes before any provider".to_owned())),
                None => {
                    ModelFacts::read(line).map_err(wrong)?;
                    rows += 1;
                }
            }
        }
        if rows == 0 { Err("it has no rows".to_owned()) } else { Ok(rows) }
    }

    /// The row of an id, ignoring case.
    pub fn find(&self, provider: &str, id: &str) -> Option<ModelFacts> {
        self.lines(provider).find(|line| is_row_of(line, id)).and_then(|line| ModelFacts::read(line).ok())
    }

    /// True if any provider may have a row of this id: checks each line regardless of its section.
    pub fn mentions(&self, id: &str) -> bool {
        let mut line_starts = std::iter::once(0).chain(memchr_iter(b'\n', self.body.as_bytes()).map(|at| at + 1));
        line_starts.any(|start| is_row_of(&self.body[start..], id))
    }

    /// All rows of a provider.
    pub fn rows(&self, provider: &str) -> impl Iterator<Item = ModelFacts> + use<'t> {
        self.lines(provider).filter_map(|line| ModelFacts::read(line).ok())
    }

    fn lines(&self, provider: &str) -> impl Iterator<Item = &'t str> + use<'t> {
        let head = format!("@{provider}\n");
        // A section begins at the start of a line, unlike an id with an `@` in it.
        let start = match self.body.find(&format!("\n{head}")) {
            Some(at) => Some(at + 1 + head.len()),
            None => self.body.starts_with(&head).then_some(head.len()),
        };
        let section = start.map_or("", |start| &self.body[start..]);
        section.lines().take_while(|line| !line.is_empty() && !line.starts_with('@'))
    }
}

fn is_row_of(line: &str, id: &str) -> bool {
    line.get(..id.len()).is_some_and(|start| start.eq_ignore_ascii_case(id)) && line[id.len()..].starts_with(' ')
}

/// Writes a catalogue. `origin` has one line.
pub(super) fn write_catalogue(date: Date, origin: &str, sections: &[(&str, Vec<ModelFacts>)]) -> String {
    let mut text = format!("{FORM}{date}\n{ORIGIN}{origin}\n");
    for (provider, rows) in sections.iter().filter(|(_, rows)| !rows.is_empty()) {
        let _ = write!(text, "\n@{provider}\n");
        for row in rows {
            text += &row.line();
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "agent-models 1 2026-01-02\norigin by hand\n";

    #[test]
    fn only_a_whole_catalogue_is_taken() {
        for (text, why) in [
            ("", "does not begin"),
            ("{\"openai\": {}}", "does not begin"),
            ("agent-models 2 2026-01-02\norigin x\n@openai\nm w=1\n", "does not begin"),
            ("agent-models 1 yesterday\norigin x\n", "no date"),
            ("agent-models 1 2026-01-02\n@openai\nm w=1\n", "second line"),
            ("agent-models 1 2026-01-02\norigin \u{1b}[31m\n", "not a line of text"),
            ("agent-models 1 2026-01-02\norigin x\n", "no rows"),
            ("agent-models 1 2026-01-02\norigin x\nm w=1\n", "line 3: it comes before any provider"),
            ("agent-models 1 2026-01-02\norigin x\n@evil.example\nm w=1\n", "line 3: `evil.example`"),
            ("agent-models 1 2026-01-02\norigin x\n@openai responses\nm w=1\n", "line 3"),
            ("agent-models 1 2026-01-02\norigin x\n@openai\nm w=1\nm w=1 h=evil\n", "line 5: `h=evil`"),
        ] {
            let said = CatalogueText::open(text).and_then(|table| table.check()).expect_err(text);
            assert!(said.contains(why), "{text:?}: {said}");
        }
    }

    #[test]
    fn a_row_is_found_in_its_section_alone() {
        let text = format!("{HEAD}@openai\nm w=1\nM-2 w=2\n\n@xai\nm w=3\n");
        let table = CatalogueText::open(&text).expect("it has a head");
        assert_eq!(table.check(), Ok(3));
        let window = |provider, id| table.find(provider, id).map(|facts| facts.window);
        assert_eq!(window("openai", "m"), Some(1));
        assert_eq!(window("xai", "m"), Some(3));
        assert_eq!(window("openai", "m-2"), Some(2), "in any case");
        assert_eq!(window("openai", "m-"), None);
        assert_eq!(window("xai", "m-2"), None);
        assert_eq!(window("groq", "m"), None);
        let sections = [("openai", table.rows("openai").collect()), ("xai", table.rows("xai").collect())];
        assert_eq!(write_catalogue(table.date, table.origin, &sections), text.replacen('@', "\n@", 1));
    }
}
