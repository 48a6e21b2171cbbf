//! The command that is open at the end of a part of a line: its words, and the quote, the here-document or the calculation
//! in which the next character would stand.

mod ansi;

pub use ansi::decode_quoted;

/// The last command of a line, as far as it goes.
#[derive(Default)]
pub struct OpenCommand {
    /// The words that are complete.
    pub words: Vec<String>,
    /// The one that is not.
    pub word: String,
    pub quote: Option<char>,
    /// What opened the command inside it that follows: `(` or a backtick, or `+` for a calculation.
    opens: char,
    /// The place of the here-document that is open.
    pub document: Option<usize>,
    /// The commands in whose words it stands (`$(…)`, backticks), as far as they go, the outermost first.
    pub enclosing: Vec<OpenCommand>,
}

/// A here-document whose body is yet to come.
struct AwaitedDocument {
    at: usize,
    delimiter: String,
    strips_tabs: bool,
    is_expanded: bool,
}

impl AwaitedDocument {
    /// `text` is what follows the `<<` at this place.
    fn begin(at: usize, text: &str) -> Self {
        let word = text.strip_prefix('-').unwrap_or(text).trim_start_matches([' ', '\t']);
        let is_quote = |c: char| matches!(c, '\'' | '"');
        let end = match word.chars().next().filter(|c| is_quote(*c)) {
            Some(quote) => word[1..].find(quote).map(|end| end + 2),
            None => word.find([' ', '\t', '\n', ';', '|', '&', '<', '>', '(', ')']),
        };
        let word = &word[..end.unwrap_or(word.len())];
        let delimiter = word.replace(['"', '\'', '\\'], "");
        Self { at, is_expanded: delimiter == word, delimiter, strips_tabs: text.starts_with('-') }
    }

    /// The length of its body, with its last line.
    fn find_end(&self, text: &str) -> Option<usize> {
        let mut length = 0;
        text.split_inclusive('\n').find_map(|line| {
            length += line.len();
            let line = line.strip_suffix('\n')?;
            (line.trim_start_matches(|c| self.strips_tabs && c == '\t') == self.delimiter).then_some(length)
        })
    }
}

/// Stands for a quote: the body of a here-document, in which values are put.
const IN_DOCUMENT: char = '\0';

/// Splits a line that goes on.
pub fn split_command(line: &str) -> OpenCommand {
    let mut open = OpenCommand::default();
    let mut outer: Vec<OpenCommand> = Vec::new();
    let mut last = ' ';
    let mut documents: Vec<AwaitedDocument> = Vec::new();
    let mut document = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let before = std::mem::replace(&mut last, character);
        let rest = characters.as_str();
        let in_backticks = outer.last().is_some_and(|outer| outer.opens == '`');
        let opens = match character {
            '(' => open.quote.is_none() || open.quote != Some('\'') && before == '$',
            '`' => open.quote != Some('\'') && !in_backticks,
            _ => false,
        };
        let begins_document = character == '<'
            && open.quote.is_none()
            && open.word.ends_with('<')
            && !open.word.ends_with("<<")
            && !rest.starts_with('<')
            && outer.iter().all(|outer| outer.opens != '+');
        let is_start = open.word.is_empty() && (before.is_whitespace() || ";|&()".contains(before));
        match character {
            '\\' if open.quote != Some('\'') => open.word.extend(characters.next().filter(|next| *next != '\n')),
            '#' if open.quote.is_none() && is_start && !in_backticks => {
                characters = rest[rest.find('\n').unwrap_or(rest.len())..].chars();
            }
            '\'' if open.quote.is_none() && before == '$' && open.word.ends_with('$') => {
                let (decoded, length) = decode_quoted(rest);
                open.word.pop();
                open.word.push_str(&decoded);
                open.quote = length.is_none().then_some(character);
                characters = rest[length.unwrap_or(rest.len())..].chars();
            }
            '\'' | '"' if open.quote.is_none() => open.quote = Some(character),
            _ if open.quote == Some(character) => open.quote = None,
            _ if opens => {
                let is_calculation = before == '(' && open.word.is_empty() && open.words.is_empty();
                open.opens = if character == '(' && is_calculation { '+' } else { character };
                // Its name is only known when it runs.
                open.word.extend((character == '`').then_some('$'));
                outer.push(std::mem::take(&mut open));
            }
            '`' | ')' if open.quote.is_none() => match outer.pop() {
                // A function is defined, or a pattern of a `case` ends.
                Some(outer) if open.words.is_empty() && open.word.is_empty() && !outer.word.ends_with('$') => {}
                outer => open = outer.unwrap_or_default(),
            },
            _ if open.quote.is_some() => open.word.push(character),
            ';' | '|' | '&' | '\n' => {
                open = OpenCommand::default();
                let ended = if character == '\n' { documents.len() } else { 0 };
                for awaited in documents.drain(..ended) {
                    let rest = characters.as_str();
                    match awaited.find_end(rest) {
                        Some(length) => characters = rest[length..].chars(),
                        None if document.is_some() => {}
                        None => {
                            document = Some(awaited.at);
                            let is_quoted = !awaited.is_expanded;
                            open.quote = Some(if is_quoted { '\'' } else { IN_DOCUMENT });
                            characters = if is_quoted { "".chars() } else { characters };
                        }
                    }
                }
            }
            _ if begins_document => {
                documents.push(AwaitedDocument::begin(line.len() - rest.len() - 2, rest));
                open.word.push(character);
            }
            // What follows is a command.
            _ if character.is_whitespace() && open.word == "{" => open = OpenCommand::default(),
            _ if character.is_whitespace() => {
                open.words.extend((!open.word.is_empty()).then(|| std::mem::take(&mut open.word)));
            }
            _ => open.word.push(character),
        }
    }
    let is_bracket = |outer: &&OpenCommand| outer.opens == '(' && !outer.word.ends_with('$');
    let calculates = outer.iter().rev().find(|outer| !is_bracket(outer)).is_some_and(|outer| outer.opens == '+');
    open.quote = open.quote.or(calculates.then_some('('));
    outer.retain(|outer| outer.word.ends_with('$'));
    OpenCommand { document, enclosing: outer, ..open }
}
