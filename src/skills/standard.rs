//! Checks a `SKILL.md` against the standard (agentskills.io) as strictly as its reference validator, including its
//! quirks. The head ends at the next three dashes, wherever they are; YAML is a subset without flow style, anchors
//! and tags; letters of every script are letters.

use crate::base::text;
use crate::base::yaml::{self, Node, YamlTree};

use super::check::SkillProblem;
use super::header::{DESCRIPTION_CHARS, KEYS, NAME_CHARS};

const COMPATIBILITY_CHARS: usize = 500;
const DASHES: &str = "---";

/// The problems of a file in a directory of this name; empty if it is valid.
pub(super) fn find_problems(content: &str, folder: &str) -> Vec<SkillProblem> {
    let Some(rest) = content.strip_prefix(DASHES) else {
        let is_marked = content.starts_with('\u{feff}');
        let marked = "it begins with a byte-order mark, where the three dashes of its head belong";
        return vec![SkillProblem::new(1, if is_marked { marked } else { "it does not begin with three dashes" })];
    };
    let Some(end) = rest.find(DASHES) else {
        return vec![SkillProblem::new(1, "its head is not closed by three dashes")];
    };
    // The first line is that of the dashes, so places in the head are places in the file.
    let head = &rest[..end];
    let (node, duplicates) = match yaml::tree_of_firsts(head, 0) {
        Ok(read) => read,
        Err(error) => return vec![SkillProblem::new(error.line.unwrap_or(1), error.message)],
    };
    let mut problems: Vec<SkillProblem> =
        duplicates.into_iter().map(|error| SkillProblem { line: error.line, message: error.message }).collect();
    outside_the_subset(&node, head, &mut problems);
    // Unreadable content is not checked further.
    if !problems.is_empty() {
        return problems;
    }
    if !matches!(node.tree, YamlTree::Map(_)) || node.entries().is_empty() {
        return vec![SkillProblem::new(node.place.line.max(1), "its head is not a mapping: `key: value` lines")];
    }
    for (key, _) in node.entries().iter().filter(|(key, _)| !KEYS.contains(&&*key.text)) {
        let message = format!("the standard has no key `{}`; it has {}", key.text, KEYS.join(", "));
        problems.push(SkillProblem::new(key.place.line, message));
    }
    if let Some((line, name)) = require_field(&node, "name", &mut problems) {
        check_name(name, folder, line, &mut problems);
    }
    if let Some((line, description)) = require_field(&node, "description", &mut problems) {
        check_length("description", description, DESCRIPTION_CHARS, line, &mut problems);
    }
    if let Some(value) = node.get("compatibility") {
        let line = value.place.line;
        match value.text() {
            Some(text) => check_length("compatibility", text, COMPATIBILITY_CHARS, line, &mut problems),
            None => problems.push(SkillProblem::new(line, "`compatibility` must be a text")),
        }
    }
    problems
}

/// The line and text of a required field.
fn require_field<'n>(node: &'n Node, key: &str, problems: &mut Vec<SkillProblem>) -> Option<(usize, &'n str)> {
    let Some((key, value)) = node.entries().iter().find(|(k, _)| k.text == key) else {
        problems.push(SkillProblem::new(1, format!("the key `{key}` is missing")));
        return None;
    };
    let text = value.text().filter(|text| !text.trim().is_empty());
    if text.is_none() {
        let message = format!("`{}` must be a text that is not empty", key.text);
        problems.push(SkillProblem::new(key.place.line, message));
    }
    Some((key.place.line, text?))
}

fn check_name(name: &str, folder: &str, line: usize, problems: &mut Vec<SkillProblem>) {
    let name = text::normalise_nfkc(name.trim());
    check_length("name", &name, NAME_CHARS, line, problems);
    let mut rule = |holds: bool, message: &str| {
        if !holds {
            problems.push(SkillProblem::new(line, format!("the name `{name}` {message}")));
        }
    };
    rule(*name == name.to_lowercase(), "must be in lowercase");
    rule(!name.starts_with('-') && !name.ends_with('-'), "must not begin or end with `-`");
    rule(!name.contains("--"), "must not have two `-` in a row");
    rule(
        name.chars().all(|c| c == '-' || text::is_letter_or_number(c)),
        "must have only letters, numbers and `-`",
    );
    rule(text::normalise_nfkc(folder) == name, &format!("must be that of its directory, `{folder}`"));
}

fn check_length(key: &str, text: &str, most: usize, line: usize, problems: &mut Vec<SkillProblem>) {
    let count = text.chars().count();
    if count > most {
        problems.push(SkillProblem::new(line, format!("`{key}` has {count} characters, more than {most}")));
    }
}

/// Flow style, anchors, aliases and tags.
fn outside_the_subset(node: &Node, head: &str, problems: &mut Vec<SkillProblem>) {
    let lines: Vec<&str> = head.lines().collect();
    walk_nodes(node, &mut |node| {
        let line = lines.get(node.place.line.wrapping_sub(1)).copied().unwrap_or_default();
        let first = line.chars().nth(node.place.column.wrapping_sub(1));
        // An anchor comes before its value, which may also follow on the next lines.
        let value = line.trim_start().trim_start_matches("- ");
        let value = value.split_once(": ").map_or(value, |(_, value)| value).trim_start();
        let message = match &node.tree {
            YamlTree::List(_) | YamlTree::Map(_) if matches!(first, Some('[' | '{')) => {
                "the standard has no flow style: `[…]` and `{…}` are not read"
            }
            YamlTree::Scalar(scalar)
                if scalar.form == yaml::ScalarForm::Plain && value.starts_with(['&', '*', '!']) =>
            {
                "the standard has no anchors, aliases and tags"
            }
            _ => return,
        };
        problems.push(SkillProblem::new(node.place.line, message));
    });
}

fn walk_nodes(node: &Node, look: &mut dyn FnMut(&Node)) {
    look(node);
    match &node.tree {
        YamlTree::Scalar(_) => {}
        YamlTree::List(items) => items.iter().for_each(|item| walk_nodes(item, look)),
        YamlTree::Map(entries) => entries.iter().for_each(|(_, value)| walk_nodes(value, look)),
    }
}

#[cfg(test)]
mod tests {
    use super::find_problems;

    /// The verdicts of the reference validator on files in a directory `my-skill`.
    #[test]
    fn verdicts_are_those_of_the_standard() {
        let long = |chars: usize| "x".repeat(chars);
        let fields = "name: my-skill\ndescription: Does it.\n";
        let valid = [
            fields.to_owned(),
            format!(
                "{fields}license: MIT\ncompatibility: Needs git\nmetadata:\n  author: x\n  version: 1.0\nallowed-tools: Bash(jq:*) Read\n"
            ),
            format!("name: my-skill\ndescription: {}\n", long(1024)),
            format!("{fields}compatibility: {}\n", long(500)),
            "name: \"my-skill\"\ndescription: |\n  Two\n  lines\n".to_owned(),
            "name: my-skill\ndescription: cut --- here\nlicence: never seen\n".to_owned(),
            "name: my-skill\ndescription: 12\nmetadata: anything\n".to_owned(),
        ];
        for head in valid {
            assert_eq!(find_problems(&format!("---\n{head}---\nbody"), "my-skill"), [], "{head}");
        }
        let invalid: [(&str, usize, &str); 22] = [
            ("# no head", 1, "does not begin with three dashes"),
            ("\u{feff}---\nname: my-skill\ndescription: d\n---\n", 1, "byte-order mark"),
            ("---\nname: my-skill\n", 1, "not closed"),
            ("---\nname: [a\n---\n", 3, ""),
            ("---\n- a\n---\n", 2, "not a mapping"),
            ("---\n---\n", 2, "not a mapping"),
            ("---\nname: my-skill\ndescription: Use: when\n---\n", 3, "mapping values"),
            ("---\ndescription: d\n---\n", 1, "`name` is missing"),
            ("---\nname: my-skill\n---\n", 1, "`description` is missing"),
            ("---\nname:\ndescription: d\n---\n", 2, "`name` must be a text"),
            ("---\nname: my-skill\ndescription: ''\n---\n", 3, "`description` must be a text"),
            ("---\nname: MySkill\ndescription: d\n---\n", 2, "lowercase"),
            ("---\nname: -my-skill\ndescription: d\n---\n", 2, "begin or end"),
            ("---\nname: my--skill\ndescription: d\n---\n", 2, "two `-`"),
            ("---\nname: my_skill\ndescription: d\n---\n", 2, "letters, numbers"),
            ("---\nname: other\ndescription: d\n---\n", 2, "that of its directory"),
            ("---\nname: my-skill\ndescription: d\ncolour: red\n---\n", 4, "no key `colour`"),
            ("---\nname: my-skill\ndescription: d\nname: my-skill\n---\n", 4, "is duplicated"),
            ("---\nname: my-skill\ndescription: d\nmetadata: {a: b}\n---\n", 4, "flow style"),
            ("---\nname: my-skill\ndescription: &x d\n---\n", 3, "anchors"),
            ("---\nname: my-skill\ndescription: d\ncompatibility:\n  - a\n---\n", 5, "`compatibility` must be"),
            ("---\nname: my-skill\ndescription: ends --- name: x\n", 0, ""),
        ];
        for (content, line, message) in invalid {
            let found = find_problems(content, "my-skill");
            if line == 0 {
                assert_eq!(found, [], "dashes inside a value close the head for the standard: {content}");
                continue;
            }
            assert!(
                found.iter().any(|p| p.line == Some(line) && p.message.contains(message)),
                "{content}: {found:?}"
            );
        }
        let too_long =
            format!("---\nname: my-skill\ndescription: {}\ncompatibility: {}\n---\n", long(1025), long(501));
        assert_eq!(find_problems(&too_long, "my-skill").len(), 2);
        let name = long(65);
        assert_eq!(find_problems(&format!("---\nname: {name}\ndescription: d\n---\n"), &name).len(), 1);
    }

    #[test]
    fn names_of_every_script_are_compared_in_one_form() {
        for (name, folder, is_valid) in [
            ("技能", "技能", true),
            ("навык-один", "навык-один", true),
            ("cafe\u{301}", "caf\u{e9}", true),
            ("ｗｉｄｅ", "wide", true),
            ("НАВЫК", "НАВЫК", false),
            ("हिन्दी", "हिन्दी", false),
            ("a😀", "a😀", false),
        ] {
            let found = find_problems(&format!("---\nname: {name}\ndescription: d\n---\n"), folder);
            assert_eq!(found.is_empty(), is_valid, "{name}: {found:?}");
        }
    }
}
