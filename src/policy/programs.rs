//! A table of the programs that only read, with the flags that keep it so, for the proofs in `command`. Programs
//! that run others or obey files of the workspace (git, find -exec, sed scripts, awk) are not in it.

/// A program that only reads, as long as it gets only these flags.
pub(super) struct Program {
    pub name: &'static str,
    /// Single letters that take no value.
    pub flags: &'static str,
    /// Single letters that take one.
    pub valued: &'static str,
    /// Long flags, separated by spaces; those that end with `=` take a value.
    pub long: &'static str,
    pub operands: Operands,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Files and directories.
    Paths,
    /// At most one file: a second one would be written to.
    OnePath,
    /// Files, and no directories: what is in them could be links that lead out.
    Files,
    /// A pattern, unless a flag gave it; then paths.
    PatternThenPaths,
    /// A script that only prints lines by their number; then paths.
    LinesThenPaths,
    /// Paths, then tests.
    PathsThenTests,
    /// Words that name nothing.
    Words,
    /// A format that begins with `+`: anything else would set the clock.
    Format,
    None,
}

use Operands::{
    Files, Format, LinesThenPaths, None as Nothing, OnePath, Paths, PathsThenTests, PatternThenPaths, Words,
};

const fn program(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static str,
    operands: Operands,
) -> Program {
    Program { name, flags, valued, long, operands }
}

const LS_LONG: &str = "--all --almost-all --color --color= --human-readable --recursive --group-directories-first";
const GREP_LONG: &str = "\
    --color --color= --colour= --count --line-number --ignore-case --recursive --word-regexp --fixed-strings \
    --extended-regexp --perl-regexp --files-with-matches --files-without-match --only-matching --invert-match \
    --no-filename --with-filename --no-messages --include= --exclude= --exclude-dir= --max-count= --context= \
    --after-context= --before-context= --regexp=";
const RG_LONG: &str = "\
    --color= --count --line-number --no-line-number --ignore-case --smart-case --word-regexp --fixed-strings \
    --files-with-matches --only-matching --invert-match --no-filename --heading --no-heading --hidden \
    --no-ignore --glob= --type= --max-count= --context= --max-depth= --after-context= --before-context= \
    --sort= --files --multiline --regexp=";

/// Commands that the shell runs itself are marked by [`BUILT_IN`]. Sorted as one thinks of them.
pub(super) const PROGRAMS: &[Program] = &[
    program("ls", "1aAbBcCdfFgGhiklmnNopqQrRsStuUvxXZ", "", LS_LONG, Paths),
    program("pwd", "LP", "", "", Nothing),
    program("echo", "neE", "", "", Words),
    program("true", "", "", "", Nothing),
    program("false", "", "", "", Nothing),
    program("cat", "AbeEnstTuv", "", "--number --show-all", Paths),
    program("tac", "", "", "", Paths),
    program("nl", "", "bnw", "", Paths),
    program("head", "qvz", "nc", "--lines= --bytes=", Paths),
    program("tail", "qvz", "nc", "--lines= --bytes=", Paths),
    program("wc", "clLmw", "", "--lines --words --bytes --chars", Paths),
    program("file", "bihN", "", "--brief --mime --mime-type", Paths),
    program("stat", "tx", "c", "--format= --printf= --terse", Paths),
    program("du", "abchkmsS0", "d", "--max-depth= --summarize --human-readable --all", Paths),
    program("df", "ahHiklmPT", "", "--human-readable", Paths),
    program("tree", "aCdfhinpsF", "LIP", "", Paths),
    program("grep", "abcEFGhHiIlLnoPqrsvwxy", "ABCme", GREP_LONG, PatternThenPaths),
    program("rg", "cFhHiIlnNoPqsSuUvwx", "ABCegmtT", RG_LONG, PatternThenPaths),
    program("find", "", "", "", PathsThenTests),
    program("sed", "nEr", "", "", LinesThenPaths),
    program("sort", "bcCdfghiMmnrRsuVz", "kt", "--reverse --unique --numeric-sort --key=", Paths),
    program("uniq", "cdDiuz", "fsw", "--count --repeated --unique", OnePath),
    program("cut", "sz", "bcdf", "--delimiter= --fields= --characters= --complement", Paths),
    program("tr", "cCdst", "", "--delete --squeeze-repeats --complement", Words),
    program("od", "bcdox", "AjNt", "", Paths),
    program("diff", "abBcdeEiNqstuwyZ", "U", "--brief --unified --unified= --color --color=", Files),
    program("cmp", "bls", "n", "", Files),
    program("comm", "123", "", "", Files),
    program("md5sum", "bt", "", "", Files),
    program("sha1sum", "bt", "", "", Files),
    program("sha256sum", "bt", "", "", Files),
    program("sha512sum", "bt", "", "", Files),
    program("cksum", "", "", "", Files),
    program("realpath", "emsqz", "", "", Paths),
    program("readlink", "efmnqsz", "", "", Paths),
    program("basename", "az", "s", "", Words),
    program("dirname", "z", "", "", Words),
    program("seq", "w", "fs", "", Words),
    program("date", "uR", "", "--utc --iso-8601 --iso-8601= --rfc-3339=", Format),
    program("uname", "amnoprsv", "", "--all", Nothing),
    program("whoami", "", "", "", Nothing),
    program("id", "gGnruz", "", "", Nothing),
    program("nproc", "", "", "--all", Nothing),
    program("arch", "", "", "", Nothing),
];

pub(super) const BUILT_IN: [&str; 4] = ["pwd", "echo", "true", "false"];

/// Tests of `find`: those that end with `=` here take the next word. Excludes tests that run, delete or write, and
/// those that follow links.
pub(super) const FIND_TESTS: &str = "\
    -name= -iname= -path= -ipath= -type= -maxdepth= -mindepth= -size= -mtime= -mmin= -ctime= -atime= -perm= \
    -user= -regex= -iregex= -empty -executable -readable -writable -not -a -and -o -or -prune -print -print0 \
    -ls -true -false -xdev -depth";
