//! The tools that a skill asks to use without questions (`allowed-tools`), as permission rules.
//!
//! The list grants nothing: calls that the user's rules allow run without a question anyway, and a skill cannot
//! allow others. It is shown, so that the user can turn it into rules.

use std::fmt;

use crate::config::PermissionRule;

/// One entry of `allowed-tools`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// The entry as written.
    pub entry: String,
    /// The rule that would allow it; `None` if it names no tool of this program.
    pub rule: Option<PermissionRule>,
}

/// The tool names of other agents, and ours.
const TOOLS: [(&str, &str); 9] = [
    ("Bash", "run_command"),
    ("Read", "read_file"),
    ("Write", "write_file"),
    ("Edit", "edit_file"),
    ("MultiEdit", "edit_file"),
    ("Grep", "grep"),
    ("Glob", "glob"),
    ("LS", "list_dir"),
    ("WebFetch", "fetch_url"),
];

impl Allowed {
    /// Reads an entry: `Read`, `Bash(git diff:*)`, `Bash(npm test)`, a name of our own.
    pub(super) fn read(entry: &str) -> Self {
        let (name, inside) = match entry.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').or(Some(rest))),
            None => (entry, None),
        };
        let known = TOOLS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
        let is_ours = |name: &&str| TOOLS.iter().any(|(_, ours)| ours == name);
        let tool = known.or(Some(name).filter(is_ours));
        let rule = tool.and_then(|tool| {
            let mut rule = PermissionRule { allow: Some(tool.to_owned()), ..PermissionRule::default() };
            match (tool, inside.map(str::trim)) {
                (_, None | Some("" | "*" | ":*")) => {}
                ("run_command", Some(inside)) => rule.command = Some(split_words(inside)),
                ("read_file" | "write_file" | "edit_file", Some(path)) => rule.path = Some(path.to_owned()),
                _ => return None,
            }
            Some(rule)
        });
        Self { entry: entry.to_owned(), rule }
    }
}

/// The words of a pattern; `git diff:*` matches any command that begins with them.
fn split_words(pattern: &str) -> Vec<String> {
    let (fixed, is_open) = match pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *")) {
        Some(fixed) => (fixed, true),
        None => (pattern, false),
    };
    fixed.split_whitespace().chain(is_open.then_some("*")).map(str::to_owned).collect()
}

/// The rule as written in a list of rules, or why there is none.
impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => write!(f, "- {}", serde_json::to_string(rule).map_err(|_| fmt::Error)?),
            None => write!(f, "# {}: no tool of this program", self.entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Allowed;

    #[test]
    fn entries_read_as_rules_of_ours() {
        for (entry, expected) in [
            ("Read", r#"- {"allow":"read_file"}"#),
            ("Bash(git:*)", r#"- {"allow":"run_command","command":["git","*"]}"#),
            ("Bash(git diff:*)", r#"- {"allow":"run_command","command":["git","diff","*"]}"#),
            ("Bash(npm test)", r#"- {"allow":"run_command","command":["npm","test"]}"#),
            ("Bash", r#"- {"allow":"run_command"}"#),
            ("Edit(src/**)", r#"- {"allow":"edit_file","path":"src/**"}"#),
            ("grep", r#"- {"allow":"grep"}"#),
            ("AskUserQuestion", "# AskUserQuestion: no tool of this program"),
            ("mcp__x__y(a)", "# mcp__x__y(a): no tool of this program"),
        ] {
            assert_eq!(Allowed::read(entry).to_string(), expected, "{entry}");
        }
    }
}
