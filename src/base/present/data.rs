//! Shortens data that is too large: lists are cut to their first items, with the exact total count.

use serde_json::{Map, Value, json};

use crate::base::{output::Kept, text};

/// Shortens `data` to at most about `most` bytes of JSON. A list becomes
/// `{"items": […], "total_count": N, "note": …}`; the largest list or text inside an object is cut in the same way.
/// `kept` says where the rest can be read.
pub fn fit_data(data: &Value, most: usize, kept: Option<&Kept>) -> Value {
    if fits_data(data, most) {
        return data.clone();
    }
    match data {
        Value::Array(items) => first_items(items, most, kept),
        Value::Object(fields) => fit_fields(fields, most, kept),
        Value::String(text) => Value::String(cut_text(text, most, kept)),
        other => other.clone(),
    }
}

/// True if [`fit_data`] leaves `data` whole.
pub(super) fn fits_data(data: &Value, most: usize) -> bool {
    data.to_string().len() <= most
}

fn first_items(items: &[Value], most: usize, kept: Option<&Kept>) -> Value {
    let mut used = 0;
    let shown: Vec<&Value> = items
        .iter()
        .take_while(|item| {
            used += item.to_string().len() + 1;
            used <= most
        })
        .collect();
    let rest = kept.map_or_else(|| "the rest is left out".to_owned(), Kept::notice);
    let note = format!("the first {} of {} items; {rest}", shown.len(), items.len());
    json!({ "items": shown, "total_count": items.len(), "note": note })
}

/// Shortens the fields: each gets its share, and the large ones get what the small ones leave.
fn fit_fields(fields: &Map<String, Value>, most: usize, kept: Option<&Kept>) -> Value {
    let mut sizes: Vec<(usize, &String)> =
        fields.iter().map(|(name, value)| (value.to_string().len() + name.len() + 4, name)).collect();
    sizes.sort_unstable();
    let mut room = most;
    let mut fitted = Map::new();
    for (at, (size, name)) in sizes.iter().enumerate() {
        let share = room / (sizes.len() - at);
        fitted.insert((*name).clone(), fit_data(&fields[*name], share.saturating_sub(name.len() + 4), kept));
        room = room.saturating_sub(share.min(*size));
    }
    fields
        .keys()
        .filter_map(|name| fitted.remove(name).map(|value| (name.clone(), value)))
        .collect::<Map<_, _>>()
        .into()
}

fn cut_text(text: &str, most: usize, kept: Option<&Kept>) -> String {
    let head = text::take_head(text, most * 2 / 3);
    let tail = text::take_tail(text, most / 3);
    let how = kept.map_or(String::new(), |kept| format!("; {}", kept.notice()));
    format!("{head}\n[… {} bytes left out{how} …]\n{tail}", text.len() - head.len() - tail.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_says_how_many_there_were() {
        let list: Vec<u64> = (0..1000).collect();
        let fitted = fit_data(&json!({"files": list, "path": "src"}), 100, None);
        assert_eq!((fitted["path"].as_str(), fitted["files"]["total_count"].as_u64()), (Some("src"), Some(1000)));
        let kept = fitted["files"]["items"].as_array().expect("a list").len();
        assert!(kept > 5 && kept < 50, "{fitted}");
        assert_eq!(fitted.as_object().expect("an object").keys().collect::<Vec<_>>(), ["files", "path"]);
    }

    #[test]
    fn what_fits_is_untouched() {
        let data = json!({"a": [1, 2, {"b": "c"}]});
        assert_eq!(fit_data(&data, 1000, None), data);
    }
}
