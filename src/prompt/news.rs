//! Says once that an update of the program brought other built-in prompts than those that were in use before.

use std::fmt::Write;
use std::path::Path;

use crate::files::private::make_private_dir;
use crate::files::regular::{read_regular, replace_file};

use super::layer::MODULES;
use super::registry::Registry;
use super::version::Version;

/// The built-in prompts of the last start, a line each: the name and the version in production.
const KNOWN: &str = "builtin_prompts";

impl Registry {
    /// One line about the built-in prompts that changed since the last start, without those that the person released
    /// themselves, which stay. `None` if nothing changed, at the first start, and where `state_dir` cannot remember it.
    pub fn report_update(&self, state_dir: &Path) -> Option<String> {
        let builtin = Self::new(&[]);
        let names = builtin.names().ok()?.into_iter().filter(|name| !name.starts_with(MODULES));
        let now: Vec<(String, Version)> =
            names.filter_map(|name| builtin.find_meant(&name).ok().map(|version| (name, version))).collect();
        let text = now.iter().fold(String::new(), |mut text, (name, version)| {
            let _ = writeln!(text, "{name} {version}");
            text
        });
        let path = state_dir.join(KNOWN);
        let known = read_regular(&path).ok().flatten();
        if known.as_ref() == Some(&text) {
            return None;
        }
        make_private_dir(state_dir).and_then(|()| replace_file(&path, text.as_bytes())).ok()?;
        let known = known?;
        let mut changed = Vec::new();
        for (name, version) in &now {
            let before = known.lines().find_map(|line| line.strip_prefix(name.as_str())?.strip_prefix(' '));
            let Some(before) = before.filter(|before| *before != version.to_string()) else { continue };
            let is_meant = self.find_meant(name).is_ok_and(|meant| meant == *version);
            if is_meant && self.home(name, Some(*version)).ok()?.is_none() {
                changed.push((name, before, version));
            }
        }
        let still_there = |(name, before, _): &&(&String, &str, &Version)| {
            builtin.find_meant(&format!("{name}@{before}")).is_ok()
        };
        let advice = match changed.iter().find(still_there) {
            Some((name, before, version)) => format!("agent prompt diff {name}@{before} {name}@{version}"),
            None => format!("agent prompt show {}", changed.first()?.0),
        };
        let list: Vec<String> =
            changed.iter().map(|(name, before, version)| format!("{name} {before} → {version}")).collect();
        Some(format!("new prompts came with this version: {} ({advice})", list.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::registry::Registry;
    use super::KNOWN;
    use crate::config::PromptDir;

    #[test]
    fn an_update_is_told_once_and_what_a_person_released_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let registry = Registry::new(&[]);
        let file = dir.path().join(KNOWN);
        assert_eq!(registry.report_update(dir.path()), None, "nothing was known before the first start");
        let now = fs::read_to_string(&file).expect("remembered");
        assert!(now.contains("system v") && !now.contains("modules/"), "{now}");
        assert_eq!(registry.report_update(dir.path()), None);
        let version = registry.find_meant("system").expect("built in");
        let before = now.replace(&format!("system {version}"), "system v1.0");
        fs::write(&file, &before).expect("written");
        let told = registry.report_update(dir.path()).expect("it changed");
        assert!(
            told.contains(&format!("system v1.0 → {version} (agent prompt diff system@v1.0 system@{version})")),
            "{told}"
        );
        assert_eq!(registry.report_update(dir.path()), None, "once");
        fs::write(&file, now.replace(&format!("system {version}"), "system v0.9")).expect("written");
        let told = registry.report_update(dir.path()).expect("it changed");
        assert!(told.ends_with("(agent prompt show system)"), "there is no v0.9 to compare with: {told}");
        let own = dir.path().join("prompts/system");
        fs::create_dir_all(&own).expect("made");
        fs::write(own.join("v9.0.md"), "---\ndescription: d\n---\nYou help.\n").expect("written");
        fs::write(own.join("release.yaml"), "labels: { production: v9.0 }\n").expect("written");
        fs::write(&file, before).expect("written");
        let of_person = Registry::new(&[PromptDir::new(dir.path().join("prompts"))]);
        assert_eq!(of_person.report_update(dir.path()), None);
    }
}
