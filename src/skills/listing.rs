//! The catalogue as the model sees it, within its room: descriptions are shortened first, all equally; only then
//! are skills left out, the last by name.

use crate::base::text;
use crate::base::tokens::BYTES_PER_TOKEN;

/// The part of the context window that the list of skills may take.
const PERCENT: u64 = 2;
/// The frame of name and description in a line.
const FRAME: usize = "- [○] : \n".len();
/// The bytes of the sentence about skills left out.
const NOTE: usize = 160;
/// The least columns of a shortened description.
const SHORTEST: usize = 40;

/// The skills that the model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillListing {
    /// Names and descriptions, sorted.
    pub skills: Vec<(String, String)>,
    /// The number of skills left out.
    pub left_out: usize,
}

/// Fits names and descriptions, sorted by name, into their share of a window of this many tokens.
pub fn fit_listing<'a>(skills: impl IntoIterator<Item = (&'a str, &'a str)>, window: u64) -> SkillListing {
    let skills: Vec<(&str, &str)> = skills.into_iter().collect();
    let room = usize::try_from(window * PERCENT * BYTES_PER_TOKEN as u64 / 100).unwrap_or(usize::MAX);
    let line = |(name, description): &(&str, &str), columns: usize| {
        FRAME + name.len() + text::cut_to_width(description, columns).len()
    };
    let size = |columns: usize| skills.iter().map(|skill| line(skill, columns)).sum::<usize>();
    let widest = skills.iter().map(|(_, description)| text::count_columns(description)).max().unwrap_or(0);
    let (mut columns, mut shown) = (widest, skills.len());
    if size(widest) > room {
        // The most columns with which all fit, or the fewest that are still useful.
        let (mut fits, mut exceeds) = (SHORTEST.min(widest), widest);
        while fits + 1 < exceeds {
            let middle = usize::midpoint(fits, exceeds);
            if size(middle) <= room { fits = middle } else { exceeds = middle }
        }
        columns = fits;
        if size(columns) > room {
            let mut used = NOTE;
            shown = skills
                .iter()
                .take_while(|skill| {
                    used += line(skill, columns);
                    used <= room
                })
                .count();
        }
    }
    let skill = |(name, description): &(&str, &str)| {
        ((*name).to_owned(), text::cut_to_width(description, columns).into_owned())
    };
    SkillListing { skills: skills[..shown].iter().map(skill).collect(), left_out: skills.len() - shown }
}

#[cfg(test)]
mod tests {
    use super::{SkillListing, fit_listing};

    fn listing(count: usize, description: &str, window: u64) -> SkillListing {
        let names: Vec<String> = (0..count).map(|n| format!("skill-{n:04}")).collect();
        fit_listing(names.iter().map(|name| (name.as_str(), description)), window)
    }

    fn bytes(listing: &SkillListing) -> usize {
        listing.skills.iter().map(|(name, description)| format!("- [○] {name}: {description}\n").len()).sum()
    }

    #[test]
    fn descriptions_are_shortened_before_skills_are_left_out() {
        let long = "Does a thing with words. ".repeat(40);
        let small = listing(5, &long, 128_000);
        assert_eq!((small.left_out, small.skills[0].1.as_str()), (0, long.as_str()));

        let shortened = listing(50, &long, 128_000);
        assert_eq!((shortened.skills.len(), shortened.left_out), (50, 0));
        let room = 128_000 * 2 / 100 * 4;
        assert!(bytes(&shortened) <= room && bytes(&shortened) > room * 9 / 10, "{}", bytes(&shortened));
        assert!(shortened.skills[0].1.ends_with('…'));

        let cut = listing(1000, &long, 128_000);
        assert_eq!(cut.skills.len() + cut.left_out, 1000);
        assert!(cut.left_out > 0 && cut.skills.len() > 100, "{}", cut.left_out);
        assert!(bytes(&cut) <= room);
        assert_eq!(cut.skills[0].0, "skill-0000");
    }

    #[test]
    fn a_tiny_window_leaves_out_all_but_says_so() {
        assert_eq!(listing(3, "words", 500), SkillListing { skills: Vec::new(), left_out: 3 });
        assert_eq!(listing(0, "", 1000), SkillListing { skills: Vec::new(), left_out: 0 });
        assert_eq!(listing(3, "a", 8000).left_out, 0);
    }
}
