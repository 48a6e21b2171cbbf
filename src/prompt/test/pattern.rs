//! Regular expressions of assertions, which take time in proportion to the text, whatever the pattern.

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

/// The most bytes that a compiled expression may take.
const LARGEST: usize = 4 * 1024 * 1024;

/// A compiled regular expression.
#[derive(Debug)]
pub(super) struct RegexPattern(RegexMatcher);

impl RegexPattern {
    /// # Errors
    /// It is not a regular expression; the error gives the reason.
    pub fn new(source: &str) -> Result<Self, String> {
        let built = RegexMatcherBuilder::new().size_limit(LARGEST).dfa_size_limit(LARGEST).build(source);
        // The message draws the expression first, and says at last what is wrong with it.
        let why = |text: &str| text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        built.map(Self).map_err(|error| why(&error.to_string()))
    }

    /// True if it is found anywhere in the text.
    pub fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text.as_bytes()).unwrap_or(false)
    }
}
