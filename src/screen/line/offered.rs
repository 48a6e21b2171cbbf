//! The offers of a completion: the first Tab lists them, each further Tab inserts the next one.

use crate::base::text::{count_columns, cut_to_width};

/// One completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The text in the list.
    pub shown: String,
    /// The text inserted into the line.
    pub inserted: String,
}

/// Blanks between two columns of a list.
const GAP: usize = 2;

/// The offers that were last listed.
#[derive(Debug, Default)]
pub struct Offered {
    offers: Vec<Offer>,
    /// The line in which Tab inserts the next offer, and its cursor.
    line: String,
    pos: usize,
    start: usize,
    next: usize,
}

impl Offered {
    /// Stores the offers for a line.
    pub fn keep(&mut self, line: &str, pos: usize, start: usize, offers: &[Offer]) {
        *self = Self { offers: offers.to_vec(), line: line.to_owned(), pos, start, next: 0 };
    }

    /// Takes the next offer if the line is unchanged since the offers were listed. Also returns the place to insert it.
    pub fn again(&mut self, line: &str, pos: usize) -> Option<(usize, Offer)> {
        let is_same = self.offers.len() > 1 && (line, pos) == (self.line.as_str(), self.pos);
        let offer = self.offers.get(self.next).filter(|_| is_same)?.clone();
        self.next = (self.next + 1) % self.offers.len();
        Some((self.start, offer))
    }

    /// Stores the line after an offer, or the common start of all, was inserted.
    pub fn move_to(&mut self, line: &str, pos: usize) {
        (self.line, self.pos) = (line.to_owned(), pos);
    }
}

/// What all offers begin with.
pub fn find_common_start(offers: &[Offer]) -> &str {
    let Some((first, others)) = offers.split_first() else { return "" };
    let shared = |other: &Offer| {
        let same = first.inserted.char_indices().zip(other.inserted.chars()).take_while(|((_, a), b)| a == b);
        same.last().map_or(0, |((at, c), _)| at + c.len_utf8())
    };
    &first.inserted[..others.iter().map(shared).min().unwrap_or(first.inserted.len())]
}

/// Offers in columns, as rows of at most `width` columns; they are read from top to bottom.
pub fn lay_out_grid(shown: &[String], width: usize) -> Vec<String> {
    let widest = shown.iter().map(|word| count_columns(word)).max().unwrap_or(0) + GAP;
    let rows = shown.len().div_ceil((width / widest).max(1));
    let row = |row: usize| {
        let words = shown.iter().skip(row).step_by(rows.max(1));
        let padded = words.map(|word| format!("{word}{}", " ".repeat(widest - count_columns(word))));
        cut_to_width(padded.collect::<String>().trim_end(), width).into_owned()
    };
    (0..rows).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(count: usize) -> Vec<Offer> {
        (0..count)
            .map(|number| Offer { shown: format!("file {number:03}"), inserted: format!("@{number}") })
            .collect()
    }

    #[test]
    fn further_tabs_take_one_offer_after_another() {
        let mut offered = Offered::default();
        assert_eq!(offered.again("see @", 5), None);
        offered.keep("see @", 5, 4, &offers(2));
        for number in [0, 1, 0] {
            let (line, pos) = (offered.line.clone(), offered.pos);
            let (start, offer) = offered.again(&line, pos).expect("the line is the same");
            assert_eq!((start, offer.inserted), (4, format!("@{number}")));
            offered.move_to(&format!("see @{number}"), 6);
        }
        assert_eq!(offered.again("see @0x", 7), None, "something else was typed");
        offered.keep("see @", 5, 4, &offers(1));
        assert_eq!(offered.again("see @", 5), None, "one offer is taken at once");
    }

    #[test]
    fn offers_share_their_beginning_and_stand_in_columns() {
        let of = |words: &[&str]| -> Vec<Offer> {
            let offer = |word: &&str| Offer { shown: (*word).to_owned(), inserted: (*word).to_owned() };
            words.iter().map(offer).collect()
        };
        for (words, expected) in [
            (&["/context", "/compact ", "/copy "][..], "/co"),
            (&["日本", "日光"], "日"),
            (&["a", "b"], ""),
            (&["one"], "one"),
            (&[], ""),
        ] {
            assert_eq!(find_common_start(&of(words)), expected, "{words:?}");
        }
        let words = ["/one", "/two", "/three", "/four", "/five"].map(str::to_owned);
        assert_eq!(lay_out_grid(&words, 20), ["/one    /four", "/two    /five", "/three"]);
        assert_eq!(lay_out_grid(&words, 3), ["/o…", "/t…", "/t…", "/f…", "/f…"]);
        assert_eq!(lay_out_grid(&[], 20), Vec::<String>::new());
    }
}
