//! Messages of several lines.
//!
//! A line that ends in `\`, and an open `"""`, continue in the next line. Within pasted text only the end counts; the
//! rest is kept as it is.

const FENCE: &str = "\"\"\"";

/// Returns the text of a block without its fences; `None` if the message is not a block.
pub fn strip_fences(message: &str) -> Option<&str> {
    let inner = message.trim().strip_prefix(FENCE)?;
    let inner = inner.strip_suffix(FENCE).unwrap_or(inner);
    let inner = inner.strip_prefix('\n').unwrap_or(inner);
    Some(inner.strip_suffix('\n').unwrap_or(inner))
}

/// Joins single lines (from a pipe, or typed ahead) into messages.
#[derive(Debug, Default)]
pub struct Joined {
    begun: String,
}

impl Joined {
    /// Adds a line without its line feed. Returns the message once it is complete.
    pub fn add(&mut self, line: &str) -> Option<String> {
        self.begun += line;
        if !is_open(&self.begun) {
            if !goes_on(&self.begun) {
                return Some(std::mem::take(&mut self.begun));
            }
            self.begun.pop();
        }
        self.begun.push('\n');
        None
    }

    /// True if no message has begun.
    pub fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    /// Takes the unfinished message.
    pub fn rest(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.begun)).filter(|rest| !rest.is_empty())
    }
}

/// True if a `"""` block has begun and not ended.
fn is_open(typed: &str) -> bool {
    let inner = typed.trim().strip_prefix(FENCE);
    inner.is_some_and(|inner| !inner.ends_with(FENCE))
}

/// True if the text ends in a backslash that is not escaped.
fn goes_on(typed: &str) -> bool {
    let backslashes = typed.len() - typed.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_loses_its_fences_and_nothing_else() {
        assert_eq!(strip_fences("\"\"\"\n/help\n  x\n\"\"\""), Some("/help\n  x"));
        assert_eq!(strip_fences("\"\"\"one\"\"\""), Some("one"));
        assert_eq!(strip_fences("one"), None);
    }

    #[test]
    fn enter_ends_a_message_unless_it_goes_on() {
        for (lines, messages, rest) in [
            (vec!["one", "two"], vec!["one", "two"], None),
            (vec!["one \\", "two"], vec!["one \ntwo"], None),
            (vec!["a literal \\\\"], vec!["a literal \\\\"], None),
            (vec!["pasted \\\nwhole"], vec!["pasted \\\nwhole"], None),
            (vec!["\"\"\"", "", "a \\", "b\"\"\" "], vec!["\"\"\"\n\na \\\nb\"\"\" "], None),
            (vec!["say \"\"\""], vec!["say \"\"\""], None),
            (vec!["\"\"\"open"], vec![], Some("\"\"\"open\n")),
            (vec!["five \\"], vec![], Some("five \n")),
        ] {
            let mut joined = Joined::default();
            let whole: Vec<String> = lines.iter().filter_map(|line| joined.add(line)).collect();
            assert_eq!(
                (whole, joined.rest().as_deref()),
                (messages.into_iter().map(str::to_owned).collect(), rest)
            );
        }
    }
}
