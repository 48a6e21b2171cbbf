//! Tells a person, once a day, that the provider ends the model that they use.

use std::path::Path;

use jiff::civil::Date;

use crate::files::private::make_private_dir;
use crate::files::regular::{read_regular, replace_file};
use crate::model::ModelInfo;

/// The days before its end from which on a model's end is told.
const NOTICE: i32 = 30;

/// The file that says what was told: the day, and the models of that day.
const TOLD: &str = "model-ends";

/// The warning about the end of a model, unless it was given today or nobody has configured the model yet.
pub(super) fn warn_of_end(info: &ModelInfo, state_dir: &Path, today: Date) -> Option<String> {
    let ends = info.ends.filter(|_| info.configured)?;
    let days = ends.since(today).ok()?.get_days();
    if days > NOTICE {
        return None;
    }
    let (path, id) = (state_dir.join(TOLD), &info.id);
    let told = read_regular(&path).ok().flatten().filter(|told| told.starts_with(&today.to_string()));
    let told = told.unwrap_or_else(|| format!("{today}\n"));
    if told.lines().any(|line| line == id) {
        return None;
    }
    // What cannot be written is told again.
    let _ = make_private_dir(state_dir).and_then(|()| replace_file(&path, format!("{told}{id}\n").as_bytes()));
    let when = if days < 0 { "ended" } else { "ends" };
    Some(format!(
        "the provider's {id} {when} on {ends}: `agent model list` shows others (-m, or `model` in its file)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_within_a_month_is_told_once_a_day() {
        let dir = tempfile::tempdir().expect("a directory");
        let day = |text: &str| text.parse::<Date>().expect("a date");
        let model = |id: &str, ends: Option<&str>| ModelInfo {
            id: id.to_owned(),
            ends: ends.map(day),
            ..crate::agent::window::tests::desk::model(1000)
        };
        let told = |info: &ModelInfo, today: &str| warn_of_end(info, dir.path(), day(today));
        let ending = model("old", Some("2026-12-20"));
        assert_eq!(told(&ending, "2026-11-01"), None, "too early");
        assert!(told(&ending, "2026-11-27").expect("told").contains("ends on 2026-12-20"));
        assert_eq!(told(&ending, "2026-11-27"), None, "once");
        assert!(told(&model("older", Some("2026-11-01")), "2026-11-27").expect("told").contains("ended on"));
        assert_eq!(told(&ending, "2026-11-27"), None, "both are remembered");
        assert!(told(&ending, "2026-11-28").is_some(), "the next day");
        assert_eq!(told(&model("new", None), "2026-11-27"), None);
        let unconfigured = ModelInfo { configured: false, ..model("oldest", Some("2026-12-20")) };
        assert_eq!(told(&unconfigured, "2026-11-27"), None, "who has no model yet has another worry");
    }
}
