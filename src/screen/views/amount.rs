//! Formats amounts for people.

/// Estimates the tokens of a text, at four bytes per token.
pub fn estimate_tokens(bytes: usize) -> u64 {
    bytes as u64 / 4
}

/// Formats a number of tokens: `420`, `1.2k`, `3.4M`.
pub fn format_tokens(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// Formats a time: `340 ms`, `1.2 s`, `2 min 05 s`, `1 h 02 min`.
pub fn format_elapsed(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {:02} s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{} h {:02} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        for (count, expected) in
            [(0, "0"), (999, "999"), (1000, "1.0k"), (81_960, "81.9k"), (999_999, "999.9k"), (3_450_000, "3.4M")]
        {
            assert_eq!(format_tokens(count), expected);
        }
        for (ms, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1.0 s"),
            (59_999, "59.9 s"),
            (125_000, "2 min 05 s"),
            (3_720_000, "1 h 02 min"),
        ] {
            assert_eq!(format_elapsed(ms), expected);
        }
    }
}
