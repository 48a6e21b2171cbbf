//! The tokens that a text is expected to have, by the kind of its content, without a tokenizer.
//!
//! A token begins between two bytes or it does not, and the classes of the two say how likely that is: inside a word it
//! is rare, between a capital and a digit it is almost certain. The likelihoods were fitted to the vocabulary o200k over
//! prose, code, data and noise, where their sum is within a tenth of the truth. A pair of letters that words are made
//! of counts less than any other pair, which tells noise (base64, identifiers) from language.

/// The number of kinds.
pub const MIX_KINDS: usize = 5;

/// The kinds, for which vocabularies differ by factors of their own.
const LETTERS: u8 = 0;
const DIGITS: u8 = 1;
const SYMBOLS: u8 = 2;
const CJK: u8 = 3;
const SCRIPTS: u8 = 4;

/// The expected tokens of each kind: letters, digits, symbols and white space, CJK, other scripts and pictographs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TokenMix(pub [f64; MIX_KINDS]);

impl TokenMix {
    /// Reckons a text.
    pub fn of_text(text: &str) -> Self {
        // Sizes that are powers of two need no check of an index.
        let mut hundredths = [0_u64; 8];
        let (mut before, mut from, mut length) = (b'\n', BREAK, 0_u32);
        for &byte in text.as_bytes() {
            let to = CLASSES[byte as usize];
            let Pair { kind, weight } = PAIRS[from as usize % 64][to as usize % 64];
            let least = if length > LONGEST_WORD { BEYOND_WORD } else { 0 };
            let is_run = to == SYMBOL && byte == before;
            length = if kind == LETTERS && to < SPACE { length + 1 } else { 0 };
            hundredths[kind as usize % 8] += u64::from(if is_run { RUN } else { weight.max(least) });
            (before, from) = (byte, to);
        }
        Self(std::array::from_fn(|kind| hundredths[kind] as f64 / 100.0))
    }

    /// The tokens of all kinds.
    pub fn tokens(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// The likelihood of a token's beginning between two bytes, in hundredths, and the kind of content it belongs to.
#[derive(Clone, Copy)]
struct Pair {
    kind: u8,
    weight: u8,
}

/// Classes of bytes: 26 small letters and 26 capitals, then these.
const CAPITAL: u8 = 26;
const SPACE: u8 = 52;
const BREAK: u8 = 53;
const DIGIT: u8 = 54;
const SYMBOL: u8 = 55;
/// A byte of a character after its first.
const LATER: u8 = 56;
/// The first byte of a character of two bytes, of three, of three in a CJK script, of four.
const FIRST: u8 = 57;
const FIRST_OF_CJK: u8 = 59;

/// A repeated symbol: rulers and frames are few tokens.
const RUN: u8 = 3;

/// The longest row of letters that can be a word, and what each letter beyond it counts at least: common syllables that
/// are repeated are about one token for three letters.
const LONGEST_WORD: u32 = 24;
const BEYOND_WORD: u8 = 30;

/// Rows are the byte before, columns the byte after: space, line break, small letter, capital, digit, symbol.
#[rustfmt::skip]
const BETWEEN: [[u8; 6]; 6] = [
    [  2,   0,  22,   0, 111,  53],
    [106,   2, 105,  98, 104,  95],
    [ 68, 125,   0, 117,  80,  85],
    [ 97, 100,   0,   0,  90, 101],
    [ 99, 104,  86,  94,  34,  77],
    [106,  11,  65,  72,  75,  16],
];

/// Within a word: a pair of letters that words are made of, and any other. Small, capital before small, capitals.
const WITHIN: [(u8, u8); 3] = [(0, 70), (6, 70), (4, 51)];

/// A character of two bytes, of three, of a CJK script, of four.
const CHARACTERS: [u8; 4] = [29, 41, 64, 190];

/// For each letter, those that often follow it in words.
const FOLLOWERS: [&str; 26] = [
    "abcdegiklmnprstuvy", "aeiloruy", "aehiklorstu", "abcdeiosu", "abcdefgilmnpqrstvwxy", "aefiloru", "ehiru",
    "aeiortw", "abcdefglmnoprstvz", "", "eis", "adefilostuy", "adeilmops", "acdefgiklnopstu", "cdfghklmnoprstuvw",
    "aeiloprstu", "u", "acdegikmnorstuvy", "acehiklopstuy", "acehilmoprstuy", "bcdeilmnprst", "aei", "aehinor",
    "t", "nops", "e",
];

static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = class_of(byte);
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

static PAIRS: [[Pair; 64]; 64] = {
    let mut pairs = [[Pair { kind: 0, weight: 0 }; 64]; 64];
    let mut from = 0;
    while from < 64 {
        let mut to = 0;
        while to < 64 {
            pairs[from as usize][to as usize] = pair_of(from, to);
            to += 1;
        }
        from += 1;
    }
    pairs
};

const fn class_of(byte: u8) -> u8 {
    match byte {
        b' ' => SPACE,
        0..b' ' | 0x7f => BREAK,
        b'a'..=b'z' => byte - b'a',
        b'A'..=b'Z' => byte - b'A' + CAPITAL,
        b'0'..=b'9' => DIGIT,
        0x80..0xc0 => LATER,
        0xc0..0xe0 => FIRST,
        0xe3..0xee => FIRST_OF_CJK,
        0xe0..0xf0 => FIRST + 1,
        0xf0.. => FIRST + 3,
        _ => SYMBOL,
    }
}

const fn pair_of(from: u8, to: u8) -> Pair {
    if to >= LATER {
        let weight = if to == LATER || to > FIRST + 3 { 0 } else { CHARACTERS[(to - FIRST) as usize] };
        return Pair { kind: if to == FIRST_OF_CJK { CJK } else { SCRIPTS }, weight };
    }
    // A letter after one of another script goes on with its word, and a space ends it.
    if from >= LATER && to < SPACE {
        return Pair { kind: LETTERS, weight: WITHIN[0].0 };
    }
    if from >= LATER && to == SPACE {
        return Pair { kind: SCRIPTS, weight: 0 };
    }
    let kind = match (from, to) {
        (DIGIT, DIGIT) => DIGITS,
        (_, 0..SPACE) | (0..SPACE, SPACE) => LETTERS,
        _ => SYMBOLS,
    };
    let weight = if from < SPACE && to < SPACE && (from >= CAPITAL || to < CAPITAL) {
        let shape = if from < CAPITAL {
            0
        } else if to < CAPITAL {
            1
        } else {
            2
        };
        let (often, seldom) = WITHIN[shape];
        if is_often(from % CAPITAL, to % CAPITAL) { often } else { seldom }
    } else {
        BETWEEN[row_of(from)][row_of(to)]
    };
    Pair { kind, weight }
}

const fn row_of(class: u8) -> usize {
    match class {
        SPACE => 0,
        BREAK => 1,
        CAPITAL..SPACE => 3,
        DIGIT => 4,
        SYMBOL => 5,
        _ => 2,
    }
}

const fn is_often(letter: u8, next: u8) -> bool {
    let followers = FOLLOWERS[letter as usize].as_bytes();
    let mut at = 0;
    while at < followers.len() {
        if followers[at] == b'a' + next {
            return true;
        }
        at += 1;
    }
    false
}
