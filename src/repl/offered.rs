//! The offers of a completion: the first Tab lists them, each further Tab inserts the next one.

use crate::text::{columns, cut};

/// One completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The text in the list.
    pub shown: String,
    /// The text inserted into the line.
    pub inserted: String,
}

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

    /// True if `text` is one of the offers.
    pub fn has(&self, text: &str) -> bool {
        self.offers.iter().any(|offer| offer.inserted == text)
    }

    /// Stores the line after an offer, or the common start of all, was inserted.
    pub fn moved(&mut self, line: &str, pos: usize) {
        (self.line, self.pos) = (line.to_owned(), pos);
    }
}

/// Keeps as many offers as fit on the screen without scrolling, each cut to one row. The size is columns and rows.
pub fn fitting(mut offers: Vec<Offer>, (width, height): (usize, usize)) -> Vec<Offer> {
    /// The space between two columns of the list.
    const GAP: usize = 2;
    for offer in &mut offers {
        offer.shown = cut(&offer.shown, width.saturating_sub(GAP).max(1)).into_owned();
    }
    let widest = offers.iter().map(|offer| columns(&offer.shown)).max().unwrap_or(0) + GAP;
    let a_row = (width / widest).max(1);
    offers.truncate(a_row * height.saturating_sub(3).max(2));
    offers
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
            offered.moved(&format!("see @{number}"), 6);
        }
        assert_eq!(offered.again("see @0x", 7), None, "something else was typed");
        offered.keep("see @", 5, 4, &offers(1));
        assert_eq!(offered.again("see @", 5), None, "one offer is taken at once");
    }

    #[test]
    fn a_list_fits_the_screen() {
        for (size, count) in [((80, 24), 168), ((40, 10), 28), ((8, 10), 7), ((1, 1), 2)] {
            let shown = fitting(offers(500), size);
            assert_eq!(shown.len(), count, "{size:?}");
            assert!(shown.iter().all(|offer| columns(&offer.shown) <= size.0), "{size:?}");
        }
    }
}
