//! Tells how a value would be read at a place of a command line: as data, as an expression of the shell, or as code of
//! another program, in whatever quotes it stands. What programs do with their words is told by the table of the policy.

use crate::base::open_command::{OpenCommand, split_command};
use crate::safety::policy::programs::{find_rows, fits_word, has_row};

/// How what stands at a place is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueReading {
    Data,
    /// By the shell, which runs what it finds in a subscript there.
    Expression,
    /// As a script of `sed` or `awk`, in which a number is no more than that.
    Script,
    Code,
}

impl ValueReading {
    /// The reason, after the name of a value, that it must not stand there; without the value, whatever it is.
    pub(super) fn find_danger(self, value: Option<&str>) -> Option<&'static str> {
        match self {
            Self::Script if value.is_none_or(|value| value.bytes().all(|byte| byte.is_ascii_digit())) => None,
            Self::Script | Self::Code => Some(
                "would be read as code there; give it to the code as an argument, or write it to a file first",
            ),
            Self::Expression if value.is_some_and(is_evaluated) => {
                Some("is no plain number or word, and a shell would evaluate it")
            }
            Self::Expression | Self::Data => None,
        }
    }
}

/// What compares numbers, in `[[ … ]]`.
const COMPARISONS: [&str; 6] = [" -eq ", " -ne ", " -lt ", " -le ", " -gt ", " -ge "];

/// How the word that begins or goes on after `before`, a part of `line`, is read.
pub(super) fn judge_place(before: &str, line: &str) -> ValueReading {
    let OpenCommand { words, word: begun, quote, enclosing, .. } = split_command(before);
    // What a command prints there becomes code, or the command and its words.
    let prints_code = |outer: &OpenCommand| {
        is_code(&outer.words, &outer.word)
            || outer.quote.is_none() && !outer.word.contains('=') && find_command(&outer.words).is_none()
    };
    // A calculation runs no program.
    let words = if quote == Some('(') { Vec::new() } else { words };
    let is_test = is_open(before, "[[", "]]");
    let spaced = line.replace(char::is_whitespace, " ");
    let mut tests = spaced.split("[[").skip(1).filter_map(|test| test.split("]]").next());
    let compares = is_test && tests.any(|test| COMPARISONS.iter().any(|sign| test.contains(sign)));
    let programs = list_programs(&words);
    let names = words.last().is_some_and(|word| matches!(word.as_str(), "-v" | "-R"))
        && (is_test || programs.iter().any(|at| matches!(words[*at].as_str(), "test" | "[")));
    let has_subscript = |word: &str| is_open(word, "[", "]");
    if is_code(&words, &begun) || is_script(before) || enclosing.iter().any(prints_code) {
        ValueReading::Code
    } else if is_filter_script(&words, &begun) {
        ValueReading::Script
    } else if compares
        || names
        || is_open(before, "((", "))")
        || is_open(before, "${", "}")
        || before.rsplit_once("$[").is_some_and(|(_, rest)| !rest.contains(']'))
        || before.rsplit(char::is_whitespace).next().is_some_and(has_subscript)
        || programs.iter().any(|at| assigns(&words[*at..], &begun))
    {
        ValueReading::Expression
    } else {
        ValueReading::Data
    }
}

/// The quote that a value after `before` stands in: `'` where a shell puts in no value. The body of a here-document and a
/// calculation count as quotes, in which the value is one word already.
pub(super) fn find_quote(before: &str) -> Option<char> {
    split_command(before).quote
}

/// Adds a variable to a line, so that its value stays one word.
pub(super) fn push_variable(command: &mut String, name: &str) {
    let quote = if find_quote(command).is_none() { "\"" } else { "" };
    command.extend([quote, "${", name, "}", quote]);
}

fn is_open(text: &str, open: &str, close: &str) -> bool {
    text.matches(open).count() > text.matches(close).count()
}

/// `printf` writes a variable only with `-v`, and a plain `NAME=` takes any value; so does what is read.
fn assigns(words: &[String], begun: &str) -> bool {
    let is_print = words[0] == "printf" && words.get(1).map_or(!begun.starts_with("-v"), |word| word != "-v");
    let is_plain = matches!(&*words[0], "declare" | "typeset" | "local" | "readonly")
        && words[1..].iter().all(|word| !word.starts_with('-') || matches!(&**word, "-r" | "-x" | "-g"))
        && begun.split_once('=').is_some_and(|(name, _)| !name.contains('['));
    let is_read = begun.starts_with("<<<") || words.last().is_some_and(|word| word == "<<<");
    has_row("assigns", &words[0]) && !is_print && !is_plain && !is_read
}

/// True if the value could be more to an expression than a word or a number.
fn is_evaluated(value: &str) -> bool {
    value.contains(['[', ']', '$', '`', '(', ')', '\\', '"', '\''])
}

fn is_code(words: &[String], begun: &str) -> bool {
    if begun.split_once('=').is_some_and(|(name, _)| has_row("code-variable", name_program(name))) {
        return true;
    }
    let takes_all = |at: &usize| {
        let name = name_program(&words[*at]);
        // What is only known when it runs could be any of them.
        name.contains('$') && !name.contains([' ', '='])
            || has_row("evaluates", name)
            || is_option_value(&words[*at..], begun)
    };
    if list_programs(words).iter().any(takes_all) {
        return true;
    }
    let takes_code = |name: &str, option: &str| match option.strip_prefix("--") {
        Some(long) => matches!(long, "eval" | "print" | "command"),
        None if has_row("shell", name) => fits_word("-*c", option),
        None => option.starts_with('-') && option.ends_with(['c', 'e', 'E', 'r', 'p']),
    };
    let joins_code = |begun: &str| fits_word("-c*|-e*|-E*|--eval=*|--print=*|--command=*", begun);
    list_possible(words).any(|(name, options)| {
        let is_flock = matches!(name, "flock" | "su" | "script")
            && options.last().is_some_and(|option| takes_code(name, option));
        let mut valued = find_rows("interprets", name);
        is_flock
            || valued.any(|valued| {
                !has_operand(options, valued, &['-', '+'])
                    && (joins_code(begun) || options.iter().any(|option| takes_code(name, option)))
            })
    })
}

/// True if what follows is the script of a `sed` or `awk`, or goes on with it.
fn is_filter_script(words: &[String], begun: &str) -> bool {
    let is_given = |word: &str| fits_word("-e*|--expression*", word);
    let is_file = |word: &str| fits_word("-f*|--file*", word);
    list_possible(words).any(|(name, options)| {
        let last = options.last().map_or("", String::as_str);
        let is_elsewhere = fits_word("-F|-v|-f|--file", last) || fits_word("-F*|-v*", begun) || is_file(begun);
        let has_script = options.iter().any(|option| is_given(option) || is_file(option));
        find_rows("filters", name).any(|valued| {
            !is_elsewhere
                && (is_given(begun)
                    || fits_word("-e|--expression", last)
                    || !has_script && !has_operand(options, valued, &['-']))
        })
    })
}

/// The programs that could be the one that runs, and the words after each: behind what runs another program, it may
/// stand anywhere.
fn list_possible(words: &[String]) -> impl Iterator<Item = (&str, &[String])> {
    let command = find_command(words).unwrap_or(words.len());
    let most = if words.get(command).is_some_and(|word| is_wrapper(word)) { words.len() } else { 1 };
    (command..words.len()).take(most).map(|at| (name_program(&words[at]), &words[at + 1..]))
}

/// True if a word is neither a flag, which begins with one of `signs`, nor the value of one of `valued`.
fn has_operand(words: &[String], valued: &str, signs: &[char]) -> bool {
    words
        .iter()
        .zip(word_before(words))
        .any(|(word, before)| !word.starts_with(signs) && !is_redirection(word) && !fits_word(valued, before))
}

/// True if what follows the words of a program is the value of an option that takes code.
fn is_option_value(words: &[String], begun: &str) -> bool {
    let (name, words) = (name_program(&words[0]), &words[1..]);
    let is_led = || {
        words.iter().zip(word_before(words)).all(|(word, before)| {
            word.starts_with('-') || find_rows("valued", name).any(|valued| fits_word(valued, before))
        })
    };
    find_rows("takes-code", name).filter_map(|row| row.split_once(' ')).any(|(sub, options)| {
        let is_there = match sub {
            "*" => true,
            "-" => is_led(),
            sub => words.iter().any(|word| word == sub),
        };
        // Long ones may be shortened.
        let is_meant = |word: &str, option: &str| {
            fits_word(option, word) || word.len() > 5 && option.starts_with("--") && option.starts_with(word)
        };
        let follows = |option: &str| {
            words.last().is_some_and(|word| is_meant(word, option))
                || begun.split_once('=').is_some_and(|(name, _)| is_meant(name, option))
                || !option.starts_with("--") && begun.starts_with(option)
                || option == "=" && begun.contains('=')
        };
        is_there && options.split('|').any(follows)
    })
}

/// The places of the command, and of what could be the one that it runs.
fn list_programs(words: &[String]) -> Vec<usize> {
    let Some(command) = find_command(words) else { return Vec::new() };
    let is_flag = |word: &String| word.starts_with('-');
    // What stands behind a flag may be its value.
    let is_passed = |at: &usize| {
        let before = &words[at - 1];
        is_flag(before)
            || *at >= 2 && is_flag(&words[at - 2])
            || before.contains('=')
            || before.starts_with(|c: char| c.is_ascii_digit())
            || is_wrapper(before)
    };
    let (rest, mut found) = (command + 1..words.len(), vec![command]);
    match name_program(&words[command]) {
        "find" => found.extend(rest.filter(|at| fits_word("-exec|-execdir|-ok|-okdir", &words[at - 1]))),
        _ if is_wrapper(&words[command]) => found.extend(rest.take_while(is_passed)),
        _ => {}
    }
    found
}

/// Each word's predecessor.
fn word_before(words: &[String]) -> impl Iterator<Item = &str> {
    std::iter::once("").chain(words.iter().map(String::as_str))
}

/// True if `before` ends in a here-document, or in what is substituted, that such a program reads.
fn is_script(before: &str) -> bool {
    let is_inside = |at: &usize| is_open(&before[*at..], "(", ")");
    let reads_script =
        |pair: &[String]| fits_word("-f|--file", &pair[0]) && fits_word("-|/dev/stdin|/dev/fd/0", &pair[1]);
    let OpenCommand { words, word, document, .. } = split_command(before);
    let reads_word = word.starts_with("<<<") || words.last().is_some_and(|word| word == "<<<");
    let document = document.or_else(|| before.rfind("<<<").filter(|_| reads_word));
    let Some(at) = document.or_else(|| before.rfind("<(").filter(is_inside)) else { return false };
    // The rest of the line of a here-document goes on with the command.
    let end = before[at..].find('\n').map_or(before.len(), |end| at + end);
    let start = ["\n", ";", "&&", "||"].iter().filter_map(|mark| before[..at].rfind(mark)).max().unwrap_or(0);
    before[start..end].split([';', '|', '&', '(', '\n']).any(|command| {
        let words = split_command(&format!("{} ", command.split("<<").next().unwrap_or_default())).words;
        let program = find_command(&words).map(|at| name_program(&words[at]));
        program.is_some_and(|name| has_row("interprets", name) || has_row("evaluates", name))
            || program == Some("xargs") && feeds_code(&words)
            || program.is_some_and(|name| has_row("filters", name)) && words.windows(2).any(reads_script)
    })
}

/// True if `xargs` gives what it reads to a program as code.
fn feeds_code(words: &[String]) -> bool {
    for (at, word) in words.iter().enumerate() {
        let (mark, from) = match (word.strip_prefix("-I"), word.strip_prefix("--replace=")) {
            (Some(""), _) => (words.get(at + 1).map_or("", String::as_str), at + 2),
            (Some(mark), _) | (_, Some(mark)) => (mark, at + 1),
            _ if matches!(word.as_str(), "-i" | "--replace") => ("{}", at + 1),
            _ => continue,
        };
        let is_replaced =
            |place: usize| words[place].split_once(mark).is_some_and(|(begun, _)| is_code(&words[..place], begun));
        return (from..words.len()).any(is_replaced);
    }
    is_code(words, "")
}

/// The place of the command among words: what is assigned and redirected, and what runs others, comes before it.
fn find_command(words: &[String]) -> Option<usize> {
    let mut places = words.iter().zip(word_before(words));
    places.position(|(word, before)| {
        let is_target = is_redirection(before) && before.ends_with(['>', '<', '&', '|']);
        !word.contains('=') && !has_row("begins", word) && !is_redirection(word) && !is_target
    })
}

/// `>out`, `2>`, `&>x`
fn is_redirection(word: &str) -> bool {
    word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&').starts_with(['>', '<'])
}

fn is_wrapper(word: &str) -> bool {
    let name = name_program(word);
    ["wraps", "opaque", "delegates"].iter().any(|fact| has_row(fact, name)) || name == "find"
}

/// The name of a program: `python` for `/usr/bin/python3.11`.
fn name_program(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or_default();
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if bare.is_empty() { name } else { bare }
}
