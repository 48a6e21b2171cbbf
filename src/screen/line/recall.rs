//! Earlier messages in the line: one after another, as a hint, and searched.

/// The history of the line, and the place in it.
#[derive(Debug, Default)]
pub(super) struct EarlierLines {
    /// Oldest first.
    entries: Vec<String>,
    /// The entry in the line; `None` for the text that the person typed.
    at: Option<usize>,
    /// The typed text, while an entry is in the line.
    draft: String,
}

/// A search backwards or forwards, while its words are typed.
#[derive(Debug)]
pub(super) struct HistorySearch {
    pub words: String,
    /// Searches from the latest entry on; otherwise from an entry on to later ones.
    pub is_backward: bool,
    /// The entry that was found last.
    at: Option<usize>,
    /// The line before the search.
    pub before: String,
    /// Nothing has these words.
    pub has_failed: bool,
}

impl EarlierLines {
    /// Replaces the entries.
    pub fn learn(&mut self, entries: Vec<String>) {
        self.entries = entries;
        self.forget_place();
    }

    /// Makes a line that was cleared the latest entry, which Up brings back.
    pub fn keep_cleared(&mut self, line: String) {
        self.entries.retain(|entry| *entry != line);
        self.entries.push(line);
        self.forget_place();
    }

    /// The next line begins behind the latest entry.
    pub fn forget_place(&mut self) {
        self.at = None;
        self.draft.clear();
    }

    /// The entry before the one in the line.
    pub fn go_back(&mut self, line: &str) -> Option<String> {
        let at = self.at.unwrap_or(self.entries.len()).checked_sub(1)?;
        if self.at.is_none() {
            line.clone_into(&mut self.draft);
        }
        self.at = Some(at);
        self.entries.get(at).cloned()
    }

    /// The entry after the one in the line, at last what was typed.
    pub fn go_forward(&mut self) -> Option<String> {
        let at = self.at? + 1;
        self.at = Some(at).filter(|at| *at < self.entries.len());
        Some(self.at.map_or_else(|| std::mem::take(&mut self.draft), |at| self.entries[at].clone()))
    }

    /// The oldest entry.
    pub fn go_to_oldest(&mut self, line: &str) -> Option<String> {
        self.go_back(line)?;
        self.at = Some(0);
        self.entries.first().cloned()
    }

    /// The rest of the latest entry that begins with `line`.
    pub fn hint(&self, line: &str) -> Option<&str> {
        let mut found = self.entries.iter().rev().filter_map(|entry| entry.strip_prefix(line));
        found.find(|rest| !rest.is_empty())
    }

    /// Begins a search from the line.
    pub fn search(&self, line: &str, is_backward: bool) -> HistorySearch {
        HistorySearch {
            words: String::new(),
            is_backward,
            at: self.at,
            before: line.to_owned(),
            has_failed: false,
        }
    }

    /// Finds the entry with the words of the search, from its place on; another one than there if it `moves`.
    pub fn find(&self, search: &mut HistorySearch, moves: bool) -> Option<String> {
        let has_words = |at: &usize| self.entries[*at].contains(search.words.as_str());
        let step = usize::from(moves);
        let found = if search.words.is_empty() {
            None
        } else if search.is_backward {
            let end = search.at.map_or(self.entries.len(), |at| at + 1 - step);
            (0..end).rev().find(has_words)
        } else {
            let start = search.at.map_or(self.entries.len(), |at| at + step);
            (start..self.entries.len()).find(has_words)
        };
        search.has_failed = found.is_none() && !search.words.is_empty();
        search.at = found.or(search.at);
        found.map(|at| self.entries[at].clone())
    }

    /// The line goes on from where the search ended.
    pub fn end_search(&mut self, search: &HistorySearch) {
        if search.at.is_some() && self.at.is_none() {
            search.before.clone_into(&mut self.draft);
        }
        self.at = search.at.or(self.at);
    }
}

impl HistorySearch {
    /// The words before the line while it is searched.
    pub fn lead(&self) -> String {
        let failed = if self.has_failed { "failed " } else { "" };
        let direction = if self.is_backward { "reverse-i-search" } else { "i-search" };
        format!("({failed}{direction})`{}': ", self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recall() -> EarlierLines {
        let mut recall = EarlierLines::default();
        recall.learn(["the heron", "the egret", "else"].map(str::to_owned).to_vec());
        recall
    }

    #[test]
    fn entries_come_one_after_another_and_the_draft_last() {
        let mut recall = recall();
        assert_eq!(recall.go_back("draft").as_deref(), Some("else"));
        assert_eq!(recall.go_back("else").as_deref(), Some("the egret"));
        assert_eq!(recall.go_forward().as_deref(), Some("else"));
        assert_eq!(recall.go_forward().as_deref(), Some("draft"));
        assert_eq!(recall.go_forward(), None);
        assert_eq!(recall.go_to_oldest("").as_deref(), Some("the heron"));
        assert_eq!(recall.go_back(""), None);
        recall.keep_cleared("cleared".to_owned());
        recall.keep_cleared("cleared again".to_owned());
        assert_eq!(recall.go_back("").as_deref(), Some("cleared again"));
        assert_eq!(recall.go_back("").as_deref(), Some("cleared"));
    }

    #[test]
    fn the_latest_entry_that_begins_so_is_hinted_at() {
        assert_eq!(recall().hint("the "), Some("egret"));
        assert_eq!(recall().hint("the heron"), None);
        assert_eq!(recall().hint("x"), None);
    }

    #[test]
    fn a_search_goes_on_in_both_directions() {
        let recall = recall();
        let mut search = recall.search("line", true);
        search.words.push_str("the");
        assert_eq!(recall.find(&mut search, false).as_deref(), Some("the egret"));
        assert_eq!(search.lead(), "(reverse-i-search)`the': ");
        search.words.push_str(" h");
        assert_eq!(recall.find(&mut search, false).as_deref(), Some("the heron"));
        assert_eq!(recall.find(&mut search, true), None);
        assert_eq!(search.lead(), "(failed reverse-i-search)`the h': ");
        (search.words, search.is_backward) = ("the".to_owned(), false);
        assert_eq!(recall.find(&mut search, true).as_deref(), Some("the egret"));
    }
}
