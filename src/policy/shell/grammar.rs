//! The door to the shell's grammar: from a line to its simple commands and redirections, wherever they stand.
//!
//! The grammar is that of `sh`, which runs the line; `words` reads each word that it finds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast::{
    self, AndOr, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand as Compound, CompoundList,
    IoFileRedirectKind as Kind, IoFileRedirectTarget as Target, IoRedirect, Pipeline, SeparatorOperator,
};
use brush_parser::{Parser, ParserOptions};

use super::words::{self, Word};
use super::{Arg, Redirect, Script, Simple, read_at};

/// The deepest nesting that is parsed: the parser recurses for each level.
const MOST_OPEN: usize = 40;

/// Words of the grammar itself, which are no words of a command.
const RESERVED: [&str; 14] =
    ["!", "{", "}", "case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "in", "then"];
const LOOPS: [&str; 2] = ["while", "until"];

/// Parses a line; `None` if the grammar does not accept it.
pub(super) fn script(line: &str, depth: usize) -> Option<Script> {
    let split = words::split(line);
    if !may_be_parsed(line) {
        return None;
    }
    let options =
        ParserOptions { enable_extended_globbing: false, posix_mode: true, sh_mode: true, ..Default::default() };
    // A third-party parser on an untrusted line: if it panics, the answer is "not understood".
    let program = catch_unwind(AssertUnwindSafe(|| Parser::new(line.as_bytes(), &options).parse_program()));
    let program = program.ok()?.ok()?;

    let mut walk = Walk { script: Script { is_list: true, ..Script::default() }, words: Vec::new(), depth };
    for list in &program.complete_commands {
        walk.list(list);
    }
    walk.script.enters_first = enters_first(&program);
    if !split.is_some_and(|split| agree(&split, &walk.words)) {
        walk.doubt("shells may read it in different ways");
    }
    Some(walk.script)
}

/// Whether the line may be parsed: not where the parser would recurse deeply, nor with descriptors that overflow
/// it.
fn may_be_parsed(line: &str) -> bool {
    const LONGEST_NUMBER: usize = 8;
    let opened = line.bytes().filter(|byte| b"({`".contains(byte)).count();
    let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '!');
    let begun = words.filter(|word| ["if", "while", "until", "for", "case", "!"].contains(word)).count();
    let mut digits = 0;
    let countable = line.bytes().all(|byte| {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        digits <= LONGEST_NUMBER
    });
    let has_descriptors = line.contains(['<', '>']);
    opened + begun <= MOST_OPEN && (countable || !has_descriptors) && !nests_here_document(line)
}

/// Whether a here-document may begin inside a substitution or a group that is open: the parser can take all memory on
/// such a line.
fn nests_here_document(line: &str) -> bool {
    let (mut open, mut ticks) = (0_u32, false);
    let mut before = 0;
    for byte in from_first_group(line).bytes() {
        match byte {
            b'(' => open += 1,
            b')' => open = open.saturating_sub(1),
            b'`' => ticks = !ticks,
            b'<' if before == b'<' && (open > 0 || ticks) => return true,
            _ => {}
        }
        before = byte;
    }
    false
}

/// The line from its first substitution or group on. What is quoted or escaped before that opens none.
fn from_first_group(line: &str) -> &str {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\'' => match bytes[at + 1..].iter().position(|byte| *byte == b'\'') {
                Some(length) => at += length + 1,
                None => return &line[at..],
            },
            b'"' | b'(' | b'`' => return &line[at..],
            _ => {}
        }
        at += 1;
    }
    ""
}

/// Whether both readings found the same words in the same order.
fn agree(split: &[&str], words: &[String]) -> bool {
    let mut expected = words.iter().map(String::as_str).peekable();
    for word in split {
        if expected.next_if_eq(word).is_none() && !RESERVED.contains(word) && !LOOPS.contains(word) {
            return false;
        }
    }
    expected.next().is_none()
}

/// `cd DIR && a && b | c`: every command after `cd` runs in that directory, or not at all.
fn enters_first(program: &ast::Program) -> bool {
    let [list] = program.complete_commands.as_slice() else { return false };
    let [item] = list.0.as_slice() else { return false };
    let all_and = item.0.additional.iter().all(|next| matches!(next, AndOr::And(_)));
    let [Command::Simple(first)] = item.0.first.seq.as_slice() else { return false };
    let name = first.word_or_name.as_ref().is_some_and(|word| word.value == "cd");
    let operands = first.suffix.as_ref().map(|suffix| suffix.0.as_slice());
    let one_word = matches!(operands, Some([Item::Word(word)]) if !word.value.starts_with('-'));
    let synchronous = matches!(item.1, SeparatorOperator::Sequence);
    all_and && !item.0.additional.is_empty() && name && first.prefix.is_none() && one_word && synchronous
}

struct Walk {
    script: Script,
    /// As they are written.
    words: Vec<String>,
    depth: usize,
}

impl Walk {
    fn doubt(&mut self, why: &'static str) {
        self.script.unresolved.get_or_insert(why);
    }

    fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            self.script.is_list &= matches!(item.1, SeparatorOperator::Sequence);
            self.pipeline(&item.0.first);
            for next in &item.0.additional {
                let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
                self.pipeline(pipeline);
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        self.script.is_list &= !pipeline.bang && pipeline.timed.is_none();
        for command in &pipeline.seq {
            match command {
                Command::Simple(command) => self.simple(command),
                Command::Compound(compound, redirects) => {
                    self.compound(compound);
                    self.redirects(redirects.as_ref());
                }
                Command::Function(function) => {
                    self.script.is_list = false;
                    self.word(&function.fname);
                    self.compound(&function.body.0);
                    self.redirects(function.body.1.as_ref());
                }
                Command::ExtendedTest(..) => self.doubt("`[[ … ]]` means different things to different shells"),
            }
        }
    }

    fn compound(&mut self, compound: &Compound) {
        self.script.is_list = false;
        match compound {
            Compound::BraceGroup(group) => self.list(&group.list),
            Compound::Subshell(subshell) => self.list(&subshell.list),
            Compound::ForClause(clause) => {
                self.words.push(clause.variable_name.clone());
                clause.values.iter().flatten().for_each(|value| drop(self.word(value)));
                self.list(&clause.body.list);
            }
            Compound::CaseClause(clause) => {
                self.word(&clause.value);
                for item in &clause.cases {
                    item.patterns.iter().for_each(|pattern| drop(self.word(pattern)));
                    item.cmd.iter().for_each(|list| self.list(list));
                }
            }
            Compound::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for other in clause.elses.iter().flatten() {
                    other.condition.iter().for_each(|list| self.list(list));
                    self.list(&other.body);
                }
            }
            Compound::WhileClause(clause) | Compound::UntilClause(clause) => {
                self.list(&clause.0);
                self.list(&clause.1.list);
            }
            Compound::Coprocess(_) | Compound::Arithmetic(_) | Compound::ArithmeticForClause(_) => {
                self.doubt("it has a construct that only some shells know");
            }
        }
    }

    fn simple(&mut self, command: &ast::SimpleCommand) {
        let before = command.prefix.iter().flat_map(|prefix| &prefix.0);
        let assigns = before.fold(false, |assigns, item| {
            self.item(item);
            assigns | matches!(item, Item::AssignmentWord(..))
        });
        let mut argv: Vec<Arg> = command.word_or_name.iter().map(|name| self.word(name)).collect();
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            argv.extend(self.item(item));
        }
        if argv.first() == Some(&Arg::Unknown) {
            self.doubt("what stands where a program is named is only known when it runs");
        }
        if assigns || !argv.is_empty() {
            let depth = self.depth;
            self.script.commands.push(Simple { assigns, ..Simple::new(argv, depth) });
        }
    }

    fn item(&mut self, item: &Item) -> Option<Arg> {
        match item {
            Item::Word(word) | Item::AssignmentWord(_, word) => Some(self.word(word)),
            Item::IoRedirect(redirect) => {
                self.redirect(redirect);
                None
            }
            Item::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list);
                self.doubt("it has a construct that only some shells know");
                Some(Arg::Unknown)
            }
        }
    }

    fn word(&mut self, word: &ast::Word) -> Arg {
        self.words.push(word.value.clone());
        self.expand(words::word(&word.value))
    }

    /// Takes in the commands of substitutions, which run like the rest.
    fn expand(&mut self, word: Word) -> Arg {
        if word.is_doubtful {
            self.doubt("it has an expansion that does more than look something up");
        }
        for line in word.substitutions {
            self.script.is_list = false;
            let inner = read_at(&line, self.depth + 1);
            if let Some(why) = inner.unresolved {
                self.doubt(why);
            }
            self.script.commands.extend(inner.commands);
            self.script.files.extend(inner.files);
        }
        word.arg
    }

    fn redirects(&mut self, list: Option<&ast::RedirectList>) {
        list.iter().flat_map(|list| &list.0).for_each(|redirect| self.redirect(redirect));
    }

    fn redirect(&mut self, redirect: &IoRedirect) {
        match redirect {
            IoRedirect::File(_, kind, Target::Filename(word)) => {
                let target = self.word(word);
                self.file(target, !matches!(kind, Kind::Read));
            }
            IoRedirect::File(_, _, Target::Duplicate(word)) => {
                let target = self.word(word);
                let is_descriptor = |text: &str| {
                    text == "-" || text.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit())
                };
                if !target.text().is_some_and(is_descriptor) {
                    self.file(target, true);
                }
            }
            IoRedirect::File(_, _, Target::Fd(number)) => self.words.push(number.to_string()),
            IoRedirect::OutputAndError(word, _) => {
                let target = self.word(word);
                self.file(target, true);
            }
            IoRedirect::HereDocument(_, document) => {
                self.words.push(document.here_end.value.clone());
                if document.requires_expansion {
                    self.expand(words::body(&document.doc.value));
                }
            }
            IoRedirect::File(_, _, Target::ProcessSubstitution(..)) | IoRedirect::HereString(..) => {
                self.doubt("it has a construct that only some shells know");
            }
        }
    }

    fn file(&mut self, target: Arg, writes: bool) {
        if target.text() != Some("/dev/null") {
            self.script.files.push(Redirect { target, writes });
        }
    }
}
