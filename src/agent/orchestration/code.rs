//! Tells how a value would be read at a place of a command line: as data, as an expression of the shell, or as code of
//! another program, in whatever quotes it stands.

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
const CODE_OPTIONS: [(&str, &str, &[&str]); 15] = [
    ("env", "", &["-S", "--split-string"]),
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
/// Options of interpreters whose value is another word.
const VALUED: [&str; 12] =
    ["-o", "+o", "-O", "-I", "-W", "-X", "-M", "-r", "--rcfile", "--init-file", "--require", "--import"];
/// Options of git before its subcommand whose value is another word.
const VALUED_BY_GIT: [&str; 5] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace"];
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
    let is_open = |open: &str, close: &str| before.matches(open).count() > before.matches(close).count();
    let is_test = is_open("[[", "]]");
    let spaced = line.replace(char::is_whitespace, " ");
    let mut tests = spaced.split("[[").skip(1).filter_map(|test| test.split("]]").next());
    let compares = is_test && tests.any(|test| COMPARISONS.iter().any(|sign| test.contains(sign)));
    let programs = list_programs(&words);
    let names = words.last().is_some_and(|word| matches!(word.as_str(), "-v" | "-R"))
        && (is_test || programs.iter().any(|at| matches!(words[*at].as_str(), "test" | "[")));
    let has_subscript = |word: &str| word.matches('[').count() > word.matches(']').count();
    if is_code(&words, &begun) || is_script(before) {
        ValueReading::Code
    } else if is_filter_script(&words, &begun) {
        ValueReading::Script
    } else if compares
        || names
        || is_open("((", "))")
        || is_open("${", "}")
        || before.rsplit_once("$[").is_some_and(|(_, rest)| !rest.contains(']'))
        || before.rsplit(char::is_whitespace).next().is_some_and(has_subscript)
        || programs.iter().any(|at| assigns(&words[*at..], &begun))
    {
        ValueReading::Expression
    } else {
        ValueReading::Data
    }
}

/// `printf` writes a variable only with `-v`, and a plain `NAME=` takes any value; so does what is read.
fn assigns(words: &[String], begun: &str) -> bool {
    let is_print = words[0] == "printf" && words.get(1).map_or(!begun.starts_with("-v"), |word| word != "-v");
    let is_plain = matches!(&*words[0], "declare" | "typeset" | "local" | "readonly")
        && words[1..].iter().all(|word| !word.starts_with('-') || matches!(&**word, "-r" | "-x" | "-g"))
        && begun.split_once('=').is_some_and(|(name, _)| !name.contains('['));
    let is_read = begun.starts_with("<<<") || words.last().is_some_and(|word| word == "<<<");
    ASSIGNERS.contains(&words[0].as_str()) && !is_print && !is_plain && !is_read
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
            !option.starts_with(['-', '+']) && !is_redirection(option) && !VALUED.contains(&before)
        });
        let is_flock = matches!(name, "flock" | "su" | "script") && options.last().is_some_and(takes_code);
        is_wrapped && (is_flock || INTERPRETERS.contains(&name) && !has_operand && options.iter().any(takes_code))
    })
}

/// True if what follows is the script of a `sed` or `awk`, or goes on with it.
fn is_filter_script(words: &[String], begun: &str) -> bool {
    let is_given = |word: &str| word.starts_with("-e") || word.starts_with("--expression");
    let is_file = |word: &str| word.starts_with("-f") || word.starts_with("--file");
    let is_value = |word: &str| word.starts_with("-F") || word.starts_with("-v");
    find_command(words).is_some_and(|command| {
        words.iter().enumerate().skip(command).any(|(at, word)| {
            let options = &words[at + 1..];
            let last = options.last().map_or("", String::as_str);
            let has_operand = options.iter().zip(word_before(options)).any(|(option, before)| {
                !option.starts_with('-') && !matches!(before, "-F" | "-v") && !is_redirection(option)
            });
            let is_elsewhere = matches!(last, "-F" | "-v" | "-f" | "--file") || is_value(begun) || is_file(begun);
            let has_script = options.iter().any(|option| is_given(option) || is_file(option));
            (command == at || is_wrapper(&words[command]))
                && FILTERS.contains(&name_program(word))
                && !is_elsewhere
                && (is_given(begun) || matches!(last, "-e" | "--expression") || !has_script && !has_operand)
        })
    })
}

/// True if what follows the words of a program is the value of an option that takes code.
fn is_option_value(words: &[String], begun: &str) -> bool {
    let (name, words) = (name_program(&words[0]), &words[1..]);
    let is_led = || {
        words
            .iter()
            .zip(word_before(words))
            .all(|(word, before)| word.starts_with('-') || VALUED_BY_GIT.contains(&before))
    };
    CODE_OPTIONS.iter().filter(|(program, ..)| *program == name).any(|(_, sub, options)| {
        let is_there = match *sub {
            "" => true,
            "-" => is_led(),
            sub => words.iter().any(|word| word == sub),
        };
        // Long ones may be shortened.
        let is_meant = |word: &str, option: &str| {
            word == option || word.len() > 5 && option.starts_with("--") && option.starts_with(word)
        };
        let follows = |option: &&str| {
            words.last().is_some_and(|word| is_meant(word, option))
                || begun.split_once('=').is_some_and(|(name, _)| is_meant(name, option))
                || !option.starts_with("--") && begun.starts_with(option)
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
    let is_inside = |at: &usize| before[*at..].matches('(').count() > before[*at..].matches(')').count();
    let Some(at) = find_document(before).or_else(|| before.rfind("<(").filter(is_inside)) else { return false };
    // The rest of the line of a here-document goes on with the command.
    let end = before[at..].find('\n').map_or(before.len(), |end| at + end);
    let start = ["\n", ";", "&&", "||"].iter().filter_map(|mark| before[..at].rfind(mark)).max().unwrap_or(0);
    before[start..end].split([';', '|', '&', '(', '\n']).any(|command| {
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

/// The place of the command among words: what is assigned and redirected, and what runs others, comes before it.
fn find_command(words: &[String]) -> Option<usize> {
    let mut places = words.iter().zip(word_before(words));
    places.position(|(word, before)| {
        let is_target = is_redirection(before) && before.ends_with(['>', '<', '&', '|']);
        !word.contains('=') && !KEYWORDS.contains(&word.as_str()) && !is_redirection(word) && !is_target
    })
}

/// `>out`, `2>`, `&>x`
fn is_redirection(word: &str) -> bool {
    word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&').starts_with(['>', '<'])
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

/// A command that another one is within.
struct OuterCommand {
    /// `(` or a backtick.
    opened_by: char,
    words: Vec<String>,
    word: String,
    quote: Option<char>,
}

/// The words of the last command of a line that are complete, and the one that is not.
fn split_command(line: &str) -> (Vec<String>, String) {
    let (mut words, mut word, mut quote): (Vec<String>, String, Option<char>) = Default::default();
    let mut outer: Vec<OuterCommand> = Vec::new();
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let opens = match character {
            '(' => quote.is_none() || quote == Some('"') && word.ends_with('$'),
            '`' => quote != Some('\'') && outer.last().is_none_or(|outer| outer.opened_by != '`'),
            _ => false,
        };
        match character {
            '\\' if quote != Some('\'') => word.extend(characters.next()),
            '\'' | '"' if quote.is_none() => quote = Some(character),
            _ if quote == Some(character) => quote = None,
            _ if opens => {
                let (words, word) = (std::mem::take(&mut words), std::mem::take(&mut word));
                outer.push(OuterCommand { opened_by: character, words, word, quote: quote.take() });
            }
            '`' | ')' if quote.is_none() => match outer.pop() {
                // A function is defined, or a pattern of a `case` ends.
                Some(outer) if words.is_empty() && word.is_empty() && !outer.word.ends_with('$') => {}
                Some(outer) => (words, word, quote) = (outer.words, outer.word, outer.quote),
                None => {
                    words.clear();
                    word.clear();
                }
            },
            _ if quote.is_some() => word.push(character),
            ';' | '|' | '&' | '\n' => {
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
