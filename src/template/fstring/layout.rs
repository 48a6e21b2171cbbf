//! The alignment of text and numbers in their field.

/// A parsed spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spec {
    pub fill: char,
    /// `0` is a zero before the width: like `=` for numbers.
    pub align: Option<char>,
    pub sign: char,
    pub alternate: bool,
    pub width: usize,
    pub grouping: Option<char>,
    pub precision: Option<usize>,
    pub kind: Option<char>,
}

/// Pads to the width. `body` is the text after the sign; `default` is the alignment unless the spec has one.
pub(super) fn pad_text(sign: &str, body: &str, spec: Spec, default: char) -> String {
    let missing = spec.width.saturating_sub(sign.chars().count() + body.chars().count());
    let fill = |count: usize| spec.fill.to_string().repeat(count);
    match spec.align.unwrap_or(default) {
        '<' => format!("{sign}{body}{}", fill(missing)),
        '^' => format!("{}{sign}{body}{}", fill(missing / 2), fill(missing - missing / 2)),
        '=' => format!("{sign}{}{body}", fill(missing)),
        _ => format!("{}{sign}{body}", fill(missing)),
    }
}
