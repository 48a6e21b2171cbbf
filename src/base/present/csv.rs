//! CSV (RFC 4180), the smallest form for tables of uniform records.

use serde_json::Value;

/// The table, if `data` is a list of at least two records with the same keys and plain values.
pub(super) fn write_table(data: &Value) -> Option<String> {
    let rows = data.as_array().filter(|rows| rows.len() > 1)?;
    let header: Vec<&String> = rows[0].as_object()?.keys().collect();
    let mut lines = vec![header.iter().map(|name| write_cell(name)).collect::<Vec<_>>().join(",")];
    for row in rows {
        let row = row.as_object().filter(|row| row.keys().eq(header.iter().copied()))?;
        let cells: Option<Vec<String>> = row.values().map(write_plain).collect();
        lines.push(cells?.join(","));
    }
    Some(lines.join("\n"))
}

fn write_plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(write_cell(text)),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn write_cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn uniform_records_become_a_table_and_nothing_else_does() {
        let records = json!([{"path": "a,b", "line": 1}, {"path": "say \"hi\"", "line": null}]);
        assert_eq!(write_table(&records).as_deref(), Some("path,line\n\"a,b\",1\n\"say \"\"hi\"\"\","));
        for other in [json!([{"a": 1}]), json!([{"a": 1}, {"b": 1}]), json!([{"a": []}, {"a": []}]), json!([1, 2])]
        {
            assert_eq!(write_table(&other), None, "{other}");
        }
    }
}
