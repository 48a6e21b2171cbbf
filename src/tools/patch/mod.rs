//! A patch as data: the files that it adds, deletes, changes and moves, and the lines of each hunk.
//!
//! It parses two forms: unified diffs (git's headers or plain `---`/`+++`), and the envelope `*** Begin Patch …
//! *** End Patch`. It is pure, and lenient if that is safe: the counts in `@@ -1,3 +1,4 @@` are not trusted, an
//! empty line in a hunk is an empty line of context. Paths are borrowed from the text, so that the policy can
//! judge them before anything is done.

mod envelope;
mod hunk;
pub(super) mod matching;
mod unified;

/// The action of a patch on one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch<'a> {
    pub path: &'a str,
    pub action: PatchAction<'a>,
    /// Its line in the patch, from 1.
    pub line: usize,
    /// True if the patch also sets a file mode, which is ignored.
    pub sets_mode: bool,
}

/// The action on the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchAction<'a> {
    /// A new file with this content.
    Add(String),
    /// The hunks, if any, are its whole content.
    Delete(Vec<PatchHunk<'a>>),
    Update {
        to: Option<&'a str>,
        hunks: Vec<PatchHunk<'a>>,
    },
}

/// One passage that changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchHunk<'a> {
    /// Its line in the patch, from 1.
    pub line: usize,
    /// Lines of the file before the passage, outermost first (`class A`, `fn b()`).
    pub headings: Vec<&'a str>,
    /// The first old line as the patch counts it, from 1; a hint.
    pub start: Option<usize>,
    pub lines: Vec<HunkLine<'a>>,
    /// True if the last old line, the last new line, has no line feed.
    pub old_unended: bool,
    pub new_unended: bool,
    /// True if the passage ends the file.
    pub at_end: bool,
}

/// One line of a hunk, without its line feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HunkLine<'a> {
    Same(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// The reason that a text is not a patch; the line counts from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {message}")]
pub struct PatchError {
    pub line: usize,
    pub message: String,
}

impl PatchError {
    fn at<T>(line: usize, message: impl Into<String>) -> Result<T, Self> {
        Err(Self { line, message: message.into() })
    }
}

impl<'a> FilePatch<'a> {
    /// Every path that is written.
    pub fn paths(&self) -> impl Iterator<Item = &'a str> {
        let to = match self.action {
            PatchAction::Update { to, .. } => to,
            PatchAction::Add(_) | PatchAction::Delete(_) => None,
        };
        std::iter::once(self.path).chain(to)
    }
}

impl<'a> PatchHunk<'a> {
    /// The lines that the file has now.
    pub fn old(&self) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter_map(|line| match line {
            HunkLine::Same(text) | HunkLine::Old(text) => Some(*text),
            HunkLine::New(_) => None,
        })
    }
}

/// Reads a patch.
///
/// # Errors
/// A line cannot be part of a patch; the error names the first one.
pub fn parse_patch(text: &str) -> Result<Vec<FilePatch<'_>>, PatchError> {
    let mut lines = PatchLines::split(text);
    lines.skip_blank();
    let is_around = |line: &str| {
        let line = line.trim_start();
        // A fence, or the line of a shell that passes the patch as a here-document: what comes after the envelope is
        // not read.
        line.starts_with("```") || line.trim_start_matches("apply_patch").trim_start().starts_with("<<")
    };
    if lines.peek().is_some_and(is_around) {
        lines.next();
        lines.skip_blank();
    }
    let files = if lines.peek().is_some_and(|line| line.trim_end() == "*** Begin Patch") {
        lines.next();
        lines.in_envelope = true;
        envelope::parse_files(&mut lines)?
    } else {
        unified::parse_files(&mut lines)?
    };
    if files.is_empty() {
        let forms = "a unified diff (--- a/FILE, +++ b/FILE, @@), or *** Begin Patch … *** End Patch";
        return PatchError::at(1, format!("nothing here changes a file; a patch is {forms}"));
    }
    Ok(files)
}

struct PatchLines<'a> {
    all: Vec<&'a str>,
    at: usize,
    in_envelope: bool,
}

impl<'a> PatchLines<'a> {
    fn split(text: &'a str) -> Self {
        Self { all: text.lines().collect(), at: 0, in_envelope: false }
    }

    fn peek(&self) -> Option<&'a str> {
        self.peek_after(0)
    }

    fn peek_after(&self, count: usize) -> Option<&'a str> {
        self.all.get(self.at + count).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.at += 1;
        Some(line)
    }

    /// The number of the next line, from 1.
    fn number(&self) -> usize {
        self.at + 1
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
    }

    /// True if `--- a/FILE` and `+++ b/FILE` come next. In an envelope such lines belong to a hunk.
    fn names_follow(&self) -> bool {
        let begins = |count, with| self.peek_after(count).is_some_and(|line: &str| line.starts_with(with));
        !self.in_envelope && begins(0, "--- ") && begins(1, "+++ ")
    }

    fn wrong<T>(&self, message: impl Into<String>) -> Result<T, PatchError> {
        PatchError::at(self.number(), message)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One line a file: what becomes of it, and how many lines its hunks have.
    fn told(text: &str) -> String {
        let files = match parse_patch(text) {
            Ok(files) => files,
            Err(error) => return error.to_string(),
        };
        let lines = |hunks: &[PatchHunk<'_>]| {
            hunks.iter().map(|hunk| hunk.lines.len().to_string()).collect::<Vec<_>>().join("+")
        };
        let told = |file: FilePatch<'_>| match file.action {
            PatchAction::Add(content) => format!("add {} {content:?}", file.path),
            PatchAction::Delete(hunks) => format!("delete {} {}", file.path, lines(&hunks)),
            PatchAction::Update { to: None, hunks } => format!("update {} {}", file.path, lines(&hunks)),
            PatchAction::Update { to: Some(to), hunks } => format!("move {} to {to} {}", file.path, lines(&hunks)),
        };
        files.into_iter().map(told).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn both_forms_are_read() {
        let cases = [
            ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ fn x\n a\n-b\n+c\n", "update x 3"),
            ("--- x\t2026-01-01\n+++ x\t2026-01-02\n@@ @@\n-b\n+c\n", "update x 2"),
            (
                "A message.\n\n---\n x | 2 +-\n\ndiff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n+c\n-- \n2.50\n",
                "update x 2",
            ),
            ("```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n+c\n```\n", "update x 2"),
            (
                "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n a\n\n-c\n\n--- a/y\n+++ b/y\n@@ -9,9 +9,9 @@\n-b\n+c\n\n",
                "update x 3; update y 2",
            ),
            ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n-b\n+c\n", "update x 4"),
            ("diff --git a/a b.txt b/a b.txt\nnew file mode 100644\nindex 0..0\n", "add a b.txt \"\""),
            ("--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n", "add x \"a\\nb\""),
            (
                "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-b\n+c\n",
                "move x to y 2",
            ),
            ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", "delete x 1"),
            ("--- \"a/x y\"\n+++ \"b/x y\"\n@@ -1 +1 @@\n-b\n+c\n", "update x y 2"),
            (
                "*** Begin Patch\n*** Add File: d/x\n+a\n+\n*** Delete File: y\n*** End Patch",
                "add d/x \"a\\n\\n\"; delete y ",
            ),
            (
                "*** Begin Patch\n*** Update File: x\n@@ class A\n@@ fn b\n a\n-b\n+c\n@@\n\n-d\n\n*** Update File: y\n*** Move to: z\n*** End Patch\n",
                "update x 3+2; move y to z ",
            ),
            ("*** Begin Patch\n*** Update File: x\n--- a\n+++ b\n*** End of File\n*** End Patch", "update x 2"),
            ("apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: y\n*** End Patch\nEOF\n", "delete y "),
            ("<<EOF\n*** Begin Patch\n*** Delete File: y\n*** End Patch\nEOF\n", "delete y "),
        ];
        for (text, expected) in cases {
            assert_eq!(told(text), expected, "{text}");
            assert_eq!(told(&text.replace('\n', "\r\n")), expected, "CRLF {text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let cases = [
            ("", "line 1 of the patch: nothing here changes a file"),
            ("just words\n", "line 1 of the patch: nothing here changes a file"),
            ("*** Begin Patch\n*** Update File: x\n@@\n-a\n", "line 5 of the patch: *** End Patch is missing"),
            ("*** Begin Patch\n*** Update File: x\n*** End Patch", "line 3 of the patch: x has no hunk"),
            ("*** Begin Patch\n*** Add File: x\na\n*** End Patch", "line 3 of the patch: each line of a new file"),
            ("*** Begin Patch\n*** Rename File: x\n*** End Patch", "line 2 of the patch: expected *** Add File"),
            ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n a\n", "line 3 of the patch: this hunk changes nothing"),
            ("--- a/x\n+++ b/x\n", "line 1 of the patch: x has no hunk"),
            ("--- x.orig\n+++ x\n@@ -1 +1 @@\n-a\n+b\n", "line 1 of the patch: the names x.orig and x differ"),
            ("--- \"a/\\303\"\n+++ \"b/\\303\"\n@@ -1 +1 @@\n-a\n+b\n", "line 1 of the patch: names with escapes"),
            ("diff --git a/x b/x\nGIT binary patch\n", "line 2 of the patch: binary files"),
        ];
        for (text, expected) in cases {
            let told = told(text);
            assert!(told.starts_with(expected), "{text}\n{told}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "(\\*\\*\\* (Begin|End) Patch|\\*\\*\\* (Add|Update|Delete) File: x|@@ ?(-1,2 \\+3 @@)?|--- [ab]/x|\\+\\+\\+ b/|diff --git a/x b/x|[ +-]?é?|\\\\|\n){0,20}") {
            let _ = parse_patch(&text);
        }
    }
}
