//! The seal of a line of a log or a journal: its last field is a checksum of everything before it, so that damage is noticed
//! where the line still is JSON. CRC-32 notices every change within 32 bits in a row.
//!
//! Format 2 of session logs has no seals. A log of it that is continued has them from there on.

/// What stands before the eight digits, and after them.
const BEFORE: &[u8] = br#","sum":""#;
const AFTER: &[u8] = br#""}"#;
const DIGITS: usize = 8;

/// Seals the JSON object in `out` that begins at `from`.
pub fn seal_line(out: &mut Vec<u8>, from: usize) {
    out.pop();
    let sum = sum_bytes(&out[from..]);
    out.extend([BEFORE, &write_digits(sum), AFTER].concat());
}

/// Judges the lines of a log, in their order.
#[derive(Debug, Clone, Copy, Default)]
pub struct SealCheck {
    /// True if the lines from here on have seals.
    is_sealed: bool,
}

impl SealCheck {
    /// A check of lines that all have seals.
    pub fn of_sealed(is_sealed: bool) -> Self {
        Self { is_sealed }
    }

    /// True unless the line was changed since it was written.
    pub fn is_sound(&mut self, line: &[u8]) -> bool {
        let sound = has_seal(line);
        self.is_sealed |= sound == Some(true);
        sound.unwrap_or(!self.is_sealed)
    }
}

/// True if the line has the seal that belongs to it, false if it has another; `None` if it has none.
pub fn has_seal(line: &[u8]) -> Option<bool> {
    let body = line.strip_suffix(b"\n").unwrap_or(line).strip_suffix(AFTER)?;
    let (body, digits) = body.split_at_checked(body.len().checked_sub(DIGITS)?)?;
    let body = body.strip_suffix(BEFORE)?;
    Some(digits == write_digits(sum_bytes(body)))
}

fn write_digits(sum: u32) -> [u8; DIGITS] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    std::array::from_fn(|place| HEX[(sum >> (28 - 4 * place)) as usize & 15])
}

/// CRC-32 (that of gzip), eight bytes at a time.
fn sum_bytes(bytes: &[u8]) -> u32 {
    static TABLES: [[u32; 256]; 8] = make_tables();
    let mut sum = u32::MAX;
    let mut blocks = bytes.chunks_exact(8);
    for block in &mut blocks {
        let low = sum.to_le_bytes();
        let mixed: [u8; 8] = std::array::from_fn(|at| block[at] ^ low.get(at).copied().unwrap_or(0));
        sum = (0..8).fold(0, |sum, at| sum ^ TABLES[7 - at][mixed[at] as usize]);
    }
    for byte in blocks.remainder() {
        sum = (sum >> 8) ^ TABLES[0][(sum.to_le_bytes()[0] ^ byte) as usize];
    }
    !sum
}

/// For each byte, what it does to the sum: at the end, and with one to seven bytes after it.
const fn make_tables() -> [[u32; 256]; 8] {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256_u32 {
        let (mut sum, mut bit) = (byte, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        tables[0][byte as usize] = sum;
        byte += 1;
    }
    let mut after = 1;
    while after < 8 {
        byte = 0;
        while byte < 256 {
            let before: u32 = tables[after - 1][byte as usize];
            tables[after][byte as usize] = (before >> 8) ^ tables[0][(before & 255) as usize];
            byte += 1;
        }
        after += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_gzip() {
        for (text, sum) in
            [("", 0), ("123456789", 0xcbf4_3926), ("The quick brown fox jumps over the lazy dog", 0x414f_a339)]
        {
            assert_eq!(sum_bytes(text.as_bytes()), sum, "{text}");
        }
    }

    #[test]
    fn every_flipped_bit_of_a_line_is_noticed() {
        let mut line = br#"{"type":"said","n":1,"text":"hello"}"#.to_vec();
        seal_line(&mut line, 0);
        assert_eq!(has_seal(&line), Some(true));
        for bit in 0..8 * line.len() {
            let mut changed = line.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!SealCheck::of_sealed(true).is_sound(&changed), "{}", String::from_utf8_lossy(&changed));
        }
    }

    #[test]
    fn lines_need_a_seal_once_there_was_one() {
        let (plain, mut sealed) = (br#"{"type":"restored"}"#, br#"{"type":"restored"}"#.to_vec());
        seal_line(&mut sealed, 0);
        let mut check = SealCheck::default();
        let judged = [&plain[..], &sealed, plain].map(|line| check.is_sound(line));
        assert_eq!(judged, [true, true, false]);
    }
}
