//! The files that a template names in `include`, `extends`, `import` and `from`.
//!
//! They are found in the source, before anything is rendered: a template can include only files that it names
//! literally, so that a fingerprint covers all of a prompt and no value chooses a file.

use crate::template::is_safe_name;

const KEYWORDS: [&str; 4] = ["include", "extends", "import", "from"];

/// The quoted names in the tags of a source, each once, in order. Names that lead out of the prompt directories are
/// left out.
pub(super) fn find_includes(source: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for tag in source.split("{%").skip(1).filter_map(|rest| rest.split("%}").next()) {
        let tag = tag.trim_start_matches(['-', '+']).trim_start();
        let is_meant = KEYWORDS.iter().any(|word| {
            tag.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        if !is_meant {
            continue;
        }
        for name in list_quoted(tag) {
            if is_safe_name(name) && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

fn list_quoted(tag: &str) -> impl Iterator<Item = &str> {
    let mut rest = tag;
    std::iter::from_fn(move || {
        let open = rest.find(['"', '\''])?;
        let quote = rest[open..].chars().next()?;
        let inside = &rest[open + 1..];
        let close = inside.find(quote)?;
        rest = &inside[close + 1..];
        Some(&inside[..close])
    })
}

#[cfg(test)]
mod tests {
    use super::find_includes;

    #[test]
    fn names_are_read_from_the_tags() {
        let source = "{% include 'a/part.md' %}{%- extends \"base.md\" -%}{% from 'macros.md' import x %}\
                      {% import 'm.md' as m %}{% include ['b.md', 'a/part.md'] ignore missing %}\
                      {% set includes = 'no.md' %}{{ 'include' }}{% include name %}{% include '../out.md' %}";
        assert_eq!(find_includes(source), ["a/part.md", "base.md", "macros.md", "m.md", "b.md"]);
    }
}
