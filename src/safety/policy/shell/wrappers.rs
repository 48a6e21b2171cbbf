//! Programs that run other programs: finds the inner command in their words, and whether they add effects. A flag that
//! is not in the table leaves that open, which counts as doubt.

use super::{Arg, DEEPEST, ShellScript, Simple, WrappedCommand, read_at};

/// A program that runs the rest of its words.
struct Wrapper {
    name: &'static str,
    /// Single letters that take no value.
    flags: &'static str,
    /// Single letters that take one.
    valued: &'static str,
    /// Long flags, separated by spaces; those that end with `=` take a value.
    long: &'static str,
    /// Words between the flags and the program.
    operands: usize,
    /// True if it changes neither the user who runs the program nor the program itself.
    is_transparent: bool,
}

const fn define_wrapper(
    name: &'static str,
    (flags, valued, long): (&'static str, &'static str, &'static str),
    operands: usize,
    is_transparent: bool,
) -> Wrapper {
    Wrapper { name, flags, valued, long, operands, is_transparent }
}

const WRAPPERS: &[Wrapper] = &[
    define_wrapper("nohup", ("", "", ""), 0, true),
    define_wrapper("nice", ("", "n", "--adjustment="), 0, true),
    define_wrapper("ionice", ("t", "cn", "--class= --classdata= --ignore"), 0, true),
    define_wrapper("time", ("pv", "f", "--portability --verbose --format="), 0, true),
    define_wrapper(
        "timeout",
        ("v", "ks", "--foreground --preserve-status --verbose --kill-after= --signal="),
        1,
        true,
    ),
    define_wrapper("stdbuf", ("", "ioe", "--input= --output= --error="), 0, true),
    define_wrapper("command", ("p", "", ""), 0, true),
    define_wrapper("builtin", ("", "", ""), 0, true),
    define_wrapper("exec", ("cl", "a", ""), 0, true),
    define_wrapper("setsid", ("cfw", "", "--ctty --fork --wait"), 0, false),
    define_wrapper("env", ("i0v", "uC", "--ignore-environment --null --debug --unset= --chdir="), 0, false),
    define_wrapper(
        "sudo",
        ("AbBEHkKnNPSi", "CDghpRrTtUu", "--preserve-env --user= --group= --non-interactive --login"),
        0,
        false,
    ),
    define_wrapper("doas", ("nLs", "aCu", ""), 0, false),
    define_wrapper(
        "xargs",
        (
            "0oprtx",
            "adEIJLnPRs",
            "--null --no-run-if-empty --verbose --arg-file= --delimiter= --max-args= --max-lines= --max-procs= \
             --replace= --max-chars=",
        ),
        0,
        true,
    ),
];

const SHELLS: [&str; 15] = [
    "sh", "bash", "rbash", "dash", "ash", "yash", "zsh", "ksh", "rksh", "mksh", "oksh", "posh", "fish", "csh",
    "tcsh",
];
/// Programs that run others in their own ways: it is unknown which of their words is the program.
const OPAQUE: [&str; 31] = [
    "parallel",
    "watch",
    "su",
    "runuser",
    "pkexec",
    "script",
    "busybox",
    "toybox",
    "unshare",
    "nsenter",
    "chroot",
    "strace",
    "ltrace",
    "gdb",
    "perf",
    "flock",
    "systemd-run",
    "fakeroot",
    "proot",
    "firejail",
    "bwrap",
    "entr",
    "taskset",
    "prlimit",
    "chrt",
    "setarch",
    "linux32",
    "linux64",
    "setpriv",
    "numactl",
    "valgrind",
];
const OPEN_ENDED: &str = "it runs another program in a way of its own";

/// The command that a wrapper runs, if `argv` is a wrapper's.
pub(super) fn unwrap_command(argv: &[Arg], depth: usize) -> Option<WrappedCommand> {
    let path = argv.first()?.text()?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let wrapper = || WRAPPERS.iter().find(|wrapper| wrapper.name == name);
    let is_open_ended = OPAQUE.contains(&name) || is_loader(name);
    let mut inside = if depth >= DEEPEST {
        let runs = matches!(name, "eval" | "trap" | "alias" | "find")
            || is_open_ended
            || SHELLS.contains(&name)
            || wrapper().is_some();
        runs.then(|| refuse_reading("commands in commands, too deep to follow"))
    } else if SHELLS.contains(&name) {
        unwrap_shell(argv, depth)
    } else if is_open_ended {
        Some(guess_commands(argv, OPEN_ENDED))
    } else {
        match name {
            "eval" => Some(unwrap_eval(argv, depth)),
            "trap" => unwrap_trap(argv, depth),
            "alias" => Some(unwrap_alias(argv, depth)),
            "find" => unwrap_find(argv, depth),
            _ => wrapper().and_then(|wrapper| wrapper.unwrap_argv(argv, depth)),
        }
    }?;
    // A program elsewhere with the same name could be anything.
    inside.is_transparent &= path == name;
    Some(inside)
}

/// The loader of the system, which runs the program that it is given.
fn is_loader(name: &str) -> bool {
    name == "ld.so" || (name.starts_with("ld-") && name.contains(".so"))
}

fn refuse_reading(why: &'static str) -> WrappedCommand {
    WrappedCommand { script: ShellScript::opaque(why), at: usize::MAX, is_transparent: false }
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
    WrappedCommand { script, at: usize::MAX, is_transparent: false }
}

/// The command that consists of these words.
fn make_script(argv: Vec<Arg>, depth: usize) -> ShellScript {
    let unresolved = (argv.first() == Some(&Arg::Unknown))
        .then_some("what stands where a program is named is only known when it runs");
    ShellScript { commands: vec![Simple::new(argv, depth + 1)], unresolved, ..ShellScript::default() }
}

impl Wrapper {
    fn unwrap_argv(&self, argv: &[Arg], depth: usize) -> Option<WrappedCommand> {
        const NOT_PLAIN: &str = "it is not plain which of these words is the program";
        let mut at = 1;
        let mut replaced = None;
        while let Some(word) = argv.get(at) {
            let Some(word) = word.text() else { return Some(guess_commands(argv, NOT_PLAIN)) };
            at += 1;
            if word == "--" {
                break;
            }
            let is_flag = word.len() > 1 && word.starts_with('-');
            let sets_variable = matches!(self.name, "env" | "sudo" | "doas") && is_assignment(word);
            if !is_flag && !sets_variable {
                at -= 1;
                break;
            }
            if sets_variable || (self.name == "nice" && word[1..].bytes().all(|byte| byte.is_ascii_digit())) {
                continue;
            }
            if self.name == "command" && matches!(word, "-v" | "-V") {
                return None;
            }
            let Some((takes_next, value)) = self.flag(word) else { return Some(guess_commands(argv, NOT_PLAIN)) };
            let value = if takes_next { argv.get(at).and_then(Arg::text) } else { value };
            if self.name == "xargs"
                && (word.starts_with("-I") || word.starts_with("-J") || word.starts_with("--replace"))
            {
                let Some(mark) = value.filter(|mark| !mark.is_empty()) else {
                    return Some(guess_commands(argv, NOT_PLAIN));
                };
                replaced = Some(mark.to_owned());
            }
            at += usize::from(takes_next);
        }
        at += self.operands;
        let mut inner = argv.get(at..).filter(|inner| !inner.is_empty())?.to_vec();
        if self.name == "xargs" {
            match &replaced {
                Some(mark) => inner.iter_mut().for_each(|arg| forget_mark(arg, mark)),
                None => inner.push(Arg::Unknown),
            }
        }
        Some(WrappedCommand { script: make_script(inner, depth), at, is_transparent: self.is_transparent })
    }

    /// Returns whether the flag takes the next word, and the value in it; `None` for unknown flags.
    fn flag<'w>(&self, word: &'w str) -> Option<(bool, Option<&'w str>)> {
        if word.starts_with("--") {
            return match word.split_once('=') {
                Some((name, value)) => {
                    let known = self.long.split(' ').any(|known| known.strip_suffix('=') == Some(name));
                    known.then_some((false, Some(value)))
                }
                None if self.long.split(' ').any(|known| known.strip_suffix('=') == Some(word)) => {
                    Some((true, None))
                }
                None => self.long.split(' ').any(|known| known == word).then_some((false, None)),
            };
        }
        for (at, letter) in word.char_indices().skip(1) {
            if self.valued.contains(letter) {
                let rest = &word[at + letter.len_utf8()..];
                return Some((rest.is_empty(), Some(rest)));
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some((false, None))
    }
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
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
            Some("c") => takes_line = true,
            Some(letters) if !letters.is_empty() && letters.bytes().all(|byte| b"cefuvxl".contains(&byte)) => {
                takes_line |= letters.contains('c');
            }
            Some(_) => return Some(refuse_reading(INPUT)),
            None if takes_line => {
                let is_transparent = argv[1].text() == Some("-c") && at == 2;
                return Some(WrappedCommand { script: read_at(word, depth + 1), at: usize::MAX, is_transparent });
            }
            None => return None,
        }
    }
    Some(refuse_reading(INPUT))
}

fn unwrap_eval(argv: &[Arg], depth: usize) -> WrappedCommand {
    let words: Option<Vec<&str>> = argv[1..].iter().map(Arg::text).collect();
    match words {
        Some(words) => {
            WrappedCommand { script: read_at(&words.join(" "), depth + 1), at: usize::MAX, is_transparent: false }
        }
        None => refuse_reading("`eval` runs what is only known when it runs"),
    }
}

/// `trap LINE SIGNAL…`.
fn unwrap_trap(argv: &[Arg], depth: usize) -> Option<WrappedCommand> {
    match argv.get(1)? {
        Arg::Literal(line) if line.starts_with('-') || line.is_empty() => None,
        Arg::Literal(line) => {
            Some(WrappedCommand { script: read_at(line, depth + 1), at: usize::MAX, is_transparent: false })
        }
        Arg::Unknown => Some(refuse_reading("`trap` runs what is only known when it runs")),
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
            let inner = read_at(line, depth + 1);
            script.unresolved = script.unresolved.or(inner.unresolved);
            script.commands.extend(inner.commands);
            script.files.extend(inner.files);
        }
    }
    WrappedCommand { script, at: usize::MAX, is_transparent: false }
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
            None => return Some(refuse_reading("an expansion may make `find` run something")),
        }
        let end = argv[at..].iter().position(|word| matches!(word.text(), Some(";" | "+")));
        let end = end.map_or(argv.len(), |length| at + length);
        let mut words = argv[at..end].to_vec();
        for word in &mut words {
            forget_mark(word, "{}");
        }
        let inner = make_script(words, depth);
        script.unresolved = script.unresolved.or(inner.unresolved);
        script.commands.extend(inner.commands);
        first = first.or(Some(at));
        at = end;
    }
    first.map(|at| WrappedCommand { script, at, is_transparent: false })
}
