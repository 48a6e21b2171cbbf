//! Selects names by a list of names and globs: `["*", "!run_command", "fetch_*"]`.

use globset::Glob;

use crate::base::text;

/// A name that can be selected.
#[derive(Debug, Clone, Copy)]
pub struct SelectableName<'a> {
    pub name: &'a str,
    /// True if `*` alone selects it.
    pub default: bool,
}

/// The names selected by `patterns`, in the order of `choices`. Later patterns win; `!` excludes.
///
/// # Errors
/// A pattern is not a valid glob, or a plain name is not among the choices; the error is a sentence.
pub fn select_names<'a>(patterns: &[String], choices: &[SelectableName<'a>]) -> Result<Vec<&'a str>, String> {
    let mut taken = vec![false; choices.len()];
    for pattern in patterns {
        let (wanted, name) = pattern.strip_prefix('!').map_or((true, pattern.as_str()), |name| (false, name));
        // Each start selects by `*` alone, and an expression takes longer to compile than all names to compare.
        let is_all = name == "*";
        let is_glob = !is_all && name.contains(['*', '?', '[', '{']);
        let glob = is_glob
            .then(|| Glob::new(name).map(|glob| glob.compile_matcher()))
            .transpose()
            .map_err(|error| error.to_string())?;
        let is_meant = |choice: &SelectableName<'_>| match &glob {
            // It includes only the defaults, but excludes everything.
            None if is_all => choice.default || !wanted,
            Some(glob) => glob.is_match(choice.name),
            None => choice.name == name,
        };
        let mut known = is_all || is_glob;
        for (choice, taken) in choices.iter().zip(&mut taken) {
            if is_meant(choice) {
                *taken = wanted;
                known = true;
            }
        }
        if !known {
            let near = text::find_nearest(name, choices.iter().map(|choice| choice.name));
            let hint = near.first().map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(format!("`{pattern}` names nothing that exists{hint}"));
        }
    }
    Ok(choices.iter().zip(taken).filter(|(_, taken)| *taken).map(|(choice, _)| choice.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_globs_and_exclusions_apply_in_order() {
        let choices = [("read_file", true), ("run_command", true), ("fetch_url", false), ("fetch_feed", false)]
            .map(|(name, default)| SelectableName { name, default });
        let table: [(&[&str], &str); 6] = [
            (&["*"], "read_file run_command"),
            (&["*", "!run_command"], "read_file"),
            (&["*", "fetch_*"], "read_file run_command fetch_url fetch_feed"),
            (&["fetch_url"], "fetch_url"),
            (&["*", "!*", "read_file"], "read_file"),
            (&[], ""),
        ];
        for (patterns, expected) in table {
            let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
            assert_eq!(
                select_names(&patterns, &choices).expect("all are known").join(" "),
                expected,
                "{patterns:?}"
            );
        }
        let wrong = select_names(&["read_fil".to_owned()], &choices).expect_err("it is unknown");
        assert!(wrong.contains("did you mean `read_file`?"), "{wrong}");
    }
}
