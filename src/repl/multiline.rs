//! Messages of many lines: when Enter ends one, and what was meant.
//!
//! A pasted text is kept as it is; only what Enter is pressed on is looked at.

const FENCE: &str = "\"\"\"";

/// What Enter does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enter {
    /// The message is whole.
    Accept,
    /// A `"""` block is open: a new line of it.
    Newline,
    /// The `\` before the cursor becomes a new line.
    Continue,
}

/// What Enter does at the end of `typed`.
#[must_use]
pub fn enter(typed: &str) -> Enter {
    if is_open(typed) {
        return Enter::Newline;
    }
    let backslashes = typed.len() - typed.trim_end_matches('\\').len();
    if backslashes % 2 == 1 { Enter::Continue } else { Enter::Accept }
}

/// The text of a block without its fences; `None` when the message is no block.
#[must_use]
pub fn block(message: &str) -> Option<&str> {
    let inner = message.trim().strip_prefix(FENCE)?;
    let inner = inner.strip_suffix(FENCE).unwrap_or(inner);
    let inner = inner.strip_prefix('\n').unwrap_or(inner);
    Some(inner.strip_suffix('\n').unwrap_or(inner))
}

fn is_open(typed: &str) -> bool {
    let inner = typed.trim().strip_prefix(FENCE);
    inner.is_some_and(|inner| !inner.ends_with(FENCE))
}

/// Lines that come one by one (a pipe, keys typed ahead) put together to messages.
#[derive(Debug, Default)]
pub struct Joined {
    begun: String,
}

impl Joined {
    /// Adds a line without its line feed; the message when it is whole.
    pub fn add(&mut self, line: &str) -> Option<String> {
        self.begun += line;
        match enter(&self.begun) {
            Enter::Accept => return Some(std::mem::take(&mut self.begun)),
            Enter::Newline => {}
            Enter::Continue => {
                self.begun.pop();
            }
        }
        self.begun.push('\n');
        None
    }

    /// What has been begun and not ended.
    pub fn rest(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.begun)).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_ends_a_message_unless_it_goes_on() {
        for (typed, expected) in [
            ("", Enter::Accept),
            ("hello", Enter::Accept),
            ("hello \\", Enter::Continue),
            ("a literal \\\\", Enter::Accept),
            ("one \\\ntwo", Enter::Accept),
            ("\"\"\"", Enter::Newline),
            ("\"\"\"one\ntwo", Enter::Newline),
            ("\"\"\"one\ntwo\"\"\"", Enter::Accept),
            ("\"\"\"\none \\\n\"\"\" ", Enter::Accept),
            ("say \"\"\"", Enter::Accept),
        ] {
            assert_eq!(enter(typed), expected, "{typed:?}");
        }
    }

    #[test]
    fn a_block_loses_its_fences_and_nothing_else() {
        assert_eq!(block("\"\"\"\n/help\n  x\n\"\"\""), Some("/help\n  x"));
        assert_eq!(block("\"\"\"one\"\"\""), Some("one"));
        assert_eq!(block("one"), None);
    }

    #[test]
    fn lines_are_joined_to_messages() {
        let mut joined = Joined::default();
        let lines = ["one", "two \\", "three", "\"\"\"", "", "four", "\"\"\"", "five \\"];
        let messages: Vec<String> = lines.iter().filter_map(|line| joined.add(line)).collect();
        assert_eq!(messages, ["one", "two \nthree", "\"\"\"\n\nfour\n\"\"\""]);
        assert_eq!(joined.rest().as_deref(), Some("five \n"));
        assert_eq!(joined.rest(), None);
    }
}
