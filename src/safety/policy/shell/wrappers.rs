//! Programs that run other programs: finds the inner command in their words, and whether they add effects. A flag that
//! is not in the table leaves that open, which counts as doubt.

use super::super::programs::{find_rows, has_row};
use super::{Arg, DEEPEST, ShellScript, Simple, WrappedCommand, read_at};

const OPEN_ENDED: &str = "it runs another program in a way of its own";

/// The command that a wrapper runs, if `argv` is a wrapper's.
pub(super) fn unwrap_command(argv: &[Arg], depth: usize) -> Option<WrappedCommand> {
    let path = argv.first()?.text()?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let wrapper = || find_rows("wraps", name).next();
    let is_open_ended =
        has_row("opaque", name) || name == "ld.so" || name.starts_with("ld-") && name.contains(".so");
    let is_shell = has_row("shell", name);
    let mut inside = if depth >= DEEPEST {
        let runs =
            matches!(name, "eval" | "trap" | "alias" | "find") || is_open_ended || is_shell || wrapper().is_some();
        runs.then(|| refuse_reading("commands in commands, too deep to follow"))
    } else if is_shell {
        unwrap_shell(argv, depth)
    } else if is_open_ended {
        Some(guess_commands(argv, OPEN_ENDED))
    } else {
        match name {
            "eval" => Some(unwrap_eval(argv, depth)),
            "trap" => unwrap_trap(argv, depth),
            "alias" => Some(unwrap_alias(argv, depth)),
            "find" => unwrap_find(argv, depth),
            _ => unwrap_rest(name, wrapper()?, argv, depth),
        }
    }?;
    // A program elsewhere with the same name could be anything.
    inside.is_transparent &= path == name;
    Some(inside)
}

fn refuse_reading(why: &'static str) -> WrappedCommand {
    WrappedCommand::of_line(ShellScript::opaque(why))
}

/// A command that could begin at any of the words, or be one of them: for the rules that deny.
fn guess_commands(argv: &[Arg], why: &'static str) -> WrappedCommand {
    const MOST: usize = 8;
    let mut script = ShellScript::opaque(why);
    for (at, word) in argv.iter().enumerate().skip(1).take(MOST) {
        let Some(word) = word.text() else { continue };
        if word.contains([' ', ';', '\n', '&', '|']) {
            script.commands.extend(read_at(word, DEEPEST).commands);
        } else if !word.starts_with('-') {
            script.commands.push(Simple { argv: argv[at..].to_vec(), ..Simple::default() });
        }
    }
    WrappedCommand::of_line(script)
}

/// The command that consists of these words.
fn make_script(argv: Vec<Arg>, depth: usize) -> ShellScript {
    let unresolved = argv
        .first()
        .is_some_and(|program| program.text().is_none())
        .then_some("what stands where a program is named is only known when it runs");
    ShellScript { commands: vec![Simple::new(argv, depth + 1)], unresolved, ..ShellScript::default() }
}

/// The rest of the words of a wrapper, which `row` of the table describes.
fn unwrap_rest(name: &str, row: &str, argv: &[Arg], depth: usize) -> Option<WrappedCommand> {
    let words: Vec<&str> = row.split(' ').map(|word| if word == "-" { "" } else { word }).collect();
    let &[flags, valued, long, operands, effect] = words.as_slice() else { return None };
    let not_plain = || Some(guess_commands(argv, "it is not plain which of these words is the program"));
    let mut at = 1;
    let mut replaced = None;
    while let Some(word) = argv.get(at) {
        let Some(word) = word.text() else { return not_plain() };
        at += 1;
        if word == "--" {
            break;
        }
        let is_flag = word.len() > 1 && word.starts_with('-');
        let is_assignment = word.find(['=', '/']).is_some_and(|at| at > 0 && word[at..].starts_with('='));
        let sets_variable = is_assignment && !is_flag && matches!(name, "env" | "sudo" | "doas");
        if !is_flag && !sets_variable {
            at -= 1;
            break;
        }
        if sets_variable || (name == "nice" && word[1..].bytes().all(|byte| byte.is_ascii_digit())) {
            continue;
        }
        if name == "command" && matches!(word, "-v" | "-V") {
            return None;
        }
        let Some((takes_next, value)) = read_flag(word, flags, valued, long) else { return not_plain() };
        let value = if takes_next { argv.get(at).and_then(Arg::text) } else { value };
        if name == "xargs" && ["-I", "-J", "--replace"].iter().any(|flag| word.starts_with(flag)) {
            let Some(mark) = value.filter(|mark| !mark.is_empty()) else { return not_plain() };
            replaced = Some(mark);
        }
        at += usize::from(takes_next);
    }
    at += operands.parse::<usize>().ok()?;
    let mut inner = argv.get(at..).filter(|inner| !inner.is_empty())?.to_vec();
    if name == "xargs" {
        match replaced {
            Some(mark) => inner.iter_mut().for_each(|arg| forget_mark(arg, mark)),
            None => inner.push(Arg::Unknown),
        }
    }
    Some(WrappedCommand { script: make_script(inner, depth), at, is_transparent: effect == "transparent" })
}

/// Returns whether a flag takes the next word, and the value in it; `None` if it is not among the flags.
fn read_flag<'w>(word: &'w str, flags: &str, valued: &str, long: &str) -> Option<(bool, Option<&'w str>)> {
    if word.starts_with("--") {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let takes_value = long.split('|').any(|known| known.strip_suffix('=') == Some(name));
        let is_known = takes_value || (value.is_none() && long.split('|').any(|known| known == name));
        return is_known.then_some((takes_value && value.is_none(), value));
    }
    for (at, letter) in word.char_indices().skip(1) {
        if valued.contains(letter) {
            let rest = &word[at + letter.len_utf8()..];
            return Some((rest.is_empty(), Some(rest)));
        }
        if !flags.contains(letter) {
            return None;
        }
    }
    Some((false, None))
}

/// Makes an argument unknown if the wrapper replaces `mark` in it.
fn forget_mark(arg: &mut Arg, mark: &str) {
    if arg.text().is_some_and(|text| text.contains(mark)) {
        *arg = Arg::Unknown;
    }
}

/// `sh -c LINE`; `sh FILE` is a program like others; without either the shell runs its input.
fn unwrap_shell(argv: &[Arg], depth: usize) -> Option<WrappedCommand> {
    const INPUT: &str = "a shell runs what it reads";
    let mut takes_line = false;
    for (at, word) in argv.iter().enumerate().skip(1) {
        let Some(word) = word.text() else { return Some(refuse_reading(INPUT)) };
        match word.strip_prefix(['-', '+']) {
            Some(letters) if !letters.is_empty() && letters.bytes().all(|byte| b"cefuvxl".contains(&byte)) => {
                takes_line |= letters.contains('c');
            }
            Some(_) => return Some(refuse_reading(INPUT)),
            None if takes_line => {
                let is_transparent = argv[1].text() == Some("-c") && at == 2;
                return Some(WrappedCommand {
                    is_transparent,
                    ..WrappedCommand::of_line(read_at(word, depth + 1))
                });
            }
            None => return None,
        }
    }
    Some(refuse_reading(INPUT))
}

fn unwrap_eval(argv: &[Arg], depth: usize) -> WrappedCommand {
    let words: Option<Vec<&str>> = argv[1..].iter().map(Arg::text).collect();
    let Some(words) = words else { return refuse_reading("`eval` runs what is only known when it runs") };
    WrappedCommand::of_line(read_at(&words.join(" "), depth + 1))
}

/// `trap LINE SIGNAL…`.
fn unwrap_trap(argv: &[Arg], depth: usize) -> Option<WrappedCommand> {
    match argv.get(1)? {
        Arg::Literal(line) if line.starts_with('-') || line.is_empty() => None,
        Arg::Literal(line) => Some(WrappedCommand::of_line(read_at(line, depth + 1))),
        _ => Some(refuse_reading("`trap` runs what is only known when it runs")),
    }
}

/// `alias NAME=LINE…`.
fn unwrap_alias(argv: &[Arg], depth: usize) -> WrappedCommand {
    let mut script = ShellScript::default();
    for word in argv.iter().skip(1) {
        let Some(word) = word.text() else {
            return refuse_reading("`alias` names what is only known when it runs");
        };
        if let Some((_, line)) = word.split_once('=') {
            script.absorb(read_at(line, depth + 1));
        }
    }
    WrappedCommand::of_line(script)
}

/// The commands of `find -exec`.
fn unwrap_find(argv: &[Arg], depth: usize) -> Option<WrappedCommand> {
    const RUN: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
    let mut script = ShellScript::default();
    let mut first = None;
    let mut at = 1;
    while at < argv.len() {
        at += 1;
        match argv[at - 1].text() {
            Some(word) if RUN.contains(&word) => {}
            Some(_) => continue,
            None => {
                script.unresolved = Some("an expansion may make `find` run something");
                continue;
            }
        }
        let end = argv[at..].iter().position(|word| matches!(word.text(), Some(";" | "+")));
        let end = end.map_or(argv.len(), |length| at + length);
        let mut words = argv[at..end].to_vec();
        for word in &mut words {
            forget_mark(word, "{}");
        }
        script.absorb(make_script(words, depth));
        first = first.or(Some(at));
        at = end;
    }
    let at = first.or(script.unresolved.is_some().then_some(usize::MAX))?;
    Some(WrappedCommand { script, at, is_transparent: false })
}
