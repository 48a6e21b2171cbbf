//! docs/models.md: its tables name what there is, and each row is reached as it says.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use agent::facade::model::PROVIDERS;
use agent::facade::model::dialect;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/models.md")
}

/// The text between the marks of a name, and its range.
fn marked<'t>(text: &'t str, name: &str) -> (usize, &'t str) {
    let (begin, end) = (format!("<!-- {name} -->\n\n"), format!("\n<!-- /{name} -->"));
    let from = text.find(&begin).expect("a mark") + begin.len();
    let length = text[from..].find(&end).expect("a closing mark");
    (from, &text[from..from + length])
}

/// The dialect of an address, and its wire.
fn spoken(base_url: &str, chosen: Option<&str>, model: &str) -> (String, &'static str) {
    let address = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let address = address.split('?').next().unwrap_or_default();
    let dialect = dialect::resolve_dialect(chosen, address, model).expect("a dialect");
    let wire = dialect.wire.map_or("chat", |wire| wire.name());
    (dialect.name, wire)
}

#[test]
fn the_table_of_providers_is_the_programs_own() {
    let mut table = String::from("| `-m` | key | wire | dialect | `base_url` |\n|---|---|---|---|---|\n");
    for provider in PROVIDERS {
        let model = provider.small.first().unwrap_or(&"ID");
        let keys: Vec<String> = provider.keys.iter().map(|key| format!("`{key}`")).collect();
        let keys = if keys.is_empty() { "–".to_owned() } else { keys.join(" or ") };
        let (dialect, _) = spoken(provider.base_url, None, model);
        let (id, wire, base_url) = (provider.id, provider.wire.name(), provider.base_url);
        let _ = writeln!(table, "| `{id}/{model}` | {keys} | {wire} | `{dialect}` | `{base_url}` |");
    }
    let text = fs::read_to_string(path()).expect("the docs");
    let (from, shown) = marked(&text, "providers");
    if std::env::var_os("BLESS").is_some() {
        let rest = &text[from + shown.len()..];
        fs::write(path(), format!("{}{table}{rest}", &text[..from])).expect("written");
    } else {
        assert_eq!(shown, table, "BLESS=1 writes the table into docs/models.md");
    }
}

#[test]
fn the_table_of_dialects_has_each_once_and_each_row_is_reached_as_it_says() {
    let text = fs::read_to_string(path()).expect("the docs");
    let (_, table) = marked(&text, "dialects");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(2)
        .map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect())
        .collect();
    let named: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(named, dialect::list_names().collect::<Vec<_>>(), "docs/models.md names every dialect, in order");
    for row in rows {
        let [name, base_url, _, model, wire, ..] = row[..] else { panic!("{row:?}") };
        let (base_url, chosen) = match base_url.split_once("` and `dialect: ") {
            Some((base_url, chosen)) => (base_url, Some(chosen)),
            None => (base_url, None),
        };
        let (got, speaks) = spoken(base_url, chosen, model);
        assert_eq!((got.as_str(), speaks), (name, wire), "{base_url}");
    }
}
