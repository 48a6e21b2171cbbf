//! The abilities of a terminal, judged by its environment variables. Without them a terminal is assumed to have the
//! least.

use crate::screen::ink::Theme;

/// Abilities that not every terminal has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// It can move its cursor and erase, so rows can be redrawn.
    pub draws: bool,
    /// It supports links by OSC 8.
    pub links: bool,
    /// It rewraps lines when its width changes.
    pub reflows: bool,
    /// It reports modified keys as xterm does, if it is asked to.
    pub modifies_keys: bool,
    /// The theme for the background in `COLORFGBG`.
    pub theme: Theme,
}

/// Values of `TERM` for terminals that cannot move their cursor.
const PLAIN: [&str; 5] = ["", "dumb", "unknown", "emacs", "cons25"];
/// Variables whose presence means that OSC 8 is supported.
const LINKING: [&str; 5] = ["KITTY_WINDOW_ID", "WT_SESSION", "DOMTERM", "KONSOLE_VERSION", "WEZTERM_PANE"];
/// Values of `TERM_PROGRAM` that mean the same.
const LINKING_PROGRAMS: [&str; 5] = ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper"];
/// Starts of `TERM` that mean the same.
const LINKING_TERMS: [&str; 5] = ["xterm-kitty", "alacritty", "foot", "xterm-ghostty", "wezterm"];
/// The first version of VTE that supports links.
const LINKING_VTE: u32 = 5000;

impl Abilities {
    /// The abilities of a terminal that only prints lines.
    #[cfg(test)]
    pub const NONE: Self =
        Self { draws: false, links: false, reflows: false, modifies_keys: false, theme: Theme::Either };

    /// Reads the variables that terminals set.
    pub fn read<'e>(variable: impl Fn(&str) -> Option<&'e str>) -> Self {
        let term = variable("TERM").unwrap_or_default();
        let program = variable("TERM_PROGRAM").unwrap_or_default();
        let vte = variable("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
        let in_multiplexer = term.starts_with("screen") || term.starts_with("tmux");
        let links = LINKING.iter().any(|name| variable(name).is_some())
            || LINKING_PROGRAMS.contains(&program)
            || LINKING_TERMS.iter().any(|known| term.starts_with(known))
            || vte.is_some_and(|version| version >= LINKING_VTE);
        Self {
            draws: !PLAIN.contains(&term),
            // A multiplexer in between may drop them.
            links: links && !in_multiplexer,
            reflows: variable("XTERM_VERSION").is_none() && term != "linux",
            modifies_keys: variable("XTERM_VERSION").is_some() || variable("TMUX").is_some(),
            theme: variable("COLORFGBG").and_then(parse_theme).unwrap_or_default(),
        }
    }
}

/// Parses `COLORFGBG`: `15;0` or `0;default;15`. The last number is the background, one of sixteen colours.
fn parse_theme(colours: &str) -> Option<Theme> {
    let background: u8 = colours.rsplit(';').next()?.parse().ok()?;
    Some(if matches!(background, 7 | 9..=15) { Theme::Light } else { Theme::Dark })
}

/// The theme for a background of this colour, by its luminance (ITU-R BT.709).
pub fn theme_of([red, green, blue]: [u8; 3]) -> Theme {
    let luminance = 2126 * u32::from(red) + 7152 * u32::from(green) + 722 * u32::from(blue);
    if luminance > 10_000 * 255 / 2 { Theme::Light } else { Theme::Dark }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_can_do_is_read_from_its_variables() {
        let of = |variables: &[(&str, &'static str)]| {
            Abilities::read(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
        };
        assert_eq!(of(&[]), Abilities { reflows: true, ..Abilities::default() });
        assert!(!of(&[("TERM", "dumb")]).draws);
        let kitty = of(&[("TERM", "xterm-kitty"), ("COLORFGBG", "15;0")]);
        assert!(kitty.draws && kitty.links && kitty.reflows && kitty.theme == Theme::Dark);
        assert!(!of(&[("TERM", "xterm"), ("XTERM_VERSION", "XTerm(390)")]).reflows);
        assert!(of(&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")]).links);
        assert!(!of(&[("TERM", "tmux-256color"), ("VTE_VERSION", "7600")]).links);
        assert_eq!(of(&[("TERM", "rxvt"), ("COLORFGBG", "0;default;15")]).theme, Theme::Light);
    }

    #[test]
    fn the_luminance_of_a_background_decides() {
        assert_eq!(theme_of([0, 0, 0]), Theme::Dark);
        assert_eq!(theme_of([255, 255, 255]), Theme::Light);
        assert_eq!(theme_of([0xfd, 0xf6, 0xe3]), Theme::Light);
        assert_eq!(theme_of([0, 0x2b, 0x36]), Theme::Dark);
    }
}
