//! How long ago something was, in words.

use super::text::count_noun;

/// `5 minutes ago`; `just now` below a minute, and for what lies ahead.
pub fn describe_age(seconds: i64) -> String {
    const UNITS: [(i64, &str, &str); 4] = [
        (86_400 * 365, "year", "years"),
        (86_400, "day", "days"),
        (3600, "hour", "hours"),
        (60, "minute", "minutes"),
    ];
    let Some((unit, one, many)) = UNITS.into_iter().find(|(unit, ..)| seconds >= *unit) else {
        return "just now".to_owned();
    };
    format!("{} ago", count_noun(u64::try_from(seconds / unit).unwrap_or_default(), one, many))
}

#[cfg(test)]
mod tests {
    use super::describe_age;

    #[test]
    fn the_largest_unit_says_it() {
        for (seconds, words) in [
            (-5, "just now"),
            (59, "just now"),
            (60, "1 minute ago"),
            (7199, "1 hour ago"),
            (86_400 * 30, "30 days ago"),
            (86_400 * 800, "2 years ago"),
        ] {
            assert_eq!(describe_age(seconds), words);
        }
    }
}
