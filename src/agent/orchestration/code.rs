//! Tells where a command line holds code for another program: what is put in there would be read as code, in whatever
//! quotes it stands.

/// Programs that take code after an option such as `-c` or `-e`.
const INTERPRETERS: [&str; 16] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "su", "python", "python3", "perl", "ruby", "node", "php",
    "lua", "deno",
];
/// Commands whose words are code.
const EVALUATORS: [&str; 5] = ["eval", "trap", "ssh", "watch", "parallel"];

/// True if the word that begins or goes on after `before`, the line so far, is code.
pub(super) fn precedes_code(before: &str) -> bool {
    let words = split_command(before);
    let is_of = |word: &str, known: &[&str]| known.contains(&word.rsplit('/').next().unwrap_or_default());
    let names = |known: &[&str]| words.iter().any(|word| is_of(word, known));
    // A here-document may be a script.
    let feeds = |known: &[&str]| before.contains("<<") && before.split_whitespace().any(|word| is_of(word, known));
    let is_option = |word: &&String| {
        let letters = word.strip_prefix('-').filter(|letters| letters.chars().all(|c| c.is_ascii_alphabetic()));
        letters.is_some_and(|letters| letters.ends_with(['c', 'e', 'E', 'r']))
    };
    names(&EVALUATORS)
        || feeds(&EVALUATORS)
        || feeds(&INTERPRETERS)
        || names(&INTERPRETERS) && words.last().is_some_and(|word| is_option(&word))
}

/// The words of the last command of a line that are complete.
fn split_command(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' if quote != Some('\'') => word.extend(characters.next()),
            '\'' | '"' if quote.is_none() => quote = Some(character),
            _ if quote == Some(character) => quote = None,
            _ if quote.is_some() => word.push(character),
            ';' | '|' | '&' | '\n' | '(' | '`' => {
                words.clear();
                word.clear();
            }
            _ if character.is_whitespace() => {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            }
            _ => word.push(character),
        }
    }
    words
}
