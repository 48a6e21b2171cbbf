//! Replies in two parts: `<scratchpad>` for notes, which only the log keeps, and `<action>`, which is carried out.
//!
//! Marks are read in any case. A note may talk about the other mark; inside the JSON of an action, strings may hold
//! anything. Two different actions are a mistake and never a choice: one of them may stem from quoted text.

const PAD: (&str, &str) = ("<scratchpad>", "</scratchpad>");
const ACTION: (&str, &str) = ("<action>", "</action>");

/// The parts of a reply.
#[derive(Debug, PartialEq, Eq)]
pub struct ScratchpadParts<'t> {
    /// The notes, without their marks; `None` if there are none.
    pub scratchpad: Option<String>,
    /// The text with the action.
    pub action: &'t str,
}

/// Splits a reply. A reply without marks is all action.
///
/// # Errors
/// A sentence for the model, if no single action can be found.
pub fn split_reply(text: &str) -> Result<ScratchpadParts<'_>, String> {
    let whole = text.trim();
    if whole.starts_with(['{', '[', '`']) {
        return Ok(ScratchpadParts { scratchpad: None, action: whole });
    }
    let (mut notes, mut actions, mut between) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = whole;
    loop {
        match (find_mark(rest, PAD.0), find_mark(rest, ACTION.0)) {
            (Some(pad), action) if action.is_none_or(|action| pad < action) => {
                between.push(&rest[..pad]);
                let (note, after) = pad_of(&rest[pad + PAD.0.len()..]);
                notes.push(note.trim());
                rest = after;
            }
            (_, Some(action)) => {
                between.push(&rest[..action]);
                let (action, after) = action_of(&rest[action + ACTION.0.len()..]);
                actions.push(action.trim());
                rest = after;
            }
            _ => break,
        }
    }
    between.push(rest);
    actions.dedup();
    let action = match (actions.as_slice(), notes.is_empty()) {
        ([action], _) => action,
        ([], true) => whole,
        ([], false) => find_action(&between)?,
        (several, _) => {
            return Err(format!("The reply has {} different <action> parts; send exactly one.", several.len()));
        }
    };
    let notes = notes.join("\n");
    Ok(ScratchpadParts { scratchpad: (!notes.is_empty()).then_some(notes), action })
}

/// Splits the text after an opening mark into the notes up to the closing mark, and the rest. Marks may be nested.
/// Unclosed notes end where an action begins.
fn pad_of(text: &str) -> (&str, &str) {
    let (mut depth, mut at) = (1, 0);
    while let Some(close) = find_mark(&text[at..], PAD.1).map(|close| at + close) {
        depth += text[at..close].to_ascii_lowercase().matches(PAD.0).count();
        depth -= 1;
        at = close + PAD.1.len();
        if depth == 0 {
            return (&text[..close], &text[at..]);
        }
    }
    // More marks open than close: the last one that closes ends the notes.
    match (at, find_mark(&text[at..], ACTION.0)) {
        (0, Some(action)) => text.split_at(action),
        (0, None) => (text, ""),
        (end, _) => (&text[..end - PAD.1.len()], &text[end..]),
    }
}

/// Splits the text after an opening mark into the action up to the closing mark, and the rest. A closing mark inside a
/// JSON string counts only if there is no other. An unclosed action goes on to the end.
fn action_of(text: &str) -> (&str, &str) {
    let close = outside_strings(text).or_else(|| find_mark(text, ACTION.1));
    close.map_or((text, ""), |close| (&text[..close], &text[close + ACTION.1.len()..]))
}

/// The position of the closing mark of an action outside JSON strings.
fn outside_strings(text: &str) -> Option<usize> {
    let (mut inside, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b'<' if !inside && starts_with_mark(&text[at..], ACTION.1) => return Some(at),
            _ => {}
        }
    }
    None
}

/// The action in the text outside the notes, if no mark encloses it: only one piece may contain JSON.
fn find_action<'t>(between: &[&'t str]) -> Result<&'t str, String> {
    let mut pieces = between.iter().map(|piece| piece.trim()).filter(|piece| piece.contains('{'));
    match (pieces.next(), pieces.next()) {
        (Some(action), None) => Ok(action),
        _ => {
            Err("The reply has notes but no <action> part; write the JSON object between <action> and </action>."
                .to_owned())
        }
    }
}

fn find_mark(text: &str, mark: &str) -> Option<usize> {
    text.to_ascii_lowercase().find(mark)
}

fn starts_with_mark(text: &str, mark: &str) -> bool {
    text.as_bytes().get(..mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(mark.as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_reply_is_split_at_its_marks() {
        let table = [
            ("{\"a\": 1}", Ok((None, "{\"a\": 1}"))),
            ("Here: {\"a\": 1}", Ok((None, "Here: {\"a\": 1}"))),
            ("<scratchpad>think</scratchpad><action>{}</action>", Ok((Some("think"), "{}"))),
            ("<scratchpad>\nthink\n</scratchpad>\n\n<action>\n{}\n</action>\n", Ok((Some("think"), "{}"))),
            ("<Scratchpad>think</SCRATCHPAD><Action>{}</Action>", Ok((Some("think"), "{}"))),
            ("<action>{}</action>", Ok((None, "{}"))),
            ("<action>{}", Ok((None, "{}"))),
            ("<scratchpad>think<action>{}</action>", Ok((Some("think"), "{}"))),
            ("<scratchpad>think</scratchpad>{}", Ok((Some("think"), "{}"))),
            ("<scratchpad>think</scratchpad> {} <action>", Ok((Some("think"), ""))),
            (
                "<scratchpad>a <scratchpad>b</scratchpad> c</scratchpad><action>{}</action>",
                Ok((Some("a <scratchpad>b</scratchpad> c"), "{}")),
            ),
            ("<scratchpad>a <scratchpad>b</scratchpad><action>{}</action>", Ok((Some("a <scratchpad>b"), "{}"))),
            ("<scratchpad>a</scratchpad><scratchpad>b</scratchpad><action>{}</action>", Ok((Some("a\nb"), "{}"))),
            (
                "<scratchpad>then <action> comes</scratchpad><action>{}</action>",
                Ok((Some("then <action> comes"), "{}")),
            ),
            ("<action>{}</action><scratchpad>after</scratchpad>", Ok((Some("after"), "{}"))),
            ("<action>{}</action><action>{}</action>", Ok((None, "{}"))),
            ("<action>{\"a\": \"</action>\"}</action>", Ok((None, "{\"a\": \"</action>\"}"))),
            (
                "<action>{\"a\": \"</scratchpad><action>\"}</action>",
                Ok((None, "{\"a\": \"</scratchpad><action>\"}")),
            ),
            ("<action>{\"a: 1}</action> ", Ok((None, "{\"a: 1}"))),
            ("</action>", Ok((None, "</action>"))),
            ("", Ok((None, ""))),
            ("<action>{\"a\": 1}</action> or <action>{\"a\": 2}</action>", Err("2 different <action> parts")),
            ("<scratchpad>{\"a\": 1}</scratchpad>", Err("no <action> part")),
            ("<scratchpad>{\"a\": 1}", Err("no <action> part")),
            ("{ <scratchpad>x</scratchpad>", Ok((None, "{ <scratchpad>x</scratchpad>"))),
            ("a {} <scratchpad>x</scratchpad> {}", Err("no <action> part")),
        ];
        for (text, expected) in table {
            match (split_reply(text), expected) {
                (Ok(parts), Ok((scratchpad, action))) => {
                    assert_eq!((parts.scratchpad.as_deref(), parts.action), (scratchpad, action), "{text}");
                }
                (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(<scratchpad>|</scratchpad>|<action>|</action>|[{}\"\\\\é< ]){0,24}") {
            let _ = split_reply(&text);
        }

        #[test]
        fn notes_never_become_the_action(note in "[a-z{}\": ]{0,30}") {
            let text = format!("<scratchpad>{note}</scratchpad><action>{{\"chosen\": 1}}</action>");
            prop_assert_eq!(split_reply(&text).expect("one action").action, "{\"chosen\": 1}");
        }
    }
}
