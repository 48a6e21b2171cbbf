//! The usual behaviour of programs, by the table of them.
//!
//! Flags are not analysed: a line of programs that usually only read runs in walls that allow no writing.

use super::programs::{find_rows, fits_word, has_row};
use super::shell::{Arg, Simple};

/// The known behaviour of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Habit {
    /// It may do anything.
    Unknown,
    /// It usually only reads. Walls must confine it to that.
    Reads,
    /// It has no way to write or to run anything.
    OnlyReads,
}

/// The directories of the system's programs.
const SYSTEM: [&str; 6] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/"];

/// The habit of a command, with that of the commands in it.
pub(super) fn find_habit(command: &Simple) -> Habit {
    let own = match &command.inside {
        Some(inside) => {
            let runs_only = command.program().is_some_and(|name| has_row("runs", name) || has_row("shell", name));
            let within = inside.script.commands.iter().map(find_habit).min().unwrap_or(Habit::Unknown);
            let is_sure = inside.is_transparent && inside.script.files.is_empty();
            match (runs_only && inside.script.doubt().is_none() && !writes_files(command), is_sure) {
                (false, _) => Habit::Unknown,
                (true, true) => within,
                (true, false) => within.min(Habit::Reads),
            }
        }
        None if command.argv.is_empty() => Habit::OnlyReads,
        None => of_words(command),
    };
    command.assigned.iter().map(|name| of_variable(name)).fold(own, Habit::min)
}

/// True if another program does the work, which no walls around this one confine.
pub(super) fn delegates_work(command: &Simple) -> bool {
    has_row("delegates", command.program_name())
}

/// True if all that it runs belongs to the system: nothing in it comes from the workspace.
pub(super) fn is_of_system(command: &Simple) -> bool {
    match (&command.inside, command.argv.split_first()) {
        (Some(inside), _) => inside.script.doubt().is_none() && inside.script.commands.iter().all(is_of_system),
        (None, Some((Arg::Literal(name), words))) => {
            find_habit(command) >= Habit::Reads || uses_network(command) || covers_command("files", name, words)
        }
        (None, Some((Arg::Unknown | Arg::Pattern(_) | Arg::InHome(_), _))) => false,
        (None, None) => true,
    }
}

/// True if it is a command that changes files, which its words name.
pub(super) fn changes_files(command: &Simple) -> bool {
    let Some((Arg::Literal(path), words)) = command.argv.split_first() else { return false };
    covers_command("files", strip_system_dir(path), words) || writes_files(command)
}

/// True if it is a command of git that could print what its objects hold, whatever became of the file.
pub(super) fn prints_objects(command: &Simple) -> bool {
    if command.inside.is_some() || command.program_name() != "git" {
        return false;
    }
    let all = command.argv.get(1..).unwrap_or_default();
    let words = without_leading_flags("git", all);
    let knows = |fact, word: &str| find_rows(fact, "git").any(|known| fits_word(known, word));
    let has = |is_so: &dyn Fn(&str) -> bool| words.iter().any(|word| word.text().is_none_or(is_so));
    let sub = words.first().and_then(Arg::text).unwrap_or_default();
    let printing = |row: &str| {
        let (subs, printing) = row.split_once(' ').unwrap_or_default();
        fits_word(subs, sub) && has(&|word| fits_word(printing, word))
    };
    let lists_commits = match sub {
        "stash" => words.get(1).and_then(Arg::text) == Some("list"),
        sub => matches!(sub, "log" | "reflog"),
    };
    let leading = &all[..all.len() - words.len()];
    let mut settings = leading.iter().zip(leading.iter().skip(1)).filter(|(flag, _)| flag.text() == Some("-c"));
    let sets_other = settings.any(|(_, setting)| setting.text().is_none_or(|setting| !knows("harmless", setting)))
        || leading.iter().any(|word| word.text().is_none_or(|word| word.starts_with("--config-env")));
    !covers_command("no-objects", "git", words)
        || find_rows("prints", "git").any(printing)
        || lists_commits && has(&|word| word.starts_with('-') && !knows("plain", word))
        || matches!(sub, "tag" | "branch" | "for-each-ref") && has(&|word| word.contains("raw"))
        || sets_other
}

/// True if it usually uses the network.
pub(super) fn uses_network(command: &Simple) -> bool {
    let Some((Arg::Literal(name), words)) = command.argv.split_first() else { return false };
    covers_command("network", name, words) || covers_command("network", name, without_leading_flags(name, words))
}

/// The effect of setting a variable: some name programs, or code that programs run.
fn of_variable(name: &str) -> Habit {
    const STEERING: [&str; 8] = ["PATH", "ENV", "BASH_ENV", "IFS", "SHELLOPTS", "PS4", "PROMPT_COMMAND", "CDPATH"];
    let is_lower = name.bytes().all(|byte| !byte.is_ascii_uppercase()) && !name.ends_with("_proxy");
    match name {
        name if STEERING.contains(&name) || name.starts_with("LD_") || name.starts_with("DYLD_") => Habit::Unknown,
        _ if is_lower => Habit::OnlyReads,
        _ => Habit::Reads,
    }
}

fn of_words(command: &Simple) -> Habit {
    let Some((Arg::Literal(path), words)) = command.argv.split_first() else { return Habit::Unknown };
    let name = strip_system_dir(path);
    if name.contains('/') || writes_files(command) {
        return Habit::Unknown;
    }
    if tells_of_itself(&command.argv) {
        return Habit::Reads;
    }
    if covers_command("only-reads", name, words) {
        Habit::OnlyReads
    } else if [words, without_leading_flags(name, words)].iter().any(|words| covers_command("reads", name, words))
    {
        Habit::Reads
    } else {
        Habit::Unknown
    }
}

fn strip_system_dir(path: &str) -> &str {
    SYSTEM.iter().find_map(|dir| path.strip_prefix(dir)).unwrap_or(path)
}

/// True for `--version` and `--help` of any program or subcommand.
fn tells_of_itself(argv: &[Arg]) -> bool {
    match argv {
        [_, Arg::Literal(flag)] => matches!(flag.as_str(), "--version" | "-V" | "-vV" | "--help"),
        [Arg::Literal(name), Arg::Literal(sub), Arg::Literal(flag)] => {
            has_row("helped", name) && !sub.starts_with('-') && flag == "--help"
        }
        _ => false,
    }
}

/// True if a word says that it writes.
fn writes_files(command: &Simple) -> bool {
    let name = command.program_name();
    let Some(writing) = find_rows("writes", name).next() else { return false };
    let says_so = |word: &str| fits_word(writing, word.split_once('=').map_or(word, |(flag, _)| flag));
    // The flags of these commands of git move and delete names, and `--output` writes a file.
    let names_refs = |word: &str| matches!(word, "branch" | "tag") || word.starts_with("--output");
    let words = || command.argv.iter().filter_map(Arg::text);
    (name != "git" || words().any(names_refs)) && words().skip(1).any(says_so)
}

/// The words of a command without the flags before its subcommand.
pub(super) fn strip_leading_flags(argv: &[Arg]) -> Vec<Arg> {
    let Some((program, words)) = argv.split_first() else { return Vec::new() };
    let name = program.text().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    [program].into_iter().chain(without_leading_flags(name, words)).cloned().collect()
}

fn without_leading_flags<'a>(name: &str, mut words: &'a [Arg]) -> &'a [Arg] {
    let Some(valued) = find_rows("valued", name).next() else { return words };
    while let Some((Arg::Literal(word), rest)) = words.split_first() {
        let skipped = match word {
            word if fits_word(valued, word) => 1,
            word if word.starts_with(['-', '+']) => 0,
            _ => break,
        };
        words = rest.get(skipped..).unwrap_or_default();
    }
    words
}

/// True if the table has this fact about a command: the words after the program fit the pattern of a row.
fn covers_command(fact: &str, name: &str, words: &[Arg]) -> bool {
    find_rows(fact, name).any(|pattern| fits_pattern(pattern, words))
}

fn fits_pattern(pattern: &str, words: &[Arg]) -> bool {
    let mut words = words.iter();
    for expected in pattern.split(' ') {
        match expected {
            "*" => return true,
            "-*" => return words.all(|word| word.text().is_some_and(|word| word.starts_with('-'))),
            expected if words.next().and_then(Arg::text).is_some_and(|word| fits_word(expected, word)) => {}
            _ => return false,
        }
    }
    words.next().is_none()
}
