//! What the head of a `SKILL.md` says, read as people write it.
//!
//! Heads that are not quite YAML are common (`description: Use when: …`). They are read line by line: what follows
//! `name:` and `description:`, indented lines included.

use serde::Deserialize;

use crate::frontmatter;
use crate::yaml;

/// What the catalogue needs of a head. Other keys are left to whoever wants them.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    pub name: Option<String>,
    pub description: Option<String>,
    /// What had to be overlooked.
    #[serde(skip)]
    pub warning: Option<String>,
}

/// # Errors
/// Why there is nothing to read, as a half sentence.
pub(super) fn read(text: &str) -> Result<Header, String> {
    let parts = frontmatter::split(text).map_err(|error| error.message)?;
    let head = parts.head.ok_or("it does not begin with a line of three dashes")?;
    if head.trim().is_empty() {
        return Ok(Header::default());
    }
    yaml::parse(head).or_else(|error| {
        let header = by_lines(head);
        let warning = format!("its head is not YAML ({}): quote values that contain a colon", error.message);
        Ok(Header { warning: Some(warning), ..header })
    })
}

fn by_lines(head: &str) -> Header {
    let mut header = Header::default();
    let mut lines = head.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((key, first)) = line.split_once(':') else { continue };
        let field = match key {
            "name" => &mut header.name,
            "description" => &mut header.description,
            _ => continue,
        };
        let mut words: Vec<&str> = match first.trim() {
            "|" | ">" | "|-" | ">-" => Vec::new(),
            first => vec![first],
        };
        while let Some(more) = lines.next_if(|line| line.starts_with([' ', '\t'])) {
            words.push(more.trim());
        }
        *field = Some(unquoted(&words.join(" ")).to_owned());
    }
    header
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn heads_are_read_as_people_write_them() {
        for (text, name, description, warned) in [
            ("---\nname: a\ndescription: b\n---\n", Some("a"), Some("b"), false),
            ("\u{feff}---\r\nname: a\r\ndescription: b\r\n---\r\n", Some("a"), Some("b"), false),
            ("---\nname: a\ndescription: Use when: always\n---\n", Some("a"), Some("Use when: always"), true),
            ("---\nname: \"a\"\ndescription: 'x: y: z'\nx: y: z\n---\n", Some("a"), Some("x: y: z"), true),
            ("---\ndescription: >\n  one: two: 3\n  four\nx: {\n---\n", None, Some("one: two: 3 four"), true),
            ("---\nname: a\nmetadata:\n  name: inner\n  k: [1]\n---\n", Some("a"), None, false),
            ("---\n---\n", None, None, false),
        ] {
            let header = read(text).expect("there is a head");
            assert_eq!((header.name.as_deref(), header.description.as_deref()), (name, description), "{text:?}");
            assert_eq!(header.warning.is_some(), warned, "{text:?}: {:?}", header.warning);
        }
        assert!(read("# no head\n").is_err());
        assert!(read("---\nname: a\n").is_err());
    }
}
