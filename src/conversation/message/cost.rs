//! The cost of several requests together.

use super::usage::Usage;

/// A sum of costs. One request with an unknown cost makes it unknown, which is not 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    usd: Option<f64>,
    is_unknown: bool,
}

impl Cost {
    /// Adds a request that used this much and cost `usd`, if that is known.
    pub fn add(&mut self, usage: &Usage, usd: Option<f64>) {
        match usd {
            Some(usd) => *self.usd.get_or_insert(0.0) += usd,
            None => self.is_unknown |= usage.total() > 0,
        }
    }

    /// USD of the parts whose cost is known.
    pub fn known_usd(&self) -> f64 {
        self.usd.unwrap_or(0.0)
    }

    /// USD; `None` if the cost of a part is unknown, or there were no requests.
    pub fn usd(&self) -> Option<f64> {
        self.usd.filter(|_| !self.is_unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_unknown_makes_the_sum_unknown() {
        let some = Usage { input_tokens: 1, ..Usage::default() };
        for (parts, sum) in [
            (&[][..], None),
            (&[(some, Some(0.5)), (some, Some(0.25))], Some(0.75)),
            (&[(some, Some(0.5)), (some, None)], None),
            (&[(some, None), (some, Some(0.5))], None),
            // Nothing was used, so nothing is missing.
            (&[(Usage::default(), None), (some, Some(0.5))], Some(0.5)),
        ] {
            let mut cost = Cost::default();
            for (usage, usd) in parts {
                cost.add(usage, *usd);
            }
            assert_eq!(cost.usd(), sum, "{parts:?}");
        }
    }
}
