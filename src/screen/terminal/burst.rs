//! Keys that came in one burst: a paste of a terminal that does not mark pastes.

use super::keys::Key;

/// Joins text that arrived in one piece, with line feeds in it, into a paste: nobody types that fast. This works
/// without the terminal's marks around pastes. A command of the chat (`/clear`) ends at its Enter, and what follows it is
/// read in the same way: lines after the last command run nothing.
pub(super) fn join_burst(mut keys: Vec<Key>) -> Vec<Key> {
    let is_end = |key: &Key| matches!(key, Key::Enter | Key::LineBreak);
    let is_text = |key: &Key| matches!(key, Key::Char(_) | Key::Tab) || is_end(key);
    let end = keys.iter().position(is_end).filter(|at| at + 1 < keys.len());
    let word = keys.iter().take_while(|key| **key != Key::Char(' ') && !is_end(key));
    let is_command = keys.first() == Some(&Key::Char('/')) && !word.skip(1).any(|key| *key == Key::Char('/'));
    let Some(end) = end.filter(|_| keys.iter().all(is_text)) else { return keys };
    if is_command {
        let rest = keys.split_off(end + 1);
        keys.extend(join_burst(rest));
        return keys;
    }
    let as_char = |key: &Key| match key {
        Key::Char(c) => *c,
        Key::Tab => '\t',
        Key::Enter => '\r',
        _ => '\n',
    };
    let text: String = keys.iter().map(as_char).collect();
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let paste = Key::Paste(text.trim_end_matches('\n').to_owned());
    std::iter::once(paste).chain(text.ends_with('\n').then_some(Key::Enter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::terminal::keys::KeyDecoder;

    #[test]
    fn lines_in_one_piece_are_a_paste() {
        let keys = |text: &str| join_burst(KeyDecoder::default().feed(text.as_bytes()));
        let paste = |text: &str| Key::Paste(text.to_owned());
        for (text, expected) in [
            ("one\rtwo", vec![paste("one\ntwo")]),
            ("one\n\ttwo\r", vec![paste("one\n\ttwo"), Key::Enter]),
            ("one\r\ntwo\r\n", vec![paste("one\ntwo"), Key::Enter]),
            ("y\r", vec![Key::Char('y'), Key::Enter]),
            ("/a\rb", vec![Key::Char('/'), Key::Char('a'), Key::Enter, Key::Char('b')]),
            ("/a\rc\r!b\r", vec![Key::Char('/'), Key::Char('a'), Key::Enter, paste("c\n!b"), Key::Enter]),
            ("/\r/\r", vec![Key::Char('/'), Key::Enter, Key::Char('/'), Key::Enter]),
            ("/a/b\rc", vec![paste("/a/b\nc")]),
            ("\r", vec![Key::Enter]),
            ("\n", vec![Key::LineBreak]),
            ("a\r\x04", vec![Key::Char('a'), Key::Enter, Key::Ctrl('d')]),
        ] {
            assert_eq!(keys(text), expected, "{text:?}");
        }
    }
}
