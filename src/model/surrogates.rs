//! Halves of surrogate pairs in JSON texts, written by servers that cut text between UTF-16 units.

/// Replaces halves of surrogate pairs in the strings of a JSON text by replacement characters. `None` if there are
/// none.
pub(super) fn without_lone(json: &[u8]) -> Option<Vec<u8>> {
    const ESCAPE: usize = 6;
    let unit = |at: usize| {
        let escape = json.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
    };
    let (mut out, mut at, mut found) = (Vec::with_capacity(json.len()), 0, false);
    while at < json.len() {
        let (taken, replaced) = match (unit(at), unit(at + ESCAPE)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (2 * ESCAPE, false),
            (Some(0xd800..=0xdfff), _) => (ESCAPE, true),
            (Some(_), _) => (ESCAPE, false),
            // An escaped backslash does not begin an escape.
            (None, _) => (if json[at] == b'\\' { 2 } else { 1 }, false),
        };
        let end = (at + taken).min(json.len());
        if replaced {
            out.extend_from_slice(b"\\ufffd");
        } else {
            out.extend_from_slice(&json[at..end]);
        }
        found |= replaced;
        at = end;
    }
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_a_pair() {
        for (json, mended) in [
            (r#""a\ud83d""#, Some(r#""a\ufffd""#)),
            (r#""\ude42b""#, Some(r#""\ufffdb""#)),
            (r#""\ud83d\ude42""#, None),
            (r#""\ud83d\n\ud83d\ude42""#, Some(r#""\ufffd\n\ud83d\ude42""#)),
            (r#""\\ud83d""#, None),
            (r#""\u00e9""#, None),
            ("\"\\", None),
        ] {
            let read = without_lone(json.as_bytes()).map(|json| String::from_utf8(json).expect("UTF-8"));
            assert_eq!(read.as_deref(), mended, "{json}");
        }
    }
}
