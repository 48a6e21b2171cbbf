//! The words of a command that could name paths, and the protected files among those that it changes.

use crate::base::text::GlobPattern;

use super::expansion::{LONGEST_PATH, WordExpander};
use super::habits::changes_files;
use super::programs::{fits_word, has_row};
use super::shell::{Arg, Simple};
use super::target::{PathTarget, Presence};

/// The words of a command, and of those in it, that could name paths.
pub(super) fn list_possible_words(command: &Simple) -> Vec<&str> {
    let words = |command| list_operands(command, command.argv.iter().skip(1).filter_map(Arg::text).collect());
    list_nested(command).flat_map(words).collect()
}

/// The protected files that a command, or one in it, changes.
pub(super) fn list_changed(
    command: &Simple,
    expander: &WordExpander<'_>,
    find: &dyn Fn(&str) -> PathTarget,
) -> Vec<PathTarget> {
    let changed = list_nested(command).flat_map(|command| {
        let program = command.program_name();
        let (copies, finds) = (has_row("copies", program), program == "find" && changes_found(command));
        if !copies && !finds && !changes_files(command) {
            return Vec::new();
        }
        // An unknown word keeps its place.
        let expand = |word: &Arg| match word {
            Arg::Pattern(text) => expander.expand(text),
            word => vec![word.text().unwrap_or_default().to_owned()],
        };
        let words: Vec<String> = command.argv.iter().skip(1).flat_map(expand).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if program == "find" {
            return list_sought(&words, find).iter().flat_map(|word| expander.expand(word)).collect();
        }
        let named_dir = if has_row("takes-dir", program) { find_named_dir(&words) } else { None };
        if !copies {
            let operands = list_operands(command, words);
            return operands.into_iter().chain(named_dir).map(str::to_owned).collect();
        }
        let is_path = |word: &&str| !word.starts_with('-');
        let last = words.iter().copied().rfind(is_path);
        let Some(to) = named_dir.or(last).filter(|to| !to.is_empty()) else { return Vec::new() };
        let names = words.iter().copied().filter(is_path).filter(|word| *word != to);
        let inside = names.filter_map(|word| word.rsplit('/').next()).map(|name| format!("{to}/{name}"));
        let is_work = find(to).is_dir && find(to).is_of_work();
        inside.filter(|_| is_work).chain([to.to_owned()]).collect()
    });
    changed.map(|word| find(&word)).filter(|target| target.is_protected).collect()
}

/// The directory that a flag names as the place of what is made: `-t DIR`, `-tDIR`, `-at DIR`, `--target-directory=DIR`.
fn find_named_dir<'w>(words: &[&'w str]) -> Option<&'w str> {
    // Their value is the rest of the word.
    const VALUED: [char; 4] = ['S', 'g', 'm', 'o'];
    let flags = words.iter().enumerate().take_while(|(_, word)| **word != "--");
    let mut values = flags.filter_map(|(at, word)| {
        let next = words.get(at + 1).copied();
        if let Some(long) = word.strip_prefix("--") {
            let (flag, value) = long.split_once('=').map_or((long, next), |(flag, value)| (flag, Some(value)));
            return value.filter(|_| "target-directory".starts_with(flag));
        }
        let (before, value) = word.strip_prefix('-')?.split_once('t')?;
        let value = if value.is_empty() { next } else { Some(value) };
        value.filter(|_| !before.contains(VALUED))
    });
    values.next()
}

/// A command, and those in it.
fn list_nested(command: &Simple) -> impl Iterator<Item = &Simple> {
    std::iter::once(command).chain(command.inside.iter().flat_map(|inside| inside.script.all()))
}

/// The words that could name paths: without those that are only printed or compared, and without a pattern.
fn list_operands<'w>(command: &Simple, words: Vec<&'w str>) -> Vec<&'w str> {
    let name = command.program_name();
    if has_row("names-none", name) {
        return Vec::new();
    }
    let is_flag = |word: &str| word.len() > 1 && word.starts_with('-');
    // A flag may give the pattern; then the first word is a path.
    let gives_pattern = |word: &&str| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.is_some_and(|letters| letters.contains(['e', 'f']))
            || ["--reg", "--fi", "--exp", "--from", "--type"].iter().any(|begin| word.starts_with(begin))
    };
    let pattern = has_row("pattern", name) && !words.iter().any(gives_pattern);
    let pattern = pattern.then(|| words.iter().position(|word| !is_flag(word))).flatten();
    let words = words.into_iter().enumerate().filter(|(at, _)| Some(*at) != pattern);
    let words = words.filter_map(|(_, word)| if is_flag(word) { find_value(word) } else { Some(word) });
    words.flat_map(split_flag).filter(|word| word.len() <= LONGEST_PATH).collect()
}

/// The value in a flag: after a `=`, or from where a path begins.
fn find_value(word: &str) -> Option<&str> {
    match word.split_once('=') {
        Some((_, value)) => Some(value),
        None => word.find(['/', '~']).map(|at| &word[at..]).or_else(|| word.find("..").map(|at| &word[at..])),
    }
}

/// A word, and the part of it after a `=`.
fn split_flag(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    [word].into_iter().chain(value).filter(|word| !word.is_empty())
}

/// True if a `find` deletes or changes what it finds.
fn changes_found(command: &Simple) -> bool {
    let deletes = command.argv.iter().any(|word| word.text() == Some("-delete"));
    let changes = |inner: &Simple| changes_files(inner) && !has_row("copies", inner.program_name());
    deletes || list_nested(command).skip(1).any(changes)
}

/// Where a `find` begins, what it looks for there by name, and the repositories that it goes through, unless a test
/// leaves out all that is in them. What it passes over is not meant.
fn list_sought(words: &[&str], find: &dyn Fn(&str) -> PathTarget) -> Vec<String> {
    let is_action = |word: &&str| fits_word("-exec*|-ok*|-delete", word);
    let end = words.iter().position(is_action).unwrap_or(words.len());
    let (words, actions) = words.split_at(end);
    // A program that goes into directories takes with a repository what a test leaves out of it.
    let goes_in = !words.windows(2).any(|pair| pair == ["-type", "f"])
        && actions.iter().any(|word| word.starts_with('-') && !is_action(word) && word.contains(['r', 'R']));
    let first = words.iter().position(|word| !fits_word("-L|-H|-P", word)).unwrap_or(end);
    let starts = words[first..].iter().take_while(|word| !word.starts_with(['-', '(', '!'])).copied();
    let mut starts: Vec<&str> = starts.collect();
    let mut sought: Vec<String> = starts.iter().map(|start| (*start).to_owned()).collect();
    if starts.is_empty() {
        starts.push(".");
    }
    let is_or = |word: &&str| fits_word("-o|-or|,", word);
    let pruned = words.iter().rposition(|word| *word == "-prune");
    let acting = pruned.and_then(|at| Some(at + words[at..].iter().position(is_or)?)).unwrap_or(0);
    let tests = list_name_tests(words);
    let is_flat = words.windows(2).any(|pair| pair[0] == "-maxdepth" && matches!(pair[1], "0" | "1"));
    let is_grouped = words.contains(&"(");
    for start in starts {
        let named = tests.iter().filter(|test| test.at >= acting && !test.is_negated);
        sought.extend(named.filter(|test| !test.flag.ends_with("regex")).map(|test| {
            if test.is_of_name() { format!("{start}/{}", test.pattern) } else { test.pattern.to_owned() }
        }));
        let passes = |test: &NameTest<'_>| {
            let stays_out = is_flat || pruned.is_some();
            if !test.is_negated {
                return test.at < acting && test.fits_repository(start);
            }
            let is_held = !test.is_of_name() && test.fits_inside(start);
            is_held && (!goes_in || test.fits_repository(start)) || stays_out && test.fits_repository(start)
        };
        let restricts = |test: &&NameTest<'_>| test.at >= acting && !test.is_negated;
        let mut at = acting;
        let takes_some = words[acting..].split(is_or).any(|alternative| {
            let range = at..at + alternative.len();
            at = range.end + 1;
            let mut own = tests.iter().filter(restricts).filter(|test| range.contains(&test.at)).peekable();
            let is_free = own.peek().is_none();
            // In a group, the others may restrict it.
            !(is_free && is_grouped && tests.iter().any(|test| restricts(&test)))
                && own.all(|test| test.fits_repository(start) || test.fits_inside(start))
        });
        let repository = format!("{start}/.git");
        if takes_some
            && !(is_flat && words.contains(&"f"))
            && !tests.iter().any(passes)
            && find(&repository).presence == Presence::Yes
        {
            sought.push(repository);
        }
    }
    sought
}

/// A test of a `find` for names or paths.
struct NameTest<'w> {
    at: usize,
    flag: &'w str,
    pattern: &'w str,
    is_negated: bool,
}

/// The tests for names among the words of a `find`.
fn list_name_tests<'w>(words: &[&'w str]) -> Vec<NameTest<'w>> {
    const NAMES: &str = "-name|-iname|-path|-ipath|-wholename|-iwholename|-regex|-iregex";
    let follows_not = |at: usize| at > 0 && matches!(words[at - 1], "!" | "-not");
    let is_negated = |at: usize| {
        let group = words[..at].iter().rposition(|word| *word == "(");
        follows_not(at) || group.is_some_and(|open| follows_not(open) && !words[open..at].contains(&")"))
    };
    let tests = words.windows(2).enumerate().filter(|(_, pair)| fits_word(NAMES, pair[0]));
    tests.map(|(at, pair)| NameTest { at, flag: pair[0], pattern: pair[1], is_negated: is_negated(at) }).collect()
}

impl NameTest<'_> {
    fn is_of_name(&self) -> bool {
        fits_word("-name|-iname", self.flag)
    }

    /// True if it fits the repository at `start` itself.
    fn fits_repository(&self, start: &str) -> bool {
        self.fits_any(start, &[".git"])
    }

    /// True if it fits something that each repository holds.
    fn fits_inside(&self, start: &str) -> bool {
        const HELD: [&str; 7] =
            [".git/HEAD", ".git/config", ".git/hooks", ".git/index", ".git/logs", ".git/objects", ".git/refs"];
        self.fits_any(start, &HELD)
    }

    fn fits_any(&self, start: &str, paths: &[&str]) -> bool {
        let mut pattern = self.pattern.to_lowercase();
        if self.flag.ends_with("regex") {
            // Near enough: a group or a choice fits nothing.
            let signs = [("\\.", "\0"), (".*", "*"), (".+", "*"), (".", "?"), ("\0", ".")];
            pattern = signs.iter().fold(pattern, |pattern, (sign, glob)| pattern.replace(sign, glob));
        }
        let Ok(glob) = GlobPattern::word(&pattern) else { return !self.is_negated };
        paths.iter().any(|path| match path.rsplit('/').next() {
            Some(name) if self.is_of_name() => glob.matches(&name.to_lowercase()),
            _ => glob.matches(&format!("{start}/{path}").to_lowercase()),
        })
    }
}
