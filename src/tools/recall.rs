//! `recall`: reads what the conversation no longer shows by the handle in its notice, or finds it by words. `r1` is the
//! whole text of a result that was cut, from the spill store; `m12` and `c12.1` are an item and the answer to a call,
//! from the log.
//!
//! `r1+20000` is the text of `r1` from its byte 20000 on, which continues a line that is longer than a page. The pages
//! together are the text, byte for byte; bytes that are not UTF-8 are shown as U+FFFD.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{CallContext, Tool, ToolFuture, bytes_for, define_tool, parse_arguments};
use crate::base::long_text::{self, Extent, FoundLine, FoundText, NextPage, TextPage};
use crate::base::output::{ToolError, ToolOutput};
use crate::base::text;
use crate::config::Permission;
use crate::conversation::{Archive, message::Handle, spill::Spill};
use crate::model::ToolDefinition;

/// The lines of a page if no limit is given.
const PAGE: usize = 400;
/// The hits of a search if no limit is given.
const HITS: usize = 40;

pub struct Recall(ToolDefinition);

#[derive(Deserialize)]
struct RecallArguments {
    id: Option<String>,
    query: Option<String>,
    offset: Option<usize>,
    limit: Option<usize>,
}

/// The texts that a conversation left out.
#[derive(Clone, Copy)]
pub struct LeftOut<'a> {
    /// The parts cut from results.
    pub spill: &'a Spill,
    /// The items that are no longer sent.
    pub archive: &'a dyn Archive,
}

/// Returns what the tool finds, for a person: the text of an id, else the lines that contain the words.
///
/// # Errors
/// The id names nothing, or the disk cannot be read; the error is a sentence.
pub fn recall_text(id_or_words: &str, left_out: LeftOut<'_>) -> Result<String, String> {
    const MOST_BYTES: usize = 16 << 20;
    const MOST_HITS: usize = 200;
    let is_id = parse_position(id_or_words).is_some_and(|(handle, _)| is_handle(handle));
    let output = if is_id {
        read_text(id_or_words, Extent { first: 1, lines: usize::MAX, bytes: MOST_BYTES }, left_out)
    } else {
        search_texts(id_or_words, MOST_HITS, MOST_BYTES, left_out)
    };
    output.map(|output| output.observation).map_err(|error| error.message)
}

/// `r1`, `m12`, `c12.1`
fn is_handle(word: &str) -> bool {
    let of_spill = word.strip_prefix('r').is_some_and(|number| number.parse::<u32>().is_ok());
    of_spill || Handle::parse(word).is_some()
}

impl Recall {
    pub fn new() -> Self {
        Self(ToolDefinition {
            advice: "Only for an id that a notice like [… left out; recall id=r1 …] names: {\"id\": \"r1\"}.",
            ..define_tool(
                "recall",
                "Reads what was left out. Give the id in its notice, or a plain query to find lines in it.",
                (Permission::Read, &[]),
                json!({
                    "id": { "type": "string" },
                    "query": { "type": "string" },
                    "offset": { "type": "integer" },
                    "limit": { "type": "integer" },
                }),
                &[],
            )
        })
    }
}

impl Tool for Recall {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn subject(&self, arguments: &Value) -> String {
        let named = |key: &str| arguments[key].as_str().map(str::to_owned);
        named("id").or_else(|| named("query")).unwrap_or_default()
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let RecallArguments { id, query, offset, limit } = parse_arguments(given)?;
            let bytes = bytes_for(context.max_tokens);
            let left_out = LeftOut { spill: context.spill, archive: context.archive };
            match (&id, query.as_deref()) {
                (Some(_), Some(query)) if !query.is_empty() => {
                    Err(ToolError::parameter("Give the id to read a text, or the query to find lines, not both."))
                }
                (Some(id), _) => {
                    let extent =
                        Extent { first: offset.unwrap_or(1).max(1), lines: limit.unwrap_or(PAGE).max(1), bytes };
                    read_text(id, extent, left_out)
                }
                (None, Some(query)) if !query.is_empty() => {
                    search_texts(query, limit.unwrap_or(HITS).max(1), bytes, left_out)
                }
                _ => Err(ToolError::parameter("Give the id of a notice, or a query.")),
            }
        })
    }
}

/// Reads a page of the text that `id` names.
fn read_text(id: &str, extent: Extent, left_out: LeftOut<'_>) -> Result<ToolOutput, ToolError> {
    let (handle, from) = parse_position(id).ok_or_else(|| refuse_unknown(id, left_out))?;
    let page = match find_page(handle, from, extent, left_out) {
        Ok(Some(page)) => page,
        Ok(None) => return Err(refuse_unknown(id, left_out)),
        Err(error) => return Err(ToolError::permanent(format!("{handle} cannot be read: {error}"))),
    };
    // Bytes that are not UTF-8 are replaced here; `page` has them as they are.
    let text = String::from_utf8_lossy(&page.bytes).into_owned();
    let first = extent.first;
    let mut observation = match page.lines {
        0 if first == 1 => format!("{id} has no text."),
        0 => format!("{id} has fewer than {first} lines."),
        _ => text.clone(),
    };
    if let Some(next) = page.next {
        let gap = if observation.ends_with('\n') { "" } else { "\n" };
        let _ = write!(observation, "{gap}{}", goes_on(handle, from, next));
    }
    Ok(ToolOutput {
        result: json!({
            "id": id, "first_line": first, "lines": page.lines, "more": page.next.is_some(), "text": text,
        }),
        observation,
        summary: format!("{} lines of {id}", page.lines),
        truncated: page.next.is_some(),
        ..ToolOutput::default()
    })
}

/// The way to continue. Lines are counted from the byte that the id names; after one, byte positions are clearer.
fn goes_on(handle: &str, from: u64, next: NextPage) -> String {
    let byte = from + next.byte;
    match (next.within_line, from) {
        (true, _) => format!("[this line goes on: id={handle}+{byte}]"),
        (false, 0) => format!("[more follows: offset={}]", next.line),
        (false, _) => format!("[more follows: id={handle}+{byte}]"),
    }
}

/// The handle in an id, and the byte where reading begins: `r1`, `r1+20000`.
fn parse_position(id: &str) -> Option<(&str, u64)> {
    match id.trim().split_once('+') {
        None => Some((id.trim(), 0)),
        Some((handle, from)) => Some((handle, from.parse().ok()?)),
    }
}

/// A page of a text from a byte on; `None` if there is no such text.
fn find_page(handle: &str, from: u64, extent: Extent, left_out: LeftOut<'_>) -> io::Result<Option<TextPage>> {
    let page = if let Some(handle) = Handle::parse(handle) {
        let Some(text) = left_out.archive.read(handle)? else { return Ok(None) };
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        long_text::read_page(text.as_bytes().get(from..).unwrap_or_default(), extent)?
    } else {
        let mut file = match left_out.spill.path(handle).and_then(File::open) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(from))?;
        long_text::read_page(BufReader::with_capacity(1 << 16, file), extent)?
    };
    Ok(Some(page))
}

/// The error that there is no such text, with the existing ids.
fn refuse_unknown(id: &str, left_out: LeftOut<'_>) -> ToolError {
    let numbers = left_out.archive.numbers().into_iter().map(|number| Handle::item(number).to_string());
    let known = [list_ids(left_out.spill.ids()), list_ids(numbers.collect())].into_iter().flatten();
    let known = match known.collect::<Vec<_>>().join("; ") {
        known if known.is_empty() => "nothing was left out yet".to_owned(),
        known => format!("the ids are {known}"),
    };
    // A model that knows of `m12` can derive `c12.1`.
    let calls = if left_out.archive.numbers().is_empty() { "" } else { "; c3.1 is the first result of m3" };
    ToolError::parameter(format!("There is no `{}`: {known}{calls}.", text::one_line(id, 40)))
}

/// `r1, r2`; if there are many, the first and the last.
fn list_ids(ids: Vec<String>) -> Option<String> {
    const MANY: usize = 8;
    match ids.as_slice() {
        [] => None,
        [first, .., last] if ids.len() > MANY => Some(format!("{first} to {last}")),
        _ => Some(ids.join(", ")),
    }
}

fn search_texts(query: &str, limit: usize, bytes: usize, left_out: LeftOut<'_>) -> Result<ToolOutput, ToolError> {
    let failed = |error: io::Error| ToolError::permanent(format!("the search failed: {error}"));
    let cut = left_out.spill.search(query, limit).map_err(failed)?;
    let said = left_out.archive.search(query, limit).map_err(failed)?;
    let hits = |found: &[FoundText]| found.iter().map(FoundText::hits).sum::<usize>();
    // Neither crowds out the other.
    let (of_cut, of_said) = (hits(&cut), hits(&said));
    let most_of_cut = limit.saturating_sub(of_said.min(limit / 2));
    let most_of_said = limit - of_cut.min(most_of_cut);
    let mut list = HitList { bytes, ..HitList::default() };
    let is_whole = list.add(&cut, most_of_cut) & list.add(&said, most_of_said);
    // A search that found as many as were asked for may have stopped early.
    let is_whole = is_whole && of_cut < limit && of_said < limit;
    let HitList { mut observation, found, .. } = list;
    if found.is_empty() {
        observation = format!("Nothing that was left out contains `{}`.", text::one_line(query, 80));
    } else if !is_whole {
        observation += "[there may be more: narrow the query or raise limit]";
    }
    Ok(ToolOutput {
        summary: format!("{} hits", found.len()),
        result: json!({ "hits": found }),
        observation,
        truncated: !is_whole,
        ..ToolOutput::default()
    })
}

/// Hits and their neighbours, as `grep -C1` shows them.
#[derive(Default)]
struct HitList {
    bytes: usize,
    observation: String,
    found: Vec<Value>,
}

impl HitList {
    /// Adds up to `most` hits; returns false if some are left.
    fn add(&mut self, found: &[FoundText], most: usize) -> bool {
        let mut left = most;
        for FoundText { id, rows } in found {
            let mut last = None;
            for row in rows {
                if left == 0 && row.is_hit {
                    return false;
                }
                let line = show_row(id, row);
                if self.observation.len() + line.len() > self.bytes {
                    return false;
                }
                if last != Some(row.line - 1) && !self.observation.is_empty() {
                    self.observation += "--\n";
                }
                last = Some(row.line);
                self.observation += &line;
                if row.is_hit {
                    left -= 1;
                    self.found.push(json!({ "id": id, "line": row.line, "text": row.text }));
                }
            }
        }
        true
    }
}

/// `r1:12: a hit`, `r1-13- a neighbour`, `r1:14: …a part… [id=r1+20000]`.
fn show_row(id: &str, row: &FoundLine) -> String {
    let sign = if row.is_hit { ':' } else { '-' };
    let text = &row.text;
    match row.byte {
        None => format!("{id}{sign}{}{sign} {text}\n", row.line),
        Some(byte) => format!("{id}{sign}{}{sign} …{text}… [id={id}+{byte}]\n", row.line),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::Place;
    use super::*;

    /// A workspace in whose store `r1` holds this text.
    fn kept(text: &str) -> Place {
        let place = Place::new();
        assert_eq!(place.spill.keep(text).id(), Some("r1"));
        place
    }

    /// The texts of all pages, each read as the one before said.
    fn pages(place: &Place, id: &str, limit: usize) -> Vec<String> {
        let (mut pages, mut ask) = (Vec::new(), json!({ "id": id, "limit": limit }));
        loop {
            let output = place.call(&Recall::new(), ask.clone()).expect("it can be read");
            pages.push(output.result["text"].as_str().expect("a text").to_owned());
            if output.result["more"] == false {
                return pages;
            }
            let notice = output.observation.lines().last().expect("a notice").trim_end_matches(']');
            let (_, how) = notice.split_once(": ").expect("how it goes on");
            match how.split_once('=').expect("an argument") {
                ("offset", line) => ask["offset"] = json!(line.parse::<u64>().expect("a number")),
                (_, id) => ask = json!({ "id": id, "limit": limit }),
            }
        }
    }

    #[test]
    fn a_page_says_how_its_text_goes_on() {
        let place = Place { max_tokens: 100, ..kept(&format!("one\ntwo\n{}\nend", "x".repeat(600))) };
        let read = |ask: Value| place.read(&Recall::new(), ask);
        assert_eq!(read(json!({ "id": "r1", "limit": 1 })), "one\n[more follows: offset=2]");
        assert_eq!(read(json!({ "id": "r1" })), "one\ntwo\n[more follows: offset=3]");
        let page = "x".repeat(256);
        let goes_on = |at: usize| format!("{page}\n[this line goes on: id=r1+{at}]");
        assert_eq!(read(json!({ "id": "r1", "offset": 3 })), goes_on(264));
        assert_eq!(read(json!({ "id": "r1+264" })), goes_on(520));
        assert_eq!(read(json!({ "id": "r1+520" })), format!("{}\nend", "x".repeat(88)));
        assert_eq!(read(json!({ "id": "r1+520", "limit": 1 })).lines().last(), Some("[more follows: id=r1+609]"));
        assert_eq!(read(json!({ "id": "r1+609" })), "end");
        assert_eq!(read(json!({ "id": "r1+520", "offset": 2 })), "end");
        assert_eq!(read(json!({ "id": "r1+612" })), "r1+612 has no text.");
        assert_eq!(read(json!({ "id": "r1", "offset": 5 })), "r1 has fewer than 5 lines.");
    }

    #[test]
    fn what_is_no_handle_is_answered_with_those_that_there_are() {
        let place = kept("x");
        for wrong in ["r2", "m1", "c1.1", "../r1", "r1+x", "", "c9"] {
            let message = place.fail(&Recall::new(), json!({ "id": wrong }));
            assert_eq!(message, format!("There is no `{wrong}`: the ids are r1."));
        }
        assert!(place.fail(&Recall::new(), json!({})).contains("or a query"));
        let place = Place::new();
        assert!(place.fail(&Recall::new(), json!({ "id": "r1" })).contains("nothing was left out yet"));
    }

    #[test]
    fn a_hit_comes_with_its_surroundings_and_a_part_of_a_long_line_with_its_byte() {
        let place = kept(&format!("a\nb\nneedle\nc\nd\n{}needle\nlast", "x".repeat(1000)));
        let read = place.read(&Recall::new(), json!({ "query": "NEEDLE" }));
        let [long, at] = ["x".repeat(100), "r1+915".to_owned()];
        let expected =
            format!("r1-2- b\nr1:3: needle\nr1-4- c\nr1-5- d\nr1:6: …{long}needle… [id={at}]\nr1-7- last\n");
        assert_eq!(read, expected);
        assert!(place.read(&Recall::new(), json!({ "id": at })).starts_with(&format!("{long}needle\nlast")));
        let one = place.read(&Recall::new(), json!({ "query": "needle", "limit": 1 }));
        assert_eq!(one, "r1-2- b\nr1:3: needle\nr1-4- c\n[there may be more: narrow the query or raise limit]");
        assert!(
            place.read(&Recall::new(), json!({ "query": "nowhere" })).starts_with("Nothing that was left out")
        );
    }

    #[test]
    fn no_page_is_so_long_that_it_would_be_cut_again() {
        let place = Place { max_tokens: 200, ..kept(&"\"\\\t\u{1}".repeat(3000)) };
        for page in pages(&place, "r1", 9) {
            assert!(json!(page).to_string().len() <= bytes_for(200) + 2, "{}", page.len());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        /// The pages together are the text that was kept.
        #[test]
        fn every_text_is_read_back_byte_for_byte(
            text in "([a-z\"中🦀 ]{0,200}\r?\n?){0,8}([a-z]{0,900})",
            limit in 1_usize..5,
            max_tokens in 1_usize..150,
        ) {
            let place = Place { max_tokens, ..kept(&text) };
            prop_assert_eq!(pages(&place, "r1", limit).concat(), text);
        }
    }
}
