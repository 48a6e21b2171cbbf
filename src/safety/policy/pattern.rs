//! Patterns for a rule's `path` and `command`.

use crate::base::text::Glob;

use super::shell::Arg;
use super::target::Target;

/// The certainty with which something matches a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// It may match; that is only known when it runs.
    Possible,
    Yes,
}

/// A pattern over the words of a simple command: a glob for each, and a last `*` for any that follow.
#[derive(Debug, Clone)]
pub(super) struct CommandPattern {
    words: Vec<Glob>,
    is_open: bool,
}

impl CommandPattern {
    pub fn new(pattern: &[String]) -> Result<Self, String> {
        let (is_open, words) = match pattern.split_last() {
            Some((last, words)) if last == "*" => (true, words),
            _ => (false, pattern),
        };
        Ok(Self { words: words.iter().map(|word| Glob::word(word)).collect::<Result<_, _>>()?, is_open })
    }

    /// `by_name`: a program given by its path counts as the program of that name.
    pub fn matches(&self, argv: &[Arg], by_name: bool) -> Match {
        for (at, pattern) in self.words.iter().enumerate() {
            match argv.get(at) {
                None => return Match::No,
                Some(Arg::Unknown) => return Match::Possible,
                Some(Arg::Literal(word)) => {
                    let name = word.rsplit('/').next().filter(|_| by_name && at == 0);
                    if !pattern.matches(word) && !name.is_some_and(|name| pattern.matches(name)) {
                        return Match::No;
                    }
                }
            }
        }
        let rest = &argv[self.words.len()..];
        match rest {
            _ if self.is_open => Match::Yes,
            [] => Match::Yes,
            rest if rest.iter().all(|word| *word == Arg::Unknown) => Match::Possible,
            _ => Match::No,
        }
    }

    /// True if the pattern spells out the word at this position.
    pub fn spells(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|word| !word.as_str().contains(['*', '?', '[', '{', '\\']))
    }
}

/// A pattern over paths: relative to the workspace, or absolute.
#[derive(Debug, Clone)]
pub(super) struct PathPattern {
    glob: Glob,
    /// The fixed directories at its beginning.
    fixed: Vec<String>,
}

impl PathPattern {
    pub fn new(pattern: &str) -> Result<Self, String> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let fixed = pattern.split('/').take_while(|part| !part.contains(['*', '?', '[', '{', '\\']));
        Ok(Self { glob: Glob::path(pattern)?, fixed: fixed.map(str::to_owned).collect() })
    }

    pub fn glob(&self) -> &Glob {
        &self.glob
    }

    /// A directory possibly matches if something in it could.
    pub fn matches(&self, target: &Target) -> Match {
        if self.glob.matches(&target.path) {
            return Match::Yes;
        }
        let parts = target.path.split('/').filter(|part| *part != ".");
        let on_the_way = target.is_dir && parts.zip(&self.fixed).all(|(part, fixed)| part == fixed);
        if on_the_way { Match::Possible } else { Match::No }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_matched_word_by_word() {
        let match_of = |pattern: &str, line: &str, by_name| {
            let pattern: Vec<String> = pattern.split(' ').map(str::to_owned).collect();
            let word = |word: &str| match word {
                "…" => Arg::Unknown,
                word => Arg::Literal(word.to_owned()),
            };
            let argv: Vec<Arg> = line.split(' ').map(word).collect();
            CommandPattern::new(&pattern).expect("a pattern").matches(&argv, by_name)
        };
        for (pattern, line, expected) in [
            ("cargo test *", "cargo test", Match::Yes),
            ("cargo test *", "cargo test -p x", Match::Yes),
            ("cargo test *", "cargo test …", Match::Yes),
            ("cargo test *", "cargo … x", Match::Possible),
            ("cargo test *", "cargo build", Match::No),
            ("cargo test *", "cargo", Match::No),
            ("cargo test", "cargo test", Match::Yes),
            ("cargo test", "cargo test x", Match::No),
            ("cargo test", "cargo test …", Match::Possible),
            ("npm run test:*", "npm run test:unit", Match::Yes),
            ("cat src/*", "cat src/a/b", Match::Yes),
            ("*", "anything at all", Match::Yes),
            ("* --version", "x --version", Match::Yes),
            ("rm *", "…", Match::Possible),
            ("rm *", "/bin/rm x", Match::No),
        ] {
            assert_eq!(match_of(pattern, line, false), expected, "{pattern} over {line}");
        }
        assert_eq!(match_of("rm *", "/bin/rm x", true), Match::Yes);
        assert_eq!(match_of("x", "y /x", true), Match::No);
    }

    #[test]
    fn paths_are_matched_with_the_directories_on_their_way() {
        let match_of = |pattern: &str, path: &str| {
            let is_dir = path.ends_with('/');
            let path = path.trim_end_matches('/').to_owned();
            let target = Target { path, is_dir, ..Target::default() };
            PathPattern::new(pattern).expect("a pattern").matches(&target)
        };
        for (pattern, path, expected) in [
            ("secrets/**", "secrets/a/b", Match::Yes),
            ("./secrets/**", "secrets/a", Match::Yes),
            ("secrets/**", "secrets/", Match::Possible),
            ("secrets/**", "./", Match::Possible),
            ("secrets/**", "src/", Match::No),
            ("secrets/**", "src/secrets/a", Match::No),
            ("a/b/*.rs", "a/", Match::Possible),
            ("a/b/*.rs", "a/c/", Match::No),
            ("a/*.rs", "a/b/c.rs", Match::No),
            ("**/*.pem", "x/y/z.pem", Match::Yes),
            ("**/*.pem", "x/", Match::Possible),
            ("/etc/**", "/etc/passwd", Match::Yes),
        ] {
            assert_eq!(match_of(pattern, path), expected, "{pattern} over {path}");
        }
    }
}
