//! Reports what the terminal can show, judged by its variables and the system: the terminal itself is not queried.

use crate::screen::ink::ColourWishes;
use crate::screen::terminal::{self, Abilities};

use super::super::setup::CliSetup;
use super::account::DoctorCheck;

/// The facts that decide the result.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScreenFacts<'a> {
    /// stdin and stderr are terminals.
    pub is_terminal: bool,
    pub size: Option<(usize, usize)>,
    pub term: Option<&'a str>,
    /// The locale that sets the character encoding.
    pub locale: Option<&'a str>,
    pub in_tmux: bool,
    pub abilities: Abilities,
    pub colours: bool,
    /// The variables about colours that the person set.
    pub wishes: ColourWishes<'a>,
}

impl<'a> ScreenFacts<'a> {
    /// The facts of this process.
    pub fn now(setup: &'a CliSetup) -> Self {
        let env = &setup.env;
        let stderr = terminal::stderr_is_terminal();
        let wishes = ColourWishes::read(|name| env.get(name));
        Self {
            is_terminal: terminal::has_person(),
            size: terminal::measure_size(),
            term: env.get("TERM"),
            locale: ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| env.get(name)),
            in_tmux: env.get("TMUX").is_some(),
            abilities: Abilities::read(|name| env.get(name)),
            colours: setup.global.color.allows(stderr, wishes),
            wishes,
        }
    }
}

pub(super) fn check_screen(facts: &ScreenFacts<'_>) -> DoctorCheck {
    if !facts.is_terminal {
        return DoctorCheck::good("none: output is plain lines without colours, and questions are not asked");
    }
    let term = facts.term.unwrap_or("not set");
    if !facts.abilities.draws {
        let says = format!(
            "TERM is {term}: plain lines are shown; set TERM=xterm-256color if this terminal moves its cursor"
        );
        return DoctorCheck::weak(says);
    }
    let size = facts.size.map_or_else(|| "unknown size".to_owned(), |(columns, rows)| format!("{columns}×{rows}"));
    let colours = match (facts.colours, facts.wishes.no_color) {
        (true, _) => "colours",
        (false, Some(_)) => "no colours (NO_COLOR)",
        (false, None) => "no colours",
    };
    let links = match (facts.in_tmux, facts.abilities.links) {
        (true, _) => "links as tmux passes them on",
        (false, true) => "links",
        (false, false) => "no links (addresses are written out)",
    };
    let says = format!("{term}, {size}, {colours}, {links}");
    let mut to_do = Vec::new();
    if !facts.locale.is_some_and(is_utf8) {
        let locale = facts.locale.unwrap_or("not set");
        to_do.push(format!("the locale is {locale}: set LANG=C.UTF-8 to show all characters"));
    }
    if facts.size.is_some_and(|(columns, rows)| columns < 40 || rows < 10) {
        to_do.push("it is small: widen it to at least 40 columns and 10 rows".to_owned());
    }
    if to_do.is_empty() {
        return DoctorCheck::good(says);
    }
    DoctorCheck::weak(format!("{says}\n{}", to_do.join("\n")))
}

fn is_utf8(locale: &str) -> bool {
    let charset = locale.rsplit_once('.').map_or("", |(_, charset)| charset);
    let charset = charset.split('@').next().unwrap_or_default().to_lowercase();
    matches!(charset.as_str(), "utf-8" | "utf8")
}

#[cfg(test)]
mod tests {
    use super::super::account::Health;
    use super::*;

    fn plain() -> ScreenFacts<'static> {
        ScreenFacts {
            is_terminal: true,
            size: Some((80, 24)),
            term: Some("xterm-256color"),
            locale: Some("en_GB.UTF-8"),
            abilities: Abilities { draws: true, ..Abilities::NONE },
            colours: true,
            ..ScreenFacts::default()
        }
    }

    #[test]
    fn each_weakness_says_what_to_do() {
        for (facts, health, says) in [
            (plain(), Health::Good, "xterm-256color, 80×24, colours, no links"),
            (
                ScreenFacts { abilities: Abilities { links: true, draws: true, ..Abilities::NONE }, ..plain() },
                Health::Good,
                "colours, links",
            ),
            (ScreenFacts { in_tmux: true, ..plain() }, Health::Good, "as tmux passes them on"),
            (ScreenFacts { is_terminal: false, ..plain() }, Health::Good, "none: output is plain lines"),
            (
                ScreenFacts { term: Some("dumb"), abilities: Abilities::NONE, ..plain() },
                Health::Weak,
                "TERM is dumb: plain lines are shown; set TERM=",
            ),
            (ScreenFacts { term: None, abilities: Abilities::NONE, ..plain() }, Health::Weak, "TERM is not set"),
            (ScreenFacts { locale: Some("C"), ..plain() }, Health::Weak, "the locale is C: set LANG=C.UTF-8"),
            (ScreenFacts { locale: None, ..plain() }, Health::Weak, "the locale is not set"),
            (ScreenFacts { locale: Some("de_DE.utf8@euro"), ..plain() }, Health::Good, "80×24"),
            (ScreenFacts { size: Some((30, 24)), ..plain() }, Health::Weak, "widen it"),
            (
                ScreenFacts {
                    colours: false,
                    wishes: ColourWishes { no_color: Some("1"), ..ColourWishes::default() },
                    ..plain()
                },
                Health::Good,
                "no colours (NO_COLOR)",
            ),
        ] {
            let check = check_screen(&facts);
            assert!(check.health == health && check.says.contains(says), "{facts:?}: {check:?}");
        }
    }
}
