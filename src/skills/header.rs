//! Reads the head of a `SKILL.md` leniently: it uses what it understands, and notes everything else with its line.

use crate::base::yaml::{self, Node, YamlTree};

use super::mend::quote_values;

/// The longest name by the standard, in characters.
pub(super) const NAME_CHARS: usize = 64;
pub(super) const DESCRIPTION_CHARS: usize = 1024;
/// The keys of the standard.
pub(super) const KEYS: [&str; 6] =
    ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
/// Hides a skill from the model.
const HIDES: &str = "disable-model-invocation";
/// Keys that other agents read and that have no effect here.
const OF_OTHERS: [&str; 8] =
    ["user-invocable", "argument-hint", "model", "context", "agent", "hooks", "paths", "version"];

/// A remark, and the line of the file it concerns, where known.
pub(super) type Remark = (Option<usize>, String);

/// The used fields of a head.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SkillHeader {
    pub name: Option<String>,
    pub description: Option<String>,
    pub license: Option<String>,
    pub compatibility: Option<String>,
    /// The entries as written.
    pub allowed_tools: Vec<String>,
    /// True if only people can load it.
    pub is_hidden: bool,
    /// True if the body is a template.
    pub is_template: bool,
    /// True if it is an example of a skill: built-in examples are loaded only by name, by people.
    pub is_example: bool,
    pub remarks: Vec<Remark>,
}

/// Reads the text between the dashes. Its first line is the second of the file.
///
/// # Errors
/// The reason that the head cannot be used.
pub(super) fn read_header(head: &str) -> Result<SkillHeader, Remark> {
    // The line break replaces the opening dashes, so places in the head are places in the file.
    let located = |head: &str| yaml::tree_of_firsts(&format!("\n{head}"), 0);
    let mut remarks = Vec::new();
    let (node, duplicates) = match located(head) {
        Ok(read) => read,
        Err(error) => {
            let why = format!("its head is not YAML ({}): put quotes around values with a colon", error.message);
            let read = located(&quote_values(head));
            remarks.push((error.line, why));
            read.map_err(|error| (error.line, format!("its head is not YAML: {}", error.message)))?
        }
    };
    remarks.extend(duplicates.into_iter().map(|error| (error.line, error.message)));
    if !matches!(node.tree, YamlTree::Map(_)) && !node.is_blank() {
        return Err((Some(node.place.line), "its head is not a mapping: `key: value` lines".to_owned()));
    }
    let mut header = SkillHeader::from_node(&node);
    header.remarks.splice(0..0, remarks);
    Ok(header)
}

impl SkillHeader {
    /// The fields of a mapping.
    pub(super) fn from_node(node: &Node) -> Self {
        let mut header = Self::default();
        for (key, value) in node.entries() {
            header.take(&key.text, key.place.line, value);
        }
        header
    }

    fn take(&mut self, key: &str, line: usize, value: &Node) {
        let text = value.text().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let field = match key {
            "name" => &mut self.name,
            "description" => &mut self.description,
            "license" => &mut self.license,
            "compatibility" => &mut self.compatibility,
            "allowed-tools" => return self.allowed_tools = list_entries(value),
            "metadata" => return self.take_metadata(value),
            HIDES => {
                self.is_hidden = text.is_some_and(|text| text.eq_ignore_ascii_case("true"));
                return;
            }
            key if OF_OTHERS.contains(&key) => return,
            _ => return self.remarks.push((Some(line), format!("the key `{key}` has no meaning"))),
        };
        if text.is_none() && !value.is_blank() && value.text().is_none() {
            self.remarks.push((Some(line), format!("`{key}` is no text")));
        }
        *field = text;
    }

    fn take_metadata(&mut self, value: &Node) {
        self.is_example = value.get("example").and_then(Node::text) == Some("true");
        let Some(template) = value.get("template") else { return };
        match template.text() {
            Some("jinja") => self.is_template = true,
            _ => {
                let message = "`metadata.template` is not `jinja`: the body is not rendered".to_owned();
                self.remarks.push((Some(template.place.line), message));
            }
        }
    }
}

/// The entries of `allowed-tools`: a list, or a text separated by spaces or commas outside brackets.
fn list_entries(value: &Node) -> Vec<String> {
    if let Some(items) = value.items() {
        return items.iter().filter_map(Node::text).map(str::to_owned).collect();
    }
    let mut depth = 0_usize;
    let split = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c.is_whitespace() || c == ',')
    };
    let text = value.text().unwrap_or_default();
    text.split(split).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{SkillHeader, read_header};

    fn header(head: &str) -> SkillHeader {
        read_header(head).expect("there is a head")
    }

    #[test]
    fn heads_are_read_as_people_write_them() {
        for (head, name, description, line) in [
            ("name: a\ndescription: b\n", Some("a"), Some("b"), None),
            ("name: a\r\ndescription: b\r\n", Some("a"), Some("b"), None),
            ("name: a\ndescription: Use when: always\n", Some("a"), Some("Use when: always"), Some(3)),
            ("name: \"a\"\ndescription: 'x: y: z'\nx: y: z\n", Some("a"), Some("x: y: z"), Some(4)),
            ("description: >\n  one: two: 3\n  four\nx: {\n", None, Some("one: two: 3 four"), Some(6)),
            ("name: a\nmetadata:\n  name: inner\n  k: [1]\n", Some("a"), None, None),
            ("name: 12\ndescription: true\n", Some("12"), Some("true"), None),
            ("name:\ndescription:\n", None, None, None),
            ("", None, None, None),
        ] {
            let header = header(head);
            assert_eq!((header.name.as_deref(), header.description.as_deref()), (name, description), "{head:?}");
            assert_eq!(header.remarks.first().map(|(line, _)| *line), line.map(Some), "{head:?}: {header:?}");
        }
        for hopeless in ["- a\n- b\n", "just text\n", "name: a\n\tb\n  - c: [\n}"] {
            assert!(read_header(hopeless).is_err(), "{hopeless:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_noted_with_its_line() {
        let header = header("name: a\ndescription: b\ncolour: red\nmodel: x\nname: c\nlicense: [x]\n");
        let remarks: Vec<String> = header.remarks.iter().map(|(line, why)| format!("{line:?} {why}")).collect();
        assert_eq!(
            remarks,
            [
                "Some(6) the key `name` is duplicated (first in line 2)",
                "Some(4) the key `colour` has no meaning",
                "Some(7) `license` is no text"
            ]
        );
    }

    #[test]
    fn switches_and_lists_are_read() {
        let header = header(
            "name: a\ndisable-model-invocation: true\nmetadata:\n  template: jinja\n\
             allowed-tools: Bash(git diff:*) Read, Bash(jq:*)\n",
        );
        assert!(header.is_hidden && header.is_template);
        assert_eq!(header.allowed_tools, ["Bash(git diff:*)", "Read", "Bash(jq:*)"]);
        assert!(!self::header("disable-model-invocation: false\nmetadata: {template: none}\n").is_hidden);
        assert_eq!(self::header("allowed-tools: [Read, Write]\n").allowed_tools, ["Read", "Write"]);
    }
}
