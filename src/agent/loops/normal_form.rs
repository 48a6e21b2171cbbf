//! Normal forms of calls and of their results: what is left when everything is taken away that can differ although
//! nothing is new. Spacing and comments are not part of a command, and clocks are never news.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// Arguments whose value is a shell line.
const COMMANDS: &[&str] = &["command", "cmd", "script"];
/// Units that make a number the length of a time.
const UNITS: &[&str] = &[
    "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h",
    "hr", "hrs", "hour", "hours",
];
/// Words of a command that waits for time, or for something else to happen.
const WAITS: &[&str] = &["sleep", "usleep", "wait", "watch", "inotifywait"];
/// The shortest word of hexadecimal digits that is taken for a number: an address, the id of a commit.
const SHORTEST_ID: usize = 6;

/// Whether numbers are part of a normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    Kept,
    Omitted,
}

/// A hash of any value, the same for as long as this process runs.
pub fn hash_value(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A hash of a call without its result. The order of its keys, and the spacing and the comments of a command do not
/// matter; everywhere else, spaces are content. Without numbers, calls are the same that ask the same for another
/// page, limit or count; the numbers in names (`case_17`, `v1.2`) stay.
pub fn hash_call(name: &str, arguments: &Value, numbers: Numbers) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hash_argument("", arguments, numbers, &mut hasher);
    hasher.finish()
}

fn hash_argument(key: &str, value: &Value, numbers: Numbers, hasher: &mut DefaultHasher) {
    match value {
        Value::String(text) if COMMANDS.contains(&key) => match numbers {
            Numbers::Kept => bare_command(text).hash(hasher),
            Numbers::Omitted => omit_counts(&bare_command(text)).hash(hasher),
        },
        Value::Array(items) => {
            items.len().hash(hasher);
            for item in items {
                hash_argument(key, item, numbers, hasher);
            }
        }
        Value::Object(fields) => {
            // A field that only says how much, or from where on, may also be absent.
            let is_omitted = |field: &Value| numbers == Numbers::Omitted && (field.is_number() || field.is_null());
            let mut sorted: Vec<_> = fields.iter().filter(|(_, field)| !is_omitted(field)).collect();
            sorted.sort_by_key(|(name, _)| *name);
            sorted.len().hash(hasher);
            for (name, field) in sorted {
                name.hash(hasher);
                hash_argument(name, field, numbers, hasher);
            }
        }
        other => other.to_string().hash(hasher),
    }
}

/// Normalises a command: it has no comments, each run of spaces outside quotes becomes one space, and each run of line
/// breaks one line break. The lines of a command with a here-document (`<<`) only lose their comments.
fn bare_command(command: &str) -> String {
    if command.contains("<<") {
        let without_comment = |line: &str| match line.find(" #") {
            _ if line.trim_start().starts_with('#') => String::new(),
            Some(at) => line[..at].to_owned(),
            None => line.to_owned(),
        };
        let lines: Vec<String> = command.lines().map(without_comment).filter(|line| !line.is_empty()).collect();
        return lines.join("\n");
    }
    let mut bare = String::with_capacity(command.len());
    let (mut quote, mut is_code, mut escaped, mut in_comment, mut gap) = (None, false, false, false, None);
    for c in command.trim().chars() {
        if in_comment && c != '\n' && quote != Some(c) {
            continue;
        }
        in_comment = false;
        if quote.is_none() && !escaped && c.is_whitespace() {
            gap = if c == '\n' || gap == Some('\n') { Some('\n') } else { Some(' ') };
            continue;
        }
        let may_be_comment = quote.is_none() || is_code;
        if c == '#' && !escaped && may_be_comment && (gap.is_some() || ends_word(&bare, quote)) {
            in_comment = true;
            continue;
        }
        if quote.is_none() && matches!(c, '\'' | '"') {
            is_code = gap.is_some() && is_flag_of_code(&bare);
        }
        bare.extend(gap.take().filter(|_| !bare.is_empty()));
        bare.push(c);
        if escaped {
            escaped = false;
            continue;
        }
        match (quote, c) {
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    bare
}

/// True if nothing of a word stands at the end of `text`, which is inside this quote.
fn ends_word(text: &str, quote: Option<char>) -> bool {
    let ends = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(') || Some(c) == quote;
    text.chars().next_back().is_none_or(ends)
}

/// True if `text` ends with a flag whose argument is a program: `sh -c`, `bash -lc`, `perl -e`.
fn is_flag_of_code(text: &str) -> bool {
    let flag = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    flag.starts_with('-') && flag.ends_with(['c', 'e'])
}

/// Omits the numbers of a command that are not part of a name or of a text: `head -n 20` and `sed -n 1,20p` without 20.
fn omit_counts(command: &str) -> String {
    let (mut out, mut word) = (String::with_capacity(command.len()), String::new());
    let (mut quote, mut is_code) = (None, false);
    for c in command.chars().chain([' ']) {
        if c.is_whitespace() && (quote.is_none() || is_code) {
            out += &if is_count(&word) { omit_numbers(&word) } else { std::mem::take(&mut word) };
            out.push(c);
            word.clear();
            continue;
        }
        match quote {
            None if matches!(c, '\'' | '"') => {
                is_code = word.is_empty() && is_flag_of_code(out.trim_end());
                quote = Some(c);
            }
            Some(open) if open == c => quote = None,
            _ => {}
        }
        word.push(c);
    }
    out
}

/// True for a flag, and for a word or a value (`N=20`) that begins with a number and is hardly more than that; never for
/// a path.
fn is_count(word: &str) -> bool {
    let value = word.rsplit('=').next().unwrap_or_default();
    let first = value.chars().find(|c| c.is_alphanumeric());
    let letters = value.chars().filter(|c| c.is_alphabetic()).count();
    let is_number = first.is_some_and(|c| c.is_ascii_digit()) && letters <= 2;
    (is_number || word.starts_with('-')) && !value.contains(['/', '_'])
}

/// True if a command waits: for a time, or for something else to happen.
pub fn waits(command: &str) -> bool {
    command.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| WAITS.contains(&word))
}

/// True for a line of a result that only says how much is shown: `[lines 1-20 of 60; go on with offset=21]`.
pub fn is_notice(line: &str) -> bool {
    let inside = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default();
    inside.starts_with(|c: char| c.is_alphanumeric() || c == '…') && inside.contains(char::is_alphabetic)
}

/// A line of a result without the times, dates and durations in it.
pub fn omit_clocks(line: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let is_in_name = rest[..at].chars().next_back().is_some_and(|c| c.is_alphabetic() || c == '_');
        out += &rest[..at];
        let figure = leading_figure(&rest[at..]);
        rest = &rest[at + figure.len()..];
        let spaced = rest.strip_prefix(' ').unwrap_or(rest);
        let unit: &str = &spaced[..spaced.find(|c: char| !c.is_alphabetic()).unwrap_or(spaced.len())];
        if UNITS.contains(&unit) && !is_in_name {
            rest = &spaced[unit.len()..];
        } else if is_in_name || !is_clock(figure) {
            out += figure;
            continue;
        }
        if !out.ends_with('@') {
            out.push('@');
        }
    }
    out + rest
}

/// A line of a result without any numbers in it.
pub fn omit_numbers(line: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = rest.bytes().position(|byte| byte.is_ascii_digit()) {
        // The word that the digit is in.
        let letters = rest.as_bytes()[..at].iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let start = at - letters;
        let length = rest.as_bytes()[start..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let word = &rest[start..start + length];
        let (kept, end) = if is_id(word) {
            (start, start + length)
        } else if is_id(&word[letters..]) {
            (at, start + length)
        } else {
            (at, at + leading_figure(&rest[at..]).len())
        };
        out += &rest[..kept];
        out.push('#');
        rest = &rest[end..];
    }
    out + rest
}

fn is_id(word: &str) -> bool {
    word.len() >= SHORTEST_ID
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The digits that `text` begins with, and what joins them: `16:48:47.5`, `2026-11-23T16:48`, `1,024`, `0.03`.
fn leading_figure(text: &str) -> &str {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let joins =
        |at: usize| matches!(bytes.get(at), Some(b'.' | b',' | b':' | b'-' | b'/' | b'T')) && is_digit(at + 1);
    let mut end = 0;
    while is_digit(end) || joins(end) {
        end += 1;
    }
    &text[..end]
}

/// True for a time of day, a date, and the seconds since 1970 or a fraction of them.
fn is_clock(figure: &str) -> bool {
    let is_sixty = |part: &str| part.bytes().take_while(u8::is_ascii_digit).count() == 2 && part < "6";
    let has_time = figure.split(':').skip(1).any(is_sixty);
    let parts: Vec<usize> = figure.split(['-', '/', 'T']).map(str::len).collect();
    let is_date = matches!(parts[..], [4, 2, 2, ..] | [2, 2, 4, ..]);
    let whole = figure.split('.').next().unwrap_or_default();
    let is_whole = whole.bytes().all(|byte| byte.is_ascii_digit());
    let is_epoch = is_whole && whole.starts_with('1') && matches!(whole.len(), 10 | 13 | 16 | 19);
    has_time || is_date || is_epoch
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_the_same_whatever_the_order_of_keys_the_spacing_and_the_comments_of_commands() {
        for (a, b, same) in [
            (json!({"path": "a", "limit": 1}), json!({"limit": 1, "path": "a"}), true),
            (json!({"command": "ls -l  a"}), json!({"command": " ls\t-l a\n"}), true),
            (json!({"command": "a\n\n  b"}), json!({"command": "a\nb"}), true),
            (json!({"command": "a\nb"}), json!({"command": "a b"}), false),
            (json!({"command": "echo 'a  b'"}), json!({"command": "echo 'a b'"}), false),
            (json!({"command": "echo \"\\\"  b\""}), json!({"command": "echo \"\\\" b\""}), false),
            (json!({"command": "echo \\'  a  b"}), json!({"command": "echo \\' a b"}), true),
            (json!({"command": "make # try 1"}), json!({"command": "make  # try 2"}), true),
            (json!({"command": "make # try 1"}), json!({"command": "make"}), true),
            (json!({"command": "# one\nmake"}), json!({"command": "make # two"}), true),
            (json!({"command": "make;# one\nls"}), json!({"command": "make;# two\nls"}), true),
            (json!({"command": "make # one\nls"}), json!({"command": "make # one\nls -l"}), false),
            (json!({"command": "echo a#1"}), json!({"command": "echo a#2"}), false),
            (json!({"command": "echo \\#1"}), json!({"command": "echo \\#2"}), false),
            (json!({"command": "git commit -m 'see #1'"}), json!({"command": "git commit -m 'see #2'"}), false),
            (json!({"command": "sh -c 'make # 1'"}), json!({"command": "sh -c 'make # 2'"}), true),
            (
                json!({"command": "python3 -c \"a() # 1\nb()\""}),
                json!({"command": "python3 -c \"a() # 2\nb()\""}),
                true,
            ),
            (json!({"command": "sh -c 'make # 1' a"}), json!({"command": "sh -c 'make # 1' b"}), false),
            (json!({"command": "cat <<E\n  a\nE"}), json!({"command": "cat <<E\n a\nE"}), false),
            (
                json!({"command": "python3 <<E\n# 1\na() # 1\nE"}),
                json!({"command": "python3 <<E\n# 2\na() # 2\nE"}),
                true,
            ),
            (json!({"path": "a", "content": "  x"}), json!({"path": "a", "content": " x"}), false),
            (json!({"path": "a", "content": "# 1"}), json!({"path": "a", "content": "# 2"}), false),
            (json!({"edits": [{"old": "a", "new": "b"}]}), json!({"edits": [{"new": "b", "old": "a"}]}), true),
            (json!([["a"], "b"]), json!([["a", "b"]]), false),
            (json!({"a": "1"}), json!({"a": 1}), false),
        ] {
            let hash = |arguments| hash_call("t", arguments, Numbers::Kept);
            assert_eq!(hash(&a) == hash(&b), same, "{a} {b}");
        }
        let hash = |name| hash_call(name, &Value::Null, Numbers::Kept);
        assert_ne!(hash("t"), hash("u"));
    }

    #[test]
    fn a_question_is_the_same_with_another_count_but_not_with_another_name() {
        for (a, b, same) in [
            (json!({"path": "a", "limit": 10}), json!({"path": "a", "limit": 11}), true),
            (json!({"path": "a", "offset": 7}), json!({"path": "a"}), true),
            (json!({"path": "a1"}), json!({"path": "a2"}), false),
            (json!({"command": "head -20 a"}), json!({"command": "head -21 a"}), true),
            (json!({"command": "head -n20 a"}), json!({"command": "head -n21 a"}), true),
            (json!({"command": "sed -n '1,20p' a"}), json!({"command": "sed -n '21,40p' a"}), true),
            (json!({"command": "head --lines=5 a"}), json!({"command": "head --lines=6 a"}), true),
            (json!({"command": "TRY=1 make"}), json!({"command": "TRY=2 make"}), true),
            (json!({"command": "bash -lc 'head -n 20 a'"}), json!({"command": "bash -lc 'head -n 21 a'"}), true),
            (json!({"command": "grep 'case 1' a"}), json!({"command": "grep 'case 2' a"}), false),
            (json!({"command": "cat case_1"}), json!({"command": "cat case_2"}), false),
            (json!({"command": "cat 1.txt"}), json!({"command": "cat 2.txt"}), false),
            (json!({"command": "ls data/1"}), json!({"command": "ls data/2"}), false),
            (json!({"command": "git checkout v1.2"}), json!({"command": "git checkout v1.3"}), false),
        ] {
            let hash = |arguments| hash_call("t", arguments, Numbers::Omitted);
            assert_eq!(hash(&a) == hash(&b), same, "{a} {b}");
        }
    }

    #[test]
    fn clocks_are_omitted_and_other_numbers_stay() {
        for (line, expected) in [
            ("16:48:47 built", "@ built"),
            ("Mon Nov 23 16:48:47 UTC 2026", "Mon Nov 23 @ UTC 2026"),
            ("2026-11-23T16:48:47.123Z ok", "@Z ok"),
            ("2026-11-23 16:48 ok", "@ @ ok"),
            ("23/11/2026 ok", "@ ok"),
            ("1795452527", "@"),
            ("1795452527.25", "@"),
            ("finished in 0.03s", "finished in @"),
            ("took 12 ms, 3 tests", "took @, 3 tests"),
            ("real\t0m1.203s", "real\t@"),
            ("job1: running for 20 s, nothing new", "job1: running for @, nothing new"),
            ("10 %", "10 %"),
            ("3 files, 1,204 lines", "3 files, 1,204 lines"),
            ("17\tthe text", "17\tthe text"),
            ("v1.2.3 of foo2s", "v1.2.3 of foo2s"),
            ("中文 7", "中文 7"),
        ] {
            assert_eq!(omit_clocks(line), expected);
        }
    }

    #[test]
    fn numbers_are_omitted_wherever_they_are() {
        for (line, expected) in [
            ("10 %, then 1.5 and 1,204", "# %, then # and #"),
            ("test case_17 in 0.03s", "test case_# in #s"),
            ("16:48:47", "#"),
            ("at 0x7ffd3c01, commit 3fa9c2b", "at #x#, commit #"),
            ("added deadbeef", "added deadbeef"),
            ("中文 7", "中文 #"),
        ] {
            assert_eq!(omit_numbers(line), expected);
        }
    }

    #[test]
    fn notices_say_only_how_much_is_shown() {
        for (line, expected) in [
            ("[lines 1-20 of 60; go on with offset=21]", true),
            ("[385 more matches not shown, 400 in all]", true),
            ("[… 12 bytes, 3 lines left out …]", true),
            ("[1, 2, 3]", false),
            ("[\"a\", 1]", false),
            ("[INFO] 3 of 4", false),
        ] {
            assert_eq!(is_notice(line), expected, "{line}");
        }
    }

    #[test]
    fn a_command_waits_if_one_of_its_words_says_so() {
        for (command, expected) in [
            ("sleep 1; tail -1 build.log", true),
            ("until test -e done; do sleep 5; done", true),
            ("python3 -c 'import time; time.sleep(5)'", true),
            ("gh run watch 7", true),
            ("kubectl rollout status x --wait", true),
            ("cargo test sleep_works", false),
            ("cat asleep.txt", false),
        ] {
            assert_eq!(waits(command), expected, "{command}");
        }
    }
}
