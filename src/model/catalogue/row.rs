//! The facts about one model, and the line with them:
//!
//! ```text
//! gpt-5.6-sol w=1050000 i=922000 o=128000 s l=023456 p=4/0.4/5/20 t=272000:8/0.8/10/30 c=2 e=2028-01-31
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | `w=` `i=` `o=` | tokens: the window, the most input if that is less, the most output |
//! | `s` | it sees pictures |
//! | `n=` `b=` | the most pictures of a request, and its most bytes |
//! | `l=` | levels of effort, each as its index in `Effort::ALL`; `-` if the model has none |
//! | `q` | thinking is turned off by a switch, not by the level `none` |
//! | `p=` | USD per million tokens: input, cached input, written to the cache, output; empty means as input |
//! | `t=` | the same for requests with more input than the first number |
//! | `c=` | how many sources say so: 2, or 1 for a price that is shown as `~` |
//! | `e=` | the day on which the provider ends it |

use std::fmt::Write;

use jiff::civil::Date;

use crate::config::{PriceTier, Prices, Wire};
use crate::model::effort::Effort;
use crate::model::interface::PictureLimits;

/// Facts about a model. Its behaviour is not among them: that belongs to the dialect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelFacts {
    /// The provider's name for it.
    pub id: String,
    /// The most tokens of a request and its reply together. If a provider sells a part of it cheaper, this is the
    /// whole, and the parts are tiers of `prices`.
    pub window: u64,
    /// The most tokens of a request, if that is known to be less than the window.
    pub input: Option<u64>,
    /// The most tokens of a reply.
    pub output: Option<u64>,
    /// `None` if unknown, which does not mean free.
    pub prices: Option<Prices>,
    /// True if it sees pictures.
    pub sees: bool,
    pub pictures: PictureLimits,
    /// The levels of effort, lowest first; empty if the model has none. `None` if unknown.
    pub levels: Option<Vec<Effort>>,
    /// The way to turn thinking off; `None` if there is none or it is unknown.
    pub off: Option<Off>,
    /// The protocol that works best for the model at this provider; `None` if the provider is unknown.
    pub wire: Option<Wire>,
    /// The day on which the provider ends it.
    pub ends: Option<Date>,
}

/// The way to turn thinking off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// The level `none`.
    Level,
    /// A separate field.
    Switch,
}

/// The largest counts and the most dollars that are plausible.
const MOST_COUNT: u64 = 1_000_000_000;
const MOST_USD: f64 = 100_000.0;

impl ModelFacts {
    /// Reads a line.
    ///
    /// # Errors
    /// A field is wrong; the error is a phrase about the first one.
    pub fn read(line: &str) -> Result<Self, String> {
        let mut words = line.split(' ');
        let id = words.next().unwrap_or_default();
        if !is_id(id) {
            return Err("the id is not a word of printable ASCII".to_owned());
        }
        let mut facts = Self::new(id);
        let (mut base, mut tiers, mut sources, mut switch) = (None, Vec::new(), 0, false);
        for word in words {
            let wrong = || format!("`{}` is not a field, or has no such value", word.escape_debug());
            match word.split_once('=').unwrap_or((word, "")) {
                ("w", text) => facts.window = parse_count(text).ok_or_else(wrong)?,
                ("i", text) => facts.input = Some(parse_count(text).ok_or_else(wrong)?),
                ("o", text) => facts.output = Some(parse_count(text).ok_or_else(wrong)?),
                ("s", "") => facts.sees = true,
                ("n", text) => facts.pictures.most = Some(parse_count(text).ok_or_else(wrong)?),
                ("b", text) => facts.pictures.request_bytes = Some(parse_count(text).ok_or_else(wrong)?),
                ("l", text) => facts.levels = Some(parse_levels(text).ok_or_else(wrong)?),
                ("q", "") => switch = true,
                ("p", text) => base = Some(parse_tier(0, text).ok_or_else(wrong)?),
                ("t", text) => {
                    let (above, text) = text.split_once(':').ok_or_else(wrong)?;
                    let above = parse_count(above).ok_or_else(wrong)?;
                    tiers.push(parse_tier(above, text).ok_or_else(wrong)?);
                }
                ("c", text) => sources = text.parse().ok().filter(|n| (1..=2).contains(n)).ok_or_else(wrong)?,
                ("e", text) => facts.ends = Some(text.parse().map_err(|_| wrong())?),
                _ => return Err(wrong()),
            }
        }
        let can_be_off = facts.levels.as_ref().is_some_and(|levels| levels.contains(&Effort::None));
        facts.off = can_be_off.then_some(if switch { Off::Switch } else { Off::Level });
        facts.prices = base.map(|base| Prices::new(base, tiers, sources == 1));
        facts.check().map(|()| facts)
    }

    /// A model of which nothing but the name is known.
    pub(super) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    /// Refuses facts that cannot all be true.
    pub(super) fn check(&self) -> Result<(), String> {
        let fits = |part: Option<u64>| part.is_none_or(|part| part <= self.window);
        if self.window == 0 {
            Err("the window is missing".to_owned())
        } else if !fits(self.input) {
            Err("the input is larger than the window".to_owned())
        } else if !fits(self.output) {
            Err("the output is larger than the window".to_owned())
        } else {
            Ok(())
        }
    }

    /// Writes the line; reading it returns these facts, except for the wire.
    pub fn line(&self) -> String {
        let mut line = format!("{} w={}", self.id, self.window);
        for (key, size) in [("i", self.input), ("o", self.output)] {
            let _ = size.map(|size| write!(line, " {key}={size}"));
        }
        line += if self.sees { " s" } else { "" };
        for (key, most) in [("n", self.pictures.most), ("b", self.pictures.request_bytes)] {
            let _ = most.map(|most| write!(line, " {key}={most}"));
        }
        if let Some(levels) = &self.levels {
            let places: String = levels.iter().map(|level| char::from(b'0' + *level as u8)).collect();
            let _ = write!(line, " l={}", if places.is_empty() { "-" } else { &places });
        }
        line += if self.off == Some(Off::Switch) { " q" } else { "" };
        if let Some(prices) = &self.prices {
            let _ = write!(line, " p={}", write_tier(&prices.base()));
            for tier in &prices.tiers {
                let _ = write!(line, " t={}:{}", tier.above, write_tier(tier));
            }
            line += if prices.about { " c=1" } else { " c=2" };
        }
        let _ = self.ends.map(|day| write!(line, " e={day}"));
        line
    }

    /// The facts of the model at another place, where its prices, its protocol and what a request may hold are unknown.
    pub(super) fn elsewhere(self) -> Self {
        Self { prices: None, wire: None, ends: None, pictures: PictureLimits::default(), ..self }
    }
}

/// True if a text can be an id: it is shown as it is, and delimited by spaces.
pub(super) fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 200 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// `gpt-5-2025-08-07` and `claude-sonnet-4-5-20250929` without the date.
pub(super) fn without_date(id: &str) -> Option<&str> {
    [11, 9].into_iter().find_map(|length| {
        let (name, date) = id.split_at_checked(id.len().checked_sub(length)?)?;
        let is_date = date.strip_prefix('-')?.parse::<Date>().is_ok();
        (is_date && !name.is_empty()).then_some(name)
    })
}

fn parse_count(text: &str) -> Option<u64> {
    text.parse().ok().filter(|tokens| (1..=MOST_COUNT).contains(tokens))
}

fn parse_levels(text: &str) -> Option<Vec<Effort>> {
    if text == "-" {
        return Some(Vec::new());
    }
    let level = |digit: char| Effort::ALL.get(digit.to_digit(10)? as usize).copied();
    let levels: Option<Vec<Effort>> = text.chars().map(level).collect();
    levels.filter(|levels| !levels.is_empty() && levels.is_sorted_by(|a, b| a < b))
}

fn parse_tier(above: u64, text: &str) -> Option<PriceTier> {
    let mut parts = text.split('/');
    let mut own = || -> Option<Option<f64>> {
        match parts.next()? {
            "" => Some(None),
            number => parse_price(number.parse().ok()?).map(Some),
        }
    };
    let (input, cached_input, cache_write, output) = (own()??, own()?, own()?, own()??);
    parts.next().is_none().then_some(PriceTier { above, input, cached_input, cache_write, output })
}

/// A plausible price. Nothing is free: a catalogue's 0 is an unknown price.
pub(super) fn parse_price(price: f64) -> Option<f64> {
    (price > 0.0 && price <= MOST_USD).then_some(price)
}

fn write_tier(tier: &PriceTier) -> String {
    let own = |price: Option<f64>| price.map_or(String::new(), |price| price.to_string());
    format!("{}/{}/{}/{}", tier.input, own(tier.cached_input), own(tier.cache_write), tier.output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_as_it_was_written() {
        for line in [
            "m w=1",
            "gpt-5.6-sol w=1050000 i=922000 o=128000 s l=023456 p=4/0.4/5/20 t=272000:8/0.8/10/30 c=2 e=2028-01-31",
            "org/m:free w=4096 l=- p=0.0375///0.15 c=1",
            "m w=200000 o=64000 l=0234 q",
        ] {
            assert_eq!(ModelFacts::read(line).expect("it is right").line(), line);
        }
    }

    #[test]
    fn a_line_that_says_something_else_is_refused() {
        for line in [
            "",
            "m",
            "m w=0",
            "m w=-1",
            "m w=1000000001",
            "m w=10 o=11",
            "m w=10 i=11",
            "m  w=10",
            "m w=10 x",
            "m w=10 s=1",
            "m w=10 base_url=http://evil.example",
            "m w=10 l=7",
            "m w=10 l=42",
            "m w=10 l=",
            "m w=10 p=1/2/3",
            "m w=10 p=1/2/3/4/5",
            "m w=10 p=/0.1//4",
            "m w=10 p=0///0",
            "m w=10 p=-1///4",
            "m w=10 p=NaN///4",
            "m w=10 p=inf///4",
            "m w=10 p=1///4 t=2///8",
            "m w=10 c=3",
            "m w=10 e=soon",
            "\u{1b}[31mm w=10",
            "ümlaut w=10",
        ] {
            assert!(ModelFacts::read(line).is_err(), "{line:?}");
        }
    }
}
