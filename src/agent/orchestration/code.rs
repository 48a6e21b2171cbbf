//! Tells how a value would be read at a place of a command line: as data, as an expression of the shell, or as code of
//! another program, in whatever quotes it stands.

/// How what stands at a place is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueReading {
    Data,
    /// By the shell, which runs what it finds in a subscript there.
    Expression,
    Code,
}

/// Programs that take code after an option; numbers of versions are left out.
const INTERPRETERS: [&str; 18] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "su", "python", "perl", "ruby", "node", "php", "lua",
    "deno", "script", "flock", "pwsh",
];
/// Commands whose words are code.
const EVALUATORS: [&str; 7] = ["eval", "trap", "ssh", "watch", "parallel", "source", "."];
/// Commands whose first operand is code.
const FILTERS: [&str; 4] = ["awk", "gawk", "mawk", "sed"];
/// Commands that run the rest of their line.
const WRAPPERS: [&str; 11] =
    ["env", "sudo", "nohup", "time", "command", "builtin", "exec", "nice", "timeout", "xargs", "find"];
/// Words of the shell before a command.
const KEYWORDS: [&str; 10] = ["if", "then", "elif", "else", "while", "until", "do", "!", "{", "coproc"];
/// Commands whose words name variables, or are expressions.
const ASSIGNERS: [&str; 9] =
    ["let", "declare", "typeset", "local", "readonly", "unset", "read", "printf", "mapfile"];
/// What compares numbers, in `[[ … ]]`.
const COMPARISONS: [&str; 6] = [" -eq ", " -ne ", " -lt ", " -le ", " -gt ", " -ge "];

/// How the word that begins or goes on after `before`, a part of `line`, is read.
pub(super) fn judge_place(before: &str, line: &str) -> ValueReading {
    let words = split_command(before);
    let unclosed = |open: &str, close: &str| before.matches(open).count() > before.matches(close).count();
    let compares = words.iter().any(|word| word == "[[") && COMPARISONS.iter().any(|sign| line.contains(sign));
    if is_code(&words) || is_script(before) {
        ValueReading::Code
    } else if compares
        || unclosed("((", "))")
        || unclosed("${", "}")
        || before.rsplit(char::is_whitespace).next().is_some_and(|word| word.contains('['))
        || find_command(&words).is_some_and(|at| assigns(&words[at..]))
    {
        ValueReading::Expression
    } else {
        ValueReading::Data
    }
}

/// `printf` writes a variable only with `-v`.
fn assigns(words: &[String]) -> bool {
    let is_print = words[0] == "printf" && words.get(1).is_none_or(|word| word != "-v");
    ASSIGNERS.contains(&words[0].as_str()) && !is_print
}

/// True if the value could be more to an expression than a word or a number.
pub(super) fn is_evaluated(value: &str) -> bool {
    value.contains(['[', ']', '$', '`', '(', ')', '\\', '"', '\''])
}

fn is_code(words: &[String]) -> bool {
    let Some(command) = find_command(words) else { return false };
    if EVALUATORS.contains(&name_program(&words[command])) {
        return true;
    }
    // Behind what runs another program, the program may stand anywhere.
    words.iter().enumerate().skip(command).any(|(at, word)| {
        let (options, is_wrapped) = (&words[at + 1..], command == at || is_wrapper(&words[command]));
        let name = name_program(word);
        let takes_code = |option: &String| {
            let letters = option.trim_start_matches('-');
            let is_long = option.starts_with("--");
            is_long && matches!(letters, "eval" | "print" | "command")
                || !is_long && option.starts_with('-') && letters.ends_with(['c', 'e', 'E', 'r', 'p'])
        };
        let has_operand = options.iter().zip(word_before(options)).any(|(option, before)| {
            !option.starts_with(['-', '+']) && !matches!(before, "-o" | "+o" | "-O" | "-F" | "-v")
        });
        let is_value = options.last().is_some_and(|option| matches!(option.as_str(), "-F" | "-v" | "-f"));
        let is_flock = matches!(name, "flock" | "su" | "script") && options.last().is_some_and(takes_code);
        is_wrapped
            && (is_flock
                || INTERPRETERS.contains(&name) && !has_operand && options.iter().any(takes_code)
                || FILTERS.contains(&name) && !has_operand && !is_value)
    })
}

/// Each word's predecessor.
fn word_before(words: &[String]) -> impl Iterator<Item = &str> {
    std::iter::once("").chain(words.iter().map(String::as_str))
}

/// True if `before` ends in a here-document, or in what is substituted, that such a program reads.
fn is_script(before: &str) -> bool {
    let Some((at, _)) = before.match_indices("<<").next().or_else(|| before.match_indices("<(").last()) else {
        return false;
    };
    // The rest of the line of a here-document goes on with the command.
    let head = before[at..].find('\n').map_or(before, |end| &before[..at + end]);
    head.split([';', '|', '&', '(', '\n']).any(|command| {
        let words = split_command(&format!("{command} "));
        let program = find_command(&words).map(|at| name_program(&words[at]));
        program.is_some_and(|name| INTERPRETERS.contains(&name) || EVALUATORS.contains(&name))
    })
}

/// The place of the command among words: what is assigned and what runs others come before it.
fn find_command(words: &[String]) -> Option<usize> {
    words.iter().position(|word| !word.contains('=') && !KEYWORDS.contains(&word.as_str()))
}

fn is_wrapper(word: &str) -> bool {
    WRAPPERS.contains(&name_program(word))
}

/// The name of a program: `python` for `/usr/bin/python3.11`.
fn name_program(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or_default();
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if bare.is_empty() { name } else { bare }
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
