//! Unified diffs: git's headers, or `---` and `+++` alone, with any text around them.

use super::{FilePatch, HunkLine, PatchAction, PatchError, PatchHunk, PatchLines, hunk};

/// All files of the diff; the text around it is skipped.
pub(super) fn parse_files<'a>(lines: &mut PatchLines<'a>) -> Result<Vec<FilePatch<'a>>, PatchError> {
    let mut files = Vec::new();
    while lines.peek().is_some() {
        let starts = lines.peek().is_some_and(|line| line.starts_with("diff --git ")) || lines.names_follow();
        if starts {
            files.push(parse_file(lines)?);
        } else if files.is_empty() || lines.peek().is_some_and(|line| !line.starts_with("@@")) {
            // A message before the diff, or a signature after it.
            lines.next();
        } else {
            return lines.wrong("a hunk without the file it belongs to");
        }
    }
    Ok(files)
}

fn parse_file<'a>(lines: &mut PatchLines<'a>) -> Result<FilePatch<'a>, PatchError> {
    let line = lines.number();
    let header = parse_header(lines)?;
    let hunks = hunk::parse_hunks(lines)?;
    let named = header.old.zip(header.new).or(header.renamed.0.zip(header.renamed.1)).or(header.names);
    let Some((old, new)) = named else {
        return PatchError::at(line, "the names of the file are missing");
    };
    let sets_mode = header.sets_mode;
    let done = |path, action| Ok(FilePatch { path, action, line, sets_mode });
    match (old == NOWHERE || header.created, new == NOWHERE || header.deleted) {
        (true, true) => PatchError::at(line, "both names are /dev/null"),
        (true, false) => done(strip_prefix(new, "b/", line)?, PatchAction::Add(join_created(&hunks)?)),
        (false, true) => done(strip_prefix(old, "a/", line)?, PatchAction::Delete(hunks)),
        (false, false) => {
            let (old, new) = match header.renamed {
                // These names have no prefix.
                (Some(old), Some(new)) => (strip_prefix(old, "", line)?, strip_prefix(new, "", line)?),
                _ if old.starts_with("a/") && new.starts_with("b/") => {
                    (strip_prefix(old, "a/", line)?, strip_prefix(new, "b/", line)?)
                }
                _ if old == new => (strip_prefix(old, "", line)?, strip_prefix(new, "", line)?),
                _ => {
                    let message =
                        format!("the names {old} and {new} differ: a move says rename from and rename to");
                    return PatchError::at(line, message);
                }
            };
            let to = (old != new).then_some(new);
            if hunks.is_empty() && to.is_none() && !sets_mode {
                return PatchError::at(line, format!("{old} has no hunk that begins with @@"));
            }
            done(old, PatchAction::Update { to, hunks })
        }
    }
}

/// The lines of git about a file, before its hunks.
#[derive(Default)]
struct GitHeader<'a> {
    names: Option<(&'a str, &'a str)>,
    old: Option<&'a str>,
    new: Option<&'a str>,
    renamed: (Option<&'a str>, Option<&'a str>),
    created: bool,
    deleted: bool,
    sets_mode: bool,
}

const NOWHERE: &str = "/dev/null";

fn parse_header<'a>(lines: &mut PatchLines<'a>) -> Result<GitHeader<'a>, PatchError> {
    let mut header = GitHeader::default();
    let mut first = true;
    while let Some(line) = lines.peek() {
        let after = |prefix: &str| line.strip_prefix(prefix).map(str::trim_end);
        if let Some(names) = after("diff --git ").filter(|_| first) {
            header.names = two_names(names);
        } else if lines.names_follow() {
            let name = |line: &'a str| unquote_name(line[4..].split('\t').next().unwrap_or_default().trim_end());
            header.old = Some(name(line));
            lines.next();
            header.new = lines.next().map(name);
            break;
        } else if let Some(name) = after("rename from ") {
            header.renamed.0 = Some(unquote_name(name));
        } else if let Some(name) = after("rename to ") {
            header.renamed.1 = Some(unquote_name(name));
        } else if line.starts_with("new file mode ") {
            header.created = true;
            header.sets_mode = !line.ends_with("100644");
        } else if line.starts_with("deleted file mode ") {
            header.deleted = true;
        } else if line.starts_with("new mode ") {
            header.sets_mode = true;
        } else if line.starts_with("copy ") {
            return lines.wrong("copies are not done: add the new file with its content");
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return lines.wrong("binary files are not patched");
        } else if !["old mode ", "index ", "similarity index ", "dissimilarity index "]
            .iter()
            .any(|prefix| line.starts_with(prefix))
        {
            break;
        }
        first = false;
        lines.next();
    }
    Ok(header)
}

/// `a/X b/X`: the two names are equal except for their prefix, so they can be separated even with spaces.
fn two_names(names: &str) -> Option<(&str, &str)> {
    let middle = names.len() / 2;
    let (old, new) = (names.get(..middle)?, names.get(middle + 1..)?);
    (old.strip_prefix("a/")? == new.strip_prefix("b/")?).then_some((old, new))
}

fn unquote_name(name: &str) -> &str {
    name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name)
}

/// A name without its prefix.
fn strip_prefix<'a>(name: &'a str, prefix: &str, line: usize) -> Result<&'a str, PatchError> {
    if name.contains('\\') {
        return PatchError::at(
            line,
            "names with escapes are not read in a diff: use *** Update File: with the name as list_dir shows it",
        );
    }
    match name.strip_prefix(prefix).unwrap_or(name) {
        "" => PatchError::at(line, "the name of the file is empty"),
        name => Ok(name),
    }
}

fn join_created(hunks: &[PatchHunk<'_>]) -> Result<String, PatchError> {
    let mut content = String::new();
    for hunk in hunks {
        for line in &hunk.lines {
            match line {
                HunkLine::New(line) => content.extend([*line, "\n"]),
                // Stripped of its plus, an empty line looks like context.
                HunkLine::Same("") => content.push('\n'),
                HunkLine::Same(_) | HunkLine::Old(_) => {
                    return PatchError::at(hunk.line, "a new file has only lines that begin with +");
                }
            }
        }
    }
    if hunks.last().is_some_and(|hunk| hunk.new_unended) {
        content.pop();
    }
    Ok(content)
}
