//! Keys that are known by their shape, wherever they come from: a file, a log, the output of a command.
//!
//! One pass looks for the beginnings of all shapes at once; ordinary text holds hardly any, so that is all it costs.
//! Only where one is found is the rest of the shape looked at. A shape asks for more than its beginning (length,
//! alphabet, digits among letters), so that names and prose which merely begin alike stay as they are.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// The text that follows the beginning of a key.
#[derive(Debug, Clone, Copy)]
enum Rest {
    /// This many letters and digits at least.
    Plain(usize),
    /// Exactly this many capitals and digits.
    Capitals(usize),
    /// This many letters, digits, `-` and `_` at least, and among them one run of letters and digits that no word
    /// has: 16 or more, of both kinds.
    Random(usize),
    /// `HEADER.PAYLOAD.SIGNATURE`, of which the first two are JSON in base 64.
    WebToken,
    /// Armoured text up to its end.
    Armour,
    /// The end of armoured text whose beginning was cut off: what stands before it.
    ArmourEnd,
}

/// Beginning → rest.
const SHAPES: &[(&str, Rest)] = &[
    ("sk-", Rest::Random(20)),
    ("sk_live_", Rest::Plain(16)),
    ("rk_live_", Rest::Plain(16)),
    ("ghp_", Rest::Plain(30)),
    ("gho_", Rest::Plain(30)),
    ("ghu_", Rest::Plain(30)),
    ("ghs_", Rest::Plain(30)),
    ("ghr_", Rest::Plain(30)),
    ("github_pat_", Rest::Random(40)),
    ("glpat-", Rest::Random(20)),
    ("npm_", Rest::Plain(36)),
    ("hf_", Rest::Plain(30)),
    ("AKIA", Rest::Capitals(16)),
    ("ASIA", Rest::Capitals(16)),
    ("AIza", Rest::Random(35)),
    ("xoxa-", Rest::Random(20)),
    ("xoxb-", Rest::Random(20)),
    ("xoxp-", Rest::Random(20)),
    ("xoxr-", Rest::Random(20)),
    ("xoxs-", Rest::Random(20)),
    ("eyJ", Rest::WebToken),
    ("-----BEGIN ", Rest::Armour),
    ("-----END ", Rest::ArmourEnd),
];

static BEGINNINGS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .build(SHAPES.iter().map(|(beginning, _)| beginning))
        .expect("two dozen short words")
});

/// `text` with `mask` in the place of each key; `None` where there is none.
pub(super) fn mask(text: &str, mask: &str) -> Option<String> {
    /// No key is shorter; most notes of ours are, and need no search engine to be built for them.
    const SHORTEST: usize = 8;
    if text.len() < SHORTEST {
        return None;
    }
    let mut out: Option<String> = None;
    let mut copied = 0;
    for found in BEGINNINGS.find_iter(text) {
        if found.start() < copied {
            continue;
        }
        let (_, rest) = SHAPES[found.pattern().as_usize()];
        let Some(mut key) = key(text, found.range(), rest) else { continue };
        key.start = key.start.max(copied);
        let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
        out.push_str(&text[copied..key.start]);
        out.push_str(mask);
        copied = key.end;
    }
    out.map(|out| out + &text[copied..])
}

/// Where the key lies that has this beginning, if it is one.
fn key(text: &str, beginning: Range<usize>, rest: Rest) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    // A beginning inside a word is part of that word.
    let inside_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !matches!(rest, Rest::Armour | Rest::ArmourEnd) && bytes[..beginning.start].last().is_some_and(inside_word)
    {
        return None;
    }
    let after = &bytes[beginning.end..];
    let length = match rest {
        Rest::Plain(least) => Some(run(after, u8::is_ascii_alphanumeric)).filter(|length| *length >= least),
        Rest::Capitals(exact) => {
            let is_capital = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
            (run(after, is_capital) == exact && run(after, inside_word) == exact).then_some(exact)
        }
        Rest::Random(least) => {
            let length = run(after, inside_word);
            (length >= least && is_random(&after[..length])).then_some(length)
        }
        Rest::WebToken => web_token(after),
        Rest::Armour => armour(after),
        Rest::ArmourEnd => {
            let length = label(after)?;
            let start = material_before(&bytes[..beginning.start])?;
            return Some(start..beginning.end + length);
        }
    };
    length.map(|length| beginning.start..beginning.end + length)
}

fn run(bytes: &[u8], is: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().position(|byte| !is(byte)).unwrap_or(bytes.len())
}

fn is_random(bytes: &[u8]) -> bool {
    const LEAST: usize = 16;
    bytes.split(|byte| !byte.is_ascii_alphanumeric()).any(|run| {
        run.len() >= LEAST && run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic)
    })
}

fn web_token(after: &[u8]) -> Option<usize> {
    const LEAST: usize = 10;
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'=');
    let mut length = 0;
    for opening in [b"".as_slice(), b".eyJ", b"."] {
        let part = after[length..].strip_prefix(opening)?;
        let size = run(part, is_base64);
        if size < LEAST {
            return None;
        }
        length += opening.len() + size;
    }
    Some(length)
}

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
/// A line of base 64 is longer than any word.
const LINE: usize = 32;
/// The most that is looked at for the end of a key, in bytes.
const MOST: usize = 32 * 1024;

/// A private key. Its lines may be numbered, quoted or escaped, and its end may be missing.
fn armour(after: &[u8]) -> Option<usize> {
    let body = label(after)?;
    let window = &after[body..after.len().min(body + MOST)];
    let has_material = |bytes: &[u8]| bytes.split(|byte| !is_base64(*byte)).any(|word| word.len() >= LINE);
    if let Some(end) = find(window, END).filter(|end| has_material(&window[..*end])) {
        let closing = body + end + END.len();
        return Some(closing + label(&after[closing..]).unwrap_or(0));
    }
    // Cut off: as far as there are lines of base 64.
    let lines = &window[..run(window, |byte| is_armoured(*byte))];
    words(lines).filter(|word| word.len() >= LINE).last().map(|word| body + word.end)
}

/// `… PRIVATE KEY-----`: how long that is.
fn label(after: &[u8]) -> Option<usize> {
    const LABEL: &[u8] = b"PRIVATE KEY";
    const LONGEST: usize = 40;
    const DASHES: &[u8] = b"-----";
    let end = find(&after[..after.len().min(LONGEST)], DASHES)?;
    find(&after[..end], LABEL)?;
    Some(end + DASHES.len())
}

/// Where the lines of base 64 begin that `before` ends with.
fn material_before(before: &[u8]) -> Option<usize> {
    let from = before.len().saturating_sub(MOST);
    let start = before[from..].iter().rposition(|byte| !is_armoured(*byte)).map_or(from, |at| from + at + 1);
    words(&before[start..]).find(|word| word.len() >= LINE).map(|word| start + word.start)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += run(&bytes[at..], |byte| !is_base64(*byte));
        let start = at;
        at += run(&bytes[at..], |byte| is_base64(*byte));
        (at > start).then_some(start..at)
    })
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn is_armoured(byte: u8) -> bool {
    is_base64(byte) || byte.is_ascii_whitespace() || byte == b'\\'
}

/// How a private key goes on in a text that is read line by line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    /// Its end, or that of the text which looked like one, is at this byte.
    Until(usize),
    /// All of the text belongs to it; whether a line of base 64 has come by now.
    On(bool),
}

/// Where a private key begins that `text` ends within, and how it goes on there.
pub(super) fn open_key(text: &str) -> Option<(usize, bool)> {
    let begin = text.rfind("-----BEGIN ")?;
    let after = &text[begin + BEGIN.len()..];
    let body = &after[label(after.as_bytes())?..];
    match follow(body, false) {
        Goes::On(seen) => Some((begin, seen)),
        Goes::Until(_) => None,
    }
}

/// Follows a private key that has begun before `text`; `seen` says whether a line of base 64 has come.
pub(super) fn follow(text: &str, mut seen: bool) -> Goes {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bytes = line.as_bytes();
        if let Some(end) = find(bytes, END)
            && let Some(length) = label(&bytes[end + END.len()..])
        {
            return Goes::Until(at + end + END.len() + length);
        }
        // A number may stand before it.
        let word = line.trim().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let is_line = word.bytes().all(is_base64) && (seen || word.is_empty() || word.len() >= LINE);
        if !is_line && !is_header(word) {
            return Goes::Until(at);
        }
        seen |= word.len() >= LINE;
        at += line.len();
    }
    Goes::On(seen)
}

/// `Proc-Type: 4,ENCRYPTED`
fn is_header(line: &str) -> bool {
    ["Proc-Type:", "DEK-Info:"].iter().any(|header| line.starts_with(header))
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::mask;

    fn masked(text: &str) -> String {
        mask(text, "***").unwrap_or_else(|| text.to_owned())
    }

    /// Made up here, so that no file of the repository holds what looks like a key.
    fn letters(count: usize) -> String {
        "a1B2c3D4e5F6g7H8".chars().cycle().take(count).collect()
    }

    #[test]
    fn every_shape_is_known() {
        let table = [
            format!("sk-{}", letters(48)),
            format!("sk-proj-{}_x-{}", letters(40), letters(20)),
            format!("sk-ant-api03-{}-AA", letters(90)),
            format!("ghp_{}", letters(36)),
            format!("ghs_{}", letters(36)),
            format!("github_pat_{}_{}", letters(22), letters(59)),
            format!("glpat-{}", letters(20)),
            format!("npm_{}", letters(36)),
            format!("hf_{}", letters(34)),
            format!("AKIA{}", letters(16).to_uppercase()),
            format!("AIza{}", letters(35)),
            format!("xoxb-1234567890-{}", letters(24)),
            format!("sk_live_{}", letters(24)),
            format!("eyJ{}.eyJ{}.{}", letters(20), letters(40), letters(43)),
        ];
        for key in table {
            for (before, after) in
                [("", ""), ("key=", "\n"), ("\"", "\","), ("https://x?k=", "&y=1"), ("中", "。")]
            {
                let text = format!("{before}{key}{after}");
                assert_eq!(masked(&text), format!("{before}***{after}"), "{text}");
            }
            assert_eq!(masked(&format!("{key} and {key}")), "*** and ***");
        }
    }

    #[test]
    fn private_keys_go_as_a_whole_however_they_are_quoted() {
        let (begin, end) = ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----");
        let line = letters(64);
        let table = [
            (format!("a\n{begin}\n{line}\n{line}\nab==\n{end}\nb"), "a\n***\nb"),
            (format!("  1\t{begin}\n  2\t{line}\n  3\t{end}\n  4\tb"), "  1\t***\n  4\tb"),
            (format!("{{\"key\": \"{begin}\\n{line}\\n{end}\\n\"}}"), "{\"key\": \"***\\n\"}"),
            (format!("{begin}\nProc-Type: 4,ENCRYPTED\n\n{line}\n{end}"), "***"),
            (format!("{begin}\n{line}\n{line}\n[cut]"), "***\n[cut]"),
            (format!("the rest:\n{line}\nab==\n{end}\nb"), "the rest:\n***\nb"),
        ];
        for (text, expected) in table {
            assert_eq!(masked(&text), expected, "{text}");
        }
    }

    #[test]
    fn what_merely_looks_alike_stays() {
        for text in [
            "task-list-of-the-things-that-are-still-to-be-done-2024",
            "sk-loading-spinner-container-with-2-columns",
            "sk-550e8400-e29b-41d4-a716-446655440000",
            "the prefix is `sk-`, `ghp_` or AKIA",
            "AKIAN is a name, and AKIA0123456789ABCDEFGHIJ is too long",
            "npm_config_registry=https://registry.npmjs.org/",
            "npm_package_dependencies_some_thing_else",
            "eyJhbGciOiJIUzI1NiJ9 alone says nothing",
            "words before -----END PRIVATE KEY----- and after",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "if text.contains(\"-----BEGIN PRIVATE KEY-----\") { panic!() }",
            "hf_hub_download(repo_id, filename)",
        ] {
            assert_eq!(mask(text, "***"), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn ordinary_text_is_untouched(
            words in prop::collection::vec(
                prop_oneof![
                    "[a-z]{1,12}",
                    "[A-Z][a-z]{1,10}",
                    "[0-9a-f]{7,40}",
                    "[a-z]{2,8}(-[a-z0-9]{1,8}){1,6}",
                    "[a-z]{2,8}(_[a-z0-9]{1,8}){1,6}",
                    "(sk|glpat|xoxb)-[a-z]{3,9}(-[a-z]{3,9}){1,4}",
                    "/?[a-z]{1,8}(/[a-zA-Z0-9._]{1,12}){1,5}",
                    "[A-Za-z0-9+/]{40,80}",
                    "\\PC{0,20}",
                ],
                0..40,
            )
        ) {
            let text = words.join(" ");
            prop_assert_eq!(mask(&text, "***"), None);
        }

        #[test]
        fn anything_can_be_looked_through(
            text in "(sk-|ghp_|eyJ|-----(BEGIN|END) |PRIVATE KEY-----|[a-zA-Z0-9]{0,40}|[ .\n]|\\PC){0,20}"
        ) {
            let shown = masked(&text);
            prop_assert!(shown.len() <= text.len());
        }
    }
}
