//! Custom commands: a text with placeholders for arguments becomes a message. Placeholders inside an argument are not
//! replaced.

use std::borrow::Cow;

use crate::config::OwnCommand;

const ALL: &str = "ARGUMENTS";

/// Inserts the arguments into the text of a command.
///
/// # Errors
/// A sentence if arguments are given and the text has no placeholder.
pub fn write_message(command: &OwnCommand, arguments: &str) -> Result<String, String> {
    let words = split_words(arguments);
    let mut message = String::with_capacity(command.text.len() + arguments.len());
    let mut has_place = false;
    let mut rest = command.text.as_str();
    while let Some(at) = rest.find('$') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let Some((place, length)) = parse_place(after) else {
            message += &rest[..=at];
            rest = after;
            continue;
        };
        rest = &after[length..];
        if let Some(before) = before.strip_suffix('\\') {
            message += before;
            message.push('$');
            message += &after[..length];
            continue;
        }
        has_place = true;
        message += before;
        message += match place {
            ArgumentPlace::All => arguments,
            ArgumentPlace::Word(index) => words.get(index).map_or("", |word| word.as_ref()),
        };
    }
    message += rest;
    if !has_place && !arguments.is_empty() {
        let OwnCommand { name, origin, .. } = command;
        return Err(format!("/{name} takes no argument: {origin} has neither $ARGUMENTS nor $1"));
    }
    Ok(message)
}

/// True if the text has a placeholder for arguments.
pub fn takes_arguments(command: &OwnCommand) -> bool {
    write_message(command, "x").is_ok()
}

enum ArgumentPlace {
    All,
    /// A word, by its index.
    Word(usize),
}

/// Parses the placeholder after a `$`, with the length of its name. `$100` and `$ARGUMENTS_OF` are not placeholders.
fn parse_place(after: &str) -> Option<(ArgumentPlace, usize)> {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    if let Some(rest) = after.strip_prefix(ALL) {
        return ends(rest).then_some((ArgumentPlace::All, ALL.len()));
    }
    let digit = after.chars().next()?.to_digit(10)?;
    let index = usize::try_from(digit).ok()?.checked_sub(1)?;
    ends(&after[1..]).then_some((ArgumentPlace::Word(index), 1))
}

/// Splits the arguments into words. Quotes keep a word together, as in a shell.
fn split_words(arguments: &str) -> Vec<Cow<'_, str>> {
    let mut words = Vec::new();
    let mut rest = arguments.trim_start();
    while !rest.is_empty() {
        let mut word = Cow::Borrowed("");
        while let Some(first) = rest.chars().next().filter(|c| !c.is_whitespace()) {
            let quoted = rest[first.len_utf8()..].split_once(first).filter(|_| matches!(first, '"' | '\''));
            let (piece, after) = quoted.unwrap_or_else(|| {
                let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\'');
                // An unclosed quote is an ordinary character.
                let length =
                    rest.char_indices().skip(1).find(|(_, c)| !is_plain(*c)).map_or(rest.len(), |(at, _)| at);
                rest.split_at(length)
            });
            if word.is_empty() {
                word = Cow::Borrowed(piece);
            } else {
                word.to_mut().push_str(piece);
            }
            rest = after;
        }
        words.push(word);
        rest = rest.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_where_the_text_names_them() {
        for (text, arguments, expected) in [
            ("Review $ARGUMENTS.", "a b", "Review a b."),
            ("$1 then $2", "one two three", "one then two"),
            ("[$1] [$3]", "one", "[one] []"),
            ("$1", "\"a b\" c", "a b"),
            ("$1|$2", "x'y z'w \"v", "xy zw|\"v"),
            ("$1", "it's", "it's"),
            ("$ARGUMENTS", "$1 $ARGUMENTS {{ x }}", "$1 $ARGUMENTS {{ x }}"),
            ("It costs $100 or $ARGUMENTS_OF $0 $x $", "", "It costs $100 or $ARGUMENTS_OF $0 $x $"),
            ("\\$1 is $1", "a", "$1 is a"),
            ("{{ env.HOME }} !`id` $1", "日本", "{{ env.HOME }} !`id` 日本"),
            ("No place.", "", "No place."),
        ] {
            let command = OwnCommand { text: text.to_owned(), ..OwnCommand::default() };
            assert_eq!(write_message(&command, arguments).as_deref(), Ok(expected), "{text} with {arguments}");
        }
        let (name, origin) = ("x".to_owned(), "commands/x.md".to_owned());
        let command = OwnCommand { name, origin, text: "costs \\$1, $100".to_owned(), ..OwnCommand::default() };
        let why = "/x takes no argument: commands/x.md has neither $ARGUMENTS nor $1";
        assert_eq!(write_message(&command, "y"), Err(why.to_owned()));
        assert!(!takes_arguments(&command));
    }

    proptest::proptest! {
        #[test]
        fn any_text_and_any_arguments_are_taken(text in ".{0,80}", arguments in ".{0,40}") {
            let command = OwnCommand { text: format!("$1 {text}"), ..OwnCommand::default() };
            proptest::prop_assert!(write_message(&command, &arguments).is_ok());
        }
    }
}
