//! `--var`: parses the variables for prompts. Files are read later, where reading may fail.

use std::path::PathBuf;

use serde_json::Value;

/// A variable: its name and the source of its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Var {
    pub name: String,
    pub value: VarValue,
}

/// The source of a variable's value.
#[derive(Debug, Clone, PartialEq)]
pub enum VarValue {
    /// `K=TEXT`, `K=@@TEXT` for a text that begins with `@`, or the value of `K:=JSON`.
    Given(Value),
    /// `K=@FILE`
    File(PathBuf),
}

/// Reads `K=TEXT`, `K=@FILE` or `K:=JSON`.
pub(super) fn parse_var(written: &str) -> Result<Var, String> {
    let forms = "write it as NAME=TEXT, NAME=@FILE or NAME:=JSON";
    let (name, text) = written.split_once('=').ok_or(forms)?;
    let (name, is_json) = name.strip_suffix(':').map_or((name, false), |name| (name, true));
    if name.trim().is_empty() {
        return Err(format!("the name before = is empty: {forms}"));
    }
    let value = if is_json {
        let value = serde_json::from_str(text)
            .map_err(|error| format!("what follows := is not JSON: {error} (NAME=TEXT takes any text)"))?;
        VarValue::Given(value)
    } else {
        match text.strip_prefix('@') {
            None => VarValue::Given(text.into()),
            Some(rest) if rest.starts_with('@') => VarValue::Given(rest.into()),
            Some("") => return Err("no file follows @; a text that is @ alone is written @@".to_owned()),
            Some(file) => VarValue::File(file.into()),
        }
    };
    Ok(Var { name: name.to_owned(), value })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_variable_is_text_data_or_a_file() {
        let given = |value: Value| Ok(VarValue::Given(value));
        for (written, name, value) in [
            ("k=v", "k", given(json!("v"))),
            ("k=", "k", given(json!(""))),
            ("k=a=b:=c", "k", given(json!("a=b:=c"))),
            ("k=5", "k", given(json!("5"))),
            ("k:=5", "k", given(json!(5))),
            ("k:={\"a\": [1, null]}", "k", given(json!({"a": [1, null]}))),
            ("k:=\"@x\"", "k", given(json!("@x"))),
            ("a:b=v", "a:b", given(json!("v"))),
            ("k=@notes.txt", "k", Ok(VarValue::File("notes.txt".into()))),
            ("k=@@home", "k", given(json!("@home"))),
            ("k=@@", "k", given(json!("@"))),
            ("k= @x", "k", given(json!(" @x"))),
            ("k", "", Err("NAME=TEXT, NAME=@FILE or NAME:=JSON")),
            ("=v", "", Err("the name before = is empty")),
            (":=1", "", Err("the name before = is empty")),
            ("k=@", "", Err("no file follows @")),
            ("k:=yes", "", Err("what follows := is not JSON: expected value at line 1 column 1")),
            ("k:=", "", Err("is not JSON")),
        ] {
            match (parse_var(written), value) {
                (Ok(read), Ok(value)) => assert_eq!((read.name.as_str(), read.value), (name, value), "{written}"),
                (Err(error), Err(why)) => assert!(error.contains(why), "{written}: {error}"),
                (read, value) => panic!("{written}: {read:?} is not {value:?}"),
            }
        }
    }
}
