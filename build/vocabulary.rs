//! Packs the vocabulary of the tokenizer, and the classes of characters by which it splits text, for `src/base/tokens/`.
//!
//! A packed vocabulary has the number of its tokens (four bytes, the lowest first), the 256 bytes in the order of their
//! ranks, and for each further token the ranks of the two earlier ones that it joins. A rank takes as many bits as the
//! rank of its token requires, the lowest first. Three spare bytes follow, so that four can be read wherever a rank
//! begins. That is half the size of lengths and bytes, and as small as xz makes those.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;

use regex_syntax::hir::{Class, HirKind};
use tiktoken_rs::CoreBPE;

/// The classes in the order of `src/base/tokens/split.rs`; characters in none have the number of classes.
const CLASSES: [&str; 7] =
    [r"[\p{Lu}\p{Lt}]", r"\p{Ll}", r"[\p{Lm}\p{Lo}]", r"\p{M}", r"\p{N}", r"[\s--[\r\n]]", r"[\r\n]"];

/// Writes `o200k.bin` and `classes.rs`.
pub fn write() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(dir.join("o200k.bin"), packed(&tiktoken_rs::o200k_base()?)?)?;
    std::fs::write(dir.join("classes.rs"), classes()?)?;
    Ok(())
}

/// The ordinary tokens of a vocabulary. Special marks come after a gap in the ranks.
fn packed(vocabulary: &CoreBPE) -> Result<Vec<u8>, Box<dyn Error>> {
    let tokens: Vec<Vec<u8>> = (0..).map_while(|rank| vocabulary.decode_bytes(&[rank]).ok()).collect();
    if tokens.len() < 100_000 || tokens.iter().any(|token| token.len() > usize::from(u8::MAX)) {
        return Err("the vocabulary is not what src/base/tokens/table.rs reads".into());
    }
    let ranks: HashMap<&[u8], usize> = tokens.iter().enumerate().map(|(rank, token)| (&token[..], rank)).collect();
    let mut bits = Bits::default();
    bits.push(tokens.len() as u64, 32);
    for (rank, token) in tokens.iter().enumerate() {
        if rank < 256 {
            bits.push(u64::from(token[0]), 8);
            continue;
        }
        let halves = |cut: usize| Some((*ranks.get(&token[..cut])?, *ranks.get(&token[cut..])?));
        let (left, right) = (1..token.len())
            .filter_map(halves)
            .find(|(left, right)| *left.max(right) < rank)
            .ok_or_else(|| format!("token {rank} joins no two earlier ones"))?;
        let width = usize::BITS - (rank - 1).leading_zeros();
        bits.push(left as u64, width);
        bits.push(right as u64, width);
    }
    Ok(bits.finish())
}

/// Bits in bytes, the least significant first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    rest: u64,
    held: u32,
}

impl Bits {
    fn push(&mut self, value: u64, width: u32) {
        self.rest |= value << self.held;
        self.held += width;
        while self.held >= 8 {
            self.bytes.push((self.rest & 0xff) as u8);
            self.rest >>= 8;
            self.held -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.held > 0 {
            self.bytes.push((self.rest & 0xff) as u8);
        }
        self.bytes.extend([0; 3]);
        self.bytes
    }
}

/// An array with a number for each run of characters of one class: its first character, shifted by eight bits, and the
/// place of its class. They are read from the tables of the regular expressions that define the vocabularies, since
/// another version of Unicode would split newer characters differently.
fn classes() -> Result<String, Box<dyn Error>> {
    let none = u32::try_from(CLASSES.len())?;
    let mut starts = vec![(0, none)];
    for (place, pattern) in (0..).zip(CLASSES) {
        let HirKind::Class(Class::Unicode(class)) = regex_syntax::parse(pattern)?.into_kind() else {
            return Err(format!("{pattern} is not a class of characters").into());
        };
        for range in class.ranges() {
            starts.push((range.start() as u32, place));
            starts.push((range.end() as u32 + 1, none));
        }
    }
    // Where a run begins at the end of another, the beginning counts.
    starts.sort_unstable_by_key(|(start, place)| (*start, *place));
    starts.dedup_by_key(|(start, _)| *start);
    starts.dedup_by_key(|(_, place)| *place);
    let mut code = format!("[u32; {}] = [", starts.len());
    for (start, place) in starts {
        write!(code, "{},", start << 8 | place)?;
    }
    Ok(format!("#[expect(clippy::unreadable_literal, reason = \"nobody reads them\")]\nstatic RUNS: {code}];\n"))
}
