//! Limits on the size of a reply. A server may be broken or hostile.

/// The most bytes of a reply: its text, its reasoning and its calls.
pub(super) const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The most calls that a reply can open. Far fewer are run.
pub(super) const MOST_CALLS: usize = 1024;
/// The longest name and the longest id of a call, in bytes.
pub(super) const LONGEST_NAME: usize = 256;
/// The most values in one event. Parsed, they take a hundred times the memory of their text.
const MOST_VALUES: usize = 64 * 1024;

/// Refuses a reply that has outgrown its bounds; the error says which.
pub(super) fn check_size(bytes: usize, calls: usize) -> Result<(), String> {
    if bytes > MOST_BYTES {
        return Err(format!("the reply is larger than {} MiB and was stopped there", MOST_BYTES / 1024 / 1024));
    }
    if calls > MOST_CALLS {
        return Err(format!("the reply opens more than {MOST_CALLS} calls and was stopped there"));
    }
    Ok(())
}

/// Refuses an event that would fill the memory, without parsing it.
pub(super) fn check_values(data: &[u8]) -> Result<(), String> {
    if data.len() <= MOST_VALUES || count_values(data) <= MOST_VALUES {
        return Ok(());
    }
    Err(format!("an event of the reply contains more than {MOST_VALUES} values"))
}

/// Estimates the number of values in a JSON text by counting what opens or separates one outside strings.
fn count_values(json: &[u8]) -> usize {
    let (mut count, mut at) = (0, 0);
    while let Some(next) = json.get(at) {
        match next {
            b'"' => at += measure_string(&json[at..]),
            b',' | b'[' | b'{' => {
                count += 1;
                at += 1;
            }
            _ => at += 1,
        }
    }
    count
}

/// The length of the string that `json` begins with, quotes included.
fn measure_string(json: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', json.get(at..).unwrap_or_default()) {
        at += found + 1;
        if json[at - 1] == b'"' {
            return at;
        }
        // An escaped quote does not end the string.
        at += 1;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_strings() {
        for (json, count) in [
            (r#"{"a":1}"#, 1),
            (r#"{"a":[1,2,{"b":3}],"c":"x,[{\",[{"}"#, 6),
            (r#""unclosed,[{"#, 0),
            (r#"{"a\"#, 1),
            ("", 0),
        ] {
            assert_eq!(count_values(json.as_bytes()), count, "{json}");
        }
        let dense = format!("[{}]", "0,".repeat(MOST_VALUES + 1));
        assert!(check_values(dense.as_bytes()).is_err());
        let text = format!("{{\"a\":\"{}\"}}", ",".repeat(MOST_VALUES * 2));
        assert_eq!(check_values(text.as_bytes()), Ok(()));
    }
}
