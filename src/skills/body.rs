//! The instructions of a loaded skill, as a model reads them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use crate::base::present;
use crate::base::text;

use super::folder::and_more;

/// The beginning of the lines after the instructions.
const DIRECTORY: &str = "Skill directory: ";
const RELATIVE: &str = "Relative paths above are relative to it.";
const NOWHERE: &str = "This skill has no directory on disk; load_skill_reference reads its files.";
const FILES: &str = "Files (load_skill_reference reads them): ";

/// A skill's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillBody {
    pub name: String,
    /// `SKILL.md` without its head; rendered if its author asked for that.
    pub text: String,
    /// The line of `SKILL.md`, 1-based, on which the text begins; `None` if it was rendered.
    pub first_line: Option<usize>,
    /// The file that the text comes from, for people.
    pub path: String,
    /// The base of relative paths in the text. `None` for a skill of a server, and when a built-in one could not be
    /// unpacked: its files can still be read as references.
    pub directory: Option<PathBuf>,
    /// The files beside `SKILL.md`, relative to the directory, sorted.
    pub files: Vec<String>,
    /// The number of files that `files` leaves out.
    pub more_files: usize,
}

impl SkillBody {
    /// The estimated tokens: bytes over four.
    pub fn tokens(&self) -> u64 {
        self.text.len() as u64 / 4
    }

    /// The files on one line; empty if there are none.
    pub fn listing(&self) -> String {
        self.files.join(", ") + &and_more(self.more_files)
    }

    /// Identifies this text within this process.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        hasher.finish()
    }

    /// The instructions with everything needed to follow them, in about `most` bytes: the rest can be read by
    /// lines. Marks that could be mistaken for the frame are broken.
    pub fn instructions(&self, most: usize) -> String {
        let place = match &self.directory {
            Some(directory) => format!("{DIRECTORY}{}\n{RELATIVE}", directory.display()),
            None => NOWHERE.to_owned(),
        };
        let files = match self.listing() {
            listing if listing.is_empty() => String::new(),
            listing => format!("\n{FILES}{listing}"),
        };
        let name = self.name.replace('"', "'");
        let room = most.saturating_sub(place.len() + files.len() + 2 * name.len() + 256).max(256);
        let (text, rest) = self.cut(room);
        let text = present::break_text_marks(text);
        format!("<skill name=\"{name}\">\n{text}{rest}\n</skill>\n{place}{files}")
    }

    /// The beginning that fits, in whole lines if possible, and the way to read the rest.
    fn cut(&self, room: usize) -> (&str, String) {
        if self.text.len() <= room {
            return (&self.text, String::new());
        }
        let head = text::take_head(&self.text, room);
        let head = head.rfind('\n').map_or(head, |end| &head[..end]);
        let taken = head.lines().count();
        let rest = match self.first_line {
            Some(first) => format!(
                "the rest: load_skill_reference with name {}, path SKILL.md, offset {}",
                self.name,
                first + taken
            ),
            None => "what it was rendered to is too long".to_owned(),
        };
        let lines = self.text.lines().count();
        (head, format!("\n[the first {taken} of {lines} lines; {rest}]"))
    }
}
