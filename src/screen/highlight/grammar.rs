//! The grammars of two-face, and the inks of their scopes.

use std::sync::OnceLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use crate::screen::ink::{Ink, Inks};

/// The longest line in bytes that is coloured: grammars are slow, and longer lines are usually generated.
const LONGEST_LINE: usize = 2000;

/// The inks of scopes, most specific first. Other scopes are plain.
const SCOPES: &[(&str, Inks)] = &[
    ("comment", from_ink(Ink::Dim)),
    ("string.regexp", from_ink(Ink::Cyan)),
    ("constant.character.escape", from_ink(Ink::Cyan)),
    ("string", from_ink(Ink::Green)),
    ("constant", from_ink(Ink::Cyan)),
    ("keyword.operator.word", from_ink(Ink::Magenta)),
    ("keyword.operator.logical.python", from_ink(Ink::Magenta)),
    ("keyword.operator", Inks::PLAIN),
    ("keyword", from_ink(Ink::Magenta)),
    ("storage.type.numeric", from_ink(Ink::Cyan)),
    ("storage", from_ink(Ink::Magenta)),
    ("entity.name.tag", from_ink(Ink::Blue)),
    ("entity.other.attribute-name", from_ink(Ink::Yellow)),
    ("entity.name.function", from_ink(Ink::Blue)),
    ("entity.name.section", from_ink(Ink::Bold)),
    ("entity.name", from_ink(Ink::Yellow)),
    ("entity.other.inherited-class", from_ink(Ink::Yellow)),
    ("variable.function", from_ink(Ink::Blue)),
    ("variable.language", from_ink(Ink::Magenta)),
    ("support.function", from_ink(Ink::Blue)),
    ("support.macro", from_ink(Ink::Blue)),
    ("support.type.property-name", from_ink(Ink::Blue)),
    ("support", from_ink(Ink::Yellow)),
    ("markup.heading", from_ink(Ink::Bold)),
    ("markup.bold", from_ink(Ink::Bold)),
    ("markup.italic", from_ink(Ink::Italic)),
    ("markup.inserted", from_ink(Ink::Green)),
    ("markup.deleted", from_ink(Ink::Red)),
    ("markup.raw", from_ink(Ink::Cyan)),
    ("markup.underline.link", from_ink(Ink::Underline)),
];

const fn from_ink(ink: Ink) -> Inks {
    Inks::PLAIN.add(ink)
}

/// Colours the lines of one block of code, in their order.
#[derive(Debug, Clone)]
pub struct Highlighter {
    grammars: &'static Grammars,
    state: ParseState,
    scopes: ScopeStack,
}

/// The grammars and their inks, loaded once.
#[derive(Debug)]
struct Grammars {
    set: SyntaxSet,
    inks: Vec<(Scope, Inks)>,
}

impl Highlighter {
    /// Creates a highlighter for a language, given its name or file extension. `None` if no grammar knows it.
    pub fn new(language: &str) -> Option<Self> {
        let grammars = load_grammars();
        let grammar = grammars.set.find_syntax_by_token(resolve_alias(language))?;
        Some(Self { grammars, state: ParseState::new(grammar), scopes: ScopeStack::new() })
    }

    /// Splits the next line, which has no line feed, into parts with their inks.
    pub fn line<'l>(&mut self, line: &'l str) -> Vec<(Inks, &'l str)> {
        if line.len() > LONGEST_LINE {
            return vec![(Inks::PLAIN, line)];
        }
        // The grammars recognise the end of a line by its line feed.
        let Ok(changes) = self.state.parse_line(&format!("{line}\n"), &self.grammars.set) else {
            return vec![(Inks::PLAIN, line)];
        };
        let mut parts = Vec::new();
        let mut start = 0;
        for (at, change) in changes {
            let at = at.min(line.len());
            if at > start {
                parts.push((self.inks(), &line[start..at]));
                start = at;
            }
            // An error means that the grammar closes a scope that is not open; the rest is still coloured.
            let _ = self.scopes.apply(&change);
        }
        if start < line.len() {
            parts.push((self.inks(), &line[start..]));
        }
        parts
    }

    /// The inks of the innermost scope that has any.
    fn inks(&self) -> Inks {
        let of_scope = |scope: &Scope| {
            self.grammars.inks.iter().find(|(known, _)| known.is_prefix_of(*scope)).map(|(_, inks)| *inks)
        };
        self.scopes.as_slice().iter().rev().find_map(of_scope).unwrap_or_default()
    }
}

fn load_grammars() -> &'static Grammars {
    static GRAMMARS: OnceLock<Grammars> = OnceLock::new();
    GRAMMARS.get_or_init(|| Grammars {
        set: two_face::syntax::extra_newlines(),
        inks: SCOPES.iter().filter_map(|(name, inks)| Some((Scope::new(name).ok()?, *inks))).collect(),
    })
}

/// Maps names of languages that models use to the names that the grammars know.
fn resolve_alias(language: &str) -> &str {
    const ALIASES: &[(&str, &str)] = &[
        ("sh", "console shell shellsession zsh"),
        ("json", "jsonc json5 jsonl"),
        ("cs", "csharp c#"),
        ("go", "golang"),
        ("m", "objective-c objc"),
        ("tsx", "jsx"),
        ("dockerfile", "docker"),
        ("tf", "terraform"),
        ("protobuf", "proto"),
        ("vim", "viml"),
    ];
    let is_meant = |names: &str| names.split(' ').any(|name| name.eq_ignore_ascii_case(language));
    ALIASES.iter().find(|(_, names)| is_meant(names)).map_or(language, |(known, _)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_line_have_the_inks_of_what_they_are() {
        let mut rust = Highlighter::new("rust").expect("a grammar");
        let line = "    let x = \"é\"; // why";
        let parts = rust.line(line);
        assert_eq!(parts.iter().map(|(_, part)| *part).collect::<String>(), line);
        let inks = |wanted: &str| parts.iter().find(|(_, part)| part.trim() == wanted).map(|(inks, _)| *inks);
        assert_eq!(inks("let"), Some(from_ink(Ink::Magenta)));
        assert_eq!(inks("é"), Some(from_ink(Ink::Green)));
        assert_eq!(inks("why"), Some(from_ink(Ink::Dim)));
    }

    #[test]
    fn what_a_line_opens_colours_the_next_one() {
        let mut c = Highlighter::new("c").expect("a grammar");
        c.line("int x; /* it goes");
        assert_eq!(c.line("on here */ int y;")[0], (from_ink(Ink::Dim), "on here "));
    }

    #[test]
    fn languages_are_known_by_the_names_that_models_use() {
        #[rustfmt::skip]
        let names = [
            "rust", "rs", "python", "py", "sh", "bash", "zsh", "console", "json", "jsonc", "yaml", "toml", "js",
            "javascript", "ts", "typescript", "tsx", "jsx", "go", "java", "kotlin", "swift", "c", "cpp", "c++", "csharp",
            "cs", "html", "css", "sql", "dockerfile", "Dockerfile", "makefile", "lua", "ruby", "php", "xml",
            "ini", "nix", "haskell", "elixir", "markdown", "vue", "svelte", "terraform", "graphql", "protobuf", "perl",
        ];
        let unknown: Vec<_> = names.into_iter().filter(|name| Highlighter::new(name).is_none()).collect();
        assert_eq!(unknown, [""; 0]);
        assert!(Highlighter::new("no such language").is_none());
    }

    #[test]
    fn every_ink_belongs_to_a_scope_that_can_be_written() {
        assert_eq!(load_grammars().inks.len(), SCOPES.len());
    }

    #[test]
    fn the_licences_of_the_grammars_are_in_the_tree() {
        let notice = include_str!("NOTICE.md");
        let bare = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned();
        for license in two_face::acknowledgement::listing().for_syntaxes() {
            let section = format!("## {}\n\n{}", license.rel_path.display(), bare(&license.text));
            assert!(notice.contains(&section), "{}", license.rel_path.display());
        }
    }
}
