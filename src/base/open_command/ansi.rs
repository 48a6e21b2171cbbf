//! The escapes of `$'…'`.

/// What stands in `$'…'`, where `text` begins after the quote, and its length with the quote at its end, if that is there.
pub fn decode_quoted(text: &str) -> (String, Option<usize>) {
    let mut decoded = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' => return (decoded, Some(text.len() - rest.as_str().len())),
            '\\' => {
                let (radix, most) = match rest.as_str().chars().next() {
                    Some('x') => (16, 2),
                    Some('u') => (16, 4),
                    Some('U') => (16, 8),
                    _ => (8, 3),
                };
                let digits = rest.as_str().trim_start_matches(|c| radix == 16 && matches!(c, 'x' | 'u' | 'U'));
                let length = digits.chars().take(most).take_while(|c| c.is_digit(radix)).count();
                let number = u32::from_str_radix(&digits[..length], radix).ok();
                if number.is_some() {
                    rest = digits[length..].chars();
                    decoded.extend(number.and_then(char::from_u32));
                } else {
                    // What stands for a space or a control character is in no name that matters.
                    decoded.extend(rest.next());
                }
            }
            c => decoded.push(c),
        }
    }
    (decoded, None)
}
