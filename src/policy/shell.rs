//! The words of a command line, as far as the shell passes them on as they are. Whatever it would replace, split,
//! redirect or run is no word of ours: then there is no answer.

/// The words of each command of a pipeline; `None` where the shell would do more than pass them on.
pub(super) fn pipeline(line: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut chars = line.trim_matches([' ', '\t', '\n']).chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => commands.last_mut()?.extend(word.take()),
            '|' if !matches!(chars.peek(), Some('|' | '&')) => {
                commands.last_mut()?.extend(word.take());
                commands.push(Vec::new());
            }
            '\'' | '"' => quoted(c, &mut chars, word.get_or_insert_default())?,
            c if is_plain(c) => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
    commands.last_mut()?.extend(word);
    commands.iter().all(|words| !words.is_empty()).then_some(commands)
}

/// Characters that mean nothing to the shell outside quotes. (`=` does at the beginning of a command, but no program
/// of the table has one in its name; `~` and `{` do, and are not among them.)
fn is_plain(c: char) -> bool {
    // Some shells take these bytes for blanks wherever they stand.
    const TAKEN_FOR_BLANKS: [u8; 2] = [0x85, 0xa0];
    let letter = c.is_alphanumeric() && !c.encode_utf8(&mut [0; 4]).bytes().any(|b| TAKEN_FOR_BLANKS.contains(&b));
    letter || "-_./,:=+@%".contains(c)
}

fn quoted(quote: char, chars: &mut impl Iterator<Item = char>, word: &mut String) -> Option<()> {
    for c in chars {
        match c {
            c if c == quote => return Some(()),
            c if c.is_control() && c != '\t' => return None,
            '$' | '`' | '\\' | '!' if quote == '"' => return None,
            c => word.push(c),
        }
    }
    None
}
