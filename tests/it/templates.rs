//! Templates in three syntaxes: each form of each syntax is a case in `tests/template_cases/SYNTAX/NAME.yaml`. Those that
//! differ from the original are the tables of docs/templates.md. `.ci/templates` runs the cases through the originals.
//!
//! A case has a `template` and what it `gives`, or the `error` that it ends with, or the names that are `missing`.
//! Where the original gives something else, `original` (or `original_refuses`) says what; `original_any` leaves it out.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use agent::facade::template::{self, LONGEST_OUTPUT, Syntax, Template, TemplateError, Undefined, Value};
use proptest::prelude::{Strategy, any, prop_assert, prop_oneof, proptest};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    form: String,
    template: String,
    #[serde(default)]
    data: BTreeMap<String, serde_json::Value>,
    defaults: Option<serde_json::Value>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    lenient: bool,
    /// True if `datetime` is there.
    #[serde(default)]
    clock: bool,
    gives: Option<String>,
    error: Option<String>,
    line: Option<usize>,
    missing: Option<Vec<String>>,
    original: Option<String>,
    #[serde(default)]
    original_refuses: bool,
    #[serde(default, rename = "original_any")]
    _original_any: bool,
    differs: Option<String>,
    #[serde(rename = "needs")]
    _needs: Option<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cases(syntax: Syntax) -> Vec<(String, Case)> {
    let folder = root().join("tests/template_cases").join(syntax.name());
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("cases").map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a case");
        let case = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (format!("{syntax}/{}", path.file_stem().expect("a name").display()), case)
    };
    paths.into_iter().map(read).collect()
}

fn compile(syntax: Syntax, case: &Case) -> Result<Template, TemplateError> {
    let undefined = if case.lenient { Undefined::Empty } else { Undefined::Error };
    if case.files.is_empty() {
        return Template::compile_as(syntax, "case", &case.template, undefined);
    }
    let files = case.files.clone();
    Template::compile_with("case", &case.template, undefined, move |name| files.get(name).cloned())
}

fn render(syntax: Syntax, case: &Case) -> Result<String, TemplateError> {
    let mut names: Vec<(String, Value)> =
        case.data.iter().map(|(name, value)| (name.clone(), template::convert_value(value))).collect();
    if case.clock {
        let now = "2026-01-02T03:04:05+02:00[+02:00]".parse().expect("a moment");
        names.push(("datetime".to_owned(), template::make_clock(now)));
    }
    let mut context = template::make_object(names);
    if let Some(defaults) = &case.defaults {
        context = template::layer_values(context, template::convert_value(defaults));
    }
    compile(syntax, case)?.render(&context)
}

/// The difference of the outcome from the case; `None` if there is none.
fn difference(case: &Case, outcome: &Result<String, TemplateError>) -> Option<String> {
    match (outcome, &case.gives, &case.missing, &case.error) {
        (Ok(text), Some(gives), None, None) => (text != gives).then(|| format!("gives {text:?}, not {gives:?}")),
        (Err(error), None, Some(missing), None) => {
            (error.missing != *missing).then(|| format!("misses {:?}: {error}", error.missing))
        }
        (Err(error), None, None, Some(part)) => {
            let is_told = error.message.contains(part) && case.line.is_none_or(|line| error.line == Some(line));
            (!is_told).then(|| format!("another error: {error:?}"))
        }
        (Err(error), ..) => Some(format!("fails: {error:?}")),
        (Ok(text), ..) => Some(format!("gives {text:?} instead of an error, or the case says too much")),
    }
}

#[test]
fn every_form_of_every_syntax_gives_what_its_case_says() {
    let mut broken = Vec::new();
    for (_, syntax) in Syntax::NAMES {
        for (name, case) in cases(syntax) {
            broken.extend(difference(&case, &render(syntax, &case)).map(|how| format!("{name}: {how}")));
        }
    }
    assert!(broken.is_empty(), "{} cases:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn the_docs_list_the_cases_that_differ_from_the_originals() {
    let path = root().join("docs/templates.md");
    let mut text = fs::read_to_string(&path).expect("the docs");
    for (name, syntax) in Syntax::NAMES {
        let table = table(&cases(syntax));
        let (begin, end) = (format!("<!-- {name} -->\n\n"), format!("\n<!-- /{name} -->"));
        let from = text.find(&begin).expect("a mark") + begin.len();
        let to = from + text[from..].find(&end).expect("a closing mark");
        if std::env::var_os("BLESS").is_some() {
            text.replace_range(from..to, &table);
        } else {
            assert_eq!(&text[from..to], table, "BLESS=1 writes the tables into docs/templates.md");
        }
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, text).expect("written");
    }
}

/// Pieces that mean something in one of the syntaxes.
const FRAGMENTS: &[&str] = &[
    "{{", "}}", "{%", "%}", "{#", "#}", "{", "}", "{{-", "-}}", "{% for x in xs %}", "{% endfor %}", "{% if x %}",
    "{% endif %}", "{% set x = ", "{% macro m(a) %}", "{% endmacro %}", "{{ m(1) }}", "{{if .x}}", "{{end}}",
    "{{else}}", "{{range .xs}}", "{{define \"a\"}}", "{{template \"a\" .}}", "{{$x := .x}}",
    "{{printf \"%s%9d%v\" .x 1 .}}", ".x", "$x", "x", "xs", "user", "{x!r:>{n}}", "{xs[0]}", ":0>9,.3f", "!r",
    "|upper", "|join(x)", "|tojson", "|list", "(", ")", "[", "]", "~", "+", "*", "-", " ", "\n", "\"", "'", "`",
    "\\", "é", "\u{0}", "99999", "1.5", "nil", "and", "not", "is", "in", "|", ",", ":", ":=", "=", ".", "/*",
    "*/", "include \"a\"", "range(9)",
];

/// A template of a case that was cut, with other pieces in between.
fn mutated() -> impl Strategy<Value = (Syntax, String)> {
    let syntax = proptest::sample::select(Syntax::NAMES.map(|(_, syntax)| syntax).to_vec());
    // What only ends at a bound takes its time.
    let all: Vec<String> = Syntax::NAMES
        .iter()
        .flat_map(|(_, syntax)| cases(*syntax))
        .filter(|(name, _)| !name.contains("sandbox"))
        .map(|(_, case)| case.template)
        .collect();
    let cut = (proptest::sample::select(all), any::<proptest::sample::Index>(), any::<proptest::sample::Index>());
    let cut = cut.prop_map(|(text, one, other)| {
        let text: Vec<char> = text.chars().collect();
        let (one, other) = (one.index(text.len() + 1), other.index(text.len() + 1));
        text[one.min(other)..one.max(other)].iter().collect::<String>()
    });
    let fragment = proptest::sample::select(FRAGMENTS).prop_map(str::to_owned);
    let pieces = proptest::collection::vec(prop_oneof![2 => fragment, 1 => cut, 1 => "\\PC{0,4}"], 1..12);
    (syntax, pieces.prop_map(|pieces| pieces.concat()))
}

proptest! {
    #[test]
    fn no_template_breaks_out_of_its_bounds((syntax, source) in mutated(), strict in any::<bool>()) {
        let data = serde_json::json!({
            "x": "a {{ x }} {x} {{.x}}", "xs": ["b", 1, null, [2.5, true]], "user": {"name": "Ann", "n": {}}, "n": 7,
        });
        let undefined = if strict { Undefined::Error } else { Undefined::Empty };
        if let Ok(template) = Template::compile_as(syntax, "t", &source, undefined) {
            prop_assert!(template.variables().iter().all(|name| !name.is_empty()));
            match template.render(&template::convert_value(&data)) {
                Ok(text) => prop_assert!(text.len() <= LONGEST_OUTPUT),
                Err(error) => prop_assert!(!error.message.is_empty()),
            }
        }
    }
}

/// The cases in which the original gives something else, or has no such form.
fn table(cases: &[(String, Case)]) -> String {
    let mut table = String::from("| form | template | gives | the original |\n|---|---|---|---|\n");
    for (_, case) in cases {
        let original = match (&case.differs, &case.original) {
            (Some(differs), Some(original)) => format!("{}; {differs}", code(original)),
            (Some(differs), None) => differs.clone(),
            (None, Some(original)) => code(original),
            (None, None) if case.original_refuses => "does not have it".to_owned(),
            (None, None) => continue,
        };
        let gives = match (&case.gives, &case.missing) {
            (Some(gives), _) => code(gives),
            (None, Some(missing)) => format!("error: nothing defines {}", missing.join(", ")),
            (None, None) => format!("error: {}", case.error.as_deref().unwrap_or_default().replace('|', "\\|")),
        };
        let form = case.form.replace('|', "\\|");
        let _ = writeln!(table, "| {form} | {} | {gives} | {original} |", code(&case.template));
    }
    table
}

/// As code in a cell of a table.
fn code(text: &str) -> String {
    const LONGEST: usize = 100;
    if text.is_empty() {
        return "nothing".to_owned();
    }
    let line: String = text.replace('\n', "↵").replace('\t', "⇥").chars().take(LONGEST + 1).collect();
    let line = if line.chars().count() > LONGEST { format!("{}…", &line[..line.len() - 1]) } else { line };
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let room = if line.starts_with(['`', ' ']) || line.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{room}{}{room}{fence}", line.replace('|', "\\|"))
}
