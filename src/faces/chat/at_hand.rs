//! The person's own programs: an editor, a shell, a pager, a clipboard. A chat over a pipe has fewer of them.

use crate::safety::process;
use crate::screen::ExternalEditor;

/// The person's programs, and whether the terminal supports a clipboard.
#[derive(Debug, Clone, Default)]
pub struct AtHand {
    /// The editor for messages.
    pub editor: Option<ExternalEditor>,
    /// The shell for `!`; `None` means the system's shell.
    pub shell: Option<String>,
    /// The shell command of the pager; `None` means that long text is printed.
    pub pager: Option<String>,
    /// The terminal supports OSC 52, which sets its clipboard.
    pub osc52: bool,
    pub clipboard: Option<&'static Clipboard>,
}

/// A program that puts text into the clipboard.
#[derive(Debug, PartialEq, Eq)]
pub struct Clipboard {
    /// The variable that must be set for it to work.
    needs: Option<&'static str>,
    /// The program and its arguments.
    pub program: &'static [&'static str],
    /// It reads UTF-16, not UTF-8.
    is_utf16: bool,
}

const CLIPBOARDS: [Clipboard; 5] = [
    Clipboard { needs: Some("WAYLAND_DISPLAY"), program: &["wl-copy"], is_utf16: false },
    Clipboard { needs: Some("DISPLAY"), program: &["xclip", "-selection", "clipboard"], is_utf16: false },
    Clipboard { needs: Some("DISPLAY"), program: &["xsel", "--clipboard", "--input"], is_utf16: false },
    Clipboard { needs: None, program: &["pbcopy"], is_utf16: false },
    Clipboard { needs: None, program: &["clip.exe"], is_utf16: true },
];

impl AtHand {
    /// Finds the programs. `value` looks up a variable; `editor` is `None` if no person is present; `osc52` is true if
    /// the terminal supports escape sequences.
    pub fn find<'e>(value: impl Fn(&str) -> Option<&'e str>, editor: Option<ExternalEditor>, osc52: bool) -> Self {
        let path = value("PATH").unwrap_or_default();
        let less = || process::is_on_path("less", path).then_some("less");
        let has = |clipboard: &&Clipboard| {
            let is_reachable =
                clipboard.needs.is_none_or(|name| value(name).is_some_and(|value| !value.is_empty()));
            is_reachable && process::is_on_path(clipboard.program[0], path)
        };
        let is_terminal = editor.is_some();
        let pager = value("PAGER").filter(|line| !line.trim().is_empty()).or_else(less);
        Self {
            editor,
            shell: value("SHELL").filter(|shell| !shell.is_empty()).map(str::to_owned),
            pager: pager.filter(|_| is_terminal).map(str::to_owned),
            osc52,
            clipboard: CLIPBOARDS.iter().find(has),
        }
    }
}

impl Clipboard {
    /// Encodes the text for the program.
    pub fn encode(&self, text: &str) -> Vec<u8> {
        if !self.is_utf16 {
            return text.as_bytes().to_vec();
        }
        // Without the byte order mark it would be read in the system's code page.
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_are_found_by_variables_and_path() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["xclip", "xsel", "clip.exe", "less"] {
            std::fs::write(dir.path().join(name), "").expect("written");
        }
        let path = dir.path().to_str().expect("a path").to_owned();
        let editor = || Some(ExternalEditor { line: "vi".to_owned(), dir: dir.path().to_path_buf() });
        let at_hand = |variables: &[(&str, &str)], editor: Option<ExternalEditor>| {
            let value = |name: &str| match name {
                "PATH" => Some(path.as_str()),
                _ => variables.iter().find(|(key, _)| *key == name).map(|(_, value)| *value),
            };
            let found = AtHand::find(value, editor, false);
            (found.pager, found.clipboard.map(|clipboard| clipboard.program[0]))
        };
        for (variables, pager, clipboard) in [
            (&[][..], "less", "clip.exe"),
            (&[("PAGER", "most -s"), ("DISPLAY", ":0")], "most -s", "xclip"),
            (&[("PAGER", " "), ("DISPLAY", "")], "less", "clip.exe"),
            (&[("WAYLAND_DISPLAY", "w"), ("DISPLAY", ":0")], "less", "xclip"),
        ] {
            let expected = (Some(pager.to_owned()), Some(clipboard));
            assert_eq!(at_hand(variables, editor()), expected, "{variables:?}");
        }
        assert_eq!(at_hand(&[("PAGER", "most")], None), (None, Some("clip.exe")), "nobody reads at a pipe");
    }

    #[test]
    fn a_program_that_reads_utf_16_gets_a_mark_first() {
        assert_eq!(CLIPBOARDS[4].encode("é"), [0xff, 0xfe, 0xe9, 0]);
        assert_eq!(CLIPBOARDS[0].encode("é"), "é".as_bytes());
    }
}
