//! `grep`: finds lines that match a regular expression, using ripgrep's crates.
//!
//! The walk is parallel but the output is deterministic: matches are ordered by path, and only the first ones are
//! kept, so memory is bounded and the same search always shows the same lines. All matches are counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::output::{ToolError, ToolOutput};
use crate::base::text;
use crate::config::Permission;
use crate::files::disk::{self, Dir, DirEntry, DirEntryKind, Opened};
use crate::files::workspace::Workspace;
use crate::model::ToolDefinition;
use crate::safety::Reach;

use super::aside::{Abandoned, AsideContext, call_aside};
use super::files::encoding::TextEncoding;
use super::files::walk::{SearchPattern, WalkGaps, walk_files};
use super::files::{self, SNIFFED_BYTES, WHOLE_BYTES};
use super::{CallContext, Tool, ToolFuture, count_noun, define_tool, text_of};

const DEFAULT_LIMIT: usize = 100;
const MOST_CONTEXT: usize = 20;
/// A line longer than this is cut to the part around its match.
const LINE_BYTES: usize = 300;
/// A file with a longer line than this is not text worth searching.
const MOST_LINE_BYTES: usize = 16 * 1024 * 1024;
const SPANNING: &str = "a pattern of several lines searches files of up to";

/// `grep`: the lines that match a pattern.
pub struct Grep(ToolDefinition);

#[derive(Debug, Deserialize)]
struct GrepArguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    ignore_case: Option<bool>,
    context: Option<usize>,
    limit: Option<usize>,
}

impl Grep {
    /// Compiles nothing until it is called.
    pub fn new() -> Self {
        Self(ToolDefinition {
            advice: "Example: {\"pattern\": \"fn parse\\\\(\", \"glob\": \"*.rs\"}: escape ( ) [ ] { } . * + ? where you mean them.",
            returns: "{matches: [{path, line, text}], total, files}",
            reads: Some("path"),
            ..define_tool(
                "grep",
                "Searches file contents. Returns paths, each with its matches as `line:text`; honours \
                 .gitignore, skips binary files.",
                (Permission::Read, &[]),
                json!({
                    "pattern": { "type": "string", "description": "Rust regex" },
                    "path": { "type": "string" },
                    "glob": { "type": "string" },
                    "ignore_case": { "type": "boolean" },
                    "context": { "type": "integer" },
                    "limit": { "type": "integer", "description": "100 unless given" },
                }),
                &["pattern"],
            )
        })
    }
}

impl Tool for Grep {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn subject(&self, arguments: &Value) -> String {
        let pattern = text::one_line(text_of(arguments, "pattern").unwrap_or_default(), 60);
        text_of(arguments, "path").map_or_else(|| pattern.clone(), |path| format!("{pattern} in {path}"))
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        call_aside(given, context, search_files)
    }
}

fn search_files(arguments: &GrepArguments, aside: &AsideContext) -> Result<ToolOutput, ToolError> {
    let AsideContext { reach, budget, abandoned, whole, .. } = aside;
    let path = arguments.path.as_deref().unwrap_or(".");
    let start = files::find_path(reach, path)?;
    files::refuse_special(path, start.facts.kind)?;
    let search = GrepSearch {
        matcher: build_matcher(&arguments.pattern, arguments.ignore_case.unwrap_or(false))?,
        spans_lines: spans_lines(&arguments.pattern),
        only: arguments.glob.as_deref().map(SearchPattern::new).transpose()?,
        context: arguments.context.unwrap_or(0).min(MOST_CONTEXT),
        limit: arguments.limit.unwrap_or(if *whole { usize::MAX } else { DEFAULT_LIMIT }),
        root: &start.path,
        found: Mutex::default(),
    };
    if start.facts.kind == DirEntryKind::File {
        search.file(&mut search.searcher(), &start.path, disk::open_file(&start.path));
    } else {
        search.search_below(reach, abandoned);
    }
    abandoned.check()?;
    let found = search.found.into_inner().expect("no holder of the lock panics");
    Ok(found.output(reach.workspace(), &arguments.pattern, search.limit, *budget))
}

/// # Errors
/// The pattern is not a regular expression; the error gives the reason, and the way to search for the literal text.
fn build_matcher(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(ignore_case).multi_line(true).crlf(!spans_lines(pattern));
    builder.build(pattern).map_err(|error| {
        let literal = escape_literal(pattern);
        ToolError::parameter(format!(
            "not a valid regular expression: {error}\nto search for this very text, write {literal}"
        ))
    })
}

/// True if a match may have more than one line. Such a search needs each file in memory.
fn spans_lines(pattern: &str) -> bool {
    pattern.contains('\n') || pattern.contains("\\n") || pattern.contains("(?s")
}

fn escape_literal(literal: &str) -> String {
    let backslash = |c| r"\.+*?()|[]{}^$#&-~".contains(c).then_some('\\');
    literal.chars().flat_map(|c| backslash(c).into_iter().chain([c])).collect()
}

struct GrepSearch<'a> {
    matcher: RegexMatcher,
    spans_lines: bool,
    only: Option<SearchPattern>,
    context: usize,
    limit: usize,
    root: &'a Path,
    found: Mutex<GrepMatches>,
}

impl GrepSearch<'_> {
    fn searcher(&self) -> Searcher {
        let end = if self.spans_lines { LineTerminator::byte(b'\n') } else { LineTerminator::crlf() };
        SearcherBuilder::new()
            .line_terminator(end)
            .multi_line(self.spans_lines)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MOST_LINE_BYTES))
            .before_context(self.context)
            .after_context(self.context)
            .build()
    }

    fn search_below(&self, reach: &Reach, abandoned: &Abandoned) {
        let gaps = walk_files(self.root, reach, abandoned, || {
            let mut searcher = self.searcher();
            move |dir: &Dir, entry: &DirEntry, path: PathBuf| {
                if entry.kind == DirEntryKind::File
                    && self.only.as_ref().is_none_or(|only| only.matches(self.root, &path))
                {
                    self.file(&mut searcher, &path, dir.file(&entry.name));
                }
            }
        });
        self.lock_found().gaps = gaps;
    }

    fn file(&self, searcher: &mut Searcher, path: &Path, opened: io::Result<Opened>) {
        let mut hits =
            Hits { matcher: &self.matcher, limit: self.limit, lines: Vec::new(), matches: 0, binary: false };
        let outcome = opened.and_then(|mut opened| {
            let mut bytes = opened.read(SNIFFED_BYTES)?;
            // What is read whole is text as `read_file` shows it. The searcher itself knows UTF-16 and zero bytes.
            if opened.facts.len <= WHOLE_BYTES && !bytes.contains(&0) {
                bytes.append(&mut opened.read(WHOLE_BYTES)?);
            }
            let (text, _) = TextEncoding::transcode(&bytes);
            let source = text.chain(opened.file);
            searcher.search_reader(&self.matcher, source, &mut hits).map_err(|error| self.explain(error))
        });
        if let Err(error) = outcome {
            self.lock_found().unreadable.insert(path.to_path_buf(), error);
        } else if hits.matches > 0 && !hits.binary {
            self.lock_found().add(path, hits.lines, hits.matches, self.limit);
        }
    }

    /// Words the limit of the searcher, which is its only error of this kind.
    fn explain(&self, error: io::Error) -> io::Error {
        let most = files::format_size(MOST_LINE_BYTES as u64);
        match error.kind() {
            io::ErrorKind::Other if self.spans_lines => io::Error::other(format!("{SPANNING} {most}")),
            io::ErrorKind::Other => io::Error::other(format!("a line has more than {most}")),
            _ => error,
        }
    }

    fn lock_found(&self) -> MutexGuard<'_, GrepMatches> {
        self.found.lock().expect("no holder of the lock panics")
    }
}

/// The matches of a search so far: the first ones by path, and the number of all.
#[derive(Debug, Default)]
struct GrepMatches {
    files: BTreeMap<PathBuf, Vec<GrepLine>>,
    /// Matches in `files`.
    kept: usize,
    matches: u64,
    matching_files: u64,
    unreadable: files::UnreadPaths,
    gaps: WalkGaps,
}

#[derive(Debug)]
struct GrepLine {
    number: u64,
    text: String,
    is_match: bool,
}

impl GrepMatches {
    fn add(&mut self, path: &Path, lines: Vec<GrepLine>, matches: u64, limit: usize) {
        self.matches += matches;
        self.matching_files += 1;
        self.kept += matches_in(&lines);
        self.files.insert(path.to_path_buf(), lines);
        // A file entirely beyond the limit can never be shown.
        while let Some(last) = self.files.last_entry()
            && self.kept - matches_in(last.get()) >= limit
        {
            self.kept -= matches_in(&last.remove());
        }
    }

    fn output(self, workspace: &Workspace, pattern: &str, limit: usize, budget: usize) -> ToolOutput {
        let mut shown = ShownMatches { limit, budget, ..ShownMatches::default() };
        for (path, lines) in &self.files {
            if !shown.file(&workspace.display(path), lines) {
                break;
            }
        }
        let ShownMatches { mut observation, matches, .. } = shown;
        let left_out = self.matches - matches.len() as u64;
        if self.matches == 0 {
            observation =
                format!("[no match for {}; ignored files are not searched]\n", text::one_line(pattern, 80));
        }
        if left_out > 0 {
            let _ = writeln!(
                observation,
                "\n[{} not shown, {} in all in {}: narrow the search]",
                count_noun(left_out, "more match", "more matches"),
                self.matches,
                count_noun(self.matching_files, "file", "files"),
            );
        }
        if let Some(unread) = files::describe_unread(workspace, &self.unreadable, "file", "files") {
            let _ = writeln!(observation, "{unread}");
        }
        observation += &self.gaps.describe(workspace);
        let total = count_noun(self.matches, "match", "matches");
        ToolOutput {
            result: json!({ "matches": matches, "total": self.matches, "files": self.matching_files }),
            observation: observation.trim_end().to_owned(),
            summary: match self.matching_files {
                0 | 1 => total,
                files => format!("{total} in {files} files"),
            },
            truncated: left_out > 0,
            ..ToolOutput::default()
        }
    }
}

fn matches_in(lines: &[GrepLine]) -> usize {
    lines.iter().filter(|line| line.is_match).count()
}

#[derive(Default)]
struct ShownMatches {
    limit: usize,
    budget: usize,
    observation: String,
    matches: Vec<Value>,
}

impl ShownMatches {
    /// Adds the lines of one file; returns false once nothing more fits.
    fn file(&mut self, path: &str, lines: &[GrepLine]) -> bool {
        let mut heading = format!("{}{path}\n", if self.observation.is_empty() { "" } else { "\n" });
        let mut last: Option<u64> = None;
        let mut pending = String::new();
        for line in lines {
            if last.is_some_and(|last| last + 1 < line.number) && lines.iter().any(|line| !line.is_match) {
                pending += "--\n";
            }
            last = Some(line.number);
            let mark = if line.is_match { ':' } else { '-' };
            let _ = writeln!(pending, "{}{mark}{}", line.number, line.text);
            if !line.is_match {
                continue;
            }
            let full = self.matches.len() >= self.limit
                || self.observation.len() + heading.len() + pending.len() > self.budget;
            if full {
                return false;
            }
            self.observation += &std::mem::take(&mut heading);
            self.observation += &std::mem::take(&mut pending);
            self.matches.push(json!({ "path": path, "line": line.number, "text": line.text }));
        }
        // Context after the last match.
        let fits = self.observation.len() + pending.len() <= self.budget;
        if fits {
            self.observation += &pending;
        }
        fits
    }
}

/// Receives the lines of one file.
struct Hits<'a> {
    matcher: &'a RegexMatcher,
    limit: usize,
    lines: Vec<GrepLine>,
    matches: u64,
    binary: bool,
}

impl Hits<'_> {
    fn keep(&mut self, number: Option<u64>, bytes: &[u8], is_match: bool) {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let around = if is_match && line.len() > LINE_BYTES {
            self.matcher.find(line).ok().flatten().map_or(0, |found| found.start())
        } else {
            0
        };
        let text = cut_line(&String::from_utf8_lossy(line), around);
        self.lines.push(GrepLine { number: number.unwrap_or(0), text, is_match });
    }
}

/// The part of a long line around byte `at`.
fn cut_line(line: &str, at: usize) -> String {
    if line.len() <= LINE_BYTES {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(at.saturating_sub(LINE_BYTES / 3).min(line.len() - LINE_BYTES));
    let shown = text::take_head(&line[start..], LINE_BYTES);
    let end = start + shown.len();
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
    format!("{before}{shown}{after} [line cut: {} bytes]", line.len())
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        if self.matches <= self.limit as u64 {
            // The further lines of a match are shown like its surroundings.
            for (line, number) in found.lines().zip(found.line_number().unwrap_or(0)..) {
                self.keep(Some(number), line, Some(number) == found.line_number());
            }
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        // Beyond the limit only the lines that follow its last match are taken.
        if self.matches <= self.limit as u64 {
            self.keep(context.line_number(), context.bytes(), false);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _searcher: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.binary |= end.binary_byte_offset().is_some();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Place;
    use super::*;

    #[test]
    fn matches_stand_under_their_file() {
        let place = Place::with(&[
            ("b.rs", "fn two() {}\r\n"),
            ("a.rs", "// 中文\nfn one() {}\n\nfn uno() {}\n"),
            ("target/c.rs", "fn three() {}\n"),
            (".gitignore", "target\n"),
            ("d.txt", "fn\n"),
        ]);
        place.put("binary.rs", b"fn \0");
        let grep = |arguments| place.read(&Grep::new(), arguments);
        assert_eq!(
            grep(json!({ "pattern": r"^fn \w+\(\) \{\}$", "glob": "*.rs" })),
            "a.rs\n2:fn one() {}\n4:fn uno() {}\n\nb.rs\n1:fn two() {}"
        );
        assert_eq!(
            grep(json!({ "pattern": "FN UNO", "ignore_case": true, "path": "a.rs" })),
            "a.rs\n4:fn uno() {}"
        );
        assert_eq!(grep(json!({ "pattern": "文" })), "a.rs\n1:// 中文");
        assert_eq!(grep(json!({ "pattern": "three", "path": "target" })), "target/c.rs\n1:fn three() {}");
        assert!(grep(json!({ "pattern": "three" })).starts_with("[no match for three"));
        let output = place.call(&Grep::new(), json!({ "pattern": "fn" })).expect("it can be searched");
        assert_eq!(output.summary, "4 matches in 3 files");
        assert_eq!(output.result["matches"][2], json!({ "path": "b.rs", "line": 1, "text": "fn two() {}" }));
    }

    #[test]
    fn a_file_is_searched_as_the_text_that_read_file_shows() {
        let place = Place::new();
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        place.put("latin", b"a\ncaf\xe9 1\n".repeat(2000));
        place.put("wide", utf16("\u{feff}a\ncafé 2\n"));
        place.put("utf8", "café 3\n");
        place.put("binary", [b"caf\xe9\0".as_slice(), &[b'x'; 9000]].concat());
        let found = place.call(&Grep::new(), json!({ "pattern": "café", "limit": 1 })).expect("it is searched");
        assert_eq!(found.observation.lines().take(2).collect::<Vec<_>>(), ["latin", "2:café 1"]);
        assert_eq!((&found.result["total"], &found.result["files"]), (&json!(2002), &json!(3)));
        let wide = place.read(&Grep::new(), json!({ "pattern": "café", "path": "wide" }));
        assert_eq!(wide, "wide\n2:café 2");
    }

    #[test]
    fn context_lines_are_told_from_matches() {
        let place = Place::with(&[("a", "1\n2\nx\n4\n5\n6\n7\nx\n9\n")]);
        let observation = place.read(&Grep::new(), json!({ "pattern": "x", "context": 1 }));
        assert_eq!(observation, "a\n2-2\n3:x\n4-4\n--\n7-7\n8:x\n9-9");
    }

    #[test]
    fn a_pattern_with_a_line_feed_spans_lines() {
        let place = Place::with(&[("a.rs", "fn one(\n    x: u8,\n) {}\nfn two() {}\n")]);
        let grep =
            |pattern: &str| place.call(&Grep::new(), json!({ "pattern": pattern })).expect("it is searched");
        let spanning = grep(r"fn one\(\n\s+x");
        assert_eq!(spanning.observation, "a.rs\n1:fn one(\n2-    x: u8,");
        assert_eq!(spanning.summary, "1 match");
        assert_eq!(grep("(?s)one.*two").observation, "a.rs\n1:fn one(\n2-    x: u8,\n3-) {}\n4-fn two() {}");
        assert_eq!(grep("one.*two").result["total"], 0);
    }

    #[test]
    fn what_is_left_out_is_counted_and_the_choice_is_stable() {
        let place = Place::new();
        (0..40).for_each(|n| place.put(&format!("f{n:02}"), "x\n".repeat(10)));
        let grep =
            || place.call(&Grep::new(), json!({ "pattern": "x", "limit": 15 })).expect("it can be searched");
        let output = grep();
        assert!(output.observation.starts_with("f00\n1:x\n"), "{}", output.observation);
        assert!(output.observation.ends_with(
            "f01\n1:x\n2:x\n3:x\n4:x\n5:x\n\n[385 more matches not shown, 400 in all in 40 files: narrow the search]"
        ));
        assert!(output.truncated);
        assert_eq!(output, grep());
    }

    #[test]
    fn a_long_line_is_cut_around_its_match() {
        let place = Place::with(&[("a", &format!("{}needle{}", "中".repeat(1000), "文".repeat(1000)))]);
        let observation = place.read(&Grep::new(), json!({ "pattern": "needle" }));
        assert!(
            observation.contains("中needle文") && observation.ends_with("[line cut: 6006 bytes]"),
            "{observation}"
        );
        assert!(observation.len() < 400);
    }

    #[test]
    fn a_bad_expression_says_what_to_write() {
        let place = Place::new();
        let error = place.fail(&Grep::new(), json!({ "pattern": "main(" }));
        assert!(error.contains("unclosed group") && error.ends_with(r"write main\("), "{error}");
        assert!(place.fail(&Grep::new(), json!({ "pattern": "a", "path": "nowhere" })).contains("does not exist"));
        assert!(place.fail(&Grep::new(), json!({ "pattern": "a", "path": "/dev/zero" })).contains("is a device"));
    }

    #[test]
    fn a_file_beyond_the_limits_is_named_with_the_reason() {
        let place = Place::new();
        place.put("big", "x".repeat(MOST_LINE_BYTES + 1));
        let said = |pattern: &str| place.read(&Grep::new(), json!({ "pattern": pattern }));
        assert!(said("y").ends_with("\n[1 file could not be read: big: a line has more than 16.0 MB]"));
        assert!(said("y\n").ends_with("big: a pattern of several lines searches files of up to 16.0 MB]"));
    }

    #[cfg(unix)]
    #[test]
    fn links_and_fifos_are_not_followed() {
        let outside = Place::with(&[("secret", "needle")]);
        let place = Place::with(&[("a", "needle")]);
        std::os::unix::fs::symlink(outside.path(""), place.path("link")).expect("a link can be made");
        let made = std::process::Command::new("mkfifo").arg(place.path("pipe")).status();
        assert!(made.expect("mkfifo exists").success());
        assert_eq!(place.read(&Grep::new(), json!({ "pattern": "needle" })), "a\n1:needle");
    }
}
