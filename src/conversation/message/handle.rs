//! Handles, by which `recall` reads texts of the log.

use std::fmt;

/// Names an item of the log, or the answer to one of the calls of a step, for `recall`: `m12`, `c12.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle {
    /// The number of the item, from 1 on.
    pub number: u64,
    /// The index of the call among the calls of the step.
    pub call: Option<usize>,
}

impl Handle {
    /// The handle of an item.
    pub fn item(number: u64) -> Self {
        Self { number, call: None }
    }

    /// The handle of the answer to a call.
    pub fn answer(number: u64, call: usize) -> Self {
        Self { number, call: Some(call) }
    }

    /// Reads a handle as [`fmt::Display`] writes it.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(number) = text.strip_prefix('m') {
            return Some(Self::item(number.parse().ok()?));
        }
        let (number, call) = text.strip_prefix('c')?.split_once('.')?;
        let call: usize = call.parse().ok()?;
        Some(Self::answer(number.parse().ok()?, call.checked_sub(1)?))
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.call {
            None => write!(f, "m{}", self.number),
            Some(call) => write!(f, "c{}.{}", self.number, call + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_read_back() {
        for handle in [Handle::item(12), Handle::answer(7, 0), Handle::answer(7, 10)] {
            assert_eq!(Handle::parse(&handle.to_string()), Some(handle));
        }
        for wrong in ["", "m", "c1", "c1.0", "r3", "m-1", "c1.x"] {
            assert_eq!(Handle::parse(wrong), None, "{wrong}");
        }
    }
}
