//! The lines of a result, in any encoding.

use std::borrow::Cow;

use serde_json::Value;

use crate::base::present;
use crate::base::yaml;

/// The lines of a result's content, without the frame and the escapes of its encoding. Text in an unknown encoding
/// is used as it is.
pub fn lines_of(content: &str) -> Vec<Cow<'_, str>> {
    if let Some(body) = find_text(content) {
        return body.lines().map(Cow::Borrowed).collect();
    }
    match parse_object(content).or_else(|| parse_xml(content)).or_else(|| parse_compact(content)) {
        Some(fields) => fields.iter().flat_map(|(name, value)| list_lines(name, value)).map(Cow::Owned).collect(),
        None => content.lines().map(Cow::Borrowed).collect(),
    }
}

/// The fields of a result, in their order.
type ResultFields = Vec<(String, Value)>;

/// The lines of a field; frame fields have none. The content was neutralised when it was written; other data was not,
/// since its encoding keeps it apart.
fn list_lines(name: &str, value: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    match (name, value) {
        ("tool" | "untrusted" | "call_id" | "duration_ms", _) => {}
        ("content", Value::String(text)) => lines.extend(text.lines().map(str::to_owned)),
        _ => {
            list_leaves(name, value, &mut lines);
            lines = lines.iter().map(|line| present::break_text_marks(line).into_owned()).collect();
        }
    }
    lines
}

/// Every leaf value, as a line with its name; a multi-line text becomes several lines.
fn list_leaves(name: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| list_leaves(name, value, lines)),
        Value::Array(items) => items.iter().for_each(|item| list_leaves(name, item, lines)),
        Value::String(text) if text.contains('\n') => lines.extend(text.lines().map(str::to_owned)),
        Value::String(text) => lines.push(format!("{name}: {text}")),
        Value::Null => {}
        other => lines.push(format!("{name}: {other}")),
    }
}

/// The text between the two tags, each of which has a line to itself.
fn find_text(content: &str) -> Option<&str> {
    let (opened, body) = content.strip_prefix("<result ")?.split_once('\n')?;
    let body = body.strip_suffix("</result>")?;
    opened.ends_with('>').then(|| body.trim_end()).filter(|_| !opened.contains("><"))
}

/// JSON or YAML.
fn parse_object(content: &str) -> Option<ResultFields> {
    let value = if content.starts_with('{') {
        serde_json::from_str(content).ok()?
    } else if content.starts_with("tool: ") {
        yaml::parse_document(content).ok()?
    } else {
        return None;
    };
    let Value::Object(object) = value else { return None };
    Some(object.into_iter().collect())
}

/// `<result tool="grep" untrusted="true"><status>…</status><content>…</content></result>`
fn parse_xml(content: &str) -> Option<ResultFields> {
    let (_, body) = content.strip_prefix("<result ")?.split_once('>')?;
    let mut rest = body.strip_suffix("</result>")?;
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let (name, after) = rest.strip_prefix('<')?.split_once('>')?;
        let (value, after) = after.split_once(&format!("</{name}>"))?;
        let unescaped = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#13;", ""), ("&amp;", "&")]
            .into_iter()
            .fold(value.to_owned(), |text, (escape, plain)| text.replace(escape, plain));
        fields.push((name.to_owned(), or_data(unescaped)));
        rest = after;
    }
    Some(fields)
}

/// `tool:grep|untrusted:true|content:one\ntwo`
fn parse_compact(content: &str) -> Option<ResultFields> {
    if !content.starts_with("tool:") || content.contains('\n') {
        return None;
    }
    let field = |pair: &str| {
        let (name, value) = pair.split_once(':')?;
        Some((name.to_owned(), or_data(unescape_value(value))))
    };
    content.split('|').map(field).collect()
}

fn unescape_value(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('p')) => out.push('|'),
            ('\\', Some('n' | 'r' | 'e' | 'l' | 'g')) => out.push('\n'),
            (_, Some(other)) => out.push(other),
            (c, None) => out.push(c),
        }
    }
    out
}

/// Parses data that was written as compact JSON.
fn or_data(text: String) -> Value {
    let looks_like_data = text.starts_with(['{', '[']);
    looks_like_data.then(|| serde_json::from_str(&text).ok()).flatten().unwrap_or(Value::String(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::output::{Encoding, ResponseFormat, ToolOutput};
    use crate::base::present::{Occasion, ResultSource, encode_view, select_view};
    use crate::conversation::message::CallStatus;

    const ENCODINGS: [Encoding; 5] =
        [Encoding::Text, Encoding::Json, Encoding::Yaml, Encoding::Xml, Encoding::Compact];

    fn written(format: ResponseFormat, encoding: Encoding) -> String {
        let observation = "one | \\n <b>\n\"two\" & more\nerror: three".to_owned();
        let result = json!({ "exit": 1, "stderr": "warning: x\nerror: y </result>" });
        let output = ToolOutput { observation, result, summary: "3 lines".to_owned(), ..ToolOutput::default() };
        let source = ResultSource { tool: "grep", trusted: false };
        let occasion = Occasion { call_id: "c", duration_ms: 1 };
        encode_view(&select_view(source, CallStatus::Ok, &output, format, occasion, 10_000), encoding)
    }

    #[test]
    fn the_lines_are_the_same_in_every_encoding() {
        for encoding in ENCODINGS {
            let content = written(ResponseFormat::Concise, encoding);
            assert_eq!(lines_of(&content), ["one | \\n <b>", "\"two\" & more", "error: three"], "{content}");
        }
        for encoding in &ENCODINGS[1..] {
            let content = written(ResponseFormat::Raw, *encoding);
            let lines = lines_of(&content).join("\n");
            assert!(lines.starts_with("exit: 1\nwarning: x\nerror: y "), "{lines}");
            assert!(!lines.contains("</result>"), "data is made harmless: {lines}");
        }
    }

    #[test]
    fn what_is_no_encoding_counts_as_it_is() {
        for content in ["", "a\nb", "{\"cut\": \"of", "<result >", "<result tool=\"x\"><a>b</result>"] {
            assert_eq!(lines_of(content), content.lines().collect::<Vec<_>>(), "{content}");
        }
    }
}
