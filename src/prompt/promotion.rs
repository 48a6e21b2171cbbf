//! The changes when a version is released, rolled back or begun: labels, the canary, the history and the changelog.
//! Pure; `change` writes them.

use std::fmt::Write;

use jiff::civil::Date;

use super::release::{Canary, PRODUCTION, Release};
use super::version::Version;

/// A release of a version.
#[derive(Debug, Clone)]
pub struct Promotion<'a> {
    pub version: Version,
    /// `production`, or another label.
    pub label: &'a str,
    /// The share of the sessions that get it, in percent, while the label stays as it is.
    pub canary: Option<u8>,
    /// A note for people in the changelog; may be empty.
    pub note: &'a str,
    pub today: Date,
}

impl Release {
    /// The release after a promotion, and one sentence about it; `None` if nothing would change. `before` is the
    /// version that the plain name has meant so far.
    pub fn promote(&self, promotion: &Promotion<'_>, before: Version) -> Option<(Self, String)> {
        let mut next = self.clone();
        let Promotion { version, label, canary, .. } = promotion;
        next.labels.entry(PRODUCTION.to_owned()).or_insert(before);
        let said = match canary {
            Some(percent) => {
                next.canary = Some(Canary { version: *version, percent: *percent });
                format!("{version} is the canary of {percent} % of the sessions, beside {before}")
            }
            None => {
                let old = next.labels.insert((*label).to_owned(), *version).filter(|old| old != version);
                if *label == PRODUCTION {
                    next.canary = None;
                    next.history.extend(old);
                }
                let instead = old.map(|old| format!(" instead of {old}")).unwrap_or_default();
                format!("{version} is `{label}`{instead}")
            }
        };
        (next != *self).then_some((next, said))
    }

    /// The release before the last promotion, and one sentence about it: without the canary, if there is one, else with
    /// the last of `versions` that was in production before. `None` if there is neither.
    pub fn rolled_back(&self, versions: &[Version]) -> Option<(Self, String)> {
        let mut next = self.clone();
        if let Some(canary) = next.canary.take() {
            return Some((next, format!("the canary {} is taken back", canary.version)));
        }
        while next.history.pop_if(|version| !versions.contains(version)).is_some() {}
        let version = next.history.pop()?;
        let old = next.labels.insert(PRODUCTION.to_owned(), version);
        let instead = old.map(|old| format!(" instead of {old}")).unwrap_or_default();
        Some((next, format!("{version} is `{PRODUCTION}` again{instead}")))
    }

    /// The text of the file, after the comments at the beginning of `before`.
    pub fn write(&self, before: &str) -> String {
        let comments = before.lines().take_while(|line| line.starts_with('#') || line.trim().is_empty());
        let mut out = comments.fold(String::new(), |text, line| text + line + "\n");
        let labels: Vec<String> =
            self.labels.iter().map(|(label, version)| format!("{label}: {version}")).collect();
        let _ = writeln!(out, "labels: {{ {} }}", labels.join(", "));
        if let Some(Canary { version, percent }) = self.canary {
            let _ = writeln!(out, "canary: {{ version: {version}, percent: {percent} }}");
        }
        if !self.history.is_empty() {
            let versions: Vec<String> = self.history.iter().map(Version::to_string).collect();
            let _ = writeln!(out, "history: [{}]", versions.join(", "));
        }
        out
    }
}

/// A changelog with one more line below the heading of a version, which is added above all others if it is missing.
pub fn add_log_line(changelog: &str, name: &str, version: Version, line: &str) -> String {
    let changelog =
        if changelog.trim().is_empty() { format!("# Changelog of `{name}`\n") } else { changelog.to_owned() };
    let is_heading = |text: &str| text.starts_with("## ");
    let is_of_version = |text: &str| {
        let words = text.trim_start_matches('#').trim();
        is_heading(text) && words.split([' ', ':', '(']).next() == Some(version.to_string().as_str())
    };
    let mut lines: Vec<String> = changelog.trim_end().lines().map(str::to_owned).collect();
    if let Some(heading) = lines.iter().position(|line| is_of_version(line)) {
        let blank = lines[heading + 1..].iter().take_while(|line| line.trim().is_empty()).count();
        lines.insert(heading + 1 + blank, format!("- {line}"));
    } else {
        let (section, blank) = ([format!("## {version}"), String::new(), format!("- {line}")], [String::new()]);
        match lines.iter().position(|line| is_heading(line)) {
            Some(at) => drop(lines.splice(at..at, section.into_iter().chain(blank))),
            None => lines.extend(blank.into_iter().chain(section)),
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().expect("a version")
    }

    fn promotion(to: &str, canary: Option<u8>) -> Promotion<'static> {
        let today = Date::constant(2026, 1, 2);
        Promotion { version: version(to), label: PRODUCTION, canary, note: "", today }
    }

    #[test]
    fn versions_go_to_production_by_way_of_a_canary_and_back() {
        let (canary, said) =
            Release::default().promote(&promotion("v1.1", Some(10)), version("v1.0")).expect("a change");
        assert_eq!(said, "v1.1 is the canary of 10 % of the sessions, beside v1.0");
        let text = canary.write("# Ours.\nlabels: {}\n");
        assert_eq!(text, "# Ours.\nlabels: { production: v1.0 }\ncanary: { version: v1.1, percent: 10 }\n");
        let (whole, said) = canary.promote(&promotion("v1.1", None), version("v1.0")).expect("a change");
        assert_eq!(said, "v1.1 is `production` instead of v1.0");
        assert_eq!(whole.write(""), "labels: { production: v1.1 }\nhistory: [v1.0]\n");
        assert_eq!(Release::parse("r", &whole.write("")), Ok(whole.clone()), "what is written reads back");
        assert_eq!(whole.promote(&promotion("v1.1", None), version("v1.1")), None);
        let known = [version("v1.0"), version("v1.1")];
        let (back, said) = whole.rolled_back(&known).expect("a version before");
        assert_eq!(said, "v1.0 is `production` again instead of v1.1");
        assert_eq!((back.rolled_back(&known), whole.rolled_back(&known[1..])), (None, None), "v1.0 may be gone");
        let (without, said) = canary.rolled_back(&known).expect("a canary");
        assert_eq!((without.canary, said.as_str()), (None, "the canary v1.1 is taken back"));
    }

    #[test]
    fn the_changelog_keeps_what_its_authors_wrote() {
        let line = "2026-01-02: v1.1 is `production`";
        let new = add_log_line("", "p", version("v1.1"), line);
        assert_eq!(new, "# Changelog of `p`\n\n## v1.1\n\n- 2026-01-02: v1.1 is `production`\n");
        let written = "# Ours\n\n## v1.1 (better)\n\nSays more.\n\n## v1.0\n\nFirst.\n";
        let logged_below = add_log_line(written, "p", version("v1.1"), line);
        assert_eq!(logged_below, written.replace("Says more.", &format!("- {line}\nSays more.")));
        let above = add_log_line("# Ours\n\n## v1.0\n\nFirst.\n", "p", version("v1.1"), "x");
        assert_eq!(above, "# Ours\n\n## v1.1\n\n- x\n\n## v1.0\n\nFirst.\n");
    }
}
