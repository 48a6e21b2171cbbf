//! Proves that a command line only reads, so that it may run without asking.
//!
//! This is a proof, not a guess: the words must be ones that every shell takes literally, joined by `|`, `&&`,
//! `||` and `;` at most, with no redirection of output to a file; each program and its flags must be in the table,
//! and the program must be in a directory outside the workspace; each path must resolve inside the workspace.
//! Anything not understood is not proven.

use std::path::{Component, Path, PathBuf};

use crate::workspace::Workspace;

use super::programs::Operands::{
    Files, Format, LinesThenPaths, None as Nothing, OnePath, Paths, PathsThenTests, PatternThenPaths, Words,
};
use super::programs::{BUILT_IN, FIND_TESTS, PROGRAMS, Program};
use super::shell::{self, Script, Simple, is_plain};

/// A command line and where it would run.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    pub command: &'a str,
    /// Absolute, links followed.
    pub dir: &'a Path,
    /// The whole environment of the command.
    pub env: &'a [(String, String)],
}

/// Facts that are proven about a command line.
pub(super) struct Proof {
    /// For each simple command, whether it only reads, and only inside the workspace.
    pub reads: Vec<bool>,
    /// Where all but a leading `cd` run.
    pub dir: PathBuf,
    /// A leading `cd` was followed.
    pub enters: bool,
}

/// Whether running this provably only reads, and only inside the workspace. Looks at the file system to resolve
/// links and to find programs, and changes nothing.
#[must_use]
pub fn only_reads(invocation: Invocation<'_>, workspace: &Workspace) -> bool {
    let script = shell::read(invocation.command);
    script.files.is_empty() && prove(&script, invocation, workspace).reads.iter().all(|reads| *reads)
}

/// Proves what it can of the commands of a parsed line.
pub(super) fn prove(script: &Script, invocation: Invocation<'_>, workspace: &Workspace) -> Proof {
    let place = |dir| Place { dir, search_path: variable(invocation.env, "PATH"), workspace };
    let nothing = || Proof {
        reads: vec![false; script.commands.len().max(1)],
        dir: invocation.dir.to_path_buf(),
        enters: false,
    };
    let commands = script.commands.as_slice();
    if !invocation.dir.starts_with(workspace.root())
        || is_steered(invocation.env, workspace)
        || !script.is_list
        || script.doubt().is_some()
        || !is_read_alike(invocation.command)
        || commands.is_empty()
    {
        return nothing();
    }
    let entered = Some(commands).filter(|_| script.enters_first).and_then(|commands| commands.first());
    let entered = entered.and_then(|cd| place(invocation.dir).entered(cd, invocation.env));
    let dir = entered.as_deref().unwrap_or(invocation.dir);
    let rest = &commands[usize::from(entered.is_some())..];
    if rest.iter().any(changes_the_shell) {
        return nothing();
    }
    let here = place(dir);
    let reads = rest.iter().map(|command| {
        let words: Option<Vec<String>> = command.argv.iter().map(|arg| arg.text().map(str::to_owned)).collect();
        !command.assigns && words.is_some_and(|words| reads_only(&words, &here))
    });
    let reads = entered.iter().map(|_| true).chain(reads).collect();
    Proof { reads, dir: dir.to_path_buf(), enters: entered.is_some() }
}

/// Whether every shell would only split this line into words.
fn is_read_alike(line: &str) -> bool {
    let mut chars = line.trim_matches([' ', '\t', '\n']).chars();
    while let Some(c) = chars.next() {
        let is_fine = match c {
            '\'' => chars.find(|c| *c == '\'' || (c.is_control() && *c != '\t')) == Some('\''),
            '"' => chars.find(|c| "\"$`\\!".contains(*c) || (c.is_control() && *c != '\t')) == Some('"'),
            ' ' | '\t' | '|' | '&' | ';' | '<' | '>' => true,
            c => is_plain(c),
        };
        if !is_fine {
            return false;
        }
    }
    true
}

/// Whether the command may change the meaning of the rest of the line.
fn changes_the_shell(command: &Simple) -> bool {
    const CHANGING: [&str; 27] = [
        "cd", "pushd", "popd", ".", "source", "export", "set", "unset", "alias", "unalias", "eval", "exec",
        "shopt", "declare", "typeset", "local", "readonly", "hash", "enable", "trap", "umask", "ulimit", "read",
        "builtin", "command", "getopts", "setopt",
    ];
    command.program().is_none_or(|name| CHANGING.contains(&name))
}

/// Whether a variable makes a known program load something from a relative path, or from the workspace, where this
/// session could have written it.
fn is_steered(env: &[(String, String)], workspace: &Workspace) -> bool {
    const STEERING: [&str; 6] = [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "DYLD_LIBRARY_PATH",
        "RIPGREP_CONFIG_PATH",
    ];
    let is_doubtful = |path: &str| !path.starts_with('/') || workspace.resolve_path(Path::new(path)).inside;
    env.iter().any(|(name, value)| {
        let steers = STEERING.contains(&name.as_str()) && !value.is_empty();
        name == "BASH_ENV"
            || name.starts_with("BASH_FUNC_")
            || (steers && value.split([':', ' ']).any(is_doubtful))
    })
}

fn variable<'a>(env: &'a [(String, String)], name: &str) -> &'a str {
    env.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
}

struct Place<'a> {
    dir: &'a Path,
    search_path: &'a str,
    workspace: &'a Workspace,
}

fn reads_only(words: &[String], place: &Place<'_>) -> bool {
    let Some((name, rest)) = words.split_first() else { return false };
    let Some(program) = PROGRAMS.iter().find(|program| program.name == name) else { return false };
    let is_there = BUILT_IN.contains(&program.name) || place.finds_outside(program.name);
    is_there && program.accepts(rest, place)
}

impl Program {
    fn accepts(&self, words: &[String], place: &Place<'_>) -> bool {
        match self.operands {
            PathsThenTests => accepts_find(words, place),
            // No argument of `echo` is a dangerous flag.
            Words if self.name == "echo" => true,
            _ => self.operands_of(words).is_some_and(|operands| self.accepts_operands(&operands, place)),
        }
    }

    fn accepts_operands(&self, operands: &Given<'_>, place: &Place<'_>) -> bool {
        let words = operands.words.as_slice();
        let all_inside = |paths: &[&str]| paths.iter().all(|path| place.is_inside(path));
        match self.operands {
            Paths => all_inside(words),
            OnePath => words.len() <= 1 && all_inside(words),
            Files => all_inside(words) && !words.iter().any(|path| place.dir.join(path).is_dir()),
            PatternThenPaths if operands.has_pattern => all_inside(words),
            PatternThenPaths => words.split_first().is_some_and(|(_, paths)| all_inside(paths)),
            LinesThenPaths => words.split_first().is_some_and(|(script, paths)| {
                operands.flags.contains('n') && only_prints_lines(script) && all_inside(paths)
            }),
            Words => true,
            Format => words.iter().all(|word| word.starts_with('+')),
            Nothing => words.is_empty(),
            PathsThenTests => false,
        }
    }

    /// The operands without the flags; `None` when a flag is not known to be harmless.
    fn operands_of<'a>(&self, words: &'a [String]) -> Option<Given<'a>> {
        let mut given = Given::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if word == "--" {
                given.words.extend(words);
                break;
            } else if word.starts_with("--") {
                given.has_pattern |= word == "--files" || word.starts_with("--regexp=");
                if !self.knows_long(word) {
                    return None;
                }
            } else if word.len() > 1 && word.starts_with('-') {
                self.take_letters(&word[1..], &mut words, &mut given)?;
            } else {
                given.words.push(word);
            }
        }
        Some(given)
    }

    fn knows_long(&self, word: &str) -> bool {
        match word.split_once('=') {
            Some((name, _)) => self.long.split(' ').any(|known| known.strip_suffix('=') == Some(name)),
            None => self.long.split(' ').any(|known| known == word),
        }
    }

    fn take_letters<'a>(
        &self,
        letters: &'a str,
        words: &mut impl Iterator<Item = &'a str>,
        given: &mut Given<'a>,
    ) -> Option<()> {
        // `head -5`, `grep -3`
        let is_number = letters.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && matches!(self.name, "head" | "tail" | "grep" | "diff") {
            return Some(());
        }
        for (at, letter) in letters.char_indices() {
            if self.valued.contains(letter) {
                given.has_pattern |= letter == 'e';
                let rest = &letters[at + letter.len_utf8()..];
                let value = if rest.is_empty() { words.next()? } else { rest };
                // Where the value may be missing, the pattern would be taken for it, and a path for the pattern.
                let is_count = "ABCm".contains(letter) && self.operands == PatternThenPaths;
                return (!is_count || value.bytes().all(|byte| byte.is_ascii_digit())).then_some(());
            }
            if !self.flags.contains(letter) {
                return None;
            }
            given.flags.push(letter);
        }
        Some(())
    }
}

/// The operands of a command.
#[derive(Default)]
struct Given<'a> {
    words: Vec<&'a str>,
    /// Letters of the flags.
    flags: String,
    /// A flag gives the pattern, or makes it unnecessary.
    has_pattern: bool,
}

/// `5p`, `1,20p`, `$p`: the only scripts that are distinguished from those that write or run.
fn only_prints_lines(script: &str) -> bool {
    let address = |text: &str| text == "$" || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    script.strip_suffix('p').is_some_and(|range| match range.split_once(',') {
        Some((first, last)) => address(first) && address(last),
        None => address(range),
    })
}

fn accepts_find(words: &[String], place: &Place<'_>) -> bool {
    let tests = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
    let (paths, mut tests) = words.split_at(tests);
    while let Some((test, rest)) = tests.split_first() {
        let takes_value = FIND_TESTS.split(' ').any(|known| known.strip_suffix('=') == Some(test));
        tests = match rest.split_first() {
            Some((_, rest)) if takes_value => rest,
            _ if !test.ends_with('=') && FIND_TESTS.split(' ').any(|known| known == test) => rest,
            _ => return false,
        };
    }
    paths.iter().all(|path| place.is_inside(path))
}

impl Place<'_> {
    /// The target of `cd DIR`, if it is certain and inside the workspace.
    fn entered(&self, cd: &Simple, env: &[(String, String)]) -> Option<PathBuf> {
        let [_, dir] = cd.argv.as_slice() else { return None };
        let dir = dir.text().filter(|dir| !dir.is_empty() && !dir.starts_with('-') && !cd.assigns)?;
        let is_searched = !variable(env, "CDPATH").is_empty() && !dir.starts_with(['/', '.']);
        let target = self.workspace.resolve_path(&self.dir.join(dir));
        (!is_searched && target.inside && target.path.is_dir()).then_some(target.path)
    }

    /// Whether a path in the command lies in the workspace, with links resolved. `-` is the input.
    fn is_inside(&self, path: &str) -> bool {
        path == "-" || self.workspace.resolve_path(&self.dir.join(path)).inside
    }

    /// Whether the shell would find the program outside the workspace, where this session cannot write without
    /// asking.
    fn finds_outside(&self, name: &str) -> bool {
        for dir in self.search_path.split(':') {
            let dir = Path::new(dir);
            if !matches!(dir.components().next(), Some(Component::RootDir)) {
                return false;
            }
            let program = dir.join(name);
            if program.is_file() {
                let target = self.workspace.resolve_path(&program);
                return !target.inside && !dir.starts_with(self.workspace.root());
            }
        }
        false
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    struct Home {
        dir: tempfile::TempDir,
        workspace: Workspace,
    }

    /// A workspace with a file, a directory, and links that lead out of it.
    fn home() -> Home {
        let dir = tempfile::tempdir().expect("a directory can be made");
        std::fs::create_dir(dir.path().join("src")).expect("a directory can be made");
        std::fs::write(dir.path().join("src/main.rs"), "").expect("a file can be written");
        std::os::unix::fs::symlink("/etc", dir.path().join("link")).expect("a link can be made");
        let workspace = Workspace::open(dir.path()).expect("it is a directory");
        Home { dir, workspace }
    }

    /// Programs whose presence does not depend on the machine: an empty file is enough to be found.
    fn programs() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory can be made");
        for program in PROGRAMS {
            std::fs::write(dir.path().join(program.name), "").expect("a file can be written");
        }
        dir
    }

    /// The judgement over each line of a table.
    fn judged<'a>(table: impl Iterator<Item = &'a str>) -> Vec<(&'a str, bool)> {
        let (home, programs) = (home(), programs());
        let env = [("PATH".to_owned(), programs.path().to_string_lossy().into_owned())];
        let judge = |line| {
            let invocation = Invocation { command: line, dir: home.workspace.root(), env: &env };
            (line, only_reads(invocation, &home.workspace))
        };
        table.map(judge).collect()
    }

    #[test]
    fn commands_that_only_read() {
        for (line, proven) in judged(READING.lines()) {
            assert!(proven, "{line}");
        }
    }

    #[test]
    fn commands_that_are_not_proven() {
        let several = ["", " ", "ls\nrm x", "ls 'a\nb'"];
        for (line, proven) in judged(NOT_PROVEN.lines().filter(|line| !line.starts_with("# ")).chain(several)) {
            assert!(!proven, "{line}");
        }
    }

    #[test]
    fn the_place_and_the_environment_count() {
        let (home, programs) = (home(), programs());
        let path = programs.path().to_string_lossy().into_owned();
        let check = |dir: &Path, env: &[(&str, &str)]| {
            let env: Vec<(String, String)> = env.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            only_reads(Invocation { command: "ls ..", dir, env: &env }, &home.workspace)
        };
        let (root, src) = (home.workspace.root().to_path_buf(), home.workspace.root().join("src"));
        assert!(!check(&root, &[("PATH", &path)]));
        assert!(check(&src, &[("PATH", &path)]), "paths are those of the directory it runs in");
        assert!(!check(Path::new("/"), &[("PATH", &path)]));
        assert!(!check(&src, &[]), "the program must be found");
        assert!(!check(&src, &[("PATH", &format!("node_modules/.bin:{path}"))]));
        assert!(!check(&src, &[("PATH", &format!(":{path}"))]));
        assert!(!check(&src, &[("PATH", &path), ("LD_PRELOAD", "x.so")]));
        assert!(!check(&src, &[("PATH", &path), ("LD_LIBRARY_PATH", "/opt/lib:")]));
        assert!(check(&src, &[("PATH", &path), ("LD_LIBRARY_PATH", "/opt/lib:/usr/lib")]));
        // A program of the same name in the workspace comes first: it could be anything.
        std::fs::write(home.dir.path().join("src/ls"), "").expect("a file can be written");
        assert!(!check(&src, &[("PATH", &format!("{}:{path}", src.display()))]));
        assert!(check(&src, &[("PATH", &format!("{path}:{}", src.display()))]));
    }

    const READING: &str = r#"ls
ls -la src
ls --color=never -1 .
pwd
cat src/main.rs
cat 'src/main.rs'
cat "src/main.rs"
cat src/../src/main.rs
cat ./not-there-yet
head -5 src/main.rs
head -n 5 src/main.rs
tail -n5 src/main.rs
wc -l src/main.rs
echo hello 'a > b; $x'
grep -rn 'fn .*(' src
grep -e a -e b src/main.rs
grep --include='*.rs' -r x .
grep -A 3 pattern src/main.rs
grep /etc/passwd src/main.rs
rg -n --glob='*.rs' x src
rg --files src
find . -name '*.rs' -type f
find src -maxdepth 2 -not -name x
find
cat src/main.rs | grep x | sort -u | uniq -c | head -3
sed -n '1,20p' src/main.rs
sort -k 2 src/main.rs
sort -t, -k2 src/main.rs
cut -d: -f1 src/main.rs
tr a-z A-Z
diff -u src/main.rs src/main.rs
date
date -u +%Y
uname -a
whoami
id
du -sh src
stat -c %s src/main.rs
basename /etc/passwd
md5sum src/main.rs
cat -- src/main.rs
cat 中文.txt
cat -
ls; pwd
ls;
ls && cat src/main.rs || echo none
grep x src/main.rs 2>/dev/null | head -3
ls > /dev/null 2>&1
cat < /dev/null
cd src && cat main.rs
cd ./src && ls .. | head -1"#;

    /// Lines that begin with `# ` say what the next ones have in common.
    const NOT_PROVEN: &str = r#"# what the shell would do by itself
ls; rm x
ls && rm x
ls || rm x
ls & rm x
ls |& tee x
ls > x
ls > /dev/nul
ls >& x
ls &> /dev/null
ls 2>1
ls > /dev/null/../x
cat < x
ls $(rm x)
ls `rm x`
ls "$(rm x)"
ls "`rm x`"
echo $HOME
ls ~
ls ~/x
ls *
ls a?
ls [a]
ls {a,b}
ls \x
! ls
(ls)
{ ls; }
ls # x
X=1 ls
ls 'x
ls "x
ls |
| ls
ls | | ls
cat <(ls)
ls !x
ls ^x
# what is not in the table, or not by this name
rm x
git status
git -c core.pager=x log
awk 1 src/main.rs
xargs ls
env ls
sh -c ls
./ls
/bin/ls
src/ls
command ls
exec ls
eval ls
tee x
touch x
cd src
cd src; ls
cd src || ls
cd src && rm x
cd src && cat ../../x
cd .. && ls
cd link && ls
cd none && ls
cd - && ls
cd && ls
X=1 cd src && ls
cd src && cd .. && ls
ls && cd src && ls
pwd && set x
less x
ls | sh
ls | xargs rm
ls | tee x
printenv
cp a b
make
cargo test
python -c 1
# flags that write, run, follow links or read lists of paths
sort -o x src/main.rs
sort -ox src/main.rs
sort --output=x
sort --compress-program=x src/main.rs
sort -T src src/main.rs
sort --files0-from=x
uniq src/main.rs x
find . -delete
find . -exec rm x
find . -execdir rm x
find . -ok rm x
find . -fprint x
find . -fls x
find -L .
find . -follow
find . -name
find . -newer /etc/passwd
find -files0-from x
grep -f x src/main.rs
grep -R x .
grep -C x /etc/passwd
egrep x src
grep --file=x src
grep -rf x .
rg --pre x y
rg -L x
rg --pre=x y
rg -f x
rg -z x
rg --follow x
rg --hostname-bin=x y
tail -f src/main.rs
wc --files0-from=x
du --files0-from=x
ls -L
date -s x
date 01010000
date -f x
date --set=x
file -f x
file -C -m x
file -z src/main.rs
md5sum -c x
diff -r src src
diff src src
diff --to-file=x y
diff -l src/main.rs src/main.rs
tree -o x
tree -l
sed -n 'w x' src/main.rs
sed -n '1e' src/main.rs
sed -i s/a/b/ src/main.rs
sed 5p src/main.rs
sed -n -e 1p src/main.rs
sed -n 1p -s
sed s/a/b/ src/main.rs
cat --unknown
ls -y
id root
hostname x
head -n
# paths outside the workspace
cat /etc/passwd
cat ../x
ls ..
ls /
cat link/passwd
ls link
cat src/../../x
grep root /etc/passwd
grep -e root /etc/passwd
grep -rn x ..
rg x /etc
rg --files /etc
rg --regexp=x /etc
find / -name x
find .. -name x
cat src/main.rs /etc/passwd
cat -- /etc/passwd
sort /etc/passwd
ls | cat /etc/passwd
'cat' '/etc/passwd'
c"at" /etc/passwd
du -sh /
diff src/main.rs /etc/passwd
sed -n 1p /etc/passwd
stat /etc
realpath ../x"#;
}
