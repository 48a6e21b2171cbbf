//! The instructions that a person keeps for agents (`AGENTS.md` of their config directory), and those of a project:
//! `AGENTS.md` in every directory from the git root down to the workspace, or `CLAUDE.md` or `GEMINI.md` if a directory
//! has none.
//!
//! All of them share one budget. The nearest file takes its space first, so that it is never dropped for a distant
//! one; the text runs from the root down, so that the nearest comes last. It is a value in a prompt: it is never
//! rendered, and nothing in it closes its frame.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::present::{break_text_marks, escape_attribute};
use crate::base::text;
use crate::files::file_name;
use crate::files::regular::{Links, read_start};
use crate::files::workspace::Workspace;

/// The most bytes of instructions in a prompt, without the lines that delimit them.
pub const BUDGET: usize = 32 * 1024;
/// The file names that a directory is searched for, in this order.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];

/// The instructions of a project to agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instructions {
    /// Each file between two lines that name it; empty if there is none.
    pub text: String,
    /// The files, from the root down.
    pub files: Vec<PathBuf>,
    /// Files that could not be read, and why.
    pub warnings: Vec<String>,
}

/// One file, as far as it is used.
struct InstructionFile {
    path: PathBuf,
    text: String,
    /// Bytes on disk.
    size: u64,
}

impl Instructions {
    /// Reads them; `own` is the person's config directory. A file that cannot be used is not an error: it is left out, with a warning.
    pub fn read(workspace: &Workspace, own: &Path) -> Self {
        let top = workspace.git_root().unwrap_or(workspace.root());
        let mut warnings = Vec::new();
        let mut found: Vec<InstructionFile> =
            workspace.dirs_up_to_git_root().filter_map(|dir| find_file(dir, top, &mut warnings)).collect();
        // The person's own may lie anywhere, and are the farthest.
        found.extend(find_named(&own.join(NAMES[0]), Path::new("/"), &mut warnings));
        let space = share_space(found.iter().map(|file| file.text.len()));
        let mut sections: Vec<String> = found
            .iter()
            .zip(space)
            .map(|(file, space)| write_section(&workspace.display(&file.path), file, space))
            .collect();
        // Found nearest first; shown from the root down.
        sections.reverse();
        found.reverse();
        Self { text: sections.join("\n\n"), files: found.into_iter().map(|file| file.path).collect(), warnings }
    }
}

/// The number of bytes that each text may have: the first takes what it needs, the others what is left.
fn share_space(sizes: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut left = BUDGET;
    sizes
        .map(|size| {
            let space = size.min(left);
            left -= space;
            space
        })
        .collect()
}

fn write_section(name: &str, file: &InstructionFile, space: usize) -> String {
    let shown = text::take_head(&file.text, space);
    let mut out =
        format!("<instructions file=\"{}\">\n{}", escape_attribute(name), break_text_marks(shown.trim()));
    if shown.len() < file.text.len() {
        let _ =
            write!(out, "\n[cut here: {} of {} bytes are shown; read the file for the rest]", space, file.size);
    }
    out.push_str("\n</instructions>");
    out
}

/// The first file of a directory that can be read and is not blank.
fn find_file(dir: &Path, top: &Path, warnings: &mut Vec<String>) -> Option<InstructionFile> {
    NAMES.iter().map(|name| dir.join(name)).find_map(|path| find_named(&path, top, warnings))
}

fn find_named(path: &Path, top: &Path, warnings: &mut Vec<String>) -> Option<InstructionFile> {
    read_file(path, top).unwrap_or_else(|why| {
        warnings.push(format!("{} is left out: {why}", file_name::quote(path)));
        None
    })
}

/// Reads a file; `None` if it does not exist or is blank. A link may lead to any place below `top`, and only a
/// regular file is opened: a pipe would block.
fn read_file(path: &Path, top: &Path) -> Result<Option<InstructionFile>, String> {
    // Most directories have none, which one system call shows; following links takes one for each directory above.
    let real = match path.symlink_metadata().and_then(|_| crate::files::canonicalize(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        real => real.map_err(|error| error.to_string())?,
    };
    if !real.starts_with(top) {
        return Err(format!("it leads outside {}", file_name::quote(top)));
    }
    // One byte more than can be shown distinguishes a file that fits from one that does not.
    let start = read_start(&real, Links::Refuse, BUDGET as u64 + 1).map_err(|why| format!("it {why}"))?;
    let Some((bytes, size)) = start else { return Ok(None) };
    if bytes.contains(&0) {
        return Err("it is not text".to_owned());
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let file = InstructionFile { path: path.to_path_buf(), text: text.to_owned(), size };
    Ok(Some(file).filter(|file| !file.text.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{BUDGET, Instructions};
    use crate::files::workspace::Workspace;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    fn read_file(workspace: &Path) -> Instructions {
        Instructions::read(&Workspace::open(workspace).expect("a directory"), Path::new("/nowhere"))
    }

    #[test]
    fn from_the_git_root_down_to_the_workspace() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        fs::create_dir(root.join(".git")).expect("a directory");
        write(root, "AGENTS.md", "\u{feff}root {{ rules }}\r\n");
        write(root, "CLAUDE.md", "passed over");
        write(root, "a/GEMINI.md", "middle");
        write(root, "a/b/CLAUDE.md", "nearest");
        write(root, "a/b/c/AGENTS.md", "below the workspace");
        let found = read_file(&root.join("a/b"));
        assert_eq!(found.files.len(), 3);
        assert_eq!(found.warnings, Vec::<String>::new());
        let place = |text: &str| found.text.find(text).unwrap_or_else(|| panic!("{text} in {}", found.text));
        assert!(place("root {{ rules }}") < place("middle") && place("middle") < place("nearest"));
        assert!(found.text.contains("<instructions file=\"CLAUDE.md\">\nnearest\n</instructions>"));
        assert!(!found.text.contains("cut here"));
    }

    #[test]
    fn the_nearest_takes_its_space_first() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        fs::create_dir(root.join(".git")).expect("a directory");
        write(root, "AGENTS.md", &"x".repeat(BUDGET));
        write(root, "a/AGENTS.md", &"~".repeat(BUDGET - 100));
        let found = read_file(&root.join("a"));
        assert_eq!(found.text.matches('~').count(), BUDGET - 100);
        assert!(found.text.contains(&format!("[cut here: 100 of {BUDGET} bytes are shown")));
        write(root, "a/AGENTS.md", &"~".repeat(BUDGET * 2));
        let found = read_file(&root.join("a"));
        assert!(
            found.text.contains(&format!("[cut here: {BUDGET} of {} bytes", BUDGET * 2)),
            "its own end is cut"
        );
        assert!(found.text.contains(&format!("[cut here: 0 of {BUDGET} bytes")), "and the root's is named");
        assert!(found.text.len() < BUDGET + 500);
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_inside_and_only_regular_files_are_opened() {
        let outside = tempfile::tempdir().expect("a directory");
        write(outside.path(), "secret.md", "outside");
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        fs::create_dir(root.join(".git")).expect("a directory");
        write(root, "docs/rules.md", "linked rules");
        std::os::unix::fs::symlink("docs/rules.md", root.join("AGENTS.md")).expect("a link");
        fs::create_dir(root.join("a")).expect("a directory");
        std::os::unix::fs::symlink(outside.path().join("secret.md"), root.join("a/AGENTS.md")).expect("a link");
        fs::create_dir(root.join("a/CLAUDE.md")).expect("a directory");
        let found = read_file(&root.join("a"));
        assert!(found.text.contains("linked rules") && !found.text.contains("outside"));
        assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
    }
}
