//! Hunks, the same in both forms: `@@` with numbers or a line to search below, then unchanged, removed and added
//! lines.

use super::{HunkLine, PatchError, PatchHunk, PatchLines};

/// All hunks up to the next file, or to the end.
pub(super) fn parse_hunks<'a>(lines: &mut PatchLines<'a>) -> Result<Vec<PatchHunk<'a>>, PatchError> {
    let mut hunks = Vec::new();
    while let Some(line) = lines.peek() {
        let bare = lines.in_envelope && line.starts_with([' ', '+', '-']);
        if !(line.starts_with("@@") || bare) {
            break;
        }
        hunks.push(parse_hunk(lines)?);
        lines.skip_blank();
    }
    Ok(hunks)
}

fn parse_hunk<'a>(lines: &mut PatchLines<'a>) -> Result<PatchHunk<'a>, PatchError> {
    let mut hunk = PatchHunk { line: lines.number(), ..PatchHunk::default() };
    let mut owed = (0, 0);
    while let Some(line) = lines.peek().filter(|line| line.starts_with("@@")) {
        match parse_numbers(line) {
            Some((start, counts)) => (hunk.start, owed) = (Some(start), counts),
            None => {
                let heading = line.trim_matches('@').trim();
                hunk.headings.extend(Some(heading).filter(|heading| !heading.is_empty()));
            }
        }
        lines.next();
    }
    // Empty lines: at the end of a hunk they only separate it from what follows.
    let mut empty = 0;
    while let Some(line) = lines.peek() {
        let all_there = owed == (0, 0);
        let sure = all_there || line.starts_with("--- a/") || line.starts_with("--- /dev/null");
        let is_signature = all_there && hunk.start.is_some() && line == "-- ";
        if is_signature || sure && lines.names_follow() {
            break;
        }
        let kind = line.as_bytes().first();
        let (parsed, old, new) = match kind {
            None => (Some(HunkLine::Same("")), 1, 1),
            Some(b' ') => (Some(HunkLine::Same(&line[1..])), 1, 1),
            Some(b'-') => (Some(HunkLine::Old(&line[1..])), 1, 0),
            Some(b'+') => (Some(HunkLine::New(&line[1..])), 0, 1),
            // `\ No newline at end of file`
            Some(b'\\') => (None, 0, 0),
            Some(_) => break,
        };
        match parsed {
            Some(line) => hunk.lines.push(line),
            None => {
                let last = hunk.lines.last();
                hunk.old_unended |= matches!(last, Some(HunkLine::Old(_) | HunkLine::Same(_)));
                hunk.new_unended |= matches!(last, Some(HunkLine::New(_) | HunkLine::Same(_)));
            }
        }
        empty = if kind.is_none() { empty + 1 } else { 0 };
        owed = (owed.0.saturating_sub(old), owed.1.saturating_sub(new));
        lines.next();
    }
    hunk.lines.truncate(hunk.lines.len() - empty);
    if lines.peek().is_some_and(|line| line.trim_end() == "*** End of File") {
        hunk.at_end = true;
        lines.next();
    }
    if hunk.lines.iter().all(|line| matches!(line, HunkLine::Same(_))) {
        return PatchError::at(hunk.line, "this hunk changes nothing: no line begins with - or +");
    }
    Ok(hunk)
}

/// `@@ -START[,COUNT] +START[,COUNT] @@`: the old start, and both counts.
fn parse_numbers(line: &str) -> Option<(usize, (usize, usize))> {
    let (old, new) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let range = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.trim().parse::<usize>().ok()?, count.trim().parse::<usize>().ok()?))
    };
    let new = new.split_once(" @@").map_or(new, |(range, _)| range);
    let ((start, old), (_, new)) = (range(old)?, range(new)?);
    // A passage without old lines comes after the named line.
    let start = start + usize::from(old == 0);
    Some((start, (old, new)))
}
