//! The tokens of a vocabulary, found by their bytes. The program contains a vocabulary as pairs of earlier tokens
//! (`build/vocabulary.rs`); loading it unfolds them once, into one buffer and one open table.
//!
//! Tokens are in the buffer in the order of their ranks, so their places represent the ranks, which are not stored.

/// The beginning of a token in the buffer: less than the place of every token of a higher rank.
pub type TokenPlace = u32;

/// Bits of a place.
pub const PLACE_BITS: u32 = 24;

/// The tokens that are single bytes. They come first.
const BYTES: usize = 256;

pub struct TokenTable {
    /// Each token: its length in one byte, then its bytes.
    tokens: Vec<u8>,
    /// Open addressing, probed one by one. The place of a token, and above it bits of its hash, so that few tokens are
    /// compared in vain. Zero is an empty slot: the place of the very first token, a single byte, which nobody looks
    /// up.
    slots: Vec<u32>,
    longest: usize,
}

impl TokenTable {
    /// Unfolds a packed vocabulary.
    pub fn unfold(packed: &[u8]) -> Self {
        let (count, packed) = packed.split_first_chunk().expect("the build writes how many there are");
        let (bytes, pairs) = packed.split_at(BYTES);
        let count = u32::from_le_bytes(*count) as usize;
        let mut pairs = Bits { bytes: pairs, at: 0 };
        // A token has seven bytes on average.
        let mut tokens = Vec::with_capacity(count * 8);
        let mut places: Vec<TokenPlace> = Vec::with_capacity(count);
        for rank in 0..count {
            let start = tokens.len();
            places.push(make_place(start));
            tokens.push(1);
            if let Some(byte) = bytes.get(rank) {
                tokens.push(*byte);
                continue;
            }
            let width = usize::BITS - (rank - 1).leading_zeros();
            for half in [pairs.take(width), pairs.take(width)] {
                let from = places[half] as usize + 1;
                tokens.extend_from_within(from..from + usize::from(tokens[from - 1]));
            }
            let length = tokens.len() - start - 1;
            tokens[start] = u8::try_from(length).expect("the build checks the length of each token");
        }
        let mut table = Self { slots: vec![0; (count * 2).next_power_of_two()], tokens, longest: 0 };
        for place in places.into_iter().skip(BYTES) {
            table.insert(place);
        }
        table
    }

    /// The place of the token with these bytes; `None` for a single byte, which is never looked up.
    pub fn find(&self, bytes: &[u8]) -> Option<TokenPlace> {
        if bytes.len() > self.longest {
            return None;
        }
        let hash = hash_bytes(bytes);
        let mut at = self.first_slot(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if slot >> PLACE_BITS == mark_hash(hash) && self.token(slot & PLACES) == bytes {
                return Some(slot & PLACES);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// The bytes of the token at a place.
    pub fn token(&self, place: TokenPlace) -> &[u8] {
        let start = place as usize + 1;
        &self.tokens[start..start + usize::from(self.tokens[start - 1])]
    }

    fn insert(&mut self, place: TokenPlace) {
        let token = self.token(place);
        let (hash, length) = (hash_bytes(token), token.len());
        self.longest = self.longest.max(length);
        let mut at = self.first_slot(hash);
        while self.slots[at] != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = mark_hash(hash) << PLACE_BITS | place;
    }

    fn first_slot(&self, hash: u32) -> usize {
        (hash >> (u32::BITS - self.slots.len().trailing_zeros())) as usize
    }
}

/// The bits of a slot that are its place.
const PLACES: u32 = (1 << PLACE_BITS) - 1;

fn make_place(start: usize) -> TokenPlace {
    TokenPlace::try_from(start).ok().filter(|place| *place <= PLACES).expect("a vocabulary has a few megabytes")
}

/// The bits of a hash that a slot keeps: not those that find the slot.
fn mark_hash(hash: u32) -> u32 {
    hash & 0xff
}

/// A hash of short strings, eight bytes at a time.
fn hash_bytes(bytes: &[u8]) -> u32 {
    /// Odd, with bits in no order.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let last = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    // The high bits of a product are the well mixed ones.
    (mix(hash, last).wrapping_mul(FACTOR) >> 32) as u32
}

/// Reads numbers of up to 25 bits, the lowest bit first.
struct Bits<'a> {
    bytes: &'a [u8],
    /// The number of bits that were read.
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, width: u32) -> usize {
        let word = self.bytes[self.at / 8..].first_chunk().expect("the build adds spare bytes at the end");
        let number = u32::from_le_bytes(*word) >> (self.at % 8) & ((1 << width) - 1);
        self.at += width as usize;
        number as usize
    }
}
