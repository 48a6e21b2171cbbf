//! The models that `agent init` offers, and the file that the chosen one needs. Pure functions.

use std::fmt::Write;

use crate::base::secrets::Redactor;
use crate::model::LocalServer;
use crate::model::catalogue::choose_small;
use crate::model::catalogue::providers::{PROVIDERS, Provider, ProviderRole};

/// A server to choose from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerChoice {
    /// The text in the list.
    pub label: String,
    /// The address; `None` if the person types it.
    pub base_url: Option<String>,
    /// The variable with the key: one that is set, else the usual one.
    pub key: Option<&'static str>,
    /// The model to propose.
    pub model: Option<String>,
    pub provider: Option<&'static Provider>,
}

/// The contents of a model file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelFile {
    pub base_url: String,
    /// The variable with the key.
    pub key: Option<String>,
    pub model: String,
}

/// Lists the servers that answer on this machine, then the providers whose key is set, then the other providers, then
/// "another server".
pub(super) fn list_choices(local: &[LocalServer], keys_set: &[&str]) -> Vec<ServerChoice> {
    let local = local.iter().map(|server| ServerChoice {
        label: match server.models.as_slice() {
            [] => format!("{} on this machine, without a model yet", server.name),
            [model] => format!("{} on this machine ({model})", server.name),
            [model, others @ ..] => format!("{} on this machine ({model} and {} more)", server.name, others.len()),
        },
        base_url: Some(server.base_url.clone()),
        // A server may give its models any name.
        model: server.models.iter().find(|id| is_plain(id)).cloned(),
        ..ServerChoice::default()
    });
    let remote = PROVIDERS.iter().filter(|provider| provider.kind != ProviderRole::Local).map(|provider| {
        let set = provider.keys.iter().copied().find(|key| keys_set.contains(key));
        ServerChoice {
            label: set.map_or_else(|| provider.name.to_owned(), |key| format!("{} ({key} is set)", provider.name)),
            base_url: Some(provider.base_url.to_owned()),
            key: set.or(provider.keys.first().copied()),
            model: choose_small(provider).map(str::to_owned),
            provider: Some(provider),
        }
    });
    let (set, unset): (Vec<_>, Vec<_>) = remote.partition(|choice| choice.label.ends_with("is set)"));
    let other = ServerChoice { label: "another server, by its address".to_owned(), ..ServerChoice::default() };
    local.chain(set).chain(unset).chain([other]).collect()
}

/// Parses the number of a choice to an index from 0; an empty line is the first.
pub(super) fn parse_number(line: &str, count: usize) -> Result<usize, String> {
    match line.trim() {
        "" => Ok(0),
        typed => match typed.parse::<usize>() {
            Ok(number) if (1..=count).contains(&number) => Ok(number - 1),
            _ => Err(format!("Type a number from 1 to {count}.")),
        },
    }
}

/// Parses the name of a variable. Text that looks like a key is refused, and not echoed.
pub(super) fn parse_variable(line: &str, usual: Option<&str>) -> Result<Option<String>, String> {
    let name = line.trim();
    if name.is_empty() {
        return Ok(usual.map(str::to_owned));
    }
    let is_name = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.len() <= 64;
    if is_name && Redactor::new(Vec::new()).redact(name) == name {
        return Ok(Some(name.to_owned()));
    }
    Err("That is not the name of a variable, such as OPENAI_API_KEY. The key itself is never written to a file."
        .to_owned())
}

/// Parses the address of a server.
pub(super) fn parse_address(line: &str) -> Result<String, String> {
    let url = line.trim().trim_end_matches('/');
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or_default();
    if rest.is_empty() || rest.contains('@') || !is_plain(url) {
        return Err("Type an address like http://127.0.0.1:8080/v1, without a user or a password.".to_owned());
    }
    Ok(url.to_owned())
}

/// Parses a model id, as the server names it.
pub(super) fn parse_model(line: &str, usual: Option<&str>) -> Result<String, String> {
    let typed = line.trim();
    match (typed, usual) {
        ("", Some(usual)) => Ok(usual.to_owned()),
        ("", None) => Err("Type the name of a model, as the server lists it.".to_owned()),
        (typed, _) if is_plain(typed) => Ok(typed.to_owned()),
        _ => Err("That is not the name of a model: it contains a space, a quote or a brace.".to_owned()),
    }
}

/// True if a text needs no escapes in double quotes of YAML, and is not a template.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| !c.is_control() && !c.is_whitespace() && !"\"'\\{}".contains(c))
}

/// Writes the text of `models/default.yaml`.
pub(super) fn format_model_file(chosen: &ModelFile) -> String {
    let mut text = "# The model that agents use unless they name another. Keys that are missing here keep their built-in values:\n\
    # `agent config show` prints all of them, docs/models.md explains them.\n\n\
                    name: default\nprovider: openai                   # the host in base_url decides the protocol\n"
        .to_owned();
    let _ = writeln!(text, "base_url: \"{}\"", chosen.base_url);
    match &chosen.key {
        Some(key) => drop(writeln!(text, "api_key: \"{{{{ env.{key} }}}}\"")),
        None => text += "api_key: null                      # none is sent\n",
    }
    let _ = writeln!(text, "model: \"{}\"", chosen.model);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_answers_comes_first_then_what_has_a_key() {
        let ollama = LocalServer {
            name: "Ollama",
            base_url: "http://127.0.0.1:11434/v1".to_owned(),
            models: vec!["{{ env.HOME }}".to_owned(), "qwen3:8b".to_owned()],
        };
        let all = list_choices(&[ollama], &["MISTRAL_API_KEY", "GOOGLE_API_KEY"]);
        let labels: Vec<&str> = all.iter().map(|choice| choice.label.as_str()).collect();
        assert_eq!(
            labels[..4],
            [
                "Ollama on this machine ({{ env.HOME }} and 1 more)",
                "Google Gemini (GOOGLE_API_KEY is set)",
                "Mistral (MISTRAL_API_KEY is set)",
                "OpenAI",
            ]
        );
        assert_eq!(labels.last(), Some(&"another server, by its address"));
        assert_eq!(all[0].model.as_deref(), Some("qwen3:8b"));
        assert_eq!(all[1].key, Some("GOOGLE_API_KEY"));
        assert_eq!((all[0].key, all[3].key), (None, Some("OPENAI_API_KEY")));
    }

    #[test]
    fn answers_are_checked() {
        assert_eq!((parse_number("", 3), parse_number(" 2 ", 3)), (Ok(0), Ok(1)));
        assert!(parse_number("0", 3).is_err() && parse_number("4", 3).is_err() && parse_number("x", 3).is_err());
        assert_eq!(parse_variable("", Some("A_KEY")), Ok(Some("A_KEY".to_owned())));
        assert_eq!(parse_variable("", None), Ok(None));
        assert_eq!(parse_variable("MY_KEY2", None), Ok(Some("MY_KEY2".to_owned())));
        for key in ["sk-proj-0123456789abcdef0123456789abcdef", "AIzaSyA1234567890", "2KEY", "MY KEY", "{{x}}"] {
            let why = parse_variable(key, None).expect_err(key);
            assert!(!why.contains(key), "{why}");
        }
        assert_eq!(parse_address("http://box:1/v1/"), Ok("http://box:1/v1".to_owned()));
        for wrong in ["", "box:1", "http://", "https://me:secret@box/v1", "http://a{{x}}", "http://a\"b"] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_model(" org/m:8b ", None), Ok("org/m:8b".to_owned()));
        assert_eq!(parse_model("", Some("m")), Ok("m".to_owned()));
        assert!(
            parse_model("", None).is_err()
                && parse_model("a b", None).is_err()
                && parse_model("{{m}}", None).is_err()
        );
    }
}
