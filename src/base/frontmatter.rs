//! The YAML head of a Markdown file, between two lines of three dashes.
//!
//! Only a line that consists of `---` opens or closes a head, so dashes inside a value never split it. Places in
//! errors are places in the file, not in the head.

use serde::de::DeserializeOwned;

use crate::base::yaml::{self, YamlError};

/// A Markdown text in its two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrontmatterParts<'a, T = Option<&'a str>> {
    /// The YAML between the dashes, as text or as data; `None` if the text does not begin with a line of dashes.
    pub head: T,
    /// The text after the head; the whole text if there is none. Never begins with a byte-order mark.
    pub body: &'a str,
    /// The line of the file, 1-based, on which the body begins.
    pub body_line: usize,
}

/// Splits `text` without parsing its head.
///
/// # Errors
/// A head is opened and never closed.
pub fn split_head(text: &str) -> Result<FrontmatterParts<'_>, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else {
        return Ok(FrontmatterParts { head: None, body: text, body_line: 1 });
    };
    let mut end = first.len();
    for (index, line) in lines.enumerate() {
        if is_fence(line) {
            return Ok(FrontmatterParts {
                head: Some(&text[first.len()..end]),
                body: &text[end + line.len()..],
                body_line: index + 3,
            });
        }
        end += line.len();
    }
    Err(YamlError {
        message: "the head that begins here is never closed: a line of three dashes is missing".to_owned(),
        line: Some(1),
        column: None,
    })
}

/// Splits `text` and parses its head; a missing head counts as empty.
///
/// # Errors
/// The head is not closed, is not YAML, or does not fit `T`.
pub fn parse_frontmatter<T: DeserializeOwned>(text: &str) -> Result<FrontmatterParts<'_, T>, YamlError> {
    let FrontmatterParts { head, body, body_line } = split_head(text)?;
    // The line break replaces the opening dashes, so places in the head are places in the file.
    let head = match head {
        Some(head) if !head.trim().is_empty() => format!("\n{head}"),
        _ => "{}".to_owned(),
    };
    let head = yaml::parse_document(&head);
    let head = head.map_err(|error| YamlError { line: error.line.or(Some(1)), ..error })?;
    Ok(FrontmatterParts { head, body, body_line })
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{parse_frontmatter, split_head};
    use crate::base::builtin::{self, CONFIGS, PROMPTS, SKILLS};
    use crate::base::yaml;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Head {
        description: String,
        level: u8,
    }

    #[test]
    fn a_head_ends_at_a_line_of_dashes_alone() {
        for (text, head, body, line) in [
            ("---\na: 1\n---\nbody\n", Some("a: 1\n"), "body\n", 4),
            ("---\r\na: 1\r\n---\r\nbody", Some("a: 1\r\n"), "body", 4),
            ("\u{feff}---\na: 1\n---\n", Some("a: 1\n"), "", 4),
            ("---\na: b --- c\nd: |\n  ---\n---\nbody", Some("a: b --- c\nd: |\n  ---\n"), "body", 6),
            ("---\n---\nbody", Some(""), "body", 3),
            ("---", None, "", 0),
            ("no head\n---\n", None, "no head\n---\n", 1),
            ("---- not dashes\n", None, "---- not dashes\n", 1),
        ] {
            if let Ok(parts) = split_head(text) {
                assert_eq!((parts.head, parts.body, parts.body_line), (head, body, line), "{text:?}");
            } else {
                assert_eq!(text, "---", "only an unclosed head is an error");
            }
        }
    }

    #[test]
    fn a_text_without_a_head_has_the_defaults() {
        assert_eq!(parse_frontmatter::<Head>("just text").expect("no head is no error").head, Head::default());
        assert_eq!(
            parse_frontmatter::<Head>("---\n\n---\ntext").expect("so is an empty one").head,
            Head::default()
        );
    }

    #[test]
    fn places_are_places_in_the_file() {
        let error =
            parse_frontmatter::<Head>("---\ndescription: fine\nlevel: high\n---\n").expect_err("not a number");
        assert_eq!((error.line, error.column), (Some(3), Some(8)));
    }

    /// Of every file that is built in: the tree that the build made, and the one that is read from its text.
    #[test]
    fn the_build_reads_files_as_the_program_does() {
        let folders = [("configs", &CONFIGS), ("prompts", &PROMPTS), ("skills", &SKILLS)];
        let mut read = 0;
        for (folder, dir) in folders {
            let mut dirs = vec![dir];
            while let Some(dir) = dirs.pop() {
                dirs.extend(dir.dirs());
                for file in dir.files() {
                    let path = file.path().to_string_lossy();
                    let Some(packed) = builtin::find_tree(folder, &path) else { continue };
                    let text = file.contents_utf8().expect("text");
                    let head = split_head(text).expect("closed").head;
                    let text = head.map_or(text.to_owned(), |head| format!("\n{head}"));
                    assert_eq!(Ok(yaml::unpack_tree(packed, 7)), yaml::parse_tree(&text, 7), "{folder}/{path}");
                    read += 1;
                }
            }
        }
        let is_read = |folder: &str, path: &str| builtin::find_tree(folder, path).is_some();
        assert!(read > 8 && is_read("configs", "agent.yaml") && is_read("prompts", "system/v1.0.md"));
    }
}
