//! How two texts differ, line by line, for a person: what begins and ends alike is left out, and so is what is long.

use serde::Serialize;

use crate::text;

/// One line of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    pub side: Side,
    pub text: String,
}

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Both,
    Expected,
    Actual,
}

impl Side {
    /// The mark before the line.
    #[must_use]
    pub fn mark(self) -> char {
        match self {
            Self::Both => ' ',
            Self::Expected => '-',
            Self::Actual => '+',
        }
    }
}

/// Lines of each text that are shown.
const MOST: usize = 20;
/// Lines alike that are shown before and after what differs.
const AROUND: usize = 2;
/// Columns of a line.
const WIDTH: usize = 160;

/// The lines in which two texts differ, with a few around them.
pub(super) fn diff(expected: &str, actual: &str) -> Vec<Line> {
    let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let start = expected.iter().zip(&actual).take_while(|(a, b)| a == b).count();
    let (expected_rest, actual_rest) = (&expected[start..], &actual[start..]);
    let end = expected_rest.iter().rev().zip(actual_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let before = &expected[start.saturating_sub(AROUND)..start];
    let after = &expected[expected.len() - end..];
    let line = |side| move |text: &&str| Line { side, text: text::cut(text, WIDTH).into_owned() };
    let side = |side, lines: &[&str]| {
        let mut shown: Vec<Line> = lines.iter().take(MOST).map(line(side)).collect();
        if lines.len() > MOST {
            shown.push(Line { side, text: format!("… {} more lines", lines.len() - MOST) });
        }
        shown
    };
    let mut all: Vec<Line> = before.iter().map(line(Side::Both)).collect();
    all.extend(side(Side::Expected, &expected_rest[..expected_rest.len() - end]));
    all.extend(side(Side::Actual, &actual_rest[..actual_rest.len() - end]));
    all.extend(after.iter().take(AROUND).map(line(Side::Both)));
    all
}

#[cfg(test)]
mod tests {
    use super::diff;

    fn shown(expected: &str, actual: &str) -> String {
        let lines: Vec<String> =
            diff(expected, actual).into_iter().map(|line| format!("{}{}", line.side.mark(), line.text)).collect();
        lines.join("\n") + "\n"
    }

    #[test]
    fn only_what_differs_is_shown_with_what_stands_around_it() {
        assert_eq!(shown("a\nb\nc\nd\ne\nf", "a\nb\nc\nX\nY\ne\nf"), " b\n c\n-d\n+X\n+Y\n e\n f\n");
        assert_eq!(shown("", "one"), "+one\n");
        assert_eq!(shown("a\na", "a"), " a\n-a\n");
        let long = shown("", &"x\n".repeat(1000));
        assert_eq!(long.lines().count(), 21);
        assert!(long.ends_with("+… 980 more lines\n"), "{long}");
    }
}
