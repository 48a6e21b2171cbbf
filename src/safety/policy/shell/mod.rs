//! Parses a command line: the commands that it would run, as far as that is known without running it.
//!
//! The parser (`reader`) works in one pass. It takes literally only what every shell reads alike. If a word is not what
//! it seems, if shells disagree on a construct, or if the line is not understood, the line is marked as unresolved:
//! then the user is asked, but the rules that deny still apply to everything found in it.

mod compound;
mod document;
mod reader;
mod simple;
mod skim;
mod words;
mod wrappers;

use reader::ShellReader;

/// The longest line that is parsed, in bytes.
const LONGEST: usize = 16 * 1024;
/// The deepest nesting of lines in lines (`sh -c "sh -c …"`).
const DEEPEST: usize = 5;

/// The commands of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellScript {
    /// Every simple command, at any depth; those of a substitution in a word come before the command
    /// that uses it.
    pub(super) commands: Vec<Simple>,
    /// The files that are opened by redirections.
    pub(super) files: Vec<Redirect>,
    /// True if the line begins with a separate command: if that is a `cd` that works, the rest runs in its directory.
    pub(super) enters_first: bool,
    /// True if it mentions the home directory.
    pub(super) names_home: bool,
    /// What its words name there, as far as they show: `/.ssh/id` for `~/.ssh/id`.
    pub(super) in_home: Vec<String>,
    /// True if a text in it is what a command reads: a here-document or a here-string.
    pub(super) has_document: bool,
    /// True if it calculates: some shells execute code in the values that they calculate with.
    pub(super) calculates: bool,
    /// The reason that it is unknown what runs.
    pub(super) unresolved: Option<&'static str>,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simple {
    pub argv: Vec<Arg>,
    /// The variables that are set for it, or by it.
    pub assigned: Vec<String>,
    /// Further text that may begin a path: values that are assigned, words of a loop, and the text before an expansion
    /// in a word.
    pub names: Vec<String>,
    /// True if it reads what another command of the line writes.
    pub is_fed: bool,
    /// The command that it runs in turn (`timeout 5 ls`, `sh -c ls`).
    pub inside: Option<Box<WrappedCommand>>,
}

/// The command inside a wrapper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrappedCommand {
    pub script: ShellScript,
    /// The position of the inner command among the words of the outer one; beyond them if it is a line, not words.
    pub at: usize,
    /// True if the outer command adds no effects, so that permission for the inner one suffices.
    pub is_transparent: bool,
}

/// One word, as the program receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Arg {
    Literal(String),
    /// The path of the home directory, and this text after it.
    InHome(String),
    /// The names that match this, or that its braces make; quoted characters stand in it as they are.
    Pattern(String),
    /// Any number of words of any content.
    Unknown,
}

/// A file that the shell opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    pub target: Arg,
    pub writes: bool,
}

impl Arg {
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::InHome(_) | Self::Pattern(_) | Self::Unknown => None,
        }
    }
}

impl WrappedCommand {
    /// A line that an argument is, to which the outer command adds effects.
    fn of_line(script: ShellScript) -> Self {
        Self { script, at: usize::MAX, is_transparent: false }
    }
}

impl Simple {
    fn new(argv: Vec<Arg>, depth: usize) -> Self {
        let inside = wrappers::unwrap_command(&argv, depth).map(Box::new);
        Self { argv, inside, ..Self::default() }
    }

    /// The program that runs, if it is known.
    pub fn program(&self) -> Option<&str> {
        self.argv.first().and_then(Arg::text)
    }

    /// Its name, without the directory that it is given with; empty if it is not known.
    pub fn program_name(&self) -> &str {
        self.program().and_then(|path| path.rsplit('/').next()).unwrap_or_default()
    }
}

impl ShellScript {
    /// This command and all commands nested in it, at any depth.
    pub(super) fn all(&self) -> Vec<&Simple> {
        let mut all = Vec::new();
        for command in &self.commands {
            all.push(command);
            if let Some(inside) = &command.inside {
                all.extend(inside.script.all());
            }
        }
        all
    }

    /// The reason that it is unknown what runs, at any depth.
    pub fn doubt(&self) -> Option<&'static str> {
        let inside = |command: &Simple| command.inside.as_ref().and_then(|inside| inside.script.doubt());
        self.unresolved.or_else(|| self.commands.iter().find_map(inside))
    }

    /// The files that redirections open, at any depth.
    pub(super) fn all_files(&self) -> Vec<&Redirect> {
        let inside = self.all().into_iter().filter_map(|command| command.inside.as_ref());
        self.files.iter().chain(inside.flat_map(|inside| &inside.script.files)).collect()
    }

    /// True if it mentions the home directory, at any depth.
    pub(super) fn names_home(&self) -> bool {
        self.has(|script| script.names_home)
    }

    /// What its words name in the home directory, at any depth.
    pub(super) fn list_in_home(&self) -> Vec<&str> {
        let inside = self.commands.iter().filter_map(|command| command.inside.as_ref());
        let own = self.in_home.iter().map(String::as_str);
        own.chain(inside.flat_map(|inside| inside.script.list_in_home())).collect()
    }

    /// True if it calculates, at any depth.
    pub(super) fn calculates(&self) -> bool {
        self.has(|script| script.calculates)
    }

    /// True if it is so of this line, or of one in it.
    fn has(&self, is_so: fn(&Self) -> bool) -> bool {
        let mut inside = self.commands.iter().filter_map(|command| command.inside.as_ref());
        is_so(self) || inside.any(|inside| inside.script.has(is_so))
    }

    /// Adds what was found in a part of the line that was read separately.
    fn absorb(&mut self, part: Self) {
        self.commands.extend(part.commands);
        self.files.extend(part.files);
        self.names_home |= part.names_home;
        self.in_home.extend(part.in_home);
        self.has_document |= part.has_document;
        self.calculates |= part.calculates;
        self.unresolved = self.unresolved.or(part.unresolved);
    }

    /// A script about which nothing is known.
    fn opaque(why: &'static str) -> Self {
        Self { unresolved: Some(why), ..Self::default() }
    }
}

/// Parses a command line. It never fails, and never takes long.
pub fn parse_line(line: &str) -> ShellScript {
    read_at(line, 0)
}

fn read_at(line: &str, depth: usize) -> ShellScript {
    if depth > DEEPEST {
        return ShellScript::opaque("commands in commands, too deep to follow");
    }
    if line.len() > LONGEST {
        return ShellScript::opaque("the line is too long to be judged");
    }
    if line.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return ShellScript::opaque("there is a control character in it");
    }
    let mut script = ShellReader::new(line, depth).read();
    if script.commands.is_empty() && script.files.is_empty() && script.unresolved.is_none() {
        script.unresolved = Some("there is no command in it");
    }
    script
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The simple commands in a line, ` / ` between them, `…` for what is not known; `!` first if there is doubt.
    fn shown(line: &str) -> String {
        let script = parse_line(line);
        let word = |arg: &Arg| arg.text().unwrap_or("…").to_owned();
        let commands = script.all();
        let commands = commands.iter().filter(|command| !command.argv.is_empty());
        let commands = commands.map(|command| command.argv.iter().map(word).collect::<Vec<_>>().join(" "));
        let commands = commands.collect::<Vec<_>>().join(" / ");
        if script.doubt().is_some() { format!("! {commands}").trim_end().to_owned() } else { commands }
    }

    #[test]
    fn every_simple_command_is_found() {
        for (line, expected) in [
            ("ls -l", "ls -l"),
            ("a | b && c || d; e & f", "a / b / c / d / e / f"),
            ("a\nb", "a / b"),
            ("(a; (b)) | { c; }", "a / b / c"),
            ("if a; then b; elif c; then d; else e; fi", "a / b / c / d / e"),
            ("for x in 1 2; do a $x; done", "a …"),
            ("while a; do b; done; until c; do d; done", "a / b / c / d"),
            ("case $x in a) b;; *) c;; esac", "b / c"),
            ("f() { a; }; f", "a / f"),
            ("a 'b c' \"d $e\" f\\ g", "a b c … f g"),
            ("a $(b | c) `d`", "b / c / d / a … …"),
            ("a \"$(b \"$(c)\")\"", "c / b … / a …"),
            ("r\"\"m 'x'", "rm x"),
            (
                "env -i A=1 timeout -k 5 10 nice -n 5 a b",
                "env -i A=1 timeout -k 5 10 nice -n 5 a b / timeout -k 5 10 nice -n 5 a b / nice -n 5 a b / a b",
            ),
            ("env a-b=1 a", "env a-b=1 a / a"),
            ("sudo -u x a", "sudo -u x a / a"),
            ("sh -c 'a; b'", "sh -c a; b / a / b"),
            ("bash -ec \"sh -c 'a'\"", "bash -ec sh -c 'a' / sh -c a / a"),
            ("find . -exec a {} \\; -execdir b {} +", "find . -exec a {} ; -execdir b {} + / a … / b …"),
            ("x | xargs -0 -n 1 a b", "x / xargs -0 -n 1 a b / a b …"),
            ("xargs -I % a %", "xargs -I % a % / a …"),
            ("eval 'a b'", "eval a b / a b"),
            ("command -v a", "command -v a"),
            ("a <<E && c\nx \"y' $(b) `d` \\$(z) $v\nE\ne", "a / c / b / d / e"),
            ("a <<-'E F' | b\n$(x)\n\tE F\nc", "a / b / c"),
            ("a # b\nc", "a / c"),
            ("a \\\nb", "a b"),
            ("a $((1 + $(b)))", "b / a …"),
            ("a ${x:-$(b)} ${y#z} ${#z}", "b / a … … …"),
            ("a $'b\\n'", "a …"),
            ("a <<< \"$(b)\" | c", "b / a / c"),
            ("a |& b", "a / b"),
            ("a <(b | c) > >(d)", "b / c / d / a …"),
            ("[[ -f a && $(b) = c ]] && d", "b / [[ -f a … = c / d"),
            ("x=1 y=$(a) b", "a / b"),
            ("x=$(a)", "a"),
            ("trap 'a b' EXIT", "trap a b EXIT / a b"),
            ("alias x='a b' y=c", "alias x=a b y=c / a b / c"),
            ("rbash -c a", "rbash -c a / a"),
            ("! a {} ]", "a {} ]"),
            ("a 中文 #x y#z", "a 中文"),
            ("a &>b; c", "a / c"),
            ("while read x; do a; done < b", "read x / a"),
            ("for x; do a; done", "a"),
            ("case x in (a|b*) c ;; esac", "c"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_resolved_is_in_doubt() {
        for line in [
            "",
            "  ",
            "$x",
            "$(a)",
            "`a`",
            "\"$x\" y",
            "a*",
            "~/x",
            "eval $x",
            "sh",
            "a | sh",
            "a | sudo bash",
            "sh -s",
            "sh -c $x",
            "bash <(a)",
            "xargs $x",
            "env $x",
            "sudo --what a",
            "env --what=x a",
            "a 'b",
            "a \"b",
            "a ${x:=1}",
            "a ${x@P}",
            "a ${!x}",
            "a ${x:-'}'}",
            "a $'b\\'c'",
            "a $((x[1]))",
            "a $((b); c)",
            "((a))",
            "[[ 'a[$(rm b)]' -eq 1 ]]",
            "x='a[`rm b`]'; echo $((x))",
            "printf {-v,'a[$(rm b)]',x}",
            "printf -va[\\$\\(rm b\\)] x",
            "a &> b c",
            "[[ a || b ]]",
            "taskset 1 a",
            "chrt -b 0 a",
            "/lib64/ld-linux-x86-64.so.2 /bin/a",
            "a <<E\n${b:=c}\nE",
            "a <<E\nb\\\nE\nE",
            "a <<E",
            "a <<E $(b\nE\n)",
            "a $(b <<E)\nE",
            "a <<E 'b\nE'",
            "a b\\\nc",
            "function f { a; }",
            "a\u{1b}b",
            "[[ a ]] && (( b",
            "if",
            "a &&",
            "coproc",
            "parallel a",
            "watch a",
            "su -c a",
            "busybox a",
            "x=(1 2)",
            "a b\u{a0}c",
            "a；b",
            "$x=1 a",
            "find . -exec $x \\;",
            "env -S 'a b'",
            "sh -c 'sh -c \"sh -c \\\"$x\\\"\"'",
            "99999999999>x",
        ] {
            assert!(shown(line).starts_with('!'), "{line:?}: {}", shown(line));
        }
    }

    #[test]
    fn what_is_hidden_in_what_is_in_doubt_is_found_all_the_same() {
        for (line, hidden) in [
            ("$x; rm y", "rm y"),
            ("a <<E\n$(rm y)\nE", "rm y"),
            ("rm y; a $(b", "rm y"),
            ("a $(rm y; b", "rm y"),
            ("((rm y))", "rm y"),
            ("a `rm \\$x`", "rm …"),
            ("strace -f rm y", "rm y"),
            ("taskset 0x1 rm y", "rm y"),
            ("prlimit --nofile=10 rm y", "rm y"),
            ("setarch x86_64 -R rm y", "rm y"),
            ("linux64 rm y", "rm y"),
            ("setpriv --no-new-privs rm y", "rm y"),
            ("valgrind --leak-check=full rm y", "rm y"),
            ("/lib64/ld-linux-x86-64.so.2 rm y", "rm y"),
            ("watch -n 1 'rm y'", "rm y"),
            ("sudo --what rm y", "rm y"),
            ("alias x='rm y; $z'", "rm y"),
            ("x=(1 2); rm y", "rm y"),
            ("for ((i=0;i<1;i++)); do rm y; done", "rm y"),
            ("[[ a =~ (b|c) ]]; sudo rm y", "/ rm y"),
            ("echo ✅; rm 'y'", "rm y"),
            ("echo →\nrm y > z", "rm y"),
            ("a b\u{a0}c && rm y", "rm y"),
        ] {
            assert!(shown(line).contains(hidden), "{line:?}: {}", shown(line));
        }
    }

    #[test]
    fn nothing_deep_is_too_deep() {
        for open in [
            "(", "( ", "{ ", "$(", "\"$(", "`", "$((", "${a:-", "if ", "! ", "a[$((", "sh -c \"", "case x in a) ",
            "f() ", "<(", "env ", "find -exec ", "strace ", "eval ", "for a in b; do ", "a <<b; ", "a <<b\n$(",
        ] {
            for times in [1, 10, 100, 1000, 4000] {
                let _ = parse_line(&open.repeat(times));
            }
        }
    }

    #[test]
    fn a_here_document_in_an_open_substitution_is_not_understood() {
        for line in ["indone$(\ndone<< (done$(env ", "echo `cat <<x", "(cat <<x\n$("] {
            assert!(parse_line(line).doubt().is_some(), "{line:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn no_line_makes_it_panic(line in "([a-c ]|[|&;<>(){}$`\"'\\\\*?~!#=\\[\\]\n0-9.:/-]|if|then|fi|for|in|do|done|case|esac|<<|\\$\\(|\\$\\{|sh -c |find -exec |xargs |env |9{12}){0,24}") {
            let _ = parse_line(&line);
        }

        #[test]
        fn no_text_makes_it_panic(line in "\\PC{0,60}") {
            let _ = parse_line(&line);
        }

        #[test]
        fn quoting_hides_nothing_and_makes_nothing_up(words in prop::collection::vec("[ -~]{0,8}", 1..5)) {
            let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
            let script = parse_line(&format!("printf {}", quoted.join(" ")));
            let expected: Vec<Arg> =
                ["printf".to_owned()].into_iter().chain(words).map(Arg::Literal).collect();
            // A text that a calculation would run is doubtful everywhere.
            let is_subscript = |arg: &Arg| arg.text().is_some_and(|text| text.contains("[$(") || text.contains("[`"));
            prop_assert_eq!(script.doubt().is_some(), expected.iter().any(is_subscript));
            prop_assert_eq!(&script.commands[0].argv, &expected);
        }
    }
}
