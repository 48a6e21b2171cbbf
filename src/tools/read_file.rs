//! `read_file`: reads a part of a text file with its line numbers.
//!
//! Small files are read whole. Once all their lines were shown, the ledger lets them be overwritten. Large ones are
//! streamed: only the wanted lines are held in memory, however long the file or a line is.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::output::{ToolError, ToolOutput};
use crate::base::text;
use crate::config::Permission;
use crate::model::ToolDefinition;

use super::aside::{AsideContext, call_aside};
use super::files::encoding::TextEncoding;
use super::files::{self, SNIFFED_BYTES, WHOLE_BYTES};
use super::{CallContext, Tool, ToolFuture, count_noun, define_tool, text_of};

const MOST_LINES: u64 = 2000;
const MOST_BYTES: usize = 50 * 1024;
/// A line longer than this is cut, with a note.
const LINE_BYTES: usize = 2000;
const BOM: char = '\u{feff}';

/// `read_file`: the text of a file, a window of lines at a time.
pub struct ReadFile(ToolDefinition);

#[derive(Debug, Deserialize)]
struct ReadFileArguments {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

impl ReadFile {
    pub fn new() -> Self {
        Self(ToolDefinition {
            advice: "Call it before you change a file or speak about it. Long files: go on with offset.",
            returns: "{path, text, first_line, lines, total_lines}",
            reads: Some("path"),
            ..define_tool(
                "read_file",
                "Reads a text file. Returns `number<tab>line`, at most 2000 lines or 50 KB, and how to go on.",
                (Permission::Read, &[]),
                json!({
                    "path": { "type": "string" },
                    "offset": { "type": "integer", "description": "First line, from 1" },
                    "limit": { "type": "integer" },
                }),
                &["path"],
            )
        })
    }
}

impl Tool for ReadFile {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn subject(&self, arguments: &Value) -> String {
        let path = text_of(arguments, "path").unwrap_or_default();
        match arguments.get("offset").and_then(Value::as_u64) {
            Some(offset) => format!("{path}:{offset}"),
            None => path.to_owned(),
        }
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        call_aside(given, context, read_lines)
    }
}

fn read_lines(arguments: &ReadFileArguments, aside: &AsideContext) -> Result<ToolOutput, ToolError> {
    let AsideContext { reach, files: ledger, budget, whole: as_data, abandoned } = aside;
    let path = arguments.path.as_str();
    let mut found = files::find_file(reach, path)?;
    let shown_path = reach.workspace().display(&found.path);
    let size = found.len();
    let failed = |error| files::word_failure(path, &error);

    let counts_all = size <= WHOLE_BYTES;
    let whole = if counts_all { files::read_whole(path, &mut found)? } else { Vec::new() };
    let (text, encoding) = TextEncoding::transcode(&whole);
    let mut source: Box<dyn BufRead> = if counts_all {
        Box::new(&*text)
    } else {
        Box::new(BufReader::with_capacity(64 * 1024, found.opened.file))
    };

    let mut start = Vec::new();
    source.by_ref().take(SNIFFED_BYTES).read_to_end(&mut start).map_err(failed)?;
    if let Some(kind) = binary_kind(&start) {
        // There is no more to be seen of it.
        if counts_all {
            ledger.remember(&found.path, &whole);
        }
        return Ok(describe_file(&shown_path, kind, size));
    }
    let mut lines = if *as_data {
        let limit = arguments.limit.unwrap_or(u64::MAX).max(1);
        RequestedLines { limit, line_bytes: usize::MAX, ..RequestedLines::new(arguments, *budget, counts_all) }
    } else {
        RequestedLines::new(arguments, MOST_BYTES.min(*budget), counts_all)
    };
    let mut source = start.as_slice().chain(source);
    while lines.next(&mut source).map_err(failed)? {
        abandoned.check()?;
    }
    if let Some(total) = lines.total.filter(|_| counts_all) {
        ledger.remember_lines(&found.path, &whole, &(lines.first..lines.first + lines.taken), total);
    }
    lines.output(&shown_path, encoding)
}

/// Iterates over the lines and keeps the requested ones, as far as the budget allows.
#[derive(Default)]
struct RequestedLines {
    first: u64,
    limit: u64,
    budget: usize,
    line_bytes: usize,
    /// Continue to the end after the last wanted line, to know the total.
    counts_all: bool,
    /// Lines begun so far.
    number: u64,
    observation: String,
    /// The same lines as they are in the file.
    text: String,
    taken: u64,
    /// There are lines after the last one taken.
    more: bool,
    /// The number of lines, once the end was reached.
    total: Option<u64>,
    cut: u64,
    invalid: bool,
}

impl RequestedLines {
    fn new(arguments: &ReadFileArguments, budget: usize, counts_all: bool) -> Self {
        Self {
            first: arguments.offset.unwrap_or(1).max(1),
            limit: arguments.limit.unwrap_or(MOST_LINES).max(1),
            budget,
            line_bytes: LINE_BYTES,
            counts_all,
            ..Self::default()
        }
    }

    /// Takes one line; returns false if there is nothing more to do.
    fn next(&mut self, source: &mut impl BufRead) -> std::io::Result<bool> {
        let mut kept = Vec::new();
        let full = self.more || self.taken >= self.limit;
        let wanted = !full && self.number + 1 >= self.first;
        let Some(line) = read_line(source, if wanted { self.line_bytes } else { 0 }, &mut kept)? else {
            self.total = Some(self.number);
            return Ok(false);
        };
        self.number += 1;
        if wanted {
            self.take(&kept, line);
        } else if full {
            self.more = true;
            return Ok(self.counts_all);
        }
        Ok(true)
    }

    fn take(&mut self, mut line: &[u8], FileLine { length, ended }: FileLine) {
        let cut = length > line.len() as u64;
        if cut {
            // A character that the cut split is not an error in the file.
            let end = std::str::from_utf8(line).map_or_else(
                |error| if error.error_len().is_none() { error.valid_up_to() } else { line.len() },
                str::len,
            );
            line = &line[..end];
        }
        let text = String::from_utf8_lossy(line);
        let bare = text.strip_suffix('\r').unwrap_or(&text);
        let bare = bare.strip_prefix(BOM).filter(|_| self.number == 1).unwrap_or(bare);
        let mut shown = format!("{}\t{bare}", self.number);
        if cut {
            let _ = write!(shown, "… [line cut: {length} bytes]");
        }
        if self.taken > 0 && self.observation.len() + shown.len() + 1 > self.budget {
            self.more = true;
            return;
        }
        self.invalid |= matches!(text, std::borrow::Cow::Owned(_));
        self.cut += u64::from(cut);
        self.observation += &shown;
        self.observation.push('\n');
        self.text += &text;
        self.text += if ended { "\n" } else { "" };
        self.taken += 1;
    }

    fn output(mut self, path: &str, encoding: TextEncoding) -> Result<ToolOutput, ToolError> {
        let total = self.total;
        let last = self.first + self.taken.saturating_sub(1);
        match (self.taken, total) {
            (0, Some(0)) => self.observation = format!("[{path} is empty]\n"),
            (0, Some(total)) => {
                let lines = count_noun(total, "line", "lines");
                return Err(ToolError::parameter(format!(
                    "{path} has {lines}: offset {} is behind the end",
                    self.first
                )));
            }
            _ => {}
        }
        if self.more {
            let of = total.map_or_else(|| "more follow".to_owned(), |total| format!("of {total}"));
            let _ =
                writeln!(self.observation, "[lines {}-{last} {of}; go on with offset={}]", self.first, last + 1);
        }
        if self.invalid {
            self.observation += "[not UTF-8: bytes that are not are shown as \u{fffd}]\n";
        }
        if encoding != TextEncoding::Utf8 {
            let _ = writeln!(self.observation, "[written in {}: an edit keeps that]", encoding.name());
        }
        let whole = self.first == 1 && !self.more;
        let lines = count_noun(self.taken, "line", "lines");
        Ok(ToolOutput {
            result: json!({
                "path": path, "text": self.text, "first_line": self.first, "lines": self.taken, "total_lines": total,
            }),
            observation: self.observation.trim_end_matches('\n').to_owned(),
            summary: match total {
                Some(total) if !whole => format!("{lines} of {total}"),
                _ => lines,
            },
            truncated: self.more || self.cut > 0,
            ..ToolOutput::default()
        })
    }
}

/// One line of a file.
#[derive(Clone, Copy)]
struct FileLine {
    /// Bytes without the line feed.
    length: u64,
    /// True if a line feed ends it. Only the last line may lack one.
    ended: bool,
}

/// Reads through the next line feed, and keeps the first `keep` bytes of the line without it. `None` at the end of
/// the file.
fn read_line(source: &mut impl BufRead, keep: usize, line: &mut Vec<u8>) -> std::io::Result<Option<FileLine>> {
    let mut length = None;
    loop {
        let chunk = source.fill_buf()?;
        if chunk.is_empty() {
            return Ok(length.map(|length| FileLine { length, ended: false }));
        }
        let feed = chunk.iter().position(|byte| *byte == b'\n');
        let content = &chunk[..feed.unwrap_or(chunk.len())];
        line.extend_from_slice(&content[..content.len().min(keep - line.len().min(keep))]);
        let sum = length.unwrap_or(0) + content.len() as u64;
        length = Some(sum);
        let used = content.len() + usize::from(feed.is_some());
        source.consume(used);
        if feed.is_some() {
            return Ok(Some(FileLine { length: sum, ended: true }));
        }
    }
}

fn describe_file(path: &str, kind: &str, bytes: u64) -> ToolOutput {
    let size = files::format_size(bytes);
    let other_way = if kind == PDF {
        format!("; `pdftotext {path} -` prints its text, if it is installed")
    } else {
        String::new()
    };
    ToolOutput {
        result: json!({ "path": path, "binary": kind, "bytes": bytes }),
        observation: format!("[{path} is not text: {kind}, {size}; its content is not shown{other_way}]"),
        summary: text::one_line(&format!("{kind}, {size}"), 60),
        truncated: true,
        ..ToolOutput::default()
    }
}

const PDF: &str = "PDF document";

/// The kind of binary file that begins like this; `None` for text.
fn binary_kind(start: &[u8]) -> Option<&'static str> {
    const MAGIC: [(usize, &[u8], &str); 26] = [
        (0, b"\x89PNG\r\n\x1a\n", "PNG image"),
        (0, b"\xff\xd8\xff", "JPEG image"),
        (0, b"GIF8", "GIF image"),
        (8, b"WEBP", "WebP image"),
        (8, b"WAVE", "WAV audio"),
        (0, b"%PDF-", PDF),
        (0, b"PK\x03\x04", "ZIP archive (or a document or package in one)"),
        (0, b"\x1f\x8b", "gzip data"),
        (0, b"BZh", "bzip2 data"),
        (0, b"\xfd7zXZ\0", "xz data"),
        (0, b"\x28\xb5\x2f\xfd", "Zstandard data"),
        (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
        (257, b"ustar", "tar archive"),
        (0, b"\x7fELF", "ELF program or library"),
        (0, b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
        (0, b"\xca\xfe\xba\xbe", "Java class or Mach-O universal binary"),
        (0, b"MZ", "Windows program or library"),
        (0, b"\0asm", "WebAssembly module"),
        (0, b"SQLite format 3\0", "SQLite database"),
        (0, b"OggS", "Ogg media"),
        (0, b"fLaC", "FLAC audio"),
        (0, b"ID3", "MP3 audio"),
        (4, b"ftyp", "MP4 media"),
        (0, b"wOF2", "WOFF2 font"),
        (0, b"\xff\xfe", "UTF-16 text"),
        (0, b"\xfe\xff", "UTF-16 text"),
    ];
    let known = MAGIC.iter().find(|(at, magic, _)| start.get(*at..).is_some_and(|rest| rest.starts_with(magic)));
    // Some of these magic numbers also begin ordinary texts; a zero byte and non-ASCII ones do not.
    let telling = known.is_some_and(|(_, magic, _)| !magic.is_ascii() || *magic == b"%PDF-");
    let is_binary = telling || start.contains(&0);
    is_binary.then(|| known.map_or("binary data", |(_, _, kind)| kind))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Place;
    use super::*;

    fn tool() -> ReadFile {
        ReadFile::new()
    }

    #[test]
    fn lines_have_numbers() {
        let place = Place::with(&[("a.txt", "one\n中文 🦀\nthree")]);
        let output = place.call(&tool(), json!({ "path": "a.txt" })).expect("the file can be read");
        assert_eq!(output.observation, "1\tone\n2\t中文 🦀\n3\tthree");
        assert_eq!(output.summary, "3 lines");
        assert_eq!((&output.result["lines"], &output.result["total_lines"]), (&json!(3), &json!(3)));
        assert!(!output.truncated);
    }

    #[test]
    fn a_part_says_how_to_go_on() {
        let place = Place::with(&[("a.txt", "1\n2\n3\n4\n5\n")]);
        let read = |arguments| place.read(&tool(), arguments);
        assert_eq!(
            read(json!({ "path": "a.txt", "offset": 2, "limit": 2 })),
            "2\t2\n3\t3\n[lines 2-3 of 5; go on with offset=4]"
        );
        assert_eq!(read(json!({ "path": "a.txt", "offset": 5, "limit": 2 })), "5\t5");
        let error = place.fail(&tool(), json!({ "path": "a.txt", "offset": 9 }));
        assert_eq!(error, "a.txt has 5 lines: offset 9 is behind the end");
    }

    #[test]
    fn the_budget_and_the_line_limit_hold() {
        let place = Place { max_tokens: 1000, ..Place::new() };
        place.put("wide", format!("{}\n", "x".repeat(99)).repeat(500));
        place.put("long", "\n".repeat(5000));
        let wide = place.read(&tool(), json!({ "path": "wide" }));
        assert!(wide.len() <= 4000 && wide.ends_with("of 500; go on with offset=37]"), "{wide}");
        let place = Place { max_tokens: 100_000, ..place };
        assert!(
            place
                .read(&tool(), json!({ "path": "long" }))
                .ends_with("[lines 1-2000 of 5000; go on with offset=2001]")
        );
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let place = Place::with(&[("a.txt", &"中".repeat(100_000))]);
        let output = place.call(&tool(), json!({ "path": "a.txt" })).expect("the file can be read");
        assert!(output.observation.ends_with("中… [line cut: 300000 bytes]"), "{}", output.observation);
        assert!(output.truncated && !output.observation.contains('\u{fffd}'));
    }

    #[test]
    fn a_file_of_any_size_is_read_in_bounded_memory() {
        let place = Place::with(&[("huge", "first\nsecond\n")]);
        let file = std::fs::OpenOptions::new().write(true).open(place.path("huge")).expect("it can be opened");
        // A sparse file: five gigabytes of zeros after the first two lines.
        file.set_len(5 << 30).expect("it can be made longer");
        assert!(place.read(&tool(), json!({ "path": "huge" })).contains("not text: binary data, 5.0 GB"));

        place.put("large", "line\n".repeat(2_000_000));
        let output = place.call(&tool(), json!({ "path": "large", "offset": 1_500_000, "limit": 1 }));
        let output = output.expect("the file can be read");
        let expected = "1500000\tline\n[lines 1500000-1500000 more follow; go on with offset=1500001]";
        assert_eq!(output.observation, expected);
        assert_eq!(output.result["total_lines"], json!(null));
    }

    #[test]
    fn line_endings_byte_order_marks_and_other_encodings() {
        let place = Place::with(&[("crlf", "\u{feff}a\r\nb\r\n"), ("empty", "")]);
        place.put("latin", b"caf\xe9\n");
        place.put("wide", b"\xff\xfea\0b\0");
        assert_eq!(place.read(&tool(), json!({ "path": "crlf" })), "1\ta\n2\tb");
        assert_eq!(place.read(&tool(), json!({ "path": "empty" })), "[empty is empty]");
        place.put("mixed", b"caf\xe9 \xc3\xa9 \x81\n");
        place.put("paper", b"%PDF-1.7\n");
        let read = |path: &str| place.read(&tool(), json!({ "path": path }));
        assert_eq!(read("latin"), "1\tcafé\n[written in Windows-1252: an edit keeps that]");
        assert_eq!(read("wide"), "1\tab\n[written in UTF-16: an edit keeps that]");
        assert!(read("mixed").ends_with("[not UTF-8: bytes that are not are shown as \u{fffd}]"));
        assert!(read("paper").contains("`pdftotext paper -` prints its text"));
    }

    #[test]
    fn what_is_no_file_says_so() {
        let place = Place::with(&[("src/main.rs", "")]);
        assert_eq!(
            place.fail(&tool(), json!({ "path": "src/mian.rs" })),
            "src/mian.rs does not exist; near it: src/main.rs"
        );
        assert_eq!(
            place.fail(&tool(), json!({ "path": "no/such" })),
            "no/such does not exist, nor does the directory no"
        );
        assert!(place.fail(&tool(), json!({ "path": "src" })).contains("list_dir"));
        assert!(place.fail(&tool(), json!({ "path": "src/main.rs/x" })).contains("not a directory"));
        assert!(place.fail(&tool(), json!({ "path": "/dev/zero" })).contains("is a device"));
        assert!(place.fail(&tool(), json!({ "path": "a\0b" })).contains("a\0b"));
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_is_not_opened() {
        let place = Place::new();
        let made = std::process::Command::new("mkfifo").arg(place.path("pipe")).status();
        assert!(made.expect("mkfifo exists").success());
        assert_eq!(place.fail(&tool(), json!({ "path": "pipe" })), "pipe is a FIFO, not a file: it is not opened");
    }

    #[test]
    fn reading_makes_a_file_familiar() {
        let place = Place::with(&[("a.txt", "one\n")]);
        place.read(&ReadFile::new(), json!({ "path": "a.txt" }));
        let path = place.workspace.resolve("a.txt").path;
        assert_eq!(place.files.familiarity(&path, b"one\n"), crate::conversation::knowledge::Familiarity::Current);
    }
}
