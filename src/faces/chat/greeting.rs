//! The first lines of a chat: the model, the directory, the permissions, and a pointer to /help.

use std::path::Path;

use crate::agent::assembly::{NetworkOf, Outlook};
use crate::base::text;
use crate::config::{ApprovalMode, Mode};
use crate::screen::ink::{Ink, Inks, Line};

/// Formats the greeting in three lines of at most `width` columns; under `edits` follows a reminder, and where `auto` is
/// not `edits`, the reason. `home` is shortened to `~` in the directory.
pub fn format_greeting(outlook: &Outlook, directory: &Path, home: &Path, width: usize) -> Vec<Line> {
    let server = outlook.server.as_ref().map_or_else(|| " (a script)".to_owned(), |host| format!(" at {host}"));
    let model = Line::new()
        .add(Ink::Bold, &text::make_visible(&outlook.model))
        .add(Ink::Dim, &text::make_visible(&server));
    let directory = format!("in {}", shorten_path(directory, home));
    let directory = Line::new().add(Inks::PLAIN, &end_of(&directory, width));
    let powers = describe_powers(outlook);
    let powers = powers.iter().find(|powers| text::count_columns(powers) <= width).unwrap_or(&powers[1]);
    let powers = Line::new().add(Ink::Dim, powers);
    let mut lines: Vec<Line> = [model, directory, powers].map(|line| line.cut(width)).into();
    let remark = match outlook.approval.mode {
        _ if outlook.mode == Mode::Explore => String::new(),
        ApprovalMode::Edits => outlook.freedom.clone(),
        _ => outlook.approval.why_asked.map(|why| format!("It asks, as {why}")).unwrap_or_default(),
    };
    let remark = text::fold_to_width(&remark, width);
    lines.extend(remark.lines().map(|line| Line::new().add(Ink::Dim, line).cut(width)));
    lines
}

/// Formats the greeting without a model: the reason and the `advice` on how to get one, folded to `width` columns.
pub fn without_model(advice: &str, width: usize) -> Vec<Line> {
    let advice = text::make_visible(advice);
    let advice = text::fold_to_width(&advice, width);
    let head = Line::new().add(Ink::Bold, "No model is configured yet.");
    std::iter::once(head.cut(width)).chain(advice.lines().map(|line| Line::new().add(Inks::PLAIN, line))).collect()
}

fn shorten_path(directory: &Path, home: &Path) -> String {
    let path = match directory.strip_prefix(home) {
        Ok(rest) if home.parent().is_some() => Path::new("~").join(rest),
        _ => directory.to_path_buf(),
    };
    let path = path.to_string_lossy();
    text::make_visible(path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(&path)).into_owned()
}

/// Shortens a long line to its last columns: the end of a path says more than its start.
fn end_of(line: &str, width: usize) -> String {
    if text::count_columns(line) <= width {
        return line.to_owned();
    }
    let starts = line.char_indices().map(|(at, _)| at);
    let fits = starts.map(|at| format!("…{}", &line[at..])).find(|end| text::count_columns(end) <= width);
    fits.unwrap_or_default()
}

/// What the agent may do and reach, in words, and shorter for a narrow terminal.
fn describe_powers(outlook: &Outlook) -> [String; 2] {
    let (may, short) = match (outlook.mode, outlook.approval.mode) {
        (Mode::Explore, _) => ("Reads, and proposes before it changes", "explore"),
        (_, ApprovalMode::Ask | ApprovalMode::Auto) => ("Reads on its own, asks for the rest", "asks"),
        (_, ApprovalMode::Edits) if outlook.approval.needs_undo => ("Edits here unasked, /undo reverts", "edits"),
        (_, ApprovalMode::Edits) => ("Changes files here unasked", "edits"),
        (_, ApprovalMode::All) => ("Does almost all without asking", "all"),
        (_, ApprovalMode::Never) => ("Only reads; the rest is refused", "reads"),
    };
    let (sandbox, walls) =
        if outlook.is_sandboxed { ("sandbox on", "sandbox") } else { ("sandbox off", "no sandbox") };
    let [network, reach] = match outlook.network {
        NetworkOf::Nothing => ["no network", "offline"].map(str::to_owned),
        NetworkOf::Hosts(count) => [text::count_noun(count as u64, "host", "hosts"), format!("{count} hosts")],
        NetworkOf::All => ["with network", "online"].map(str::to_owned),
    };
    [format!("{may} · {sandbox}, {network} · /help helps"), format!("{short} · {walls} · {reach} · /help")]
}

/// The last exchange of a conversation that goes on: the message, and the end of the answer.
pub fn format_exchange(said: &str, answer: &str, width: usize) -> Vec<Line> {
    let answer: Vec<&str> = answer.trim().lines().collect();
    let message = text::one_line(&format!("> {}", said.trim()), width);
    let end = &answer[answer.len().saturating_sub(8)..];
    let rows = std::iter::once(message).chain(end.iter().map(|line| text::one_line(line, width)));
    rows.map(|row| Line::new().add(Ink::Dim, &row)).chain([Line::new()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safety::policy::ChosenApproval;

    fn outlook() -> Outlook {
        Outlook {
            model: "gpt-5-mini".to_owned(),
            server: Some("api.openai.com".to_owned()),
            is_configured: true,
            approval: chosen(ApprovalMode::Ask),
            mode: Mode::Direct,
            is_sandboxed: true,
            network: NetworkOf::Nothing,
            freedom: "changed without asking".to_owned(),
        }
    }

    fn chosen(mode: ApprovalMode) -> ChosenApproval {
        ChosenApproval { mode, needs_undo: false, why_asked: None }
    }

    fn told(outlook: &Outlook, directory: &str, width: usize) -> Vec<String> {
        let lines = format_greeting(outlook, Path::new(directory), Path::new("/home/ada"), width);
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn three_lines_tell_the_model_the_directory_and_what_it_may_do() {
        assert_eq!(
            told(&outlook(), "/home/ada/src/engine", 79),
            [
                "gpt-5-mini at api.openai.com",
                "in ~/src/engine",
                "Reads on its own, asks for the rest · sandbox on, no network · /help helps",
            ]
        );
        assert_eq!(
            told(&outlook(), "/srv/a/directory/with/a/long/name/that/goes/on", 39),
            [
                "gpt-5-mini at api.openai.com",
                "…irectory/with/a/long/name/that/goes/on",
                "asks · sandbox · offline · /help",
            ]
        );
        let script = Outlook { model: "demo".to_owned(), server: None, ..outlook() };
        assert_eq!(told(&script, "/home/ada", 79)[..2], ["demo (a script)", "in ~"]);
    }

    #[test]
    fn where_auto_asks_the_reason_is_told() {
        let asked = ChosenApproval { why_asked: Some("nothing is kept"), ..chosen(ApprovalMode::Ask) };
        let asked = told(&Outlook { approval: asked, ..outlook() }, "/w", 79);
        assert_eq!(asked[3..], ["It asks, as nothing is kept"]);
        let free = ChosenApproval { needs_undo: true, ..chosen(ApprovalMode::Edits) };
        let free = told(&Outlook { approval: free, ..outlook() }, "/w", 79);
        assert!(free[2].starts_with("Edits here unasked, /undo reverts · "), "{free:?}");
        assert_eq!(free[3..], ["changed without asking"]);
    }

    #[test]
    fn every_power_fits_a_screen_of_80_and_one_of_40_columns() {
        let by_undo = ChosenApproval { needs_undo: true, ..chosen(ApprovalMode::Edits) };
        let modes = [ApprovalMode::Ask, ApprovalMode::Edits, ApprovalMode::All, ApprovalMode::Never];
        for approval in modes.map(chosen).into_iter().chain([by_undo]) {
            for mode in [Mode::Direct, Mode::Explore] {
                for (is_sandboxed, network) in [
                    (true, NetworkOf::Nothing),
                    (true, NetworkOf::Hosts(12)),
                    (true, NetworkOf::All),
                    (false, NetworkOf::All),
                ] {
                    let outlook = Outlook { approval, mode, is_sandboxed, network, ..outlook() };
                    let (wide, narrow) = (told(&outlook, "/w", 79), told(&outlook, "/w", 39));
                    assert!(wide[2].ends_with("/help helps"), "{}", wide[2]);
                    assert!(narrow[2].ends_with("/help"), "{}", narrow[2]);
                    assert_eq!(wide[2].contains("sandbox on"), is_sandboxed, "{}", wide[2]);
                }
            }
        }
    }

    #[test]
    fn nothing_is_wider_than_the_screen_whatever_its_width() {
        let odd = Outlook { model: "模型\u{1b}[2J".repeat(20), ..outlook() };
        for width in 1..120 {
            for line in format_greeting(&odd, Path::new("/srv/目录/x"), Path::new("/home/ada"), width) {
                assert!(line.columns() <= width, "{width}: {}", line.text());
                assert!(!line.text().contains('\u{1b}'));
            }
        }
    }

    #[test]
    fn without_a_model_the_advice_is_folded() {
        let advice = "For OpenAI: set OPENAI_API_KEY\nTo try it without either: agent -m demo";
        let lines: Vec<String> = without_model(advice, 39).iter().map(Line::text).collect();
        assert_eq!(lines.first().map(String::as_str), Some("No model is configured yet."));
        assert!(lines.iter().all(|line| text::count_columns(line) <= 39), "{lines:?}");
        assert!(lines.join(" ").contains("agent -m demo"));
    }
}
