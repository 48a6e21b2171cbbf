//! Chooses how much guidance a model needs ([`GuidanceProfile`]) by its id: by the size in it, else by the words that makers
//! use for small models, else by whether it is one of the well-known large ones.
//!
//! An unknown model is guided: most such ids are of private servers, with models of 7 to 30 billion parameters. A few
//! hundred extra tokens cost a large model little; a missing recipe makes a small one fail the task.

use crate::config::GuidanceProfile;

/// Parameters in billions up to which a model is guided.
const GUIDED_UP_TO: f64 = 40.0;
/// Parts of an id that say that a model is small.
const SMALL: &[&str] =
    &["nano", "lite", "tiny", "micro", "small", "smollm", "smollm2", "smollm3", "ministral", "nemo", "phi"];
/// Prefixes of the last part of an id whose models are small although nothing else says so.
const SMALL_FAMILIES: &str = "gpt-3.5 gpt-4o-mini gpt-4.1-mini command-r7b open-mistral-nemo";
/// Prefixes of the last part of an id whose models are large, including those newer than the catalogue.
const LARGE_FAMILIES: &str = "\
    gpt- chat-latest o1 o3 o4 claude- gemini- grok- deepseek-v deepseek-chat deepseek-reasoner kimi- glm- \
    minimax- muse- mistral-large mistral-medium qwen-max qwen-plus";

/// The profile for the model with this id; `is_known`: the catalogue has facts about it.
pub fn choose_profile(id: &str, is_known: bool) -> GuidanceProfile {
    let id = id.to_ascii_lowercase();
    let name = id.rsplit('/').next().unwrap_or(&id);
    let name = name.strip_suffix(".gguf").unwrap_or(name);
    let parts = || name.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    if let Some(billions) = parts().filter_map(parse_billions).reduce(f64::max) {
        return if billions <= GUIDED_UP_TO { GuidanceProfile::Guided } else { GuidanceProfile::Concise };
    }
    let begins = |families: &str| families.split(' ').any(|family| name.starts_with(family));
    let is_small = begins(SMALL_FAMILIES) || parts().any(|part| SMALL.contains(&part));
    if !is_small && (is_known || begins(LARGE_FAMILIES)) {
        GuidanceProfile::Concise
    } else {
        GuidanceProfile::Guided
    }
}

/// The parameters that a part of an id names: `30b`, `0.8b`, `8x7b`, `e4b`, `2.4t`. `a3b` names only the active ones.
fn parse_billions(part: &str) -> Option<f64> {
    let (number, unit) = match (part.strip_suffix('b'), part.strip_suffix('t')) {
        (Some(number), _) => (number, 1.0),
        (None, Some(number)) => (number, 1000.0),
        (None, None) => return None,
    };
    let number = number.strip_prefix(['e', 'r']).unwrap_or(number);
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let size = |text: &str| text.parse::<f64>().ok().filter(|_| is_number(text));
    let size = match number.split_once('x') {
        Some((count, each)) => size(count)? * size(each)?,
        None => size(number)?,
    };
    Some(size * unit)
}

#[cfg(test)]
mod tests {
    use super::{GuidanceProfile, choose_profile};

    #[test]
    fn the_size_decides_then_the_name_then_the_catalogue() {
        for id in [
            "qwen2.5-coder:7b",
            "Qwen/Qwen3-30B-A3B-Instruct",
            "llama-3.1-8b-instant",
            "openai/gpt-oss-20b",
            "gemma-4-31b-it",
            "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
            "mistral-small3.2:24b-q8_0",
            "qwen3.5:0.8b",
            "gemma-3n-e4b",
            "model-7B.gguf",
            "deepseek-r1:8b",
        ] {
            assert_eq!(choose_profile(id, true), GuidanceProfile::Guided, "{id}: by its size");
        }
        for id in ["llama-3.3-70b-versatile", "mixtral-8x22b-instruct", "gpt-oss-120b", "qwen3.8-2.4t-a95b"] {
            assert_eq!(choose_profile(id, false), GuidanceProfile::Concise, "{id}: by its size");
        }
        for id in ["gpt-5-nano", "gemini-3.5-flash-lite", "mistral-small-2603", "openai/gpt-4o-mini", "phi-4"] {
            assert_eq!(choose_profile(id, true), GuidanceProfile::Guided, "{id}: by its name");
        }
        for id in ["gpt-5-mini", "anthropic/claude-opus-9", "o4-mini", "gemini-7-pro", "glm-6", "kimi-k9"] {
            assert_eq!(choose_profile(id, false), GuidanceProfile::Concise, "{id}: by its family");
        }
        assert_eq!(
            choose_profile("devstral-2512", true),
            GuidanceProfile::Concise,
            "the catalogue knows it, and nothing says small"
        );
        for id in ["", "local-model", "llama3.2", "deepseek-r1", "gemma3", "mistral"] {
            assert_eq!(choose_profile(id, false), GuidanceProfile::Guided, "`{id}`: nothing is known of it");
        }
    }
}
