//! The words of a command that could name paths, and the protected files among those that it changes. A pattern stands
//! for what it matches now, as it would to the shell.

use std::path::Path;

use crate::base::text::GlobPattern;
use crate::files::disk::Dir;

use super::habits::changes_files;
use super::programs::{fits_word, has_row};
use super::shell::{Arg, Simple};
use super::target::{PathTarget, Presence};

/// The longest path that a system opens, in bytes.
pub(super) const LONGEST_PATH: usize = 4096;
/// The most names that a pattern is followed to.
const MOST_NAMES: usize = 10_000;
const PATTERN: [char; 4] = ['*', '?', '[', '{'];

/// The words of a command, and of those in it, that could name paths.
pub(super) fn list_possible_words(command: &Simple) -> Vec<&str> {
    let words = |command| list_operands(command, command.argv.iter().skip(1).filter_map(Arg::text).collect());
    list_nested(command).flat_map(words).collect()
}

/// The protected files that a command, or one in it, changes.
pub(super) fn list_changed(command: &Simple, dir: &Path, find: &dyn Fn(&str) -> PathTarget) -> Vec<PathTarget> {
    // As it stands, a word may be a name of its own, or one in a protected directory that is not there yet.
    let find_all = |word: String| {
        let matched = if word.contains(PATTERN) { expand_pattern(&word, dir) } else { Vec::new() };
        matched.into_iter().chain([word]).map(|word| find(&word))
    };
    let changed = list_nested(command).flat_map(|command| {
        let words: Vec<&str> = command.argv.iter().skip(1).filter_map(read_text).collect();
        if command.program_name() == "find" {
            return if changes_found(command) { list_sought(&words, find) } else { Vec::new() };
        }
        let names_dir = |word: &&str| word.starts_with("-t") || word.starts_with("--target-directory");
        let operands = |words| list_operands(command, words).into_iter().map(str::to_owned).collect();
        match words.iter().rposition(|word| !word.starts_with('-')) {
            Some(last) if has_row("copies", command.program_name()) && !words.iter().any(names_dir) => {
                if command.argv.last().and_then(read_text).is_none() {
                    return Vec::new();
                }
                let names = words[..last].iter().filter_map(|word| word.rsplit('/').next());
                let inside = names.map(|name| format!("{}/{name}", words[last]));
                let is_work = find(words[last]).is_dir && find(words[last]).is_of_work();
                inside.filter(|_| is_work).chain([words[last].to_owned()]).collect()
            }
            _ if changes_files(command) => operands(words),
            _ => Vec::new(),
        }
    });
    changed.flat_map(find_all).filter(|target| target.is_protected).collect()
}

/// A command, and those in it.
fn list_nested(command: &Simple) -> impl Iterator<Item = &Simple> {
    std::iter::once(command).chain(command.inside.iter().flat_map(|inside| inside.script.all()))
}

fn read_text(word: &Arg) -> Option<&str> {
    match word {
        Arg::Pattern(text) => Some(text),
        word => word.text(),
    }
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

/// Where a `find` begins, what it looks for there by name, and the repositories that it goes through if it looks for
/// anything. What it passes over is not meant.
fn list_sought(words: &[&str], find: &dyn Fn(&str) -> PathTarget) -> Vec<String> {
    const NAMES: &str = "-name|-iname|-path|-ipath|-wholename";
    const UNMINDFUL: &str = "-delete|-depth|-d|-mindepth|-maxdepth|-type|-print*|-xdev|-mount|-follow|-L|-H|-P";
    let end = words.iter().position(|word| fits_word("-exec*|-ok*", word)).unwrap_or(words.len());
    let words = &words[..end];
    let first = words.iter().position(|word| !fits_word("-L|-H|-P", word)).unwrap_or(end);
    let is_test = |word: &&str| word.starts_with(['-', '(', '!']);
    let starts = words[first..].iter().take_while(|word| !is_test(word)).copied();
    let mut starts: Vec<&str> = starts.collect();
    let mut sought: Vec<String> = starts.iter().map(|start| (*start).to_owned()).collect();
    if starts.is_empty() {
        starts.push(".");
    }
    let is_named = |at: &usize| {
        fits_word(NAMES, words[*at]) && !(*at > 0 && matches!(words[*at - 1], "!" | "-not")) && *at + 1 < end
    };
    let is_shallow = words.contains(&"-maxdepth") && words.contains(&"f");
    let takes_all = !is_shallow && words.iter().all(|word| !is_test(word) || fits_word(UNMINDFUL, word));
    for start in starts {
        let named = (0..end).filter(is_named).filter(|_| !words.contains(&"-prune"));
        sought.extend(named.map(|at| match words[at] {
            "-name" | "-iname" => format!("{start}/{}", words[at + 1]),
            _ => words[at + 1].to_owned(),
        }));
        let repository = format!("{start}/.git");
        if takes_all && find(&repository).presence == Presence::Yes {
            sought.push(repository);
        }
    }
    sought
}

/// The names that a pattern matches in `dir`, as a shell would expand it.
fn expand_pattern(pattern: &str, dir: &Path) -> Vec<String> {
    let mut found = vec![String::new()];
    for (at, part) in pattern.split('/').enumerate() {
        let between = if at == 0 { "" } else { "/" };
        if !part.contains(PATTERN) {
            for path in &mut found {
                path.extend([between, part]);
            }
            continue;
        }
        let Ok(glob) = GlobPattern::word(part) else { return Vec::new() };
        // Only a pattern that says so matches a hidden name.
        let is_matched =
            |name: &String| glob.matches(name) && (!name.starts_with('.') || part.starts_with(['.', '{']));
        let entries = found.iter().flat_map(|path| {
            let within = dir.join(format!("{path}{between}"));
            let entries = Dir::open(&within).and_then(|dir| dir.entries()).unwrap_or_default();
            let names = entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned());
            names.filter(is_matched).map(move |name| format!("{path}{between}{name}"))
        });
        found = entries.take(MOST_NAMES).collect();
    }
    found
}
