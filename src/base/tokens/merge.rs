//! Byte pair encoding of one piece: of all neighbours that make a token together, those with the lowest rank are joined
//! first, the leftmost of them before the others. A heap of candidates keeps the time nearly linear in the length of
//! the piece, even for a megabyte.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::table::{PLACE_BITS, TokenPlace, TokenTable};

/// Counts the tokens of pieces, one after the other with the same buffers.
#[derive(Default)]
pub struct Merger {
    /// The length of the token that begins at a byte, 0 if none begins there.
    lengths: Vec<u8>,
    /// The length of the token that ends with a byte; undefined within a token.
    backs: Vec<u8>,
    /// Neighbours to join, unless one of them has been joined with another since.
    candidates: BinaryHeap<Reverse<MergeCandidate>>,
}

/// The place of the token that two neighbours make, and the beginning of the left one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MergeCandidate(u64);

impl MergeCandidate {
    const START_BITS: u32 = u64::BITS - PLACE_BITS;

    /// Only a piece larger than any memory would have its start cut off.
    fn new(place: TokenPlace, start: usize) -> Self {
        Self(u64::from(place) << Self::START_BITS | start as u64 & ((1 << Self::START_BITS) - 1))
    }

    fn parts(&self) -> (TokenPlace, usize) {
        ((self.0 >> Self::START_BITS) as TokenPlace, (self.0 & ((1 << Self::START_BITS) - 1)) as usize)
    }
}

impl Merger {
    /// Counts the tokens of a piece that is not a token itself.
    pub fn count(&mut self, table: &TokenTable, piece: &[u8]) -> u64 {
        let Self { lengths, backs, candidates } = self;
        for of_bytes in [&mut *lengths, &mut *backs] {
            of_bytes.clear();
            of_bytes.resize(piece.len(), 1);
        }
        let candidate = |start: usize, end: usize| {
            let place = table.find(&piece[start..end])?;
            Some(Reverse(MergeCandidate::new(place, start)))
        };
        candidates.clear();
        candidates.extend((1..piece.len()).filter_map(|middle| candidate(middle - 1, middle + 1)));
        let mut tokens = piece.len() as u64;
        while let Some(Reverse(next)) = candidates.pop() {
            let (place, start) = next.parts();
            let joined = table.token(place).len();
            let middle = start + usize::from(lengths[start]);
            let end = middle + lengths.get(middle).map_or(0, |right| usize::from(*right));
            if lengths[start] == 0 || middle == end || end - start != joined {
                continue;
            }
            lengths[middle] = 0;
            lengths[start] += backs[end - 1];
            backs[end - 1] = lengths[start];
            tokens -= 1;
            if let Some(right) = lengths.get(end) {
                candidates.extend(candidate(start, end + usize::from(*right)));
            }
            if let Some(before) = start.checked_sub(1) {
                candidates.extend(candidate(start - usize::from(backs[before]), end));
            }
        }
        tokens
    }
}
