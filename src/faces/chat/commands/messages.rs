//! `/editor`, `/image`, `/init`, `/raw`: other ways to write a message, and the display of answers.

use serde_json::json;

use super::{CommandAnswer, SlashOutcome, tell_text};
use crate::base::image::{Image, MOST_FILE_BYTES};
use crate::base::text;
use crate::faces::chat::chat_session::Chat;
use crate::files::regular::{Links, read_bytes};
use crate::prompt::{Registry, with_given};
use crate::template;

/// The file that `/init` writes.
const INSTRUCTIONS: &str = "AGENTS.md";
/// The prompt for `/init`.
const PROMPT: &str = "init";

/// Sends a text for the running turn when none runs: as a message. While one runs, the line takes it.
pub(super) fn send_now(_: &mut Chat, text: &str) -> CommandAnswer {
    if text.trim().is_empty() {
        return Err("say what: /now TEXT".into());
    }
    Ok(SlashOutcome::Turn(text.to_owned()))
}

/// Attaches a picture to the next message. The person names it, so it may be anywhere.
pub(super) fn attach_image(chat: &mut Chat, path: &str) -> CommandAnswer {
    let path = unquote_path(path);
    if path.is_empty() {
        return Err("name a picture (PNG, JPEG, WebP or GIF) or a PDF".into());
    }
    let info = chat.services.agent.model.info();
    if !info.sees {
        return Err(format!("{} sees no pictures; /model uses another model", info.id).into());
    }
    let shown = text::one_line(&path, 80);
    let wrong = |why: &str| format!("{shown} {why}");
    let file = match path.strip_prefix("~/") {
        Some(rest) => chat.config.dirs.home.join(rest),
        None => chat.workspace.root().join(&path),
    };
    let bytes = read_bytes(&file, Links::Follow, MOST_FILE_BYTES).map_err(|why| wrong(&why))?;
    let bytes = bytes.ok_or_else(|| wrong("does not exist, or is not a file"))?;
    let image = Image::read(&bytes).map_err(|why| wrong(&why))?;
    if !info.shows(&image) {
        return Err(format!("{} takes no PDFs at its server; /model uses another model", info.id).into());
    }
    chat.attached.pictures.push(image);
    let count = match chat.attached.pictures.len() {
        1 => "It goes".to_owned(),
        count => format!("{count} pictures go"),
    };
    let size = bytes.len().div_ceil(1024);
    tell_text(format!("Attached {shown} ({size} KiB). {count} with your next message."))
}

/// Removes the quotes or backslashes that terminals add to a path dropped on them.
fn unquote_path(path: &str) -> String {
    let path = path.trim_start_matches('@');
    let unquote = |quote: char| path.strip_prefix(quote)?.strip_suffix(quote);
    match unquote('"').or_else(|| unquote('\'')) {
        Some(inner) => inner.to_owned(),
        None if cfg!(unix) => path.replace("\\ ", " "),
        None => path.to_owned(),
    }
}

/// Asks the model to write `AGENTS.md` through its tools. An existing file is changed only by `/init update`.
pub(super) fn write_instructions(chat: &mut Chat, word: &str) -> CommandAnswer {
    let exists = chat.workspace.root().join(INSTRUCTIONS).symlink_metadata().is_ok();
    match word {
        "" if exists => {
            return Err(format!("{INSTRUCTIONS} exists; /init update lets the model improve it").into());
        }
        "" | "update" => {}
        _ => return Err("write /init, or /init update".into()),
    }
    let prompt = Registry::new(&chat.config.prompt_dirs).get_released(PROMPT)?;
    let prompt = prompt.of_session(chat.conversation.session.id());
    let variables = json!({ "file": INSTRUCTIONS, "exists": exists });
    let given = variables.as_object().cloned().unwrap_or_default();
    let context = with_given(&template::convert_value(&json!({})), &given);
    Ok(SlashOutcome::Turn(prompt.render(&context)?.trim().to_owned()))
}

/// Toggles between raw and laid-out answers.
pub(super) fn toggle_raw(chat: &mut Chat, _: &str) -> CommandAnswer {
    tell_text(if chat.rendering.toggle() {
        "Answers are laid out again."
    } else {
        "Answers are shown as the model writes them. /raw lays them out again."
    })
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn a_dropped_path_loses_its_quotes() {
        for (typed, expected) in [
            ("a.png", "a.png"),
            ("@a.png", "a.png"),
            ("@\"a b.png\"", "a b.png"),
            ("'/tmp/a b.png'", "/tmp/a b.png"),
            ("/tmp/a\\ b.png", "/tmp/a b.png"),
        ] {
            assert_eq!(super::unquote_path(typed), expected);
        }
    }
}
