//! The parts of a summary: read by their headings in any common form, completed from the summary before it, and written
//! in one form.

use std::array;

use super::rates::Rates;
use super::room::Room;

/// The parts of a summary in order: the heading, and the content.
pub const PARTS: [(&str, &str); 8] = [
    ("Goal", "what the person wants in the end, in one or two sentences"),
    ("Constraints", "what the person demanded or ruled out, in their own words"),
    ("Decisions", "what was decided, with the reason, names and numbers exact"),
    ("Done", "what is finished and how that is known"),
    ("In progress", "what was begun and is not finished, and where it stands"),
    ("Do not do again", "what was tried and failed, or is done and must not be repeated"),
    ("Next", "the next steps, the first one concrete"),
    ("Open errors", "errors that are not solved, their messages verbatim"),
];

/// The text of each part; `None` where its heading is missing.
pub type SummaryParts = [Option<String>; PARTS.len()];

/// Completes a summary: a part that it lacks stays as it was in the `previous` one, if there is one.
///
/// # Errors
/// The reason that the summary cannot be used.
pub fn complete_summary(summary: &str, previous: &str, room: Room, rates: &Rates) -> Result<String, String> {
    /// With fewer parts it is another text.
    const LEAST_PARTS: usize = PARTS.len() / 2;
    if summary.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut parts = read_parts(summary);
    if parts.iter().flatten().count() < LEAST_PARTS {
        let missing = PARTS.iter().zip(&parts).find(|(_, text)| text.is_none());
        return Err(format!("the part `## {}` is missing", missing.map_or("", |((heading, _), _)| heading)));
    }
    // Nothing else goes on without a goal.
    parts[0] = parts[0].take().filter(|goal| !goal.is_empty());
    for (part, before) in parts.iter_mut().zip(read_parts(previous)) {
        *part = part.take().or(before);
    }
    if parts[0].as_deref().is_none_or(str::is_empty) {
        return Err("the goal is empty".to_owned());
    }
    let written = write_parts(&parts.map(Option::unwrap_or_default));
    if !room.has_room_for(&written, rates) {
        return Err(format!("it has {} bytes, more than fit {} tokens", written.len(), room.summary));
    }
    Ok(written)
}

/// Writes the parts under their headings.
pub fn write_parts(parts: &[String; PARTS.len()]) -> String {
    let text = |part: &'_ String| if part.is_empty() { "- none".to_owned() } else { part.clone() };
    let written = PARTS.iter().zip(parts).map(|((heading, _), part)| format!("## {heading}\n{}\n", text(part)));
    written.collect::<Vec<_>>().join("\n")
}

/// Reads the parts of a summary. What stands before the first heading is left out; a part with two headings has the text
/// of both.
pub fn read_parts(summary: &str) -> SummaryParts {
    let mut parts: SummaryParts = array::from_fn(|_| None);
    let mut part = None;
    let lines: Vec<&str> = without_fence(summary.trim()).lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if part.is_some() && is_underline(line) && at > 0 && find_heading(lines[at - 1], true).is_some() {
            continue;
        }
        let is_underlined = lines.get(at + 1).is_some_and(|next| is_underline(next));
        let text = match find_heading(line, is_underlined) {
            Some((found, rest)) => {
                part = Some(found);
                rest
            }
            None => line,
        };
        if let Some(part) = part {
            let written: &mut String = parts[part].get_or_insert_default();
            written.push_str(text.trim_end());
            written.push('\n');
        }
    }
    parts.map(|text| text.map(|text| text.trim().to_owned()))
}

/// The text in a code fence that holds all of it.
fn without_fence(summary: &str) -> &str {
    let inner = summary.strip_prefix("```").and_then(|rest| Some(rest.split_once('\n')?.1));
    inner.and_then(|inner| inner.strip_suffix("```")).unwrap_or(summary)
}

fn is_underline(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && (line.bytes().all(|byte| byte == b'=') || line.bytes().all(|byte| byte == b'-'))
}

/// The part that a line begins, and what stands on the line after its heading: `## Goal`, `**Goal:** text`, `1. Goal`,
/// `Goal:`, or `Goal` over a line of dashes.
fn find_heading(line: &str, is_underlined: bool) -> Option<(usize, &str)> {
    const MARKS: [char; 3] = ['#', '*', '_'];
    let line = line.trim();
    let text = line.trim_start_matches(MARKS).trim_start();
    let digits = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let text = digits.strip_prefix(['.', ')']).filter(|_| digits.len() < text.len()).unwrap_or(text);
    let text = text.trim_start().trim_start_matches(MARKS);
    let is_marked = text.len() < line.len();
    PARTS.iter().enumerate().find_map(|(part, (heading, _))| {
        let after = text.get(heading.len()..)?;
        if !text.as_bytes()[..heading.len()].eq_ignore_ascii_case(heading.as_bytes()) {
            return None;
        }
        let rest = after.trim_start_matches(MARKS);
        let (has_colon, rest) = match rest.strip_prefix([':', '：']) {
            Some(rest) => (true, rest.trim_start_matches(MARKS).trim_start()),
            None => (false, rest.trim().trim_matches('#')),
        };
        let is_heading = has_colon || (rest.is_empty() && (is_marked || is_underlined));
        is_heading.then_some((part, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { summary: 500, quoted: 100, files: 20 };

    fn summary_with(heading: impl Fn(usize, &str) -> String) -> String {
        PARTS.iter().enumerate().fold(String::new(), |out, (at, (part, _))| {
            out + &heading(at, part) + &format!(" some of {at}\n- and 2. more: Next to it\n")
        })
    }

    #[test]
    fn headings_are_read_in_any_common_form() {
        type Form = (&'static str, fn(usize, &str) -> String);
        let forms: [Form; 11] = [
            ("levels", |_, part| format!("## {part}\n")),
            ("deeper, bold, with a colon", |_, part| format!("\n### **{part}**:\n")),
            ("closed", |_, part| format!("## {part} ##\n")),
            ("numbered", |at, part| format!("{}. {part}\n", at + 1)),
            ("numbered and bold", |at, part| format!("**{}) {part}:**\n", at + 1)),
            ("numbered, of a level", |at, part| format!("## {}. {part}\n", at + 1)),
            ("bold", |_, part| format!("**{part}**\n")),
            ("bold, on the line", |_, part| format!("**{part}:**")),
            ("a colon on the line", |_, part| format!("{part}:")),
            ("underlined", |_, part| format!("{part}\n-----\n")),
            ("capitals", |_, part| format!("## {}\n", part.to_uppercase())),
        ];
        for (form, heading) in forms {
            for summary in [summary_with(heading), format!("```markdown\n{}```", summary_with(heading))] {
                for (at, part) in read_parts(&summary).iter().enumerate() {
                    let text = format!("some of {at}\n- and 2. more: Next to it");
                    assert_eq!(part.as_deref(), Some(text.as_str()), "{form}: {summary}");
                }
            }
        }
    }

    #[test]
    fn a_summary_is_taken_when_it_has_most_parts_a_goal_and_room() {
        let good = summary_with(|_, part| format!("## {part}\n"));
        for (summary, mistake) in [
            (good.clone(), None),
            (format!("Here it is.\n{good}"), None),
            (good.replace("## Decisions\n", ""), None),
            (" \n".to_owned(), Some("it is empty")),
            ("## Goal\n- only this\n".to_owned(), Some("the part `## Constraints` is missing")),
            (good.replace(" some of 0\n- and 2. more: Next to it\n", ""), Some("the goal is empty")),
            (good.clone() + &"x".repeat(2000), Some("more than fit 500 tokens")),
        ] {
            let found = complete_summary(&summary, "", ROOM, &Rates::default()).err();
            let is_as_said = match (&found, mistake) {
                (Some(found), Some(mistake)) => found.contains(mistake),
                (found, mistake) => found.is_none() && mistake.is_none(),
            };
            assert!(is_as_said, "{found:?} of {summary}");
        }
    }

    #[test]
    fn a_part_that_is_missing_stays_as_it_was_and_an_empty_one_is_over() {
        let before =
            PARTS.iter().fold(String::new(), |out, (part, _)| out + &format!("## {part}\n- old {part}\n"));
        let now = "**Goal:**\n\n**Done**\n- all\n**Next**\n- rest\n**In progress**\n- x\n**Open errors**\n";
        let completed = complete_summary(now, &before, ROOM, &Rates::default()).expect("complete");
        let parts = read_parts(&completed).map(Option::unwrap_or_default);
        let expected = [
            "- old Goal", "- old Constraints", "- old Decisions", "- all", "- x", "- old Do not do again",
            "- rest", "- none",
        ];
        assert_eq!(parts, expected.map(str::to_owned));
        assert_eq!(complete_summary(&completed, &before, ROOM, &Rates::default()), Ok(completed));
    }
}
