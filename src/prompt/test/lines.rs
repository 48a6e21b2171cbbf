//! Compares two texts for a person: equal parts are left out except for a few lines, and long parts are cut.

use serde::Serialize;

use crate::base::{diff, text};

/// One line of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedLine {
    pub side: LineSide,
    pub text: String,
}

/// The text to which a line belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineSide {
    Both,
    Expected,
    Actual,
}

impl LineSide {
    /// The mark before the line.
    pub fn mark(self) -> char {
        match self {
            Self::Both => ' ',
            Self::Expected => '-',
            Self::Actual => '+',
        }
    }
}

/// The most lines of each text that are shown.
const MOST: usize = 20;
/// The equal lines that are shown before and after a difference.
const AROUND: usize = 2;
/// The most columns of a line.
const WIDTH: usize = 160;

/// The lines in which two texts differ, with a few around them.
pub(super) fn compare_texts(expected: &str, actual: &str) -> Vec<ComparedLine> {
    let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let (mut shown, mut of_expected, mut of_actual) = (Vec::new(), 0, 0);
    for (number, hunk) in diff::find_hunks(&expected, &actual, AROUND).iter().enumerate() {
        if number > 0 {
            shown.push(ComparedLine { side: LineSide::Both, text: "…".to_owned() });
        }
        for (mark, text) in &hunk.lines {
            let (side, count) = match mark {
                '-' => (LineSide::Expected, &mut of_expected),
                '+' => (LineSide::Actual, &mut of_actual),
                _ => (LineSide::Both, &mut 0),
            };
            *count += 1;
            if *count <= MOST {
                shown.push(ComparedLine { side, text: text::cut_to_width(text, WIDTH).into_owned() });
            }
        }
    }
    for (side, count) in [(LineSide::Expected, of_expected), (LineSide::Actual, of_actual)] {
        if count > MOST {
            shown.push(ComparedLine { side, text: format!("… {} more lines", count - MOST) });
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::compare_texts;

    fn shown(expected: &str, actual: &str) -> String {
        let lines: Vec<String> = compare_texts(expected, actual)
            .into_iter()
            .map(|line| format!("{}{}", line.side.mark(), line.text))
            .collect();
        lines.join("\n") + "\n"
    }

    #[test]
    fn only_what_differs_is_shown_with_what_stands_around_it() {
        assert_eq!(shown("a\nb\nc\nd\ne\nf", "a\nb\nc\nX\nY\ne\nf"), " b\n c\n-d\n+X\n+Y\n e\n f\n");
        let two = shown("a\n1\n2\n3\n4\n5\n6\nb", "A\n1\n2\n3\n4\n5\n6\nB");
        assert_eq!(two, "-a\n+A\n 1\n 2\n …\n 5\n 6\n-b\n+B\n", "two changes are two, not one block");
        assert_eq!(shown("", "one"), "+one\n");
        assert_eq!(shown("a\na", "a"), " a\n-a\n");
        let long = shown("", &"x\n".repeat(1000));
        assert_eq!(long.lines().count(), 21);
        assert!(long.ends_with("+… 980 more lines\n"), "{long}");
    }
}
