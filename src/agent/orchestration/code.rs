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

impl ValueReading {
    /// The reason, after the name of a value, that it must not stand there; without the value, whatever it is.
    pub(super) fn find_danger(self, value: Option<&str>) -> Option<&'static str> {
        match self {
            Self::Code => Some(
                "would be read as code there; give it to the code as an argument, or write it to a file first",
            ),
            Self::Expression if value.is_some_and(is_evaluated) => {
                Some("is no plain number or word, and a shell would evaluate it")
            }
            Self::Expression | Self::Data => None,
        }
    }
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
const WRAPPERS: [&str; 16] = [
    "env", "sudo", "doas", "nohup", "time", "command", "builtin", "exec", "nice", "ionice", "setsid", "stdbuf",
    "timeout", "xargs", "find", "busybox",
];
/// Options whose value is code, by the program and its subcommand; `-` stands for a place before any.
const CODE_OPTIONS: [(&str, &str, &[&str]); 14] = [
    ("git", "-", &["-c"]),
    ("git", "grep", &["-O", "--open-files-in-pager"]),
    ("git", "rebase", &["-x", "--exec"]),
    ("git", "difftool", &["-x", "--extcmd"]),
    ("git", "bisect", &["run"]),
    ("git", "submodule", &["foreach"]),
    (
        "git",
        "filter-branch",
        &["--env-filter", "--tree-filter", "--index-filter", "--msg-filter", "--commit-filter"],
    ),
    ("tar", "", &["-I", "-F", "--checkpoint-action", "--to-command", "--use-compress-program", "--info-script"]),
    ("compgen", "", &["-C"]),
    ("complete", "", &["-C"]),
    ("mapfile", "", &["-C"]),
    ("readarray", "", &["-C"]),
    ("sort", "", &["--compress-program"]),
    ("rsync", "", &["-e", "--rsh", "--rsync-path"]),
];
/// Variables that name a program, or code, to others.
const CODE_VARIABLES: [&str; 18] = [
    "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR",
    "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "GIT_CONFIG_PARAMETERS", "PAGER", "EDITOR", "VISUAL",
    "LESSOPEN", "LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "PERL5OPT",
];
/// Words of the shell before a command.
const KEYWORDS: [&str; 10] = ["if", "then", "elif", "else", "while", "until", "do", "!", "{", "coproc"];
/// Commands whose words name variables, or are expressions.
const ASSIGNERS: [&str; 10] =
    ["let", "declare", "typeset", "local", "readonly", "unset", "read", "printf", "mapfile", "readarray"];
/// What compares numbers, in `[[ … ]]`.
const COMPARISONS: [&str; 6] = [" -eq ", " -ne ", " -lt ", " -le ", " -gt ", " -ge "];

/// How the word that begins or goes on after `before`, a part of `line`, is read.
pub(super) fn judge_place(before: &str, line: &str) -> ValueReading {
    let (words, begun) = split_command(before);
    let unclosed = |open: &str, close: &str| before.matches(open).count() > before.matches(close).count();
    let is_test = unclosed("[[", "]]");
    let compares = is_test && COMPARISONS.iter().any(|sign| line.contains(sign));
    let programs = list_programs(&words);
    let names = words.last().is_some_and(|word| matches!(word.as_str(), "-v" | "-R"))
        && (is_test || programs.iter().any(|at| matches!(words[*at].as_str(), "test" | "[")));
    if is_code(&words, &begun) || is_script(before) {
        ValueReading::Code
    } else if compares
        || names
        || unclosed("((", "))")
        || unclosed("${", "}")
        || before.rsplit(char::is_whitespace).next().is_some_and(|word| word.contains('['))
        || programs.iter().any(|at| assigns(&words[*at..], &begun))
    {
        ValueReading::Expression
    } else {
        ValueReading::Data
    }
}

/// `printf` writes a variable only with `-v`.
fn assigns(words: &[String], begun: &str) -> bool {
    let is_print = words[0] == "printf" && words.get(1).map_or(!begun.starts_with("-v"), |word| word != "-v");
    ASSIGNERS.contains(&words[0].as_str()) && !is_print
}

/// True if the value could be more to an expression than a word or a number.
fn is_evaluated(value: &str) -> bool {
    value.contains(['[', ']', '$', '`', '(', ')', '\\', '"', '\''])
}

fn is_code(words: &[String], begun: &str) -> bool {
    if begun.split_once('=').is_some_and(|(name, _)| CODE_VARIABLES.contains(&name)) {
        return true;
    }
    let takes_all =
        |at: &usize| EVALUATORS.contains(&name_program(&words[*at])) || is_option_value(&words[*at..], begun);
    if list_programs(words).iter().any(takes_all) {
        return true;
    }
    let Some(command) = find_command(words) else { return false };
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

/// True if what follows the words of a program is the value of an option that takes code.
fn is_option_value(words: &[String], begun: &str) -> bool {
    let (name, words) = (name_program(&words[0]), &words[1..]);
    let is_led = || {
        words
            .iter()
            .zip(word_before(words))
            .all(|(word, before)| [word, before].iter().any(|word| word.starts_with('-')))
    };
    CODE_OPTIONS.iter().filter(|(program, ..)| *program == name).any(|(_, sub, options)| {
        let is_there = match *sub {
            "" => true,
            "-" => is_led(),
            sub => words.iter().any(|word| word == sub),
        };
        let follows = |option: &&str| {
            let joined = begun.strip_prefix(option);
            words.last().is_some_and(|word| word == option)
                || joined.is_some_and(|rest| !option.starts_with("--") || rest.starts_with('='))
        };
        is_there && options.iter().any(follows)
    })
}

/// The places of the command, and of what could be the one that it runs.
fn list_programs(words: &[String]) -> Vec<usize> {
    let Some(command) = find_command(words) else { return Vec::new() };
    let is_find = name_program(&words[command]) == "find";
    let is_flag = |word: &String| word.starts_with('-');
    let mut found = vec![command];
    for at in command + 1..words.len() {
        if is_find {
            found.extend(matches!(&*words[at - 1], "-exec" | "-execdir" | "-ok" | "-okdir").then_some(at));
            continue;
        }
        // What stands behind a flag may be its value.
        let before = &words[at - 1];
        let is_passed = is_flag(before)
            || at >= 2 && is_flag(&words[at - 2])
            || before.contains('=')
            || before.starts_with(|c: char| c.is_ascii_digit())
            || is_wrapper(before);
        if !is_passed || !is_wrapper(&words[command]) {
            break;
        }
        found.push(at);
    }
    found
}

/// Each word's predecessor.
fn word_before(words: &[String]) -> impl Iterator<Item = &str> {
    std::iter::once("").chain(words.iter().map(String::as_str))
}

/// True if `before` ends in a here-document, or in what is substituted, that such a program reads.
fn is_script(before: &str) -> bool {
    let Some(at) = find_document(before).or_else(|| before.rfind("<(")) else { return false };
    // The rest of the line of a here-document goes on with the command.
    let head = before[at..].find('\n').map_or(before, |end| &before[..at + end]);
    head.split([';', '|', '&', '(', '\n']).any(|command| {
        let (words, _) = split_command(&format!("{} ", command.split("<<").next().unwrap_or_default()));
        let program = find_command(&words).map(|at| name_program(&words[at]));
        program.is_some_and(|name| INTERPRETERS.contains(&name) || EVALUATORS.contains(&name))
            || program == Some("xargs") && feeds_code(&words)
    })
}

/// The place of the here-document or here-string that is open at the end of `before`, or may be.
fn find_document(before: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = before[from..].find("<<").map(|at| from + at) {
        let Some(length) = before[at..].find('\n') else { return Some(at) };
        let end = at + length;
        let head = &before[at + 2..end];
        let is_closed = |quote| head.matches(quote).count() % 2 == 0;
        let ends = if head.starts_with('<') {
            (is_closed('"') && is_closed('\'')).then_some(end)
        } else {
            let word = head.trim_start_matches(['-', ' ']).split([' ', ';', '|', '&', '<', '>', ')']).next();
            let word = word.unwrap_or_default().replace(['"', '\'', '\\'], "");
            let last = format!("\n{word}\n");
            before[end..].find(&last).map(|place| end + place + last.len())
        };
        let Some(ends) = ends else { return Some(at) };
        from = ends;
    }
    None
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

/// The words of the last command of a line that are complete, and the one that is not.
fn split_command(line: &str) -> (Vec<String>, String) {
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
    (words, word)
}
