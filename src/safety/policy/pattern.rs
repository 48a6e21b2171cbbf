//! Patterns for a rule's `path` and `command`.

use std::path::Path;

use crate::base::text::GlobPattern;

use super::shell::Arg;
use super::target::PathTarget;

/// The certainty with which something matches a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleMatch {
    No,
    /// It may match; that is only known when it runs.
    Possible,
    Yes,
}

impl RuleMatch {
    pub fn certain(matches: bool) -> Self {
        if matches { Self::Yes } else { Self::No }
    }
}

/// A pattern over the words of a simple command: a glob for each, and a last `*` for any that follow.
#[derive(Debug, Clone)]
pub(super) struct CommandPattern {
    words: Vec<GlobPattern>,
    is_open: bool,
}

impl CommandPattern {
    pub fn new(pattern: &[String]) -> Result<Self, String> {
        let (is_open, words) = match pattern.split_last() {
            Some((last, words)) if last == "*" => (true, words),
            _ => (false, pattern),
        };
        Ok(Self { words: words.iter().map(|word| GlobPattern::word(word)).collect::<Result<_, _>>()?, is_open })
    }

    /// `by_name`: a program given by its path counts as the program of that name.
    pub fn matches(&self, argv: &[Arg], by_name: bool) -> RuleMatch {
        for (at, pattern) in self.words.iter().enumerate() {
            match argv.get(at) {
                None => return RuleMatch::No,
                Some(Arg::Unknown | Arg::Pattern(_) | Arg::InHome(_)) => return RuleMatch::Possible,
                Some(Arg::Literal(word)) => {
                    let name = word.rsplit('/').next().filter(|_| by_name && at == 0);
                    if !pattern.matches(word) && !name.is_some_and(|name| pattern.matches(name)) {
                        return RuleMatch::No;
                    }
                }
            }
        }
        let rest = &argv[self.words.len()..];
        match rest {
            _ if self.is_open => RuleMatch::Yes,
            [] => RuleMatch::Yes,
            rest if rest.iter().all(|word| word.text().is_none()) => RuleMatch::Possible,
            _ => RuleMatch::No,
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
    glob: GlobPattern,
    /// The fixed directories at its beginning.
    fixed: Vec<String>,
}

impl PathPattern {
    pub fn new(pattern: &str) -> Result<Self, String> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let fixed = pattern.split('/').take_while(|part| !part.contains(['*', '?', '[', '{', '\\']));
        Ok(Self { glob: GlobPattern::path(pattern)?, fixed: fixed.map(str::to_owned).collect() })
    }

    pub fn glob(&self) -> &GlobPattern {
        &self.glob
    }

    /// A directory possibly matches if something in it could.
    pub fn matches(&self, target: &PathTarget) -> RuleMatch {
        self.matches_path(&target.path, target.is_dir)
    }

    /// True if it matches for sure a path that an allowing rule may mean: a relative pattern means the workspace, however
    /// many directories it matches.
    pub fn allows(&self, target: &PathTarget) -> bool {
        let is_meant = [self.glob.as_str(), &target.path].map(|path| Path::new(path).has_root());
        is_meant != [false, true] && self.matches(target) == RuleMatch::Yes
    }

    /// How it matches, for a rule that denies or asks, which holds in the original of a copy too.
    pub fn restricts(&self, target: &PathTarget) -> RuleMatch {
        let there = target.denied_as.as_ref().map(|path| self.matches_path(path, target.is_dir));
        self.matches(target).max(there.unwrap_or(RuleMatch::No))
    }

    fn matches_path(&self, path: &str, is_dir: bool) -> RuleMatch {
        if self.glob.matches(path) {
            return RuleMatch::Yes;
        }
        let parts = path.split('/').filter(|part| *part != ".");
        let on_the_way = is_dir && parts.zip(&self.fixed).all(|(part, fixed)| part == fixed);
        if on_the_way { RuleMatch::Possible } else { RuleMatch::No }
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
            ("cargo test *", "cargo test", RuleMatch::Yes),
            ("cargo test *", "cargo test -p x", RuleMatch::Yes),
            ("cargo test *", "cargo test …", RuleMatch::Yes),
            ("cargo test *", "cargo … x", RuleMatch::Possible),
            ("cargo test *", "cargo build", RuleMatch::No),
            ("cargo test *", "cargo", RuleMatch::No),
            ("cargo test", "cargo test", RuleMatch::Yes),
            ("cargo test", "cargo test x", RuleMatch::No),
            ("cargo test", "cargo test …", RuleMatch::Possible),
            ("npm run test:*", "npm run test:unit", RuleMatch::Yes),
            ("cat src/*", "cat src/a/b", RuleMatch::Yes),
            ("*", "anything at all", RuleMatch::Yes),
            ("* --version", "x --version", RuleMatch::Yes),
            ("rm *", "…", RuleMatch::Possible),
            ("rm *", "/bin/rm x", RuleMatch::No),
        ] {
            assert_eq!(match_of(pattern, line, false), expected, "{pattern} over {line}");
        }
        assert_eq!(match_of("rm *", "/bin/rm x", true), RuleMatch::Yes);
        assert_eq!(match_of("x", "y /x", true), RuleMatch::No);
    }

    #[test]
    fn paths_are_matched_with_the_directories_on_their_way() {
        let match_of = |pattern: &str, path: &str| {
            let is_dir = path.ends_with('/');
            let path = path.trim_end_matches('/').to_owned();
            let target = PathTarget { path, is_dir, ..PathTarget::default() };
            PathPattern::new(pattern).expect("a pattern").matches(&target)
        };
        for (pattern, path, expected) in [
            ("secrets/**", "secrets/a/b", RuleMatch::Yes),
            ("./secrets/**", "secrets/a", RuleMatch::Yes),
            ("secrets/**", "secrets/", RuleMatch::Possible),
            ("secrets/**", "./", RuleMatch::Possible),
            ("secrets/**", "src/", RuleMatch::No),
            ("secrets/**", "src/secrets/a", RuleMatch::No),
            ("a/b/*.rs", "a/", RuleMatch::Possible),
            ("a/b/*.rs", "a/c/", RuleMatch::No),
            ("a/*.rs", "a/b/c.rs", RuleMatch::No),
            ("**/*.pem", "x/y/z.pem", RuleMatch::Yes),
            ("**/*.pem", "x/", RuleMatch::Possible),
            ("/etc/**", "/etc/passwd", RuleMatch::Yes),
        ] {
            assert_eq!(match_of(pattern, path), expected, "{pattern} over {path}");
        }
    }
}
