//! A call between its start and its end, as the screen tracks it.

/// A running call.
#[derive(Debug)]
pub(super) struct CallInProgress {
    pub call_id: String,
    pub name: String,
    pub subject: String,
    /// The unfinished line of the live output.
    pub partial: String,
}

impl CallInProgress {
    /// The longest unfinished line that is kept, in bytes.
    const LONGEST_LINE: usize = 4096;

    pub fn new(call_id: &str, name: &str, subject: &str) -> Self {
        let (call_id, name, subject) = (call_id.to_owned(), name.to_owned(), subject.to_owned());
        Self { call_id, name, subject, partial: String::new() }
    }

    /// Takes a piece of live output. Returns the lines that it completed.
    pub fn hear(&mut self, chunk: &str) -> String {
        let mut lines = std::mem::take(&mut self.partial) + chunk;
        let is_long = lines.len() > Self::LONGEST_LINE;
        let cut = if is_long { lines.len() } else { lines.rfind('\n').map_or(0, |at| at + 1) };
        self.partial = lines.split_off(cut);
        lines
    }
}
