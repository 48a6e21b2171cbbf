//! The envelope: `*** Begin Patch`, sections that add, delete and update files, `*** End Patch`.

use super::{FilePatch, PatchAction, PatchError, PatchLines, hunk};

/// All files up to the end of the envelope.
pub(super) fn parse_files<'a>(lines: &mut PatchLines<'a>) -> Result<Vec<FilePatch<'a>>, PatchError> {
    let mut files = Vec::new();
    loop {
        lines.skip_blank();
        let line = lines.number();
        let Some(head) = lines.peek() else { return lines.wrong("*** End Patch is missing") };
        if head.trim_end() == "*** End Patch" {
            return Ok(files);
        }
        let section = |name: &str| head.strip_prefix(name).map(str::trim).filter(|path| !path.is_empty());
        let (path, action) = if let Some(path) = section("*** Add File:") {
            lines.next();
            (path, PatchAction::Add(read_added(lines)?))
        } else if let Some(path) = section("*** Delete File:") {
            lines.next();
            (path, PatchAction::Delete(Vec::new()))
        } else if let Some(path) = section("*** Update File:") {
            lines.next();
            let to = lines.peek().and_then(|line| line.strip_prefix("*** Move to:")).map(str::trim);
            lines.at += usize::from(to.is_some());
            let hunks = hunk::parse_hunks(lines)?;
            if hunks.is_empty() && to.is_none() {
                return lines.wrong(format!("{path} has no hunk: lines that begin with a space, - or +"));
            }
            (path, PatchAction::Update { to, hunks })
        } else {
            return lines
                .wrong("expected *** Add File: PATH, *** Update File:, *** Delete File: or *** End Patch");
        };
        files.push(FilePatch { path, action, line, sets_mode: false });
    }
}

fn read_added(lines: &mut PatchLines<'_>) -> Result<String, PatchError> {
    let mut content = String::new();
    while let Some(line) = lines.peek().filter(|line| !line.starts_with("*** ")) {
        match line.strip_prefix('+') {
            Some(line) => content.extend([line, "\n"]),
            None if line.trim().is_empty() => {}
            None => return lines.wrong("each line of a new file begins with +"),
        }
        lines.next();
    }
    Ok(content)
}
