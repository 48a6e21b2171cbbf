//! Programs that take over from the chat for a moment: a pager, an editor, the clipboard.

use super::at_hand::AtHand;
use crate::base::image::encode_base64;
use crate::base::text;
use crate::safety::process;
use crate::screen::terminal;
use crate::screen::{EditorDraft, Outlets};

/// Rows of the screen that stay free around a printed text.
const MARGIN: usize = 4;
/// The longest text in bytes for OSC 52. Terminals drop a longer one, or show it as text.
const MOST_OSC52: usize = 74_994;

/// Shows a text in the pager. Returns the text to print instead if it fits the screen, or if there is no pager or it
/// fails.
pub(super) async fn page_text(at_hand: &AtHand, content: &str) -> Option<String> {
    let content = text::make_visible(content).into_owned();
    if terminal::measure_size().is_some_and(|(columns, rows)| fits_screen(&content, columns, rows)) {
        return Some(content);
    }
    run_pager(at_hand, content).await
}

/// Shows a text in the pager, however short it is. Returns it if there is no pager or it fails.
pub(super) async fn run_pager(at_hand: &AtHand, content: String) -> Option<String> {
    let (Some(pager), Some(editor)) = (&at_hand.pager, &at_hand.editor) else { return Some(content) };
    let Ok(draft) = EditorDraft::write(&editor.dir, &content, "txt") else { return Some(content) };
    match process::run_pager(pager, draft.path()).await {
        Ok(true) => None,
        Ok(false) | Err(_) => Some(content),
    }
}

fn fits_screen(content: &str, columns: usize, rows: usize) -> bool {
    let rows_of = |line: &str| text::count_columns(line).div_ceil(columns.max(1)).max(1);
    content.lines().map(rows_of).sum::<usize>() + MARGIN <= rows
}

/// Opens the editor for a message. `None` if nothing was written.
///
/// # Errors
/// A sentence for the person.
pub(super) async fn compose_message(at_hand: &AtHand) -> Result<Option<String>, String> {
    let Some(editor) = &at_hand.editor else { return Err("there is no terminal for an editor".to_owned()) };
    let written = editor.edit("", "md").await?;
    Ok(written.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

/// Continues a text in the editor. Returns the edited text, and a message for the person.
pub(super) async fn go_on(at_hand: &AtHand, text: String) -> (String, String) {
    let Some(editor) = &at_hand.editor else { return (text, "There is no terminal for an editor.".to_owned()) };
    match editor.edit(&text, "md").await {
        // Editors add a final line feed, which would be an extra line at the prompt.
        Ok(saved) => (saved.unwrap_or(text).trim_end_matches(['\n', '\r']).to_owned(), String::new()),
        Err(why) => (text, format!("error: {why}")),
    }
}

/// Copies a text to the terminal's clipboard and, by a program, to the system's. Returns a message for the person.
pub(super) async fn copy_text(at_hand: &AtHand, outlets: &Outlets, content: &str) -> String {
    let characters = content.chars().count();
    let (mut taken, mut missed) = (Vec::new(), Vec::new());
    if at_hand.osc52 {
        match write_osc52(content) {
            Some(sequence) => {
                outlets.display.control(&sequence);
                taken.push("the terminal (OSC 52)");
            }
            None => missed.push(format!("it is too long for the terminal ({MOST_OSC52} bytes)")),
        }
    }
    if let Some(clipboard) = at_hand.clipboard {
        match process::feed_program(clipboard.program, &clipboard.encode(content)).await {
            Ok(true) => taken.push(clipboard.program[0]),
            Ok(false) => missed.push(format!("{} failed", clipboard.program[0])),
            Err(error) => missed.push(format!("{} failed: {error}", clipboard.program[0])),
        }
    }
    let missed = missed.join("; ");
    match (taken.is_empty(), missed.is_empty()) {
        (true, true) => {
            "error: there is no clipboard: neither a terminal nor wl-copy, xclip, xsel, pbcopy or clip.exe"
                .to_owned()
        }
        (true, false) => format!("error: nothing was copied: {missed}"),
        (false, _) => {
            let but = if missed.is_empty() { String::new() } else { format!("; {missed}") };
            format!("Copied {characters} characters: {}{but}.", taken.join(", "))
        }
    }
}

/// OSC 52: the sequence that puts a text into the clipboard of the person's terminal, even over a connection to another
/// machine; `None` if it is too long.
fn write_osc52(text: &str) -> Option<String> {
    (text.len() <= MOST_OSC52).then(|| format!("\x1b]52;c;{}\x07", encode_base64(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_one_sequence_unless_it_is_too_long() {
        assert_eq!(write_osc52("héllo").as_deref(), Some("\x1b]52;c;aMOpbGxv\x07"));
        let longest = write_osc52(&"x".repeat(MOST_OSC52)).expect("it fits");
        assert!(longest.len() <= 100_000, "{}", longest.len());
        assert_eq!(write_osc52(&"x".repeat(MOST_OSC52 + 1)), None);
    }
}
